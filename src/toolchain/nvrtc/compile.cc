#include "warpsmith/toolchain/gpu.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "../common/compile_unit.h"
#include "../common/cubin.h"
#include "../common/cuda_log.h"
#include "../common/pipeline.h"
#include "compiler.h"
#include "cubin_facts.h"
#include "log.h"
#include "request.h"
#include "source.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::uint64_t kMostStaticShared = 48 << 10;
// Of variables together: the measuring process keeps a copy, and restores it before every timed row.
constexpr std::uint64_t kMostVariables = 4 << 20;
// Memory of the heap stays from call to call, and CUDA knows no heap of nothing.
constexpr const char* kNoHeap =
    "kernel.cu: error: `malloc` or `new` in device code: candidates have no heap, ask for a `temp`\n";

void check_target(const GpuTarget& target) {
  const std::vector<int>& known = nvrtc_here().about.targets;
  if (std::find(known.begin(), known.end(), target.major * 10 + target.minor) == known.end())
    throw Error("NVRTC " + nvrtc_here().about.version + " makes no code for " + to_string(target),
                kExitUsage);
}

bool is_newer(const GpuTarget& a, const GpuTarget& b) {
  const int of_a = a.major * 10 + a.minor, of_b = b.major * 10 + b.minor;
  return of_a > of_b || (of_a == of_b && a.variant != 0 && b.variant == 0);
}

// Those that have the most: the compiler and CUDA's headers call what a target lacks a mistake (a name that
// is undefined, `#error`), and only a newer one tells it from the candidate's own.
std::vector<std::string> targets_with_most() {
  std::vector<std::string> out;
  const std::vector<int>& known = nvrtc_here().about.targets;
  for (const GpuTarget& t : {GpuTarget{9, 0, 'a'}, GpuTarget{10, 0, 'a'}})
    if (std::find(known.begin(), known.end(), t.major * 10 + t.minor) != known.end())
      out.push_back(to_string(t));
  return out;
}

// Whether the source compiles, of the targets of which that is known.
using Compiles = std::map<std::string, bool>;

bool compiles_for_newer(const Compiles& known, const std::string& target) {
  const auto is_proof = [&](const auto& k) {
    return k.second && is_newer(*parse_gpu_target(k.first), *parse_gpu_target(target));
  };
  return std::any_of(known.begin(), known.end(), is_proof);
}

CompileResult blame_target(CompileResult result, const std::string& target, const CompileOptions& options) {
  result.verdict = Verdict::kUnsupported;
  result.log = cut_log("kernel.cu: error: needs a newer architecture than " + target + "\n" + result.log,
                       options.log_bytes);
  return result;
}

// Whether they have more bytes together than they may; their sum may have no place in 64 bits.
bool are_too_large(const std::vector<CubinVariable>& variables) {
  std::uint64_t room = kMostVariables;
  for (const CubinVariable& v : variables) {
    // The least that a variable has for its own, whatever its size.
    const std::uint64_t bytes = std::max<std::uint64_t>(v.bytes, 256);
    if (bytes > room) return true;
    room -= bytes;
  }
  return false;
}

bool is_part_of_name(std::string_view text, std::size_t at) {
  return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
}

// Where it is declared: where its name stands for the first time in a line that also has a word of
// declarations. Nothing where macros hide it.
std::optional<std::size_t> find_declaration(std::string_view source, std::string_view name) {
  for (std::size_t at = source.find(name); at != std::string_view::npos; at = source.find(name, at + 1)) {
    if ((at > 0 && is_part_of_name(source, at - 1)) || is_part_of_name(source, at + name.size())) continue;
    const std::size_t begin = at == 0 ? 0 : source.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    const std::string_view line = source.substr(begin, source.find('\n', at) - begin);
    for (const std::string_view word :
         {"__device__", "__constant__", "__managed__", "static", ".global", ".const"})
      if (line.find(word) != std::string_view::npos) return at;
  }
  return std::nullopt;
}

// Empty, or that the variables are too large, with the place of the largest in `source` where it is found.
std::string problem_of_variables(const std::vector<CubinVariable>& variables, std::string_view source) {
  if (!are_too_large(variables)) return "";
  const CubinVariable& largest =
      *std::max_element(variables.begin(), variables.end(),
                        [](const CubinVariable& a, const CubinVariable& b) { return a.bytes < b.bytes; });
  const std::string name = name_in_source(largest);
  const std::string message = "__device__ and __constant__ variables of more than " +
                              std::to_string(kMostVariables) + " bytes in all: `" + name + "` has " +
                              std::to_string(largest.bytes);
  const std::optional<std::size_t> at = find_declaration(source, name);
  if (!at) return "kernel.cu: error: " + message + "\n";
  const auto lines = std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(*at), '\n');
  return place_of({static_cast<int>(lines) + 1, column_at(source, *at), message, false});
}

// Compiles for the targets that the cache does not hold.
class Compilation {
 public:
  Compilation(const Candidate& candidate, const ModuleNames& names, const CompileOptions& options,
              const fs::path& scratch, std::vector<Output>& outputs)
      : options_(options), names_(names), scratch_(scratch), request_(make_nvrtc_request(candidate, names)) {
    for (Output& o : outputs) {
      if (o.result.cached)
        known_[o.target] = o.result.verdict == Verdict::kOk;
      else
        missing_.push_back(&o);
    }
  }

  void run() {
    compile(missing_);
    if (!mistaken_.empty()) try_newer();
    for (Output* o : mistaken_) {
      const bool lacks = compiles_for_newer(known_, o->target);
      o->repeatable = lacks || !timed_out_;
      if (lacks) o->result = blame_target(o->result, o->target, options_);
    }
  }

 private:
  NvrtcRun run_child(std::vector<std::string> targets) {
    request_.targets = std::move(targets);
    // Each target has the time that one has.
    CompileOptions limits = options_;
    limits.timeout_s *= static_cast<double>(request_.targets.size());
    // Each child has a folder of its own: it cannot change what an earlier one made.
    folder_ = scratch_ / std::to_string(children_++);
    make_folders(folder_);
    return run_nvrtc(request_, folder_, limits);
  }

  void compile(std::vector<Output*> open) {
    while (!open.empty()) {
      std::vector<std::string> targets;
      for (const Output* o : open) targets.push_back(o->target);
      const NvrtcRun child = run_child(targets);
      std::erase_if(open, [&](Output* o) { return take_answer(child, o); });
      if (open.empty()) return;
      if (child.outcome == CompilerRun::kDone)
        throw Error("warpsmith-nvrtc left no answer for " + open.front()->target);
      // The first without an answer ended the child. The others are tried without it, but not where it took
      // all the time: they have the same source.
      const bool timed_out = child.outcome == CompilerRun::kTimedOut;
      timed_out_ |= timed_out;
      const auto behind = timed_out ? open.end() : open.begin() + 1;
      for (auto o = open.begin(); o != behind; ++o) {
        known_[(*o)->target] = false;
        (*o)->result = result_of(child, options_, readable_nvrtc_log("", options_.log_bytes));
      }
      open.erase(open.begin(), behind);
    }
  }

  // Finds out whether newer targets take what others found mistaken. One that does not end takes nothing.
  void try_newer() {
    std::vector<std::string> newer = targets_with_most();
    std::erase_if(newer, [&](const std::string& n) {
      return known_.contains(n) || std::none_of(mistaken_.begin(), mistaken_.end(), [&](const Output* o) {
               return is_newer(*parse_gpu_target(n), *parse_gpu_target(o->target)) &&
                      !compiles_for_newer(known_, o->target);
             });
    });
    if (newer.empty()) return;
    const NvrtcRun child = run_child(newer);
    timed_out_ |= child.outcome == CompilerRun::kTimedOut;
    for (const auto& [target, answer] : child.answers)
      known_[target] = read_answer(answer, target, nullptr).verdict == Verdict::kOk;
  }

  // False where the child did not get to this target.
  bool take_answer(const NvrtcRun& child, Output* output) {
    const auto answer = child.answers.find(output->target);
    if (answer == child.answers.end()) return false;
    output->result = read_answer(answer->second, output->target, &output->facts);
    known_[output->target] = output->result.verdict == Verdict::kOk;
    if (!answer->second.ok && output->result.verdict == Verdict::kCompileError) mistaken_.push_back(output);
    return true;
  }

  // As a result, and the facts of an ok one.
  CompileResult read_answer(const NvrtcAnswer& answer, const std::string& target, Json* facts) const {
    if (!answer.ok)
      return failure(target_lacks_features(answer.log) ? Verdict::kUnsupported : Verdict::kCompileError,
                     readable_nvrtc_log(answer.log, options_.log_bytes));
    const fs::path cubin = cubin_file(folder_, target);
    const CubinContent content = read_cubin(read_file(cubin));
    if (content.heap) return failure(Verdict::kCompileError, kNoHeap);
    if (std::string problem = problem_of_variables(content.variables, own_text(request_.source));
        !problem.empty())
      return failure(Verdict::kCompileError, cut_log(std::move(problem), options_.log_bytes));
    const CubinFacts found = gather_facts(content, answer, target, names_);
    for (const KernelFacts& k : found.kernels)
      if (k.shared_bytes > kMostStaticShared)
        return failure(Verdict::kCompileError, "kernel.cu: error: `" + k.name + "` has " +
                                                   std::to_string(k.shared_bytes) +
                                                   " bytes of static __shared__ memory, over 48 KB\n");
    if (facts != nullptr) *facts = to_json(found);
    return compiled(cubin);
  }

  const CompileOptions& options_;
  const ModuleNames& names_;
  const fs::path& scratch_;
  fs::path folder_;  // of the last child
  int children_ = 0;
  NvrtcRequest request_;
  std::vector<Output*> missing_;
  std::vector<Output*> mistaken_;  // by the compiler's word
  Compiles known_;
  bool timed_out_ = false;
};

}  // namespace

std::string gpu_toolchain_id() {
  static const std::string id = [] {
    const std::string text = nvrtc_here().id + nvrtc_options_id();
    Sha256 headers;
    for (const auto& [name, content] : headers_for_nvrtc()) headers.field(name).field(content);
    return text + " no heap, newer targets asked, log without NUL, all variables in " +
           std::to_string(kMostVariables) + " bytes, ours " + headers.hex().substr(0, 16);
  }();
  return id;
}

std::vector<CompileResult> compile_for_gpus(const Candidate& candidate, const task::Task& task,
                                            const std::vector<GpuTarget>& targets,
                                            const CompileOptions& options) {
  ModuleNames names;
  const auto refuse = [&] {
    std::optional<CompileResult> mistake = read_plan_names(candidate, task, options, &names);
    if (!mistake) std::for_each(targets.begin(), targets.end(), check_target);
    return mistake;
  };
  const auto key = [&](const std::string& target) {
    Sha256 start = start_key(gpu_toolchain_id(), candidate, task, names);
    return start.field("target").field(target).hex();
  };
  const auto compile = [&](const fs::path& scratch, std::vector<Output>& outputs) {
    Compilation(candidate, names, options, scratch, outputs).run();
  };
  const Language nvrtc = {
      Tier::kPlan, "only candidates of tier `plan` are compiled by NVRTC\n", ".cubin", refuse, key, compile};
  std::vector<std::string> target_names;
  for (const GpuTarget& target : targets) target_names.push_back(to_string(target));
  return compile_candidate(nvrtc, candidate, target_names, options);
}

CompileResult compile_for_gpu(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                              const CompileOptions& options) {
  return compile_for_gpus(candidate, task, {target}, options).front();
}

}  // namespace warpsmith::toolchain
