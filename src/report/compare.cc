// Pairs of two sides' scores, and what they come to.
#include "warpsmith/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "csv_cell.h"
#include "warpsmith/records/verdict.h"
#include "warpsmith/stats/summary.h"

namespace warpsmith::report {

namespace {

// What a side knows of a subject on one kind of device.
struct Known {
  std::map<std::string, Scored> scored;  // by baseline
  std::optional<Scored> failed;          // where nothing is scored

  // What it says over `baseline`: a failure has none of its own where nothing was scored over any.
  std::optional<Scored> over(const std::string& baseline) const {
    if (const auto it = scored.find(baseline); it != scored.end()) return it->second;
    return scored.empty() ? failed : std::nullopt;
  }
};
using Subject = std::pair<std::string, std::string>;               // task; program, empty in a pair of tasks
using Subjects = std::map<Subject, std::map<std::string, Known>>;  // by kind of device

bool tells_nothing(const Scored& s) {
  const auto verdict = parse_verdict(s.verdict);
  return verdict && !is_failure(*verdict);
}

void add(Known& known, const Scored& s) {
  if (s.speedup) {
    const auto [best, is_new] = known.scored.emplace(s.baseline, s);
    if (!is_new && *s.speedup > *best->second.speedup) best->second = s;
  } else if (!known.failed || (tells_nothing(*known.failed) && !tells_nothing(s))) {
    known.failed = s;
  }
}

Subjects tasks_of(const Side& side) {
  Subjects subjects;
  for (const Scored& s : side.scores) add(subjects[{s.task, ""}][s.device], s);
  return subjects;
}

Subjects programs_of(const Side& side) {
  std::map<std::tuple<std::string, std::string, std::string>, const Scored*> last;
  for (const Scored& s : side.scores)
    if (const Scored*& known = last[{s.candidate, s.device, s.baseline}];
        !s.candidate.empty() && (known == nullptr || !tells_nothing(s) || s.speedup))
      known = &s;
  Subjects subjects;
  for (const auto& [key, s] : last)
    if (s != nullptr) add(subjects[{s->task, s->candidate}][s->device], *s);
  return subjects;
}

std::string differs(const char* what, const std::string& a, const std::string& b) {
  return a.empty() || b.empty() || a == b ? "" : fmt::format("{} differs: {}, {}", what, a, b);
}

Pair pair_of(const Subject& subject, const std::string& device, const std::string& baseline,
             std::optional<Scored> a, std::optional<Scored> b) {
  Pair pair{subject.first, subject.second, device, baseline, std::move(a), std::move(b), {}, false, ""};
  if (!pair.a || !pair.b || !pair.a->speedup || !pair.b->speedup) return pair;
  pair.why = differs("arithmetic", pair.a->math, pair.b->math);
  if (pair.why.empty()) pair.why = differs("timing shape", pair.a->shape, pair.b->shape);
  if (!pair.why.empty()) return pair;
  const auto ratio = [](const Scored& s, bool interval) {
    return stats::Ratio{*s.speedup, interval ? s.low : *s.speedup, interval ? s.high : *s.speedup};
  };
  pair.has_interval = pair.a->low > 0 && pair.b->low > 0;
  pair.ratio = stats::divided(ratio(*pair.b, pair.has_interval), ratio(*pair.a, pair.has_interval));
  return pair;
}

const Known kNothing;

// A failure on a device that nobody knows counts on each that the subject was met on.
const Known& on(const std::map<std::string, Known>& devices, const std::string& device) {
  auto it = devices.find(device);
  if (it == devices.end()) it = devices.find("");
  return it == devices.end() ? kNothing : it->second;
}

// "H100 over eager, L40 over eager and cudnn".
std::string places(const std::map<std::string, Known>& devices) {
  std::string out;
  for (const auto& [device, known] : devices) {
    out += (out.empty() ? "" : ", ") + (device.empty() ? std::string("an unknown device") : device);
    std::string over;
    for (const auto& [baseline, score] : known.scored) over += (over.empty() ? " over " : " and ") + baseline;
    out += over;
  }
  return out;
}

void pair_subject(const Subject& subject, const std::map<std::string, Known>& a,
                  const std::map<std::string, Known>& b, Pairing& out) {
  std::set<std::string> devices;
  for (const auto* side : {&a, &b})
    for (const auto& [device, known] : *side) devices.insert(device);
  if (devices.size() > 1) devices.erase("");
  bool met = false;
  for (const std::string& device : devices) {
    const Known &in_a = on(a, device), &in_b = on(b, device);
    std::set<std::string> baselines;
    for (const Known* side : {&in_a, &in_b})
      for (const auto& [baseline, score] : side->scored) baselines.insert(baseline);
    if (baselines.empty()) baselines.insert("");
    for (const std::string& baseline : baselines) {
      Pair pair = pair_of(subject, device, baseline, in_a.over(baseline), in_b.over(baseline));
      met = met || (pair.a && pair.b);
      out.rows.push_back(std::move(pair));
    }
  }
  if (!met && !a.empty() && !b.empty())
    out.apart.push_back(subject.first + ": A on " + places(a) + ", B on " + places(b));
}

void count(Pairing& out) {
  std::vector<double> ratios;
  for (const Pair& pair : out.rows) {
    if (pair.a && pair.b) ++out.paired;
    if (!pair.b) ++out.only_a;
    if (!pair.a) ++out.only_b;
    if (pair.ratio) ratios.push_back(pair.ratio->value);
    if (pair.significant()) ++(pair.ratio->value > 1 ? out.faster : out.slower);
  }
  out.ratios = ratios.size();
  if (ratios.empty()) return;
  out.geometric_mean = stats::geometric_mean(ratios);
  out.median = stats::median(ratios);
}

// `common`: subjects of both sides alone.
Pairing pair_up(const Subjects& a, const Subjects& b, bool common) {
  Pairing out;
  std::set<Subject> subjects;
  for (const auto& [subject, known] : a)
    if (!common || b.contains(subject)) subjects.insert(subject);
  if (!common)
    for (const auto& [subject, known] : b) subjects.insert(subject);
  const std::map<std::string, Known> none;
  for (const Subject& subject : subjects) {
    const auto in_a = a.find(subject), in_b = b.find(subject);
    pair_subject(subject, in_a == a.end() ? none : in_a->second, in_b == b.end() ? none : in_b->second, out);
  }
  count(out);
  return out;
}

std::string listed(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

Json scored_json(const std::optional<Scored>& s) {
  if (!s) return nullptr;
  Json out = {{"candidate", s->candidate}, {"verdict", s->verdict}, {"text", s->text()}};
  out["speedup"] = s->speedup ? Json(*s->speedup) : Json();
  if (s->low > 0) out["interval"] = {s->low, s->high};
  return out;
}

std::optional<double> if_set(bool is, double value) { return is ? std::optional(value) : std::nullopt; }

Json pair_json(const Pair& pair) {
  Json out = {{"task", pair.task},
              {"device", pair.device},
              {"baseline", pair.baseline},
              {"a", scored_json(pair.a)},
              {"b", scored_json(pair.b)},
              {"ratio", pair.ratio ? Json(pair.ratio->value) : Json()},
              {"significant", pair.significant()}};
  if (!pair.candidate.empty()) out["candidate"] = pair.candidate;
  if (pair.has_interval) out["interval"] = {pair.ratio->low, pair.ratio->high};
  if (!pair.why.empty()) out["why"] = pair.why;
  return out;
}

Json pairing_json(const Pairing& pairing) {
  Json out = {{"paired", pairing.paired}, {"only_a", pairing.only_a}, {"only_b", pairing.only_b},
              {"ratios", pairing.ratios}, {"faster", pairing.faster}, {"slower", pairing.slower},
              {"apart", pairing.apart},   {"rows", Json::array()},    {"no_longer_ok", Json::array()},
              {"now_ok", Json::array()}};
  out["geometric_mean"] = pairing.geometric_mean ? Json(*pairing.geometric_mean) : Json();
  out["median"] = pairing.median ? Json(*pairing.median) : Json();
  for (const Pair& pair : pairing.rows) {
    out["rows"].push_back(pair_json(pair));
    const std::string name = pair.candidate.empty() ? pair.task : pair.candidate;
    if (pair.no_longer_ok()) out["no_longer_ok"].push_back(name);
    if (pair.now_ok()) out["now_ok"].push_back(name);
  }
  return out;
}

}  // namespace

std::string Scored::text() const {
  if (!speedup) return verdict.empty() ? note : verdict;
  return fmt::format("{:.2f}×", *speedup) + (low > 0 ? fmt::format(" [{:.2f}, {:.2f}]", low, high) : "");
}

bool Pair::changed() const {
  return a && b && !a->verdict.empty() && !b->verdict.empty() && a->verdict != b->verdict;
}
bool Pair::no_longer_ok() const { return changed() && a->verdict == to_string(Verdict::kOk); }
bool Pair::now_ok() const { return changed() && b->verdict == to_string(Verdict::kOk); }

RunComparison compare_sides(const Side& a, const Side& b) {
  RunComparison out{a.name, b.name, b.published, {}, {}, {}};
  out.tasks = pair_up(tasks_of(a), tasks_of(b), false);
  out.programs = pair_up(programs_of(a), programs_of(b), true);
  if (b.published)
    out.notes.emplace_back(
        "B's scores are published ones: they have no interval and no verdict, so no difference from them is "
        "called significant and no change of a verdict is told");
  for (const Side* side : {&a, &b})
    if (side->replayed)
      out.notes.push_back(side->name + ": its scores were taken from another run (--replay-timings)");
  if (a.devices != b.devices && !a.devices.empty() && !b.devices.empty())
    out.notes.push_back("measured on different models: A on " + listed(a.devices) + "; B on " +
                        listed(b.devices));
  return out;
}

Json run_comparison_json(const RunComparison& comparison) {
  return {{"schema", "warpsmith.comparison/1"},
          {"a", comparison.a},
          {"b", comparison.b},
          {"published", comparison.published},
          {"notes", comparison.notes},
          {"tasks", pairing_json(comparison.tasks)},
          {"programs", pairing_json(comparison.programs)}};
}

std::string run_comparison_csv(const RunComparison& comparison, bool by_program) {
  std::string out =
      "task,candidate,device,baseline,a_candidate,a_verdict,a_speedup,a_low,a_high,b_candidate,b_verdict,"
      "b_speedup,b_low,b_high,ratio,ratio_low,ratio_high,significant,why\n";
  const Scored none;
  for (const Pair& pair : (by_program ? comparison.programs : comparison.tasks).rows) {
    for (const std::string* text : {&pair.task, &pair.candidate, &pair.device, &pair.baseline})
      out += cell(*text) + ",";
    for (const std::optional<Scored>* side : {&pair.a, &pair.b}) {
      const Scored& s = *side ? **side : none;
      out += cell(s.candidate) + "," + cell(s.verdict) + "," + cell(s.speedup) + "," +
             cell(if_set(s.low > 0, s.low)) + "," + cell(if_set(s.low > 0, s.high)) + ",";
    }
    const stats::Ratio ratio = pair.ratio.value_or(stats::Ratio{});
    out += cell(if_set(pair.ratio.has_value(), ratio.value)) + "," +
           cell(if_set(pair.has_interval, ratio.low)) + "," + cell(if_set(pair.has_interval, ratio.high)) +
           "," + (pair.has_interval ? cell(pair.significant()) : "") + "," + cell(pair.why) + "\n";
  }
  return out;
}

}  // namespace warpsmith::report
