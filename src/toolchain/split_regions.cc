#include "split_regions.h"

#include <algorithm>

#include "split_use.h"

namespace warpsmith::toolchain {

namespace {

using Kind = Statement::Kind;

class Planner {
 public:
  Planner(const KernelText& kernel, const std::vector<Local>& locals, const UniformNames& uniform,
          std::vector<SplitEdit>& edits)
      : k_(kernel), locals_(locals), uniform_(uniform), edits_(edits) {}

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
          plan_others(s);
          break;
        case Kind::kDeclaration:
          plan_declaration(s, mask, scope_last);
          break;
        case Kind::kShared:
          close_region();
          stays(s.first, s.last);
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
          stays(s.head_open, s.head_close);
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
    bool all_uniform = s.kind == Kind::kDeclaration, needed = false, stands = true;
    for (const Declarator& d : s.declarators) {
      all_uniform = all_uniform && uniform_.contains(d.name, d.name_at);
      needed = needed || uniform_.is_needed(d.name, d.name_at);
      for (std::size_t i = d.name_at; i <= d.last; ++i)
        for (const Variable& v : plan_.variables) stands = stands && !v.is_mentioned(k_, i, i);
    }
    if (needed && !(all_uniform && stands)) throw NotSplit{};
    if (all_uniform && stands && mask == 0 && (needed || !open_)) {
      close_region();
      stays(s.first, s.last);
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
      v.statement = &s;
      v.declarator = &d;
      add_variable(v);
    }
  }

  // Declarations that were not taken for such: `float& r = …`, `auto [a, b] = …`.
  void plan_others(const Statement& s) {
    for (const Local& l : locals_) {
      if (l.at < s.first || l.at > s.last || l.last <= s.last) continue;
      Variable v;
      v.name = l.name;
      v.scope_first = l.at;
      v.scope_last = l.last;
      v.is_reference = l.is_reference;
      add_variable(v);
    }
  }

  void add_variable(Variable& v) {
    v.region = static_cast<int>(plan_.regions.size()) - 1;
    v.id = static_cast<int>(plan_.variables.size());
    plan_.variables.push_back(v);
  }

  // Names that the block has once.
  void stays(std::size_t first, std::size_t last) {
    for (const Local& l : locals_)
      if (l.at >= first && l.at <= last) of_block_.push_back(&l);
  }

  // A variable that only its own region mentions stays a variable, where nothing else holds its address.
  void settle_variables() {
    for (Variable& v : plan_.variables) {
      const Region& own = plan_.regions[static_cast<std::size_t>(v.region)];
      for (std::size_t i = v.scope_first; i <= v.scope_last && !v.is_private; ++i)
        if (v.is_mentioned(k_, i, i) && (i < own.first || i > own.last || is_held(v, i))) v.is_private = true;
      if (own.puts != nullptr && v.is_mentioned(k_, own.puts->first, own.puts->last)) v.is_private = true;
    }
    for (Variable& v : plan_.variables) {
      // One declaration, one fate.
      for (const Variable& other : plan_.variables)
        if (v.statement != nullptr && v.statement == other.statement && other.is_private) v.is_private = true;
      if (v.is_private) check_private(v);
    }
  }

  // Whether something may still point to it when the region is over.
  bool is_held(const Variable& v, std::size_t i) const {
    if (v.is_reference || i == v.scope_first) return false;
    std::size_t dimensions = 0;
    for (std::size_t open = v.scope_first + 1; k_.text(open) == "["; open = matching(k_.tokens, open) + 1)
      ++dimensions;
    const Use use = use_at(k_, i, dimensions);
    return use == Use::kLent || use == Use::kBound;
  }

  void check_private(const Variable& v) const {
    if (v.declarator == nullptr || v.type.find("auto") != std::string::npos) throw NotSplit{};
    // Its name is declared where its region begins: it may not mean anything else there, …
    const Region& own = plan_.regions[static_cast<std::size_t>(v.region)];
    for (std::size_t i = own.first; i < v.scope_first; ++i)
      if (k_.text(i) == v.name && k_.text(i - 1) != "." && k_.text(i - 1) != "->" &&
          std::none_of(locals_.begin(), locals_.end(), [&](const Local& l) {
            return l.name == v.name && l.at >= own.first && l.at <= i && i <= l.last && l.at != v.scope_first;
          }))
        throw NotSplit{};
    // … nor hide a name that the block has once.
    for (const Local* l : of_block_)
      if (l->name == v.name && l->at > v.scope_first && l->at <= v.scope_last) throw NotSplit{};
  }

  const KernelText& k_;
  const std::vector<Local>& locals_;
  const UniformNames& uniform_;
  std::vector<SplitEdit>& edits_;
  RegionPlan plan_;
  std::vector<const Local*> of_block_;
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

RegionPlan plan_regions(const KernelText& kernel, const std::vector<Local>& locals,
                        const UniformNames& uniform, const std::vector<Statement>& statements,
                        std::vector<SplitEdit>& edits) {
  return Planner(kernel, locals, uniform, edits).run(statements);
}

}  // namespace warpsmith::toolchain
