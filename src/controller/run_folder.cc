#include "warpsmith/controller/run_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include "warpsmith/base/error.h"
#include "warpsmith/base/log.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/process/machine.h"
#include "warpsmith/records/run_files.h"
#include "warpsmith/run/journal.h"
#include "warpsmith/run/usage.h"

namespace warpsmith::controller {

namespace {

using namespace std::chrono_literals;

fs::path lock_file(const fs::path& run) { return run / "controller.lock"; }

// Shard processes of a run: `warpsmith-X [arguments] <run>/stages/…/job.json SHARD`.
std::vector<pid_t> shard_processes(const std::string& prefix) {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string command;
    try {
      command = read_file(it->path() / "cmdline");
    } catch (const Error&) {
      continue;  // it has ended meanwhile, or is not ours
    }
    for (std::size_t begin = 0; begin < command.size();) {
      const std::size_t length = std::min(command.find('\0', begin), command.size()) - begin;
      const std::string_view argument = std::string_view(command).substr(begin, length);
      if (argument.starts_with(prefix) && argument.ends_with("/job.json")) {
        found.push_back(static_cast<pid_t>(std::stol(name)));
        break;
      }
      begin += length + 1;
    }
  }
  return found;
}

// What is wrong with it would stop everybody who asks how far the run is; whoever has the run writes it anew.
void set_aside_bad_state(const fs::path& run) {
  use_json_or_set_aside(run / "state.json", check_state_json, log_warning);
}

// Of outputs, as stages left them: by stage and hash. Empty where the journal cannot be read.
using OutputDigests = std::map<std::pair<std::string, std::string>, std::string>;

OutputDigests journaled_outputs(const fs::path& run) {
  OutputDigests digests;
  run::Attempts attempts;
  try {
    run::read_journal(run / "journal", [&](run::Event&& e) {
      attempts.take(e);
      if (e.kind != run::EventKind::kStageFinished || e.execution >= attempts.executions().size()) return;
      const run::Attempts::Execution& execution = attempts.executions()[e.execution];
      digests[{execution.stage, execution.hash}] = e.hash;
    });
  } catch (const Error&) {  // told of by whoever goes on with the run
    digests.clear();
  }
  return digests;
}

// Nothing where inputs.json is missing or damaged: nobody knows what the result is of.
std::optional<plan::FormerResult> read_former_result(const fs::path& folder) {
  plan::FormerResult result;
  const auto read = [&](const Json& inputs) {
    result.hash = inputs.at("hash").get<std::string>();
    result.inputs = inputs.value("inputs", Json::object_t{});
  };
  if (!use_json_or_set_aside(folder / "inputs.json", read, log_warning)) return std::nullopt;
  result.finished = path_exists(folder / "output.json");
  if (result.finished) result.output_digest = sha256_file_hex(folder / "output.json");
  const auto accept = [&](const Json& hashes) {
    for (const Json& hash : hashes) result.accepted_as.insert(hash.get<std::string>());
  };
  use_json_or_set_aside(folder / "accepted.json", accept, log_warning);
  return result;
}

// An output that is not as its stage left it makes a result of other inputs: what the stage is to make it of
// is what it was made of, and no change.
void tell_change(plan::FormerResult& result, const std::string& stage, const OutputDigests& journaled) {
  if (!result.finished) return;
  const auto written = journaled.find({stage, result.hash});
  if (written == journaled.end() || written->second == result.output_digest) return;
  result.hash += "-changed";
  result.inputs["output.json"] = "changed since it was written";
}

std::vector<plan::FormerResult> former_results(const fs::path& run, const std::string& stage,
                                               const OutputDigests& journaled) {
  std::vector<std::pair<fs::file_time_type, plan::FormerResult>> found;
  for (const fs::path& folder : folder_entries(run / "stages" / stage)) {
    if (folder.filename().string().size() != 8) continue;
    std::optional<plan::FormerResult> result = read_former_result(folder);
    if (!result) continue;
    tell_change(*result, stage, journaled);
    std::error_code gone;
    const auto time = fs::last_write_time(folder / (result->finished ? "output.json" : "inputs.json"), gone);
    found.emplace_back(time, std::move(*result));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second.hash < b.second.hash;
  });
  std::vector<plan::FormerResult> out;
  for (auto& [time, result] : found) out.push_back(std::move(result));
  return out;
}

}  // namespace

RunLock::RunLock(const fs::path& run) {
  fd_ = ::open(lock_file(run).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw system_error("cannot open " + lock_file(run).string(), errno);
  for (int tries = 0;; ++tries) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (::fcntl(fd_, F_SETLK, &lock) == 0) {
      set_aside_bad_state(run);
      return;
    }
    if (errno == EINTR) continue;
    if (errno != EACCES && errno != EAGAIN) {
      const int error_number = errno;
      ::close(fd_);
      throw system_error("cannot lock " + lock_file(run).string(), error_number);
    }
    const auto other = holder(run);
    // Between a kill and the end of the process lie some milliseconds.
    if ((!other || !process::process_lives(*other)) && tries < 40) {
      std::this_thread::sleep_for(50ms);
      continue;
    }
    ::close(fd_);
    throw Error("the run " + run.string() + " is in the hands of another controller" +
                    (other ? " (process " + std::to_string(*other) + ")" : "") +
                    ": wait for it, or end it with `warpsmith cancel " + run.string() + "`",
                kExitBusy);
  }
}

RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<pid_t> RunLock::holder(const fs::path& run) {
  const int fd = ::open(lock_file(run).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  const bool asked = ::fcntl(fd, F_GETLK, &lock) == 0;
  ::close(fd);
  if (!asked || lock.l_type == F_UNLCK) return std::nullopt;
  return lock.l_pid;
}

int end_leftovers(const fs::path& run) {
  const std::string prefix = (fs::absolute(run).lexically_normal() / "stages").string() + "/";
  int ended = 0;
  for (int tries = 0;; ++tries) {
    const std::vector<pid_t> left = shard_processes(prefix);
    if (left.empty()) return ended;
    if (tries == 0) ended = static_cast<int>(left.size());
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    if (tries == 100) throw Error("process " + std::to_string(left.front()) + " of this run does not end");
    std::this_thread::sleep_for(50ms);
  }
}

std::vector<plan::FormerResult> read_former_results(const fs::path& run, const std::string& stage) {
  return former_results(run, stage, journaled_outputs(run));
}

plan::History read_history(const fs::path& run) {
  plan::History history;
  const OutputDigests journaled = journaled_outputs(run);
  for (const fs::path& folder : folder_entries(run / "stages")) {
    const std::string stage = folder.filename().string();
    if (auto results = former_results(run, stage, journaled); !results.empty())
      history.emplace(stage, std::move(results));
  }
  return history;
}

void accept_result(const fs::path& run, const std::string& stage, const std::string& result,
                   const std::string& hash) {
  const fs::path file = stage_folder(run, stage, result) / "accepted.json";
  Json accepted = path_exists(file) ? read_json_file(file) : Json::array();
  if (std::find(accepted.begin(), accepted.end(), Json(hash)) == accepted.end()) accepted.push_back(hash);
  write_file_atomic(file, accepted.dump() + "\n");
}

void set_aside(const fs::path& run, const std::string& stage, const std::string& hash) {
  const fs::path folder = stage_folder(run, stage, hash);
  if (!path_exists(folder)) return;
  make_folders(run / "set_aside");
  for (int n = 1;; ++n) {
    const fs::path aside = run / "set_aside" / (stage + "-" + plan::hash8(hash) + "-" + std::to_string(n));
    if (path_exists(aside)) continue;
    fs::rename(folder, aside);
    sync_folder(folder.parent_path());
    return;
  }
}

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code gone;
    if (it->is_regular_file(gone) && !it->is_symlink(gone)) {
      const auto size = it->file_size(gone);
      if (!gone) bytes += size;
    }
  }
  return bytes;
}

}  // namespace warpsmith::controller
