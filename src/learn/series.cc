#include "warpsmith/learn/series.h"

#include <algorithm>
#include <charconv>

#include "warpsmith/base/files.h"

namespace warpsmith::learn {

CheckpointSeries::CheckpointSeries(fs::path prefix, std::string owner, std::int64_t keep_last, bool keep_best)
    : prefix_(std::move(prefix)), owner_(std::move(owner)), keep_last_(keep_last), keep_best_(keep_best) {}

fs::path CheckpointSeries::folder_of(std::int64_t step) const {
  return prefix_.string() + "-" + std::to_string(step);
}

std::string CheckpointSeries::save(model::CheckpointFacts facts, const model::Decoder& decoder,
                                   const model::Tokenizer& tokenizer,
                                   const model::OptimizerState* optimizer) {
  facts.origin["job"] = owner_;
  const std::string digest =
      model::save_checkpoint(folder_of(facts.step), facts, decoder, tokenizer, optimizer);
  std::vector<std::int64_t> steps = own_steps();
  std::int64_t best = -1;
  double lowest = 0;
  for (const std::int64_t step : steps) {
    if (!keep_best_) break;
    try {
      const double score = model::read_checkpoint_facts(folder_of(step)).score;
      if (best < 0 || score < lowest) best = step, lowest = score;
    } catch (const Error&) {  // a damaged one is never the best
    }
  }
  const auto kept = std::min<std::size_t>(steps.size(), static_cast<std::size_t>(keep_last_));
  steps.resize(steps.size() - kept);
  for (const std::int64_t step : steps)
    if (step != best) fs::remove_all(folder_of(step));
  return digest;
}

std::vector<std::int64_t> CheckpointSeries::own_steps() const {
  std::vector<std::int64_t> steps;
  const std::string stem = prefix_.filename().string() + "-";
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix_.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(stem)) continue;
    std::int64_t step = 0;
    const auto [end, result] = std::from_chars(name.data() + stem.size(), name.data() + name.size(), step);
    if (result != std::errc() || end != name.data() + name.size()) continue;
    try {
      if (read_json_file(entry.path() / "origin.json").value("job", "") == owner_) steps.push_back(step);
    } catch (const Error&) {  // nobody's, or unreadable: not ours to remove
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::int64_t> CheckpointSeries::whole_steps(
    const std::function<void(const std::string&)>& on_damage) const {
  std::vector<std::int64_t> steps = own_steps(), whole;
  std::reverse(steps.begin(), steps.end());
  for (const std::int64_t step : steps) {
    const std::string damage = model::checkpoint_damage(folder_of(step));
    if (damage.empty())
      whole.push_back(step);
    else
      on_damage(damage);
  }
  return whole;
}

}  // namespace warpsmith::learn
