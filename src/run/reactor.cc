#include "warpsmith/run/reactor.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "warpsmith/base/error.h"

namespace warpsmith::run {

int retries_after(const workflow::RetryRule& rule, EndCause cause) {
  if (const auto found = rule.times.find(cause); found != rule.times.end()) return found->second;
  switch (cause) {
    case EndCause::kUserError:
      return 0;  // the same input fails the same way
    case EndCause::kDiskFull:
      return 0;  // somebody has to make room first
    case EndCause::kStopped:
      return 0;  // somebody wanted that
    case EndCause::kFinished:
    case EndCause::kFailed:
    case EndCause::kTimeout:
      return 1;
    case EndCause::kCrash:
    case EndCause::kOutOfMemory:
      return 2;
    case EndCause::kLaunchFailure:
    case EndCause::kUnknown:
      return 3;
    case EndCause::kNodeFailure:
      return 5;
    case EndCause::kPreempted:
    case EndCause::kCancelled:
      return 100;
  }
  return 0;
}

Reactor::Reactor(std::vector<StageRules> stages, std::vector<std::size_t> places) {
  places_.resize(std::max<std::size_t>(1, places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) places_[i].size = places[i];
  by_scarcity_.resize(places_.size());
  std::iota(by_scarcity_.begin(), by_scarcity_.end(), 0u);
  std::stable_sort(by_scarcity_.begin(), by_scarcity_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return places_[a].size < places_[b].size; });
  stages_.reserve(stages.size());
  for (StageRules& rules : stages) {
    const auto number = static_cast<std::uint32_t>(stages_.size());
    stage_by_name_.emplace(rules.name, number);
    for (const std::uint32_t need : rules.needs) stages_.at(need).needed_by.push_back(number);
    for (const std::uint32_t service : rules.uses) stages_.at(service).used_by.push_back(number);
    std::set<std::uint32_t> used;
    for (const auto& [job, place] : rules.places) used.insert(place);
    if (used.empty()) used.insert(0);
    if (*used.rbegin() >= places_.size())
      throw Error("stage " + rules.name + " names a place that there is not");
    stages_.push_back({.rules = std::move(rules), .places = std::move(used)});
  }
  on_opened();
}

void Reactor::check_job(const Event& e) const {
  if (e.job >= jobs_.size() || e.shard >= std::max(1u, jobs_[e.job].view.shards) ||
      e.end > jobs_[e.job].view.shards)
    throw Error("event `" + std::string(to_string(e.kind)) + "` names shard " + std::to_string(e.shard) +
                " of job " + std::to_string(e.job) + ", which there is not");
}

void Reactor::apply(const Event& e) {
  switch (e.kind) {
    case EventKind::kOpened:
      on_opened();
      break;
    case EventKind::kStageStarted:
      on_stage_started(e);
      break;
    case EventKind::kJobAdded:
      on_job_added(e);
      break;
    case EventKind::kSubmitted:
      check_job(e);
      on_submitted(e.job, e.shard, e.end);
      break;
    case EventKind::kShardStarted:
      check_job(e);
      break;
    case EventKind::kShardEnded:
      check_job(e);
      on_shard_ended(e);
      break;
    case EventKind::kStageFinished:
    case EventKind::kStageFailed:
      if (e.execution >= executions_.size())
        throw Error("event names execution " + std::to_string(e.execution) + ", which there is not");
      if (const int stage = executions_[e.execution].stage; stage >= 0)
        finish_stage(static_cast<std::uint32_t>(stage),
                     e.kind == EventKind::kStageFinished ? StageState::kFinished : StageState::kFailed);
      break;
    case EventKind::kStageDropped:
      on_stage_dropped(e);
      break;
    case EventKind::kServiceUp:
      on_service_up(e);
      break;
    case EventKind::kClosed:
      break;
  }
}

void Reactor::on_opened() {
  to_start_.clear();
  to_cancel_.clear();
  done_.clear();
  failed_.clear();
  for (Place& place : places_) {
    place.ready.clear();
    place.users = 0;
  }
  open_stages_ = stages_.size();
  for (Stage& stage : stages_)  // what was up may have died while nobody looked
    if (stage.up) go_down(stage);
  for (std::uint32_t i = 0; i < stages_.size(); ++i) {
    Stage& stage = stages_[i];
    stage.state = StageState::kWaiting;
    stage.execution = -1;
    stage.offered = false;
    stage.open_needs = static_cast<std::uint32_t>(stage.rules.needs.size());
    for (const std::uint32_t place : stage.places) ++places_[place].users;
    if (stage.open_needs == 0 && !stage.rules.is_service) to_start_.push_back(i);
  }
  // What failed gets a new chance: a person has started the run again. Jobs that are complete stay as they
  // are: their stages have acted on them.
  for (Execution& execution : executions_) {
    execution.stage = -1;
    for (const std::uint32_t number : execution.jobs) {
      Job& job = jobs_[number];
      if (job.view.complete || job.view.failed == 0) continue;
      for (std::uint32_t s = 0; s < job.view.shards; ++s) {
        Shard& one = shard({number, s});
        if (one.state != ShardState::kFailed) continue;
        std::fill(std::begin(one.used), std::end(one.used), std::uint8_t{0});
        --job.view.failed;
        --execution.failed;
        requeue({number, s});
      }
    }
  }
}

std::uint32_t Reactor::execution_number(const std::string& name, const std::string& hash) const {
  const auto found = execution_by_hash_.find({name, hash});
  return found != execution_by_hash_.end() ? found->second : static_cast<std::uint32_t>(executions_.size());
}

void Reactor::on_stage_started(const Event& e) {
  const std::uint32_t number = execution_number(e.name, e.hash);
  if (number == executions_.size()) {
    executions_.push_back({.name = e.name, .hash = e.hash});
    executions_.back().queued.resize(places_.size());
    execution_by_hash_.emplace(std::pair(e.name, e.hash), number);
  }
  Execution& execution = executions_[number];
  const auto stage = stage_by_name_.find(e.name);
  if (stage == stage_by_name_.end()) return;  // the workflow has lost this stage since
  execution.stage = static_cast<int>(stage->second);
  stages_[stage->second].execution = static_cast<int>(number);
  stages_[stage->second].state = StageState::kRunning;
  stages_[stage->second].offered = true;
  const std::vector<std::uint32_t>& uses = stages_[stage->second].rules.uses;
  to_start_.insert(to_start_.end(), uses.begin(), uses.end());
  for (const std::uint32_t job : execution.jobs) complete_if_done(job);  // ended while nobody could be told
  refresh_ready(execution);
}

void Reactor::on_stage_dropped(const Event& e) {
  if (e.execution >= executions_.size()) throw Error("event drops execution " + std::to_string(e.execution));
  Execution& execution = executions_[e.execution];
  execution_by_hash_.erase({execution.name, execution.hash});
  execution.stage = -1;
  refresh_ready(execution);
}

void Reactor::on_job_added(const Event& e) {
  if (e.execution >= executions_.size() || e.job != jobs_.size())
    throw Error("event adds job " + std::to_string(e.job) + " to execution " + std::to_string(e.execution) +
                " where there are " + std::to_string(jobs_.size()) + " jobs and " +
                std::to_string(executions_.size()) + " executions");
  Job job;
  job.view = {.execution = e.execution, .round = e.round, .name = e.name, .digest = e.hash, .shards = e.end};
  job.first = shards_.size();
  if (const int stage = executions_[e.execution].stage; stage >= 0) {
    const auto& places = stages_[static_cast<std::size_t>(stage)].rules.places;
    if (const auto found = places.find(e.name); found != places.end()) job.place = found->second;
  }
  const std::uint32_t place = job.place;
  shards_.resize(shards_.size() + e.end);
  jobs_.push_back(std::move(job));
  Execution& execution = executions_[e.execution];
  execution.jobs.push_back(e.job);
  execution.shards += e.end;
  if (e.end > 0) {
    execution.queued[place].insert(execution.queued[place].end(), e.job);
    refresh_ready(execution);
  }
  complete_if_done(e.job);
}

void Reactor::on_submitted(std::uint32_t number, std::uint32_t begin, std::uint32_t end) {
  Job& job = jobs_[number];
  Execution& execution = executions_[job.view.execution];
  for (std::uint32_t s = begin; s < end; ++s) {
    Shard& one = shard({number, s});
    if (one.state != ShardState::kQueued)
      throw Error("shard " + std::to_string(s) + " of job " + std::to_string(number) + " is submitted twice");
    one.state = ShardState::kInFlight;
    one.downs = execution.downs;
    if (one.attempts < std::numeric_limits<std::uint16_t>::max()) ++one.attempts;
    if (s < job.cursor) std::erase(job.again, s);
  }
  // Between the cursor and a later range lie shards that were not submitted: never so in journals of ours,
  // but cheap to hold.
  for (std::uint32_t s = job.cursor; s < begin; ++s) job.again.push_back(s);
  job.cursor = std::max(job.cursor, end);
  job.view.in_flight += end - begin;
  execution.in_flight += end - begin;
  in_flight_ += end - begin;
  places_[job.place].in_flight += end - begin;
  if (job.cursor == job.view.shards && job.again.empty()) execution.queued[job.place].erase(number);
  refresh_ready(execution);
}

void Reactor::requeue(ShardKey key) {
  Job& job = jobs_[key.job];
  shard(key).state = ShardState::kQueued;
  job.again.push_back(key.shard);
  executions_[job.view.execution].queued[job.place].insert(key.job);
}

// Whether a stage cannot go on behind a shard of this job that has failed for good.
bool Reactor::is_beyond_tolerance(const Execution& execution, const Job& job, EndCause cause) const {
  // Of a job of one shard nothing is left: what comes next would go on without its answers.
  if (execution.stage >= 0 && job.view.shards == 1 &&
      (cause == EndCause::kUserError || cause == EndCause::kFailed))
    return true;
  const double tolerate =
      execution.stage >= 0 ? stages_[static_cast<std::size_t>(execution.stage)].rules.tolerate : 1.0;
  return static_cast<double>(execution.failed) > tolerate * static_cast<double>(execution.shards) + 1e-9;
}

void Reactor::on_shard_ended(const Event& e) {
  const ShardKey key{e.job, e.shard};
  Job& job = jobs_[e.job];
  Execution& execution = executions_[job.view.execution];
  Shard& one = shard(key);
  if (one.state != ShardState::kInFlight)
    return;  // said twice (by its records, then by the executor): once counts
  --job.view.in_flight;
  --execution.in_flight;
  --in_flight_;
  --places_[job.place].in_flight;
  bool was_up = false;
  if (execution.stage >= 0) {
    Stage& stage = stages_[static_cast<std::size_t>(execution.stage)];
    was_up = stage.up;
    if (was_up) go_down(stage);
    if (e.open < one.open) renew_services(stage);
  }
  one.cause = e.cause == EndCause::kFinished && e.open > 0 ? EndCause::kFailed : e.cause;
  if (e.open == 0) {  // every item has its record: however the process ended
    one.state = ShardState::kDone;
    ++job.view.done;
    complete_if_done(e.job);
    refresh_ready(execution);
    return;
  }
  if (e.open < one.open) std::fill(std::begin(one.used), std::end(one.used), std::uint8_t{0});
  one.open = e.open;
  const workflow::RetryRule rule = execution.stage >= 0
                                       ? stages_[static_cast<std::size_t>(execution.stage)].rules.retry
                                       : workflow::RetryRule{};
  std::uint8_t& used = one.used[static_cast<std::size_t>(one.cause)];
  const bool stage_lives =
      execution.stage < 0 || stages_[static_cast<std::size_t>(execution.stage)].state == StageState::kRunning;
  // Cancelled and lost ones did nothing wrong, nor did those whose service went down meanwhile: they lie
  // ready for when the stage goes on.
  const bool is_innocent = one.cause == EndCause::kCancelled || one.cause == EndCause::kUnknown ||
                           (one.cause == EndCause::kFailed && one.downs != execution.downs);
  const int retries = std::max(retries_after(rule, one.cause), was_up ? kServiceRestarts : 0);
  if (!stage_lives || is_innocent || used < retries) {
    if (!is_innocent && used < 255) ++used;
    requeue(key);
  } else {
    one.state = ShardState::kFailed;
    ++job.view.failed;
    ++execution.failed;
    if (is_beyond_tolerance(execution, job, one.cause))
      fail_stage(static_cast<std::uint32_t>(execution.stage));
    else
      complete_if_done(e.job);
  }
  refresh_ready(execution);
}

void Reactor::complete_if_done(std::uint32_t number) {
  JobView& job = jobs_[number].view;
  Execution& execution = executions_[job.execution];
  if (job.complete || job.done + job.failed < job.shards || execution.stage < 0 ||
      stages_[static_cast<std::size_t>(execution.stage)].state != StageState::kRunning)
    return;
  job.complete = true;
  execution.completed.push_back(number);
  done_.push_back(number);
}

void Reactor::finish_stage(std::uint32_t number, StageState state) {
  Stage& stage = stages_[number];
  if (stage.state == StageState::kFinished || stage.state == StageState::kFailed ||
      stage.state == StageState::kBlocked)
    return;
  stage.state = state;
  --open_stages_;
  for (const std::uint32_t place : stage.places) --places_[place].users;
  if (stage.execution >= 0) {
    const Execution& execution = executions_[static_cast<std::size_t>(stage.execution)];
    refresh_ready(execution);
    if ((state == StageState::kFailed || stage.rules.is_service) && execution.in_flight > 0)
      for (const std::uint32_t job : execution.jobs)
        for (std::uint32_t s = 0; jobs_[job].view.in_flight > 0 && s < jobs_[job].view.shards; ++s)
          if (shard({job, s}).state == ShardState::kInFlight) to_cancel_.push_back({job, s});
  }
  for (const std::uint32_t other : stage.needed_by) {
    if (state == StageState::kFinished) {
      if (--stages_[other].open_needs == 0 && stages_[other].state == StageState::kWaiting &&
          !stages_[other].rules.is_service)
        to_start_.push_back(other);
    } else {
      finish_stage(other, StageState::kBlocked);
    }
  }
  if (state != StageState::kFinished)
    for (const std::uint32_t user : stage.used_by) {
      fail_stage(user);  // where it runs
      finish_stage(user, StageState::kBlocked);
    }
  end_unused(stage);
}

// Of the services of a stage that has ended, those that no other one will ask.
void Reactor::end_unused(const Stage& user) {
  for (const std::uint32_t service : user.rules.uses) {
    const std::vector<std::uint32_t>& users = stages_[service].used_by;
    if (std::none_of(users.begin(), users.end(), [&](std::uint32_t u) {
          return stages_[u].state == StageState::kWaiting || stages_[u].state == StageState::kRunning;
        }))
      finish_stage(service, StageState::kFinished);
  }
}

void Reactor::on_service_up(const Event& e) {
  if (e.execution >= executions_.size())
    throw Error("event says that execution " + std::to_string(e.execution) + " is up, which there is not");
  const int number = executions_[e.execution].stage;
  if (number < 0) return;
  Stage& stage = stages_[static_cast<std::size_t>(number)];
  if (stage.state != StageState::kRunning || executions_[e.execution].in_flight == 0) return;
  stage.up = true;
  refresh_users(stage);
}

// Of the services that a stage uses: who asks them got further.
void Reactor::renew_services(const Stage& user) {
  for (const std::uint32_t service : user.rules.uses)
    if (const int execution = stages_[service].execution; execution >= 0)
      for (const std::uint32_t job : executions_[static_cast<std::size_t>(execution)].jobs)
        for (std::uint32_t s = 0; s < jobs_[job].view.shards; ++s) {
          Shard& one = shard({job, s});
          std::fill(std::begin(one.used), std::end(one.used), std::uint8_t{0});
        }
}

void Reactor::go_down(Stage& service) {
  service.up = false;
  for (const std::uint32_t user : service.used_by)
    if (const int execution = stages_[user].execution; execution >= 0)
      ++executions_[static_cast<std::size_t>(execution)].downs;
  refresh_users(service);
}

void Reactor::refresh_users(const Stage& service) {
  for (const std::uint32_t user : service.used_by)
    if (stages_[user].execution >= 0)
      refresh_ready(executions_[static_cast<std::size_t>(stages_[user].execution)]);
}

std::size_t Reactor::services_in_flight() const {
  std::size_t out = 0;
  for (const Execution& execution : executions_)
    if (execution.stage >= 0 && stages_[static_cast<std::size_t>(execution.stage)].rules.is_service)
      out += execution.in_flight;
  return out;
}

void Reactor::fail_stage(std::uint32_t number) {
  if (stages_[number].state != StageState::kRunning) return;
  failed_.push_back(number);
  finish_stage(number, StageState::kFailed);
}

void Reactor::skip(std::uint32_t stage) {
  stages_.at(stage).offered = true;
  finish_stage(stage, StageState::kFinished);
}

bool Reactor::is_served(const Stage& stage) const {
  return std::all_of(stage.rules.uses.begin(), stage.rules.uses.end(),
                     [&](std::uint32_t service) { return stages_[service].up; });
}

bool Reactor::may_submit(const Execution& execution) const {
  if (execution.stage < 0) return false;
  const Stage& stage = stages_[static_cast<std::size_t>(execution.stage)];
  return stage.state == StageState::kRunning && is_served(stage) &&
         (stage.rules.max_jobs <= 0 ||
          execution.in_flight < static_cast<std::uint32_t>(stage.rules.max_jobs));
}

void Reactor::refresh_ready(const Execution& execution) {
  const auto number = static_cast<std::uint32_t>(&execution - executions_.data());
  const bool may = may_submit(execution);
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (may && !execution.queued[place].empty())
      places_[place].ready.insert(number);
    else
      places_[place].ready.erase(number);
  }
}

std::size_t Reactor::scarcity(std::uint32_t stage) const {
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (const std::uint32_t place : stages_[stage].places) fewest = std::min(fewest, places_[place].size);
  return fewest;
}

// Half of the room is parted among the places that are in use, and what such a part has free is kept for its
// place; the rest is for whoever comes. What is in flight is never taken back, so it must be kept beforehand.
std::size_t Reactor::free_at(std::uint32_t place, std::size_t room) const {
  if (in_flight_ >= room) return 0;
  const auto used = static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const Place& p) { return p.users > 0; }));
  std::size_t part = used < 2 ? 0 : room / (2 * used);
  if (part == 0 && used > 1 && room >= used) part = 1;
  std::size_t kept = 0;
  for (std::uint32_t other = 0; other < places_.size(); ++other)
    if (other != place && places_[other].users > 0) kept += part - std::min(part, places_[other].in_flight);
  return room - in_flight_ - std::min(kept, room - in_flight_);
}

void Reactor::submit_at(std::uint32_t place, std::size_t room, std::vector<ShardRange>& out) {
  while (!places_[place].ready.empty()) {
    std::size_t most = free_at(place, room);
    if (most == 0) return;
    const Execution& execution = executions_[*places_[place].ready.begin()];
    const std::uint32_t number = *execution.queued[place].begin();
    Job& job = jobs_[number];
    if (const int limit = stages_[static_cast<std::size_t>(execution.stage)].rules.max_jobs; limit > 0)
      most = std::min(most, static_cast<std::size_t>(limit) - execution.in_flight);
    ShardRange range{.job = number};
    if (!job.again.empty()) {  // what was started before goes first: its stage waits for it
      range.begin = *std::min_element(job.again.begin(), job.again.end());
      range.end = range.begin + 1;
      range.memory_retries =
          shard({number, range.begin}).used[static_cast<std::size_t>(EndCause::kOutOfMemory)];
    } else {
      range.begin = job.cursor;
      range.end =
          job.cursor + static_cast<std::uint32_t>(std::min<std::size_t>(most, job.view.shards - job.cursor));
    }
    on_submitted(range.job, range.begin, range.end);
    out.push_back(range);
  }
}

Commands Reactor::next(std::size_t room) {
  Commands out;
  out.done.swap(done_);
  out.failed.swap(failed_);
  out.cancel.swap(to_cancel_);
  // Jobs of a stage that failed meanwhile are of no use to it.
  std::erase_if(out.done, [&](std::uint32_t job) {
    const int stage = executions_[jobs_[job].view.execution].stage;
    return stage < 0 || stages_[static_cast<std::size_t>(stage)].state != StageState::kRunning;
  });
  if (stopped_) return out;
  // A job that is done may end the last stage that asks a service: then the service is not started any more.
  std::vector<std::uint32_t> later;
  for (const std::uint32_t stage : to_start_) {
    if (stages_[stage].offered || stages_[stage].state != StageState::kWaiting) continue;
    if (stages_[stage].rules.is_service && !out.done.empty()) {
      later.push_back(stage);
      continue;
    }
    stages_[stage].offered = true;
    out.start.push_back(stage);
  }
  to_start_ = std::move(later);
  std::stable_sort(out.start.begin(), out.start.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return scarcity(a) < scarcity(b); });
  for (const std::uint32_t place : by_scarcity_) submit_at(place, room, out.submit);
  return out;
}

bool Reactor::at_end() const { return open_stages_ == 0 && in_flight_ == 0; }

std::vector<ShardKey> Reactor::unresolved() const {
  std::vector<ShardKey> out;
  if (in_flight_ == 0) return out;
  for (std::uint32_t j = 0; j < jobs_.size(); ++j)
    for (std::uint32_t s = 0, left = jobs_[j].view.in_flight; left > 0 && s < jobs_[j].view.shards; ++s)
      if (shard({j, s}).state == ShardState::kInFlight) {
        out.push_back({j, s});
        --left;
      }
  return out;
}

std::vector<std::uint32_t> Reactor::jobs_of(std::uint32_t execution) const {
  return execution < executions_.size() ? executions_[execution].jobs : std::vector<std::uint32_t>{};
}

}  // namespace warpsmith::run
