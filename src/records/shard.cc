#include "warpsmith/records/shard.h"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <unordered_set>

#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith {

namespace {

// Attempt folders "1", "2", … of a shard, oldest first.
std::vector<fs::path> attempts_of(const fs::path& shard_folder) {
  std::vector<fs::path> attempts;
  for (int n = 1;; ++n) {
    fs::path folder = shard_folder / std::to_string(n);
    std::error_code error;
    if (!fs::is_directory(folder, error)) return attempts;
    attempts.push_back(std::move(folder));
  }
}

bool is_count(const Json& value) { return value.is_number_unsigned(); }  // parsed: negative ones are not

// What is wrong with the form of a line of records.jsonl; empty: nothing.
std::string_view what_is_wrong(const Json& record) {
  if (!record.is_object()) return "it is no JSON object";
  if (const auto end = record.find("end"); end != record.end())
    return is_count(*end) ? "" : "`end` is no whole number from 0 on";
  const auto item = record.find("item");
  if (item == record.end()) return record.contains("extra") ? "" : "it has no `item`";
  if (!item->is_string()) return "`item` is no text";
  const auto index = record.find("index");
  return index == record.end() || is_count(*index) ? "" : "`index` is no whole number from 0 on";
}

}  // namespace

Json to_json(const BlobRef& r) {
  return {{"file", r.file}, {"offset", r.offset}, {"bytes", r.bytes}, {"crc", r.crc}};
}

BlobRef blob_ref_from_json(const Json& j) {
  return {json_at<std::string>(j, "file", "blob"), json_at<std::uint64_t>(j, "offset", "blob"),
          json_at<std::uint64_t>(j, "bytes", "blob"), json_at<std::uint32_t>(j, "crc", "blob")};
}

std::string read_blob(const fs::path& folder, const BlobRef& ref) {
  const fs::path path = folder / ref.file;
  InputFile in(path);
  const Error too_short(path.string() + ": ends before byte " + std::to_string(ref.offset + ref.bytes));
  if (ref.offset > in.size() || ref.bytes > in.size() - ref.offset) throw too_short;
  in.seek(ref.offset);
  std::string bytes(ref.bytes, '\0');
  for (std::size_t have = 0; have < bytes.size();) {
    const std::size_t n = in.read(bytes.data() + have, bytes.size() - have);
    if (n == 0) throw too_short;
    have += n;
  }
  if (crc32(bytes) != ref.crc)
    throw Error(path.string() + ": wrong checksum at byte " + std::to_string(ref.offset));
  return bytes;
}

std::vector<Item> read_items(const fs::path& items_file, std::uint64_t begin, std::uint64_t end) {
  std::vector<Item> items;
  std::uint64_t index = 0;
  if (!path_exists(items_file)) throw Error("cannot read " + items_file.string());
  scan_json_lines(items_file, 0, [&](Json&& value, std::uint64_t offset) {
    if (index >= begin && index < end) {
      const auto id = value.is_object() ? value.find("id") : value.end();
      if (id == value.end() || !id->is_string())
        throw BadContent(items_file, items_file.string() + ": bad item at byte " + std::to_string(offset) +
                                         ": it is no JSON object with an `id`");
      std::string name = id->get<std::string>();
      items.push_back({index, std::move(name), std::move(value)});
    }
    ++index;
  });
  if (items.size() != end - begin)
    throw Error(items_file.string() + ": has " + std::to_string(index) + " items, the shard wants [" +
                std::to_string(begin) + ", " + std::to_string(end) + ")");
  return items;
}

ShardScan scan_shard_records(const fs::path& shard_folder,
                             const std::function<void(Json&&, const fs::path&)>& take,
                             const std::function<void(const Error&)>& bad,
                             const std::function<void(Json&&)>& extra) {
  ShardScan scan;
  std::unordered_set<std::string> seen;
  for (const fs::path& attempt : attempts_of(shard_folder)) {
    ++scan.attempts;
    const fs::path file = attempt / "records.jsonl";
    const auto take_line = [&](Json&& record, std::uint64_t offset) {
      if (const std::string_view wrong = what_is_wrong(record); !wrong.empty()) {
        const BadContent error(file, file.string() + ": bad record at byte " + std::to_string(offset) + ": " +
                                         std::string(wrong));
        if (!bad) throw error;
        bad(error);
      } else if (record.contains("end")) {
        scan.ended = true;
      } else if (!record.contains("item")) {
        if (extra) extra(std::move(record));
      } else if (seen.insert(record["item"].get<std::string>()).second) {
        ++scan.records;
        take(std::move(record), attempt);
      }
    };
    if (!bad) {
      scan_json_lines(file, 0, take_line);
      continue;
    }
    try {
      scan_json_lines(file, 0, take_line, bad);
    } catch (const Error& e) {  // it cannot be read
      bad(e);
    }
  }
  return scan;
}

ShardRecords read_shard_records(const fs::path& shard_folder) {
  ShardRecords out;
  const ShardScan scan = scan_shard_records(
      shard_folder,
      [&out](Json&& record, const fs::path& attempt) {
        auto id = record["item"].get<std::string>();
        out.folder.emplace(id, attempt);
        out.records.emplace(std::move(id), std::move(record));
      },
      {}, [&out](Json&& record) { out.extras.push_back(std::move(record)); });
  out.ended = scan.ended;
  return out;
}

ShardSession::ShardSession(const fs::path& job_file, std::size_t shard)
    : job_(read_job_file(job_file)), shard_(shard), job_folder_(fs::absolute(job_file).parent_path()) {
  if (shard >= job_.shards.size()) throw Error("job has no shard " + std::to_string(shard), kExitUsage);
  items_ = read_items(job_folder_ / "items.jsonl", job_.shards[shard].first, job_.shards[shard].second);
  const fs::path shard_folder = job_folder_ / std::to_string(shard);
  make_folders(shard_folder);
  for (;;) {
    earlier_ = attempts_of(shard_folder);
    attempt_folder_ = shard_folder / std::to_string(earlier_.size() + 1);
    if (make_folder_exclusive(attempt_folder_)) break;
  }
  ShardRecords before = read_shard_records(shard_folder);
  done_ = std::move(before.records);
  extras_ = std::move(before.extras);
  records_ = std::make_unique<AppendFile>(attempt_folder_ / "records.jsonl");
  last_sync_ = std::chrono::steady_clock::now();
}

std::vector<Item> ShardSession::open_items() const {
  std::vector<Item> open;
  for (const Item& item : items_)
    if (!done_.contains(item.id)) open.push_back(item);
  return open;
}

BlobRef ShardSession::write_blob(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (!blob_) blob_ = std::make_unique<AppendFile>(attempt_folder_ / "blob.bin");
  const std::string_view view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  BlobRef ref{"blob.bin", blob_->size(), view.size(), crc32(view)};
  blob_->append(view);
  return ref;
}

void ShardSession::write(const Item& item, Json record) {
  const std::lock_guard lock(mutex_);
  record["item"] = item.id;
  record["index"] = item.index;
  append(record);
}

void ShardSession::write_extra(Json record) {
  const std::lock_guard lock(mutex_);
  record["extra"] = true;
  append(record);
}

void ShardSession::append(const Json& record) {
  records_->append(line_with_crc(record));
  const auto now = std::chrono::steady_clock::now();
  if (now - last_sync_ > std::chrono::milliseconds(900)) {
    // A record that is durable must not point at samples that are not.
    if (blob_) blob_->sync();
    records_->sync();
    last_sync_ = now;
  }
}

void ShardSession::sync() {
  const std::lock_guard lock(mutex_);
  if (blob_) blob_->sync();
  records_->sync();
  last_sync_ = std::chrono::steady_clock::now();
}

void ShardSession::finish() {
  const std::lock_guard lock(mutex_);
  records_->append(line_with_crc({{"end", items_.size()}}));
  if (blob_) blob_->sync();
  records_->sync();
}

namespace {

// An installed program that needs torch is started with torch's folder in front of LD_LIBRARY_PATH
// (cmake/with_torch.sh.in). The loader has read that; our children get what stood there before.
void restore_library_path() {
  const char* before = std::getenv("WARPSMITH_LIBRARY_PATH");
  if (before == nullptr) return;
  if (*before == '\0')
    ::unsetenv("LD_LIBRARY_PATH");
  else
    ::setenv("LD_LIBRARY_PATH", before, 1);
  ::unsetenv("WARPSMITH_LIBRARY_PATH");
}

}  // namespace

int shard_main(const std::string& program, int argc, char** argv,
               const std::function<void(ShardSession&)>& work) {
  restore_library_path();
  start_logging(program);
  return exit_code_of([&] {
    std::size_t number = 0;
    const char* const end = argc == 3 ? argv[2] + std::strlen(argv[2]) : nullptr;
    if (argc != 3 || std::from_chars(argv[2], end, number).ptr != end || argv[2] == end)
      throw Error("usage: " + program + " JOB.json SHARD", kExitUsage);
    ShardSession shard(argv[1], number);
    work(shard);
  });
}

}  // namespace warpsmith
