#include "warpsmith/executor/site_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/executor/batch.h"
#include "warpsmith/executor/last_words.h"

namespace warpsmith::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using workflow::SiteSpec;

const std::string kName = "warpsmith-doctor-1-0";

SiteSpec site_of(const std::string& text) {
  Diagnostics mistakes;
  SiteSpec site = workflow::load_site_text("schema: warpsmith.site/1\nname: t\n" + text, "t.yaml", mistakes);
  for (const Diagnostic& mistake : mistakes) ADD_FAILURE() << to_string(mistake);
  return site;
}

class Probe : public testing::Test {
 protected:
  explicit Probe(const std::string& place = "{partition: l40, scratch: /local, modules: [cuda]}")
      : site_(site_of("cpu: {partition: cpu}\ngpus: {L40: " + place + "}\ncontroller: {partition: cpu}")),
        probes_(site_probes(site_)) {}

  // A probe that went well.
  static ProbeOutcome good() {
    ProbeOutcome o;
    o.job = 7;
    o.seen = kName;
    o.node = "n1";
    o.end = {{"cause", "finished"}};
    o.answer = {{"version", "1.2"},
                {"programs", {{"warpsmith-shard", ""}}},
                {"gpus", {"NVIDIA L40"}},
                {"tmpdir", "/local"},
                {"modules", "gcc/12:cuda/12.4"},
                {"machine",
                 {{{"name", "cores"}, {"value", "8, 4 may be used"}, {"ok", true}},
                  {{"name", "memory"}, {"value", "1 GiB"}, {"ok", false}},
                  {{"name", "sandbox"}, {"value", "landlock"}, {"ok", true}},
                  {{"name", "compiler g++"}, {"value", "not found"}, {"ok", false}, {"hint", "install it"}}}},
                {"submit", ""}};
    return o;
  }
  std::vector<std::string> facts(std::size_t probe, const ProbeOutcome& outcome) const {
    std::vector<std::string> out;
    for (const process::Fact& f : probe_facts(probes_[probe], kName, outcome, "/results"))
      out.push_back((f.ok ? "ok " : "LACK ") + f.name + ": " + f.value +
                    (f.hint.empty() ? "" : " (" + f.hint + ")"));
    return out;
  }
  // What is wrong with the GPU's probe, by its parts after "LACK gpu L40 ".
  std::vector<std::string> lacks(const ProbeOutcome& outcome, std::size_t probe = 1) const {
    std::vector<std::string> out;
    for (const std::string& fact : facts(probe, outcome))
      if (fact.starts_with("LACK ")) out.push_back(fact.substr(5 + probes_[probe].places.size() + 1));
    return out;
  }
  static ProbeOutcome in_state(SlurmState state, const std::string& reason = "") {
    ProbeOutcome o;
    o.job = 7;
    o.waited_s = 60;
    o.task.emplace();
    o.task->state = state;
    o.task->reason = reason;
    if (state != SlurmState::kPending) o.task->nodes = "n1";
    return o;
  }

  SiteSpec site_;
  std::vector<SiteProbe> probes_;
};

TEST_F(Probe, AlikePlacesShareOne) {
  ASSERT_EQ(probes_.size(), 2u);
  EXPECT_EQ(probes_[0].places, "cpu, controller");
  EXPECT_TRUE(probes_[0].submits);
  EXPECT_EQ(probes_[0].gpus, 0);
  EXPECT_EQ(probes_[1].places, "gpu L40");
  EXPECT_FALSE(probes_[1].submits);
  EXPECT_EQ(probes_[1].gpus, 1);
  const SiteSpec other = site_of("cpu: {partition: p}\ncontroller: {partition: p, qos: long}");
  EXPECT_EQ(site_probes(other).size(), 2u);
}

TEST_F(Probe, IsAShardLikeAnyOther) {
  const SlurmJob job = probe_job(probes_[1], kName, "/r/.d/1", "/opt/bin");
  EXPECT_EQ(job.name, kName);
  EXPECT_EQ(job.partition, "l40");
  EXPECT_EQ(job.gpus, "gpu:l40:1");
  EXPECT_EQ(job.minutes, 5u);
  EXPECT_EQ(job.array, "");
  EXPECT_FALSE(job.requeue);
  EXPECT_THAT(job.environment, Not(IsEmpty()));
  EXPECT_THAT(job.script, StartsWith("#!/bin/bash -l\n{ cat /r/.d/1/token; "));
  EXPECT_THAT(job.script, HasSubstr("module load cuda\n"));
  EXPECT_THAT(job.script, HasSubstr("export TMPDIR=\"/local\""));
  EXPECT_THAT(job.script, HasSubstr("exec /opt/bin/warpsmith-shard --token " + kName + " --base 0 "));
  EXPECT_THAT(job.script,
              HasSubstr(" --gpu-name L40 -- /opt/bin/warpsmith doctor --on-node /r/.d/1/job.json\n"));
}

TEST_F(Probe, IsShortWhereJobsMustBe) {
  const SiteSpec site = site_of("cpu: {partition: p, max_time: 2m, memory_per_cpu: 4GiB}");
  const SlurmJob job = probe_job(site_probes(site)[0], kName, "/r", "/opt");
  EXPECT_EQ(job.minutes, 2u);
  EXPECT_EQ(job.memory_mib, 4096u);
}

TEST_F(Probe, LargestJobsHaveTheSitesLimits) {
  const SiteSpec site = site_of(R"(
cpu: {partition: p, max_time: 90m, memory_per_cpu: 2GiB}
gpus: {H100: {partition: g}}
controller: {time: 1h, memory: 3GiB, cpus: 2}
)");
  const std::vector<NamedPlace> places = places_of(site);
  ASSERT_EQ(places.size(), 3u);
  const SlurmJob cpu = largest_job(site, places[0], "x"), gpu = largest_job(site, places[1], "x"),
                 controller = largest_job(site, places[2], "x");
  EXPECT_EQ(cpu.minutes, 90u);
  EXPECT_EQ(cpu.memory_mib, 2048u);
  EXPECT_EQ(cpu.gpus, "");
  EXPECT_EQ(gpu.gpus, "gpu:h100:1");
  EXPECT_EQ(gpu.minutes, 0u);
  EXPECT_EQ(controller.minutes, 60u);
  EXPECT_EQ(controller.memory_mib, 3072u);
  EXPECT_EQ(controller.cpus, 2u);
}

TEST_F(Probe, FilesAreReadAsTheyCome) {
  const Scratch scratch;
  const fs::path folder = scratch / "0";
  write_probe(probes_[0], kName, folder, "/etc/x.conf", {"warpsmith-shard"});
  EXPECT_EQ(read_file(folder / "token"), kName + "\n");
  const Json question = read_json_file(folder / "job.json");
  EXPECT_EQ(question["conf"], "/etc/x.conf");
  EXPECT_EQ(question["submit"]["partition"], "cpu");
  write_probe(probes_[1], kName, scratch / "1", "", {});
  EXPECT_TRUE(read_json_file(scratch / "1/job.json")["submit"].is_null());  // no controller there

  ProbeOutcome o;
  read_probe(folder, kName, o);
  EXPECT_EQ(o.seen, std::nullopt);
  EXPECT_FALSE(has_answered(o));
  write_file_atomic(folder / "seen", kName + "\n");  // the node's name is not there yet
  read_probe(folder, kName, o);
  EXPECT_EQ(o.seen, std::nullopt);
  write_file_atomic(folder / "seen", kName + "\nn1\n");
  write_file_atomic(folder / "slurm.log", "one\n\n  two  \n\n");
  read_probe(folder, kName, o);
  EXPECT_EQ(o.seen, kName);
  EXPECT_EQ(o.node, "n1");
  EXPECT_EQ(o.last_line, "two");
  EXPECT_FALSE(has_answered(o));
  append_last_word(ends_folder(folder / "job.json"), "n1", {kName, 0, {{"cause", "finished"}}});
  read_probe(folder, kName, o);
  EXPECT_FALSE(has_answered(o));  // the answer is not visible yet
  write_file_atomic(folder / "answer.json", "{}");
  read_probe(folder, kName, o);
  EXPECT_TRUE(has_answered(o));
}

TEST_F(Probe, AFailedShardOrAVainWaitIsAnAnswer) {
  ProbeOutcome o;
  o.end = {{"cause", "launch_failure"}};
  EXPECT_TRUE(has_answered(o));
  EXPECT_TRUE(has_answered(in_state(SlurmState::kPending, "PartitionDown")));
  EXPECT_FALSE(has_answered(in_state(SlurmState::kPending, "Priority")));
  EXPECT_FALSE(has_answered(in_state(SlurmState::kRunning)));
}

TEST_F(Probe, FactsOfOneThatWentWell) {
  EXPECT_THAT(
      facts(1, good()),
      ElementsAre("ok gpu L40 job: job 7 ran on n1", "ok gpu L40 shared folder: n1 reads and writes /results",
                  "ok gpu L40 programs: warpsmith 1.2, -shard start there", "ok gpu L40 device: NVIDIA L40",
                  "ok gpu L40 node: n1: cores 8, 4 may be used; sandbox landlock"));
  const std::vector<std::string> cpu = facts(0, good());
  EXPECT_EQ(cpu.back(), "ok cpu, controller submits: n1 may submit jobs");
  EXPECT_THAT(lacks(good(), 0), ElementsAre("compiler g++: not found (install it)"));  // the twin's
}

TEST_F(Probe, OneThatWaits) {
  EXPECT_THAT(facts(1, in_state(SlurmState::kPending, "Resources")),
              ElementsAre(StartsWith("ok gpu L40 job: job 7: PENDING (Resources) after 60 s")));
  EXPECT_THAT(lacks(in_state(SlurmState::kPending, "PartitionDown")),
              ElementsAre(StartsWith("job: job 7: PENDING (PartitionDown)")));
}

TEST_F(Probe, OneThatSlurmRefused) {
  ProbeOutcome o;
  o.refused = "Slurm says: no";
  EXPECT_THAT(facts(1, o), ElementsAre("LACK gpu L40 job: Slurm says: no"));
  o.for_now = true;
  EXPECT_THAT(lacks(o), IsEmpty());
}

TEST_F(Probe, AFolderThatTheNodeDoesNotSee) {
  ProbeOutcome o = in_state(SlurmState::kFailed, "JobLaunchFailure");
  o.task->signal = 53;
  EXPECT_THAT(lacks(o), ElementsAre(StartsWith("shared folder: n1 did not write in /results; job 7: FAILED, "
                                               "signal 53 (JobLaunchFailure) (results must lie where")));
  o = good();
  o.seen = "warpsmith-doctor-0-0";  // of another folder under this path
  EXPECT_THAT(lacks(o), ElementsAre(StartsWith("shared folder: n1 reads something else")));
}

TEST_F(Probe, ProgramsThatDoNotStart) {
  ProbeOutcome o = good();
  o.end = o.answer = Json();
  o.last_line = "exec: warpsmith-shard: not found";
  EXPECT_THAT(lacks(o),
              ElementsAre(StartsWith("programs: no word of warpsmith-shard: exec: warpsmith-shard: not")));
  o = good();
  o.answer["programs"]["warpsmith-measure"] = "libtorch.so: cannot open";
  EXPECT_THAT(lacks(o), ElementsAre(StartsWith("programs: warpsmith-measure: libtorch.so: cannot open")));
  o.answer = Json();
  o.end = {{"cause", "crash"}, {"detail", "signal 4"}};
  EXPECT_THAT(lacks(o), ElementsAre(StartsWith("programs: warpsmith: crash: signal 4")));
}

TEST_F(Probe, TheWrongGpu) {
  ProbeOutcome o = good();
  o.answer = Json();
  o.end = {{"cause", "launch_failure"}, {"detail", "wrong GPU: NVIDIA A40 on n1"}};
  EXPECT_THAT(lacks(o), ElementsAre(StartsWith("device: wrong GPU: NVIDIA A40 on n1 (`names`")));
  o.end["detail"] = "this node shows no GPU on n1";
  EXPECT_THAT(lacks(o), ElementsAre(HasSubstr("`twin: true`")));
}

TEST_F(Probe, AGpuThatTheTargetDoesNotRunOn) {
  site_.gpus["L40"].target = "sm_90a";
  ProbeOutcome o = good();
  EXPECT_THAT(lacks(o), IsEmpty()) << "the node does not say";
  o.answer["gpu_targets"] = {"sm_89", "sm_89"};
  EXPECT_THAT(lacks(o),
              ElementsAre("target: `target: sm_90a` does not run on it: it is sm_89 (without `target` it "
                          "follows from the type)"));
  site_.gpus["L40"].target = "sm_80";
  EXPECT_THAT(lacks(o), IsEmpty());
}

TEST_F(Probe, WhatStandsAroundTheProgramIsMissing) {
  ProbeOutcome o = good();
  o.answer["tmpdir"] = "";
  o.answer["modules"] = "cudax/1:gcc";
  o.last_line = "module: command not found";
  EXPECT_THAT(lacks(o),
              ElementsAre("scratch: /local is no folder that can be written (module: command not found)",
                          "modules: cuda was not loaded (module: command not found)"));
}

TEST_F(Probe, NodesWithoutASandboxOrThatMayNotSubmit) {
  ProbeOutcome o = good();
  o.answer["machine"] = {{{"name", "sandbox"}, {"value", "none"}, {"ok", false}}};
  o.answer["submit"] = "no such file";
  EXPECT_THAT(lacks(o, 0),
              ElementsAre("sandbox: none", StartsWith("submits: no such file (a controller cannot")));
  EXPECT_THAT(lacks(o, 1), ElementsAre("sandbox: none"));
}

class TwinProbe : public Probe {
 protected:
  TwinProbe() : Probe("{partition: l40, twin: true}") {}
};

TEST_F(TwinProbe, WantsNoGpu) {
  EXPECT_THAT(probe_job(probes_[1], kName, "/r", "/opt").script, Not(HasSubstr("--gpu-name")));
  ProbeOutcome o = good();
  o.answer["gpus"] = Json::array();
  EXPECT_THAT(facts(1, o), testing::Contains("ok gpu L40 device: the CPU twin, as the site says"));
  EXPECT_THAT(lacks(o), ElementsAre("compiler g++: not found (install it)"));
}

}  // namespace
}  // namespace warpsmith::executor
