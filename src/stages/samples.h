// Generated samples: from the records of a `generate` job to candidates and verdicts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "jobs.h"
#include "verifier.h"
#include "warpsmith/method/prompt.h"
#include "warpsmith/records/shard.h"

namespace warpsmith::stages {

struct Sample {
  int round = 0;
  std::string item;  // prompt, of a later turn that of the first
  int number = 0;    // in its prompt
  int turn = 1;
  std::string task;
  std::string candidate;  // id
  std::string prompt;
  std::string text;    // the answer as it was sampled
  std::string folder;  // attempt folder with the token ids and log-probabilities
  Json tokens_blob, logprobs_blob;
  std::int64_t prompt_tokens = 0, tokens = 0;
  bool finished = true;  // ended by itself, not by max_tokens
  int island = 0;
  int behind = 0;  // updates that the newest model had and its policy had not, when its round began
  // contrastive: reward; what it is worth with later turns' (method::discounted), where there are several;
  // advantage in its group
  std::optional<double> reward, discounted, advantage;
  std::string id() const;  // unique in its round
};

struct Generated {
  std::vector<Sample> samples;           // in the order of the prompts
  std::vector<Candidate> candidates;     // those that want a verdict, with repetitions
  std::uint64_t exemplars_left_out = 0;  // of prompts that would not have fitted the model's context
  std::uint64_t lost = 0;                // samples that went with a lost shard
  std::uint64_t refused = 0;             // samples that a server did not give
  Spent spent;                           // of a server
};

// The program of an answer, to those that want a verdict; an answer without code gets its verdict at once.
// Returns the candidate's id.
std::string add_answer(const std::string& text, method::PromptForm form, const std::string& task,
                       Origin origin, Verifier& verifier, std::vector<Candidate>& candidates);

// Samples of `result` for `prompts`, which were asked for in that order, in this turn of the round. Answers
// without code get their verdict at once.
Generated read_generated(const workflow::StageSpec& spec, const std::vector<Prompt>& prompts, int turn,
                         const JobResult& result, Verifier& verifier);

// What a record of a server's answers says that they took; nothing of one of ours.
Spent spent_of(const Json& record);
// {"model", "prompt_tokens", "completion_tokens", "lost_tokens" (of both: their answers never came), "money"
// where there are prices, "refused" (samples)}
Json server_json(const workflow::EndpointSettings& endpoint, const Spent& spent, std::uint64_t refused);

// {"round", "item", "sample", "task", "group", "candidate", "verdict", "speedup", …} for the stage's output.
Json sample_json(const Sample& sample, const Verifier& verifier, const TaskSet& tasks);

}  // namespace warpsmith::stages
