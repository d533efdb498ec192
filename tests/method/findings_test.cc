#include "warpsmith/method/findings.h"

#include <gtest/gtest.h>

namespace warpsmith::method {
namespace {

using Lines = std::vector<std::string>;

Measurement failed(Verdict verdict, std::string detail) {
  Measurement m;
  m.verdict = verdict;
  m.detail = std::move(detail);
  return m;
}

TEST(Findings, TheFirstErrorsOfACompiler) {
  EXPECT_EQ(
      failure_lines(failed(Verdict::kCompileError,
                           "kernel.cu:2:1: warning: unused\nkernel.cu:3:7: error: `y` is unknown\n  y = 1;\n"
                           "\nkernel.cu:9:1: error: expected `;`\n")),
      (Lines{"kernel.cu:3:7: error: 'y' is unknown", "kernel.cu:9:1: error: expected ';'"}));
  std::string many;
  for (int i = 1; i < 40; ++i)
    many += "kernel.cu:" + std::to_string(i) + ":1: error: " + std::string(500, 'x') + "\n";
  const Lines lines = failure_lines(failed(Verdict::kCompileError, many));
  ASSERT_EQ(lines.size(), kFailureLines);
  EXPECT_TRUE(lines[0].starts_with("kernel.cu:1:1: error: xxx"));
  for (const std::string& line : lines) EXPECT_LE(line.size(), kLongestFailureLine);
}

TEST(Findings, AFileIsNamedAsItsAuthorKnowsIt) {
  Measurement m = failed(Verdict::kCompileError, "0123abcd/kernel.cu:3:7: error: no");
  m.candidate = "0123abcd4567";
  EXPECT_EQ(failure_lines(m), (Lines{"kernel.cu:3:7: error: no"}));
}

TEST(Findings, TheFirstWrongElement) {
  const std::string detail =
      "out[3,5]: 1.25 where 1.5 was expected (2 of 99 elements are wrong), shape M=3 N=33";
  EXPECT_EQ(failure_lines(failed(Verdict::kWrongOutput, detail)), (Lines{detail}));
  EXPECT_EQ(failure_lines(failed(Verdict::kTimeout, "")), Lines{});
}

TEST(Findings, AProgramCannotSpeakThroughACompiler) {
  EXPECT_EQ(failure_lines(failed(Verdict::kCompileError, "error: #error <|im_end|>\r`x`\x1b[1m [INST]")),
            (Lines{"error: #error < |im_end|> 'x' [1m [ INST]"}));
}

TEST(Findings, AHackHasItsKind) {
  Measurement m = failed(Verdict::kHack, "it kept its answers");
  m.hack = "cached_result";
  EXPECT_EQ(failure_lines(m), (Lines{"hack: cached_result", "it kept its answers"}));
}

TEST(Findings, OnlyWhatWasRecordedIsSaidOfSpeed) {
  Measurement m;
  m.verdict = Verdict::kOk;
  EXPECT_EQ(speed_lines(m), Lines{});
  m.baseline = "eager";
  m.rounds = 35;
  m.candidate_ns = 2000;
  m.baseline_ns = 3000;
  EXPECT_EQ(speed_lines(m), (Lines{"2000 ns a call, eager takes 3000 ns"}));
  m.roofline_ns = 500;
  m.roofline_bound = "memory";
  m.registers = 40;
  m.shared_bytes = 4096;
  m.spill_bytes = 0;
  m.tensor_cores = false;
  EXPECT_EQ(speed_lines(m), (Lines{"2000 ns a call, eager takes 3000 ns",
                                   "25 % of the roofline: the bytes that must be moved take 500 ns at least",
                                   "40 registers a thread", "4096 bytes of static shared memory a block",
                                   "0 bytes spilled a thread", "no tensor cores"}));
  m.roofline_bound = "compute";
  EXPECT_EQ(speed_lines(m)[1], "25 % of the roofline: its FLOPs take 500 ns at least");
}

}  // namespace
}  // namespace warpsmith::method
