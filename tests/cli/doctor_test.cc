#include "doctor.h"

#include <gtest/gtest.h>

#include "scratch.h"
#include "warpsmith/base/files.h"
#include "warpsmith/records/ceilings.h"
#include "with_variable.h"

namespace warpsmith::cli {
namespace {

Ceilings ceilings(const std::string& uuid, const std::string& date, double read) {
  Ceilings c;
  c.name = "NVIDIA H200";
  c.uuid = uuid;
  c.host = "node7";
  c.date = date;
  c.figures[kReadBandwidth] = {read, read, read, 5, ""};
  return c;
}

TEST(Doctor, TellsAWordForTheSandboxThatIsNone) {
  const WithVariable wrong("WARPSMITH_SANDBOX", "nope");
  const std::vector<process::Fact> facts = sandbox_facts();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_FALSE(facts[0].ok);
  EXPECT_EQ(facts[0].value, "nope");
  EXPECT_EQ(facts[0].hint, "WARPSMITH_SANDBOX is `nope`; none, landlock or bubblewrap was expected");
}

TEST(Doctor, TellsTheNewestCeilingsOfEachGpu) {
  const Scratch scratch;
  EXPECT_TRUE(ceilings_facts(scratch / "nothing").empty());
  const auto keep = [&](const std::string& run, const Ceilings& c) {
    write_ceilings(ceilings_path(scratch.path() / run / "cache/ceilings", c.uuid), c);
  };
  keep("a", ceilings("GPU-1", "2026-05-01T12:00:00Z", 4.1e12));
  keep("b", ceilings("GPU-1", "2026-05-02T12:00:00Z", 4.2e12));
  keep("c", ceilings("GPU-1", "2026-04-30T12:00:00Z", 4.3e12));
  keep("c", ceilings("GPU-2", "2026-04-30T12:00:00Z", 4.4e12));
  write_file_atomic(scratch / "c/cache/ceilings/GPU-3.json", "{");
  make_folders(scratch / "d");
  write_file_atomic(scratch / "a file", "");
  const std::vector<process::Fact> facts = ceilings_facts(scratch.path());
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].name, "ceilings of H200");
  EXPECT_EQ(facts[0].value, "reads 4.20 TB/s");
  EXPECT_EQ(facts[0].hint, "GPU-1, measured on node7, 2026-05-02T12:00:00Z");
  EXPECT_EQ(facts[1].value, "reads 4.40 TB/s");
  EXPECT_TRUE(facts[0].ok && facts[1].ok) << "that a GPU is slow is no lack";
}

}  // namespace
}  // namespace warpsmith::cli
