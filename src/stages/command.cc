// `command`: any program, given a job file and a shard as ours are.
#include <fmt/format.h>

#include "jobs.h"
#include "kinds.h"
#include "summary.h"
#include "verifier.h"

namespace warpsmith::stages {

namespace {

class CommandStage final : public Stage {
 public:
  explicit CommandStage(StageInputs inputs)
      : inputs_(std::move(inputs)),
        settings_(std::get<workflow::CommandSettings>(inputs_.spec.settings)),
        tasks_(inputs_.spec.dataset, inputs_.tasks) {
    if (settings_.argv.empty())
      throw Error(fmt::format("stage {}: `argv` is empty", inputs_.spec.name), kExitUsage);
  }

  StageStep start() override {
    JobRequest job;
    job.round = 0;
    job.job = "command";
    job.program = settings_.argv.front();
    job.arguments.assign(settings_.argv.begin() + 1, settings_.argv.end());
    const auto checkpoint = newest_checkpoint(inputs_);
    job.params = {{"datasets", inputs_.spec.dataset.folder.string()},
                  {"point", inputs_.spec.point},
                  {"checkpoint", checkpoint ? Json(checkpoint->path) : Json()},
                  {"records", settings_.records},
                  {"checkpoint_prefix", "checkpoints/" + inputs_.spec.name}};
    job.items = items();
    job.resources = inputs_.spec.train;
    job.expected_item_s = 1;
    job.one_shard = job.items.size() == 1;
    if (job.items.empty()) return finish();
    return ask(std::move(job), progress());
  }

  StageStep on_job(const JobResult& result) override {
    if (finished_ || result.round != 0 || result.job != "command") unexpected(inputs_.spec, result);
    for (const ItemResult& item : result.items) {
      try {
        take(item);
      } catch (const Error& e) {
        throw e.with_context(fmt::format("stage {}: in the record of {}", inputs_.spec.name, item.id));
      } catch (const Json::exception& e) {
        throw Error(fmt::format("stage {}: in the record of {}: {}", inputs_.spec.name, item.id, e.what()),
                    kExitFailed);
      }
    }
    return finish();
  }

 private:
  std::vector<Json> items() const {
    std::vector<Json> out;
    if (settings_.items == "none") {
      out.push_back({{"id", "command"}});
    } else if (settings_.items == "tasks") {
      for (const std::string& task : tasks_.all())
        out.push_back(
            {{"id", task}, {"group", tasks_.group(task)}, {"folder", tasks_.at(task).folder.string()}});
    } else if (settings_.items == "candidates") {
      for (const Known& k : known_candidates(inputs_, inputs_.upstream_order, Comparable::kDevice))
        out.push_back({{"id", k.candidate.id},
                       {"candidate", to_json(k.candidate)},
                       {"measurement", to_json(k.measurement)}});
    } else {
      throw Error(fmt::format("stage {}: `items` is none, tasks or candidates", inputs_.spec.name),
                  kExitUsage);
    }
    return out;
  }

  // A record may carry "candidates": [{"candidate", "measurement"}], "checkpoint" (and "step"), and anything
  // else.
  void take(const ItemResult& item) {
    if (item.record.is_null()) {
      ++lost_;
      return;
    }
    Json record = item.record;
    if (const auto list = record.find("candidates"); list != record.end()) {
      for (Json& entry : *list) {
        const Candidate candidate = candidate_from_json(entry.at("candidate"));  // checks its id
        if (!seen_.insert(candidate.id).second) continue;
        Json checked = {{"candidate", to_json(candidate)}};
        if (entry.contains("measurement")) {
          Measurement m = measurement_from_json(entry.at("measurement"));
          m.candidate = candidate.id;
          m.task = candidate.task;
          checked["measurement"] = to_json(m);
          checked["folder"] = item.folder;
        }
        candidates_.push_back(std::move(checked));
      }
      record.erase("candidates");
    }
    if (const std::string path = record.value("checkpoint", ""); !path.empty()) {
      checkpoint_ = path;
      step_ = record.value("step", Json());
    }
    records_.push_back(std::move(record));
  }

  StageProgress progress() const { return {{"round", 0}, {"rounds", 1}}; }

  StageStep finish() {
    finished_ = true;
    StageStep step;
    step.finished = true;
    step.output = begin_output(inputs_.spec);
    step.output["candidates"] = std::move(candidates_);
    step.output["records"] = std::move(records_);
    if (!checkpoint_.empty()) step.output["checkpoint"] = checkpoint_;
    if (step_.is_number_integer()) step.output["step"] = step_;
    step.output["summary"] = {{"records", step.output["records"].size()},
                              {"candidates", step.output["candidates"].size()},
                              {"lost_items", lost_}};
    step.progress = progress();
    return step;
  }

  const StageInputs inputs_;
  const workflow::CommandSettings settings_;
  const TaskSet tasks_;
  Json candidates_ = Json::array(), records_ = Json::array();
  std::set<std::string> seen_;
  std::string checkpoint_;
  Json step_;
  std::uint64_t lost_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Stage> make_command(StageInputs inputs) {
  return std::make_unique<CommandStage>(std::move(inputs));
}

}  // namespace warpsmith::stages
