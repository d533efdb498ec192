// A job program's side of one shard: which items are left, where the records go.
//
//   ShardSession shard(argv);                       // reads job.json, claims the next attempt folder
//   for (const Item& item : shard.open_items()) {   // those without a whole record in an earlier attempt
//     shard.write(item, {{"verdict", "ok"}});        // one write(2); fsynced at least every second
//   }
//   shard.write_extra({{"baseline", …}});           // something of the shard that is no item's
//   shard.finish();                                 // the `end` record, fsynced
//
// A record is {"item": <id>, "index": <position in items.jsonl>, …}; an extra one {"extra": true, …}; the end
// record {"end": <items of the shard>}. Each line carries a checksum (base/json.h).
// Not thread-safe, but for write() and write_extra(), which take a lock.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "warpsmith/base/files.h"
#include "warpsmith/records/job.h"

namespace warpsmith {

struct Item {
  std::uint64_t index = 0;  // in items.jsonl
  std::string id;
  Json value;
};

// Where an array lies in an attempt's blob.bin.
struct BlobRef {
  std::string file;
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t crc = 0;
};
Json to_json(const BlobRef& ref);
BlobRef blob_ref_from_json(const Json& json);
// The bytes of `ref` in `folder`; throws Error where they are short or the checksum is wrong.
std::string read_blob(const std::filesystem::path& folder, const BlobRef& ref);

class ShardSession {
 public:
  // `job_file`: path of job.json; `shard`: index into its `shards`. Throws Error.
  ShardSession(const std::filesystem::path& job_file, std::size_t shard);

  const JobFile& job() const { return job_; }
  std::size_t shard() const { return shard_; }
  const std::filesystem::path& job_folder() const { return job_folder_; }
  // Paths in params and items are relative to it, unless absolute.
  std::filesystem::path run_folder() const { return (job_folder_ / job_.run_folder).lexically_normal(); }
  const std::filesystem::path& attempt_folder() const {
    return attempt_folder_;
  }  // this process writes here only
  const std::vector<std::filesystem::path>& earlier_attempts() const { return earlier_; }  // oldest first
  std::size_t items_in_shard() const { return items_.size(); }
  const std::vector<Item>& items() const { return items_; }
  std::vector<Item> open_items() const;
  // Whole records of earlier attempts by item id (the first whole one counts).
  const std::map<std::string, Json>& earlier_records() const { return done_; }

  const std::vector<Json>& earlier_extras() const { return extras_; }  // of earlier attempts

  BlobRef write_blob(std::span<const std::byte> bytes);
  void write(const Item& item, Json record);  // adds `item` and `index`
  void write_extra(Json record);              // adds `extra`
  void sync();
  void finish();

 private:
  JobFile job_;
  std::size_t shard_;
  std::filesystem::path job_folder_, attempt_folder_;
  std::vector<std::filesystem::path> earlier_;
  std::vector<Item> items_;
  std::map<std::string, Json> done_;
  std::vector<Json> extras_;
  std::unique_ptr<AppendFile> records_, blob_;
  std::chrono::steady_clock::time_point last_sync_;
  void append(const Json& record);  // under the lock
  std::mutex mutex_;
};

// The controller's side: every item's first whole record over all attempts of a shard, and whether it has
// ended.
struct ShardRecords {
  std::map<std::string, Json> records;  // by item id
  std::map<std::string, std::filesystem::path>
      folder;                // attempt folder that holds the item's record, for its blobs
  std::vector<Json> extras;  // of all attempts, in their order: a later one may say the same once more
  bool ended = false;
};
ShardRecords read_shard_records(const std::filesystem::path& shard_folder);

// The same one by one, in the order of the files, with the attempt folder of each: nothing is kept. Throws
// BadContent at the first bad line; or, where `bad` is given, hands it each bad line, and each file that
// cannot be read, and goes on. `extra` gets every extra record.
struct ShardScan {
  std::uint64_t records = 0;
  int attempts = 0;
  bool ended = false;
};
ShardScan scan_shard_records(const std::filesystem::path& shard_folder,
                             const std::function<void(Json&&, const std::filesystem::path& attempt)>& take,
                             const std::function<void(const Error&)>& bad = {},
                             const std::function<void(Json&&)>& extra = {});

// Items [begin, end) of an items.jsonl.
std::vector<Item> read_items(const std::filesystem::path& items_file, std::uint64_t begin, std::uint64_t end);

// The main of `program`, which is started as `program JOB.json SHARD`: logging, the shard, the exit code.
int shard_main(const std::string& program, int argc, char** argv,
               const std::function<void(ShardSession&)>& work);

}  // namespace warpsmith
