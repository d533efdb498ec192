// Candidates that served models write for stage 1, as CUDA-L1 has them: up to so many trials a (task,
// teacher), until enough succeeded.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jobs.h"
#include "samples.h"
#include "verifier.h"

namespace warpsmith::stages {

class Teachers {
 public:
  // Keeps references to all. Train tasks alone are asked for: the others are for evaluation.
  Teachers(const workflow::StageSpec& spec, const TaskSet& tasks, Verifier& verifier);

  // The jobs of the next round, one a teacher that has something to do; none: all are done. What the round
  // before found must have its verdict.
  std::vector<JobRequest> next_round();
  // Of one of these jobs, in any order. True: it was the round's last; take() has the candidates.
  bool on_job(const JobResult& result);
  std::vector<Candidate> take() { return std::exchange(found_, {}); }
  int round() const { return round_; }
  static constexpr const char* kJobPrefix = "ask-";
  static bool is_job(const std::string& job) { return job.starts_with(kJobPrefix); }

  // {NAME: {"trials", "successes", "tasks" (with one), and what server_json() says}}
  Json summary() const;

 private:
  struct Pupil {  // a task as one teacher has it
    int trials = 0;
    std::set<std::string> programs;  // ids
  };
  struct Teacher {
    const workflow::TeacherSettings* settings = nullptr;
    std::map<std::string, Pupil> tasks;
    std::vector<Prompt> asked;        // in this round
    std::vector<ItemResult> answers;  // to them, until the round's last job has ended
    Spent spent;
    std::uint64_t refused = 0;
  };
  int successes(const Pupil& pupil) const;
  void read_answers(Teacher& teacher);
  method::PromptForm form_of_answers() const;

  const workflow::StageSpec& spec_;
  const TaskSet& tasks_;
  Verifier& verifier_;
  std::vector<Teacher> teachers_;
  std::vector<Candidate> found_;
  int round_ = 0, open_ = 0;
};

}  // namespace warpsmith::stages
