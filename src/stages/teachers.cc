#include "teachers.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpsmith::stages {

Teachers::Teachers(const workflow::StageSpec& spec, const TaskSet& tasks, Verifier& verifier)
    : spec_(spec), tasks_(tasks), verifier_(verifier) {
  for (const workflow::TeacherSettings& teacher :
       std::get<workflow::CollectSettings>(spec.settings).teachers) {
    teachers_.push_back({.settings = &teacher, .tasks = {}, .asked = {}, .spent = {}});
    for (const std::string& task : tasks.train()) teachers_.back().tasks[task];
  }
}

int Teachers::successes(const Pupil& pupil) const {
  return static_cast<int>(
      std::count_if(pupil.programs.begin(), pupil.programs.end(),
                    [&](const std::string& id) { return is_success(verifier_.at(id).measurement.verdict); }));
}

std::vector<JobRequest> Teachers::next_round() {
  const int next = round_ + 1;
  std::vector<JobRequest> jobs;
  for (Teacher& teacher : teachers_) {
    const workflow::TeacherSettings& settings = *teacher.settings;
    teacher.asked.clear();
    for (const std::string& task : tasks_.train()) {
      Pupil& pupil = teacher.tasks.at(task);
      const int n = std::min(settings.successes - successes(pupil), settings.trials - pupil.trials);
      if (n <= 0) continue;
      pupil.trials += n;
      teacher.asked.push_back(
          {task + "#0", task, method::sft_prompt(tasks_.at(task), form_of_answers()), n, 0});
    }
    if (teacher.asked.empty()) continue;
    jobs.push_back(
        teacher_request(spec_, next, kJobPrefix + settings.name, settings, teacher.asked, teacher.spent));
  }
  open_ = static_cast<int>(jobs.size());
  if (!jobs.empty()) round_ = next;
  return jobs;
}

// Read in the order of the teachers, whoever came first: a run that goes on asks for the same as before.
bool Teachers::on_job(const JobResult& result) {
  const auto teacher = std::find_if(teachers_.begin(), teachers_.end(), [&](const Teacher& t) {
    return result.job == kJobPrefix + t.settings->name;
  });
  if (teacher == teachers_.end() || result.round != round_ || result.items.size() != teacher->asked.size())
    throw Error(fmt::format("stage {}: job {} of round {} is none that was asked for", spec_.name, result.job,
                            result.round));
  teacher->answers = result.items;
  if (--open_ > 0) return false;
  for (Teacher& one : teachers_) read_answers(one);
  return true;
}

void Teachers::read_answers(Teacher& teacher) {
  const method::PromptForm form = form_of_answers();
  for (std::size_t i = 0; i < teacher.answers.size(); ++i) {
    const Prompt& prompt = teacher.asked[i];
    const Json& record = teacher.answers[i].record;
    if (record.is_null()) continue;  // went with its shard
    teacher.spent += spent_of(record);
    const Json& samples = record.at("samples");
    teacher.refused +=
        static_cast<std::uint64_t>(std::max(0, prompt.samples - static_cast<int>(samples.size())));
    for (std::size_t k = 0; k < samples.size(); ++k) {
      teacher.tasks.at(prompt.task)
          .programs.insert(add_answer(samples[k].at("text").get<std::string>(), form, prompt.task,
                                      {"teacher", spec_.name, round_,
                                       fmt::format("{}: {}/{}", teacher.settings->name, prompt.task, k), ""},
                                      verifier_, found_));
    }
  }
  teacher.answers.clear();
}

method::PromptForm Teachers::form_of_answers() const {
  return {method::PromptStyle::kFull, parse_tier(spec_.prompt.answer)};
}

Json Teachers::summary() const {
  Json out = Json::object();
  for (const Teacher& teacher : teachers_) {
    int trials = 0, good = 0, tasks = 0;
    for (const auto& [task, pupil] : teacher.tasks) {
      trials += pupil.trials;
      good += successes(pupil);
      tasks += successes(pupil) > 0;
    }
    Json& json = out[teacher.settings->name] =
        server_json(teacher.settings->endpoint, teacher.spent, teacher.refused);
    json.update({{"trials", trials}, {"successes", good}, {"tasks", tasks}});
  }
  return out;
}

}  // namespace warpsmith::stages
