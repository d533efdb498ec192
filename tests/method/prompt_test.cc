#include "warpsmith/method/prompt.h"

#include <gtest/gtest.h>

#include "warpsmith/base/error.h"

namespace warpsmith::method {
namespace {

task::TensorSpec tensor(std::string name, std::vector<std::string> shape,
                        task::Dtype dtype = task::Dtype::kFloat32) {
  task::TensorSpec t;
  t.name = std::move(name);
  t.dtype = dtype;
  for (const std::string& s : shape) t.shape.push_back(task::Expression::parse(s));
  return t;
}

task::Task rms_norm() {
  task::Task t;
  t.id = "rms_norm";
  t.dims = {"M", "N"};
  t.inputs = {tensor("x", {"M", "N"}), tensor("i", {"2 * N"}, task::Dtype::kInt64)};
  t.scalars = {{"eps", true, 1e-5}};
  t.outputs = {tensor("out", {"M", "N"})};
  t.reference = "def forward(x: Tensor, i: Tensor, eps: float) -> Tensor:\n  return x * eps\n\n";
  t.timing = {{{"M", 256}, {"N", 512}}};
  return t;
}

TEST(Prompt, CompactOfStageOne) {
  EXPECT_EQ(sft_prompt(rms_norm(), PromptStyle::kCompact),
            "Make it faster.\n"
            "Reference:\n"
            "x[M,N] i:int64[2 * N] eps -> out[M,N]\n"
            "def forward(x: Tensor, i: Tensor, eps: float) -> Tensor:\n"
            "  return x * eps\n"
            "Code:\n");
}

TEST(Prompt, CompactContrastiveShowsExemplarsSlowestFirst) {
  const std::string prompt =
      contrastive_prompt(rms_norm(), {{"fast();\n\n", 1.256}, {"slow();", 0.5}}, PromptStyle::kCompact);
  EXPECT_EQ(prompt,
            "Make it faster; compare the earlier ones.\n"
            "Reference:\n"
            "x[M,N] i:int64[2 * N] eps -> out[M,N]\n"
            "def forward(x: Tensor, i: Tensor, eps: float) -> Tensor:\n"
            "  return x * eps\n"
            "Earlier, 0.50x:\n"
            "slow();\n"
            "Earlier, 1.26x:\n"
            "fast();\n"
            "Answer: code only.\n"
            "Rules: same results, no caching.\n"
            "Code:\n");
}

TEST(Prompt, AnExemplarWithoutAScoreSaysSo) {
  const std::vector<Exemplar> exemplars = {{"fast();", 1.25}, {"whatever();", std::nullopt}};
  EXPECT_NE(contrastive_prompt(rms_norm(), exemplars, PromptStyle::kCompact)
                .find("Earlier, not measured:\nwhatever();\nEarlier, 1.25x:\nfast();\n"),
            std::string::npos);
  EXPECT_NE(contrastive_prompt(rms_norm(), exemplars, PromptStyle::kFull)
                .find("### Implementation 1 (not measured)\n\n```cuda\nwhatever();\n"),
            std::string::npos);
}

TEST(Prompt, WithoutExemplarsTheContrastivePromptIsThatOfStageOne) {
  for (const PromptStyle style : {PromptStyle::kFull, PromptStyle::kCompact})
    EXPECT_EQ(contrastive_prompt(rms_norm(), {}, style), sft_prompt(rms_norm(), style));
}

TEST(Prompt, TheLongestExemplarIsTheFirstToGo) {
  const std::vector<Exemplar> all = {{"slow();", 0.5}, {"much_longer();", 0.7}, {"fast();", 1.25}};
  for (const PromptStyle style : {PromptStyle::kFull, PromptStyle::kCompact}) {
    const std::vector<std::string> prompts = contrastive_prompts(rms_norm(), all, style);
    ASSERT_EQ(prompts.size(), 4u);
    EXPECT_EQ(prompts[0], contrastive_prompt(rms_norm(), all, style));
    EXPECT_EQ(prompts[1], contrastive_prompt(rms_norm(), {all[0], all[2]}, style));
    EXPECT_EQ(prompts[2], contrastive_prompt(rms_norm(), {all[2]}, style)) << "as long, and faster";
    EXPECT_EQ(prompts[3], sft_prompt(rms_norm(), style));
  }
}

TEST(Prompt, FullHasTheFivePartsInOrder) {
  const std::string prompt =
      contrastive_prompt(rms_norm(), {{"fast();\n", 1.25}, {"slow();\n", 0.5}}, PromptStyle::kFull);
  std::size_t at = 0;
  for (const char* part :
       {"You are an expert of CUDA", "## Reference", "```python\ndef forward(", "- `i`: int64[2 * N]",
        "- `eps`: float = 1e-05", "Timed at: M=256 N=512.", "## Earlier implementations",
        "### Implementation 1 (score 0.50)\n\n```cuda\nslow();\n```",
        "### Implementation 2 (score 1.25)\n\n```cuda\nfast();\n```", "## Your answer",
        "### Performance Analysis", "### Algorithm Design", "### Code", "// plan: launch",
        "## Requirements and restrictions", "otherwise the score is 0", "nothing is cached",
        "Hyper-parameters"}) {
    const std::size_t found = prompt.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\nis missing, or out of order, in\n" << prompt;
    at = found;
  }
}

TEST(Prompt, SaysWhatIsToBeWritten) {
  const auto prompt = [](Tier answer) {
    return contrastive_prompt(rms_norm(), {{"slow();\n", 0.5}}, {PromptStyle::kFull, answer});
  };
  for (const char* part : {"a host function `forward`", "```cuda\nslow();", "opens with ```cuda",
                           "No threads, processes, files or network", "def forward(x: Tensor"})
    EXPECT_NE(prompt(Tier::kExtension).find(part), std::string::npos) << part;
  for (const char* part : {"class ModelNew(torch.nn.Module)", "```python\nslow();", "opens with ```python",
                           "is made without arguments", "No threads, processes"})
    EXPECT_NE(prompt(Tier::kPython).find(part), std::string::npos) << part;
  for (const Tier other : {Tier::kExtension, Tier::kPython})
    EXPECT_EQ(prompt(other).find("plan:"), std::string::npos);
  EXPECT_NE(sft_prompt(rms_norm(), {PromptStyle::kFull, Tier::kPython}).find("write a Python module"),
            std::string::npos);
}

// KernelBench's form: who writes a module is shown one.
TEST(Prompt, AModuleIsShownToWhoAnswersWithOne) {
  task::Task task = rms_norm();
  task.module = "import torch\nclass Model(torch.nn.Module):\n  pass\n";
  for (const PromptStyle style : {PromptStyle::kFull, PromptStyle::kCompact}) {
    EXPECT_NE(sft_prompt(task, {style, Tier::kPython}).find("class Model(torch"), std::string::npos);
    EXPECT_EQ(sft_prompt(task, {style, Tier::kPython}).find("def forward(x: Tensor"), std::string::npos);
    EXPECT_EQ(sft_prompt(task, {style, Tier::kExtension}).find("class Model(torch"), std::string::npos);
  }
  EXPECT_NE(sft_prompt(task, {PromptStyle::kFull, Tier::kPython}).find("with the arguments of `Model`"),
            std::string::npos);
}

TEST(Prompt, UnknownStyleIsAUserError) {
  try {
    parse_prompt_style("short");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "unknown prompt style `short` (full or compact)");
    EXPECT_EQ(e.exit_code(), kExitUsage);
  }
}

struct ExtractCase {
  const char* completion;
  PromptForm form;
  std::optional<std::string> source;
};

TEST(ExtractSource, TextCases) {
  const ExtractCase cases[] = {
      {"a\nb\n", PromptStyle::kCompact, "a\nb\n"},
      {"a\nb \n\n", PromptStyle::kCompact, "a\nb\n"},
      {"a", PromptStyle::kCompact, "a\n"},
      {" \n", PromptStyle::kCompact, std::nullopt},
      {"", PromptStyle::kCompact, std::nullopt},
      {"Analysis.\n```cuda\nk();\n```\n", PromptStyle::kFull, "k();\n"},
      {"```cpp\nfirst\n```\ntext\n```cuda\nsecond\n```", PromptStyle::kFull, "second\n"},
      {"```cuda\nk();\n```\n```python\nprint()\n```\n", PromptStyle::kFull, "k();\n"},
      {"```\nno language\n```\n", PromptStyle::kFull, std::nullopt},
      {"```cuda\nnever closed\n", PromptStyle::kFull, std::nullopt},
      {"```cuda\n```\n", PromptStyle::kFull, std::nullopt},
      {"no fence", PromptStyle::kFull, std::nullopt},
      {"```cuda\nk();\n```\n```python\nprint()\n```\n", {PromptStyle::kFull, Tier::kPython}, "print()\n"},
      {"```py\nprint()\n```\n", {PromptStyle::kFull, Tier::kPython}, "print()\n"},
      {"```cuda\nk();\n```\n", {PromptStyle::kFull, Tier::kPython}, std::nullopt},
      {"```cpp\nk();\n```\n", {PromptStyle::kFull, Tier::kExtension}, "k();\n"},
      {"print()", {PromptStyle::kCompact, Tier::kPython}, "print()\n"},
  };
  for (const ExtractCase& c : cases)
    EXPECT_EQ(extract_source(c.completion, c.form), c.source) << c.completion;
}

TEST(ExtractSource, UndoesCompletionOf) {
  for (const PromptStyle style : {PromptStyle::kFull, PromptStyle::kCompact})
    for (const Tier answer : {Tier::kPlan, Tier::kExtension, Tier::kPython})
      EXPECT_EQ(extract_source(completion_of("// plan: launch k<<<1, 1>>>()\nk\n", {style, answer}),
                               {style, answer}),
                "// plan: launch k<<<1, 1>>>()\nk\n");
}

Attempt right_attempt() {
  Attempt attempt{"fast();", {}, false};
  Measurement& m = attempt.measurement;
  m.verdict = Verdict::kOk;
  m.baseline = "eager";
  m.speedup = m.speedup_rounded = 1.5;
  m.rounds = 35;
  m.candidate_ns = 2000;
  m.baseline_ns = 3000;
  m.registers = 40;
  return attempt;
}

Attempt wrong_attempt() {
  Attempt attempt{"slow();\n\n", {}, true};
  attempt.measurement.verdict = Verdict::kWrongOutput;
  attempt.measurement.detail = "out[3]: 1 where 2 was expected";
  return attempt;
}

const std::string kCompactReference =
    "Reference:\n"
    "x[M,N] i:int64[2 * N] eps -> out[M,N]\n"
    "def forward(x: Tensor, i: Tensor, eps: float) -> Tensor:\n"
    "  return x * eps\n";

std::string refinement(const Attempt& attempt, PromptForm form, const HackQuotes& quotes = {}) {
  return refinement_prompts(rms_norm(), attempt, form, quotes).front();
}

TEST(Refinement, CompactOfARightAndOfAWrongProgram) {
  EXPECT_EQ(refinement_prompts(rms_norm(), right_attempt(), PromptStyle::kCompact),
            (std::vector<std::string>{"Make it faster.\n" + kCompactReference +
                                          "Earlier, 1.50x:\n"
                                          "fast();\n"
                                          "| 2000 ns a call, eager takes 3000 ns\n"
                                          "| 40 registers a thread\n"
                                          "Answer: code only.\n"
                                          "Rules: same results, no caching.\n"
                                          "Code:\n",
                                      sft_prompt(rms_norm(), PromptStyle::kCompact)}));
  EXPECT_EQ(refinement(wrong_attempt(), PromptStyle::kCompact),
            "Make it right.\n" + kCompactReference +
                "Earlier, wrong_output:\n"
                "slow();\n"
                "| out[3]: 1 where 2 was expected\n"
                "| the answer was cut off at the longest that is allowed\n"
                "Answer: code only.\n"
                "Rules: same results, no caching.\n"
                "Code:\n");
}

TEST(Refinement, ARightProgramWithoutAScoreIsToBeFasterAllTheSame) {
  Attempt attempt = right_attempt();
  attempt.measurement.verdict = Verdict::kUnstable;
  attempt.measurement.detail = "the variance between buckets is 0.1, over 0.01";
  const std::string prompt = refinement(attempt, PromptStyle::kCompact);
  EXPECT_TRUE(prompt.starts_with("Make it faster.\n")) << prompt;
  EXPECT_NE(prompt.find("Earlier, unstable:\nfast();\n| the variance between buckets is 0.1"),
            std::string::npos);
}

TEST(Refinement, FullHasProgramVerdictFormAndRules) {
  const auto has = [](const std::string& prompt, const char* part) {
    EXPECT_NE(prompt.find(part), std::string::npos) << part << "in\n" << prompt;
  };
  const std::string right = refinement(right_attempt(), PromptStyle::kFull);
  has(right, "Your program is right. Make it faster.\n\n## Reference\n");
  has(right, "## Your program\n\n```cuda\nfast();\n```\n\n");
  has(right,
      "## What became of it\n\nIts score is 1.50: the reference's time divided by its own.\n\n"
      "    2000 ns a call, eager takes 3000 ns\n    40 registers a thread\n\n## Form of the program\n");
  has(right, "## Requirements and restrictions\n");
  has(right,
      "\nSay in short what limits it and what you change, then answer with the whole program in one fence "
      "that opens with ```cuda.\n");

  const std::string wrong = refinement(wrong_attempt(), PromptStyle::kFull);
  has(wrong, "was not accepted. Find out why, and mend it.\n");
  has(wrong, "```cuda\nslow();\n```\n");
  has(wrong, "Verdict: wrong_output.\n\n    out[3]: 1 where 2 was expected\n");
  has(wrong, "Say in short what was wrong, then");

  Attempt empty = wrong_attempt();
  empty.source.clear();
  has(refinement(empty, PromptStyle::kFull), "## Your program\n\nYour answer held no program.\n");
  has(refinement(right_attempt(), {PromptStyle::kFull, Tier::kPython}), "```python\nfast();\n```");
}

TEST(Refinement, QuotesHacksWhereThereIsRoom) {
  const HackQuote quote{"cached_result", false, "it kept its answers", {}};
  const std::string prompt = refinement(right_attempt(), PromptStyle::kCompact, {{quote}, 100000});
  EXPECT_NE(prompt.find("Found out, scores 0: cached_result: it kept its answers\n"), std::string::npos);
  EXPECT_EQ(refinement(right_attempt(), PromptStyle::kCompact, {{quote}, 10}),
            refinement(right_attempt(), PromptStyle::kCompact));
}

}  // namespace
}  // namespace warpsmith::method
