// A stage that trains, and at its end writes its model for transformers.
#include <optional>
#include <utility>

#include "jobs.h"
#include "kinds.h"

namespace warpsmith::stages {

namespace {

class ExportedStage final : public Stage {
 public:
  ExportedStage(const workflow::StageSpec& spec, std::unique_ptr<Stage> stage)
      : spec_(spec), stage_(std::move(stage)) {}

  StageStep start() override { return exporting(stage_->start()); }

  StageStep on_job(const JobResult& result) override {
    if (ended_) {
      if (result.job != "export") unexpected(spec_, result);
      return std::move(*ended_);
    }
    round_ = result.round;
    return exporting(stage_->on_job(result));
  }

 private:
  // The last step waits for the export; a stage whose model stayed as it was has none.
  StageStep exporting(StageStep step) {
    if (!step.finished || step.output.value("checkpoint_digest", "").empty()) return step;
    JobRequest job = export_request(spec_, round_, step.output.at("checkpoint"));
    StageStep asked = ask(std::move(job), step.progress);
    asked.round = step.round;
    ended_ = std::move(step);
    return asked;
  }

  const workflow::StageSpec spec_;
  const std::unique_ptr<Stage> stage_;
  int round_ = 0;
  std::optional<StageStep> ended_;
};

}  // namespace

std::unique_ptr<Stage> make_exported(const workflow::StageSpec& spec, std::unique_ptr<Stage> stage) {
  if (workflow::export_type(spec).empty()) return stage;
  return std::make_unique<ExportedStage>(spec, std::move(stage));
}

}  // namespace warpsmith::stages
