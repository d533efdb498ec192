// Prompts of the three stages (CUDA-L1.md, "Stage 1" and "Stage 3"), and the way back from an answer to a
// source. All functions are pure: equal arguments give equal bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/method/hacks.h"
#include "warpsmith/records/candidate.h"
#include "warpsmith/records/measurement.h"
#include "warpsmith/task/task.h"

namespace warpsmith::method {

// kFull: every part spelt out, for models that read English; the answer carries its code in a ```cuda fence.
// kCompact: the same parts in the same order, the fixed ones one short line each, for models of a few hundred
// tokens of context; the answer is the source itself.
enum class PromptStyle { kFull, kCompact };
PromptStyle parse_prompt_style(std::string_view name);  // "full", "compact"; throws Error

// How a model is asked, and what it writes: a launch plan with device code, C++ and CUDA with a host function
// `forward`, or a Python module with `ModelNew` (KernelBench's form).
struct PromptForm {
  PromptForm(PromptStyle the_style, Tier the_answer = Tier::kPlan) : style(the_style), answer(the_answer) {}
  PromptStyle style;
  Tier answer;
};

// An earlier program of the same task. Shown with its score in two decimals; without one where nobody has
// measured it.
struct Exemplar {
  std::string source;
  std::optional<double> score;
};

// Known hacks for the restrictions of a prompt, as choose_hacks() gives them.
struct HackQuotes {
  std::vector<HackQuote> list;
  std::size_t room = 0;  // bytes; a quote, or its code, is left out where the whole prompt would be longer
};

// Stages 1 and 2: the reference, and the task of making it faster.
std::string sft_prompt(const task::Task& task, PromptForm form);

// Stage 3, five parts: role and task; reference; earlier implementations with their scores, slowest first
// (those without a score before all; equal scores: in the order given); protocol of the answer; requirements
// and restrictions, with `quotes` at their end. Without exemplars it is sft_prompt, and the quotes.
std::string contrastive_prompt(const task::Task& task, std::vector<Exemplar> exemplars, PromptForm form,
                               const HackQuotes& quotes = {});

// The same with ever fewer exemplars: the first prompt has all, each next one lacks the longest that was left
// (of equally long ones the slower), the last has none. Of these a model is asked the first that fits its
// context.
std::vector<std::string> contrastive_prompts(const task::Task& task, std::vector<Exemplar> exemplars,
                                             PromptForm form, const HackQuotes& quotes = {});

// An answer that is asked again, and what became of it.
struct Attempt {
  std::string source;  // empty: it held no program
  Measurement measurement;
  bool cut_off = false;  // it ended at the longest answer
};

// Later turns: the reference, the program of the turn before, its verdict and what the records say of it
// (findings.h), and the task of mending it, or of making it faster where it is right; requirements and
// restrictions as in stage 3. The second prompt, for a context that the first does not fit, lacks the
// program: it is contrastive_prompt() without exemplars.
std::vector<std::string> refinement_prompts(const task::Task& task, const Attempt& attempt, PromptForm form,
                                            const HackQuotes& quotes = {});

// What a model is taught to answer with `source`.
std::string completion_of(std::string_view source, PromptForm form);

// The source in an answer, its trailing white space replaced by one newline. kFull: the last whole ```cuda
// (or ```cpp, ```c++, ```cu) fence, of a Python module ```python (or ```py); nothing where there is none.
// Nothing where the source is empty.
std::optional<std::string> extract_source(std::string_view completion, PromptForm form);

}  // namespace warpsmith::method
