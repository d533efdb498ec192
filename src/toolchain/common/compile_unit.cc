#include "compile_unit.h"

#include <algorithm>
#include <cctype>

#include "compiler_child.h"
#include "warpsmith/base/error.h"

namespace warpsmith::toolchain {

namespace {

// Options of NVRTC that change no more than the code that it makes.
constexpr std::string_view kDeviceOptions =
    "--use_fast_math -use_fast_math -lineinfo --generate-line-info --extra-device-vectorization -extra- "
    "device-vectorization --fmad=true --fmad=false --ftz=true --ftz=false --prec-div=true --prec- "
    "div=false --prec-sqrt=true --prec-sqrt=false -fmad=true -fmad=false -ftz=true -ftz=false -prec- "
    "div=true -prec-div=false -prec-sqrt=true -prec-sqrt=false --device-int128 -device-int128";

bool is_number_behind(const std::string& option, std::string_view start) {
  return option.size() > start.size() && option.size() <= start.size() + 3 && option.starts_with(start) &&
         std::all_of(option.begin() + static_cast<std::ptrdiff_t>(start.size()), option.end(),
                     [](unsigned char c) { return std::isdigit(c); });
}

bool is_device_option(const std::string& option) {
  if (is_listed(kDeviceOptions, option)) return true;
  for (const std::string_view standard : {"c++11", "c++14", "c++17", "c++20"})
    for (const std::string_view start : {"--std=", "-std="})
      if (option.starts_with(start) && option.substr(start.size()) == standard) return true;
  return is_number_behind(option, "-maxrregcount=") || is_number_behind(option, "--maxrregcount=");
}

// Part of every key. Raise it when equal input has another outcome than before, before any compiler sees it.
constexpr const char* kFront = "front 2";

bool is_define(const std::string& option) {
  // Names of the twin's own, macros by which CUDA's headers choose what they include, and what asks for
  // files.
  for (const std::string_view never : {"wstw", "WSTW", "THRUST", "__has_", "_HAS_INCLUDE"})
    if (option.find(never) != std::string::npos) return false;
  return option.size() > 2 && option.starts_with("-D") &&
         (std::isalpha(static_cast<unsigned char>(option[2])) || option[2] == '_') &&
         std::all_of(option.begin(), option.end(), [](unsigned char c) {
           return std::isalnum(c) || c == '_' || c == '=' || c == '-' || c == '.';
         });
}

}  // namespace

std::optional<CompileResult> read_plan_names(const Candidate& candidate, const task::Task& task,
                                             const CompileOptions& options, ModuleNames* names) {
  if (candidate.source().size() > kMostSourceBytes) return failure_of({1, 1, kSourceTooLarge, false});
  Diagnostics diagnostics;
  const task::LaunchPlan plan = task::LaunchPlan::parse(candidate.source(), task, "kernel.cu", diagnostics);
  if (diagnostics.empty()) {
    *names = {plan.kernels(), plan.symbols(), plan.places()};
    return std::nullopt;
  }
  std::string log;
  for (const Diagnostic& d : diagnostics) log += to_string(d) + "\n";
  return failure(Verdict::kCompileError, cut_log(std::move(log), options.log_bytes));
}

CandidateOptions read_options(const Candidate& candidate) {
  CandidateOptions options;
  for (const std::string& o : candidate.options) {
    if (is_device_option(o))
      options.device.push_back(o);
    else if (is_define(o))
      options.defines.push_back(o);
    else
      throw SourceProblem{1, 1, "unknown compile option " + o, false};
  }
  return options;
}

std::string define_lines(const std::vector<std::string>& defines) {
  std::string lines;
  for (const std::string& option : defines) {
    const std::size_t equals = std::min(option.find('='), option.size());
    lines += "#define " + option.substr(2, equals - 2) + " " +
             (equals == option.size() ? "1" : option.substr(equals + 1)) + "\n";
  }
  return lines;
}

task::NamePlace ModuleNames::place_of(const std::string& name) const {
  const auto found = places.find(name);
  return found == places.end() ? task::NamePlace() : found->second;
}

Sha256 start_key(const std::string& toolchain_id, const Candidate& candidate, const task::Task& task,
                 const ModuleNames& names) {
  Sha256 key;
  key.field(kFront).field(toolchain_id).field(task.id).field(task.digest).field(candidate.source());
  for (const std::string& o : candidate.options) key.field("option").field(o);
  for (const std::string& k : names.kernels) key.field("kernel").field(k);
  for (const std::string& s : names.symbols) key.field("symbol").field(s);
  return key;
}

std::string place_of(const SourceProblem& p, const std::string& file) {
  return file + ":" + std::to_string(p.line) + ":" + std::to_string(p.column) + ": error: " + p.message +
         "\n";
}

CompileResult failure_of(const SourceProblem& p, const std::string& file) {
  return failure(p.unsupported ? Verdict::kUnsupported : Verdict::kCompileError, place_of(p, file));
}

std::string cut_log(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  text.resize(limit > 4 ? limit - 4 : 0);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) text.pop_back();
  if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xC0) text.pop_back();
  return text + "…\n";
}

}  // namespace warpsmith::toolchain
