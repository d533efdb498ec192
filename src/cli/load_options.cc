#include "load_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernelbench_tasks.h"
#include "synthesised_tasks.h"
#include "warpsmith/base/log.h"
#include "warpsmith/model/folder.h"
#include "warpsmith/python/chat.h"

namespace warpsmith::cli {

namespace {

workflow::PretrainedModel look_at_model(const std::filesystem::path& folder, bool weights, int context) {
  model::FolderFacts facts = model::look_at_folder(folder, weights, context, python::render_chats);
  return {.family = std::move(facts.family),
          .settings = model::to_json(facts.settings),
          .frame = tokenizer::to_json(facts.frame),
          .context = static_cast<int>(facts.settings.context),
          .parameters = facts.parameters,
          .digest = std::move(facts.digest),
          .takes_lora = facts.settings.is_plain(),
          .notes = std::move(facts.notes)};
}

std::filesystem::path kernelbench_folder(const std::filesystem::path& checkout,
                                         const std::vector<int>& levels) {
  const CachedTasks all = kernelbench_tasks(checkout, levels);
  const auto refused = std::count_if(all.tasks.begin(), all.tasks.end(),
                                     [](const KernelBenchTask& task) { return !task.refused.empty(); });
  if (refused > 0)
    log_info(fmt::format("{} of {} modules in {} are no tasks: `warpsmith tasks {}` says why", refused,
                         all.tasks.size(), checkout.string(), checkout.string()));
  return all.folder;
}

}  // namespace

workflow::LoadOptions with_folders(workflow::LoadOptions options) {
  options.kernelbench = kernelbench_folder;
  options.synthesize = synthesised_tasks;
  options.pretrained = look_at_model;
  return options;
}

}  // namespace warpsmith::cli
