#include "warpsmith/tokenizer/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "warpsmith/base/error.h"
#include "warpsmith/base/paths.h"
#include "warpsmith/base/untrusted.h"
#include "warpsmith/tokenizer/pretrained.h"

namespace warpsmith::tokenizer {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr std::uint64_t kMostBytes = 64u << 20;

// An object; nothing where the file is not there.
Json read_object(const fs::path& file) {
  if (!path_exists(file)) return Json::object();
  try {
    Json json = parse_json(read_file_within(file, kMostBytes), file.string());
    if (json.is_object()) return json;
  } catch (const Error& e) {
    throw Error(e.what(), kExitUsage);
  }
  throw Error(file.string() + ": an object was expected", kExitUsage);
}

// Special tokens are written as strings or as {"content": …}.
std::optional<std::string> content_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  const Json& value = found->is_object() ? found->value("content", Json()) : *found;
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

struct Template {
  std::string text, file;
};

std::optional<Template> read_template(const fs::path& folder, const Json& config) {
  const fs::path alone = folder / "chat_template.jinja";
  if (path_exists(alone)) return Template{read_file_within(alone, kMostBytes), alone.string()};
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  const std::string file = (folder / kTokenizerConfig).string();
  if (found->is_string()) return Template{found->get<std::string>(), file};
  if (found->is_array())
    for (const Json& one : *found)
      if (one.is_object() && one.value("name", Json()) == "default" && content_of(one, "template"))
        return Template{*content_of(one, "template"), file};
  throw Error(file + ": chat_template: it is neither a text nor a list with one that is named `default`",
              kExitUsage);
}

void add_stop(std::vector<Token>& stops, Token token) {
  if (std::find(stops.begin(), stops.end(), token) == stops.end()) stops.push_back(token);
}

// `eos_token_id`: a number or a list of them.
void read_stops(const fs::path& file, const Pretrained& tokenizer, std::vector<Token>& stops) {
  const Json config = read_object(file);
  const auto found = config.find("eos_token_id");
  if (found == config.end() || found->is_null()) return;
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= tokenizer.size())
      throw Error(fmt::format("{}: eos_token_id: {} is no token of tokenizer.json", file.string(), id.dump()),
                  kExitUsage);
    add_stop(stops, id.get<Token>());
  }
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++count;
  return count;
}

// Words that no template has.
const std::string kUser = "WARPSMITH USER 7f3a", kAnswer = "WARPSMITH ANSWER 91c5",
                  kSystem = "WARPSMITH SYSTEM 40de";

// The template's part of a frame; returns what stands behind an answer.
std::string render_frame(const Template& of, const Json& names, const RenderChats& render, FolderFrame& out) {
  const auto message = [](const char* role, const std::string& content) {
    return Json{{"role", role}, {"content", content}};
  };
  const Json user = message("user", kUser);
  const Json answers = render({{"template", of.text},
                               {"names", names},
                               {"chats",
                                {{{"messages", {user}}, {"prompt", true}},
                                 {{"messages", {message("user", "  " + kUser + "  ")}}, {"prompt", true}},
                                 {{"messages", {user, message("assistant", kAnswer)}}, {"prompt", false}},
                                 {{"messages", {message("system", kSystem), user}}, {"prompt", true}}}}});
  const auto text_of = [&](std::size_t i) {
    const Json& one = answers.at(i);
    if (one.contains("refused"))
      throw Error(fmt::format("{}: the chat template cannot be rendered: {}", of.file,
                              one["refused"].get<std::string>()),
                  kExitUsage);
    return one.at("text").get<std::string>();
  };
  const std::string prompt = text_of(0);
  if (const std::size_t count = count_of(prompt, kUser); count != 1)
    throw Error(fmt::format("{}: the chat template writes the user's text {} times; once is supported",
                            of.file, count),
                kExitUsage);
  const std::size_t at = prompt.find(kUser);
  out.frame.before = prompt.substr(0, at);
  out.frame.behind = prompt.substr(at + kUser.size());
  out.frame.trims = text_of(1).find("  " + kUser + "  ") == std::string::npos;
  if (out.frame.trims) out.notes.push_back("the chat template takes the blanks off both ends of a prompt");
  const Json& system = answers.at(3);
  if (system.contains("refused") || system.at("text").get<std::string>().find(kSystem) == std::string::npos)
    out.notes.push_back("the chat template has no system role");
  const std::string answered = text_of(2);
  const std::size_t answer = answered.find(kAnswer);
  if (answer == std::string::npos)
    throw Error(of.file + ": the chat template leaves an assistant's answer out", kExitUsage);
  return answered.substr(answer + kAnswer.size());
}

// Of a token that is in no text.
bool is_special(const Pretrained& tokenizer, Token token) {
  return tokenizer.decode(std::vector<Token>{token}, false).empty() &&
         !tokenizer.decode(std::vector<Token>{token}, true).empty();
}

}  // namespace

Json to_json(const Frame& frame) {
  return {{"before", frame.before},
          {"behind", frame.behind},
          {"trims", frame.trims},
          {"end", frame.end},
          {"stops", frame.stops}};
}

Frame frame_from_json(const Json& json) {
  constexpr const char* kWhat = "frame of prompts";
  Frame frame;
  frame.before = json_at<std::string>(json, "before", kWhat);
  frame.behind = json_at<std::string>(json, "behind", kWhat);
  frame.trims = json_at<bool>(json, "trims", kWhat);
  frame.end = json_at<Token>(json, "end", kWhat);
  frame.stops = json_at<std::vector<Token>>(json, "stops", kWhat);
  return frame;
}

FolderFrame frame_of_folder(const fs::path& folder, const Pretrained& tokenizer, const RenderChats& render) {
  const Json config = read_object(folder / kTokenizerConfig);
  const Json map = read_object(folder / "special_tokens_map.json");
  Json names = Json::object();
  for (const char* key : {"bos_token", "eos_token", "pad_token", "unk_token"}) {
    std::optional<std::string> content = content_of(config, key);
    if (!content) content = content_of(map, key);
    if (content) names[key] = *content;
  }
  FolderFrame out;
  Frame& frame = out.frame;
  std::optional<Token> end;
  if (const std::optional<Template> text = read_template(folder, config)) {
    const std::string behind = render_frame(*text, names, render, out);
    const std::vector<Token> tokens = tokenizer.encode(behind);
    if (!tokens.empty() && is_special(tokenizer, tokens.front())) end = tokens.front();
  } else {
    out.notes.push_back("the folder has no chat template: prompts stand there as they are");
    frame.before = tokenizer.decode(tokenizer.before());
    frame.behind = "\n";
  }
  if (end) frame.stops.push_back(*end);
  for (const char* file : {"generation_config.json", "config.json"})
    read_stops(folder / file, tokenizer, frame.stops);
  if (names.contains("eos_token"))
    if (const auto token = tokenizer.find(names["eos_token"].get<std::string>()))
      add_stop(frame.stops, *token);
  if (frame.stops.empty())
    throw Error(
        folder.string() +
            ": nothing says which token ends an answer: neither eos_token_id in generation_config.json "
            "and config.json, nor eos_token in tokenizer_config.json, nor the chat template",
        kExitUsage);
  frame.end = frame.stops.front();
  return out;
}

}  // namespace warpsmith::tokenizer
