// GPUs of this machine as a library with NVML's functions tells of them, and what they are called.
#include "warpsmith/process/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/machine.h"
#include "with_variable.h"

namespace warpsmith::process {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFakeNvml = WARPSMITH_BINARY_DIR "/tests/libfake_nvml.so";

std::vector<std::string> uuids(const std::vector<Gpu>& gpus) {
  std::vector<std::string> out;
  for (const Gpu& gpu : gpus) out.push_back(gpu.uuid);
  return out;
}

TEST(Gpus, NvmlTellsOfEach) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml);
  const WithVariable gpus("FAKE_GPUS", "NVIDIA H200 9.0;lost;NVIDIA L40 8.9 MIG");
  std::string problem = "what was here";
  const std::vector<Gpu> found = nvidia_gpus(&problem);
  EXPECT_EQ(problem, "");
  ASSERT_EQ(found.size(), 2u) << "the lost one is left out, and spoils no other";
  EXPECT_EQ(found[0].name, "NVIDIA H200");
  EXPECT_EQ(found[0].uuid, "GPU-fake-0");
  EXPECT_EQ(found[0].driver, "570.86.15");
  EXPECT_EQ(found[0].index, 0);
  EXPECT_EQ(found[0].memory_bytes, 46068ull << 20);
  EXPECT_EQ(found[0].major, 9);
  EXPECT_EQ(found[0].minor, 0);
  EXPECT_FALSE(found[0].mig);
  EXPECT_EQ(found[1].index, 2);
  EXPECT_EQ(found[1].minor, 9);
  EXPECT_TRUE(found[1].mig);
}

TEST(Gpus, WhereThereIsNoneThatCostsNothing) {
  const WithVariable library("WARPSMITH_NVML", "libwarpsmith-there-is-no-such.so.1");
  std::string problem;
  auto least = std::chrono::steady_clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THAT(nvidia_gpus(&problem), IsEmpty());
    least = std::min(least, std::chrono::steady_clock::now() - begin);
  }
  // Some ten microseconds; the least of several, as others use this machine.
  EXPECT_LT(least, std::chrono::milliseconds(1));
  EXPECT_THAT(problem, HasSubstr("cannot be loaded"));
  const WithVariable none("WARPSMITH_NVML", "");
  EXPECT_THAT(nvidia_gpus(), IsEmpty());
}

TEST(Gpus, ADriverThatDoesNotAnswerSaysWhy) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml), gpus("FAKE_GPUS", "broken");
  std::string problem;
  EXPECT_THAT(nvidia_gpus(&problem), IsEmpty());
  EXPECT_EQ(problem, "NVML: Driver Not Loaded");
}

TEST(Gpus, ALibraryOfSomethingElseIsNotCalled) {
  const WithVariable library("WARPSMITH_NVML", "libc.so.6");
  std::string problem;
  EXPECT_THAT(nvidia_gpus(&problem), IsEmpty());
  EXPECT_EQ(problem, "the NVML library lacks functions");
}

// A program in place of nvidia-smi, that knows the query `fields` asks for alone.
void put_nvidia_smi(const fs::path& folder, const std::string& rows, const std::string& knows) {
  write_file_atomic(folder / "nvidia-smi", "#!/bin/sh\ncase \"$1\" in --query-gpu=" + knows + ") printf '" +
                                               rows +
                                               "' ;; *) echo 'Field is not a valid field'; exit 2 ;; esac\n");
  fs::permissions(folder / "nvidia-smi", fs::perms::owner_all);
}

TEST(Gpus, NvidiaSmiIsTheSecondWay) {
  const Scratch scratch;
  // This folder alone: the machine may have an nvidia-smi and GPUs.
  const WithVariable way("WARPSMITH_NVML", "nvidia-smi"), path("PATH", scratch.path().string());
  EXPECT_THAT(nvidia_gpus(), IsEmpty());
  put_nvidia_smi(scratch.path(),
                 "NVIDIA H200, GPU-a, 570.1, 3, 143771, 9.0, Disabled\\nNVIDIA A100, GPU-b, 570.1, 4, 81920, "
                 "8.0, Enabled\\n",
                 "*mig*");
  std::vector<Gpu> found = nvidia_gpus();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, 3);
  EXPECT_EQ(found[0].memory_bytes, 143771ull << 20);
  EXPECT_EQ(found[0].major, 9);
  EXPECT_FALSE(found[0].mig);
  EXPECT_TRUE(found[1].mig);
  put_nvidia_smi(scratch.path(), "Tesla K80, GPU-c, 470.1\\n", "name,uuid,driver_version");
  found = nvidia_gpus();
  ASSERT_EQ(found.size(), 1u) << "an old driver knows less";
  EXPECT_EQ(found[0].uuid, "GPU-c");
  EXPECT_EQ(found[0].major, 0);
  put_nvidia_smi(scratch.path(), "", "nothing");
  std::string problem;
  EXPECT_THAT(nvidia_gpus(&problem), IsEmpty());
  EXPECT_EQ(problem, "nvidia-smi failed: Field is not a valid field");
}

TEST(Gpus, CudaVisibleDevicesChooses) {
  std::vector<Gpu> gpus(4);
  for (int i = 0; i < 4; ++i) {
    gpus[static_cast<std::size_t>(i)].index = i;
    gpus[static_cast<std::size_t>(i)].uuid = "GPU-" + std::string(1, static_cast<char>('a' + i)) + "0";
  }
  gpus[3].mig = true;
  const auto chosen = [&](std::optional<std::string> visible) { return uuids(usable_gpus(gpus, visible)); };
  EXPECT_THAT(chosen(std::nullopt), ElementsAre("GPU-a0", "GPU-b0", "GPU-c0")) << "a GPU in slices is none";
  EXPECT_THAT(chosen(""), IsEmpty());
  EXPECT_THAT(chosen("-1"), IsEmpty());
  EXPECT_THAT(chosen("2,0"), ElementsAre("GPU-c0", "GPU-a0"));
  EXPECT_THAT(chosen(" 1 , GPU-a"), ElementsAre("GPU-b0", "GPU-a0"));
  EXPECT_THAT(chosen("GPU-c0,GPU-c,2"), ElementsAre("GPU-c0")) << "each once";
  EXPECT_THAT(chosen("1,7,0"), ElementsAre("GPU-b0")) << "as CUDA does: up to the first that is none";
  EXPECT_THAT(chosen("GPU-zz,0"), IsEmpty());
  EXPECT_THAT(chosen("3"), IsEmpty());
}

TEST(Gpus, ThisProcesssEnvironmentRestricts) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml);
  {
    const WithVariable visible("CUDA_VISIBLE_DEVICES", "1");
    EXPECT_THAT(uuids(usable_gpus()), ElementsAre("GPU-fake-1"));
  }
  const WithVariable visible("CUDA_VISIBLE_DEVICES", "");
  EXPECT_THAT(usable_gpus(), IsEmpty());
}

TEST(Gpus, DoctorListsThem) {
  const WithVariable library("WARPSMITH_NVML", kFakeNvml),
      gpus("FAKE_GPUS", "NVIDIA H200 9.0;NVIDIA L40 8.9 MIG");
  std::vector<std::string> values;
  for (const Fact& fact : machine_facts("/tmp"))
    if (fact.name == "gpu") values.push_back(fact.value + (fact.hint.empty() ? "" : " - " + fact.hint));
  EXPECT_THAT(
      values,
      ElementsAre("H200: NVIDIA H200, 45.0 GiB, capability 9.0 (sm_90a), driver 570.86.15, GPU-fake-0",
                  "L40: NVIDIA L40, 45.0 GiB, capability 8.9 (sm_89), driver 570.86.15, GPU-fake-1 - it "
                  "is in MIG mode: no job of ours gets it, as a slice of it is no L40"));
}

TEST(GpuType, OfADevicesName) {
  for (const auto& [name, type] : std::vector<std::pair<std::string, std::string>>{
           {"NVIDIA H200", "H200"},
           {"NVIDIA H200 NVL", "H200"},
           {"NVIDIA H20", "H20"},
           {"NVIDIA H20-3e", "H20"},
           {"NVIDIA H100 80GB HBM3", "H100"},
           {"NVIDIA H100 PCIe", "H100"},
           {"NVIDIA H100 NVL", "H100"},
           {"NVIDIA H800", "H800"},
           {"NVIDIA GH200 480GB", "GH200"},
           {"NVIDIA B200", "B200"},
           {"NVIDIA GB200", "GB200"},
           {"NVIDIA A100-SXM4-40GB", "A100"},
           {"NVIDIA A100 80GB PCIe", "A100"},
           {"A100-PCIE-40GB", "A100"},
           {"NVIDIA A10", "A10"},
           {"NVIDIA A10G", "A10G"},
           {"NVIDIA L40", "L40"},
           {"NVIDIA L40S", "L40S"},
           {"NVIDIA L4", "L4"},
           {"NVIDIA GeForce RTX 3090", "RTX3090"},
           {"NVIDIA GeForce RTX 3090 Ti", "RTX3090TI"},
           {"NVIDIA GeForce RTX 4070 Ti SUPER", "RTX4070TISUPER"},
           {"NVIDIA GeForce RTX 4090 D", "RTX4090D"},
           {"NVIDIA GeForce RTX 3070 Laptop GPU", "RTX3070LAPTOP"},
           {"NVIDIA GeForce GTX 1080 Ti", "GTX1080TI"},
           {"NVIDIA RTX A6000", "A6000"},
           {"NVIDIA RTX 6000 Ada Generation", "RTX6000ADA"},
           {"NVIDIA RTX 4000 SFF Ada Generation", "RTX4000ADA"},
           {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTXPRO6000"},
           {"Quadro RTX 8000", "RTX8000"},
           {"Tesla V100-SXM2-32GB", "V100"},
           {"Tesla V100S-PCIE-32GB", "V100S"},
           {"Tesla P100-PCIE-16GB", "P100"},
           {"Tesla T4", "T4"},
           {"NVIDIA TITAN V", "TITANV"},
           {"NVIDIA TITAN RTX", "TITANRTX"},
           // Models that are not known yet.
           {"NVIDIA X900 96GB HBM9", "X900"},
           {"NVIDIA CMP 170HX", "CMP170HX"},
           {"NVIDIA GB10", "GB10"},
           {"NVIDIA Thor", "THOR"},
           {"NVIDIA 77", "GPU_77"},
           // No type at all.
           {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", ""},
           {"", ""}})
    EXPECT_EQ(gpu_type_of(name), type) << name;
}

TEST(GpuType, OfAGresTypeWhereItIsKnown) {
  for (const auto& [type, model] :
       std::vector<std::pair<std::string, std::string>>{{"l40", "L40"},
                                                        {"L40S", "L40S"},
                                                        {"h100", "H100"},
                                                        {"nvidia_h100_80gb_hbm3", "H100"},
                                                        {"NVIDIA-A100-SXM4-80GB", "A100"},
                                                        {"tesla_v100-sxm2-32gb", "V100"},
                                                        {"rtx3090", "RTX3090"},
                                                        {"rtx_3090", "RTX3090"},
                                                        {"nvidia_geforce_rtx_2080_ti", "RTX2080TI"},
                                                        {"2080ti", "RTX2080TI"},
                                                        {"1080ti", "GTX1080TI"},
                                                        {"nvidia_rtx_a6000", "A6000"},
                                                        {"rtx_6000_ada", "RTX6000ADA"},
                                                        {"h20", "H20"},
                                                        {"titan_v", "TITANV"},
                                                        {"1g.5gb", ""},
                                                        {"nvidia_a100_1g.5gb", ""},
                                                        {"rack12", ""},
                                                        {"a1", ""},
                                                        {"avx512", ""},
                                                        {"gpu", ""},
                                                        {"", ""}})
    EXPECT_EQ(known_gpu_type(type), model) << type;
}

TEST(GpuType, IsCompiledFor) {
  EXPECT_EQ(compile_target(9, 0), "sm_90a");
  EXPECT_EQ(compile_target(10, 0), "sm_100a");
  EXPECT_EQ(compile_target(8, 9), "sm_89");
  EXPECT_EQ(compile_target(12, 0), "sm_120");
  EXPECT_EQ(compile_target(0, 0), "");
}

TEST(GpuType, RunsWhatWasCompiledForItsGeneration) {
  EXPECT_TRUE(runs_on("sm_90a", "sm_90a"));
  EXPECT_TRUE(runs_on("sm_90", "sm_90a"));
  EXPECT_TRUE(runs_on("sm_80", "sm_89"));
  EXPECT_FALSE(runs_on("sm_89", "sm_80"));
  EXPECT_FALSE(runs_on("sm_80", "sm_90a"));
  EXPECT_FALSE(runs_on("sm_90a", "sm_100a"));
  EXPECT_TRUE(runs_on("sm_100", "sm_103"));
  EXPECT_FALSE(runs_on("sm_100a", "sm_103"));
  EXPECT_FALSE(runs_on("sm_12", "sm_120"));
}

}  // namespace
}  // namespace warpsmith::process
