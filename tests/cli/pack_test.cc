// A run in parts, and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "scratch.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/cli/command.h"

namespace warpsmith::cli {
namespace {

using ::testing::HasSubstr;

class PackTest : public testing::Test {
 protected:
  void SetUp() override {
    write("run.json", "{}");
    write("journal/1.jsonl", "one\n");
    write("stages/sft/0a1b2c3d/output.json", "{}");
    write("stages/sft/0a1b2c3d/0/train/model/records.jsonl", "a stage's job may have that name\n");
    write("stages/sft/0a1b2c3d/model/model.safetensors", std::string(200'000, 'w'));
    std::string noise;
    for (std::uint32_t i = 0, x = 1; i < 300'000; ++i) {
      x = x * 1664525 + 1013904223;
      noise += static_cast<char>(x >> 24);
    }
    write("checkpoints/sft-0a1b2c3d-12/adapter.h5", noise);
    write("cache/ab.so", "machine code");
    write("results.h5", std::string(1000, 'h'));
    write("a name\nof two lines", "x");
  }
  void write(const std::string& file, const std::string& text) {
    make_folders((run() / file).parent_path());
    write_file_atomic(run() / file, text);
  }
  fs::path run() const { return scratch_ / "runs/mine"; }
  std::string command(std::vector<std::string> arguments) {
    CommandContext context;
    context.results = scratch_ / "elsewhere";
    CLI::App app;
    add_pack(app, context);
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants it
    app.parse(arguments);
    ::testing::internal::CaptureStdout();
    int code = -1;
    std::string refused;
    try {
      code = context.action();
    } catch (const Error& e) {
      refused = e.what();
    }
    std::fflush(stdout);
    const std::string said = ::testing::internal::GetCapturedStdout();
    EXPECT_TRUE(!refused.empty() || code == kExitOk);
    return said + refused;
  }
  std::string pack(std::vector<std::string> more = {}) {
    std::vector<std::string> all = {"pack",    run().string(), "--output", folder().string(),
                                    "--parts", "100KiB"};
    all.insert(all.end(), more.begin(), more.end());
    return command(all);
  }
  fs::path folder() const { return scratch_ / "carried"; }
  fs::path there() const { return scratch_ / "elsewhere/mine"; }

  const Scratch scratch_;
};

TEST_F(PackTest, ComesBackWhole) {
  const std::string said = pack();
  EXPECT_THAT(said, HasSubstr("in 3 parts, of 7 files"));
  EXPECT_THAT(said, HasSubstr("left out: exported models, 195.3 KiB\n"));
  EXPECT_EQ(fs::file_size(folder() / "part-001"), 100u << 10);
  EXPECT_THAT(pack(), HasSubstr("is there already"));
  command({"unpack", folder().string()});
  for (const char* file : {"run.json", "journal/1.jsonl", "stages/sft/0a1b2c3d/output.json",
                           "stages/sft/0a1b2c3d/0/train/model/records.jsonl",
                           "checkpoints/sft-0a1b2c3d-12/adapter.h5", "cache/ab.so", "a name\nof two lines"})
    EXPECT_EQ(read_file(there() / file), read_file(run() / file)) << file;
  EXPECT_FALSE(fs::exists(there() / "stages/sft/0a1b2c3d/model"));
  EXPECT_FALSE(fs::exists(there() / "results.h5"));
  EXPECT_THAT(command({"unpack", folder().string()}), HasSubstr("is there already: name another folder"));
  command({"unpack", folder().string(), "--into", (scratch_ / "third").string()});
  EXPECT_TRUE(fs::exists(scratch_ / "third/run.json"));
}

TEST_F(PackTest, TakesExportsWhereAsked) { EXPECT_THAT(pack({"--exports"}), HasSubstr("of 8 files")); }

TEST_F(PackTest, DamageIsFound) {
  pack();
  std::string bytes = read_file(folder() / "part-002");
  bytes[5] = static_cast<char>(bytes[5] ^ 1);
  write_file_atomic(folder() / "part-002", bytes);
  EXPECT_THAT(command({"unpack", folder().string()}), HasSubstr("a part is damaged: "));
  fs::remove(folder() / "part-002");
  EXPECT_THAT(command({"unpack", folder().string()}), HasSubstr("a part is missing: "));
  EXPECT_FALSE(fs::exists(there()));
  EXPECT_THAT(command({"unpack", run().string()}), HasSubstr("is no pack"));
}

TEST_F(PackTest, MistakesAreRefused) {
  EXPECT_THAT(command({"pack", run().string(), "--parts", "few"}), HasSubstr("--parts few: a size"));
  EXPECT_THAT(command({"pack", run().string(), "--parts", "1KiB"}), HasSubstr("64 KiB at least"));
  EXPECT_THAT(command({"pack", (scratch_ / "none").string()}), HasSubstr("there is no run"));
}

}  // namespace
}  // namespace warpsmith::cli
