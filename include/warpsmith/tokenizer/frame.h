// What stands around a prompt and behind an answer, so that a model of a Hugging Face folder sees the form
// that it was taught: its chat template, rendered once, in plain text.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/tokenizer/byte_pairs.h"

namespace warpsmith::tokenizer {

class Pretrained;

struct Frame {
  std::string before, behind;  // of a prompt
  bool trims = false;          // the template takes the blanks off both ends of a prompt
  Token end = 0;               // behind an answer that is learned from
  std::vector<Token> stops;    // each of them ends an answer that is sampled; `end` is one
  friend bool operator==(const Frame&, const Frame&) = default;
};
Json to_json(const Frame& frame);
// Throws Error where it is damaged.
Frame frame_from_json(const Json& json);

// Renders a chat template. Asked {"template", "names": {"bos_token": …}, "chats": [{"messages", "prompt":
// whether the beginning of an answer is added}, …]}, it answers [{"text"} or {"refused"}, …]. Throws Error
// where it cannot.
using RenderChats = std::function<Json(const Json& question)>;

struct FolderFrame {
  Frame frame;
  std::vector<std::string> notes;  // what the template does not allow, or what is missing
};
// Of the folder with that tokenizer: chat_template.jinja, or `chat_template` of tokenizer_config.json; the
// tokens that end an answer by generation_config.json, config.json and the template. Without a template a
// prompt stands behind what the tokenizer puts in front of a text, and ends with a newline. Throws Error
// (exit code 2) that names the file.
FolderFrame frame_of_folder(const std::filesystem::path& folder, const Pretrained& tokenizer,
                            const RenderChats& render);

}  // namespace warpsmith::tokenizer
