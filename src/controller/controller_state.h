// Inside of the controller. controller.cc: the loop, the journal and what is submitted; controller_shards.cc:
// what becomes of shards; controller_stages.cc: stages and their jobs; controller_report.cc: state.json.
#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "journal_writer.h"
#include "open_items.h"
#include "warpsmith/controller/controller.h"
#include "warpsmith/controller/job_files.h"
#include "warpsmith/records/done_shards.h"
#include "warpsmith/run/usage.h"

namespace warpsmith::controller {

using SteadyTime = std::chrono::steady_clock::time_point;

// A stage of the workflow in this controller's life.
struct LiveStage {
  const workflow::StageSpec* spec = nullptr;
  plan::StagePlan plan;                    // as decided when its turn came
  std::unique_ptr<stages::Stage> machine;  // while it runs
  fs::path folder;
  std::uint32_t execution = 0;
  std::set<std::uint32_t> open_jobs;            // asked for, not yet told
  std::map<std::string, std::string> programs;  // by job name
  Json progress = Json::object();
  std::string output_digest;  // once finished or skipped
  fs::path output_file;
  std::string failure;
  bool ran = false;  // something was done in this life
  SteadyTime began{};
  double seconds = 0;
};

// A job with shards to run or to read.
struct LiveJob {
  std::uint32_t stage = 0;
  JobFile file;
  fs::path folder;
  fs::path program;
  std::vector<std::string> ids;
  Resources resources;
  std::set<std::uint32_t> done;  // shards, of a program that keeps no records

  ShardItems items_of(std::uint32_t shard) const {
    return {folder / std::to_string(shard), ids, file.shards.at(shard), has_extras(file)};
  }
};

struct Controller::State {
  explicit State(ControllerParts given);

  // controller.cc
  RunOutcome run();
  void end_everything();
  RunOutcome outcome(bool interrupted);
  std::string token_of(const JobFile& file, std::uint32_t submission) const;
  void say(run::Event event);   // journal and reactor
  void note(run::Event event);  // journal alone
  void submit(const std::vector<run::ShardRange>& ranges);
  void commit();  // journal, and hands over what waited for it

  // controller_shards.cc
  void resolve_unfinished();
  void end_unknown(run::ShardKey key);  // by what its records say
  void attach();                        // to shards that outlived the controller before this one
  void cancel_orphans();                // of those, what no stage asks for any more
  std::uint32_t open_on_disk(run::ShardKey key);
  struct JobOnDisk {
    fs::path folder;
    JobFile file = {};
    std::set<std::uint32_t> done = {};  // shards, of a program that keeps no records
  };
  const JobOnDisk& job_on_disk(std::uint32_t job);
  void on_event(const run::ShardEvent& event);
  // `open`: items without a record, where they were counted just now.
  void on_shard_end(run::ShardKey key, EndCause cause, const run::ShardEvent* event,
                    std::optional<std::uint32_t> open = std::nullopt);
  LiveJob* find_job(std::uint32_t job);
  std::uint32_t open_items_of(run::ShardKey key) const;
  void look_at_late_records();
  void look_at_services();  // which of them are up
  void on_stage_failed_by_shards(std::uint32_t stage);

  // controller_stages.cc
  void select();  // what the command line leaves out
  void begin_stage(std::uint32_t stage);
  void plan_services(std::uint32_t stage);  // of those that it asks: what they are, and where they will be
  void refuse_without_room(const std::vector<plan::StagePlan>& plans) const;  // beside services
  void run_stage(std::uint32_t stage);
  void ask(std::uint32_t stage, const std::function<stages::StageStep()>& question);
  void take_step(std::uint32_t stage, stages::StageStep step);
  void add_job(std::uint32_t stage, const stages::JobRequest& request);
  void feed_job(std::uint32_t job);
  void finish_stage(std::uint32_t stage, const stages::StageOutput& output);
  void skip_stage(std::uint32_t stage, const plan::StagePlan& plan);
  void fail_stage(std::uint32_t stage, const std::string& why);
  void write_usage(std::uint32_t stage) const;  // what its jobs took so far, for `plan`
  void publish_if_due();
  // Tasks of a stage's dataset with the timing shapes of its device.
  const std::vector<task::Task>& tasks_of(const workflow::StageSpec& stage);
  fs::path find_program(const stages::JobRequest& request) const;
  int slots_of(const Resources& resources) const;
  std::map<std::string, std::string> upstream_digests(std::uint32_t stage) const;
  stages::StageInputs stage_inputs(std::uint32_t stage);

  // controller_report.cc
  Json state_json() const;
  void report(bool now);
  std::string where(run::ShardKey key) const;  // "sft 0/train/3"

  ControllerParts parts;
  std::vector<LiveStage> live;
  std::map<std::string, std::uint32_t> stage_number;
  run::Reactor reactor;
  std::optional<JournalWriter> journal;
  plan::Digests digests;
  // StageInputs::peoples_structures, by dataset
  std::map<fs::path, std::shared_ptr<const std::set<std::string>>> peoples_structures;
  std::map<std::pair<fs::path, bool>, std::vector<task::Task>> tasks;  // by dataset, and whether a GPU's
  std::map<std::uint32_t, LiveJob> jobs;
  SteadyTime last_publish = std::chrono::steady_clock::now();
  bool publish_soon = false;  // a stage has ended
  std::chrono::steady_clock::duration publish_pause = std::chrono::minutes(2);
  SteadyTime last_report{}, began = std::chrono::steady_clock::now();
  run::Usage usage;  // of all lives of the run
  // Of attempts of which the journal does not say what they asked for: it is of an earlier Warpsmith.
  double unsaid_gpu_s = 0;
  // What the budget counts: GPUs times wall time of attempts that have ended, in all lives of the run, and
  // what those in flight may come to by their time limits.
  double gpu_s_used() const { return usage.gpu_s() + unsaid_gpu_s; }
  double gpu_s_in_flight() const;
  std::size_t room();  // shards that may be in flight in all
  bool over_budget = false;
  std::map<std::string, double> phase_s;  // wall time of shards by job name, all lives of the run
  std::set<run::ShardKey> running;
  std::uint32_t submissions = 0;  // in the run so far
  struct Submission {
    std::uint32_t begin = 0, end = 0, number = 0;
  };
  std::map<std::uint32_t, std::vector<Submission>>
      earlier_submissions;             // by job, oldest first; empty once attached
  std::vector<run::ShardEvent> early;  // of shards whose job no stage has asked for yet in this life
  struct Late {
    run::ShardEvent event;
    SteadyTime until;
  };
  std::vector<Late> late;  // ended well without a record for every item: a shared file system may be behind
  SteadyTime next_late{}, next_service_look{};
  bool attached = false;
  std::map<std::uint32_t, JobOnDisk> job_files;  // of job_on_disk()
  std::string run_state = "running";
  std::map<std::string, Json>
      earlier;  // stages in the state.json that was there, for those that need not run
  bool environment = false, any_ran = false;
  std::map<run::ShardKey, std::string> reasons;  // what is known of why shards failed for good, in this life
};

run::Reactor make_reactor(const ControllerParts& parts);

}  // namespace warpsmith::controller
