#include "exported_tokenizer.h"

#include <array>
#include <set>

#include "warpsmith/tokenizer/byte_pairs.h"

namespace warpsmith::model {

namespace {

constexpr std::array<const char*, kFirstByte> kSpecial = {"<pad>", "<bos>", "<eos>", "<prompt>", "<answer>"};

// split_pieces() as a regular expression over the characters that stand for bytes. A run of newlines and the
// indent behind it have 64 bytes together, which takes a case for each number of newlines.
std::string pieces_pattern() {
  const std::array<std::string, 256> shown = tokenizer::characters_of_bytes();
  const std::string newlines = shown['\n'] + shown['\r'], blanks = shown[' '] + shown['\t'];
  std::string pattern;
  for (int n = static_cast<int>(kLongestPiece); n > 0; --n)
    pattern += "[" + newlines + "]{" + std::to_string(n) + "}[" + blanks + "]{0," +
               std::to_string(static_cast<int>(kLongestPiece) - n) + "}|";
  const std::string longest = std::to_string(kLongestPiece), ends = ",;()\\[{",
                    inside = "[^0-9" + newlines + ends + "]";
  return pattern + "[0-9]{1," + longest + "}|" + inside + "{0," + std::to_string(kLongestPiece - 1) + "}[" +
         ends + "]|" + inside + "{1," + longest + "}";
}

Json byte_level(bool cuts) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", cuts}};
}

}  // namespace

std::string hugging_face_tokenizer(const std::vector<std::pair<Token, Token>>& merges,
                                   const std::vector<std::string>& bytes) {
  const std::array<std::string, 256> shown = tokenizer::characters_of_bytes();
  std::vector<std::string> names;
  for (const std::string& one : bytes) {
    std::string name;
    for (const char c : one) name += shown[static_cast<unsigned char>(c)];
    names.push_back(std::move(name));
  }
  Json added = Json::array(), vocabulary = Json::object(), pairs = Json::array();
  for (std::size_t id = 0; id < kSpecial.size(); ++id) {
    names[id] = kSpecial[id];
    added.push_back({{"id", id},
                     {"content", kSpecial[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  if (std::set<std::string>(names.begin(), names.end()).size() != names.size()) return "";
  for (std::size_t id = 0; id < names.size(); ++id) vocabulary[names[id]] = id;
  for (const auto& [a, b] : merges)
    pairs.push_back({names[static_cast<std::size_t>(a)], names[static_cast<std::size_t>(b)]});
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pieces_pattern()}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return Json{{"version", "1.0"},
              {"truncation", nullptr},
              {"padding", nullptr},
              {"added_tokens", added},
              {"normalizer", nullptr},
              {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {byte_level(false), split}}}},
              {"post_processor", nullptr},
              {"decoder", byte_level(true)},
              {"model",
               {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", false},
                {"vocab", vocabulary},
                {"merges", pairs}}}}
      .dump();
}

Json hugging_face_tokenizer_config(std::int64_t context) {
  return {{"tokenizer_class", "PreTrainedTokenizerFast"},
          {"bos_token", kSpecial[kBos]},
          {"eos_token", kSpecial[kEos]},
          {"pad_token", kSpecial[kPad]},
          {"clean_up_tokenization_spaces", false},
          {"model_max_length", context},
          {"chat_template",
           "<bos><prompt>{% for message in messages %}{{ message['content'] }}{% endfor %}"
           "{% if add_generation_prompt %}<answer>{% endif %}"}};
}

Json hugging_face_generation_config() {
  return {{"bos_token_id", kBos}, {"eos_token_id", kEos}, {"pad_token_id", kPad}, {"do_sample", true}};
}

}  // namespace warpsmith::model
