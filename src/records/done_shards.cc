#include "warpsmith/records/done_shards.h"

#include <limits>

#include "warpsmith/base/files.h"
#include "warpsmith/base/paths.h"

namespace warpsmith {

namespace {

fs::path done_file(const fs::path& job_folder) { return job_folder / "done.jsonl"; }

}  // namespace

bool keeps_no_records(const JobFile& job) {
  const auto records = job.params.find("records");
  return records != job.params.end() && *records == "none";
}

bool has_extras(const JobFile& job) {
  const auto baselines = job.params.find("baselines");
  return kind_of_job(job.job) == "measure" && baselines != job.params.end() && baselines->is_array() &&
         !baselines->empty();
}

void append_done_shards(const fs::path& job_folder, const std::vector<std::uint32_t>& shards) {
  std::string lines = "\n";  // ends what a write that failed may have left
  for (const std::uint32_t shard : shards) lines += "{\"shard\":" + std::to_string(shard) + "}\n";
  AppendFile file(done_file(job_folder));
  file.append(lines);
  file.sync();
}

std::set<std::uint32_t> read_done_shards(const fs::path& job_folder) {
  std::set<std::uint32_t> done;
  if (!path_exists(done_file(job_folder))) return done;
  const std::string text = read_file(done_file(job_folder));
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    Json line;
    try {
      line = parse_json(std::string_view(text).substr(begin, end - begin), "done.jsonl");
    } catch (const Error&) {  // half a line
      continue;
    }
    if (!line.is_object()) continue;
    const auto shard = line.find("shard");
    if (shard == line.end() || !shard->is_number_unsigned()) continue;
    if (const auto number = shard->get<std::uint64_t>(); number <= std::numeric_limits<std::uint32_t>::max())
      done.insert(static_cast<std::uint32_t>(number));
  }
  return done;
}

}  // namespace warpsmith
