#include "host_compiler.h"

#include <algorithm>
#include <optional>

#include "../nvrtc/compiler.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/process/program_path.h"
#include "warpsmith/toolchain/gpu.h"
#include "warpsmith/toolchain/host.h"

namespace warpsmith::toolchain {

extern const std::string_view kTwinHeader;

namespace {

// CUDA contracts a*b+c by default, so do we. -fno-math-errno and -fno-trapping-math let loops over threads
// vectorise; NaN, infinity and signed zero keep their meaning. -fwhole-program drops what no kernel uses.
// Without start files nothing of the compiler's own runs at load either.
const std::vector<std::string>& fixed_flags() {
  static const std::vector<std::string> flags = {"-std=c++20",  // without g++'s own words, such as typeof
                                                 "-O3",
                                                 "-march=native",
                                                 "-ffp-contract=fast",
                                                 "-fno-math-errno",
                                                 "-fno-trapping-math",
                                                 "-fno-exceptions",
                                                 "-fno-rtti",
                                                 "-fno-strict-aliasing",
                                                 "-fstack-clash-protection",  // no step over a guard page
                                                 "-shared",
                                                 "-fPIC",
                                                 "-fwhole-program",
                                                 "-fvisibility=hidden",
                                                 "-nostdinc",
                                                 "-nostdlib",
                                                 "-fno-stack-protector",
                                                 "-fno-asynchronous-unwind-tables",
                                                 "-fdiagnostics-color=never",
                                                 "-fno-diagnostics-show-caret",
                                                 "-fno-diagnostics-show-option",
                                                 "-fmax-errors=20",
                                                 "-Werror=vla",
                                                 "-Werror=pointer-arith"};
  return flags;
}

// Of the checked form: g++ calls a function before each access to memory. Optimised little, so that accesses
// are those of the source; a candidate cannot tell by a macro which form it is compiled for.
const std::vector<std::string>& checked_flags() {
  static const std::vector<std::string> flags = {"-O1",
                                                 "-fsanitize=thread",
                                                 "--param=tsan-instrument-func-entry-exit=0",
                                                 "--param=tsan-distinguish-volatile=1",
                                                 "-U__SANITIZE_THREAD__",
                                                 "-DWSTW_CHECKED"};
  return flags;
}

// -fsanitize=thread adds a constructor that starts its library, which is not there: without it, any
// constructor is the candidate's own (elf_check.h).
constexpr std::string_view kLinkerScript =
    "SECTIONS { /DISCARD/ : { *(.init_array.00099) } } INSERT BEFORE .text;\n";

// What becomes of the fast form before instructions are chosen, for optimised.h.
constexpr const char* kDumpFlag = "-fdump-tree-optimized=optimised";

// A part of the twin's header that is read where one of the words occurs in a candidate: pieces of the names
// that it declares. A word too many costs some milliseconds.
struct HeaderPart {
  const char* macro;
  std::vector<std::string_view> words;
};

const std::vector<HeaderPart>& header_parts() {
  static const std::vector<HeaderPart> parts = {
      {"-DWSTW_USES_HALF", {"half", "FP16"}},
      {"-DWSTW_USES_BFLOAT16", {"bfloat", "bf16", "BF16"}},
      {"-DWSTW_USES_RARER",
       {"_rz",        "_rd",         "_ru",       "2ll",        "2ull",   "ll2",     "half2int",  "half2uint",
        "half2short", "half2ushort", "half2char", "half2uchar", "162int", "162uint", "162short",  "162ushort",
        "162char",    "162uchar",    "int2half",  "int2bfloat", "short2", "2double", "__double2", "hiint",
        "loint",      "hilo",        "__dadd",    "__dsub",     "__dmul", "__ddiv",  "__drcp",    "__dsqrt",
        "__fma_rn",   "finv",        "cinv",      "erfcx",      "pif",    "norm3d",  "norm4d",    "logb",
        "scalb",      "nextafter",   "mul64",     "had",        "sad",    "shift_",  "__dp2a",    "__v",
        "__hb",       "2_mask",      "eq2",       "ne2",        "lt2",    "gt2",     "le2",       "ge2",
        "equ2",       "neu2",        "ltu2",      "gtu2",       "leu2",   "geu2"}},
  };
  return parts;
}

void add_header_parts(std::string_view candidate, std::vector<std::string>* argv) {
  const auto occurs = [&](std::string_view word) { return candidate.find(word) != std::string_view::npos; };
  for (const HeaderPart& part : header_parts())
    if (std::any_of(part.words.begin(), part.words.end(), occurs)) argv->emplace_back(part.macro);
}

struct Compiler {
  fs::path program;
  std::string version;  // first line of --version
};

Compiler find_compiler() {
  std::vector<std::string> names = {"g++", "c++"};
  if (const std::string chosen = environment("WARPSMITH_HOST_CXX"); !chosen.empty()) names = {chosen};
  for (const std::string& name : names) {
    const fs::path program = process::past_alternatives(process::find_program(name));
    if (program.empty()) continue;
    if (const std::optional<std::string> version = ask_version(program))
      return {program, version->substr(0, version->find('\n'))};
  }
  throw Error("no C++ compiler for the CPU twin: install g++, or name one in WARPSMITH_HOST_CXX");
}

const Compiler& compiler() {
  static const Compiler found = find_compiler();
  return found;
}

}  // namespace

std::string host_toolchain_id() {
  static const std::string id = [] {
    std::string text = compiler().version + " " + kDumpFlag;
    for (const auto* flags : {&fixed_flags(), &checked_flags()})
      for (const std::string& f : *flags) text += " " + f;
    for (const HeaderPart& part : header_parts())
      for (const std::string_view word : part.words) text += " " + std::string(word);
    text += nvrtc_problem().empty() ? " and " + gpu_toolchain_id() : " without NVRTC";
    return text + " header " + sha256_hex(kTwinHeader).substr(0, 16);
  }();
  return id;
}

NvrtcOfTwin nvrtc_of_twin() {
  if (!nvrtc_problem().empty()) return {"", nvrtc_problem()};
  return {nvrtc_here().about.version + " in " + nvrtc_here().library.string(), ""};
}

CompilerRun run_host_compiler(const std::string& text, const fs::path& scratch,
                              const CompileOptions& limits) {
  process::ChildSpec spec = compiler_spec(scratch, limits);
  std::vector<std::string> argv = {compiler().program.string()};
  argv.insert(argv.end(), fixed_flags().begin(), fixed_flags().end());
  // The header stands in front of the candidate.
  add_header_parts(std::string_view(text).substr(std::min(kTwinHeader.size(), text.size())), &argv);
  spec.input = text;
  spec.sandbox.allow_processes = true;
  if (const fs::path prefix = own_prefix(compiler().program); !prefix.empty())
    spec.sandbox.read_only = {prefix};
  spec.argv = argv;
  spec.argv.insert(spec.argv.end(), checked_flags().begin(), checked_flags().end());
  spec.argv.insert(spec.argv.end(), {"-c", "-x", "c++", "-", "-o", "checked.o"});
  CompilerRun run = run_compiler_child(spec);
  if (run.outcome != CompilerRun::kDone) return run;
  write_file_atomic(spec.folder / "link.ld", kLinkerScript);
  spec.argv = argv;
  spec.argv.insert(spec.argv.end(), {kDumpFlag, "-x", "c++", "-", "-x", "none", "checked.o", "-Wl,-T,link.ld",
                                     "-o", "kernel.so", "-lgcc"});
  run = run_compiler_child(spec);
  run.binary = spec.folder / "kernel.so";
  run.optimised = spec.folder / "optimised";
  return run;
}

}  // namespace warpsmith::toolchain
