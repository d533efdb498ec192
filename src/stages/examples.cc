#include "examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "warpsmith/base/random.h"
#include "warpsmith/method/prompt.h"
#include "warpsmith/method/reward.h"

namespace warpsmith::stages {

namespace {

// Contrastive examples that there should be before the whole is no longer repeated, and the most repetitions.
constexpr double kEnoughContrastive = 600;
constexpr int kMostPasses = 8;

// Successes with a score, by task, in the order in which they were found; only tasks with two at least.
struct TaskSuccesses {
  std::string task;
  std::vector<const Known*> programs;
};

std::vector<TaskSuccesses> scored_successes(const TaskSet& tasks, const std::vector<Known>& candidates,
                                            Tier answer) {
  std::vector<TaskSuccesses> out;
  for (const std::string& task : tasks.train()) {
    TaskSuccesses entry{task, {}};
    for (const Known& k : candidates)
      if (k.candidate.task == task && is_example(k.candidate, answer) &&
          method::outcome_of(k.measurement) == method::Outcome::kValid)
        entry.programs.push_back(&k);
    if (entry.programs.size() >= 2) out.push_back(std::move(entry));
  }
  return out;
}

method::PromptForm answer_form(const ExampleSettings& settings) {
  return {method::parse_prompt_style(settings.style), parse_tier(settings.answer)};
}

Json contrastive_example(const TaskSet& tasks, const TaskSuccesses& of, const ExampleSettings& settings,
                         const std::string& id, std::uint64_t number) {
  const method::PromptForm form = answer_form(settings);
  Random random(random_key({settings.key, number}));
  std::vector<const Known*> left = of.programs, drawn;
  while (!left.empty() && drawn.size() < static_cast<std::size_t>(settings.exemplars) + 1) {
    const std::size_t i = random.below(left.size());
    drawn.push_back(left[i]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const auto best = std::max_element(drawn.begin(), drawn.end(), [](const Known* a, const Known* b) {
    return a->measurement.speedup < b->measurement.speedup;
  });
  const Known* target = *best;
  drawn.erase(best);
  std::vector<method::Exemplar> exemplars;
  for (const Known* k : drawn) exemplars.push_back({k->candidate.source(), k->measurement.speedup_rounded});
  std::vector<std::string> prompts =
      method::contrastive_prompts(tasks.at(of.task), std::move(exemplars), form);
  Json example = make_example(id, prompts.front(), method::completion_of(target->candidate.source(), form));
  prompts.erase(prompts.begin());
  example["shorter"] = std::move(prompts);
  return example;
}

}  // namespace

Json to_json(const ExampleSettings& s) {
  return {{"from", s.from},
          {"style", s.style},
          {"answer", s.answer},
          {"exemplars", s.exemplars},
          {"contrastive_share", s.contrastive_share},
          {"successes_only", s.successes_only},
          {"key", s.key}};
}

ExampleSettings example_settings_from_json(const Json& json) {
  constexpr std::string_view kWhat = "examples of stage 1";
  ExampleSettings s;
  s.from = json_at<std::vector<std::string>>(json, "from", kWhat);
  s.style = json_at<std::string>(json, "style", kWhat);
  s.answer = json.value("answer", s.answer);  // outputs of before it was a choice have none
  s.exemplars = json_at<int>(json, "exemplars", kWhat);
  s.contrastive_share = json_at<double>(json, "contrastive_share", kWhat);
  s.successes_only = json_at<bool>(json, "successes_only", kWhat);
  s.key = json_at<std::uint64_t>(json, "key", kWhat);
  return s;
}

Json make_example(std::string id, std::string prompt, std::string completion) {
  return {{"id", std::move(id)},
          {"prompt", std::move(prompt)},
          {"completion", std::move(completion)},
          {"weight", 1.0}};
}

std::vector<Json> sft_examples(const TaskSet& tasks, const std::vector<Known>& candidates,
                               const ExampleSettings& settings) {
  const method::PromptForm form = answer_form(settings);
  std::vector<Json> plain;
  for (const Known& k : candidates)
    if ((k.taken_as_right || tasks.group(k.candidate.task) == "train") &&
        is_example(k.candidate, form.answer) &&
        (k.taken_as_right || !settings.successes_only || is_correct(k.measurement.verdict)))
      plain.push_back(make_example("sft/" + k.candidate.id,
                                   method::sft_prompt(tasks.at(k.candidate.task), form),
                                   method::completion_of(k.candidate.source(), form)));
  const double share = std::clamp(settings.contrastive_share, 0.0, 0.99);
  const std::vector<TaskSuccesses> sources = scored_successes(tasks, candidates, form.answer);
  const bool contrastive = share > 0 && !sources.empty() && settings.exemplars > 0;
  if (!contrastive || plain.empty()) return plain;

  const auto a_pass =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(plain.size()) * share / (1 - share)));
  const int passes =
      a_pass == 0 ? 1
                  : std::clamp(static_cast<int>(std::ceil(kEnoughContrastive / static_cast<double>(a_pass))),
                               1, kMostPasses);
  std::vector<Json> out;
  std::uint64_t number = 0;
  for (int pass = 1; pass <= passes; ++pass) {
    for (Json example : plain) {
      if (pass > 1) example["id"] = fmt::format("{}/{}", example["id"].get<std::string>(), pass);
      out.push_back(std::move(example));
    }
    for (std::uint64_t i = 0; i < a_pass; ++i, ++number) {
      const TaskSuccesses& of = sources[number % sources.size()];
      out.push_back(contrastive_example(tasks, of, settings,
                                        fmt::format("contrastive/{}#{}", of.task, number), number));
    }
  }
  return out;
}

std::vector<Json> sft_examples(const StageInputs& inputs, const TaskSet& tasks,
                               const ExampleSettings& settings) {
  std::vector<Known> candidates = known_candidates(inputs, settings.from, Comparable::kDevice);
  for (Known& known : unmeasured_programs(inputs, settings.from)) candidates.push_back(std::move(known));
  return sft_examples(tasks, candidates, settings);
}

}  // namespace warpsmith::stages
