#include "split.h"

#include "kernel_text.h"
#include "split_locals.h"
#include "split_regions.h"
#include "split_statements.h"
#include "split_uniform.h"

namespace warpsmith::toolchain {

namespace {

// Of variables that cross a region's end, all threads of a block together: they lie on a stack of 8 MiB.
constexpr std::size_t kMostBytes = 4 << 20;

// The regions as text: loops over threads, arrays for the variables that cross a region's end, masks for
// branches that not all threads take, and the exchange of shuffled values.
class Emitter {
 public:
  Emitter(const KernelText& kernel, const RegionPlan& plan, std::vector<SplitEdit>& edits)
      : k_(kernel), plan_(plan), edits_(edits) {}

  void emit() {
    std::string start = " WSTW_BLOCK_BEGIN ";
    if (plan_.returns) start += "bool wstw_gone[1024] = {}; bool wstw_dead = false; ";
    for (int m = 1; m <= plan_.masks; ++m) start += "bool wstw_m" + std::to_string(m) + "[1024]; ";
    for (const Variable& v : plan_.variables)
      if (v.is_private) start += v.type + " " + array_of(v) + "[1024]" + v.dims + "; " + checks_of(v);
    int puts = 0;
    for (const Region& r : plan_.regions) {
      if (r.puts == nullptr) continue;
      for (std::size_t k = 0; k < r.puts->shuffles.size(); ++k, ++puts) {
        const std::string n = std::to_string(puts);
        start += "alignas(64) char wstw_s" + n + "[8192]; unsigned wstw_i" + n + "[1024]; ";
        const Shuffle& shuffle = r.puts->shuffles[k];
        edits_.push_back({shuffle.name_at, shuffle.close, true, false,
                          "wstw_take<wstw_plain<decltype(" + shuffle.value + ")> >(wstw_s" + n + ", wstw_i" +
                              n + "[wstw_t], wstw_t, WSTW_IN_BLOCK(wstw_i" + n + "[wstw_t])" +
                              and_active(r.mask, "wstw_i" + n + "[wstw_t] + (wstw_t & ~31u)") + ")"});
      }
    }
    start += size_check();
    edits_.push_back({k_.function.body_open, k_.function.body_open, false, true, start});
    puts = 0;
    for (const Region& r : plan_.regions) emit_region(r, &puts);
    for (const Statement* s : plan_.unbraced) {
      if (s->kind == Statement::Kind::kIf && !s->uniform) continue;
      edits_.push_back({s->head_close, s->head_close, false, true, " {"});
      edits_.push_back({s->last, s->last, false, true, " }"});
    }
    for (const Variable& v : plan_.variables)
      if (v.is_private) emit_assignment(v);
  }

 private:
  static std::string array_of(const Variable& v) { return "wstw_p" + std::to_string(v.id) + "_" + v.name; }

  // Where g++ finds one of these wrong, the source is compiled without loops (host.cc).
  std::string size_check() const {
    std::string sum = "0";
    for (const Variable& v : plan_.variables)
      if (v.is_private) sum += " + sizeof(" + array_of(v) + ")";
    if (sum == "0") return "";
    return "static_assert(" + sum + " <= " + std::to_string(kMostBytes) + ", \"\"); ";
  }

  // An array is made once, and what it begins with each time that its declaration is reached.
  std::string checks_of(const Variable& v) const {
    if (v.dims.empty() || is_number(v)) return "";
    return "static_assert(__has_trivial_constructor(" + v.type + "), \"\"); ";
  }

  static bool is_number(const Variable& v) {
    if (v.type.find('*') != std::string::npos) return true;
    const std::vector<Token> words = tokens_of(v.type, 1);
    for (const Token& word : words)
      if (!KernelText::is_number_word(word.text)) return false;
    return true;
  }

  std::string and_active(int mask, const std::string& index) const {
    std::string out;
    if (plan_.returns) out += " && !(wstw_dead && wstw_gone[" + index + "])";
    if (mask != 0) out += " && wstw_m" + std::to_string(mask) + "[" + index + "]";
    return out;
  }

  // The loop over threads, what is skipped, names of the arrays' elements.
  std::string opening(const Region& r) const {
    std::string out = "WSTW_THREADS { WSTW_THREAD ";
    if (plan_.returns) out += "if (wstw_dead && wstw_gone[wstw_t]) continue; ";
    if (r.mask != 0) out += "if (!wstw_m" + std::to_string(r.mask) + "[wstw_t]) continue; ";
    for (const Variable& v : plan_.variables) {
      if (!v.is_private) continue;
      const bool used = (!r.empty && v.is_mentioned(k_, r.first, r.last)) ||
                        (r.puts != nullptr && v.is_mentioned(k_, r.puts->first, r.puts->last));
      if (used) out += "auto& " + v.name + " = " + array_of(v) + "[wstw_t]; ";
    }
    return out;
  }

  void emit_region(const Region& r, int* puts) {
    std::string end;
    if (r.puts != nullptr)
      for (const Shuffle& s : r.puts->shuffles) {
        const std::string n = std::to_string((*puts)++);
        end += " wstw_put(wstw_s" + n + ", wstw_t, " + s.value + "); wstw_i" + n + "[wstw_t] = " + s.source +
               ";";
      }
    if (r.condition != nullptr) {
      const std::string m = "wstw_m" + std::to_string(r.made);
      edits_.push_back({r.condition->first, r.condition->first, true, false,
                        "__builtin_memset(" + m + ", 0, 1024); " + opening(r) + m + "[wstw_t] = (bool)"});
      const std::string gone = plan_.returns ? "wstw_dead ? wstw_gone : nullptr" : "nullptr";
      edits_.push_back({r.condition->head_close, r.condition->head_close, false, true,
                        "; } wstw_check_warps(wstw_o, " + m + ", " + gone + ");"});
      return;
    }
    if (r.empty) {
      edits_.push_back({r.first, r.first, false, false, opening(r) + end + " } "});
      return;
    }
    edits_.push_back({r.first, r.first, false, false, opening(r)});
    edits_.push_back({r.last, r.last, false, true, end + " }"});
  }

  // `float a = 0.f, b[4];` of arrays: what is left are assignments.
  void emit_assignment(const Variable& v) {
    const Statement& s = *v.statement;
    const Declarator& d = *v.declarator;
    const bool first = &d == &s.declarators.front();
    if (first) edits_.push_back({s.first, s.type_last, true, false, ""});
    if (d.dims.empty() && d.equals != 0) {
      if (d.first != d.name_at) edits_.push_back({d.first, d.name_at - 1, true, false, ""});
      return;
    }
    if (d.equals == 0) {
      std::string made = "(void)0";
      if (d.dims.empty() && !is_number(v))
        made =
            "(void)(__has_trivial_constructor(" + v.type + ") || (" + d.name + " = " + v.type + "(), true))";
      edits_.push_back({d.first, d.last, true, false, made});
      return;
    }
    const std::string value = k_.words(d.equals + 1, d.last);
    if (value != "{ }" && value != "{ 0 }" && value != "{ 0.f }" && value != "{ 0.0f }") throw NotSplit{};
    edits_.push_back(
        {d.first, d.last, true, false, "(void)__builtin_memset(&" + d.name + ", 0, sizeof(" + d.name + "))"});
  }

  const KernelText& k_;
  const RegionPlan& plan_;
  std::vector<SplitEdit>& edits_;
};

}  // namespace

std::optional<std::vector<SplitEdit>> split_kernel(const CleanSource& source, const Scan& scan,
                                                   const Function& kernel) {
  if (!kernel.defined() || !scan.waits.contains(kernel.name)) return std::nullopt;
  int definitions = 0;
  for (const Function& f : scan.functions) definitions += f.name == kernel.name && f.defined();
  if (definitions != 1) return std::nullopt;
  try {
    const KernelText text{source.tokens, scan, kernel};
    text.refuse();
    std::vector<SplitEdit> edits;
    std::vector<Statement> statements = read_statements(text, edits);
    const std::vector<Local> locals = find_locals(text);
    const UniformNames uniform(text, locals, statements);
    const RegionPlan plan = plan_regions(text, locals, uniform, statements, edits);
    Emitter(text, plan, edits).emit();
    return edits;
  } catch (const NotSplit&) {
    return std::nullopt;
  }
}

}  // namespace warpsmith::toolchain
