#include "warpsmith/toolchain/gpu.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <utility>

#include "../common/compile_cache.h"
#include "../common/compile_unit.h"
#include "../common/cubin.h"
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
// Of variables together: who measures keeps a copy, and puts it back before every timed row.
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

std::string too_large(const std::vector<CubinVariable>& variables, std::string_view request_source) {
  const std::string_view source = own_text(request_source);
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

// One target's answer, as a result and facts.
CompileResult take_answer(const NvrtcAnswer& answer, const std::string& target, const ModuleNames& names,
                          const std::string& source, const CompileOptions& options, const fs::path& cubin,
                          Json* facts) {
  if (!answer.ok)
    return failure(target_lacks_features(answer.log) ? Verdict::kUnsupported : Verdict::kCompileError,
                   readable_nvrtc_log(answer.log, options.log_bytes));
  const CubinContent content = read_cubin(read_file(cubin));
  if (content.heap) return failure(Verdict::kCompileError, kNoHeap);
  if (are_too_large(content.variables))
    return failure(Verdict::kCompileError, cut_log(too_large(content.variables, source), options.log_bytes));
  const CubinFacts found = gather_facts(content, answer, target, names);
  for (const KernelFacts& k : found.kernels)
    if (k.shared_bytes > kMostStaticShared)
      return failure(Verdict::kCompileError, "kernel.cu: error: `" + k.name + "` has " +
                                                 std::to_string(k.shared_bytes) +
                                                 " bytes of static __shared__ memory, over 48 KB\n");
  *facts = to_json(found);
  CompileResult result;
  result.verdict = Verdict::kOk;
  result.binary = cubin;
  return result;
}

// Targets that the cache does not hold.
class Compilation {
 public:
  Compilation(const Candidate& candidate, const ModuleNames& names, const CompileOptions& options,
              Compiles known)
      : candidate_(candidate),
        names_(names),
        options_(options),
        known_(std::move(known)),
        scratch_(options.cache) {}

  // Calls `done(target, result, facts)` once for each.
  template <typename Done>
  void run(std::vector<std::string> targets, Done done) {
    NvrtcRequest request;
    try {
      request = make_nvrtc_request(candidate_, names_);
    } catch (const SourceProblem& p) {
      const Verdict verdict = p.unsupported ? Verdict::kUnsupported : Verdict::kCompileError;
      for (const std::string& t : targets) done(t, failure(verdict, place_of(p)), Json());
      return;
    }
    compile(request, std::move(targets), done);
    if (!mistaken_.empty()) try_newer(std::move(request));
    for (const auto& [target, result] : mistaken_) {
      const bool lacks = compiles_for_newer(known_, target);
      is_certain_ = lacks || !timed_out_;
      done(target, lacks ? blame_target(result, target, options_) : result, Json());
    }
  }

  const fs::path& folder() const { return scratch_.path(); }
  // Whether a quieter machine would say the same of what `done` is called with.
  bool is_certain() const { return is_certain_; }

 private:
  // All but those that the compiler finds mistaken.
  template <typename Done>
  void compile(NvrtcRequest& request, std::vector<std::string> targets, Done done) {
    while (!targets.empty()) {
      request.targets = targets;
      // Each target has the time that one has.
      CompileOptions limits = options_;
      limits.timeout_s *= static_cast<double>(targets.size());
      const NvrtcRun child = run_nvrtc(request, scratch_.path(), limits);
      take_answers(child, request.source, targets, done);
      if (targets.empty()) return;
      if (child.outcome == CompilerRun::kDone)
        throw Error("warpsmith-nvrtc left no answer for " + targets.front());
      // The first without an answer ended the child. The others are tried without it, but not where it took
      // all the time: they have the same source.
      const CompileResult ended = result_of(child, options_, readable_nvrtc_log("", options_.log_bytes));
      const std::size_t blamed = child.outcome == CompilerRun::kTimedOut ? targets.size() : 1;
      timed_out_ |= child.outcome == CompilerRun::kTimedOut;
      for (std::size_t i = 0; i < blamed; ++i) {
        known_[targets[i]] = false;
        done(targets[i], ended, Json());
      }
      targets.erase(targets.begin(), targets.begin() + static_cast<std::ptrdiff_t>(blamed));
    }
  }

  // Finds out whether newer targets take what others found mistaken. One that does not end takes nothing.
  void try_newer(NvrtcRequest request) {
    request.targets = targets_with_most();
    std::erase_if(request.targets, [&](const std::string& newer) {
      return known_.contains(newer) || std::none_of(mistaken_.begin(), mistaken_.end(), [&](const auto& m) {
               return is_newer(*parse_gpu_target(newer), *parse_gpu_target(m.first)) &&
                      !compiles_for_newer(known_, m.first);
             });
    });
    if (request.targets.empty()) return;
    CompileOptions limits = options_;
    limits.timeout_s *= static_cast<double>(request.targets.size());
    const NvrtcRun child = run_nvrtc(request, folder(), limits);
    timed_out_ |= child.outcome == CompilerRun::kTimedOut;
    for (const auto& [target, answer] : child.answers) {
      Json facts;
      const fs::path cubin = cubin_file(folder(), target);
      known_[target] = take_answer(answer, target, names_, request.source, options_, cubin, &facts).verdict ==
                       Verdict::kOk;
    }
  }

  // Leaves those in `targets` that the child did not get to.
  template <typename Done>
  void take_answers(const NvrtcRun& child, const std::string& source, std::vector<std::string>& targets,
                    Done done) {
    std::erase_if(targets, [&](const std::string& t) {
      const auto answer = child.answers.find(t);
      if (answer == child.answers.end()) return false;
      Json facts;
      const CompileResult result =
          take_answer(answer->second, t, names_, source, options_, cubin_file(folder(), t), &facts);
      known_[t] = result.verdict == Verdict::kOk;
      if (!answer->second.ok && result.verdict == Verdict::kCompileError)
        mistaken_.emplace_back(t, result);
      else
        done(t, result, facts);
      return true;
    });
  }

  const Candidate& candidate_;
  const ModuleNames& names_;
  const CompileOptions& options_;
  Compiles known_;
  std::vector<std::pair<std::string, CompileResult>> mistaken_;  // by the compiler's word, by target
  bool timed_out_ = false, is_certain_ = true;
  Scratch scratch_;
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
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  CompileResult result;
  if (candidate.tier != Tier::kPlan)
    result = failure(Verdict::kUnsupported, "only candidates of tier `plan` are compiled by NVRTC\n");
  std::optional<ModuleNames> names;
  if (candidate.tier == Tier::kPlan) names = read_plan_names(candidate, task, options, &result);
  std::vector<CompileResult> results(targets.size(), result);
  if (!names) return results;
  make_folders(options.cache);
  std::vector<CacheEntry> entries;
  std::vector<std::string> missing;
  Compiles known;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    check_target(targets[i]);
    Sha256 key = start_key(gpu_toolchain_id(), candidate, task, *names);
    entries.emplace_back(options.cache, key.field("target").field(to_string(targets[i])).hex(), ".cubin");
    if (entries[i].read(&results[i]))
      known[to_string(targets[i])] = results[i].verdict == Verdict::kOk;
    else
      missing.push_back(to_string(targets[i]));
    results[i].seconds = seconds();
  }
  if (missing.empty()) return results;
  Compilation compilation(candidate, *names, options, std::move(known));
  compilation.run(missing, [&](const std::string& target, CompileResult made, const Json& facts) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (to_string(targets[i]) != target || results[i].cached) continue;
      if (made.verdict == Verdict::kOk) {
        publish(made.binary, entries[i].binary());
        made.binary = entries[i].binary();
      }
      if (!made.over_limit && compilation.is_certain()) entries[i].write(compilation.folder(), made, facts);
      results[i] = made;
      results[i].seconds = seconds();
      break;
    }
  });
  return results;
}

CompileResult compile_for_gpu(const Candidate& candidate, const task::Task& task, const GpuTarget& target,
                              const CompileOptions& options) {
  return compile_for_gpus(candidate, task, {target}, options).front();
}

}  // namespace warpsmith::toolchain
