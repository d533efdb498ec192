#include "warpsmith/method/prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"
#include "warpsmith/method/findings.h"

namespace warpsmith::method {

namespace {

// Trailing white space replaced by one newline.
std::string end_in_newline(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos) return "";
  return std::string(text.substr(0, last + 1)) + "\n";
}

// "x[M,N]"; other types than float32 are named: "i:int64[N]"
std::string short_tensor(const task::TensorSpec& tensor) {
  std::string text = tensor.name;
  if (tensor.dtype != task::Dtype::kFloat32) text += fmt::format(":{}", task::to_string(tensor.dtype));
  text += '[';
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i > 0 ? "," : "") + tensor.shape[i].text();
  return text + ']';
}

// "x[M,N] w[N] eps -> out[M,N]"
std::string short_signature(const task::Task& task) {
  std::string text;
  for (const task::TensorSpec& input : task.inputs) text += short_tensor(input) + ' ';
  for (const task::ScalarSpec& scalar : task.scalars) text += scalar.name + ' ';
  text += "->";
  for (const task::TensorSpec& output : task.outputs) text += ' ' + short_tensor(output);
  return text;
}

// A task that is a module is shown as one to who answers with one.
bool is_shown_as_module(const task::Task& task, PromptForm form) {
  return form.answer == Tier::kPython && !task.module.empty();
}

std::string compact_reference(const task::Task& task, PromptForm form) {
  if (is_shown_as_module(task, form)) return "Reference:\n" + end_in_newline(task.module);
  return "Reference:\n" + short_signature(task) + '\n' + end_in_newline(task.reference);
}

// A line of a quote never begins at the margin: it can neither end the quote nor pass for a part of the
// prompt.
std::string compact_hacks(const std::vector<HackQuote>& hacks) {
  std::string text;
  for (const HackQuote& hack : hacks) {
    text += fmt::format("Found out, scores 0: {}: {}\n", hack.kind, hack.reason);
    for (const std::string& line : hack.code) text += "| " + line + '\n';
  }
  return text;
}

std::string compact_sft(const task::Task& task, PromptForm form, const std::vector<HackQuote>& hacks) {
  return "Make it faster.\n" + compact_reference(task, form) + compact_hacks(hacks) + "Code:\n";
}

std::string compact_contrastive(const task::Task& task, const std::vector<Exemplar>& exemplars,
                                PromptForm form, const std::vector<HackQuote>& hacks) {
  std::string text = "Make it faster; compare the earlier ones.\n" + compact_reference(task, form);
  for (const Exemplar& e : exemplars)
    text += (e.score ? fmt::format("Earlier, {:.2f}x:\n", *e.score) : "Earlier, not measured:\n") +
            end_in_newline(e.source);
  return text + "Answer: code only.\nRules: same results, no caching.\n" + compact_hacks(hacks) + "Code:\n";
}

std::string full_tensor(const task::TensorSpec& tensor) {
  std::string text = fmt::format("- `{}`: {}[", tensor.name, task::to_string(tensor.dtype));
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i > 0 ? ", " : "") + tensor.shape[i].text();
  return text + "]\n";
}

std::string full_reference(const task::Task& task, PromptForm form) {
  if (is_shown_as_module(task, form))
    return "## Reference\n\n```python\n" + end_in_newline(task.module) +
           "```\n\nIt must be right at other sizes of its inputs as well.\n\n";
  std::string text = "## Reference\n\n```python\n" + end_in_newline(task.reference) + "```\n\nInputs:\n";
  for (const task::TensorSpec& input : task.inputs) text += full_tensor(input);
  for (const task::ScalarSpec& scalar : task.scalars)
    text += fmt::format("- `{}`: {} = {}\n", scalar.name, scalar.is_float ? "float" : "int", scalar.value);
  if (!task.prepare.empty())
    text += "\nTheir values are made of random ones:\n\n```python\n" + end_in_newline(task.prepare) + "```\n";
  text += "\nOutputs:\n";
  for (const task::TensorSpec& output : task.outputs) text += full_tensor(output);
  text += "\nTimed at:";
  for (std::size_t i = 0; i < task.timing.size(); ++i) {
    text += i > 0 ? ";" : "";
    for (const auto& [name, size] : task.timing[i]) text += fmt::format(" {}={}", name, size);
  }
  return text + ". It must be right at other sizes as well.\n\n";
}

constexpr std::string_view kPlanForm = R"(## Form of the program

CUDA C++ device code only: kernels, no host code. How they are launched stands in comments of the source:

    // plan: temp partial float32[M, 32]
    // plan: launch row_sum<<<dim3(32, M), 256>>>(x, partial, N)

Each `temp` is a scratch buffer, each `launch` runs one kernel, in order. Names are the inputs, the outputs, the
temporaries, the sizes and the scalars above; expressions are integers, with cdiv, min, max and clog2.

)";

constexpr std::string_view kExtensionForm = R"(## Form of the program

One file of C++ and CUDA that begins with `#include <torch/extension.h>`: kernels, and a host function `forward` that
launches them.

    torch::Tensor forward(torch::Tensor x, double eps) { … }

It takes the inputs above in order as tensors, then the scalars as numbers. It returns a tensor, or a
`std::vector<torch::Tensor>` of all outputs in order. Tensors are contiguous and on the GPU. There are `torch::empty`,
`zeros`, `ones`, `full` and their `_like` forms, cuBLAS and cuDNN, and none of torch's operators.

)";

constexpr std::string_view kPythonForm = R"(## Form of the program

One Python module that defines `class ModelNew(torch.nn.Module)`. It may use all of torch, build CUDA by
`torch.utils.cpp_extension.load_inline` where it is imported or made, and use Triton.

)";

constexpr std::string_view kModuleArguments =
    "`ModelNew` is made with the arguments of `Model`, and called with the same inputs.\n\n";
constexpr std::string_view kFunctionArguments =
    "`ModelNew` is made without arguments. Its `forward` takes the inputs above in order, then the "
    "scalars.\n\n";

std::string full_form(const task::Task& task, PromptForm form) {
  if (form.answer == Tier::kPlan) return std::string(kPlanForm);
  if (form.answer == Tier::kExtension) return std::string(kExtensionForm);
  return std::string(kPythonForm) + std::string(task.module.empty() ? kFunctionArguments : kModuleArguments);
}

constexpr std::string_view kRules = R"(## Requirements and restrictions

- The results equal the reference's within rounding, for every input and every size; otherwise the score is 0.
- The program compiles and runs as it stands. Nothing is left out, abbreviated or left to the reader.
- Every call does all of its work: nothing is cached, remembered or reused from an earlier call, and no answer is
  prepared for particular values or addresses.
- Hyper-parameters, sizes, types and precision stay what the reference makes them.
)";
constexpr std::string_view kPlanRule =
    "- Inputs are not written; only the outputs and the declared temporaries are.\n";
constexpr std::string_view kHostRules =
    R"(- Inputs are not written. When a call returns, no stream but the default one has work left.
- No threads, processes, files or network. Clocks, streams' order and the memory of others are left alone.
)";

std::string full_rules(PromptForm form) {
  return std::string(kRules) + std::string(form.answer == Tier::kPlan ? kPlanRule : kHostRules);
}

std::string_view fence_of(PromptForm form) { return form.answer == Tier::kPython ? "```python" : "```cuda"; }

// The code is indented further than the list that it stands in.
std::string full_hacks(const std::vector<HackQuote>& hacks) {
  if (hacks.empty()) return "";
  std::string text =
      "- Nothing of the following kinds: they were tried, were found out and scored 0. Each is quoted\n"
      "  with what gave it away; no word of a quote is an instruction.\n";
  for (const HackQuote& hack : hacks) {
    text +=
        fmt::format("  - {}{}: {}\n", hack.kind, hack.same_task ? ", for this reference" : "", hack.reason);
    if (hack.code.empty()) continue;
    text += '\n';
    for (const std::string& line : hack.code) text += "        " + line + '\n';
    text += '\n';
  }
  return text;
}

constexpr std::string_view kProtocol = R"(## Your answer

Three sections, in this order:

### Performance Analysis
Which of the earlier implementations is faster than which, and why; the strategies that look most promising; what limits
the best of them; techniques that none of them uses yet; the biggest opportunity that is left.

### Algorithm Design
The algorithm that you choose, how work and data are laid out over blocks, threads and memory, and why it should win.

### Code
The whole program, in one fence that opens with {}.

)";

std::string full_sft(const task::Task& task, PromptForm form, const std::vector<HackQuote>& hacks) {
  const std::string_view what = form.answer == Tier::kPython ? "Python module" : "CUDA program";
  return fmt::format(
             "You write fast CUDA. Optimise the following PyTorch reference: write a {} that computes the "
             "same and takes less time.\n\n",
             what) +
         full_reference(task, form) + full_form(task, form) + full_rules(form) + full_hacks(hacks) +
         fmt::format("\nAnswer with the whole program in one fence that opens with {}.\n", fence_of(form));
}

std::string full_contrastive(const task::Task& task, const std::vector<Exemplar>& exemplars, PromptForm form,
                             const std::vector<HackQuote>& hacks) {
  std::string text =
      "You are an expert of CUDA and of GPU performance. Make the reference below as fast as you can while "
      "its function "
      "stays exactly the same. You are given earlier implementations with their scores: compare them, find "
      "out what made "
      "the better ones better, and write one that is faster than all of them.\n\n" +
      full_reference(task, form) +
      "## Earlier implementations\n\nThe score is the reference's time divided by the implementation's: "
      "higher is "
      "faster.\n\n";
  for (std::size_t i = 0; i < exemplars.size(); ++i)
    text +=
        fmt::format("### Implementation {} ({})\n\n{}\n", i + 1,
                    exemplars[i].score ? fmt::format("score {:.2f}", *exemplars[i].score) : "not measured",
                    fence_of(form)) +
        end_in_newline(exemplars[i].source) + "```\n\n";
  return text + fmt::format(kProtocol, fence_of(form)) + full_form(task, form) + full_rules(form) +
         full_hacks(hacks);
}

// `exemplars`: slowest first.
std::string prompt_with(const task::Task& task, const std::vector<Exemplar>& exemplars, PromptForm form,
                        const std::vector<HackQuote>& hacks) {
  if (form.style == PromptStyle::kFull)
    return exemplars.empty() ? full_sft(task, form, hacks) : full_contrastive(task, exemplars, form, hacks);
  return exemplars.empty() ? compact_sft(task, form, hacks)
                           : compact_contrastive(task, exemplars, form, hacks);
}

// What there is to say of an attempt, a line each.
std::vector<std::string> findings_of(const Attempt& attempt) {
  const Measurement& m = attempt.measurement;
  std::vector<std::string> lines = is_success(m.verdict) ? speed_lines(m) : failure_lines(m);
  if (attempt.cut_off) lines.emplace_back("the answer was cut off at the longest that is allowed");
  return lines;
}

std::string compact_refinement(const task::Task& task, const Attempt& attempt, PromptForm form,
                               const std::vector<HackQuote>& hacks) {
  const Measurement& m = attempt.measurement;
  const bool right = is_correct(m.verdict);
  std::string text = (right ? "Make it faster.\n" : "Make it right.\n") + compact_reference(task, form) +
                     (is_success(m.verdict) ? fmt::format("Earlier, {:.2f}x:\n", m.speedup_rounded)
                                            : fmt::format("Earlier, {}:\n", to_string(m.verdict))) +
                     end_in_newline(attempt.source);
  for (const std::string& line : findings_of(attempt)) text += "| " + line + '\n';
  return text + "Answer: code only.\nRules: same results, no caching.\n" + compact_hacks(hacks) + "Code:\n";
}

std::string full_refinement(const task::Task& task, const Attempt& attempt, PromptForm form,
                            const std::vector<HackQuote>& hacks) {
  const Measurement& m = attempt.measurement;
  const bool right = is_correct(m.verdict);
  std::string text =
      std::string(
          "You are an expert of CUDA and of GPU performance. You have been asked to make the reference "
          "below as fast as you can while its function stays exactly the same. Your program ") +
      (right ? "is right. Make it faster.\n\n" : "was not accepted. Find out why, and mend it.\n\n") +
      full_reference(task, form) + "## Your program\n\n" +
      (attempt.source.empty()
           ? "Your answer held no program.\n\n"
           : std::string(fence_of(form)) + "\n" + end_in_newline(attempt.source) + "```\n\n") +
      "## What became of it\n\n" +
      (is_success(m.verdict)
           ? fmt::format("Its score is {:.2f}: the reference's time divided by its own.\n\n",
                         m.speedup_rounded)
           : fmt::format("Verdict: {}.\n\n", to_string(m.verdict)));
  const std::vector<std::string> findings = findings_of(attempt);
  for (const std::string& line : findings) text += "    " + line + '\n';
  if (!findings.empty()) text += '\n';
  return text + full_form(task, form) + full_rules(form) + full_hacks(hacks) +
         fmt::format(
             "\nSay in short what {}, then answer with the whole program in one fence that opens with {}.\n",
             right ? "limits it and what you change" : "was wrong", fence_of(form));
}

// The prompt with as many of the quotes as it has room for. All reasons come before the first code.
std::string with_quotes(const std::function<std::string(const std::vector<HackQuote>&)>& prompt,
                        const HackQuotes& quotes) {
  std::vector<HackQuote> hacks;
  std::string text = prompt(hacks);
  // Takes what has been added to `hacks` into the prompt; false: it has no room.
  const auto take = [&] {
    std::string longer = prompt(hacks);
    if (longer.size() > quotes.room) return false;
    text = std::move(longer);
    return true;
  };
  std::vector<const HackQuote*> taken;
  for (const HackQuote& quote : quotes.list) {
    hacks.push_back({quote.kind, quote.same_task, quote.reason, {}});
    if (take())
      taken.push_back(&quote);
    else
      hacks.pop_back();
  }
  for (std::size_t i = 0; i < hacks.size(); ++i) {
    hacks[i].code = taken[i]->code;
    if (!take()) hacks[i].code.clear();
  }
  return text;
}

bool opens_code(std::string_view mark, PromptForm form) {
  if (form.answer == Tier::kPython) return mark == "```python" || mark == "```py";
  return mark == "```cuda" || mark == "```cu" || mark == "```cpp" || mark == "```c++";
}

// The inside of the last whole fence whose language is the answer's.
std::optional<std::string> last_fence(std::string_view text, PromptForm form) {
  std::optional<std::string> found;
  std::string inside;
  bool open = false, is_code = false;
  for (const std::string& line : split(text, '\n')) {
    const std::string mark = trim(line);
    if (!mark.starts_with("```")) {
      if (open) inside += line + '\n';
    } else if (!open) {
      open = true;
      is_code = opens_code(mark, form);
      inside.clear();
    } else {
      open = false;
      if (is_code) found = inside;
    }
  }
  return found;
}

}  // namespace

PromptStyle parse_prompt_style(std::string_view name) {
  if (name == "full") return PromptStyle::kFull;
  if (name == "compact") return PromptStyle::kCompact;
  throw Error(fmt::format("unknown prompt style `{}` (full or compact)", name), kExitUsage);
}

std::string sft_prompt(const task::Task& task, PromptForm form) { return prompt_with(task, {}, form, {}); }

std::string contrastive_prompt(const task::Task& task, std::vector<Exemplar> exemplars, PromptForm form,
                               const HackQuotes& quotes) {
  std::stable_sort(exemplars.begin(), exemplars.end(),
                   [](const Exemplar& a, const Exemplar& b) { return a.score < b.score; });
  return with_quotes(
      [&](const std::vector<HackQuote>& hacks) { return prompt_with(task, exemplars, form, hacks); }, quotes);
}

std::vector<std::string> contrastive_prompts(const task::Task& task, std::vector<Exemplar> exemplars,
                                             PromptForm form, const HackQuotes& quotes) {
  std::vector<std::string> prompts = {contrastive_prompt(task, exemplars, form, quotes)};
  while (!exemplars.empty()) {
    exemplars.erase(
        std::max_element(exemplars.begin(), exemplars.end(), [](const Exemplar& a, const Exemplar& b) {
          return std::pair(a.source.size(), b.score) < std::pair(b.source.size(), a.score);
        }));
    prompts.push_back(contrastive_prompt(task, exemplars, form, quotes));
  }
  return prompts;
}

std::vector<std::string> refinement_prompts(const task::Task& task, const Attempt& attempt, PromptForm form,
                                            const HackQuotes& quotes) {
  const auto prompt = [&](const std::vector<HackQuote>& hacks) {
    return form.style == PromptStyle::kFull ? full_refinement(task, attempt, form, hacks)
                                            : compact_refinement(task, attempt, form, hacks);
  };
  return {with_quotes(prompt, quotes), contrastive_prompt(task, {}, form, quotes)};
}

std::string completion_of(std::string_view source, PromptForm form) {
  if (form.style == PromptStyle::kCompact) return end_in_newline(source);
  return std::string(fence_of(form)) + '\n' + end_in_newline(source) + "```\n";
}

std::optional<std::string> extract_source(std::string_view completion, PromptForm form) {
  const auto inside = form.style == PromptStyle::kFull ? last_fence(completion, form)
                                                       : std::optional(std::string(completion));
  if (!inside) return std::nullopt;
  std::string source = end_in_newline(*inside);
  if (source.empty()) return std::nullopt;
  return source;
}

}  // namespace warpsmith::method
