#include "warpsmith/synthesis/synthesize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "warpsmith/base/error.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/method/source_text.h"
#include "warpsmith/synthesis/task_text.h"

namespace warpsmith::synthesis {

namespace {

constexpr std::uint64_t kSeeds[] = {11, 12, 13};

bool is_start(const Operator& one) { return one.place == Place::kStart; }

bool equal(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::fabs(a[i] - b[i]) > 1e-9 * (1 + std::fabs(a[i]))) return false;
  return true;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::size_t> numbers_of(bool (*wanted)(const Operator&)) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < operators().size(); ++i)
    if (wanted(op(i))) out.push_back(i);
  return out;
}

std::vector<std::size_t> starts_of(std::string_view family) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < operators().size(); ++i)
    if (is_start(op(i)) && family_of(op(i)) == family) out.push_back(i);
  return out;
}
// Whether chains of the family have the step or end.
bool family_takes(std::string_view family, const Operator& one) {
  const std::vector<std::size_t> starts = starts_of(family);
  return std::any_of(starts.begin(), starts.end(), [&](std::size_t start) { return takes(op(start), one); });
}

class Drawer {
 public:
  explicit Drawer(std::uint64_t key) : random_(key) {}

  // `branches`: one of the steps is an operator where two branches meet, if the chain has room for it.
  Chain draw(int longest, std::string_view family, bool branches) {
    Chain chain = draw(longest, family);
    if (branches && !chain.steps.empty())
      chain.steps[static_cast<std::size_t>(random_.below(chain.steps.size()))] = pick(meetings_);
    return chain;
  }

  Random& random() { return random_; }

 private:
  Chain draw(int longest, std::string_view family) {
    Chain chain;
    chain.end = operators().size();
    if (family != "chains") {
      chain.start = pick(starts_of(family));
      add_to_windows(chain, longest);
      return chain;
    }
    const double start = random_.uniform();
    if (start > 0.78) chain.start = number_of(start > 0.92 ? "gather_rows" : "matmul");
    const bool has_end = random_.uniform() < 0.5;
    if (op(chain.start).name == std::string("matmul")) {
      const double changed = random_.uniform();
      const int room = std::max(0, longest - 2);
      for (int i = 0; i < std::min(room, changed < 0.5 ? 0 : changed < 0.85 ? 1 : 2); ++i)
        if (const std::size_t next = pick(elements_); chain.before.empty() || next != chain.before.back())
          chain.before.push_back(next);
    }
    const int most = longest - (chain.start != 0) - has_end - static_cast<int>(chain.before.size());
    const int steps = static_cast<int>(random_.below(static_cast<std::uint64_t>(std::max(1, most)))) +
                      (most > 1 || !has_end ? 1 : 0);
    int rows = 0, squares = 0;
    const bool is_alone = !chain.before.empty() && !has_end && random_.uniform() < 0.4;
    for (int i = 0; i < (is_alone ? 0 : std::min(steps, most)); ++i) {
      const double kind = random_.uniform();
      std::size_t next = pick(kind < 0.45 ? elements_ : kind < 0.85 ? operands_ : rows_);
      if (!chain.steps.empty() && next == chain.steps.back()) continue;
      if (op(next).place == Place::kRow && ++rows > 2) continue;
      if (op(next).name == std::string("square") && ++squares > 1) continue;
      chain.steps.push_back(next);
    }
    if (has_end) chain.end = pick(ends_);
    return chain;
  }

  void add_to_windows(Chain& chain, int longest) {
    const bool has_end = random_.uniform() < 0.2;
    if (longest > 2 && random_.uniform() < 0.2) chain.before.push_back(pick(elements_));
    const int most = longest - 1 - has_end - static_cast<int>(chain.before.size());
    if (is_convolution(op(chain.start)) && most > 0 && random_.uniform() < 0.6)
      chain.steps.push_back(number_of("bias"));
    const int steps = most < 1 ? 0 : 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(most)));
    const std::size_t square = number_of("square");
    for (int i = static_cast<int>(chain.steps.size()); i < steps; ++i) {
      const std::size_t next = pick(random_.uniform() < 0.6 ? elements_ : operands_);
      const auto has = [&](std::size_t step) {
        return std::find(chain.steps.begin(), chain.steps.end(), step) != chain.steps.end();
      };
      if (!takes(op(chain.start), op(next)) || (!chain.steps.empty() && next == chain.steps.back())) continue;
      if (next == square && has(square)) continue;
      chain.steps.push_back(next);
    }
    if (has_end) chain.end = number_of(random_.uniform() < 0.5 ? "all_sum" : "all_mean");
  }

  std::size_t pick(const std::vector<std::size_t>& from) {
    return from[static_cast<std::size_t>(random_.below(from.size()))];
  }
  static std::size_t number_of(std::string_view name) {
    return static_cast<std::size_t>(&operator_named(name) - operators().data());
  }

  Random random_;
  const std::vector<std::size_t> elements_ =
      numbers_of([](const Operator& one) { return one.place == Place::kElement; });
  const std::vector<std::size_t> operands_ =
      numbers_of([](const Operator& one) { return one.place == Place::kOperand && !one.branches; });
  const std::vector<std::size_t> meetings_ = numbers_of([](const Operator& one) { return one.branches; });
  const std::vector<std::size_t> rows_ =
      numbers_of([](const Operator& one) { return one.place == Place::kRow; });
  const std::vector<std::size_t> ends_ = numbers_of(is_end);
};

struct Kind {
  std::string drawn_as = "", seed_of = "";  // empty: as the split is named
  bool solved = true;
};

class Synthesizer {
 public:
  explicit Synthesizer(const Settings& settings) : settings_(settings) {
    for (const char* family : {"chains", "pooling", "convolution"})
      if (const auto& all = settings_.families; std::find(all.begin(), all.end(), family) != all.end())
        families_.emplace_back(family);
    if (families_.empty()) throw Error("`families`: name one at least", kExitUsage);
    hold_out();
    leave_windows_out();
    if (!settings_.without.empty()) leave_functions_out();
  }

  Synthesis run() {
    const int longest = settings_.longest;
    fill("train", settings_.count, longest);
    if (settings_.pairs_share > 0) fill("heldout_combination", settings_.heldout, longest, {.solved = false});
    if (settings_.operators_out > 0) fill("heldout_operation", settings_.heldout, longest, {.solved = false});
    fill("heldout_length", settings_.heldout, longest + 3, {.solved = false});
    fill("sft_only", settings_.sft_only, longest, {.drawn_as = "train"});
    fill("train", settings_.unsolved, longest, {.seed_of = "unsolved", .solved = false});
    return std::move(out_);
  }

 private:
  void hold_out() {
    const auto share = [&](const std::string& what) {
      return Random(random_key({settings_.split_seed, name_key(what)})).uniform();
    };
    const auto is_taken = [&](const Operator& one) {
      return (!one.branches || settings_.branches > 0) &&
             std::any_of(families_.begin(), families_.end(),
                         [&](const std::string& family) { return family_takes(family, one); });
    };
    // Where branches meet no operator is held out: then every kind of task can have a branch.
    std::vector<std::pair<double, std::string>> all;
    for (const Operator& one : operators())
      if (is_taken(one) && !one.branches) all.emplace_back(share(one.name), one.name);
    std::sort(all.begin(), all.end());
    for (int i = 0; i < settings_.operators_out; ++i)
      out_.operators_out.insert(all.at(static_cast<std::size_t>(i)).second);
    for (const Operator& a : operators()) {
      if (is_start(a) ? a.name == std::string("x") || !has_family(a) : !is_taken(a)) continue;
      for (const Operator& b : operators()) {
        const std::string pair = std::string(a.name) + ">" + b.name;
        if (is_taken(b) && share(pair) < settings_.pairs_share) out_.pairs_out.insert(pair);
      }
    }
  }
  bool has_family(const Operator& start) const {
    return std::find(families_.begin(), families_.end(), family_of(start)) != families_.end();
  }

  // Windows alone, with a bias, too, are tasks of KernelBench's level 1.
  void leave_windows_out() {
    const auto bias = static_cast<std::size_t>(&operator_named("bias") - operators().data());
    for (std::size_t start = 0; start < operators().size(); ++start)
      if (op(start).windows != Windows::kNone && has_family(op(start)))
        for (const std::vector<std::size_t>& steps : {std::vector<std::size_t>{}, {bias}})
          functions_out_.insert(
              fingerprint({.start = start, .steps = steps, .end = operators().size()}, true));
  }

  // By the names of its operators.
  bool is_left_out(const Chain& chain) const {
    if (settings_.without.contains(sorted(chain.names()))) return true;
    const auto parts = torch_operators_of(chain);
    return std::any_of(parts.begin(), parts.end(), [&](const std::set<std::string>& set) {
      return settings_.without.contains({set.begin(), set.end()});
    });
  }

  // What the left-out chains of at most three operators compute: -softsign(-x) is softsign.
  void leave_functions_out() {
    constexpr std::size_t kMost = 3;
    std::vector<std::size_t> starts;
    for (const std::string& family : families_)
      for (const std::size_t start : starts_of(family)) starts.push_back(start);
    std::vector<std::size_t> steps = numbers_of([](const Operator& one) {
      return one.place == Place::kElement || one.place == Place::kOperand || one.place == Place::kRow;
    });
    if (settings_.branches <= 0) std::erase_if(steps, [](std::size_t step) { return op(step).branches; });
    std::vector<std::size_t> ends = numbers_of(is_end);
    ends.push_back(operators().size());
    std::vector<std::vector<std::size_t>> lists = {{}};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (lists[i].size() < kMost)
        for (const std::size_t step : steps) {
          lists.push_back(lists[i]);
          lists.back().push_back(step);
        }
      for (const std::size_t start : starts)
        for (const std::size_t end : ends) {
          const Chain chain{.start = start, .steps = lists[i], .end = end};
          const std::size_t size = lists[i].size() + (start == 0 ? 0 : 1) + (chain.has_end() ? 1 : 0);
          if (size > 0 && size <= kMost && is_whole(chain) && is_left_out(chain))
            functions_out_.insert(fingerprint(chain, true));
        }
    }
  }

  // Whether its start takes all that follows.
  static bool is_whole(const Chain& chain) {
    return (!chain.has_end() || takes(op(chain.start), op(chain.end))) &&
           std::all_of(chain.steps.begin(), chain.steps.end(),
                       [&](std::size_t step) { return takes(op(chain.start), op(step)); });
  }

  std::string split_of(const Chain& chain) const {
    const std::vector<std::string> names = chain.names(), pairs = chain.pairs();
    const auto is_out = [](const std::set<std::string>& out) {
      return [&out](const std::string& one) { return out.contains(one); };
    };
    const bool has_operator = std::any_of(names.begin(), names.end(), is_out(out_.operators_out));
    const bool has_pair = std::any_of(pairs.begin(), pairs.end(), is_out(out_.pairs_out));
    const bool is_long = static_cast<int>(names.size()) > settings_.longest;
    // Held out for two reasons: it would not say which one it was.
    if (has_operator + has_pair + is_long > 1) return "";
    if (has_operator) return "heldout_operation";
    return has_pair ? "heldout_combination" : is_long ? "heldout_length" : "train";
  }

  // Families with tasks of this kind: an operator that is held out must stand in them.
  std::vector<std::string> families_with(const std::string& kind) const {
    std::vector<std::string> out;
    for (const std::string& family : families_)
      if (kind != "heldout_operation" ||
          std::any_of(out_.operators_out.begin(), out_.operators_out.end(),
                      [&](const std::string& name) { return family_takes(family, operator_named(name)); }))
        out.push_back(family);
    return out;
  }

  void fill(const std::string& split, int count, int longest, const Kind& as = {}) {
    const std::string kind = as.drawn_as.empty() ? split : as.drawn_as;
    Drawer drawer(random_key({settings_.seed, name_key(as.seed_of.empty() ? split : as.seed_of)}));
    const std::vector<std::string> families = families_with(kind);
    for (int found = 0, tries = 0; found < count; ++tries) {
      if (tries > 2000 + 400 * count)
        throw Error(
            fmt::format("the grammar has no {} tasks of split {} with at most {} operators: {} were found",
                        count, split, longest, found),
            kExitUsage);
      // Spread evenly: as many of each `families.size()` tasks in a row.
      const auto round = static_cast<double>(static_cast<std::size_t>(found) / families.size());
      const bool branches =
          std::floor((round + 1) * settings_.branches) > std::floor(round * settings_.branches);
      Chain chain =
          drawer.draw(longest, families[static_cast<std::size_t>(found) % families.size()], branches);
      if (branches && !(has_branch(chain) && is_whole(chain))) continue;
      if (split_of(chain) != kind) continue;
      Synthesised one{.chain = std::move(chain), .id = "", .split = split, .solved = as.solved};
      if (has_windows(one.chain)) {
        if (!can_be_traced(one.chain)) continue;
        one.traced = draw_traced(one.chain, drawer.random()(), split != "sft_only");
      }
      if (add(std::move(one), drawer)) ++found;
    }
  }

  // Whether it is a task to be made; counts why not.
  bool add(Synthesised one, Drawer& drawer) {
    const Chain& chain = one.chain;
    Dropped& dropped = out_.dropped;
    if ((one.traced ? gain_of(chain, *one.traced) : gain_of(chain)) < settings_.least_gain)
      return drop(dropped.without_gain);
    if (const std::string flaw = flaw_of(chain); !flaw.empty())
      return drop(flaw.starts_with("degenerate") ? dropped.degenerate : dropped.redundant);
    if (is_left_out(chain) ||
        (!functions_out_.empty() && functions_out_.contains(fingerprint(chain, true))) || is_known(one))
      return drop(dropped.known);
    const std::string function = fingerprint(chain);
    // At other sizes it may come again, but not on both sides of the split.
    const bool is_out = one.split.starts_with("heldout");
    if (const auto known = is_out_.find(function); known != is_out_.end() && known->second != is_out)
      return drop(dropped.duplicate);
    if (!one.traced && settings_.traced_share > 0 && drawer.random().uniform() < settings_.traced_share &&
        can_be_traced(chain)) {
      one.traced = draw_traced(chain, drawer.random()(), one.split != "sft_only");
      if (is_known(one)) return drop(dropped.known);
    }
    if (!one.traced && settings_.half_precision > 0 && drawer.random().uniform() < settings_.half_precision)
      one.chain.precision = half_precision_of(chain).value_or(Precision::kFloat32);
    if (!one.traced && settings_.strided > 0 && drawer.random().uniform() < settings_.strided) {
      const Storage storage = drawer.random().uniform() < 0.5 ? Storage::kWider : Storage::kColumns;
      if (can_lie(chain, storage)) one.chain.storage = storage;
    }
    // At other sizes it is another task.
    const std::string print =
        one.traced ? sha256_hex(function + task_file(chain, *one.traced, {})) : function;
    if (!seen_.insert(print).second) return drop(dropped.duplicate);
    one.id = id_of(chain, print);
    if (settings_.program_bytes > 0 && !has_short_program(one)) return drop(dropped.long_programs);
    ids_.insert(one.id);
    is_out_.emplace(function, is_out);
    out_.tasks.push_back(std::move(one));
    return true;
  }

  static bool drop(int& count) {
    ++count;
    return false;
  }
  // By its reference.
  bool is_known(const Synthesised& one) const {
    return settings_.without_references.contains(normal_form_of_reference(
        one.traced ? reference_of(one.chain, *one.traced) : reference_of(one.chain)));
  }
  std::string id_of(const Chain& chain, const std::string& print) const {
    std::string id;
    for (const std::string& name : chain.names()) id += (id.empty() ? "" : "_") + name;
    if (id.size() > 60) id.resize(60);
    std::size_t digits = 4;
    while (ids_.contains(id + "_" + print.substr(0, digits))) ++digits;
    return id + "_" + print.substr(0, digits);
  }

  bool has_short_program(const Synthesised& one) const {
    const std::vector<Program> programs = programs_of(one);
    return std::any_of(programs.begin(), programs.end(), [&](const Program& program) {
      return static_cast<int>(program.source.size()) <= settings_.program_bytes;
    });
  }

  const Settings settings_;
  std::vector<std::string> families_;
  Synthesis out_;
  std::set<std::string> seen_, ids_, functions_out_;
  std::map<std::string, bool> is_out_;  // by what a task computes: whether it is held out
};

}  // namespace

std::vector<Program> programs_of(const Synthesised& task) {
  return task.traced ? programs_of(task.chain, *task.traced) : programs_of(task.chain);
}

std::string flaw_of(const Chain& chain) {
  const auto inputs = static_cast<int>(inputs_of(chain).size());
  std::map<std::uint64_t, std::vector<double>> values;  // the chain's, by seed
  for (const std::uint64_t seed : kSeeds) values[seed] = evaluate(chain, seed);
  const auto is_always = [&](const Chain& other, int changed = -1) {
    return std::all_of(values.begin(), values.end(), [&](const auto& of_seed) {
      return equal(of_seed.second, evaluate(other, of_seed.first, changed));
    });
  };
  if (equal(values.at(kSeeds[0]), values.at(kSeeds[1]))) return "degenerate: a constant";
  for (int i = 0; i < inputs; ++i)
    if (is_always(chain, i)) return fmt::format("degenerate: input {} does not matter", i);
  bool may_be_zero = false;
  for (const auto* steps : {&chain.before, &chain.steps})
    for (const std::size_t number : *steps) {
      const std::string_view name = op(number).name;
      if (op(number).divides && may_be_zero) return "degenerate: it may divide by 0";
      may_be_zero = may_be_zero || op(number).operand == Operand::kStart || name == "relu" ||
                    name == "hardsigmoid" || name == "hardswish";
    }
  if (!chain.steps.empty() && op(chain.steps.front()).operand == Operand::kStart)
    return "degenerate: a branch without an operator";
  Chain plain;
  plain.end = operators().size();
  if (chain.start == 0 && is_always(plain)) return "degenerate: the input as it is";
  // One step, or two that undo each other.
  std::vector<std::pair<std::vector<std::size_t> Chain::*, std::size_t>> steps;
  for (std::vector<std::size_t> Chain::*of : {&Chain::before, &Chain::steps})
    for (std::size_t i = 0; i < (chain.*of).size(); ++i)
      if (!has_input(op((chain.*of)[i]))) steps.emplace_back(of, i);
  const auto name_of = [&](const auto& step) { return op((chain.*step.first)[step.second]).name; };
  const auto erase = [](Chain& from, const auto& step) {
    (from.*step.first).erase((from.*step.first).begin() + static_cast<std::ptrdiff_t>(step.second));
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Chain without = chain;
    erase(without, steps[i]);
    if (is_always(without)) return fmt::format("redundant: {} changes nothing", name_of(steps[i]));
    for (std::size_t j = 0; j < i; ++j) {  // those before it keep their places
      Chain shorter = without;
      erase(shorter, steps[j]);
      if (is_always(shorter))
        return fmt::format("redundant: {} and {} change nothing", name_of(steps[j]), name_of(steps[i]));
    }
  }
  return "";
}

std::string fingerprint(const Chain& chain, bool by_kind) {
  // Which inputs there are is part of it: a bias and a residual are drawn in the order of their steps.
  std::vector<std::string> names;
  for (const Input& input : inputs_of(chain))
    names.push_back(by_kind ? std::to_string(static_cast<int>(input.operand)) : input.name);
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += name + " ";
  for (const std::uint64_t seed : kSeeds)
    for (const double value : evaluate(chain, seed, -1, by_kind))
      text += fmt::format("{:.6e} ", std::fabs(value) < 1e-12 ? 0 : value);
  return sha256_hex(text);
}

std::string normal_form_of_reference(std::string_view torchscript) {
  return method::normal_form(torchscript, method::Language::kPython);
}

Synthesis synthesize(const Settings& settings) { return Synthesizer(settings).run(); }

}  // namespace warpsmith::synthesis
