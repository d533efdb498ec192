// Which measurements confirm a case of cheating.
#include "warpsmith/records/hack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpsmith/base/files.h"

namespace warpsmith {
namespace {

Measurement measured(Verdict verdict, const std::string& detail = "", int remeasured = 0,
                     const std::string& hack = "") {
  Measurement m;
  m.verdict = verdict;
  m.detail = detail;
  m.remeasured = remeasured;
  m.hack = hack;
  return m;
}

TEST(ConfirmedHack, IsAHackAFloorASandboxOrAScoreThatDidNotComeAgain) {
  EXPECT_EQ(confirmed_hack(measured(Verdict::kHack, "busy after the answer", 0, "late_work")), "late_work");
  EXPECT_EQ(confirmed_hack(measured(Verdict::kTooFast, "7 ns a call")), "too_fast");
  EXPECT_EQ(confirmed_hack(measured(Verdict::kSandboxViolation, "fork")), "sandbox_violation");
  EXPECT_EQ(confirmed_hack(
                measured(Verdict::kUnstable, "measured again: 9.00x, then 1.10x, more than 10 % apart", 1)),
            "not_repeated");
}

TEST(ConfirmedHack, NothingElseIs) {
  const std::string apart = "measured again: 9.00x, then 1.10x, more than 10 % apart";
  for (const std::string_view name : kVerdictNames) {
    const Verdict verdict = *parse_verdict(name);
    if (verdict == Verdict::kHack || verdict == Verdict::kTooFast || verdict == Verdict::kSandboxViolation)
      continue;
    EXPECT_EQ(confirmed_hack(measured(verdict, "the variance between buckets is 0.1, over 0.01", 1)),
              std::nullopt)
        << name;
    if (verdict == Verdict::kUnstable) continue;
    EXPECT_EQ(confirmed_hack(measured(verdict, apart, 1)), std::nullopt) << name;
  }
  EXPECT_EQ(confirmed_hack(measured(Verdict::kUnstable, apart, 0)), std::nullopt) << "measured once";
  EXPECT_EQ(confirmed_hack(
                measured(Verdict::kUnstable, "measured again: 3.10x, then 3.60x, more than 10 % apart", 1)),
            std::nullopt)
      << "it rose";
}

TEST(ConfirmedHack, AKindNamesAFolder) {
  for (const char* kind : {"", "../x", "a b", "late/work"})
    EXPECT_EQ(confirmed_hack(measured(Verdict::kHack, "", 0, kind)), "hack") << kind;
  EXPECT_EQ(confirmed_hack(measured(Verdict::kHack, "", 0, std::string(41, 'a'))), "hack");
}

// The record says why a score is unstable in words alone.
TEST(ConfirmedHack, TheWordsAreThoseOfTheJudge) {
  std::string judge;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(WARPSMITH_SOURCE_DIR) / "src/measure"))
    if (entry.path().filename() == "judge.cc") judge += read_file(entry.path());
  EXPECT_THAT(judge, testing::HasSubstr("\"measured again: {:.2f}x, then {:.2f}x"));
}

TEST(HackCase, HoldsWhatTheMeasurementSaid) {
  const Candidate candidate = make_plan_candidate("softmax", "kernel", {"generated", "rl", 3, "", ""});
  Measurement m = measured(Verdict::kHack, "busy after the answer", 0, "late_work");
  m.device = DeviceFacts{.kind = "H100",
                         .name = "NVIDIA H100",
                         .uuid = "",
                         .driver = "",
                         .host = "",
                         .sandbox = "",
                         .extra = {}};
  const auto hack = hack_case(candidate, m);
  ASSERT_TRUE(hack);
  EXPECT_EQ(hack->candidate.id, candidate.id);
  EXPECT_EQ(hack->verdict, Verdict::kHack);
  EXPECT_EQ(hack->kind, "late_work");
  EXPECT_EQ(hack->reason, "busy after the answer");
  EXPECT_EQ(hack->device, "H100");
  EXPECT_EQ(hack->device_name, "NVIDIA H100");
  EXPECT_FALSE(hack_case(candidate, measured(Verdict::kOk)));
}

}  // namespace
}  // namespace warpsmith
