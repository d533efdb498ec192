#include "warpsmith/method/prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"

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

std::string compact_reference(const task::Task& task) {
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

std::string compact_sft(const task::Task& task, const std::vector<HackQuote>& hacks) {
  return "Make it faster.\n" + compact_reference(task) + compact_hacks(hacks) + "Code:\n";
}

std::string compact_contrastive(const task::Task& task, const std::vector<Exemplar>& exemplars,
                                const std::vector<HackQuote>& hacks) {
  std::string text = "Make it faster; compare the earlier ones.\n" + compact_reference(task);
  for (const Exemplar& e : exemplars)
    text += fmt::format("Earlier, {:.2f}x:\n", e.score) + end_in_newline(e.source);
  return text + "Answer: code only.\nRules: same results, no caching.\n" + compact_hacks(hacks) + "Code:\n";
}

std::string full_tensor(const task::TensorSpec& tensor) {
  std::string text = fmt::format("- `{}`: {}[", tensor.name, task::to_string(tensor.dtype));
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) text += (i > 0 ? ", " : "") + tensor.shape[i].text();
  return text + "]\n";
}

std::string full_reference(const task::Task& task) {
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

constexpr std::string_view kFullForm = R"(## Form of the program

CUDA C++ device code only: kernels, no host code. How they are launched stands in comments of the source:

    // plan: temp partial float32[M, 32]
    // plan: launch row_sum<<<dim3(32, M), 256>>>(x, partial, N)

Each `temp` is a scratch buffer, each `launch` runs one kernel, in order. Names are the inputs, the outputs, the
temporaries, the sizes and the scalars above; expressions are integers, with cdiv, min, max and clog2.

)";

constexpr std::string_view kFullRules = R"(## Requirements and restrictions

- The results equal the reference's within rounding, for every input and every size; otherwise the score is 0.
- The program compiles and runs as it stands. Nothing is left out, abbreviated or left to the reader.
- Every call does all of its work: nothing is cached, remembered or reused from an earlier call, and no answer is
  prepared for particular values or addresses.
- Hyper-parameters, sizes, types and precision stay what the reference makes them.
- Inputs are not written; only the outputs and the declared temporaries are.
)";

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

constexpr std::string_view kFullProtocol = R"(## Your answer

Three sections, in this order:

### Performance Analysis
Which of the earlier implementations is faster than which, and why; the strategies that look most promising; what limits
the best of them; techniques that none of them uses yet; the biggest opportunity that is left.

### Algorithm Design
The algorithm that you choose, how work and data are laid out over blocks, threads and memory, and why it should win.

### Code
The whole program, in one fence that opens with ```cuda.

)";

std::string full_sft(const task::Task& task, const std::vector<HackQuote>& hacks) {
  return "You write fast CUDA. Optimise the following PyTorch reference: write a CUDA program that computes "
         "the same and "
         "takes less time.\n\n" +
         full_reference(task) + std::string(kFullForm) + std::string(kFullRules) + full_hacks(hacks) +
         "\nAnswer with the whole program in one fence that opens with ```cuda.\n";
}

std::string full_contrastive(const task::Task& task, const std::vector<Exemplar>& exemplars,
                             const std::vector<HackQuote>& hacks) {
  std::string text =
      "You are an expert of CUDA and of GPU performance. Make the reference below as fast as you can while "
      "its function "
      "stays exactly the same. You are given earlier implementations with their scores: compare them, find "
      "out what made "
      "the better ones better, and write one that is faster than all of them.\n\n" +
      full_reference(task) +
      "## Earlier implementations\n\nThe score is the reference's time divided by the implementation's: "
      "higher is "
      "faster.\n\n";
  for (std::size_t i = 0; i < exemplars.size(); ++i)
    text += fmt::format("### Implementation {} (score {:.2f})\n\n```cuda\n", i + 1, exemplars[i].score) +
            end_in_newline(exemplars[i].source) + "```\n\n";
  return text + std::string(kFullProtocol) + std::string(kFullForm) + std::string(kFullRules) +
         full_hacks(hacks);
}

// `exemplars`: slowest first.
std::string prompt_with(const task::Task& task, const std::vector<Exemplar>& exemplars, PromptStyle style,
                        const std::vector<HackQuote>& hacks) {
  if (style == PromptStyle::kFull)
    return exemplars.empty() ? full_sft(task, hacks) : full_contrastive(task, exemplars, hacks);
  return exemplars.empty() ? compact_sft(task, hacks) : compact_contrastive(task, exemplars, hacks);
}

// The inside of the last whole fence whose language is CUDA or C++.
std::optional<std::string> last_fence(std::string_view text) {
  std::optional<std::string> found;
  std::string inside;
  bool open = false, is_code = false;
  for (const std::string& line : split(text, '\n')) {
    const std::string mark = trim(line);
    if (!mark.starts_with("```")) {
      if (open) inside += line + '\n';
    } else if (!open) {
      open = true;
      is_code = mark == "```cuda" || mark == "```cu" || mark == "```cpp" || mark == "```c++";
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

std::string sft_prompt(const task::Task& task, PromptStyle style) { return prompt_with(task, {}, style, {}); }

std::string contrastive_prompt(const task::Task& task, std::vector<Exemplar> exemplars, PromptStyle style,
                               const HackQuotes& quotes) {
  std::stable_sort(exemplars.begin(), exemplars.end(),
                   [](const Exemplar& a, const Exemplar& b) { return a.score < b.score; });
  std::vector<HackQuote> hacks;
  std::string text = prompt_with(task, exemplars, style, hacks);
  // Takes what has been added to `hacks` into the prompt; false: it has no room.
  const auto take = [&] {
    std::string longer = prompt_with(task, exemplars, style, hacks);
    if (longer.size() > quotes.room) return false;
    text = std::move(longer);
    return true;
  };
  std::vector<const HackQuote*> taken;
  for (const HackQuote& quote : quotes.list) {  // all reasons come before the first code
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

std::vector<std::string> contrastive_prompts(const task::Task& task, std::vector<Exemplar> exemplars,
                                             PromptStyle style, const HackQuotes& quotes) {
  std::vector<std::string> prompts = {contrastive_prompt(task, exemplars, style, quotes)};
  while (!exemplars.empty()) {
    exemplars.erase(
        std::max_element(exemplars.begin(), exemplars.end(), [](const Exemplar& a, const Exemplar& b) {
          return std::pair(a.source.size(), -a.score) < std::pair(b.source.size(), -b.score);
        }));
    prompts.push_back(contrastive_prompt(task, exemplars, style, quotes));
  }
  return prompts;
}

std::string completion_of(std::string_view source, PromptStyle style) {
  if (style == PromptStyle::kCompact) return end_in_newline(source);
  return "```cuda\n" + end_in_newline(source) + "```\n";
}

std::optional<std::string> extract_source(std::string_view completion, PromptStyle style) {
  const auto inside =
      style == PromptStyle::kFull ? last_fence(completion) : std::optional(std::string(completion));
  if (!inside) return std::nullopt;
  std::string source = end_in_newline(*inside);
  if (source.empty()) return std::nullopt;
  return source;
}

}  // namespace warpsmith::method
