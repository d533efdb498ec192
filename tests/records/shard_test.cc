// A shard's attempts: what is left to do, what was written, what survives a cut.
#include "warpsmith/records/shard.h"
#include "warpsmith/records/done_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "scratch.h"
#include "with_variable.h"

namespace warpsmith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Shard : public testing::Test {
 protected:
  // <run>/stages/s/hash/0/job/: two shards of three and two items.
  void SetUp() override {
    folder_ = scratch_ / "stages/s/0123abcd/0/job";
    make_folders(folder_);
    JobFile job;
    job.program = "warpsmith-x";
    job.shards = {{0, 3}, {3, 5}};
    write_file_atomic(folder_ / "job.json", to_json(job).dump());
    write_file_atomic(
        folder_ / "items.jsonl",
        "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n{\"id\":\"d\",\"x\":4}\n{\"id\":\"e\"}\n");
  }
  ShardSession session(std::size_t shard = 0) const { return ShardSession(folder_ / "job.json", shard); }
  static std::vector<std::string> ids(const std::vector<Item>& items) {
    std::vector<std::string> out;
    for (const Item& item : items) out.push_back(item.id);
    return out;
  }
  fs::path records(int shard, int attempt) const {
    return folder_ / std::to_string(shard) / std::to_string(attempt) / "records.jsonl";
  }

  Scratch scratch_;
  fs::path folder_;
};

TEST_F(Shard, ItsItemsAndFolders) {
  const ShardSession s = session(1);
  EXPECT_THAT(ids(s.items()), ElementsAre("d", "e"));
  EXPECT_EQ(s.items()[0].index, 3u);
  EXPECT_EQ(s.items()[0].value["x"], 4);
  EXPECT_EQ(s.items_in_shard(), 2u);
  EXPECT_EQ(s.attempt_folder(), folder_ / "1" / "1");
  EXPECT_EQ(fs::canonical(s.run_folder()), fs::canonical(scratch_.path()));
  EXPECT_THAT(s.earlier_attempts(), IsEmpty());
}

TEST_F(Shard, RecordsOfAWholeAttempt) {
  ShardSession s = session();
  for (const Item& item : s.open_items()) s.write(item, {{"value", item.id + "!"}});
  s.finish();
  const ShardRecords found = read_shard_records(folder_ / "0");
  EXPECT_TRUE(found.ended);
  EXPECT_EQ(found.records.size(), 3u);
  EXPECT_EQ(found.records.at("b")["value"], "b!");
  EXPECT_EQ(found.records.at("b")["index"], 1);
  EXPECT_EQ(found.folder.at("b"), folder_ / "0" / "1");
  EXPECT_TRUE(read_file(records(0, 1)).ends_with(line_with_crc({{"end", 3}})));
}

TEST_F(Shard, TheNextAttemptDoesWhatIsLeft) {
  {
    ShardSession first = session();
    first.write(first.items()[0], {{"by", 1}});
    first.write(first.items()[2], {{"by", 1}});
  }
  ShardSession second = session();
  EXPECT_EQ(second.attempt_folder(), folder_ / "0" / "2");
  EXPECT_THAT(second.earlier_attempts(), ElementsAre(folder_ / "0" / "1"));
  EXPECT_THAT(ids(second.open_items()), ElementsAre("b"));
  EXPECT_EQ(second.earlier_records().at("c")["by"], 1);
  second.write(second.items()[1], {{"by", 2}});
  second.finish();
  EXPECT_THAT(ids(session().open_items()), IsEmpty());
  const ShardRecords found = read_shard_records(folder_ / "0");
  EXPECT_TRUE(found.ended);
  EXPECT_EQ(found.folder.at("a"), folder_ / "0" / "1");
  EXPECT_EQ(found.folder.at("b"), folder_ / "0" / "2");
}

TEST_F(Shard, ExtraRecordsAreNoItemsAndAllOfThemCount) {
  {
    ShardSession first = session();
    first.write(first.items()[0], {{"by", 1}});
    first.write_extra({{"baseline", 1}});
  }
  ShardSession second = session();
  EXPECT_THAT(ids(second.open_items()), ElementsAre("b", "c"));
  second.write_extra({{"baseline", 2}});
  const ShardRecords found = read_shard_records(folder_ / "0");
  EXPECT_EQ(found.records.size(), 1u);
  EXPECT_EQ(found.extras,
            (std::vector<Json>{{{"baseline", 1}, {"extra", true}}, {{"baseline", 2}, {"extra", true}}}));
  EXPECT_FALSE(found.ended);
}

TEST_F(Shard, TheFirstWholeRecordOfAnItemCounts) {
  ShardSession first = session(), second = session();  // two attempts at once: a lost one may go on
  second.write(second.items()[0], {{"by", 2}});
  first.write(first.items()[0], {{"by", 1}});
  first.write(first.items()[0], {{"by", 3}});
  const ShardRecords found = read_shard_records(folder_ / "0");
  EXPECT_EQ(found.records.at("a")["by"], 1);
  EXPECT_FALSE(found.ended);
}

TEST_F(Shard, ARecordCutAnywhereIsDoneAgain) {
  {
    ShardSession s = session();
    s.write(s.items()[0], {{"by", 1}});
    s.write(s.items()[1], {{"by", 1}});
  }
  const std::string whole = read_file(records(0, 1));
  const std::size_t first_line = whole.find('\n') + 1;
  for (std::size_t cut = first_line; cut < whole.size(); ++cut) {
    write_file_atomic(records(0, 1), whole.substr(0, cut));
    const ShardRecords found = read_shard_records(folder_ / "0");
    EXPECT_EQ(found.records.size(), 1u) << cut;
    EXPECT_FALSE(found.ended);
  }
  EXPECT_THAT(ids(session().open_items()), ElementsAre("b", "c"));
}

TEST_F(Shard, DamageInTheMiddleIsAnError) {
  {
    ShardSession s = session();
    s.write(s.items()[0], {});
  }
  write_file_atomic(records(0, 1), "{\"item\":\"a\n" + read_file(records(0, 1)));
  EXPECT_THROW(read_shard_records(folder_ / "0"), Error);
}

TEST_F(Shard, ARecordOfAnotherFormIsAnErrorWithItsPlace) {
  const auto problem = [&](const std::string& line) {
    make_folders(records(0, 1).parent_path());
    write_file_atomic(records(0, 1), "{\"item\":\"a\",\"index\":0}\n" + line + "\n");
    try {
      read_shard_records(folder_ / "0");
    } catch (const Error& e) {
      return std::string(e.what()).substr(records(0, 1).string().size());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(problem("{\"item\":3}"), ": bad record at byte 23: `item` is no text");
  EXPECT_EQ(problem("{\"value\":3}"), ": bad record at byte 23: it has no `item`");
  EXPECT_EQ(problem("[\"item\"]"), ": bad record at byte 23: it is no JSON object");
  for (const char* index : {"-1", "\"x\"", "1.5", "null"})
    EXPECT_EQ(problem("{\"item\":\"b\",\"index\":" + std::string(index) + "}"),
              ": bad record at byte 23: `index` is no whole number from 0 on");
  for (const char* end : {"-1", "\"a\"", "1e30", "null"})
    EXPECT_EQ(problem("{\"end\":" + std::string(end) + "}"),
              ": bad record at byte 23: `end` is no whole number from 0 on");
  EXPECT_EQ(problem("{\"end\":0}"), "nothing was thrown");
  EXPECT_EQ(problem("{\"item\":\"b\"}"), "nothing was thrown") << "an index may be missing";
}

TEST_F(Shard, BlobsComeBackAndDamageIsFound) {
  ShardSession s = session();
  const std::vector<std::int32_t> one = {1, 2, 3}, two = {-1, -2};
  const BlobRef first = s.write_blob(std::as_bytes(std::span(one))),
                second = s.write_blob(std::as_bytes(std::span(two)));
  s.write(s.items()[0], {{"blob", to_json(second)}});
  s.sync();
  EXPECT_EQ(first.offset, 0u);
  EXPECT_EQ(second.offset, 12u);
  const ShardRecords found = read_shard_records(folder_ / "0");
  const std::string bytes =
      read_blob(found.folder.at("a"), blob_ref_from_json(found.records.at("a")["blob"]));
  ASSERT_EQ(bytes.size(), 8u);
  EXPECT_EQ(std::memcmp(bytes.data(), two.data(), 8), 0);

  const fs::path file = s.attempt_folder() / "blob.bin";
  std::string content = read_file(file);
  content[13] = static_cast<char>(content[13] ^ 1);
  write_file_atomic(file, content);
  EXPECT_EQ(read_blob(s.attempt_folder(), first).size(), 12u);
  EXPECT_THROW(read_blob(s.attempt_folder(), second), Error);  // checksum
  write_file_atomic(file, content.substr(0, 15));
  EXPECT_THROW(read_blob(s.attempt_folder(), second), Error);  // too short
  fs::remove(file);
  EXPECT_THROW(read_blob(s.attempt_folder(), first), Error);
}

TEST_F(Shard, AnEmptyBlob) {
  ShardSession s = session();
  EXPECT_EQ(read_blob(s.attempt_folder(), s.write_blob({})), "");
}

TEST_F(Shard, TextThatIsNoUtf8IsWritten) {
  ShardSession s = session();
  s.write(s.items()[0], {{"text", "bad \xff byte"}});
  EXPECT_THAT(read_shard_records(folder_ / "0").records.at("a")["text"].get<std::string>(),
              HasSubstr("bad "));
}

TEST_F(Shard, MistakesAreTold) {
  EXPECT_THROW(session(2), Error);
  write_file_atomic(folder_ / "items.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
  EXPECT_THROW(session(0), Error);
  fs::remove(folder_ / "items.jsonl");
  EXPECT_THROW(session(0), Error);
  EXPECT_THROW(ShardSession(folder_ / "none.json", 0), Error);
}

TEST_F(Shard, ChildrenGetTheLibraryPathThatWasBefore) {
  const std::string job = (folder_ / "job.json").string();
  const auto path_of_children = [&](std::string program, const std::string& before) {
    const WithVariable now("LD_LIBRARY_PATH", "/torch/lib:" + before), kept("WARPSMITH_LIBRARY_PATH", before);
    std::string file = job, shard = "0";
    char* argv[] = {program.data(), file.data(), shard.data(), nullptr};
    std::string seen;
    EXPECT_EQ(shard_main(program, 3, argv,
                         [&](ShardSession&) {
                           const char* path = std::getenv("LD_LIBRARY_PATH");
                           seen = path != nullptr ? path : "none";
                           EXPECT_EQ(std::getenv("WARPSMITH_LIBRARY_PATH"), nullptr);
                         }),
              kExitOk);
    return seen;
  };
  EXPECT_EQ(path_of_children("warpsmith-a", "/a:/b"), "/a:/b");
  EXPECT_EQ(path_of_children("warpsmith-b", ""), "none");
}

TEST(DoneShards, LinesOfAnotherFormArePassedOver) {
  const Scratch scratch;
  append_done_shards(scratch / "", {3});
  AppendFile(scratch / "done.jsonl")
      .append("{\"shard\":\"x\"}\n{\"shard\":-1}\n{\"shard\":1e30}\n" + std::string(200'000, '[') + "\n");
  EXPECT_EQ(read_done_shards(scratch / ""), (std::set<std::uint32_t>{3}));
}

TEST(DoneShards, AreReadAsWrittenAndHalfALineIsPassedOver) {
  const Scratch scratch;
  EXPECT_TRUE(read_done_shards(scratch / "").empty());
  append_done_shards(scratch / "", {3, 5});
  AppendFile(scratch / "done.jsonl").append("{\"sha");
  append_done_shards(scratch / "", {8});
  EXPECT_EQ(read_done_shards(scratch / ""), (std::set<std::uint32_t>{3, 5, 8}));
}

}  // namespace
}  // namespace warpsmith
