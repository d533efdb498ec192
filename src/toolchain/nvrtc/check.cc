#include "check.h"

#include <algorithm>
#include <cstdlib>

#include "log.h"
#include "request.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::uint64_t kMemory = 1ull << 30;  // its libraries alone take a good part of that
// What the assembler allows a kernel and a module.
constexpr std::uint64_t kMostShared = 48 << 10, kMostConstant = 64 << 10;

// ".shared .align 4 .b8 s[4096];": the sum of the arrays in lines with this word.
std::uint64_t bytes_of_arrays(std::string_view ptx, std::string_view word) {
  std::uint64_t sum = 0;
  for (const std::string& line : split_lines(ptx)) {
    const std::size_t at = line.find(word), open = line.find('[');
    if (at != std::string::npos && open != std::string::npos && at < open)
      sum += std::strtoull(line.c_str() + open + 1, nullptr, 10);
  }
  return sum;
}

NvrtcRequest request_of(const Candidate& candidate, const ModuleNames& names) {
  NvrtcRequest request = make_nvrtc_request(candidate, names);
  std::erase(request.options, "--ptxas-options=-v");
  const std::vector<int>& known = nvrtc_here().about.targets;
  // The optimiser is not asked for its best. Of NVRTC 13.
  if (std::atoi(nvrtc_here().about.version.c_str()) >= 13) request.options.push_back("--Ofast-compile=max");
  for (const auto& [number, target] :
       {std::pair(80, "compute_80"), std::pair(90, "compute_90a"), std::pair(100, "compute_100a")})
    if (std::find(known.begin(), known.end(), number) != known.end()) request.targets.emplace_back(target);
  request.one_is_enough = true;
  return request;
}

CompileOptions limits_of(CompileOptions options) {
  options.memory_bytes = std::max(options.memory_bytes, kMemory);
  return options;
}

}  // namespace

NvrtcCheck::NvrtcCheck(const CompileOptions& options)
    : log_bytes_(options.log_bytes), server_(limits_of(options)) {}

NvrtcWord NvrtcCheck::ask(const Candidate& candidate, const ModuleNames& names) {
  const NvrtcRequest request = request_of(candidate, names);
  const NvrtcRun run = server_.run(request);
  NvrtcWord word;
  if (run.outcome != CompilerRun::kDone || run.answers.empty()) return word;
  for (const auto& [target, answer] : run.answers) {
    if (!answer.ok) continue;
    word.kind = target == request.targets.front() ? NvrtcWord::kTakes : NvrtcWord::kNewer;
    const std::string ptx = read_file(cubin_file(server_.folder(), target));
    word.wants_assembler =
        bytes_of_arrays(ptx, ".shared ") > kMostShared || bytes_of_arrays(ptx, ".const ") > kMostConstant;
    return word;
  }
  word.kind = NvrtcWord::kRefuses;
  word.refusal = failure(Verdict::kCompileError,
                         readable_nvrtc_log(run.answers.at(request.targets.front()).log, log_bytes_));
  return word;
}

}  // namespace warpsmith::toolchain
