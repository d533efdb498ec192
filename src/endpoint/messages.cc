#include "warpsmith/endpoint/messages.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/text.h"

namespace warpsmith::endpoint {

namespace {

constexpr std::uint64_t kTokensAroundAMessage = 64;
constexpr std::size_t kLongestError = 300;

bool is_chat(const Request& request) { return !request.messages.empty(); }

// A member that is an object or a list and is there; else null.
const Json& member(const Json& json, const char* key) {
  static const Json kNone;
  const auto it = json.is_object() ? json.find(key) : json.end();
  return it == json.end() ? kNone : *it;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

std::vector<double> numbers_of(const Json& list, const char* key) {
  std::vector<double> numbers;
  if (!list.is_array()) return numbers;
  for (const Json& one : list) {
    const Json& value = key == nullptr ? one : member(one, key);
    if (value.is_number()) numbers.push_back(value.get<double>());
  }
  return numbers;
}

Choice choice_from(const Json& json) {
  Choice choice;
  const Json& message = member(json, "message");
  // A chat's content is null where the model gave nothing, or only called a tool.
  const Json& text = message.is_object() ? member(message, "content") : member(json, "text");
  if (!text.is_string() && !(message.is_object() && text.is_null()))
    throw Error("a choice of the answer has no text");
  choice.text = text_of(text);
  choice.finish = text_of(member(json, "finish_reason"));
  if (choice.finish == "abort") throw Error("the server has cut an answer off (finish_reason: abort)");
  const Json& said = member(json, "logprobs");
  choice.log_probabilities = numbers_of(member(said, "content"), "logprob");
  if (choice.log_probabilities.empty())
    choice.log_probabilities = numbers_of(member(said, "token_logprobs"), nullptr);
  return choice;
}

}  // namespace

std::string_view path_of(const Request& request) {
  return is_chat(request) ? "/chat/completions" : "/completions";
}

Json body_of(const Request& request, const std::string& model, int first, int samples) {
  Json body = {{"model", model},
               {"max_tokens", request.max_tokens},
               {"temperature", request.temperature},
               {"top_p", request.top_p},
               {"stream", false}};
  if (samples > 1) body["n"] = samples;
  if (request.seed) body["seed"] = (*request.seed + static_cast<std::uint64_t>(first)) % (1ull << 31);
  if (!request.stop.empty()) body["stop"] = request.stop;
  if (!is_chat(request)) {
    body["prompt"] = request.prompt;
    if (request.log_probabilities) body["logprobs"] = 1;
    return body;
  }
  for (const Message& message : request.messages)
    body["messages"].push_back({{"role", message.role}, {"content", message.text}});
  if (request.log_probabilities) body["logprobs"] = true;
  return body;
}

Tokens most_of(const Request& request, int samples) {
  Tokens most;
  most.prompt = request.prompt.size() + kTokensAroundAMessage;
  for (const Message& message : request.messages)
    most.prompt += message.role.size() + message.text.size() + kTokensAroundAMessage;
  most.completion =
      static_cast<std::uint64_t>(std::max(0, request.max_tokens)) * static_cast<std::uint64_t>(samples);
  return most;
}

Answer answer_from(std::string_view body, const Tokens& most) {
  const Json json = parse_json(body, "the answer");
  const Json& choices = member(json, "choices");
  if (!choices.is_array() || choices.empty()) {
    const std::string said = error_text(body);
    throw Error("the answer has no choices" + (said.empty() ? "" : ": " + said));
  }
  Answer answer;
  for (const Json& choice : choices) answer.choices.push_back(choice_from(choice));
  const Json& usage = member(json, "usage");
  const Json &prompt = member(usage, "prompt_tokens"), &completion = member(usage, "completion_tokens");
  answer.counted = prompt.is_number_unsigned() && completion.is_number_unsigned();
  answer.used = answer.counted ? Tokens{prompt.get<std::uint64_t>(), completion.get<std::uint64_t>()} : most;
  answer.model = text_of(member(json, "model"));
  return answer;
}

std::string error_text(std::string_view body) {
  std::string said;
  Json json;
  try {
    json = parse_json(body, "");
  } catch (const Error&) {
    said = std::string(body.substr(0, kLongestError));
  }
  const Json& error = member(json, "error");
  if (error.is_string()) said = error.get<std::string>();
  if (error.is_object()) said = text_of(member(error, "message"));
  for (const char* key : {"message", "detail"}) {
    if (!said.empty()) break;
    const Json& value = member(json, key);
    said = value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump(-1, ' ', true);
  }
  said = printable(trim(said));
  if (said.size() > kLongestError) said = said.substr(0, kLongestError) + "…";
  return said;
}

}  // namespace warpsmith::endpoint
