#include "synthesised_tasks.h"

#include <fmt/format.h>
#include <unistd.h>

#include "kernelbench_tasks.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/synthesis/write.h"
#include "warpsmith/workflow/load.h"

namespace warpsmith::cli {

namespace {

std::vector<fs::path> tasks_in(const fs::path& folder) {
  std::vector<fs::path> tasks;
  if (folder.empty()) return tasks;
  for (const fs::path& entry : folder_entries(folder))
    if (path_exists(entry / "task.yaml")) tasks.push_back(fs::absolute(entry));
  return tasks;
}

// Of what the tasks are made of, and of what makes them: this program.
std::string digest_of(const workflow::SynthesizeSettings& settings, const std::vector<fs::path>& people) {
  Sha256 digest;
  digest.field(sha256_file_hex("/proc/self/exe"));
  digest.field(workflow::to_json(settings).dump());
  for (const fs::path& task : people) digest.field(task.string()).field(read_file(task / "task.yaml"));
  return digest.hex().substr(0, 16);
}

}  // namespace

fs::path synthesised_tasks(const workflow::SynthesizeSettings& wanted, const fs::path& people) {
  synthesis::Settings settings{wanted, {}, {}};
  const std::vector<fs::path> of_people = tasks_in(people);
  const fs::path folder = cache_folder() / "synthesised" / digest_of(wanted, of_people);
  make_folders(folder.parent_path());
  const FileLock lock(folder.string() + ".lock");
  if (path_exists(folder)) return folder;
  if (!people.empty()) synthesis::leave_out(people, settings);
  const synthesis::Synthesis made = synthesis::synthesize(settings);
  // Under another name until it is whole, and on the disk.
  const fs::path draft = folder.string() + ".draft";
  try {
    fs::remove_all(draft);
    synthesis::write_tasks(made, settings, draft);
    for (const fs::path& task : of_people) fs::create_directory_symlink(task, draft / task.filename());
    ::sync();
    fs::rename(draft, folder);
  } catch (const fs::filesystem_error& error) {
    throw Error(error.what());
  }
  log_info(fmt::format("{} synthesised tasks are in {}", made.tasks.size(), folder.string()));
  return folder;
}

}  // namespace warpsmith::cli
