// What every loader says of a file that is empty, one value, a list, or a map without a value: a mistake with
// its place, or an Error that names the file. Never a crash, never another exception.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/model/manifest.h"
#include "warpsmith/records/job.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/run/journal.h"
#include "warpsmith/task/check.h"
#include "warpsmith/task/launch_plan.h"
#include "warpsmith/task/task.h"
#include "warpsmith/workflow/hack_database.h"
#include "warpsmith/workflow/load.h"
#include "warpsmith/workflow/site.h"

namespace warpsmith {
namespace {

std::string lines_of(const Diagnostics& mistakes) {
  std::string lines;
  for (const Diagnostic& mistake : mistakes) lines += (lines.empty() ? "" : "\n") + to_string(mistake);
  return lines;
}

// A kind of file: where it lies in a folder of the test, and its loader.
struct Kind {
  const char* file;
  std::function<void(const fs::path& folder, Diagnostics&)> load;
};

std::string said(const Kind& kind, const std::string& text) {
  const Scratch scratch;
  const fs::path folder = scratch.path();
  make_folders((folder / kind.file).parent_path());
  write_file_atomic(folder / kind.file, text);
  Diagnostics mistakes;
  std::string out;
  try {
    kind.load(folder, mistakes);
    out = lines_of(mistakes);
  } catch (const Error& e) {
    out = e.what();
  }
  for (std::size_t at = 0; (at = out.find(folder.string() + "/")) != std::string::npos;)
    out.erase(at, folder.string().size() + 1);
  return out;
}

const Kind kTask = {"t/task.yaml", [](const fs::path& folder, Diagnostics& mistakes) {
                      EXPECT_FALSE(task::load_task(folder / "t", mistakes));
                    }};
const Kind kWorkflow = {"w.yaml", [](const fs::path& folder, Diagnostics& mistakes) {
                          mistakes = workflow::load_workflow(folder / "w.yaml").mistakes;
                        }};
const Kind kSite = {"s.yaml", [](const fs::path& folder, Diagnostics& mistakes) {
                      workflow::load_site(folder / "s.yaml", mistakes);
                    }};
const Kind kHack = {"one/case.yaml", [](const fs::path& folder, Diagnostics& mistakes) {
                      EXPECT_FALSE(workflow::load_hack_database(folder, mistakes));
                    }};
const Kind kJob = {"job.json",
                   [](const fs::path& folder, Diagnostics&) { read_job_file(folder / "job.json"); }};
const Kind kRecords = {"0/1/records.jsonl",
                       [](const fs::path& folder, Diagnostics&) { read_shard_records(folder / "0"); }};
const Kind kItems = {"items.jsonl",
                     [](const fs::path& folder, Diagnostics&) { read_items(folder / "items.jsonl", 0, 1); }};
const Kind kJournal = {"journal/1.jsonl", [](const fs::path& folder, Diagnostics&) {
                         run::read_journal(folder / "journal", [](run::Event&&) {});
                       }};
const Kind kRun = {"run.json", [](const fs::path& folder, Diagnostics&) { read_run_json(folder); }};
const Kind kState = {"state.json", [](const fs::path& folder, Diagnostics&) { read_state_json(folder); }};
const Kind kManifest = {"c/manifest.json", [](const fs::path& folder, Diagnostics&) {
                          const std::string damage = model::checkpoint_damage(folder / "c");
                          if (!damage.empty()) throw Error(damage);
                        }};
const Kind kManifestFacts = {"c/manifest.json", [](const fs::path& folder, Diagnostics&) {
                               model::read_checkpoint_facts(folder / "c");
                             }};

TEST(Loaders, YamlFilesThatAreNoMap) {
  for (const auto& [kind, name, schema] :
       {std::tuple(&kTask, "task", "task/1"), std::tuple(&kWorkflow, "workflow", "workflow/1"),
        std::tuple(&kSite, "site", "site/1"), std::tuple(&kHack, "case", "hack/1")}) {
    const std::string file = kind->file;
    const std::string help = std::string(" (a ") + name + " begins with schema: warpsmith." + schema + ")";
    for (const char* text : {"", "\n\n", "# a comment\n", "---\n", "null\n", "~"})
      EXPECT_EQ(said(*kind, text), file + ":1:1: expected a map, found nothing" + help) << text;
    EXPECT_EQ(said(*kind, "7\n"), file + ":1:1: expected a map, found the integer 7" + help);
    EXPECT_EQ(said(*kind, "- a\n- b\n"), file + ":1:1: expected a map, found a list" + help);
    const std::string without = said(*kind, "schema:\n");
    EXPECT_EQ(without.find(file + ":1:1: "), 0u) << without;
    EXPECT_EQ(said(*kind, "a: 1\nb: \x01\n"), file +
                                                  ":2:4: a control character: U+0001 (delete it; within "
                                                  "double quotes it can be written as \\xNN)");
  }
}

TEST(Loaders, JsonFiles) {
  const std::string no_object = "while reading job.json: job file: it is no JSON object";
  const std::string no_record = "0/1/records.jsonl: bad record at byte 0: it is no JSON object";
  const std::string no_item = "items.jsonl: bad item at byte 0: it is no JSON object with an `id`";
  const std::string no_items = "items.jsonl: has 0 items, the shard wants [0, 1)";
  const std::pair<const Kind*, std::vector<std::pair<const char*, std::string>>> kinds[] = {
      {&kJob,
       {{"", "while reading job.json: job.json: bad JSON at byte 1"},
        {"# a comment\n", "while reading job.json: job.json: bad JSON at byte 1"},
        {"null", no_object},
        {"7", no_object},
        {"[1]", no_object},
        {"{\"schema\": null}", "while reading job.json: job file: it has no `schema`"}}},
      // A last line that is not whole is its writer's to end.
      {&kRecords,
       {{"", ""},
        {"# a comment\n", ""},
        {"null\n", no_record},
        {"7\n", no_record},
        {"[1]\n", no_record},
        {"{\"item\": null}\n", "0/1/records.jsonl: bad record at byte 0: `item` is no text"}}},
      {&kItems,
       {{"", no_items},
        {"# a comment\n", no_items},
        {"null\n", no_item},
        {"7\n", no_item},
        {"[1]\n", no_item},
        {"{\"id\": null}\n", no_item}}},
      {&kJournal,
       {{"", ""},
        {"# a comment\n", ""},
        {"null\n", ""},
        {"7\nnull\n", "journal/1.jsonl: damaged line at byte 0"},
        {"[1]\n[1]\n", "journal/1.jsonl: damaged line at byte 0"},
        {"{\"a\": null}\n{}\n", "journal/1.jsonl: damaged line at byte 0"}}}};
  for (const auto& [kind, rows] : kinds)
    for (const auto& [text, expected] : rows)
      EXPECT_EQ(said(*kind, text), expected) << kind->file << ": " << text;
}

TEST(Loaders, FilesOfARun) {
  for (const Kind* kind : {&kRun, &kState}) {
    const std::string file = kind->file, bad_json = file + ": bad JSON at byte 1",
                      no_object = file + ": neither a JSON object nor a list",
                      types = file + ": its values are not of the types that they should be: ";
    EXPECT_EQ(said(*kind, ""), bad_json);
    EXPECT_EQ(said(*kind, "# a comment\n"), bad_json);
    for (const char* text : {"null", "7", "\"text\""}) EXPECT_EQ(said(*kind, text), no_object) << text;
    for (const char* text : {"[]", "[1]", "[{}]"}) EXPECT_EQ(said(*kind, text).find(types), 0u) << text;
    EXPECT_EQ(said(*kind, "{}"), "");
  }
  for (const char* text : {R"({"name": 7})", R"({"site": null})", R"({"overrides": 7})",
                           R"({"overrides": [7]})", R"({"seed": -1})", R"({"created": "now"})"})
    EXPECT_EQ(said(kRun, text).find("run.json: "), 0u) << text << ": " << said(kRun, text);
  for (const char* text : {R"({"state": null})", R"({"updated": "now"})", R"({"gpu_hours": []})",
                           R"({"stages": 7})", R"({"stages": {"a": 1}})", R"({"stages": [7]})",
                           R"({"stages": [[]]})", R"({"stages": [{"hash8": 7}]})"})
    EXPECT_EQ(said(kState, text).find("state.json: "), 0u) << text << ": " << said(kState, text);
}

std::string manifest(Json json) {
  json["schema"] = model::kCheckpointSchema;
  json["checksum"] = model::manifest_checksum(json);
  return json.dump();
}

TEST(Loaders, ManifestsOfCheckpoints) {
  for (const Kind* kind : {&kManifest, &kManifestFacts}) {
    for (const char* text : {"", "# a comment\n", "null", "7", "[1]", "{}", "{\"schema\": null}",
                             "{\"schema\": \"warpsmith.checkpoint/1\"}"}) {
      const std::string out = said(*kind, text);
      EXPECT_EQ(out.find("checkpoint "), 0u) << text << ": " << out;
      EXPECT_NE(out.find("manifest.json"), std::string::npos) << text << ": " << out;
    }
  }
  // With a right checksum: what a program wrote wrongly.
  EXPECT_NE(said(kManifestFacts, manifest({{"stage", 7}})).find("`stage`"), std::string::npos);
  for (const Json& files : {Json(), Json(7), Json::array({1}), Json("model.h5")})
    EXPECT_NE(said(kManifest, manifest({{"files", files}})).find("`files`"), std::string::npos) << files;
  for (const char* name : {"", ".", "model.h5", "manifest.json"})
    for (const Json& file : {Json(7), Json::array(), Json::object(), Json{{"bytes", -1}}})
      EXPECT_EQ(said(kManifest, manifest({{"files", {{name, file}}}})).find("checkpoint "), 0u)
          << name << ": " << file;
}

TEST(Loaders, PlansHavePlaces) {
  task::Task task;
  for (const char* text : {"", "# a comment\n", "null", "- a\n", "key:\n"}) {
    Diagnostics mistakes;
    task::LaunchPlan::parse(text, task, "k.cu", mistakes);
    EXPECT_EQ(lines_of(mistakes).find("k.cu:1:1: the launch plan launches nothing"), 0u) << text;
  }
}

}  // namespace
}  // namespace warpsmith
