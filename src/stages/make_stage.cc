#include <fmt/format.h>

#include "kinds.h"

namespace warpsmith::stages {

StageStep ask(JobRequest job, StageProgress progress) {
  StageStep step;
  progress["job"] = job.job;
  step.jobs.push_back(std::move(job));
  step.progress = std::move(progress);
  return step;
}

void unexpected(const workflow::StageSpec& spec, const JobResult& result) {
  throw Error(fmt::format("stage {}: got the result of job {}/{}, which it is not waiting for", spec.name,
                          result.round, result.job));
}

std::unique_ptr<Stage> make_stage(StageInputs inputs) {
  const workflow::StageSpec spec = inputs.spec;
  const std::string& kind = spec.kind;
  if (kind == "collect") return make_collect(std::move(inputs));
  if (kind == "sft") return make_exported(spec, make_sft(std::move(inputs)));
  if (kind == "self_supervised") return make_exported(spec, make_self_supervised(std::move(inputs)));
  if (kind == "contrastive") return make_exported(spec, make_contrastive(std::move(inputs)));
  if (kind == "measure") return make_evaluate(std::move(inputs));
  if (kind == "command") return make_command(std::move(inputs));
  if (kind == "service") return make_service(std::move(inputs));
  throw Error(fmt::format("stage {}: there is no stage kind `{}`", inputs.spec.name, kind), kExitUsage);
}

}  // namespace warpsmith::stages
