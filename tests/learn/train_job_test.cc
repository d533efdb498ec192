// warpsmith-train and warpsmith-generate as the executor starts them: killed and started again, split into
// other shards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/shard.h"

namespace warpsmith {
namespace {

class TrainJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "warpsmith-train-XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  // Makes a job's folder in the run `run`; items in shards of `shard_items`.
  fs::path make_job(const std::string& run, const std::string& name, const Json& params,
                    const std::vector<Json>& items, std::size_t shard_items) {
    const fs::path folder = root_ / run / "stages/sft/00000000/0" / name;
    make_folders(folder);
    JobFile job;
    job.program = name == "generate" ? "warpsmith-generate" : "warpsmith-train";
    job.run = run;
    job.stage = "sft";
    job.job = name;
    job.token = run + "-" + name;
    job.seed = 3;
    job.params = params;
    for (std::size_t i = 0; i < items.size(); i += shard_items)
      job.shards.emplace_back(i, std::min(items.size(), i + shard_items));
    write_file_atomic(folder / "job.json", to_json(job).dump());
    std::ofstream lines(folder / "items.jsonl");
    for (const Json& item : items) lines << item.dump() << "\n";
    return folder;
  }

  // Steps first + 1 to first + steps; where there are none, an item of `first` itself.
  fs::path make_train_job(const std::string& run, int steps, Json changes = Json::object(), int first = 0,
                          const std::string& name = "train") {
    Json params = {{"mode", "sft"},
                   {"init", nullptr},
                   {"reference", nullptr},
                   {"threads", 1},
                   {"checkpoint_prefix", "checkpoints/sft"},
                   {"model",
                    {{"layers", 1},
                     {"width", 32},
                     {"heads", 2},
                     {"kv_heads", 1},
                     {"hidden", 48},
                     {"context", 128},
                     {"vocabulary", 280}}},
                   {"optimizer", {{"batch_tokens", 120}, {"checkpoint_every", 20}}}};
    params.update(changes);
    std::vector<Json> items;
    for (int i = steps > 0 ? 1 : 0; i <= steps; ++i)
      items.push_back({{"id", "step-" + std::to_string(first + i)}});
    const fs::path folder = make_job(run, name, params, items, items.size());
    std::ofstream examples(folder / "examples.jsonl");
    for (int i = 0; i < 12; ++i)
      examples << Json{{"id", std::to_string(i)},
                       {"prompt", "task " + std::to_string(i % 3) + ":"},
                       {"completion", "out[i] = f" + std::to_string(i) + "(x[i]);"},
                       {"weight", 1.0}}
                      .dump()
               << "\n";
    return folder;
  }

  // Four prompts of four samples each, that a checkpoint of run `run` draws.
  ShardRecords draw(const std::string& checkpoint) {
    std::vector<Json> items;
    for (int i = 0; i < 4; ++i)
      items.push_back({{"id", "t#" + std::to_string(i)}, {"task", "t"}, {"prompt", prompt_of(i)}, {"n", 4}});
    const fs::path folder =
        make_job("run", "generate", {{"checkpoint", checkpoint}, {"temperature", 1.0}, {"max_tokens", 30}},
                 items, items.size());
    EXPECT_EQ(run("warpsmith-generate", folder), 0) << log(folder);
    return read_shard_records(folder / "0");
  }
  static std::string prompt_of(int i) { return "task " + std::to_string(i) + ":"; }

  // Learns from draw(), half of each group better than the others, from checkpoint sft-40 on.
  fs::path make_grpo_job(const std::string& name, int steps, const ShardRecords& samples, Json changes) {
    changes.update(
        {{"mode", "grpo"}, {"init", "checkpoints/sft-40"}, {"checkpoint_prefix", "checkpoints/" + name}});
    const fs::path folder = make_train_job("run", steps, std::move(changes), 40, name);
    std::ofstream lines(folder / "examples.jsonl");
    for (int g = 0; g < 4; ++g) {
      const std::string id = "t#" + std::to_string(g);
      const Json& list = samples.records.at(id).at("samples");
      for (std::size_t i = 0; i < list.size(); ++i)
        lines << Json{{"id", id + "/" + std::to_string(i)},
                      {"prompt", prompt_of(g)},
                      {"completion", list[i]["text"]},
                      {"group", id},
                      {"advantage", i % 2 == 0 ? 1 : -1},
                      {"finished", list[i]["finished"]},
                      {"folder", fs::relative(samples.folder.at(id), root_ / "run").string()},
                      {"tokens", list[i]["tokens_blob"]},
                      {"logprobs", list[i]["logprobs_blob"]}}
                     .dump()
              << "\n";
    }
    return folder;
  }

  static pid_t start(const std::string& program, const fs::path& folder, int shard) {
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string path = std::string(WARPSMITH_BINARY_DIR) + "/" + program,
                        job = (folder / "job.json").string(), number = std::to_string(shard),
                        log = (folder / "log.txt").string();
      if (!::freopen(log.c_str(), "a", stderr)) ::_exit(120);
      ::execl(path.c_str(), program.c_str(), job.c_str(), number.c_str(), nullptr);
      ::_exit(121);
    }
    return child;
  }
  static int wait(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static int run(const std::string& program, const fs::path& folder, int shard = 0) {
    return wait(start(program, folder, shard));
  }
  static std::string log(const fs::path& folder) { return read_file(folder / "log.txt"); }

  fs::path root_;
};

// What must be equal in two runs of the same training.
Json essence(const ShardRecords& records) {
  Json out;
  for (const auto& [item, record] : records.records)
    for (const char* key :
         {"step", "loss", "grad_norm", "learning_rate", "tokens", "checkpoint", "checkpoint_digest"})
      if (record.contains(key)) out[item][key] = record[key];
  return out;
}

TEST_F(TrainJobTest, KilledTrainingEndsWithTheRecordsOfTrainingThatNeverStopped) {
  constexpr int kSteps = 150;
  const fs::path whole = make_train_job("whole", kSteps), killed = make_train_job("killed", kSteps);
  ASSERT_EQ(run("warpsmith-train", whole), 0) << log(whole);
  // Killed behind some checkpoints, twice; the moments do not matter.
  for (const std::size_t records : {45u, 90u}) {
    const pid_t child = start("warpsmith-train", killed, 0);
    for (;;) {
      if (fs::exists(killed / "0") && read_shard_records(killed / "0").records.size() >= records) break;
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it ended before it was killed: " << log(killed);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, SIGKILL);
    wait(child);
  }
  ASSERT_EQ(run("warpsmith-train", killed), 0) << log(killed);
  EXPECT_THAT(log(killed), ::testing::HasSubstr("resuming behind step"));
  const ShardRecords a = read_shard_records(whole / "0"), b = read_shard_records(killed / "0");
  EXPECT_TRUE(b.ended);
  EXPECT_EQ(a.records.size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(essence(a), essence(b));
  EXPECT_EQ(a.records.at("step-150").at("checkpoint"), "checkpoints/sft-150");
  // No item has two records.
  std::map<std::string, int> times;
  for (const auto& attempt : fs::directory_iterator(killed / "0"))
    scan_json_lines(attempt.path() / "records.jsonl", 0,
                    [&](Json&& r, std::uint64_t) { ++times[r.value("item", "end")]; });
  for (const auto& [item, n] : times) EXPECT_EQ(n, 1) << item;
}

// Processes whose parent `of` is.
std::vector<pid_t> children_of(pid_t of) {
  std::ifstream file("/proc/" + std::to_string(of) + "/task/" + std::to_string(of) + "/children");
  std::vector<pid_t> all;
  for (pid_t child = 0; file >> child;) all.push_back(child);
  return all;
}

// In float32 by the loops, and in bfloat16 by the operators with small parts of a batch at a time.
TEST_F(TrainJobTest, RanksTrainAsOneProcessDoes) {
  for (const Json& way :
       {Json{{"type", "float32"}}, Json{{"type", "bfloat16"}, {"micro_batch_tokens", 50}}}) {
    const std::string type = way["type"];
    std::map<int, ShardRecords> of;
    for (const int ranks : {1, 2, 3}) {
      Json params = way;
      params["ranks"] = ranks;
      const fs::path folder = make_train_job(type + std::to_string(ranks), 60, params);
      ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
      of[ranks] = read_shard_records(folder / "0");
      EXPECT_TRUE(of[ranks].ended);
      ASSERT_EQ(of[ranks].records.size(), 60u);
      EXPECT_EQ(children_of(::getpid()).size(), 0u);
    }
    const auto loss = [&](int ranks, int step) {
      return of[ranks].records.at("step-" + std::to_string(step)).at("loss").get<double>();
    };
    EXPECT_LT(loss(1, 60), 0.67 * loss(1, 1));
    for (const int ranks : {2, 3})
      for (int step = 1; step <= 60; ++step)
        EXPECT_NEAR(loss(ranks, step), loss(1, step), (type == "float32" ? 1e-3 : 2e-2) * loss(1, step))
            << ranks << " ranks, step " << step;
    EXPECT_EQ(of[2].records.at("step-60").at("tokens"), of[1].records.at("step-60").at("tokens"));
  }
}

TEST_F(TrainJobTest, RanksLearnFromGroupsAsOneProcessDoes) {
  ASSERT_EQ(run("warpsmith-train", make_train_job("run", 40)), 0);
  const ShardRecords samples = draw("checkpoints/sft-40");
  std::map<int, ShardRecords> of;
  for (const int ranks : {1, 2}) {
    const fs::path folder =
        make_grpo_job("grpo" + std::to_string(ranks), 2, samples,
                      {{"reference", "checkpoints/sft-40"}, {"kl", 0.05}, {"ranks", ranks}});
    ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
    of[ranks] = read_shard_records(folder / "0");
    ASSERT_EQ(of[ranks].records.size(), 2u);
  }
  for (const char* step : {"step-41", "step-42"}) {
    const Json &one = of[1].records.at(step), &two = of[2].records.at(step);
    for (const char* figure : {"loss", "kl", "clip_share", "entropy"})
      EXPECT_NEAR(two.at(figure).get<double>(), one.at(figure).get<double>(), 1e-4) << step << " " << figure;
    EXPECT_EQ(two.at("groups"), one.at("groups"));
    EXPECT_EQ(two.at("tokens"), one.at("tokens"));
  }
}

// In float32 the sampler's record says how probable the samples were; in bfloat16 the trainer asks the
// checkpoint that drew them, which is older than the one that is trained on. Either way also when training
// goes on behind its first step.
TEST_F(TrainJobTest, RatiosAreOverThePolicyThatDrewTheSamples) {
  ASSERT_EQ(run("warpsmith-train", make_train_job("run", 40)), 0);
  const ShardRecords samples = draw("checkpoints/sft-20");
  std::map<std::string, Json> first, second;
  const auto train = [&](const std::string& name, Json changes) {
    changes["kl"] = 0;
    changes["optimizer"] = {{"batch_tokens", 120}, {"checkpoint_every", 1}};
    const fs::path folder = make_grpo_job(name, 2, samples, changes);
    ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
    first[name] = read_shard_records(folder / "0").records.at("step-41");
    second[name] = read_shard_records(folder / "0").records.at("step-42");
    // As if it had died behind its first step.
    fs::remove_all(root_ / "run/checkpoints" / (name + "-42"));
    std::string records = read_file(folder / "0/1/records.jsonl");
    records.resize(records.find('\n') + 1);
    write_file_atomic(folder / "0/1/records.jsonl", records);
    ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
    EXPECT_THAT(log(folder), ::testing::HasSubstr("resuming behind step 41"));
    EXPECT_EQ(read_shard_records(folder / "0").records.at("step-42").at("loss"), second[name].at("loss"));
  };
  train("recorded", {{"sampled_by", "checkpoints/sft-20"}});
  train("asked", {{"sampled_by", "checkpoints/sft-20"}, {"type", "bfloat16"}});
  train("forgotten", {{"type", "bfloat16"}});
  const auto clipped = [&](const char* name) { return first[name].at("clip_share").get<double>(); };
  EXPECT_GT(clipped("recorded"), 0.1);
  EXPECT_NEAR(clipped("asked"), clipped("recorded"), 0.02);
  EXPECT_EQ(clipped("forgotten"), 0) << "as if the policy that is trained had drawn them";
}

TEST_F(TrainJobTest, ALostRankEndsTheJobWhichIsResumedByAnyNumberOfRanks) {
  const fs::path whole = make_train_job("whole", 150, {{"ranks", 2}}),
                 lost = make_train_job("lost", 150, {{"ranks", 2}});
  ASSERT_EQ(run("warpsmith-train", whole), 0) << log(whole);
  const pid_t first = start("warpsmith-train", lost, 0);
  while (!fs::exists(lost / "0") || read_shard_records(lost / "0").records.size() < 45) {
    ASSERT_EQ(::waitpid(first, nullptr, WNOHANG), 0) << "it ended before a rank was lost: " << log(lost);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::vector<pid_t> ranks = children_of(first);
  ASSERT_EQ(ranks.size(), 1u);
  ::kill(ranks[0], SIGKILL);
  EXPECT_EQ(wait(first), kExitFailed);
  EXPECT_THAT(log(lost), ::testing::HasSubstr("rank 1 ended by signal 9"));
  ASSERT_EQ(run("warpsmith-train", lost), 0) << log(lost);
  EXPECT_THAT(log(lost), ::testing::HasSubstr("resuming behind step"));
  EXPECT_EQ(essence(read_shard_records(whole / "0")), essence(read_shard_records(lost / "0")));

  // Rank 0 lost: no other goes on.
  const fs::path leader = make_train_job("leader", 150, {{"ranks", 3}});
  const pid_t leads = start("warpsmith-train", leader, 0);
  while (!fs::exists(leader / "0") || read_shard_records(leader / "0").records.size() < 45)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::vector<pid_t> others = children_of(leads);
  ASSERT_EQ(others.size(), 2u);
  ::kill(leads, SIGKILL);
  wait(leads);
  for (const pid_t other : others)
    for (int i = 0; i < 500 && ::kill(other, 0) == 0 && fs::exists("/proc/" + std::to_string(other) + "/exe");
         ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  for (const pid_t other : others) EXPECT_FALSE(fs::exists("/proc/" + std::to_string(other) + "/exe"));
  // One process goes on where three left off.
  Json params = read_json_file(leader / "job.json");
  params["params"]["ranks"] = 1;
  write_file_atomic(leader / "job.json", params.dump());
  ASSERT_EQ(run("warpsmith-train", leader), 0) << log(leader);
  const Json last = read_shard_records(leader / "0").records.at("step-150");
  EXPECT_NEAR(last.at("loss").get<double>(),
              read_shard_records(whole / "0").records.at("step-150").at("loss").get<double>(), 1e-3);
}

TEST_F(TrainJobTest, AMistakeOfAllRanksIsNoLostRank) {
  const fs::path folder = make_train_job("run", 3, {{"ranks", 2}, {"model", {{"heads", 3}}}});
  EXPECT_EQ(run("warpsmith-train", folder), kExitUsage) << log(folder);
}

TEST_F(TrainJobTest, ADamagedCheckpointIsPassedOver) {
  const fs::path folder = make_train_job("run", 60);
  ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
  const Json before = essence(read_shard_records(folder / "0"));
  // As if it had died behind step 50, with its newest checkpoint hurt.
  fs::remove_all(root_ / "run/checkpoints/sft-60");
  fs::resize_file(root_ / "run/checkpoints/sft-40/model.h5", 1000);
  std::string records = read_file(folder / "0/1/records.jsonl");
  records.resize(records.find("\"step-51\""));
  records.resize(records.rfind('\n') + 1);
  write_file_atomic(folder / "0/1/records.jsonl", records);
  ASSERT_EQ(run("warpsmith-train", folder), 0) << log(folder);
  EXPECT_THAT(log(folder), ::testing::HasSubstr("sft-40: model.h5 has 1000 bytes"));
  EXPECT_EQ(essence(read_shard_records(folder / "0")), before);
}

TEST_F(TrainJobTest, MistakesEndWithCodeTwo) {
  EXPECT_EQ(run("warpsmith-train", make_train_job("a", 3, {{"mode", "dreaming"}})), 2);
  const fs::path b = make_train_job("b", 3);
  fs::remove(b / "examples.jsonl");
  EXPECT_EQ(run("warpsmith-train", b), 2) << log(b);
  EXPECT_EQ(run("warpsmith-train", make_train_job("c", 3, {{"model", {{"heads", 3}}}})), 2);
  EXPECT_EQ(run("warpsmith-train", make_train_job("d", 3), 7), 2);
}

TEST_F(TrainJobTest, NoStepsLeaveTheModelAsItIs) {
  const fs::path none = make_train_job("run", 0, {{"steps", 0}});
  ASSERT_EQ(run("warpsmith-train", none), 0) << log(none);
  const ShardRecords records = read_shard_records(none / "0");
  EXPECT_TRUE(records.ended);
  const Json& record = records.records.at("step-0");
  EXPECT_EQ(record.at("checkpoint"), "checkpoints/sft-0");
  EXPECT_FALSE(record.contains("loss"));
  // Training goes on from it as from the same model made anew, apart from the schedule.
  const fs::path on = make_train_job(
      "run", 5, {{"init", "checkpoints/sft-0"}, {"checkpoint_prefix", "checkpoints/on"}}, 0, "on");
  ASSERT_EQ(run("warpsmith-train", on), 0) << log(on);
  const fs::path anew = make_train_job("anew", 5);
  ASSERT_EQ(run("warpsmith-train", anew), 0) << log(anew);
  EXPECT_EQ(read_shard_records(on / "0").records.at("step-1").at("loss"),
            read_shard_records(anew / "0").records.at("step-1").at("loss"));
}

// Full training, then adapters in two jobs, then samples of what they make, then full training again.
TEST_F(TrainJobTest, AdaptersAddToACheckpointAndAreMerged) {
  ASSERT_EQ(run("warpsmith-train", make_train_job("run", 20)), 0);
  const Json lora = {{"rank", 2}, {"alpha", 4}, {"targets", {"q_proj", "v_proj", "down_proj"}}};
  const auto go_on = [&](const std::string& name, int first, const std::string& init, const Json& with) {
    const fs::path job = make_train_job(
        "run", 10,
        {{"init", "checkpoints/" + init}, {"checkpoint_prefix", "checkpoints/" + name}, {"lora", with}},
        first, name);
    EXPECT_EQ(run("warpsmith-train", job), 0) << log(job);
    return read_shard_records(job / "0").records;
  };
  const auto one = go_on("adapters", 20, "sft-20", lora);
  const auto two = go_on("more", 30, "adapters-30", lora);
  ASSERT_EQ(two.size(), 10u);
  EXPECT_LT(two.at("step-40").at("loss").get<double>(), one.at("step-21").at("loss").get<double>());
  for (const char* folder : {"adapters-30", "more-40"}) {
    EXPECT_FALSE(fs::exists(root_ / "run/checkpoints" / folder / "model.h5"));
    const Json manifest = read_json_file(root_ / "run/checkpoints" / folder / "manifest.json");
    EXPECT_EQ(manifest.at("base").at("path"), "../sft-20") << "adapters never add to adapters";
  }
  const fs::path samples =
      make_job("run", "generate", {{"checkpoint", "checkpoints/more-40"}, {"max_tokens", 20}},
               {{{"id", "t#0"}, {"task", "t"}, {"prompt", "task 1:"}, {"n", 3}}}, 1);
  EXPECT_EQ(run("warpsmith-generate", samples), 0) << log(samples);
  go_on("whole", 40, "more-40", nullptr);
  EXPECT_TRUE(fs::exists(root_ / "run/checkpoints/whole-50/model.h5"));

  Json other = lora;
  other["rank"] = 4;
  const fs::path refused = make_train_job(
      "run", 10, {{"init", "checkpoints/more-40"}, {"checkpoint_prefix", "checkpoints/x"}, {"lora", other}},
      40, "x");
  EXPECT_EQ(run("warpsmith-train", refused), 2);
  EXPECT_THAT(log(refused), ::testing::HasSubstr("is another than that of the stage"));
  const fs::path random = make_train_job("random", 10, {{"lora", lora}});
  EXPECT_EQ(run("warpsmith-train", random), 2);
  EXPECT_THAT(log(random), ::testing::HasSubstr("these are random"));
  // A base that has changed is not added to.
  fs::remove_all(root_ / "run/checkpoints/sft-20");
  fs::copy(root_ / "run/checkpoints/whole-50", root_ / "run/checkpoints/sft-20", fs::copy_options::recursive);
  const fs::path lost = make_train_job(
      "run", 10, {{"init", "checkpoints/more-40"}, {"checkpoint_prefix", "checkpoints/y"}, {"lora", lora}},
      40, "y");
  EXPECT_NE(run("warpsmith-train", lost), 0);
  EXPECT_THAT(log(lost), ::testing::HasSubstr("the weights that it adds to have changed since"));
}

// A context of 128 tokens: 100 are for the answer.
TEST_F(TrainJobTest, ExemplarsAreLeftOutOfPromptsThatDoNotFit) {
  ASSERT_EQ(run("warpsmith-train", make_train_job("run", 20)), 0);
  const std::string fits = "task 1:";
  std::string longer;  // that few merges shorten little
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) longer += static_cast<char>('a' + random() % 26);
  const fs::path folder = make_job(
      "run", "generate", {{"checkpoint", "checkpoints/sft-20"}, {"temperature", 1.0}, {"max_tokens", 100}},
      {{{"id", "a"}, {"task", "t"}, {"prompt", longer}, {"shorter", {longer + "x", fits}}, {"n", 1}},
       {{"id", "b"}, {"task", "t"}, {"prompt", fits}, {"shorter", {longer}}, {"n", 1}},
       {{"id", "c"}, {"task", "t"}, {"prompt", longer}, {"n", 1}}},
      3);
  ASSERT_EQ(run("warpsmith-generate", folder), 0) << log(folder);
  const ShardRecords records = read_shard_records(folder / "0");
  EXPECT_EQ(records.records.at("a").at("exemplars_left_out"), 2);
  EXPECT_EQ(records.records.at("a").at("prompt_tokens"), records.records.at("b").at("prompt_tokens"));
  EXPECT_FALSE(records.records.at("b").contains("exemplars_left_out"));
  EXPECT_TRUE(records.records.at("c").contains("error"));

  const fs::path train = make_train_job("again", 3);
  write_file_atomic(
      train / "examples.jsonl",
      Json{{"id", "0"}, {"prompt", longer}, {"shorter", {fits}}, {"completion", "out = x;"}}.dump() + "\n");
  ASSERT_EQ(run("warpsmith-train", train), 0) << log(train);
  EXPECT_THAT(log(train), ::testing::HasSubstr("1 exemplars are left out of prompts"));
}

TEST_F(TrainJobTest, SamplesDoNotDependOnTheShardsNorOnKills) {
  ASSERT_EQ(run("warpsmith-train", make_train_job("run", 40)), 0);
  const Json params = {{"checkpoint", "checkpoints/sft-40"},
                       {"temperature", 1.0},
                       {"top_p", 1.0},
                       {"top_k", 0},
                       {"max_tokens", 40},
                       {"threads", 1},
                       {"batch", 64}};
  std::vector<Json> items;
  for (int i = 0; i < 6; ++i)
    items.push_back({{"id", "t#" + std::to_string(i)},
                     {"task", "t"},
                     {"prompt", "task " + std::to_string(i) + ":"},
                     {"n", 3 + i}});
  const auto texts = [&](const fs::path& folder, int shards) {
    Json out;
    for (int s = 0; s < shards; ++s) {
      const ShardRecords records = read_shard_records(folder / std::to_string(s));
      EXPECT_TRUE(records.ended);
      for (const auto& [item, record] : records.records)
        for (const Json& sample : record.at("samples")) {
          const fs::path& attempt = records.folder.at(item);
          const std::string tokens = read_blob(attempt, blob_ref_from_json(sample.at("tokens_blob")));
          EXPECT_EQ(tokens.size(), 4 * sample.at("tokens").get<std::size_t>());
          const std::string logprobs = read_blob(attempt, blob_ref_from_json(sample.at("logprobs_blob")));
          EXPECT_EQ(logprobs.size(), tokens.size());
          out[item].push_back({sample.at("text"), std::vector<std::uint8_t>(tokens.begin(), tokens.end()),
                               std::vector<std::uint8_t>(logprobs.begin(), logprobs.end())});
        }
    }
    return out;
  };
  const fs::path one = make_job("run", "generate", params, items, 6);
  ASSERT_EQ(run("warpsmith-generate", one), 0) << log(one);
  const Json first = texts(one, 1);
  ASSERT_EQ(first.size(), 6u);
  EXPECT_EQ(first.at("t#5").size(), 8u);
  fs::rename(one, one.string() + "-kept");
  const fs::path split = make_job("run", "generate", params, items, 2);
  for (int s = 0; s < 3; ++s) ASSERT_EQ(run("warpsmith-generate", split, s), 0) << log(split);
  EXPECT_EQ(texts(split, 3), first);
  // A second attempt makes only what the first one's records lack.
  std::string records = read_file(split / "1/1/records.jsonl");
  records.resize(records.find('\n') + 1);
  write_file_atomic(split / "1/1/records.jsonl", records);
  ASSERT_EQ(run("warpsmith-generate", split, 1), 0);
  EXPECT_EQ(texts(split, 3), first);
}

}  // namespace
}  // namespace warpsmith
