// The one file that knows Slurm's C API: written for 22.05, with what later majors changed behind
// WARPSMITH_SLURM_AT_LEAST. Everything that Slurm returns becomes one of our types here.
#include <grp.h>
#include <pwd.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/executor/cluster.h"

#define WARPSMITH_SLURM_AT_LEAST(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

// Exported by libslurm for its own tools, but not declared in slurm.h.
extern "C" {
char* slurm_job_reason_string(enum job_state_reason reason);
char* slurm_node_state_string(uint32_t state);
void slurm_free_will_run_response_msg(will_run_response_msg_t* answer);
}

namespace warpsmith::executor {

namespace {

// "gres:gpu:h100:1" was the form of a generic resource in a job's trackable resources up to 23.02.
#if WARPSMITH_SLURM_AT_LEAST(23, 11)
constexpr const char* kGresPrefix = "gres/";
#else
constexpr const char* kGresPrefix = "gres:";
#endif

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using JobsMessage = std::unique_ptr<job_info_msg_t, Deleter<slurm_free_job_info_msg>>;
using NodesMessage = std::unique_ptr<node_info_msg_t, Deleter<slurm_free_node_info_msg>>;
using PartitionsMessage = std::unique_ptr<partition_info_msg_t, Deleter<slurm_free_partition_info_msg>>;
using Configuration = std::unique_ptr<slurm_conf_t, Deleter<slurm_free_ctl_conf>>;
using Submitted = std::unique_ptr<submit_response_msg_t, Deleter<slurm_free_submit_response_response_msg>>;
using Trial = std::unique_ptr<will_run_response_msg_t, Deleter<slurm_free_will_run_response_msg>>;

std::string text(const char* c) { return c != nullptr ? c : ""; }
std::uint32_t number(std::uint32_t value) { return value == NO_VAL || value == INFINITE ? 0 : value; }

static_assert(ESLURM_ACCOUNTING_POLICY == 2050 && ESLURM_QOS_THRES == 2074 && ESLURM_INVALID_ARRAY == 2081 &&
                  ESLURM_PARTITION_NOT_AVAIL == 2070 && ESLURM_INVALID_JOB_ID == 2017 &&
                  ESLURM_ALREADY_DONE == 2021 && ESLURM_JOB_FINISHED == 2084 &&
                  ESLURM_DB_CONNECTION == 7000 && SLURM_PROTOCOL_AUTHENTICATION_ERROR == 1007 &&
                  SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT == 5004 &&
                  SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR == 1800 && ESLURM_IN_STANDBY_USE_BACKUP == 2131,
              "the table in troubles.cc has other numbers than this Slurm");

[[noreturn]] void fail(const std::string& doing) {
  const int code = errno;  // slurm_get_errno() left in 24.11
  throw SlurmError(trouble_of(code), code,
                   doing + ": Slurm says: " + text(slurm_strerror(code)) + " (" + std::to_string(code) + ")");
}

SlurmState state_of(std::uint32_t state) {
  switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
      return SlurmState::kPending;
    case JOB_RUNNING:
      return SlurmState::kRunning;
    case JOB_SUSPENDED:
      return SlurmState::kSuspended;
    case JOB_COMPLETE:
      return SlurmState::kCompleted;
    case JOB_CANCELLED:
      return SlurmState::kCancelled;
    case JOB_FAILED:
      return SlurmState::kFailed;
    case JOB_TIMEOUT:
      return SlurmState::kTimeout;
    case JOB_NODE_FAIL:
      return SlurmState::kNodeFail;
    case JOB_PREEMPTED:
      return SlurmState::kPreempted;
    case JOB_BOOT_FAIL:
      return SlurmState::kBootFail;
    case JOB_DEADLINE:
      return SlurmState::kDeadline;
    case JOB_OOM:
      return SlurmState::kOutOfMemory;
    default:
      return SlurmState::kOther;
  }
}

void take_exit(std::uint32_t status, SlurmTask& task) {
  const auto wait_status = static_cast<int>(status);
  if (WIFEXITED(wait_status)) task.exit_code = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) task.signal = WTERMSIG(wait_status);
}

SlurmTask task_of(const slurm_job_info_t& j) {
  SlurmTask task;
  task.job = j.job_id;
  task.array = j.array_job_id != 0 ? j.array_job_id : j.job_id;
  if (j.array_job_id != 0) {
    if (j.array_task_id != NO_VAL)
      task.tasks = {j.array_task_id};
    else if (j.array_task_str != nullptr)
      task.tasks = parse_indices(j.array_task_str);
  }
  task.name = text(j.name);
  task.state = state_of(j.job_state);
  task.settling = (j.job_state & (JOB_COMPLETING | JOB_REQUEUE | JOB_CONFIGURING | JOB_REQUEUE_FED)) != 0 &&
                  task.state != SlurmState::kRunning;
  task.held = task.state == SlurmState::kPending && j.priority == 0;
  task.reason = j.state_desc != nullptr && *j.state_desc != '\0'
                    ? text(j.state_desc)
                    : text(slurm_job_reason_string(static_cast<job_state_reason>(j.state_reason)));
  if (task.reason == "None") task.reason.clear();
  take_exit(j.exit_code, task);
  task.partition = text(j.partition);
  task.nodes = text(j.nodes);
  task.submitted = j.submit_time;
  task.started = j.start_time;
  task.ended = has_ended(task.state) ? j.end_time : 0;
  task.restarts = j.restart_cnt;
  task.cpus = j.num_cpus;
  task.allocated = text(j.tres_alloc_str);
  task.gres = text(j.gres_total);
  return task;
}

// "gpu:h100:2(S:0-1),gpu:4,shard:8" -> {h100 2}, {"" 4}
std::vector<std::pair<std::string, int>> gpus_of(const std::string& gres) {
  std::vector<std::pair<std::string, int>> gpus;
  for (const std::string& one : split(gres, ',')) {
    const std::vector<std::string> parts = split(one.substr(0, one.find('(')), ':');
    if (parts.empty() || parts[0] != "gpu") continue;
    const bool typed = parts.size() > 2;
    const std::string count = parts.size() > 1 ? parts.back() : "1";
    const bool counted = !count.empty() && count.find_first_not_of("0123456789") == std::string::npos;
    gpus.emplace_back(typed ? parts[1] : counted ? "" : parts[1], counted ? std::atoi(count.c_str()) : 1);
  }
  return gpus;
}

// "a,b[1-3,7]" -> names.
std::vector<std::string> host_names(const char* list) {
  std::vector<std::string> names;
  if (list == nullptr || *list == '\0') return names;
  hostlist_t hosts = slurm_hostlist_create(list);
  while (char* name = slurm_hostlist_shift(hosts)) {
    names.emplace_back(name);
    std::free(name);
  }
  slurm_hostlist_destroy(hosts);
  return names;
}

std::vector<std::string> words(const char* list) {
  std::vector<std::string> out;
  for (std::string& word : split(text(list), ','))
    if (!word.empty()) out.push_back(std::move(word));
  return out;
}

// Slurm exits the process where it finds no configuration: look first.
void check_configuration(const fs::path& conf) {
  if (!conf.empty()) ::setenv("SLURM_CONF", conf.c_str(), 1);
  const char* named = std::getenv("SLURM_CONF");
  std::vector<fs::path> places;
  if (named != nullptr && *named != '\0')
    places = {named};
  else
    places = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf",
              "/usr/local/etc/slurm.conf"};
  std::string looked;
  for (const fs::path& place : places) {
    if (::access(place.c_str(), R_OK) == 0) {
      if (named == nullptr) ::setenv("SLURM_CONF", place.c_str(), 1);
      return;
    }
    looked += (looked.empty() ? "" : ", ") + place.string();
  }
  throw Error("no Slurm configuration can be read here: " + looked +
              " (set `slurm: conf` in the site file, or SLURM_CONF)");
}

// A job as the API wants it. The strings stay the job's: it must live as long.
struct Description {
  explicit Description(const SlurmJob& job) : gres(job.gpus.empty() ? "" : kGresPrefix + job.gpus) {
    slurm_init_job_desc_msg(&message);
    job_desc_msg_t& d = message;
    // The API does not write to them.
    const auto say = [](const std::string& s) { return s.empty() ? nullptr : const_cast<char*>(s.c_str()); };
    for (const std::string& entry : job.environment) environment.push_back(const_cast<char*>(entry.c_str()));
    d.name = say(job.name);
    d.script = say(job.script);
    d.work_dir = say(job.folder.native());
    d.std_out = say(job.output.native());
    d.open_mode = OPEN_MODE_APPEND;
    d.environment = environment.data();
    d.env_size = static_cast<std::uint32_t>(environment.size());
    d.array_inx = say(job.array);
    d.partition = say(job.partition);
    d.account = say(job.account);
    d.qos = say(job.qos);
    d.reservation = say(job.reservation);
    d.features = say(job.constraint);
    d.exc_nodes = say(job.exclude);
    d.dependency = say(job.dependency);
    d.tres_per_node = say(gres);
    d.user_id = ::getuid();
    d.group_id = ::getgid();
    if (job.minutes > 0) d.time_limit = job.minutes;
    d.min_nodes = d.max_nodes = job.nodes;
    d.num_tasks = job.tasks;
    d.cpus_per_task = static_cast<std::uint16_t>(job.cpus);
    d.min_cpus = job.cpus * job.tasks;
    if (job.memory_mib > 0) d.pn_min_memory = job.memory_mib;
    d.requeue = job.requeue ? 1 : 0;
    if (job.warn_signal != 0) {
      d.warn_signal = static_cast<std::uint16_t>(job.warn_signal);
      d.warn_time = static_cast<std::uint16_t>(job.warn_s);
      d.warn_flags = KILL_JOB_BATCH;
    }
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  std::string gres;
  std::vector<char*> environment;
  job_desc_msg_t message;
};

class LibSlurm final : public Cluster {
 public:
  explicit LibSlurm(const fs::path& conf) {
    check_configuration(conf);
    ::slurm_init(nullptr);
  }
  ~LibSlurm() override {
    if (accounting_ != nullptr) slurmdb_connection_close(&accounting_);
    ::slurm_fini();
  }

  SlurmFacts facts() override {
    const Configuration conf = configuration();
    SlurmFacts facts;
    facts.cluster = text(conf->cluster_name);
    facts.version = text(conf->version);
    facts.max_array_size = conf->max_array_sz;
    facts.max_array_tasks = max_array_tasks(text(conf->sched_params));
    facts.max_jobs = conf->max_job_cnt;
    facts.min_job_age_s = conf->min_job_age;
    facts.accounting = text(conf->accounting_storage_type).ends_with("slurmdbd");
    facts.requeue = conf->job_requeue != 0;
    return facts;
  }

  std::vector<SlurmNode> nodes() override {
    node_info_msg_t* answer = nullptr;
    partition_info_msg_t* parts = nullptr;
    if (ask(), slurm_load_node(0, &answer, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS)
      fail("reading the nodes");
    const NodesMessage guard(answer);
    if (ask(), slurm_load_partitions(0, &parts, SHOW_ALL) != SLURM_SUCCESS) fail("reading the partitions");
    const PartitionsMessage parts_guard(parts);
    slurm_populate_node_partitions(answer, parts);
    std::vector<SlurmNode> nodes;
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
      const node_info_t& n = answer->node_array[i];
      if (n.name == nullptr) continue;
      const std::uint32_t base = n.node_state & NODE_STATE_BASE;
      nodes.push_back({.name = n.name,
                       .state = text(slurm_node_state_string(n.node_state)),
                       .features = words(n.features),
                       .partitions = words(n.partitions),
                       .gpus = gpus_of(text(n.gres)),
                       .cpus = n.cpus,
                       .memory_mib = n.real_memory,
                       .usable = base != NODE_STATE_DOWN && base != NODE_STATE_ERROR &&
                                 base != NODE_STATE_UNKNOWN &&
                                 (n.node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) == 0});
    }
    return nodes;
  }

  std::vector<SlurmPartition> partitions() override {
    partition_info_msg_t* answer = nullptr;
    if (ask(), slurm_load_partitions(0, &answer, SHOW_ALL) != SLURM_SUCCESS) fail("reading the partitions");
    const PartitionsMessage guard(answer);
    std::vector<SlurmPartition> partitions;
    for (std::uint32_t i = 0; i < answer->record_count; ++i) {
      const partition_info_t& p = answer->partition_array[i];
      partitions.push_back({.name = text(p.name),
                            .nodes = host_names(p.nodes),
                            .max_minutes = number(p.max_time),
                            .is_default = (p.flags & PART_FLAG_DEFAULT) != 0,
                            .up = p.state_up == PARTITION_UP});
    }
    return partitions;
  }

  std::optional<SlurmLimits> limits() override {
    if (!facts().accounting) return std::nullopt;
    struct passwd* user = ::getpwuid(::getuid());
    if (user == nullptr) return std::nullopt;
    slurmdb_assoc_cond_t condition{};
    const auto users = list({user->pw_name});
    const auto clusters = list({facts().cluster});
    condition.user_list = users.get();
    condition.cluster_list = clusters.get();
    condition.with_raw_qos = 0;
    const List found = slurmdb_associations_get(accounting(), &condition);
    ++requests_;
    if (found == nullptr) fail("reading this user's limits");
    SlurmLimits limits;
    std::set<std::string> qos;  // by number
    for_each<slurmdb_assoc_rec_t>(found, [&](const slurmdb_assoc_rec_t& one) {
      limits.accounts.push_back(text(one.acct));
      if (one.qos_list != nullptr)
        for_each<char>(one.qos_list, [&](const char& id) { qos.insert(text(&id)); });
      if (one.is_def != 0 && one.is_def != NO_VAL16) limits.account = text(one.acct);
      const auto lower = [](std::uint32_t& value, std::uint32_t bound) {
        if (number(bound) != 0) value = value == 0 ? bound : std::min(value, bound);
      };
      lower(limits.max_submit, one.max_submit_jobs);
      lower(limits.max_jobs, one.max_jobs);
    });
    slurm_list_destroy(found);
    std::sort(limits.accounts.begin(), limits.accounts.end());
    limits.accounts.erase(std::unique(limits.accounts.begin(), limits.accounts.end()), limits.accounts.end());
    limits.qos = qos_names(qos);
    return limits;
  }

  std::uint32_t submit(const SlurmJob& job) override {
    Description description(job);
    submit_response_msg_t* answer = nullptr;
    errno = 0;
    if (ask(), slurm_submit_batch_job(&description.message, &answer) != SLURM_SUCCESS)
      fail("submitting " + job.name);
    const Submitted guard(answer);
    return answer->job_id;
  }

  std::int64_t expected_start(const SlurmJob& job) override {
    Description description(job);
    will_run_response_msg_t* answer = nullptr;
    errno = 0;
    if (ask(), slurm_job_will_run2(&description.message, &answer) != SLURM_SUCCESS)
      fail("asking when a job would start");
    const Trial guard(answer);
    return answer != nullptr ? answer->start_time : 0;
  }

  std::size_t rivals(const SlurmJob& job) override {
    std::string account = job.account;
    if (const auto limits = account.empty() ? this->limits() : std::nullopt) account = limits->account;
    const char* self = std::getenv("SLURM_JOB_ID");
    job_info_msg_t* answer = nullptr;
    errno = 0;
    if (ask(), slurm_load_jobs(0, &answer, SHOW_ALL) != SLURM_SUCCESS) fail("reading the queue");
    const JobsMessage guard(answer);
    return static_cast<std::size_t>(
        std::count_if(answer->job_array, answer->job_array + answer->record_count, [&](const auto& j) {
          const bool ours = j.user_id == ::getuid() || (!account.empty() && text(j.account) == account) ||
                            (!job.qos.empty() && text(j.qos) == job.qos);
          return ours && (!has_ended(state_of(j.job_state)) || (j.job_state & JOB_COMPLETING) != 0) &&
                 (self == nullptr || std::to_string(j.job_id) != self);
        }));
  }

  std::vector<SlurmTask> jobs() override {
    job_info_msg_t* answer = nullptr;
    errno = 0;
    if (ask(), slurm_load_job_user(&answer, ::getuid(), SHOW_ALL) != SLURM_SUCCESS) {
      if (errno == ESLURM_INVALID_JOB_ID) return {};
      fail("reading the queue");
    }
    const JobsMessage guard(answer);
    std::vector<SlurmTask> tasks;
    tasks.reserve(answer->record_count);
    for (std::uint32_t i = 0; i < answer->record_count; ++i) tasks.push_back(task_of(answer->job_array[i]));
    return tasks;
  }

  std::vector<SlurmTask> ended_jobs(const std::vector<std::string>& names, std::int64_t since) override {
    std::vector<SlurmTask> out;
    if (names.empty() || !facts().accounting) return out;
    slurmdb_job_cond_t condition{};
    condition.flags = JOBCOND_FLAG_NO_TRUNC | JOBCOND_FLAG_NO_DEFAULT_USAGE;
    condition.db_flags = SLURMDB_JOB_FLAG_NOTSET;
    condition.usage_start = static_cast<time_t>(since);
    const OwnedList users = list({std::to_string(::getuid())}), wanted = list(names);
    condition.userid_list = users.get();
    condition.jobname_list = wanted.get();
    ++requests_;
    const List found = slurmdb_jobs_get(accounting(), &condition);
    if (found == nullptr) fail("reading accounting");
    for_each<slurmdb_job_rec_t>(found, [&](const slurmdb_job_rec_t& j) {
      SlurmTask task;
      task.job = j.jobid;
      task.array = j.array_job_id != 0 ? j.array_job_id : j.jobid;
      if (j.array_job_id != 0 && j.array_task_id != NO_VAL) task.tasks = {j.array_task_id};
      task.name = text(j.jobname);
      task.state = state_of(j.state);
      take_exit(j.exitcode, task);
      task.partition = text(j.partition);
      task.nodes = text(j.nodes);
      task.submitted = j.submit;
      task.started = j.start;
      task.ended = j.end;
      task.allocated = text(j.tres_alloc_str);
      if (task.ended != 0 && has_ended(task.state)) out.push_back(std::move(task));  // else accounting lags
    });
    slurm_list_destroy(found);
    return out;
  }

  void cancel(const std::string& job) override {
    errno = 0;
    // Not KILL_FULL_JOB: pending tasks have no processes to signal and would be passed over.
    if (ask(), slurm_kill_job2(job.c_str(), SIGKILL, 0, nullptr) == SLURM_SUCCESS) return;
    if (errno == ESLURM_TRANSITION_STATE_NO_UPDATE) return;  // delivered, while others of the array wait
    if (trouble_of(errno) == SlurmTrouble::kGone) return;
    fail("cancelling " + job);
  }

  void requeue(std::uint32_t job) override {
    errno = 0;
    if (ask(), slurm_requeue(job, 0) != SLURM_SUCCESS) fail("requeueing " + std::to_string(job));
  }

  std::uint64_t requests() const override { return requests_; }

 private:
  struct ListDeleter {
    void operator()(xlist* l) const { slurm_list_destroy(l); }
  };
  using OwnedList = std::unique_ptr<xlist, ListDeleter>;

  void ask() { ++requests_; }

  Configuration configuration() {
    slurm_conf_t* conf = nullptr;
    errno = 0;
    if (ask(), slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) fail("reading the cluster's configuration");
    return Configuration(conf);
  }

  void* accounting() {
    if (accounting_ == nullptr) {
      std::uint16_t flags = 0;
      accounting_ = slurmdb_connection_get(&flags);
      if (accounting_ == nullptr) fail("connecting with slurmdbd");
    }
    return accounting_;
  }

  std::vector<std::string> qos_names(const std::set<std::string>& ids) {
    std::vector<std::string> names;
    if (ids.empty()) return names;
    slurmdb_qos_cond_t all{};
    ++requests_;
    const List found = slurmdb_qos_get(accounting(), &all);
    if (found == nullptr) fail("reading the cluster's QOS");
    for_each<slurmdb_qos_rec_t>(found, [&](const slurmdb_qos_rec_t& one) {
      if (ids.contains(std::to_string(one.id))) names.push_back(text(one.name));
    });
    slurm_list_destroy(found);
    std::sort(names.begin(), names.end());
    return names;
  }

  static OwnedList list(const std::vector<std::string>& strings) {
    OwnedList out(slurm_list_create([](void* p) { std::free(p); }));
    for (const std::string& s : strings) slurm_list_append(out.get(), ::strdup(s.c_str()));
    return out;
  }

  template <class Record, class Take>
  static void for_each(List list, const Take& take) {
    ListIterator iterator = slurm_list_iterator_create(list);
    while (auto* record = static_cast<Record*>(slurm_list_next(iterator))) take(*record);
    slurm_list_iterator_destroy(iterator);
  }

  void* accounting_ = nullptr;
  std::uint64_t requests_ = 0;
};

}  // namespace

extern "C" Cluster* warpsmith_open_cluster(const char* conf) { return new LibSlurm(conf); }

}  // namespace warpsmith::executor
