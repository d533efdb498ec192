// `service`: a server, which runs as long as somebody asks it. The controller looks whether it is up, and
// ends it.
#include "kinds.h"

namespace warpsmith::stages {

namespace {

class ServiceStage final : public Stage {
 public:
  explicit ServiceStage(StageInputs inputs) : inputs_(std::move(inputs)), spec_(inputs_.spec) {}

  StageStep start() override {
    const auto& settings = std::get<workflow::ServiceSettings>(spec_.settings);
    JobRequest job;
    job.job = "service";
    job.program = "warpsmith-service";
    job.params = {{"argv", settings.argv},
                  {"health", settings.health},
                  {"api", settings.api},
                  {"ready_s", settings.ready_s}};
    if (const Json stages = stages_with_models(); !stages.empty()) job.params["model_of"] = stages;
    job.items.push_back({{"id", "server"}});
    job.resources = spec_.service;
    job.one_shard = true;
    return ask(std::move(job), Json::object());
  }

  // Its item has no record, so its job never comes to an end.
  StageStep on_job(const JobResult& result) override { unexpected(spec_, result); }

 private:
  // Whose model {model} may be, the newest first: the first that has exported one. The controller looks.
  Json stages_with_models() const {
    Json stages = Json::array();
    for (auto it = inputs_.upstream_order.rbegin(); it != inputs_.upstream_order.rend(); ++it)
      if (!inputs_.upstream.at(*it).value("checkpoint", "").empty()) stages.push_back(*it);
    return stages;
  }

  const StageInputs inputs_;
  const workflow::StageSpec& spec_;
};

}  // namespace

std::unique_ptr<Stage> make_service(StageInputs inputs) {
  return std::make_unique<ServiceStage>(std::move(inputs));
}

}  // namespace warpsmith::stages
