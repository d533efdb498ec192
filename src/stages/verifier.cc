#include "verifier.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/method/source_text.h"
#include "warpsmith/records/baseline.h"

namespace warpsmith::stages {

namespace {

std::string layout_of(const Candidate& candidate) {
  std::string form = candidate.task + '\n';
  for (const SourceFile& file : candidate.files)
    form += method::layout_normal_form(file.content, method::language_of(file.path));
  return form;
}

std::vector<std::string> codes_of(const Json& code) {
  std::vector<std::string> codes;
  for (const auto& [target, structure] : code.items())
    codes.push_back(target + ' ' + structure.get<std::string>());
  return codes;
}

// Of the kernel with most, as a measurement has it (toolchain::facts_of()); of the first target.
CodeFacts code_facts_of(const Json& record) {
  CodeFacts facts;
  if (const Json known = record.value("tensor_cores", Json::object()); !known.empty())
    facts.tensor_cores = known.begin()->get<bool>();
  const Json kernels = record.value("kernels", Json::object());
  if (kernels.empty()) return facts;
  const auto most = [&](const char* key) {
    std::optional<std::int64_t> found;
    for (const Json& kernel : *kernels.begin())
      if (const std::int64_t n = kernel.value(key, std::int64_t{-1}); n >= 0)
        found = std::max(found.value_or(n), n);
    return found;
  };
  facts.registers = most("registers");
  facts.shared_bytes = most("shared_bytes");
  facts.spill_bytes = most("spill_bytes");
  return facts;
}

}  // namespace

std::string structure_of(const Candidate& candidate) {
  std::string form;
  for (const SourceFile& file : candidate.files)
    form += method::normal_form(file.content, method::language_of(file.path));
  return form;
}

Verifier::Verifier(const StageInputs& inputs, std::vector<Known> known)
    : inputs_(inputs), spec_(inputs.spec) {
  if (skip_of(spec_) > 0) surrogate_.emplace(spec_);
  for (Known& k : known) settle(std::move(k));
  for (const Known& k : known_candidates(inputs, inputs.upstream_order, Comparable::kAnything)) learn_from(k);
  for (const Known& k : unmeasured_programs(inputs, inputs.upstream_order)) learn_from(k);
}

void Verifier::learn_from(const Known& known) {
  if (is_by_model(known.candidate)) return;
  forms_of_others_.insert(layout_of(known.candidate));
  structures_of_others_.insert(structure_of(known.candidate));
  for (const std::string& code : codes_of(known.code)) codes_of_others_.insert(code);
}

bool Verifier::is_known(const std::string& id) const {
  const auto [entry, fresh] = is_known_.try_emplace(id, false);
  if (!fresh) return entry->second;
  const auto known = [&](const std::string& structure) {
    return structures_of_others_.contains(structure) ||
           (inputs_.peoples_structures != nullptr && inputs_.peoples_structures->contains(structure));
  };
  const std::vector<std::string> codes = codes_of(at(id).code);
  entry->second = is_by_others(id) || known(structure_of(at(id).candidate)) ||
                  std::any_of(codes.begin(), codes.end(),
                              [&](const std::string& code) { return codes_of_others_.contains(code); });
  return entry->second;
}

bool Verifier::is_of_template(const std::string& id) const {
  return inputs_.template_structures != nullptr && !is_known(id) &&
         inputs_.template_structures->contains(structure_of(at(id).candidate));
}

bool Verifier::is_by_others(const std::string& id) const {
  const Candidate& candidate = at(id).candidate;
  return !is_by_model(candidate) || forms_of_others_.contains(layout_of(candidate));
}

void Verifier::settle(Known known) {
  const std::string id = known.candidate.id;
  pending_.erase(id);
  if (known.measurement.verdict == Verdict::kOk) {
    double& best = best_[known.candidate.task];
    best = std::max(best, known.measurement.speedup);
  }
  if (const Measurement& m = known.measurement; m.baseline_ratio > 0)
    baselines_[m.task].emplace(m.baseline, m.baseline_ratio);
  if (const auto it = expected_.find(id); it != expected_.end()) known.expected = it->second;
  if (const auto it = code_.find(id); it != code_.end()) known.code = it->second;
  known_.insert_or_assign(id, std::move(known));
}

void Verifier::meet(const std::string& id) {
  if (met_set_.insert(id).second) met_.push_back(id);
}

Measurement Verifier::empty_measurement(const Candidate& candidate, Verdict verdict,
                                        std::string detail) const {
  Measurement m;
  m.candidate = candidate.id;
  m.task = candidate.task;
  m.baseline = spec_.protocol.baseline;
  m.math = math_of(inputs_, candidate.task);
  m.verdict = verdict;
  m.detail = std::move(detail);
  return m;
}

void Verifier::add_verdict(const Candidate& candidate, Verdict verdict, const std::string& detail) {
  meet(candidate.id);
  if (known_.contains(candidate.id)) return;
  settle({candidate, empty_measurement(candidate, verdict, detail), "", "", ""});
}

void Verifier::take_baselines(const std::vector<Json>& extras) {
  for (const Json& extra : extras) {
    if (!extra.contains("baseline")) continue;
    const BaselineTiming timing = baseline_timing_from_json(extra.at("baseline"));
    if (timing.state == BaselineState::kCovered && timing.name != "eager")
      baselines_[timing.task].emplace(timing.name, timing.ratio);
  }
}

std::optional<double> Verifier::best_baseline(const std::string& task) const {
  const auto it = baselines_.find(task);
  if (it == baselines_.end()) return times_other_baselines(spec_) ? std::nullopt : std::optional(1.0);
  double best = 0;
  for (const auto& [name, ratio] : it->second) best = std::max(best, ratio);
  return best;
}

std::optional<JobRequest> Verifier::begin(int round, const std::vector<Candidate>& candidates) {
  std::vector<Candidate> open;
  for (const Candidate& c : candidates) {
    meet(c.id);
    const auto it = known_.find(c.id);
    if (it != known_.end() && (it->second.measurement.verdict != Verdict::kNotMeasured ||
                               (surrogate_ && surrogate_->has_skipped(c.id))))
      continue;
    if (pending_.emplace(c.id, c).second) open.push_back(c);
  }
  if (open.empty()) return std::nullopt;
  return compile_request(spec_, round, open);
}

std::vector<Compiled> Verifier::without_slow(const JobResult& compilation, std::vector<Compiled> compiled) {
  const std::set<std::string> slow = surrogate_->choose(compilation, compiled, known_);
  std::erase_if(compiled, [&](const Compiled& c) {
    if (!slow.contains(c.candidate.id)) return false;
    settle({c.candidate,
            empty_measurement(c.candidate, Verdict::kNotMeasured, "skipped: predicted to be slow"), "", "",
            ""});
    return true;
  });
  return compiled;
}

std::optional<JobRequest> Verifier::on_job(const JobResult& result) {
  take_baselines(result.extras);
  std::vector<Compiled> compiled;
  for (const ItemResult& item : result.items) {
    const auto it = pending_.find(item.id);
    if (it == pending_.end())
      throw Error(fmt::format("stage {}, round {}: job {} has a result of {}, which nobody asked for",
                              spec_.name, result.round, result.job, item.id));
    const Candidate candidate = it->second;
    if (item.record.is_null()) {
      settle({candidate,
              empty_measurement(candidate, Verdict::kNotMeasured, "lost with its shard: " + result.job), "",
              "", ""});
    } else if (kind_of_job(result.job) == "measure") {
      Measurement m = measurement_from_json(item.record);
      m.candidate = candidate.id;
      m.task = candidate.task;
      settle({candidate, std::move(m), item.folder, "", ""});
    } else {
      const std::string name = item.record.value("verdict", "");
      const auto verdict = parse_verdict(name);
      if (!verdict) throw Error(fmt::format("compile record of {}: unknown verdict `{}`", item.id, name));
      if (item.record.contains("code")) code_[candidate.id] = item.record["code"];
      if (*verdict == Verdict::kOk) {
        compiled.push_back({candidate,
                            json_at<std::string>(item.record, "binary", "compile record of " + item.id),
                            code_facts_of(item.record)});
      } else {
        Measurement m = empty_measurement(candidate, *verdict, item.record.value("log", ""));
        m.seconds = item.record.value("seconds", 0.0);
        settle({candidate, std::move(m), "", "", ""});
      }
    }
  }
  if (surrogate_ && !compiled.empty()) compiled = without_slow(result, std::move(compiled));
  if (compiled.empty()) return std::nullopt;
  return measure_request(spec_, result.round, compiled, best_);
}

}  // namespace warpsmith::stages
