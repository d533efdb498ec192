// `service`: a server, which runs as long as somebody asks it. The controller looks whether it is up, and
// ends it.
#include <optional>

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
    if (const auto stage = exporting_stage(); stage) job.params["model_of"] = *stage;
    job.items.push_back({{"id", "server"}});
    job.resources = spec_.train;
    job.one_shard = true;
    return ask(std::move(job), Json::object());
  }

  // Its item has no record, so its job never comes to an end.
  StageStep on_job(const JobResult& result) override { unexpected(spec_, result); }

 private:
  // Whose model {model} is: that of the newest stage which left one.
  std::optional<std::string> exporting_stage() const {
    for (auto it = inputs_.upstream_order.rbegin(); it != inputs_.upstream_order.rend(); ++it)
      if (!inputs_.upstream.at(*it).value("checkpoint", "").empty()) return *it;
    return std::nullopt;
  }

  const StageInputs inputs_;
  const workflow::StageSpec& spec_;
};

}  // namespace

std::unique_ptr<Stage> make_service(StageInputs inputs) {
  return std::make_unique<ServiceStage>(std::move(inputs));
}

}  // namespace warpsmith::stages
