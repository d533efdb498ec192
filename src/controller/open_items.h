// What of a shard is still to be done: the items that none of its records is of, and with some jobs what
// comes behind them.
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
  bool has_extras = false;  // the program writes more than its items' records, and is done when it says so

  std::uint32_t count() const { return static_cast<std::uint32_t>(range.second - range.first); }
};

// How many have no record; 1 where they all have one and the shard owes its extras (has_extras). A record
// counts where its item stands: one of another place is no slip of a number, but of a program that mixes its
// items up. Of a shard whose records are damaged, all: it may still be writing.
std::uint32_t count_open_items(const ShardItems& shard);

// The same once the shard has ended. Files of records that are no such are renamed, so that the shard can be
// run again, and `problem` says of them what is wrong.
std::uint32_t settle_open_items(const ShardItems& shard, std::string& problem);

}  // namespace warpsmith::controller
