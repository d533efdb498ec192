// warpsmith-compile as an executor starts it: job file in, records out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/shard.h"
#include "warpsmith/toolchain/extension.h"
#include "warpsmith/toolchain/gpu.h"

namespace warpsmith {
namespace {

class CompileJob : public ::testing::Test {
 protected:
  void SetUp() override {
    run_ = fs::temp_directory_path() / ("warpsmith-compile-job-test-" + std::to_string(::getpid()));
    fs::remove_all(run_);
    job_ = run_ / "stages/s/0123abcd/0/compile";
    make_folders(job_ / "0");
  }
  void TearDown() override { fs::remove_all(run_); }

  // Records of a good candidate and of one that does not compile, as "good" and "bad". `more`: good ones too,
  // as "more0", ….
  process::ChildResult run_job(Json params, Tier tier = Tier::kPlan,
                               const std::string& body = "out[0] = x[0];", int more = 0) {
    params["datasets"] = (fs::path(WARPSMITH_SOURCE_DIR) / "datasets").string();
    JobFile job;
    job.program = "warpsmith-compile";
    job.shards = {{0, static_cast<std::size_t>(2 + more)}};
    job.params = std::move(params);
    write_file_atomic(job_ / "job.json", to_json(job).dump());
    const std::string plan = "// plan: launch k<<<cdiv(N, 256), 256>>>(x, out, N)\n";
    const std::string head = plan + "__global__ void k(const float* x, float* out, int N) { ";
    Json good = to_json(make_plan_candidate("gelu", head + body + " }\n", {}));
    Json bad = to_json(make_plan_candidate("gelu", head + "out[0] = oops; }\n", origin_));
    if (tier == Tier::kExtension) {
      good = extension("return x.clone();");
      bad = extension("return oops;");
    }
    std::string items = Json{{"id", "good"}, {"candidate", good}}.dump() + "\n" +
                        Json{{"id", "bad"}, {"candidate", bad}}.dump() + "\n";
    for (int i = 0; i < more; ++i)
      items += Json{{"id", "more" + std::to_string(i)}, {"candidate", good}}.dump() + "\n";
    write_file_atomic(job_ / "items.jsonl", items);
    process::ChildSpec spec;
    spec.argv = {std::string(WARPSMITH_BINARY_DIR) + "/warpsmith-compile", (job_ / "job.json").string(), "0"};
    spec.limits.wall_s = 100;
    return process::run_child(spec);
  }
  static Json extension(const std::string& body) {
    Candidate c;
    c.task = "gelu";
    c.tier = Tier::kExtension;
    c.files = {{"kernel.cu",
                "#include <torch/extension.h>\ntorch::Tensor forward(torch::Tensor x) { " + body + " }\n"}};
    c.id = candidate_id(c);
    return to_json(c);
  }
  Json record(const std::string& id) { return read_shard_records(job_ / "0").records.at(id); }

  fs::path run_, job_;
  Origin origin_;  // of "bad"
};

TEST_F(CompileJob, ForTheCpu) {
  const process::ChildResult result = run_job({{"device_kind", "cpu"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(record("good")["verdict"], "ok");
  EXPECT_FALSE(record("good").contains("binaries"));
  EXPECT_EQ(record("bad")["verdict"], "compile_error");
}

// Also where the compiler's words come from the cache, which has them for every candidate of that source.
TEST_F(CompileJob, MessagesNameTheCandidatesOwnFile) {
  for (const std::string file : {"ok/host.cu", "ok/other.cu", ""}) {
    origin_ = {file.empty() ? "generated" : "dataset", "sft", 1, file, ""};
    fs::remove_all(job_ / "0");
    make_folders(job_ / "0");
    const process::ChildResult result = run_job({{"device_kind", "cpu"}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string log = record("bad")["log"];
    EXPECT_THAT(log, testing::HasSubstr((file.empty() ? "/kernel.cu" : file) + ":2:"));
    EXPECT_EQ(log.find("kernel.cu") == std::string::npos, !file.empty()) << log;
  }
}

#ifdef WARPSMITH_TEST_NVRTC
TEST_F(CompileJob, ForATypeOfGpu) {
  const process::ChildResult result = run_job({{"device_kind", "H200"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json good = record("good");
  EXPECT_EQ(good["verdict"], "ok");
  EXPECT_EQ(good["binaries"].size(), 1u);
  EXPECT_EQ(good["binaries"]["sm_90a"], good["binary"]);
  EXPECT_TRUE(fs::exists(run_ / good["binary"].get<std::string>()));
  EXPECT_EQ(good["kernels"]["sm_90a"][0]["name"], "k");
  EXPECT_GT(good["kernels"]["sm_90a"][0]["registers"], 0);
  EXPECT_EQ(good["tensor_cores"], (Json{{"sm_90a", false}}));
  EXPECT_EQ(record("bad")["verdict"], "compile_error");
  EXPECT_EQ(record("bad")["binary"], "");
  EXPECT_TRUE(record("bad")["binaries"].empty());
  EXPECT_TRUE(record("bad")["tensor_cores"].empty());
}

// A job that has a GPU has no compiler to wait for: the harness's kernels lie in the cache as well.
TEST_F(CompileJob, HasTheHarnessReady) {
  const process::ChildResult result =
      run_job({{"device_kind", "L40"}, {"targets", {"sm_89", "sm_80"}}, {"cache", "cache"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::set<std::string> targets;
  for (const auto& entry : fs::directory_iterator(run_ / "cache")) {
    if (entry.path().extension() != ".cubin") continue;
    const toolchain::CubinFacts facts = toolchain::read_cubin_facts(entry.path());
    if (facts.kernels.front().name == "ws_hold") targets.insert(facts.target);
  }
  EXPECT_EQ(targets, (std::set<std::string>{"sm_80", "sm_89"}));
}

TEST_F(CompileJob, SaysWhetherThereAreTensorCores) {
  const process::ChildResult result =
      run_job({{"device_kind", "H200"}, {"targets", {"sm_90a", "sm_80"}}}, Tier::kPlan,
              R"(const unsigned* a = (const unsigned*)x;
  float c[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
  for (int i = 0; i < 4; i++) out[i] = c[i];)");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(record("good")["verdict"], "ok") << record("good")["log"];
  EXPECT_EQ(record("good")["tensor_cores"], (Json{{"sm_80", true}, {"sm_90a", true}}));
}

TEST_F(CompileJob, ForSeveralTargets) {
  const process::ChildResult result = run_job({{"device_kind", "L40"}, {"targets", {"sm_89", "sm_80"}}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json good = record("good");
  EXPECT_EQ(good["binaries"].size(), 2u);
  EXPECT_EQ(good["binaries"]["sm_89"], good["binary"]);
  EXPECT_NE(good["binaries"]["sm_80"], good["binary"]);
}

TEST_F(CompileJob, ExtensionsWhereNvccIs) {
  const bool here = toolchain::extension_toolchain_lacks().empty();
  const process::ChildResult result = run_job({{"device_kind", "H200"}, {"timeout_s", 60}}, Tier::kExtension);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  if (!here) {
    EXPECT_EQ(record("good")["verdict"], "unsupported");
    GTEST_SKIP() << "there is no nvcc here";
  }
  EXPECT_EQ(record("good")["verdict"], "ok") << record("good")["log"];
  EXPECT_EQ(record("good")["binaries"]["sm_90a"], record("good")["binary"]);
  EXPECT_TRUE(record("good")["libraries"].empty());
  EXPECT_TRUE(record("good")["tensor_cores"].empty()) << "no kernel of its own";
  EXPECT_EQ(record("bad")["verdict"], "compile_error");
  EXPECT_NE(record("bad")["log"].get<std::string>().find("kernel.cu:2:"), std::string::npos);
}
#else
TEST_F(CompileJob, WithoutCudaItSaysSo) {
  const process::ChildResult result = run_job({{"device_kind", "H200"}});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("this build has no CUDA"), std::string::npos) << result.err;
}
#endif

TEST_F(CompileJob, ExtensionsHaveNoTwin) {
  const process::ChildResult result = run_job({{"device_kind", "cpu"}}, Tier::kExtension);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(record("good")["verdict"], "unsupported");
  EXPECT_NE(record("good")["log"].get<std::string>().find("tier `plan`"), std::string::npos);
}

// A cache that is a file stands for what goes wrong on this machine.
TEST_F(CompileJob, AFaultIsNotTheCandidates) {
  write_file_atomic(run_ / "cache", "");
  const process::ChildResult result = run_job({{"device_kind", "cpu"}});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* id : {"good", "bad"}) {
    EXPECT_EQ(record(id)["verdict"], "not_measured");
    EXPECT_NE(record(id)["log"].get<std::string>().find("cache"), std::string::npos) << record(id)["log"];
    EXPECT_EQ(record(id)["binary"], "");
  }
}

TEST_F(CompileJob, FaultsInARowEndTheShard) {
  write_file_atomic(run_ / "cache", "");
  const process::ChildResult result = run_job({{"device_kind", "cpu"}}, Tier::kPlan, "out[0] = x[0];", 3);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(read_shard_records(job_ / "0").records.size(), 2u);
}

TEST_F(CompileJob, WhatIsNoGpuIsAMistake) {
  process::ChildResult result = run_job({{"device_kind", "V100"}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("device_kind `V100`"), std::string::npos) << result.err;
  result = run_job({{"device_kind", "H100"}, {"targets", {"hopper"}}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("`hopper`"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace warpsmith
