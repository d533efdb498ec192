// What warpsmith-shard says of each shard that came to an end of its own: a line of ends/<node>.jsonl in the
// job's folder. Processes of one node append to one file, and nodes never share one: so an append arrives
// whole on network file systems too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::executor {

struct LastWord {
  std::string token;  // of the submission
  std::uint32_t shard = 0;
  Json told;  // cause, exit_code, signal, wall_s, cpu_s, memory (bytes), detail, host, job, array
};

std::filesystem::path ends_folder(const std::filesystem::path& job_file);

// In one write. Throws Error; a disk that is full may leave half a line, which readers pass over.
void append_last_word(const std::filesystem::path& ends, const std::string& node, const LastWord& word);

// What was told of one shard; null where there is nothing.
Json find_last_word(const std::filesystem::path& ends, const std::string& token, std::uint32_t shard);

// A folder of last words that is read as it grows: each word once.
class LastWords {
 public:
  explicit LastWords(std::filesystem::path ends) : ends_(std::move(ends)) {}

  // What was added since the last call. It costs a stat of the folder and one of each file; with `sure` every
  // file is opened, as a network file system may be seconds behind with its sizes.
  std::vector<LastWord> read_new(bool sure = false);

 private:
  std::filesystem::path ends_;
  std::filesystem::file_time_type changed_{};
  std::map<std::filesystem::path, std::uintmax_t> read_;  // bytes of each file, to the end of a line
};

}  // namespace warpsmith::executor
