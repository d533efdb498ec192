#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "warpsmith/base/files.h"
#include "warpsmith/base/random.h"
#include "warpsmith/base/text.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::workflow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const fs::path kSource = WARPSMITH_SOURCE_DIR;

std::vector<std::string> lines_of(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& d : diagnostics) lines.push_back(to_string(d));
  return lines;
}

// tests/workflow/cases/*.txt: cases of "=== NAME", the workflow, "---", then the mistakes and notes ("note:
// …"), a line each; none: the file is good. "--set X" lines directly under the name are overrides. The
// dataset folder `tasks` has the tasks add, mul and softmax.
struct Case {
  std::string name, text;
  std::vector<std::string> overrides, expected;
};

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSource / "tests/workflow/cases"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    bool in_mistakes = false;
    for (const std::string& line : split_lines(read_file(file))) {
      if (line.starts_with("=== ")) {
        cases.push_back({line.substr(4), "", {}, {}});
        in_mistakes = false;
      } else if (line == "---") {
        in_mistakes = true;
      } else if (cases.empty()) {
        continue;  // the file's own heading
      } else if (in_mistakes) {
        if (!line.empty()) cases.back().expected.push_back(line);
      } else if (line.starts_with("--set ") && cases.back().text.empty()) {
        cases.back().overrides.push_back(line.substr(6));
      } else {
        cases.back().text += line + "\n";
      }
    }
  }
  return cases;
}

// A dataset folder with empty task files: loading a workflow looks at names only.
fs::path make_base() {
  const fs::path base = fs::path(testing::TempDir()) / "warpsmith_workflow_test";
  for (const char* task : {"add", "mul", "softmax"}) {
    make_folders(base / "tasks" / task);
    write_file_atomic(base / "tasks" / task / "task.yaml", "");
  }
  make_folders(base / "empty");
  for (const char* run : {"empty", "full"}) {
    make_folders(base / "runs" / run / "stages/a/0a1b2c3d");
    write_file_atomic(base / "runs" / run / "run.json", R"({"workflow_file": "/lab/first.yaml"})");
  }
  write_file_atomic(base / "runs/full/stages/a/0a1b2c3d/output.json", "{}");
  make_folders(base / "hacks");
  make_folders(base / "broken_hacks/one");
  write_file_atomic(base / "broken_hacks/one/case.yaml", "schema: warpsmith.hack/1\nkind: x: y\n");
  return base;
}

LoadResult load(const std::string& text, std::vector<std::string> overrides = {}) {
  return load_workflow_text(text, "w.yaml",
                            {.overrides = std::move(overrides), .seed = {}, .base_folder = make_base()});
}

WorkflowSpec good(const std::string& text, std::vector<std::string> overrides = {}) {
  LoadResult result = load(text, std::move(overrides));
  EXPECT_THAT(lines_of(result.mistakes), IsEmpty());
  if (!result.spec) throw Error("the workflow has mistakes");
  return *result.spec;
}

std::vector<std::string> names(const WorkflowSpec& spec) {
  std::vector<std::string> out;
  for (const StageSpec& stage : spec.stages) out.push_back(stage.name);
  return out;
}

const std::string kHead =
    "schema: warpsmith.workflow/1\nname: w\ndataset: {folder: tasks, train: [add, mul]}\n";

TEST(WorkflowCases, MessagesAreAsWritten) {
  const std::vector<Case> cases = read_cases();
  ASSERT_GE(cases.size(), 30u);
  const std::string base = make_base().string();
  for (const Case& c : cases) {
    const LoadResult result = load(c.text, c.overrides);
    std::vector<std::string> lines = lines_of(result.mistakes);
    for (const std::string& note : lines_of(result.notes)) lines.push_back("note: " + note);
    for (std::string& line : lines)
      for (auto at = line.find(base); at != std::string::npos; at = line.find(base))
        line.replace(at, base.size(), "BASE");
    EXPECT_EQ(lines, c.expected) << "case: " << c.name;
    EXPECT_EQ(result.spec.has_value(), result.mistakes.empty()) << "case: " << c.name;
    if (std::getenv("WARPSMITH_SHOW_CASES") != nullptr)
      for (const std::string& line : lines) std::printf("=== %s\n%s\n", c.name.c_str(), line.c_str());
  }
}

// `dataset: {train: split}`: each task where its file says, and what no group is named is told.
TEST(Workflow, TasksAreSplitAsTheirFilesSay) {
  const fs::path base = fs::path(testing::TempDir()) / "warpsmith_split_test";
  for (const auto& [task, split] : std::vector<std::pair<std::string, std::string>>{
           {"a", "train"}, {"b", "sft_only"}, {"c", "heldout_length"}, {"d", "extra"}, {"e", "held_out"}}) {
    make_folders(base / "tasks" / task);
    write_file_atomic(base / "tasks" / task / "task.yaml", "split: " + split + "\n");
  }
  const std::string text =
      "schema: warpsmith.workflow/1\nname: w\ndataset: {folder: tasks, train: split}\n"
      "stages: [{name: c, kind: collect}]\n";
  LoadOptions options;
  options.base_folder = base;
  EXPECT_THAT(lines_of(load_workflow_text(text, "w.yaml", options).mistakes),
              ElementsAre((base / "tasks/e/task.yaml").string() +
                          ": `train: split`: the task's `split` is `held_out` (train, heldout_combination, "
                          "heldout_operation, heldout_length, sft_only or extra)"));
  fs::remove_all(base / "tasks/e");
  const LoadResult result = load_workflow_text(text, "w.yaml", options);
  ASSERT_TRUE(result.spec);
  const DatasetSettings& dataset = result.spec->stages[0].dataset;
  EXPECT_THAT(dataset.train, ElementsAre("a"));
  EXPECT_THAT(dataset.sft_only, ElementsAre("b"));
  EXPECT_THAT(dataset.heldout_length, ElementsAre("c"));
  EXPECT_THAT(dataset.ids(), ElementsAre("a", "b", "c"));
}

// Synthesised tasks lie beside those of `folder`, whose lists say what these are for.
// As options of `tasks synthesize` have them.
TEST(SynthesizeKeys, AreSetByWhatAFileSays) {
  SynthesizeSettings settings;
  set_at_key(settings, "count", "7");
  set_at_key(settings, "branches", "30%");
  set_at_key(settings, "families", "[pooling,chains]");
  EXPECT_EQ(settings.count, 7);
  EXPECT_EQ(settings.branches, 0.3);
  EXPECT_EQ(settings.families, (std::vector<std::string>{"pooling", "chains"}));
  for (const auto& [key, value] :
       {std::pair("count", "0"), {"count", "5.5"}, {"branches", "120%"}, {"families", "[poling]"}})
    EXPECT_THROW(set_at_key(settings, key, value), Error) << key << " " << value;
  EXPECT_THROW(set_at_key(settings, "cont", "7"), Error);
  EXPECT_EQ(settings.count, 7);
  for (const SettingKey& key : synthesize_setting_keys())
    EXPECT_NO_THROW(set_at_key(settings, key.name, key.standard.dump())) << key.name;
}

TEST(Workflow, SynthesisedTasksAreSplitBesideThoseOfAFolder) {
  const fs::path base = make_base(), made = fs::path(testing::TempDir()) / "warpsmith_made_test";
  for (const char* task : {"add", "mul", "softmax"}) make_folders(made / task);
  for (const auto& [task, split] : std::vector<std::pair<std::string, std::string>>{
           {"add", "extra"}, {"mul", "train"}, {"softmax", "train"}, {"s1", "train"}, {"s2", "sft_only"}}) {
    make_folders(made / task);
    write_file_atomic(made / task / "task.yaml", "split: " + split + "\n");
  }
  SynthesizeSettings asked;
  LoadOptions options;
  options.base_folder = base;
  options.overrides = {"dataset.synthesize.split_seed=7"};
  options.synthesize = [&](const SynthesizeSettings& settings, const fs::path& people) {
    asked = settings;
    EXPECT_TRUE(people == base / "tasks" || people.empty()) << people;
    return made;
  };
  const auto load = [&](const std::string& dataset) {
    return load_workflow_text("schema: warpsmith.workflow/1\nname: w\ndataset: " + dataset +
                                  "\nstages: [{name: c, kind: collect}]\n",
                              "w.yaml", options);
  };
  for (const char* young : {"families", "branches", "half_precision", "strided"})
    EXPECT_FALSE(to_json(SynthesizeSettings{}).contains(young)) << "older caches are found by their digest";
  load("{synthesize: {families: [chains, pooling], branches: 30%, half_precision: 20%, strided: 10%}}");
  EXPECT_EQ(to_json(asked).at("families"), Json({"chains", "pooling"}));
  EXPECT_EQ(to_json(asked).at("branches"), 0.3);
  EXPECT_EQ(to_json(asked).at("half_precision"), 0.2);
  EXPECT_EQ(to_json(asked).at("strided"), 0.1);
  const LoadResult result =
      load("{folder: tasks, synthesize: {count: 3, sft_only: 9}, heldout_operation: [softmax]}");
  ASSERT_TRUE(result.spec) << testing::PrintToString(lines_of(result.mistakes));
  EXPECT_EQ(asked.count, 3);
  EXPECT_EQ(asked.sft_only, 9);
  EXPECT_EQ(asked.split_seed, 7u);
  const DatasetSettings& dataset = result.spec->stages[0].dataset;
  EXPECT_EQ(dataset.folder, made);
  EXPECT_THAT(dataset.train, ElementsAre("s1")) << "tasks of the folder are where the lists say";
  EXPECT_THAT(dataset.sft_only, ElementsAre("s2"));
  EXPECT_THAT(dataset.heldout_operation, ElementsAre("softmax"));

  options.overrides.clear();
  EXPECT_THAT(lines_of(load("{folder: tasks, synthesize: {count: 0}, train: all}").mistakes),
              ElementsAre("w.yaml:3:46: `count`: 0 is out of range (1 to 1000000)",
                          "w.yaml:3:57: `train` beside `synthesize`: expected a list of tasks in `folder` "
                          "(synthesised tasks need not be named)"));
  EXPECT_THAT(lines_of(load("{folder: tasks, synthesize: {}, train: [s1]}").mistakes),
              ElementsAre("w.yaml:3:50: `train`: there is no task `s1` (expected one of add, mul, softmax)"));
  EXPECT_THAT(
      lines_of(load("{synthesize: {}, heldout_people: all}").mistakes),
      ElementsAre("w.yaml:3:43: `heldout_people: all` needs `synthesize`, and `folder` or `kernelbench` (or "
                  "a list of tasks)"));
  options.overrides = {"dataset.synthesize.split_seed=7"};
  EXPECT_THAT(lines_of(load("{folder: tasks, train: all}").mistakes),
              ElementsAre("w.yaml:3:10: `dataset.synthesize.split_seed=7`: `dataset` has no `synthesize`"));
  options.overrides.clear();
  options.synthesize = [](const SynthesizeSettings&, const fs::path&) -> fs::path {
    throw Error("the grammar has not so many");
  };
  EXPECT_THAT(lines_of(load("{synthesize: {count: 3}}").mistakes),
              ElementsAre("w.yaml:3:23: `synthesize`: the grammar has not so many"));
}

TEST(Workflow, ReferencesKeepTheirTypes) {
  const auto spec = good(kHead + R"(
params: {n: 12, share: 5%, words: [add], name: x, m: "${params.n}"}
stages:
  - {name: c, kind: collect}
  - {name: "s-${params.name}", kind: sft, needs: c, steps: "${params.m}", tolerate: "${params.share}"}
  - name: run
    kind: command
    argv: [echo, "${params.n}-${params.name}", "$${params.n}"]
)");
  EXPECT_THAT(names(spec), ElementsAre("c", "s-x", "run"));
  EXPECT_EQ(std::get<SftSettings>(spec.stages[1].settings).steps, 12);
  EXPECT_DOUBLE_EQ(spec.stages[1].tolerate, 0.05);
  EXPECT_THAT(std::get<CommandSettings>(spec.stages[2].settings).argv,
              ElementsAre("echo", "12-x", "${params.n}"));
  EXPECT_EQ(spec.params.at("m"), 12);
}

TEST(Workflow, OverridesReplaceAndAdd) {
  const std::string text = kHead +
                           "params: {n: 12}\nstages:\n  - {name: c, kind: collect}\n  - {name: s, kind: sft, "
                           "needs: c, steps: \"${params.n}\"}\n";
  const auto spec =
      good(text, {"params.n=7", "optimizer.learning_rate=0.5", "stages.s.contrastive_share=10%", "seed=9"});
  const auto& sft = std::get<SftSettings>(spec.stages[1].settings);
  EXPECT_EQ(sft.steps, 7);
  EXPECT_DOUBLE_EQ(sft.contrastive_share, 0.1);
  EXPECT_DOUBLE_EQ(spec.stages[1].optimizer.learning_rate, 0.5);
  EXPECT_EQ(spec.seed, 9u);
  EXPECT_EQ(spec.stages[1].seed, 9u);
}

TEST(Workflow, MatrixIsAProductWithExcludeAndInclude) {
  const auto spec = good(kHead + R"(
stages:
  - {name: c, kind: collect}
  - name: s
    kind: sft
    needs: c
    matrix: {steps: [1, 2], lr: [0.1, 0.2], exclude: [{steps: 2, lr: 0.2}], include: [{steps: 9, lr: 0.3}]}
    steps: ${matrix.steps}
    optimizer: {learning_rate: "${matrix.lr}"}
  - name: e
    kind: measure
    needs: s
    matrix: {steps: [1, 2], lr: [0.1]}
)");
  EXPECT_THAT(names(spec),
              ElementsAre("c", "s-1-0.1", "s-1-0.2", "s-2-0.1", "s-9-0.3", "e-1-0.1", "e-2-0.1"));
  EXPECT_DOUBLE_EQ(spec.stages[2].optimizer.learning_rate, 0.2);
  EXPECT_EQ(std::get<SftSettings>(spec.stages[4].settings).steps, 9);
  // Like is matched with like: each evaluation needs the stage with its own values.
  EXPECT_THAT(spec.stages[6].needs, ElementsAre("s-2-0.1"));
  EXPECT_EQ(std::get<MeasureSettings>(spec.stages[6].settings).checkpoint_of, "s-2-0.1");
}

TEST(Workflow, NeedsOfAMatrixNameAreAllItsInstances) {
  const auto spec = good(kHead + R"(
stages:
  - {name: last, kind: command, argv: ["true"], needs: [c]}
  - {name: c, kind: collect, matrix: {k: [1, 2]}, seed: "${matrix.k}"}
)");
  EXPECT_THAT(names(spec), ElementsAre("c-1", "c-2", "last"));
  EXPECT_THAT(spec.stages[2].needs, ElementsAre("c-1", "c-2"));
  EXPECT_EQ(spec.stages[1].seed, 2u);
}

TEST(Workflow, ResourcesAreOverlaid) {
  const auto spec = good(kHead + R"(
resources: {cpus: 2, memory: 1GiB, train: {cpus: 4}}
stages:
  - {name: c, kind: collect}
  - {name: s, kind: sft, needs: c, resources: {time: 1h, train: {memory: 2GiB}}, retry: {crash: 5}}
)");
  const StageSpec& s = spec.stages[1];
  EXPECT_EQ(s.train.cpus, 4);
  EXPECT_EQ(s.train.memory_bytes, 2ull << 30);
  EXPECT_EQ(s.measure.cpus, 2);
  EXPECT_DOUBLE_EQ(s.generate.time_s, 3600);
  EXPECT_EQ(s.retry.times.at(EndCause::kCrash), 5);
  EXPECT_EQ(s.retry.times.at(EndCause::kOutOfMemory), 2);
}

TEST(Workflow, OnlyWhatMattersIsResolved) {
  const std::string tail = "stages:\n  - {name: c, kind: collect}\n  - {name: s, kind: sft, needs: c}\n";
  const auto a = good(kHead + tail);
  const auto b = good(kHead +
                      "optimizer: {learning_rate: 0.5, keep_last: 7}\nresources: {time: 3h, memory: "
                      "9GiB}\nretry: {crash: 7}\n"
                      "tolerate: 10%\nmax_jobs: 3\nshard_time: 9m\n" +
                      tail);
  EXPECT_EQ(a.stages[0].resolved, b.stages[0].resolved);  // a collect stage has no optimizer
  const Json patch = Json::diff(a.stages[1].resolved, b.stages[1].resolved);
  ASSERT_EQ(patch.size(), 1u) << patch.dump();
  EXPECT_EQ(patch[0]["path"], "/optimizer/learning_rate");
}

TEST(Workflow, EveryExemplarSchemeIsOneLine) {
  for (const auto& [word, value] : {std::pair{"bucket", Exemplars::kBucket},
                                    {"island", Exemplars::kIsland},
                                    {"random", Exemplars::kRandom},
                                    {"none", Exemplars::kNone}}) {
    const auto spec = good(kHead +
                           "stages:\n  - {name: c, kind: collect}\n  - {name: s, kind: sft, needs: c}\n  - "
                           "{name: r, kind: contrastive, needs: s, exemplars: " +
                           word + ", update: none}\n");
    const auto& settings = std::get<ContrastiveSettings>(spec.stages[2].settings);
    EXPECT_EQ(settings.exemplars, value);
    EXPECT_FALSE(settings.update);
  }
}

// Parameters that refer to others ten times over, eleven deep.
std::string params_in_tens(const std::string& first, const char* open, const char* between,
                           const char* close) {
  std::string text = "params:\n  a0: " + first + "\n";
  for (int i = 1; i < 12; ++i) {
    text += "  a" + std::to_string(i) + ": " + open;
    for (int k = 0; k < 10; ++k)
      text += (k == 0 ? "" : between) + std::string("${params.a") + std::to_string(i - 1) + "}";
    text += std::string(close) + "\n";
  }
  return text;
}

TEST(Workflow, ReferencesAreBounded) {
  const std::string stages = "stages: [{name: c, kind: command, argv: [\"${params.a11}\"]}]\n";
  const LoadResult lists = load(kHead + params_in_tens("[lol, lol]", "[\"", "\", \"", "\"]") + stages);
  EXPECT_THAT(
      lines_of(lists.mistakes),
      ElementsAre("w.yaml:11:41: references bring more than 1000000 values or 16 MiB (counted as often "
                  "as they are used)"));
  const LoadResult texts = load(kHead + params_in_tens("lollollollollollol", "\"", "", "\"") + stages);
  EXPECT_THAT(
      lines_of(texts.mistakes),
      ElementsAre("w.yaml:11:104: references bring more than 1000000 values or 16 MiB (counted as often "
                  "as they are used)"));
}

TEST(Workflow, ReferencesOfStagesAreBounded) {
  std::string text = kHead + "params: {big: " + std::string(1 << 20, 'x') + "}\nstages:\n";
  for (int i = 0; i < 40; ++i)
    text += "  - {name: c" + std::to_string(i) + ", kind: command, argv: [echo, \"${params.big}\"]}\n";
  const LoadResult result = load(text);
  EXPECT_THAT(lines_of(result.mistakes),
              ElementsAre(::testing::HasSubstr("w.yaml:22:")));  // the 17th
}

TEST(Workflow, ManyParametersInAnyOrder) {
  std::string text = kHead + "params:\n";
  for (int i = 0; i < 20'000; ++i)
    text += "  p" + std::to_string(i) + ": \"${params.p" + std::to_string(i + 1) + "}\"\n";
  text += "  p20000: 7\nstages: [{name: c, kind: collect, seed: \"${params.p0}\"}]\n";
  EXPECT_EQ(good(text).stages[0].seed, 7u);
}

TEST(ShippedWorkflows, AreGood) {
  for (const char* file :
       {"workflows/quickstart.yaml", "workflows/cuda_l1.yaml", "workflows/portability.yaml",
        "workflows/cuda_l1_release.yaml", "workflows/pretrained.yaml", "workflows/composition.yaml",
        "workflows/families.yaml", "tests/workflows/tiny.yaml"}) {
    LoadOptions options;
    options.kernelbench = [](const fs::path&, const std::vector<int>&) { return kSource / "datasets"; };
    options.synthesize = [](const SynthesizeSettings&, const fs::path& people) { return people; };
    options.pretrained = [](const fs::path&, bool, int context) {
      return PretrainedModel{.family = "llama",
                             .settings = {},
                             .frame = {},
                             .context = context,
                             .parameters = 135'000'000,
                             .digest = "d",
                             .notes = {}};
    };
    const LoadResult result = load_workflow(kSource / file, options);
    EXPECT_THAT(lines_of(result.mistakes), IsEmpty()) << file;
  }
}

// Mutations of a good file: whatever stands in a file, loading ends with a workflow or with mistakes.
TEST(ShippedWorkflows, MutatedFilesNeverThrow) {
  const std::string text = read_file(kSource / "tests/workflows/tiny.yaml");
  Random random(random_key({1}));
  static constexpr std::string_view kBytes = "{}[]:,-#&*!|>'\"%@ \n\t${params.x}0~?<";
  int good_files = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string mutant = text;
    for (std::uint64_t edits = 1 + random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(mutant.size());
      switch (random.below(4)) {
        case 0:
          mutant.erase(at, 1 + random.below(20));
          break;
        case 1:
          mutant.insert(at, 1, kBytes[random.below(kBytes.size())]);
          break;
        case 2:
          mutant[at] = static_cast<char>(random.below(256));
          break;
        default:
          mutant.insert(at, mutant.substr(random.below(mutant.size()), random.below(60)));
          break;
      }
    }
    LoadResult result;
    ASSERT_NO_THROW(result = load_workflow_text(mutant, kSource / "tests/workflows/mutant.yaml")) << mutant;
    ASSERT_EQ(result.spec.has_value(), result.mistakes.empty()) << mutant;
    good_files += result.spec.has_value();
  }
  EXPECT_LT(good_files, 1400);  // the mutations do bite
}

class FolderModels : public ::testing::Test {
 protected:
  LoadResult load_model(const std::string& model, const std::string& more = "") {
    LoadOptions options{.overrides = {}, .seed = {}, .base_folder = make_base()};
    options.pretrained = [this](const fs::path& folder, bool weights, int context) {
      asked_.push_back(folder.filename().string() + (weights ? " weights " : " shape ") +
                       std::to_string(context));
      if (folder.filename() == "bad") throw Error("config.json: it is not there", kExitUsage);
      return PretrainedModel{.family = "qwen2",
                             .settings = {},
                             .frame = {},
                             .context = context > 0 ? context : 32768,
                             .parameters = 1'000'000'000,
                             .digest = "d",
                             .takes_lora = folder.filename() != "experts",
                             .notes = {"no system role"}};
    };
    return load_workflow_text(kHead + "model: " + model + "\n" + more +
                                  "stages: [{name: c, kind: collect}, {name: s, kind: sft, needs: c, "
                                  "resources: {memory: 16GiB}}]\n",
                              "w.yaml", options);
  }
  std::vector<std::string> asked_;
};

TEST_F(FolderModels, OfAnotherFamilyTakeNoAdapters) {
  EXPECT_THAT(lines_of(load_model("{from: models/good}", "lora: {rank: 8}\n").mistakes), IsEmpty());
  EXPECT_THAT(lines_of(load_model("{from: models/experts}", "lora: {rank: 8}\n").mistakes),
              ElementsAre(::testing::HasSubstr("stage `s`: `lora` is not supported for models of family")));
}

TEST_F(FolderModels, AreLookedAtOnce) {
  const LoadResult result = load_model("{from: models/good/}");
  EXPECT_THAT(lines_of(result.mistakes), IsEmpty());
  ASSERT_TRUE(result.spec);
  EXPECT_THAT(asked_, ElementsAre("good weights 0"));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0].message, ::testing::HasSubstr("no system role"));
  const StageSpec& stage = result.spec->stages.back();
  EXPECT_EQ(stage.model.context, 32768);
  // The folder's place is no part of the hash; its digest is (plan/inputs.h).
  EXPECT_EQ(stage.resolved["model"], (Json{{"context", 32768}, {"weights", "folder"}}));
}

TEST_F(FolderModels, AShapeKeepsItsContextAndDeviation) {
  const LoadResult result = load_model("{shape_of: good, context: 1000, init_deviation: 0.02}");
  ASSERT_TRUE(result.spec);
  EXPECT_THAT(asked_, ElementsAre("good shape 1000"));
  EXPECT_EQ(result.spec->stages.back().resolved["model"],
            (Json{{"context", 1000}, {"weights", "random"}, {"init_deviation", 0.02}}));
}

TEST_F(FolderModels, WhatDoesNotFitIsAMistakeWithItsPlace) {
  const auto mistakes = [&](const std::string& model, const std::string& more = "") {
    std::string text;
    for (const Diagnostic& mistake : load_model(model, more).mistakes) text += to_string(mistake) + "\n";
    return text;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(mistakes("{from: bad}"), HasSubstr("w.yaml:4:8: `from`: config.json: it is not there"));
  EXPECT_THAT(mistakes("{from: good, layers: 3}"), HasSubstr("w.yaml:4:21: `layers`: the folder says it"));
  EXPECT_THAT(mistakes("{from: good, init_deviation: 0.1}"),
              HasSubstr("`init_deviation`: the folder says it"));
  EXPECT_THAT(mistakes("{from: good, shape_of: good}"), HasSubstr("`from` and `shape_of` stand together"));
  EXPECT_THAT(mistakes("{from: good, context: 300}"), HasSubstr("leaves no room for a prompt"));
  EXPECT_THAT(mistakes("{from: good, export: int8}"), HasSubstr("int8"));
}

TEST_F(FolderModels, MemoryThatIsSurelyTooLittleIsAMistake) {
  LoadResult result = load_workflow_text(
      kHead +
          "model: {from: good}\nresources: {train: {memory: 8GiB}}\n"
          "stages: [{name: c, kind: collect}, {name: s, kind: sft, needs: c}]\n",
      "w.yaml",
      {.overrides = {}, .seed = {}, .base_folder = make_base(), .pretrained = [](const fs::path&, bool, int) {
         return PretrainedModel{.family = "",
                                .settings = {},
                                .frame = {},
                                .context = 4096,
                                .parameters = 1'000'000'000,
                                .digest = "",
                                .notes = {}};
       }});
  ASSERT_EQ(result.mistakes.size(), 1u);
  EXPECT_THAT(result.mistakes[0].message,
              ::testing::HasSubstr("its train jobs have 8.0 GiB, and weights, gradients and two moments in "
                                   "float32 for 1000000000 parameters takes 14.9 GiB"));
}

TEST(Schema, EqualsTheCommittedFile) {
  EXPECT_TRUE(workflow_json_schema() == read_json_file(kSource / "workflows/workflow.schema.json"))
      << "write it anew: warpsmith schema > workflows/workflow.schema.json";
}

// Every key of the schema is one that the reader takes, and has a meaning.
TEST(Schema, KnowsTheKeysOfEveryKind) {
  const Json schema = workflow_json_schema();
  for (const char* kind : {"collect", "sft", "self_supervised", "contrastive", "measure", "command"}) {
    const Json& stage = schema.at("$defs").at(std::string("stage_") + kind);
    EXPECT_FALSE(stage.at("additionalProperties").get<bool>());
    std::string text = kHead + "stages:\n  - name: x\n    kind: " + kind + "\n";
    for (const auto& [key, value] : stage.at("properties").items())
      if (key != "name" && key != "kind") text += "    " + key + ": [{}]\n";  // fits nowhere
    for (const Diagnostic& mistake : load(text).mistakes)
      EXPECT_THAT(mistake.message, ::testing::Not(::testing::HasSubstr("is not known")))
          << kind << ": " << to_string(mistake);
  }
}

}  // namespace
}  // namespace warpsmith::workflow
