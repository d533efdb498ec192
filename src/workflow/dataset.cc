#include "dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tables.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"

#include "warpsmith/yaml/node.h"

namespace warpsmith::workflow {

namespace {

using yaml::MapReader;
using yaml::mistake_at;
using yaml::Node;

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

class DatasetReader {
 public:
  DatasetReader(const Node& node, const LoadOptions& options, const fs::path& base, DatasetSettings& dataset,
                Diagnostics& mistakes)
      : node_(node), options_(options), base_(base), dataset_(dataset), mistakes_(mistakes) {}

  std::optional<Diagnostic> read() {
    MapReader map(node_, "`dataset`", mistakes_);
    synthesizes_ = map.has("synthesize");
    find_tasks(map);
    read_ids(map, "heldout_combination", dataset_.heldout_combination);
    read_ids(map, "heldout_operation", dataset_.heldout_operation);
    read_ids(map, "heldout_length", dataset_.heldout_length);
    read_ids(map, "sft_only", dataset_.sft_only);
    const bool all_people = read_people(map);
    read_train(map);
    if (all_people)
      for (const std::string& id : of_people_)
        if (!used_.contains(id)) dataset_.heldout_people.push_back(id);
    map.finish();
    return no_folder_;
  }

 private:
  // The folder, and which tasks lie in it.
  void find_tasks(MapReader& map) {
    const bool kernelbench = map.has("kernelbench");
    if (kernelbench) dataset_.folder = read_kernelbench(map);
    if (const auto folder = map.text("folder", {.required = !kernelbench && !synthesizes_}))
      dataset_.folder = (base_ / *folder).lexically_normal();
    if (!dataset_.folder.empty() && options_.check_files) {
      if (std::error_code error; !fs::is_directory(dataset_.folder, error)) {
        no_folder_ = mistake_at(node_.find("folder")->place(),
                                fmt::format("there is no folder {}", dataset_.folder.string()),
                                "relative to the folder of this file");
      } else {
        known_ = task_ids(dataset_.folder);
        if (known_.empty())
          map.mistake("folder", fmt::format("{} holds no task", dataset_.folder.string()),
                      "a task is a folder with a task.yaml");
      }
    }
    if (!synthesizes_ || no_folder_) return;
    of_people_ = std::exchange(known_, {});
    dataset_.folder = read_synthesize(map, dataset_.folder);
    if (!dataset_.folder.empty()) known_ = task_ids(dataset_.folder);
    std::set_difference(known_.begin(), known_.end(), of_people_.begin(), of_people_.end(),
                        std::back_inserter(synthesised_));
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
      return options_.kernelbench((base_ / *path).lexically_normal(), levels);
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

  // The list of task ids at `key`. Only tasks of people are named beside synthesised ones.
  void read_ids(MapReader& map, const char* key, std::vector<std::string>& ids) {
    const auto list = map.value(key);
    if (!list || list->is_null()) return;
    if (!list->is_sequence()) {
      mistakes_.push_back(mistake_at(list->place(), fmt::format("`{}`: expected a list of task ids, found {}",
                                                                key, yaml::describe(*list))));
      return;
    }
    const std::vector<std::string>& may_be = synthesizes_ ? of_people_ : known_;
    for (const Node& item : list->items()) {
      const auto id = yaml::read_text(item, fmt::format("`{}`", key), mistakes_);
      if (!id) continue;
      if ((synthesizes_ || !known_.empty()) && !std::binary_search(may_be.begin(), may_be.end(), *id))
        mistakes_.push_back(mistake_at(item.place(), fmt::format("`{}`: there is no task `{}`", key, *id),
                                       yaml::suggest(*id, may_be)));
      else if (const auto [it, fresh] = used_.emplace(*id, key); !fresh)
        mistakes_.push_back(mistake_at(item.place(),
                                       fmt::format("`{}`: task `{}` stands here twice", key, *id),
                                       fmt::format("it is in `{}`", it->second)));
      else
        ids.push_back(*id);
    }
  }

  // Whether it says `all`: those that no other list names.
  bool read_people(MapReader& map) {
    const Node* people = node_.find("heldout_people");
    if (people == nullptr || !people->is_scalar() || people->text() != "all") {
      read_ids(map, "heldout_people", dataset_.heldout_people);
      return false;
    }
    if (!synthesizes_ || (of_people_.empty() && !no_folder_))
      map.mistake("heldout_people", "`heldout_people: all` needs `synthesize`, and `folder` or `kernelbench`",
                  "or a list of tasks");
    map.expect("heldout_people");
    return true;
  }

  void read_train(MapReader& map) {
    const Node* train = node_.find("train");
    if (train == nullptr || !train->is_scalar() || train->is_null()) {
      read_ids(map, "train", dataset_.train);
      read_splits(synthesised_);
      if (map.usable() && !synthesizes_ &&
          (train == nullptr || train->is_null() || (train->is_sequence() && train->items().empty())))
        map.mistake("train", "`dataset` names no task to train on", "train: all, or a list of task ids");
    } else if (synthesizes_) {
      map.mistake("train", "`train` beside `synthesize`: expected a list of tasks in `folder`",
                  "synthesised tasks need not be named");
      map.expect("train");
    } else if (train->text() == "split") {
      map.expect("train");
      if (used_.empty())
        read_splits(known_);
      else
        map.mistake("train", "`train: split` takes held-out tasks from their files",
                    "leave the other lists out");
    } else if (train->text() == "all") {
      map.expect("train");
      for (const std::string& id : known_)
        if (!used_.contains(id)) dataset_.train.push_back(id);
    } else {
      read_ids(map, "train", dataset_.train);
    }
  }

  // Each task where its file says; what is `extra` there is left out.
  void read_splits(const std::vector<std::string>& known) {
    const std::pair<const char*, std::vector<std::string>*> groups[] = {
        {"train", &dataset_.train},
        {"heldout_combination", &dataset_.heldout_combination},
        {"heldout_operation", &dataset_.heldout_operation},
        {"heldout_length", &dataset_.heldout_length},
        {"sft_only", &dataset_.sft_only}};
    for (const std::string& id : known) {
      const std::string split = task_split(dataset_.folder / id);
      const auto is_split = [&](const auto& group) { return split == group.first; };
      if (split != "extra" && std::none_of(std::begin(groups), std::end(groups), is_split))
        mistakes_.push_back(
            {(dataset_.folder / id / "task.yaml").string(), 0, 0,
             fmt::format("`train: split`: the task's `split` is `{}`", split),
             "train, heldout_combination, heldout_operation, heldout_length, sft_only or extra"});
      for (const auto& [name, ids] : groups)
        if (split == name) ids->push_back(id);
    }
  }

  const Node& node_;
  const LoadOptions& options_;
  const fs::path& base_;
  DatasetSettings& dataset_;
  Diagnostics& mistakes_;
  bool synthesizes_ = false;
  // Sorted. Where tasks are synthesised, `known_` has these and those of people.
  std::vector<std::string> known_, of_people_, synthesised_;
  std::map<std::string, std::string> used_;  // task -> key
  std::optional<Diagnostic> no_folder_;
};

}  // namespace

std::optional<Diagnostic> read_dataset(const Node& node, const LoadOptions& options, const fs::path& base,
                                       DatasetSettings& dataset, Diagnostics& mistakes) {
  return DatasetReader(node, options, base, dataset, mistakes).read();
}

}  // namespace warpsmith::workflow
