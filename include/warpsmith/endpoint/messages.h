// What is asked of a server that speaks OpenAI's protocol, and what it answers: as values and as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/endpoint/ledger.h"

namespace warpsmith::endpoint {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string text;
};

struct Request {
  std::string id;                 // the caller's; it is not sent
  std::vector<Message> messages;  // a chat; empty: `prompt` is continued
  std::string prompt;
  int samples = 1;
  int max_tokens = 1024;
  double temperature = 1, top_p = 1;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  bool log_probabilities = false;  // of the tokens that were drawn; a server may have none
};

struct Choice {
  std::string text;
  std::string finish;                     // "stop", "length", or what else the server says
  std::vector<double> log_probabilities;  // empty: the server gave none
};

struct Answer {
  std::string id;  // of its request
  int first = 0;   // number of its first choice among the request's samples
  std::vector<Choice> choices;
  Tokens used;          // as the server counts them; where it does not, the most that it may have been
  bool counted = true;  // by the server
  std::string model;    // as it names itself
  int tries = 1;
  double seconds = 0;  // of the last try
};

// "/chat/completions" or "/completions", below the server's URL.
std::string_view path_of(const Request& request);
// Without a stream. `samples`: how many of them, from number `first` on: each number has a seed of its own.
Json body_of(const Request& request, const std::string& model, int first, int samples);
// The most that so many samples may take: no tokenizer makes more tokens than a text has bytes, and a chat
// template adds some to each message.
Tokens most_of(const Request& request, int samples);
// Reads the body of an answer with status 200. Throws Error with what is wrong: no JSON, no choices, a choice
// without text. `most`: most_of(), where the server does not count.
Answer answer_from(std::string_view body, const Tokens& most);
// What a body says of an error, on one line and short: the server's own words, where it is JSON of the usual
// form.
std::string error_text(std::string_view body);

}  // namespace warpsmith::endpoint
