// Which items of a shard are still to be done: those that none of its records is of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace warpsmith::controller {

// Items of a shard: `ids` of all of its job, and which of them are its, [first, second).
struct ShardItems {
  std::filesystem::path folder;  // of the shard
  const std::vector<std::string>& ids;
  std::pair<std::uint64_t, std::uint64_t> range;

  std::uint32_t count() const { return static_cast<std::uint32_t>(range.second - range.first); }
};

// How many have no record. A record counts where its item stands: one of another place is no slip of a
// number, but of a program that mixes its items up. Of a shard whose records are damaged, all: it may still
// be writing.
std::uint32_t count_open_items(const ShardItems& shard);

// The same once the shard has ended. Files of records that are no such are renamed, so that the shard can be
// run again, and `problem` says of them what is wrong.
std::uint32_t settle_open_items(const ShardItems& shard, std::string& problem);

}  // namespace warpsmith::controller
