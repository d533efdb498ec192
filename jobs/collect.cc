// warpsmith-collect JOB.json SHARD: candidates of tasks, from the dataset's files and by augmentation.
//
// params  {"datasets": folder, "stage", "tier", "augment": {"variants", "rename_identifiers",
// "block_sizes"}};
//         without a tier it is `plan`; variants are of that tier alone
// item    {"id": task, "augment": whether variants are wanted}
// record  {"candidates": [{"candidate": {…}, "expected": verdict}, …]}   files by folder and name; then
// variants of those
//         in ok/, whose `expected` is empty
#include <fmt/format.h>

#include <string>

#include "warpsmith/base/log.h"
#include "warpsmith/base/random.h"
#include "warpsmith/method/augment.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/task/hosted_files.h"
#include "warpsmith/task/task.h"
#include "warpsmith/toolchain/hosted_candidate.h"

using namespace warpsmith;

namespace {

method::AugmentOptions augment_options(const Json& params) {
  const Json augment = params.value("augment", Json::object());
  return {augment.value("variants", 0), augment.value("rename_identifiers", false),
          augment.value("block_sizes", std::vector<int>{})};
}

// Of another tier than `plan`: as they lie in the dataset, without variants.
Json collect_hosted(const task::Task& task, const std::string& stage, Tier tier) {
  Diagnostics diagnostics;
  Json candidates = Json::array();
  const auto wanted = tier == Tier::kPython ? task::HostedTier::kPython : task::HostedTier::kExtension;
  for (const task::HostedSource& source : task::load_hosted_sources(task, wanted, diagnostics)) {
    const std::string detail = fmt::format("{}/{}/{}", to_string(tier), source.expected, source.name);
    candidates.push_back({{"candidate", to_json(toolchain::make_hosted_candidate(
                                            task.id, source, {"dataset", stage, 0, detail, ""}))},
                          {"expected", source.expected}});
  }
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  return {{"candidates", std::move(candidates)}};
}

Json collect(const task::Task& task, const std::string& stage, const method::AugmentOptions& options,
             std::uint64_t seed) {
  Diagnostics diagnostics;
  const auto files = task::load_candidate_files(task, diagnostics);
  if (!diagnostics.empty()) throw InvalidInput(diagnostics);
  Json candidates = Json::array(), variants = Json::array();
  for (const task::CandidateFile& file : files) {
    const std::string detail = file.expected + "/" + file.name + ".cu";
    const Candidate candidate = make_plan_candidate(task.id, file.source, {"dataset", stage, 0, detail, ""});
    candidates.push_back({{"candidate", to_json(candidate)}, {"expected", file.expected}});
    if (file.expected != "ok") continue;
    const std::uint64_t key = random_key({seed, name_key(stage), name_key(task.id), name_key(detail)});
    for (const method::Variant& variant : method::augment(file.source, options, key))
      variants.push_back(
          {{"candidate", to_json(make_plan_candidate(
                             task.id, variant.source,
                             {"augmented", stage, 0, detail + ": " + variant.detail, candidate.id}))},
           {"expected", ""}});
  }
  for (Json& variant : variants) candidates.push_back(std::move(variant));
  return {{"candidates", std::move(candidates)}};
}

task::Task load(const fs::path& folder) {
  Diagnostics diagnostics;
  auto task = task::load_task(folder, diagnostics);
  if (!task) throw InvalidInput(diagnostics);
  return std::move(*task);
}

void run(ShardSession& shard) {
  const Json& params = shard.job().params;
  const fs::path datasets = json_at<std::string>(params, "datasets", "params of collect");
  const std::string stage = params.value("stage", shard.job().stage);
  const Tier tier = parse_tier(params.value("tier", "plan"));
  for (const Item& item : shard.open_items()) {
    method::AugmentOptions options = augment_options(params);
    if (!item.value.value("augment", true)) options.variants = 0;
    const task::Task task = load(datasets / item.id);
    Json record = tier == Tier::kPlan ? collect(task, stage, options, shard.job().seed)
                                      : collect_hosted(task, stage, tier);
    log_info(item.id + ": " + std::to_string(record["candidates"].size()) + " candidates");
    shard.write(item, std::move(record));
  }
  shard.finish();
}

}  // namespace

int main(int argc, char** argv) { return shard_main("warpsmith-collect", argc, argv, run); }
