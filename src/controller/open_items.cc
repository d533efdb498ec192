#include "open_items.h"

#include <string_view>
#include <unordered_map>

#include "warpsmith/base/untrusted.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::controller {

namespace {

// Throws BadContent for records that are no such.
std::uint32_t without_records(const ShardItems& shard) {
  std::unordered_map<std::string_view, std::uint64_t> open;
  for (std::uint64_t i = shard.range.first; i < shard.range.second; ++i) open.emplace(shard.ids[i], i);
  const auto take = [&](Json&& record, const std::filesystem::path& attempt) {
    const std::string& item = record["item"].get_ref<const std::string&>();
    const auto found = open.find(item);
    if (found == open.end()) return;
    const auto index = record.find("index");
    const std::filesystem::path file = attempt / "records.jsonl";
    if (index != record.end() && index->get<std::uint64_t>() != found->second)
      throw BadContent(file, file.string() + ": the record of " + item + " has the index " + index->dump() +
                                 ", its item " + std::to_string(found->second));
    open.erase(found);
  };
  const ShardScan scan = scan_shard_records(shard.folder, take);
  if (open.empty() && shard.has_extras && !scan.ended) return 1;
  return static_cast<std::uint32_t>(open.size());
}

}  // namespace

std::uint32_t count_open_items(const ShardItems& shard) {
  try {
    return without_records(shard);
  } catch (const BadContent&) {
    return shard.count();
  }
}

std::uint32_t settle_open_items(const ShardItems& shard, std::string& problem) {
  for (;;) try {
      return without_records(shard);
    } catch (const BadContent& e) {
      problem +=
          (problem.empty() ? "" : "; ") + std::string(e.what()) + " (" + set_aside_damaged(e.path()) + ")";
      std::error_code error;
      if (std::filesystem::symlink_status(e.path(), error).type() != std::filesystem::file_type::not_found)
        return shard.count();
    }
}

}  // namespace warpsmith::controller
