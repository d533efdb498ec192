#include "warpsmith/records/done_shards.h"

#include "warpsmith/base/files.h"

namespace warpsmith {

namespace {

fs::path done_file(const fs::path& job_folder) { return job_folder / "done.jsonl"; }

}  // namespace

bool keeps_no_records(const JobFile& job) { return job.params.value("records", "") == "none"; }

void append_done_shards(const fs::path& job_folder, const std::vector<std::uint32_t>& shards) {
  std::string lines = "\n";  // ends what a write that failed may have left
  for (const std::uint32_t shard : shards) lines += "{\"shard\":" + std::to_string(shard) + "}\n";
  AppendFile file(done_file(job_folder));
  file.append(lines);
  file.sync();
}

std::set<std::uint32_t> read_done_shards(const fs::path& job_folder) {
  std::set<std::uint32_t> done;
  if (!fs::exists(done_file(job_folder))) return done;
  const std::string text = read_file(done_file(job_folder));
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const Json line = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_object() && line.contains("shard")) done.insert(line["shard"].get<std::uint32_t>());
  }
  return done;
}

}  // namespace warpsmith
