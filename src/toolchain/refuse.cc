#include <array>
#include <cctype>
#include <map>

#include "scan.h"

namespace warpsmith::toolchain {

namespace {

// Headers that a candidate may name; what they declare is there anyway.
constexpr std::array<std::string_view, 24> kHeaders = {"cuda_runtime.h",
                                                       "cuda.h",
                                                       "cuda_fp16.h",
                                                       "cuda_bf16.h",
                                                       "cooperative_groups.h",
                                                       "cooperative_groups/reduce.h",
                                                       "math.h",
                                                       "stdint.h",
                                                       "float.h",
                                                       "limits.h",
                                                       "stddef.h",
                                                       "assert.h",
                                                       "math_constants.h",
                                                       "device_launch_parameters.h",
                                                       "cuda_runtime_api.h",
                                                       "vector_types.h",
                                                       "cfloat",
                                                       "climits",
                                                       "cstdint",
                                                       "cmath",
                                                       "cstddef",
                                                       "cassert",
                                                       "device_functions.h",
                                                       "vector_functions.h"};

struct Refusal {
  std::string_view construct;
  bool unsupported;
};

const std::map<std::string_view, Refusal>& refused_names() {
  static const std::map<std::string_view, Refusal> names = {
      {"asm", {"inline PTX (asm)", true}},
      {"__asm", {"inline PTX (asm)", true}},
      {"__asm__", {"inline PTX (asm)", true}},
      {"wmma", {"wmma", true}},
      {"nvcuda", {"wmma", true}},
      {"__pipeline_memcpy_async", {"cp.async", true}},
      {"__pipeline_commit", {"cp.async", true}},
      {"__pipeline_wait_prior", {"cp.async", true}},
      {"memcpy_async", {"cp.async", true}},
      {"coalesced_threads", {"coalesced_threads", true}},
      {"labeled_partition", {"labeled_partition", true}},
      {"binary_partition", {"binary_partition", true}},
      {"this_cluster", {"clusters", true}},
      {"this_multi_grid", {"multi-device launches", true}},
      {"cluster_group", {"clusters", true}},
      {"__cluster_dims__", {"clusters", true}},
      {"clusterIdx", {"clusters", true}},
      {"texture", {"textures", true}},
      {"cudaTextureObject_t", {"textures", true}},
      {"cudaSurfaceObject_t", {"surfaces", true}},
      {"CUtensorMap", {"tensor maps", true}},
      {"clock", {"clock()", true}},
      {"clock64", {"clock64()", true}},
      {"globaltimer", {"%globaltimer", true}},
      {"malloc", {"malloc in device code", true}},
      {"free", {"free in device code", true}},
      {"new", {"new in device code", true}},
      {"delete", {"delete in device code", true}},
      {"alloca", {"alloca", true}},
      {"co_await", {"coroutines", false}},
      {"co_yield", {"coroutines", false}},
      {"co_return", {"coroutines", false}},
      {"thread_local", {"thread_local", false}},
      {"__thread", {"__thread", false}},
      {"register", {"register", false}},
      {"try", {"exceptions", false}},
      {"catch", {"exceptions", false}},
      {"throw", {"exceptions", false}},
      {"typeid", {"typeid", false}},
      {"dynamic_cast", {"dynamic_cast", false}},
      {"_Pragma", {"_Pragma", false}},
      {"__has_include", {"__has_include", false}},
      {"__has_include_next", {"__has_include_next", false}},
      {"__has_embed", {"__has_embed", false}},
      {"__FILE__", {"__FILE__", false}},
      {"__BASE_FILE__", {"__BASE_FILE__", false}},
      {"__DATE__", {"__DATE__", false}},
      {"__TIME__", {"__TIME__", false}},
      {"__TIMESTAMP__", {"__TIMESTAMP__", false}},
      {"constructor", {"constructors", false}},
      {"__constructor__", {"constructors", false}},
      {"destructor", {"destructors", false}},
      {"__destructor__", {"destructors", false}},
      {"ifunc", {"ifunc", false}},
      {"__ifunc__", {"ifunc", false}},
      {"import", {"modules", false}},
  };
  return names;
}

// Compiler built-ins that NVRTC has too.
constexpr std::array<std::string_view, 6> kBuiltins = {"__builtin_assume",  "__builtin_assume_aligned",
                                                       "__builtin_expect",  "__builtin_unreachable",
                                                       "__builtin_align__", "__builtin_nanf"};

bool starts_with_any(std::string_view name, std::initializer_list<std::string_view> starts) {
  for (const std::string_view s : starts)
    if (name.substr(0, s.size()) == s) return true;
  return false;
}

[[noreturn]] void refuse(const CleanSource& source, const Token& token, std::string message,
                         bool unsupported) {
  throw SourceProblem{token.line, column_at(source.text, token.offset), std::move(message), unsupported};
}

void refuse_name(const CleanSource& source, const Token& at, std::string_view name, std::string_view next) {
  const auto found = refused_names().find(name);
  if (found != refused_names().end()) {
    const Refusal& r = found->second;
    refuse(source, at,
           r.unsupported ? "the CPU twin has no " + std::string(r.construct)
                         : std::string(r.construct) + " is no part of device code here",
           r.unsupported);
  }
  if (name == "cuda" && next == "::") refuse(source, at, "the CPU twin has no cuda:: library", true);
  if (name == "std" && next == "::") refuse(source, at, "there is no std:: in device code here", false);
  if (starts_with_any(name, {"tex1D", "tex2D", "tex3D", "surf1D", "surf2D", "surf3D"}))
    refuse(source, at, "the CPU twin has no textures", true);
  if (starts_with_any(name,
                      {"cudaLaunch", "cudaMalloc", "cudaMemcpy", "cudaMemset", "cudaStream", "cudaGraph"}))
    refuse(source, at, "the CPU twin has no " + std::string(name) + " (device runtime)", true);
  if (starts_with_any(name, {"__nv_cvta", "__cvta_", "__nvvm_"}))
    refuse(source, at, "the CPU twin has no " + std::string(name), true);
  if (starts_with_any(name, {"wstw_", "WSTW_"}))
    refuse(source, at, "names that begin with wstw_ belong to the twin", false);
  if (starts_with_any(name, {"__builtin_", "__sync_", "__atomic_"})) {
    for (const std::string_view b : kBuiltins)
      if (b == name) return;
    refuse(source, at, "`" + std::string(name) + "` is no part of device code here", false);
  }
}

std::string_view trim_view(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

void refuse_directive(const CleanSource& source, const Token& at) {
  if (at.text[0] == '%') refuse(source, at, "digraphs are not read", false);
  const std::string_view rest = trim_view(at.text.substr(1));
  std::size_t n = 0;
  while (n < rest.size() && (std::isalpha(static_cast<unsigned char>(rest[n])) || rest[n] == '_')) ++n;
  const std::string_view word = rest.substr(0, n);
  const std::string_view body = trim_view(rest.substr(n));
  if (word == "include") {
    const char close = body.empty() ? ' ' : body[0] == '<' ? '>' : body[0] == '"' ? '"' : ' ';
    const std::size_t end = close == ' ' ? std::string_view::npos : body.find(close, 1);
    if (end == std::string_view::npos || !trim_view(body.substr(end + 1)).empty())
      refuse(source, at, "#include wants <name> or \"name\"", false);
    const std::string_view name = body.substr(1, end - 1);
    for (const std::string_view known : kHeaders)
      if (name == known) return;
    if (name == "mma.h") refuse(source, at, "the CPU twin has no wmma", true);
    if (starts_with_any(name, {"cuda/", "cub/", "cutlass/", "cute/", "thrust/", "cuda_pipeline"}))
      refuse(source, at, "the CPU twin has no <" + std::string(name) + ">", true);
    refuse(source, at, "only CUDA's own headers can be included", false);
  }
  constexpr std::array<std::string_view, 12> kKnown = {
      "define", "undef", "if", "ifdef", "ifndef", "else", "elif", "endif", "error", "pragma", "warning", ""};
  bool known = false;
  for (const std::string_view k : kKnown) known |= word == k;
  if (!known) refuse(source, at, "#" + std::string(word) + " is no part of device code here", false);
  if (word == "pragma" || word == "error" || word == "warning") return;
  const std::vector<Token> tokens = tokens_of(body, at.line);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "##") refuse(source, at, "the CPU twin does not paste tokens (##)", true);
    if (tokens[i].kind == TokenKind::kIdentifier)
      refuse_name(source, at, tokens[i].text, i + 1 < tokens.size() ? tokens[i + 1].text : "");
  }
}

}  // namespace

void refuse_constructs(const CleanSource& source) {
  const std::vector<Token>& tokens = source.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& t = tokens[i];
    const std::string_view next = i + 1 < tokens.size() ? tokens[i + 1].text : std::string_view();
    switch (t.kind) {
      case TokenKind::kDirective:
        refuse_directive(source, t);
        break;
      case TokenKind::kIdentifier: {
        refuse_name(source, t, t.text, next);
        const bool quoted_next = i + 1 < tokens.size() && tokens[i + 1].kind == TokenKind::kString &&
                                 tokens[i + 1].offset == t.offset + t.text.size();
        if (quoted_next && t.text.back() == 'R') refuse(source, t, "raw strings are not read", false);
        if (t.text == "__attribute__" || t.text == "__attribute") {
          const std::string_view what = i + 3 < tokens.size() ? tokens[i + 3].text : std::string_view();
          if (what != "aligned" && what != "__aligned__" && what != "packed")
            refuse(source, t, "of attributes, only aligned and packed are read", false);
        }
        break;
      }
      case TokenKind::kPunctuation:
        if (t.text == "<<<")
          refuse(source, t, "the CPU twin has no launches from the device (<<<…>>>)", true);
        if (t.text == "##" || t.text == "#" || t.text == "\\" || t.text == "@" || t.text == "`")
          refuse(source, t, "stray `" + std::string(t.text) + "`", false);
        if ((t.text == "<" && (next == "%" || next == ":") && tokens[i + 1].offset == t.offset + 1) ||
            (t.text == "%" && (next == ":" || next == ">") && tokens[i + 1].offset == t.offset + 1))
          refuse(source, t, "digraphs are not read", false);
        if (t.text == "[" && next == "[" && i + 2 < tokens.size() &&
            (tokens[i + 2].text == "gnu" || tokens[i + 2].text == "__gnu__" || tokens[i + 2].text == "using"))
          refuse(source, t, "compiler-specific attributes are not read", false);
        break;
      default:
        break;
    }
  }
}

}  // namespace warpsmith::toolchain
