#include <array>
#include <map>

#include "directives.h"
#include "scan.h"

namespace warpsmith::toolchain {

namespace {

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

void refuse_directive(const CleanSource& source, const Token& at) {
  const Directive directive = read_directive(source, at);
  if (directive.word == "include") {
    const std::string_view name = included_header(source, at, directive);
    if (is_plain_header(name)) return;
    if (name == "mma.h") refuse(source, at, "the CPU twin has no wmma", true);
    if (starts_with_any(name, {"cuda/", "cub/", "cutlass/", "cute/", "thrust/", "cuda_pipeline"}))
      refuse(source, at, "the CPU twin has no <" + std::string(name) + ">", true);
    refuse(source, at, kOnlyCudaHeaders, false);
  }
  if (directive.is_text()) return;
  const std::vector<Token> tokens = tokens_of(directive.body, at.line);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "##") refuse(source, at, "the CPU twin does not paste tokens (##)", true);
    if (tokens[i].kind == TokenKind::kIdentifier)
      refuse_name(source, at, tokens[i].text, i + 1 < tokens.size() ? tokens[i + 1].text : "");
  }
}

}  // namespace

void refuse_constructs(const CleanSource& source) {
  refuse_hidden_text(source);
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
