#include "examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "warpsmith/base/random.h"
#include "warpsmith/method/prompt.h"
#include "warpsmith/method/reward.h"

namespace warpsmith::stages {

namespace {

// Contrastive examples that there should be before the whole is no longer repeated, and the most repetitions.
constexpr double kEnoughContrastive = 600;
constexpr int kMostPasses = 8;
// Where there are programs without a score as well: of so many contrastive examples one has scores.
constexpr std::uint64_t kOneInHasScores = 4;

// Of one task, in the order in which they were found.
struct TaskPrograms {
  std::string task;
  std::vector<const Known*> programs;
};

// What contrastive examples are made of: tasks with two programs at least.
struct Sources {
  std::vector<TaskPrograms> scored;    // successes with a score, of train tasks
  std::vector<TaskPrograms> unscored;  // programs that are taken as right
  bool empty() const { return scored.empty() && unscored.empty(); }
};

Sources sources_of(const TaskSet& tasks, const std::vector<Known>& candidates, Tier answer) {
  std::map<std::string, TaskPrograms> scored;
  Sources out;
  std::map<std::string, std::size_t> place;
  for (const Known& k : candidates) {
    const std::string& task = k.candidate.task;
    if (!is_example(k.candidate, answer)) continue;
    if (k.taken_as_right) {
      const auto [it, is_new] = place.emplace(task, out.unscored.size());
      if (is_new) out.unscored.push_back({task, {}});
      out.unscored[it->second].programs.push_back(&k);
    } else if (method::outcome_of(k.measurement) == method::Outcome::kValid) {
      scored[task].programs.push_back(&k);
    }
  }
  const auto has_one = [](const TaskPrograms& of) { return of.programs.size() < 2; };
  std::erase_if(out.unscored, has_one);
  for (const std::string& task : tasks.train())
    if (const auto it = scored.find(task); it != scored.end() && !has_one(it->second))
      out.scored.push_back({task, std::move(it->second.programs)});
  return out;
}

method::PromptForm answer_form(const ExampleSettings& settings) {
  return {method::parse_prompt_style(settings.style), parse_tier(settings.answer)};
}

Json contrastive_example(const TaskSet& tasks, const TaskPrograms& of, const ExampleSettings& settings,
                         std::uint64_t number) {
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
  // Without scores it may be one that is shown: else what is learned is to avoid what stage 3 shows, its
  // best.
  if (target->taken_as_right) target = of.programs[random.below(of.programs.size())];
  std::vector<method::Exemplar> exemplars;
  for (const Known* k : drawn)
    exemplars.push_back({k->candidate.source(),
                         k->taken_as_right ? std::nullopt : std::optional(k->measurement.speedup_rounded)});
  std::vector<std::string> prompts =
      method::contrastive_prompts(tasks.at(of.task), std::move(exemplars), form);
  Json example = make_example(fmt::format("contrastive/{}#{}", of.task, number), prompts.front(),
                              method::completion_of(target->candidate.source(), form));
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
  const Sources sources = sources_of(tasks, candidates, form.answer);
  const bool contrastive = share > 0 && !sources.empty() && settings.exemplars > 0;
  if (!contrastive || plain.empty()) return plain;

  const auto a_pass =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(plain.size()) * share / (1 - share)));
  const int passes =
      a_pass == 0 ? 1
                  : std::clamp(static_cast<int>(std::ceil(kEnoughContrastive / static_cast<double>(a_pass))),
                               1, kMostPasses);
  std::vector<Json> out;
  std::uint64_t number = 0, with_scores = 0, without = 0;
  const auto next_source = [&]() -> const TaskPrograms& {
    const bool has_scores =
        sources.unscored.empty() || (!sources.scored.empty() && number % kOneInHasScores == 0);
    return has_scores ? sources.scored[with_scores++ % sources.scored.size()]
                      : sources.unscored[without++ % sources.unscored.size()];
  };
  for (int pass = 1; pass <= passes; ++pass) {
    for (Json example : plain) {
      if (pass > 1) example["id"] = fmt::format("{}/{}", example["id"].get<std::string>(), pass);
      out.push_back(std::move(example));
    }
    for (std::uint64_t i = 0; i < a_pass; ++i, ++number)
      out.push_back(contrastive_example(tasks, next_source(), settings, number));
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
