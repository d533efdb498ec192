#include "warpsmith/workflow/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "stage.h"
#include "substitute.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/devices.h"
#include "warpsmith/workflow/hack_database.h"
#include "warpsmith/workflow/other_run.h"

namespace warpsmith::workflow {

namespace {

using yaml::Entry;
using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

constexpr const char* kSchema = "warpsmith.workflow/1";
constexpr int kMostLevel = 3;  // of KernelBench

// Folders below `folder` that hold a task.yaml: the task ids.
std::vector<std::string> task_ids(const fs::path& folder) {
  std::vector<std::string> ids;
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (fs::exists(it->path() / "task.yaml", error)) ids.push_back(it->path().filename().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

// As the task's file says it; empty where it does not. What else is wrong with the file is told when it is
// read.
std::string task_split(const fs::path& task) {
  Diagnostics elsewhere;
  const Node root = yaml::load_file(task / "task.yaml", elsewhere);
  const Node* split = root.is_map() ? root.find("split") : nullptr;
  return split != nullptr && split->is_scalar() ? split->text() : "";
}

class Loader {
 public:
  Loader(const fs::path& file, const LoadOptions& options) : file_(file), options_(options) {}

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
    if (model != nullptr) find_model(defaults.model, model->place());
    const bool has_dataset = map.has("dataset");
    if (const auto dataset = map.value("dataset")) read_dataset(*dataset, defaults.dataset);
    map.finish();
    read_stages(raw, defaults, has_dataset);
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

  // `kernelbench: PATH` and `levels: [1, 2]`. Returns the folder of its tasks; empty: there is a mistake.
  fs::path read_kernelbench(MapReader& map) {
    const auto path = map.text("kernelbench");
    std::vector<int> levels;
    for (const Node& item : map.sequence("levels"))
      if (const auto level = yaml::read_integer(item, "a level of KernelBench", mistakes_)) {
        if (*level < 1 || *level > kMostLevel)
          mistakes_.push_back(mistake_at(item.place(), "`levels`: 1, 2 or 3"));
        levels.push_back(static_cast<int>(*level));
      }
    if (!path || path->empty()) return {};
    if (map.has("folder")) {
      map.mistake("kernelbench", "`kernelbench` and `folder` stand together", "keep one of them");
      return {};
    }
    if (!options_.kernelbench) {
      map.mistake("kernelbench", "`kernelbench`: its tasks cannot be made here");
      return {};
    }
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    try {
      return options_.kernelbench((base_folder() / *path).lexically_normal(), levels);
    } catch (const Error& error) {
      map.mistake("kernelbench", std::string("`kernelbench`: ") + error.what());
      return {};
    }
  }

  // `synthesize: {…}`. Its tasks lie in a folder of their own, with those of `people` beside them. Returns
  // that folder; empty: there is a mistake.
  fs::path read_synthesize(MapReader& map, const fs::path& people) {
    const auto value = map.value("synthesize");
    SynthesizeSettings settings;
    const std::size_t before = mistakes_.size();
    if (!value->is_null()) read_map(synthesize_keys(), *value, "`synthesize`", settings, mistakes_);
    if (!options_.synthesize) map.mistake("synthesize", "`synthesize`: its tasks cannot be made here");
    if (mistakes_.size() > before) return {};
    try {
      return options_.synthesize(settings, people);
    } catch (const Error& error) {
      map.mistake("synthesize", std::string("`synthesize`: ") + error.what());
      return {};
    }
  }

  void read_dataset(const Node& node, DatasetSettings& dataset) {
    MapReader map(node, "`dataset`", mistakes_);
    std::vector<std::string> known, of_people, synthesised;
    bool readable = false;
    const bool kernelbench = map.has("kernelbench"), synthesize = map.has("synthesize");
    if (kernelbench) dataset.folder = read_kernelbench(map);
    if (const auto folder = map.text("folder", {.required = !kernelbench && !synthesize}))
      dataset.folder = (base_folder() / *folder).lexically_normal();
    if (!dataset.folder.empty()) {
      std::error_code error;
      readable = options_.check_files && fs::is_directory(dataset.folder, error);
      if (options_.check_files && !readable)
        no_dataset_ = mistake_at(node.find("folder")->place(),
                                 fmt::format("there is no folder {}", dataset.folder.string()),
                                 "relative to the folder of this file");
      if (readable) known = task_ids(dataset.folder);
      if (readable && known.empty())
        map.mistake("folder", fmt::format("{} holds no task", dataset.folder.string()),
                    "a task is a folder with a task.yaml");
    }
    if (synthesize && !no_dataset_) {
      of_people = std::exchange(known, {});
      dataset.folder = read_synthesize(map, dataset.folder);
      if (!dataset.folder.empty()) known = task_ids(dataset.folder);
      std::set_difference(known.begin(), known.end(), of_people.begin(), of_people.end(),
                          std::back_inserter(synthesised));
    }
    std::map<std::string, std::string> used;  // task -> key
    const auto read_ids = [&](const char* key, std::vector<std::string>& ids) {
      const auto list = map.value(key);
      if (!list || list->is_null()) return;
      if (!list->is_sequence()) {
        mistakes_.push_back(mistake_at(
            list->place(),
            fmt::format("`{}`: expected a list of task ids, found {}", key, yaml::describe(*list))));
        return;
      }
      for (const Node& item : list->items()) {
        const auto id = yaml::read_text(item, fmt::format("`{}`", key), mistakes_);
        if (!id) continue;
        const std::vector<std::string>& may_be = synthesize ? of_people : known;
        if ((synthesize || !known.empty()) && !std::binary_search(may_be.begin(), may_be.end(), *id))
          mistakes_.push_back(mistake_at(item.place(), fmt::format("`{}`: there is no task `{}`", key, *id),
                                         yaml::suggest(*id, may_be)));
        else if (const auto [it, fresh] = used.emplace(*id, key); !fresh)
          mistakes_.push_back(mistake_at(item.place(),
                                         fmt::format("`{}`: task `{}` stands here twice", key, *id),
                                         fmt::format("it is in `{}`", it->second)));
        else
          ids.push_back(*id);
      }
    };
    read_ids("heldout_combination", dataset.heldout_combination);
    read_ids("heldout_operation", dataset.heldout_operation);
    read_ids("heldout_length", dataset.heldout_length);
    read_ids("sft_only", dataset.sft_only);
    const Node* people = node.find("heldout_people");
    const bool all_people = people != nullptr && people->is_scalar() && people->text() == "all";
    if (all_people && (!synthesize || (of_people.empty() && !no_dataset_)))
      map.mistake("heldout_people", "`heldout_people: all` needs `synthesize`, and `folder` or `kernelbench`",
                  "or a list of tasks");
    if (all_people)
      map.expect("heldout_people");
    else
      read_ids("heldout_people", dataset.heldout_people);
    const Node* train = node.find("train");
    const bool is_word = train != nullptr && train->is_scalar() && !train->is_null();
    if (is_word && synthesize) {
      map.mistake("train", "`train` beside `synthesize`: expected a list of tasks in `folder`",
                  "synthesised tasks need not be named");
      map.expect("train");
    } else if (is_word && train->text() == "split") {
      map.expect("train");
      if (!used.empty())
        map.mistake("train", "`train: split` takes held-out tasks from their files",
                    "leave the other lists out");
      else
        read_splits(known, dataset);
    } else if (is_word && train->text() == "all") {
      map.expect("train");
      for (const std::string& id : known)
        if (!used.contains(id)) dataset.train.push_back(id);
    } else {
      read_ids("train", dataset.train);
      read_splits(synthesised, dataset);
      if (all_people)
        for (const std::string& id : known)
          if (!used.contains(id) && !std::binary_search(synthesised.begin(), synthesised.end(), id))
            dataset.heldout_people.push_back(id);
      if (map.usable() && !synthesize &&
          (train == nullptr || train->is_null() || (train->is_sequence() && train->items().empty())))
        map.mistake("train", "`dataset` names no task to train on", "train: all, or a list of task ids");
    }
    map.finish();
  }

  // Each task where its file says; what is `extra` there is left out.
  void read_splits(const std::vector<std::string>& known, DatasetSettings& dataset) {
    const std::pair<const char*, std::vector<std::string>*> groups[] = {
        {"train", &dataset.train},
        {"heldout_combination", &dataset.heldout_combination},
        {"heldout_operation", &dataset.heldout_operation},
        {"heldout_length", &dataset.heldout_length},
        {"sft_only", &dataset.sft_only}};
    for (const std::string& id : known) {
      const std::string split = task_split(dataset.folder / id);
      const auto is_split = [&](const auto& group) { return split == group.first; };
      if (split != "extra" && std::none_of(std::begin(groups), std::end(groups), is_split))
        mistakes_.push_back(
            {(dataset.folder / id / "task.yaml").string(), 0, 0,
             fmt::format("`train: split`: the task's `split` is `{}`", split),
             "train, heldout_combination, heldout_operation, heldout_length, sft_only or extra"});
      for (const auto& [name, ids] : groups)
        if (split == name) ids->push_back(id);
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
    for (Draft& draft : drafts) {
      if (draft.hacks)
        draft.spec.hacks = find_hacks(std::get<ContrastiveSettings>(draft.spec.settings).hacks, *draft.hacks);
      if (draft.checker_hacks)
        draft.spec.checker->known = find_hacks(draft.spec.checker->hacks, *draft.checker_hacks);
      for (EndpointSettings* endpoint : endpoints_of(draft.spec)) find_certificates(draft, *endpoint);
      if (draft.model) find_model(draft.spec.model, *draft.model);
      if (const auto* command = std::get_if<CommandSettings>(&draft.spec.settings))
        check_files_of(draft, command->argv);
      if (const auto* service = std::get_if<ServiceSettings>(&draft.spec.settings))
        check_files_of(draft, service->argv);
    }
    spec_.stages = order_stages(std::move(drafts), stated, mistakes_);
    for (StageSpec& stage : spec_.stages) {
      check_model_memory(stage);
      check_states(stage);
      if (stage.device == "cpu" && runs_on_gpus_alone(stage))
        mistakes_.push_back(
            {file_.string(), stage.line, 1,
             fmt::format("stage `{}`: programs of tier `{}` run on GPUs alone, and `device` is cpu",
                         stage.base_name, stage.prompt.answer),
             "device: auto, or a GPU type; or prompt: {answer: plan}"});
      if (stage.device == "cpu" && stage.measure.shards_a_gpu > 1)
        idle_gpus_.push_back({file_.string(), stage.line, 1,
                              fmt::format("stage `{}`: `shards_a_gpu` is {}, and `device` is cpu",
                                          stage.base_name, stage.measure.shards_a_gpu),
                              "leave it out, or device: auto"});
      for (const StageJob& job : stage_jobs(stage))
        if (job.resources->gpus == 0 && !job.resources->gpu_type.empty() && !runs_program(stage.kind) &&
            (job.name == "train" || job.name == "generate"))
          idle_gpus_.push_back({file_.string(), stage.line, 1,
                                fmt::format("stage `{}`: its {} jobs have a GPU type, `{}`, and no GPU",
                                            stage.base_name, job.name, job.resources->gpu_type),
                                fmt::format("{}: {{gpus: 1}}, or leave `gpu_type` out", job.name)});
      if (stage.lora.rank > 0 && trains(stage) && stage.model.pretrained &&
          !stage.model.pretrained->takes_lora)
        mistakes_.push_back({file_.string(), stage.line, 1,
                             fmt::format("stage `{}`: `lora` is not supported for models of family {}",
                                         stage.base_name, stage.model.pretrained->family),
                             "leave it out"});
      if (stage.lora.rank > 0 && stage.kind == "sft" && stage.model.from.empty() && !goes_on(stage))
        mistakes_.push_back({file_.string(), stage.line, 1,
                             fmt::format("stage `{}`: `lora` adds to weights that somebody trained, and this "
                                         "model's are random",
                                         stage.base_name),
                             "model: {from: FOLDER}, or leave `lora` out"});
      if (auto* command = std::get_if<CommandSettings>(&stage.settings)) find_files(stage, command->argv);
      if (auto* service = std::get_if<ServiceSettings>(&stage.settings)) find_files(stage, service->argv);
      if (auto* measure = std::get_if<MeasureSettings>(&stage.settings)) find_run(stage, *measure);
    }
  }

  // Words of `argv` that begin with ./ or ../ are files beside the workflow.
  std::optional<fs::path> file_beside(const std::string& word) const {
    if (!word.starts_with("./") && !word.starts_with("../")) return std::nullopt;
    return (base_folder() / word).lexically_normal();
  }

  void check_files_of(const Draft& draft, const std::vector<std::string>& argv) {
    if (!options_.check_files) return;
    const bool placed = draft.argv.size() == argv.size();  // not where a word was no text
    for (std::size_t i = 0; i < argv.size(); ++i) {
      const auto path = file_beside(argv[i]);
      if (std::error_code error; path && !fs::exists(*path, error))
        mistakes_.push_back(mistake_at(placed ? draft.argv[i] : draft.place,
                                       fmt::format("`argv`: there is no file {}", path->string()),
                                       "relative to the folder of this file"));
    }
  }

  // They are made absolute, and their contents hashed.
  void find_files(StageSpec& stage, std::vector<std::string>& argv) {
    for (std::string& word : argv) {
      const auto path = file_beside(word);
      if (!path) continue;
      if (std::error_code error; fs::is_regular_file(*path, error))
        stage.resolved["files"][word] = sha256_file_hex(*path);
      word = path->string();
    }
  }

  // `candidates_of_run` is made absolute. A run that is not there yet is no mistake: the workflow may be
  // checked before it is made.
  void find_run(const StageSpec& stage, MeasureSettings& measure) {
    if (measure.candidates_of_run.empty()) return;
    const fs::path folder = without_end((base_folder() / measure.candidates_of_run).lexically_normal());
    const std::string lack = options_.check_files ? lack_of_run(folder) : "";
    if (!lack.empty())
      notes_.push_back({file_.string(), stage.line, 1, "`candidates_of_run`: " + lack,
                        fmt::format("`{}` makes it; until then the stage cannot run",
                                    command_for_run(folder, fs::absolute(file_)))});
    measure.candidates_of_run = folder.string();
  }

  // `hacks` is made absolute, and its cases are read now: the database may change while the workflow runs.
  // Null: it has mistakes.
  std::shared_ptr<const HackDatabase> find_hacks(std::string& named, const yaml::Place& place) {
    const fs::path folder = without_end((base_folder() / named).lexically_normal());
    named = folder.string();
    if (!options_.check_files) return nullptr;
    const auto [known, fresh] = hacks_.emplace(folder, nullptr);  // the instances of a matrix share theirs
    if (std::error_code error; !fs::is_directory(folder, error)) {
      mistakes_.push_back(
          mistake_at(place, fmt::format("`hacks`: there is no folder {}", folder.string()),
                     "relative to the folder of this file; `warpsmith hacks RUN --into FOLDER` makes one"));
    } else if (fresh) {
      if (auto database = load_hack_database(folder, mistakes_))
        known->second = std::make_shared<const HackDatabase>(std::move(*database));
    }
    return known->second;
  }

  // `ca_file` is made absolute.
  void find_certificates(const Draft& draft, EndpointSettings& endpoint) {
    std::string& named = endpoint.ca_file;
    if (named.empty()) return;
    const fs::path file = (base_folder() / named).lexically_normal();
    named = file.string();
    if (std::error_code error; options_.check_files && !fs::is_regular_file(file, error))
      mistakes_.push_back(mistake_at(draft.place, fmt::format("`ca_file`: there is no file {}", named),
                                     "relative to the folder of this file"));
  }

  // The folder of a model is made absolute and looked at.
  void find_model(ModelSettings& model, const yaml::Place& place) {
    std::string& named = model.from.empty() ? model.shape_of : model.from;
    if (named.empty()) return;
    const fs::path folder = without_end((base_folder() / named).lexically_normal());
    named = folder.string();
    if (!options_.check_files) return;
    const bool weights = !model.from.empty();
    const int context = model.context_given ? model.context : 0;
    const auto [known, fresh] = models_.emplace(std::tuple(folder, weights, context), nullptr);
    if (fresh) {
      const std::string key = weights ? "from" : "shape_of";
      try {
        if (!options_.pretrained) throw Error("a folder of a model cannot be looked at here");
        known->second =
            std::make_shared<const PretrainedModel>(options_.pretrained(folder, weights, context));
        for (const std::string& note : known->second->notes)
          notes_.push_back(mistake_at(place, fmt::format("`{}`: {}: {}", key, folder.string(), note)));
      } catch (const Error& error) {
        mistakes_.push_back(mistake_at(place, fmt::format("`{}`: {}", key, error.what()),
                                       "a Hugging Face folder, relative to the folder of this file"));
      }
    }
    model.pretrained = known->second;
    if (model.pretrained) model.context = model.pretrained->context;
  }

  // Whether it begins with the model of a stage that it needs.
  bool goes_on(const StageSpec& stage) const {
    return std::any_of(spec_.stages.begin(), spec_.stages.end(), [&](const StageSpec& other) {
      return std::find(stage.needs.begin(), stage.needs.end(), other.name) != stage.needs.end() &&
             trains(other);
    });
  }

  void check_states(const StageSpec& stage) {
    if (!trains(stage)) return;
    const OptimizerSettings& o = stage.optimizer;
    const auto wrong = [&](const std::string& what, const char* hint) {
      mistakes_.push_back(
          {file_.string(), stage.line, 1, fmt::format("stage `{}`: {}", stage.base_name, what), hint});
    };
    if (o.states == "nvme" && o.states_folder.empty())
      wrong("`states: nvme` wants `states_folder`", "optimizer: {states: nvme, states_folder: /scratch}");
    if (!o.states_folder.empty() && !fs::path(o.states_folder).is_absolute())
      wrong(fmt::format("`states_folder`: `{}` is no absolute path", o.states_folder), "/scratch");
    if (!o.states_folder.empty() && (o.states == "gpu" || o.states == "host"))
      wrong(fmt::format("`states: {}` writes no files", o.states), "leave `states_folder` out");
    if (o.states == "gpu" && stage.train.gpus == 0)
      wrong("`states: gpu`, and its train jobs have no GPU", "resources: {train: {gpus: 1}}");
    if (o.states == "host" && stage.train.gpus == 0)
      wrong("`states: host`, and its train jobs have no GPU, so they lie there anyway", "leave it out");
  }

  // What is certain of the memory of a folder's model: its weights, and what training keeps for each.
  void check_model_memory(const StageSpec& stage) {
    if (!stage.model.pretrained || !has_own_model(stage)) return;
    const auto parameters = static_cast<std::uint64_t>(stage.model.pretrained->parameters);
    const auto check = [&](const char* job, std::uint64_t bytes_each, const char* what) {
      for (const StageJob& one : stage_jobs(stage)) {
        const std::uint64_t limit = one.resources->memory_bytes, needed = parameters * bytes_each;
        if (one.name != job || limit == 0 || limit >= needed) continue;
        mistakes_.push_back(
            {file_.string(), stage.line, 1,
             fmt::format("stage `{}`: its {} jobs have {}, and {} for {} parameters takes {}",
                         stage.base_name, job, format_size(limit), what, parameters, format_size(needed)),
             fmt::format("resources: {{{}: {{memory: …}}}}", job)});
      }
    };
    const auto* contrastive = std::get_if<ContrastiveSettings>(&stage.settings);
    const bool two = contrastive != nullptr && contrastive->kl > 0;
    // On a GPU the host holds the weights alone.
    if (stage.lora.rank > 0 || stage.train.gpus > 0)
      check("train", 4, "weights in float32");
    else
      check("train", two ? 20 : 16,
            two ? "weights, gradients, two moments and the reference's weights in float32"
                : "weights, gradients and two moments in float32");
    if (!stage.policy) check("generate", 4, "weights in float32");
  }

  // "runs/x/" -> "runs/x"
  static fs::path without_end(const fs::path& folder) {
    return folder.has_filename() ? folder : folder.parent_path();
  }

  fs::path base_folder() const {
    return options_.base_folder.empty() ? fs::absolute(file_).parent_path()
                                        : fs::absolute(options_.base_folder);
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
  Diagnostics mistakes_, notes_;
  Diagnostics idle_gpus_;  // mistakes, too: GPUs that are asked for and that no program could use
  std::map<std::string, Node> params_;
  ReferenceBudget budget_;
  std::optional<Diagnostic> no_dataset_;                           // its folder is not there
  std::map<fs::path, std::shared_ptr<const HackDatabase>> hacks_;  // by folder; null: it has mistakes
  // By folder, whether with weights, and context; null: it has mistakes.
  std::map<std::tuple<fs::path, bool, int>, std::shared_ptr<const PretrainedModel>> models_;
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
