// Carries stages through: plans each when its turn comes, writes the jobs that it asks for, reads back what
// their shards left, and keeps its result.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "shard_tracker.h"

namespace warpsmith::controller {

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

class StageDriver {
 public:
  struct Hears {
    std::function<void(bool now)> changed;  // something that state.json tells; now: a stage began or ended
    std::function<void(bool finished)> result;  // records of a job, or a stage's output, are there
  };
  // Keeps references.
  StageDriver(RunCore& core, ShardTracker& shards, Hears hears);

  // What the command line leaves out, and what the workflow cannot run as things stand. Throws Error.
  void select();
  void begin(std::uint32_t stage);
  // A job whose shards are done or failed for good: its stage is told.
  void feed(std::uint32_t job);
  void fail_by_shards(std::uint32_t stage);

  const std::vector<LiveStage>& stages() const { return live_; }
  const LiveStage& named(const std::string& name) const { return live_[number_.at(name)]; }
  void write_usage(std::uint32_t stage) const;  // what its jobs took so far, for `plan`
  // Optimiser steps of shards that are at work.
  void note_running_steps();
  // Of GPUs, by UUID: what measurements that stages were told of took, in this controller's life.
  struct DeviceTime {
    std::string kind;
    double held_s = 0, timed_s = 0;  // alone for a measurement; in its calls
  };
  const std::map<std::string, DeviceTime>& device_times() const { return device_times_; }
  // Of the stage's version that counts; nothing where the journal knows of none.
  std::optional<std::uint32_t> execution_of(std::uint32_t stage) const;

 private:
  // stage_driver.cc
  void plan_services(std::uint32_t stage);  // of those that it asks: what they are, and where they will be
  void run_stage(std::uint32_t stage);
  void ask(std::uint32_t stage, const std::function<stages::StageStep()>& question);
  void take_step(std::uint32_t stage, stages::StageStep step);
  void finish_stage(std::uint32_t stage, const stages::StageOutput& output);
  void skip_stage(std::uint32_t stage, const plan::StagePlan& plan);
  void fail_stage(std::uint32_t stage, const std::string& why);
  std::map<std::string, std::string> upstream_digests(std::uint32_t stage) const;
  // Tasks of a stage's dataset with the timing shapes of its device.
  const std::vector<task::Task>& tasks_of(const workflow::StageSpec& stage);
  stages::StageInputs stage_inputs(std::uint32_t stage);
  // stage_metrics.cc
  MetricRow metric_place(std::uint32_t stage, const char* kind, int round) const;
  void note_figures(std::uint32_t stage, const char* kind, int round, const Json& figures);
  void note_earlier(std::uint32_t stage);  // of one that need not run
  void note_device_times(const stages::JobResult& result);
  // stage_jobs.cc
  void add_job(std::uint32_t stage, const stages::JobRequest& request);
  void add_places(const LiveStage& stage, JobFile& file) const;  // of what lies elsewhere in the run's folder
  void add_new_job(const LiveStage& stage, std::uint32_t number, const stages::JobRequest& request,
                   LiveJob& job, const std::string& items);
  fs::path find_program(const stages::JobRequest& request) const;
  int slots_of(const Resources& resources) const;

  RunCore& core_;
  ShardTracker& shards_;
  const Hears hears_;
  std::vector<LiveStage> live_;
  std::map<std::string, std::uint32_t> number_;
  std::map<std::string, DeviceTime> device_times_;
  plan::Digests digests_;
  // Of StageInputs, by dataset.
  struct Structures {
    std::shared_ptr<std::set<std::string>> people, templates;
  };
  static Structures structures_below(const fs::path& dataset);
  std::map<fs::path, Structures> structures_;
  std::map<std::pair<fs::path, bool>, std::vector<task::Task>> tasks_;  // by dataset, and whether a GPU's
};

}  // namespace warpsmith::controller
