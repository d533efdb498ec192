#include "split_regions.h"

#include <algorithm>

namespace warpsmith::toolchain {

namespace {

using Kind = Statement::Kind;

class Planner {
 public:
  Planner(const KernelText& kernel, const UniformNames& uniform, std::vector<SplitEdit>& edits)
      : k_(kernel), uniform_(uniform), edits_(edits) {}

  RegionPlan run(const std::vector<Statement>& statements) {
    visit(statements, 0, k_.function.body_close);
    settle_variables();
    return std::move(plan_);
  }

 private:
  // Statements where the threads of `mask` are at work, in a scope that ends at `scope_last`.
  void visit(const std::vector<Statement>& statements, int mask, std::size_t scope_last) {
    for (const Statement& s : statements) {
      switch (s.kind) {
        case Kind::kPlain:
          check_plain(s);
          add_to_region(s, mask);
          break;
        case Kind::kDeclaration:
          plan_declaration(s, mask, scope_last);
          break;
        case Kind::kShared:
          close_region();
          break;
        case Kind::kBarrier:
          if (mask != 0 && k_.text(s.first) == "__syncthreads") throw NotSplit{};
          close_region();
          edits_.push_back({s.first, s.last, true, false, ";"});
          break;
        case Kind::kShuffles: {
          put_at_end(s, mask);
          if (!s.declarators.empty())
            plan_declaration(s, mask, scope_last);
          else
            add_to_region(s, mask);
          break;
        }
        case Kind::kBlock:
          close_region();
          visit(s.body, mask, s.last);
          close_region();
          break;
        case Kind::kFor:
        case Kind::kIf: {
          close_region();
          int inner = mask;
          if (!s.uniform) {
            inner = ++plan_.masks;
            Region r;
            r.mask = mask;
            r.condition = &s;
            r.made = inner;
            r.first = s.head_open;
            r.last = s.head_close;
            plan_.regions.push_back(r);
          }
          visit(s.body, inner, s.last);
          close_region();
          if (!s.braced) plan_.unbraced.push_back(&s);
          break;
        }
      }
    }
  }

  // A statement of a region may leave the thread, but not a loop around regions.
  void check_plain(const Statement& s) {
    int loops = 0;
    check_jumps(s.first, s.last, loops);
  }

  void check_jumps(std::size_t first, std::size_t last, int loops) {
    for (std::size_t i = first; i <= last; ++i) {
      const std::string_view t = k_.text(i);
      if (t == "for" || t == "while" || t == "do" || t == "switch") {
        const std::size_t end = k_.end_of_statement(i);
        check_jumps(i + 1, end, loops + 1);
        i = end;
      } else if ((t == "break" || t == "continue") && loops == 0) {
        throw NotSplit{};
      } else if (t == "return") {
        if (loops > 0 || k_.text(i + 1) != ";") throw NotSplit{};
        plan_.returns = true;
        edits_.push_back({i, i + 1, true, false, "{ wstw_gone[wstw_t] = wstw_dead = true; continue; }"});
      }
    }
  }

  void add_to_region(const Statement& s, int mask) {
    if (!open_) {
      Region r;
      r.first = s.first;
      r.mask = mask;
      plan_.regions.push_back(r);
      open_ = true;
    }
    plan_.regions.back().last = s.last;
  }

  void close_region() { open_ = false; }

  // The values of shuffles are laid down at the end of the region before, or in one of their own.
  void put_at_end(const Statement& s, int mask) {
    if (!open_) {
      Region r;
      r.first = r.last = s.first;
      r.mask = mask;
      r.empty = true;
      plan_.regions.push_back(r);
    }
    plan_.regions.back().puts = &s;
    open_ = false;
  }

  void plan_declaration(const Statement& s, int mask, std::size_t scope_last) {
    bool all_uniform = s.kind == Kind::kDeclaration, needed = false;
    for (const Declarator& d : s.declarators) {
      all_uniform = all_uniform && uniform_.contains(d.name);
      needed = needed || (uniform_.contains(d.name) && in_heads(d.name));
    }
    if (needed && !all_uniform) throw NotSplit{};
    if (all_uniform && mask == 0 && (needed || !open_)) {
      close_region();
      return;  // stands as it is, once for the block
    }
    if (needed) throw NotSplit{};
    add_to_region(s, mask);
    static const std::set<std::string, std::less<>> dropped = {"const", "constexpr"};
    for (const Declarator& d : s.declarators) {
      Variable v;
      v.name = d.name;
      v.dims = d.dims;
      std::string type;
      const std::vector<Token> type_words = tokens_of(s.type, 1);
      for (const Token& w : type_words)
        if (!dropped.contains(w.text) || !d.stars.empty()) type += std::string(w.text) + " ";
      std::string stars = d.stars;
      // `T* const p`: the pointer itself changes when it gets its value.
      for (const char* word : {"const ", "__restrict__ "})
        for (std::size_t at = stars.find(word); at != std::string::npos; at = stars.find(word))
          stars.erase(at, std::string(word).size());
      v.type = type + stars;
      v.scope_first = d.name_at;
      v.scope_last = scope_last;
      v.region = static_cast<int>(plan_.regions.size()) - 1;
      v.id = static_cast<int>(plan_.variables.size());
      v.statement = &s;
      v.declarator = &d;
      plan_.variables.push_back(v);
    }
  }

  // Whether a condition or a loop around regions mentions the name.
  bool in_heads(const std::string& name) const {
    for (std::size_t i = k_.function.body_open; i < k_.function.body_close; ++i) {
      if ((k_.text(i) != "for" && k_.text(i) != "if") || k_.text(i + 1) != "(") continue;
      if (!k_.any_waits(i, k_.end_of_statement(i))) continue;
      const std::size_t close = matching(k_.tokens, i + 1);
      for (std::size_t k = i + 2; k < close; ++k)
        if (k_.text(k) == name) return true;
    }
    return false;
  }

  // A variable that only its own region mentions stays a variable.
  void settle_variables() {
    for (Variable& v : plan_.variables) {
      const Region& own = plan_.regions[static_cast<std::size_t>(v.region)];
      for (std::size_t i = v.scope_first; i <= v.scope_last && !v.is_private; ++i)
        if (v.is_mentioned(k_, i, i) && (i < own.first || i > own.last)) v.is_private = true;
      if (own.puts != nullptr && v.is_mentioned(k_, own.puts->first, own.puts->last)) v.is_private = true;
    }
    for (Variable& v : plan_.variables) {
      // One declaration, one fate.
      for (const Variable& other : plan_.variables)
        if (v.statement == other.statement && other.is_private) v.is_private = true;
      if (v.is_private && v.type.find("auto") != std::string::npos) throw NotSplit{};
    }
  }

  const KernelText& k_;
  const UniformNames& uniform_;
  std::vector<SplitEdit>& edits_;
  RegionPlan plan_;
  bool open_ = false;  // the last region goes on
};

}  // namespace

bool Variable::is_mentioned(const KernelText& kernel, std::size_t from, std::size_t to) const {
  for (std::size_t i = std::max(from, scope_first); i <= std::min(to, scope_last); ++i)
    if (kernel.is_name(i) && kernel.text(i) == name && kernel.text(i - 1) != "." &&
        kernel.text(i - 1) != "->")
      return true;
  return false;
}

RegionPlan plan_regions(const KernelText& kernel, const UniformNames& uniform,
                        const std::vector<Statement>& statements, std::vector<SplitEdit>& edits) {
  return Planner(kernel, uniform, edits).run(statements);
}

}  // namespace warpsmith::toolchain
