#include "warpsmith/workflow/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "dataset.h"
#include "named_files.h"
#include "stage.h"
#include "stage_checks.h"
#include "substitute.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/devices.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

constexpr const char* kSchema = "warpsmith.workflow/1";

class Loader {
 public:
  Loader(const fs::path& file, const LoadOptions& options)
      : file_(file),
        options_(options),
        base_(options.base_folder.empty() ? fs::absolute(file).parent_path()
                                          : fs::absolute(options.base_folder)) {}

  LoadResult load(std::string_view text) {
    Node root = yaml::load_text(text, file_.string(), mistakes_);
    if (!yaml::is_map_file(root, "workflow", kSchema, mistakes_)) return result();
    const Node* dataset = root.find("dataset");
    const bool synthesizes =
        dataset != nullptr && dataset->is_map() && dataset->find("synthesize") != nullptr;
    std::vector<std::string> overrides;
    for (const std::string& override : options_.overrides) {
      if (synthesizes || !override.starts_with("dataset.synthesize."))
        overrides.push_back(override);
      else
        mistakes_.push_back(mistake_at(dataset == nullptr ? root.place() : dataset->place(),
                                       fmt::format("`{}`: `dataset` has no `synthesize`", override)));
    }
    root = apply_overrides(std::move(root), overrides, mistakes_);
    spec_.file = file_;
    spec_.text = std::string(text);
    read_root(root);
    return result();
  }

 private:
  void read_root(const Node& raw) {
    const Node* params = raw.find("params");
    params_ = resolve_params(params, budget_, mistakes_);
    for (const auto& [name, value] : params_) spec_.params[name] = yaml::to_json(value);

    // Everything but the parameters and the stages, whose references are replaced instance by instance.
    std::vector<Entry> entries = raw.entries();
    std::erase_if(entries, [](const Entry& entry) { return entry.key == "params" || entry.key == "stages"; });
    const Node root = substitute(Node::map(raw.place(), std::move(entries)),
                                 {.params = &params_, .budget = &budget_}, mistakes_);

    MapReader map(root, "workflow", mistakes_);
    for (const char* known : {"params", "stages"}) map.expect(known);
    check_schema(map);
    if (auto name = map.string("name", {.required = true})) {
      if (!is_identifier(*name) || name->size() > 64)
        map.mistake("name", fmt::format("`{}` is no name", *name),
                    "a letter, then letters, digits, _ and -, 64 at most; it names the run's folder");
      spec_.name = std::move(*name);
    }
    if (const auto seed = map.integer("seed", {.low = 0})) spec_.seed = static_cast<std::uint64_t>(*seed);
    if (options_.seed) spec_.seed = *options_.seed;
    if (const auto notify = map.value("notify"))
      read_map(notify_keys(), *notify, "`notify`", spec_.notify, mistakes_);
    if (const auto budget = map.value("budget"))
      read_map(budget_keys(), *budget, "`budget`", spec_.budget, mistakes_);

    StageSpec defaults;
    defaults.seed = spec_.seed;
    for (const CauseRule& rule : cause_rules()) defaults.retry.times[rule.cause] = rule.standard;
    read_shared(map, {"model", "sample", "optimizer", "lora", "compile", "measure", "prompt"}, defaults,
                mistakes_, idle_gpus_);
    const Node* model = root.find("model");
    if (model != nullptr) files_.find_model(defaults.model, model->place());
    const bool has_dataset = map.has("dataset");
    if (const auto dataset = map.value("dataset"))
      no_dataset_ = read_dataset(*dataset, options_, base_, defaults.dataset, mistakes_);
    map.finish();
    read_stages(raw, defaults, has_dataset);
    check_room_for_prompts(map, defaults);
    // What is imported may be imported later: the workflow may be checked before it is.
    const bool all_imported = std::all_of(spec_.stages.begin(), spec_.stages.end(), [](const StageSpec& s) {
      const auto* measure = std::get_if<MeasureSettings>(&s.settings);
      return measure != nullptr && !measure->candidates.empty();
    });
    if (no_dataset_) (all_imported && !spec_.stages.empty() ? notes_ : mistakes_).push_back(*no_dataset_);
    check_gpus_of_all(root);
    if (options_.refuse_idle_gpus) mistakes_.insert(mistakes_.end(), idle_gpus_.begin(), idle_gpus_.end());
    check_budget(raw);
  }

  // That an answer leaves room in the context of the file's own model, where a stage samples from it.
  void check_room_for_prompts(MapReader& map, const StageSpec& defaults) {
    // A folder's context is known where it was looked at.
    const ModelSettings& m = defaults.model;
    const bool known = m.pretrained || m.context_given || (m.from.empty() && m.shape_of.empty());
    const auto& stages = spec_.stages;
    const auto served = [](const StageSpec& stage) {
      return !has_own_model(stage) ||
             (stage.kind == "collect" && resources_of_job(stage, "generate") != nullptr);
    };
    const auto samples = [](const StageSpec& stage) {
      return has_own_model(stage) && stage.kind != "collect" &&
             resources_of_job(stage, "generate") != nullptr;
    };
    const bool all_served = std::any_of(stages.begin(), stages.end(), served) &&
                            std::none_of(stages.begin(), stages.end(), samples);
    if (known && !all_served && defaults.sample.max_tokens >= m.context)
      map.mistake("sample",
                  fmt::format("`max_tokens` {} leaves no room for a prompt in the model's context of {}",
                              defaults.sample.max_tokens, defaults.model.context));
  }

  // GPUs that the file gives to the stages together, and that none of them can use.
  void check_gpus_of_all(const Node& root) {
    const Node* resources = root.find("resources");
    if (!mistakes_.empty() || resources == nullptr || !resources->is_map()) return;
    const auto check = [&](const Node* holder, const std::vector<std::string>& jobs, const char* who) {
      if (holder == nullptr) return;
      int most = 0;
      for (const StageSpec& stage : spec_.stages)
        for (const std::string& job : jobs)
          most = std::max(most, holder == resources ? most_gpus_unnamed(stage, job) : most_gpus(stage, job));
      refuse_gpus(*holder, fmt::format("`resources`: the {} of these stages", who), most, idle_gpus_);
    };
    check(resources, {"measure", "train", "service"}, "jobs");
    check(resources->find("measure"), {"measure"}, "measure jobs");
    check(resources->find("train"), {"train"}, "train jobs");
    check(resources->find("generate"), {"generate"}, "generate jobs");
    check(resources->find("service"), {"service"}, "services");
  }

  // What a shard without a time limit may use cannot be told beforehand.
  void check_budget(const Node& raw) {
    if (spec_.budget.gpu_hours <= 0) return;
    for (const StageSpec& stage : spec_.stages)
      for (const StageJob& job : stage_jobs(stage)) {
        // With `device: auto` they may: a file that is good in one place is good in all.
        const bool asks = job.resources->gpus > 0 || (stage.device == "auto" && job.name == "measure");
        if (asks && job.resources->time_s <= 0)
          mistakes_.push_back(mistake_at(
              raw.find("budget")->place(),
              fmt::format("`budget`: the {} jobs of stage `{}` ask for GPUs and have no time limit", job.name,
                          stage.name),
              "give their `resources` a `time`"));
      }
  }

  void check_schema(MapReader& map) {
    const auto schema = map.text("schema");
    if (!schema) {
      if (!map.has("schema")) map.mistake("", "key `schema` is missing", std::string("schema: ") + kSchema);
    } else if (*schema != kSchema) {
      map.mistake("schema", fmt::format("schema `{}` is not known to this version", *schema),
                  std::string("schema: ") + kSchema);
    }
  }

  void read_stages(const Node& root, const StageSpec& defaults, bool has_dataset) {
    const Node* list = root.find("stages");
    if (list == nullptr || !list->is_sequence() || list->items().empty()) {
      mistakes_.push_back(mistake_at(
          list == nullptr ? root.place() : list->place(),
          list == nullptr ? "key `stages` is missing"
                          : "`stages`: expected a list of stages, found " +
                                (list->is_sequence() ? std::string("an empty one") : yaml::describe(*list))));
      return;
    }
    std::vector<Draft> drafts;
    std::map<std::string, int> lines;  // of the names so far
    std::vector<std::string> stated;
    for (const Node& raw : list->items()) {
      const auto node = with_name(raw);
      if (!node) continue;
      const std::string& name = node->find("name")->text();
      if (const auto [it, fresh] = lines.emplace(name, raw.place().line); !fresh) {
        mistakes_.push_back(mistake_at(node->find("name")->place(),
                                       fmt::format("two stages are named `{}`", name),
                                       fmt::format("the other begins in line {}", it->second)));
        continue;
      }
      stated.push_back(name);
      for (Draft& draft : read_stage(*node, defaults, {.params = &params_, .budget = &budget_}, mistakes_,
                                     notes_, idle_gpus_))
        drafts.push_back(std::move(draft));
      if (drafts.size() <= kMostPoints) continue;
      mistakes_.push_back(mistake_at(
          node->place(), fmt::format("with this one the stages have more than {} instances", kMostPoints)));
      return;
    }
    for (const Draft& draft : drafts) {
      const auto* command = std::get_if<CommandSettings>(&draft.spec.settings);
      if (has_dataset || draft.spec.kind == "service" || (command != nullptr && command->items != "tasks"))
        continue;
      mistakes_.push_back(mistake_at(root.place(), "key `dataset` is missing",
                                     fmt::format("stage `{}` works on its tasks", draft.spec.base_name)));
      break;
    }
    for (Draft& draft : drafts) files_.find(draft);
    spec_.stages = order_stages(std::move(drafts), stated, mistakes_);
    check_stages(spec_.stages, file_, mistakes_, idle_gpus_);
    for (StageSpec& stage : spec_.stages) files_.find(stage);
  }

  // The stage with its name's references replaced; nothing where it has no proper name.
  std::optional<Node> with_name(const Node& raw) {
    if (!raw.is_map()) {
      mistakes_.push_back(mistake_at(raw.place(), "a stage is a map, found " + yaml::describe(raw)));
      return std::nullopt;
    }
    const Node* name = raw.find("name");
    if (name == nullptr) {
      mistakes_.push_back(mistake_at(raw.place(), "a stage has no `name`"));
      return std::nullopt;
    }
    const auto before = mistakes_.size();
    const Node value = substitute(*name, {.params = &params_, .budget = &budget_}, mistakes_);
    if (mistakes_.size() > before) return std::nullopt;
    if (!value.is_scalar() || !is_identifier(value.text()) || value.text().size() > 64) {
      mistakes_.push_back(mistake_at(value.place(),
                                     fmt::format("{} is no name of a stage", yaml::describe(value)),
                                     "a letter, then letters, digits, _ and -"));
      return std::nullopt;
    }
    std::vector<Entry> entries = raw.entries();
    for (Entry& entry : entries)
      if (entry.key == "name") entry.value = value;
    return Node::map(raw.place(), std::move(entries));
  }

  LoadResult result() {
    LoadResult result;
    if (budget_.exceeded) mistakes_ = {*budget_.exceeded};
    result.mistakes = tidy(std::move(mistakes_));
    result.notes = tidy(std::move(notes_));
    if (result.mistakes.empty()) result.spec = std::move(spec_);
    return result;
  }

  // By place, each once: the instances of a matrix share their mistakes.
  static Diagnostics tidy(Diagnostics diagnostics) {
    // A value whose reference is broken stands nowhere, and what the readers say of it follows from that.
    std::erase_if(diagnostics, [](const Diagnostic& d) { return d.file.empty() && d.line == 0; });
    const auto key = [](const Diagnostic& d) { return std::tie(d.line, d.column, d.file, d.message); };
    std::stable_sort(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& a, const Diagnostic& b) { return key(a) < key(b); });
    diagnostics.erase(std::unique(diagnostics.begin(), diagnostics.end(),
                                  [&](const Diagnostic& a, const Diagnostic& b) { return key(a) == key(b); }),
                      diagnostics.end());
    return diagnostics;
  }

  fs::path file_;
  const LoadOptions& options_;
  const fs::path base_;  // what is relative begins here
  Diagnostics mistakes_, notes_;
  Diagnostics idle_gpus_;  // mistakes, too: GPUs that are asked for and that no program could use
  std::map<std::string, Node> params_;
  ReferenceBudget budget_;
  std::optional<Diagnostic> no_dataset_;  // its folder is not there
  NamedFiles files_{file_, options_, base_, mistakes_, notes_};
  WorkflowSpec spec_;
};

}  // namespace

LoadResult load_workflow_text(std::string_view text, const fs::path& file, const LoadOptions& options) {
  return Loader(file, options).load(text);
}

LoadResult load_workflow(const fs::path& file, const LoadOptions& options) {
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error& e) {
    return {std::nullopt, {{"", 0, 0, e.what(), ""}}, {}};
  }
  return load_workflow_text(text, file, options);
}

}  // namespace warpsmith::workflow
