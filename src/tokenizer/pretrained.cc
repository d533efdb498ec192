#include "warpsmith/tokenizer/pretrained.h"

#include <fmt/format.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "pattern.h"
#include "warpsmith/base/characters.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"
#include "warpsmith/base/untrusted.h"

namespace warpsmith::tokenizer {

namespace {

// What GPT-2 cuts text by, and a ByteLevel pre-tokenizer where it does not say otherwise.
constexpr const char* kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// A place in the file, for messages.
class At {
 public:
  At(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}
  const Json& json() const { return json_; }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error((place_.empty() ? "" : place_ + ": ") + why, kExitUsage);
  }
  At operator[](const char* key) const {
    static const Json kNull;
    if (!json_.is_object()) refuse("an object was expected");
    const auto found = json_.find(key);
    return {found == json_.end() ? kNull : *found, place_.empty() ? key : place_ + "." + key};
  }
  std::vector<At> list() const {
    if (!json_.is_array()) refuse("a list was expected");
    std::vector<At> all;
    for (std::size_t i = 0; i < json_.size(); ++i)
      all.push_back({json_[i], fmt::format("{}[{}]", place_, i)});
    return all;
  }
  bool is_null() const { return json_.is_null(); }
  std::string text() const {
    if (!json_.is_string()) refuse("a text was expected");
    return json_.get<std::string>();
  }
  bool flag(bool otherwise) const {
    if (is_null()) return otherwise;
    if (!json_.is_boolean()) refuse("true or false was expected");
    return json_.get<bool>();
  }
  Token token() const {
    if (!json_.is_number_integer() || json_.get<std::int64_t>() < 0 || json_.get<std::int64_t>() > kMostId)
      refuse(fmt::format("an id of 0 to {} was expected", kMostId));
    return json_.get<Token>();
  }
  static constexpr std::int64_t kMostId = (1 << 22) - 1;  // each id up to the largest has a place in memory

 private:
  const Json& json_;
  std::string place_;
};

class ByteCharacters {
 public:
  ByteCharacters() {
    const auto characters = characters_of_bytes();
    for (std::size_t byte = 0; byte < characters.size(); ++byte)
      bytes_.emplace(utf8_character(characters[byte], 0).code, static_cast<char>(byte));
  }
  // The bytes that `written` stands for; nothing where a character stands for none.
  std::optional<std::string> bytes_of(std::string_view written) const {
    std::string bytes;
    for (std::size_t at = 0; at < written.size();) {
      const Utf8Character c = utf8_character(written, at);
      const auto found = bytes_.find(c.code);
      if (c.bytes == 0 || found == bytes_.end()) return std::nullopt;
      bytes += found->second;
      at += c.bytes;
    }
    return bytes;
  }

 private:
  std::unordered_map<char32_t, char> bytes_;
};

bool is_white_space(char32_t c) { return ::u_isUWhiteSpace(static_cast<UChar32>(c)) != 0; }
bool is_word(char32_t c) {
  return c == '_' || ::u_isalnum(static_cast<UChar32>(c)) != 0 ||
         (U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_M_MASK) != 0;
}

char32_t character_before(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return utf8_character(text, at).code;
}

struct AddedToken {
  std::string content;
  Token id = 0;
  bool special = false, single_word = false, lstrip = false, rstrip = false;
};

// A stretch of text: plain, or an added token.
struct Stretch {
  std::string_view text;
  std::optional<Token> token;
};

// Finds added tokens in a text: the leftmost, and of those at one place the longest.
class AddedTokens {
 public:
  void add(AddedToken token) {
    if (token.content.empty()) return;
    by_first_[static_cast<unsigned char>(token.content[0])].push_back(std::move(token));
  }
  void sort() {
    for (std::vector<AddedToken>& list : by_first_)
      std::stable_sort(list.begin(), list.end(), [](const AddedToken& a, const AddedToken& b) {
        return a.content.size() > b.content.size();
      });
  }

  void split(std::string_view text, std::vector<Stretch>& out) const {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const AddedToken* token = longest_at(text, at);
      if (token == nullptr) {
        ++at;
        continue;
      }
      std::size_t begin = at, end = at + token->content.size();
      at = end;
      if (token->single_word && !stands_alone(text, begin, end)) continue;
      if (token->lstrip)
        while (begin > done && is_white_space(character_before(text, begin)))
          for (--begin; begin > done && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80;) --begin;
      if (token->rstrip)
        while (end < text.size()) {
          const Utf8Character c = utf8_character(text, end);
          if (!is_white_space(c.code)) break;
          end += c.bytes;
        }
      if (begin > done) out.push_back({text.substr(done, begin - done), std::nullopt});
      out.push_back({text.substr(begin, end - begin), token->id});
      at = done = end;
    }
    if (done < text.size()) out.push_back({text.substr(done), std::nullopt});
  }

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at) const {
    for (const AddedToken& token : by_first_[static_cast<unsigned char>(text[at])])
      if (text.substr(at).starts_with(token.content)) return &token;
    return nullptr;
  }
  static bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
    return (begin == 0 || !is_word(character_before(text, begin))) &&
           (end == text.size() || !is_word(utf8_character(text, end).code));
  }

  std::array<std::vector<AddedToken>, 256> by_first_;
};

std::string to_nfc(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* nfc = icu::Normalizer2::getNFCInstance(error);
  if (U_FAILURE(error)) throw Error(std::string("ICU has no NFC: ") + ::u_errorName(error));
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  nfc->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
                     error);
  if (U_FAILURE(error)) throw Error(std::string("a text cannot be normalised: ") + ::u_errorName(error));
  return out;
}

}  // namespace

struct Pretrained::State {
  bool nfc = false, ignore_merges = false;
  std::vector<Pattern> patterns;  // each cuts what those before it left
  std::optional<BytePairs> pairs;
  AddedTokens raw, normalized;                     // that are looked for before and behind the normaliser
  std::vector<std::string> bytes;                  // of each token, by its id
  std::vector<bool> special;                       // by id
  std::unordered_map<std::string, Token> written;  // as the file writes it
  std::unordered_map<std::string, Token> whole;    // by its bytes, where merges may be ignored
  std::vector<Token> before, behind;

  void read(const Json& json) {
    const At file(json, "");
    read_vocabulary(file["model"]);
    read_added(file["added_tokens"]);
    if (!file["normalizer"].is_null()) read_normalizer(file["normalizer"]);
    if (file["pre_tokenizer"].is_null())
      file["pre_tokenizer"].refuse("there is none, and a byte-level tokenizer wants `ByteLevel`");
    if (!read_pre_tokenizer(file["pre_tokenizer"]))
      file["pre_tokenizer"].refuse("`ByteLevel` is not among them, and no other scheme is supported");
    if (!file["post_processor"].is_null()) read_post_processor(file["post_processor"]);
  }

  void read_vocabulary(const At& model) {
    const std::string type = model["type"].is_null() ? "BPE" : model["type"].text();
    if (type != "BPE") model["type"].refuse(fmt::format("`{}` is not supported, only BPE on bytes is", type));
    for (const char* key : {"byte_fallback", "fuse_unk"})
      if (model[key].flag(false)) model[key].refuse("it is not supported, only BPE on bytes is");
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
      if (const At one = model[key]; !one.is_null() && one.json() != "") one.refuse("it is not supported");
    ignore_merges = model["ignore_merges"].flag(false);
    const At vocab = model["vocab"];
    if (!vocab.json().is_object()) vocab.refuse("an object was expected");
    const ByteCharacters characters;
    for (const auto& [word, id] : vocab.json().items()) {
      const Token token = At(id, fmt::format("model.vocab[{}]", Json(word).dump())).token();
      written.emplace(word, token);
      // What stands for no bytes is an added token that is listed here as well.
      const std::optional<std::string> of_it = characters.bytes_of(word);
      set_bytes(token, of_it.value_or(word));
      if (ignore_merges && of_it) whole.emplace(*of_it, token);
    }
    // Hugging Face's own rule for bytes that the vocabulary lacks: the unknown token, else nothing.
    Token unknown = kNoToken;
    if (const At one = model["unk_token"]; !one.is_null() && one.json() != "") {
      const auto found = written.find(one.text());
      if (found == written.end()) one.refuse("it is not in model.vocab");
      unknown = found->second;
    }
    std::array<Token, 256> of_bytes{};
    const auto names = characters_of_bytes();
    for (std::size_t byte = 0; byte < names.size(); ++byte) {
      const auto found = written.find(names[byte]);
      if (found == written.end() && byte >= ' ' && byte <= '~')
        vocab.refuse(fmt::format("it has no token of `{}`", static_cast<char>(byte)));
      of_bytes[byte] = found == written.end() ? unknown : found->second;
    }
    pairs.emplace(of_bytes, read_merges(model["merges"]));
  }

  // "a b", or ["a", "b"].
  std::vector<Merge> read_merges(const At& merges) const {
    std::vector<Merge> list;
    list.reserve(merges.json().size());
    for (const At& merge : merges.list()) {
      std::string left, right;
      if (merge.json().is_string()) {
        const std::string text = merge.text();
        const std::size_t blank = text.find(' ');
        if (blank == std::string::npos || blank == 0 || blank + 1 == text.size())
          merge.refuse("two tokens with a blank between them were expected");
        left = text.substr(0, blank);
        right = text.substr(blank + 1);
      } else {
        const std::vector<At> both = merge.list();
        if (both.size() != 2) merge.refuse("two tokens were expected");
        left = both[0].text();
        right = both[1].text();
      }
      const auto token_of = [&](const std::string& word) {
        const auto found = written.find(word);
        if (found == written.end()) merge.refuse(fmt::format("the vocabulary has no token `{}`", word));
        return found->second;
      };
      list.push_back({token_of(left), token_of(right), token_of(left + right)});
    }
    return list;
  }

  void read_added(const At& added) {
    if (added.is_null()) return;
    for (const At& one : added.list()) {
      AddedToken token{.content = one["content"].text(),
                       .id = one["id"].token(),
                       .special = one["special"].flag(false),
                       .single_word = one["single_word"].flag(false),
                       .lstrip = one["lstrip"].flag(false),
                       .rstrip = one["rstrip"].flag(false)};
      set_bytes(token.id, token.content);
      special[static_cast<std::size_t>(token.id)] = token.special;
      written[token.content] = token.id;
      (one["normalized"].flag(!token.special) ? normalized : raw).add(std::move(token));
    }
    raw.sort();
    normalized.sort();
  }

  void read_normalizer(const At& normalizer) {
    const std::string type = normalizer["type"].text();
    if (type == "Sequence") {
      for (const At& one : normalizer["normalizers"].list()) read_normalizer(one);
    } else if (type == "NFC") {
      nfc = true;
    } else {
      normalizer.refuse(fmt::format("`{}` is not supported, NFC is", type));
    }
  }

  // Whether ByteLevel is there.
  bool read_pre_tokenizer(const At& one) {
    const std::string type = one["type"].text();
    if (type == "Sequence") {
      bool found = false;
      for (const At& part : one["pretokenizers"].list()) {
        if (found) part.refuse("it comes behind `ByteLevel`, which must be the last");
        found = read_pre_tokenizer(part);
      }
      return found;
    }
    if (type == "ByteLevel") {
      if (one["add_prefix_space"].flag(true)) one["add_prefix_space"].refuse("it is not supported");
      if (one["use_regex"].flag(true)) patterns.emplace_back(kGpt2Pattern);
      return true;
    }
    if (type == "Digits") {
      patterns.emplace_back(one["individual_digits"].flag(false) ? R"(\p{N})" : R"(\p{N}+)");
      return false;
    }
    if (type != "Split")
      one.refuse(fmt::format("`{}` is not supported; ByteLevel, Split, Digits and Sequence are", type));
    if (const At how = one["behavior"]; how.text() != "Isolated")
      how.refuse(fmt::format("`{}` is not supported, Isolated is", how.text()));
    if (one["invert"].flag(false)) one["invert"].refuse("it is not supported");
    const At pattern = one["pattern"];
    const bool literal = pattern["Regex"].is_null();
    const At text = pattern[literal ? "String" : "Regex"];
    try {
      patterns.emplace_back(text.text(), literal);
    } catch (const Error& e) {
      text.refuse(e.what());
    }
    return false;
  }

  void read_post_processor(const At& one) {
    const std::string type = one["type"].text();
    if (type == "ByteLevel") return;  // it changes offsets alone
    if (type == "Sequence") {
      for (const At& part : one["processors"].list()) read_post_processor(part);
      return;
    }
    if (type != "TemplateProcessing")
      one.refuse(fmt::format("`{}` is not supported; ByteLevel, TemplateProcessing and Sequence are", type));
    std::vector<Token>* side = &before;
    for (const At& part : one["single"].list()) {
      if (!part["Sequence"].is_null()) {
        side = &behind;
        continue;
      }
      const std::string name = part["SpecialToken"]["id"].text();
      for (const At& id : one["special_tokens"][name.c_str()]["ids"].list()) side->push_back(id.token());
    }
  }

  void set_bytes(Token token, std::string of_it) {
    const auto at = static_cast<std::size_t>(token);
    if (bytes.size() <= at) {
      bytes.resize(at + 1);
      special.resize(at + 1);
    }
    bytes[at] = std::move(of_it);
  }

  void encode_plain(std::string_view text, std::vector<Token>& out) const {
    std::vector<std::string_view> pieces = {text}, next;
    for (const Pattern& pattern : patterns) {
      next.clear();
      for (const std::string_view piece : pieces) pattern.split(piece, next);
      pieces.swap(next);
    }
    const auto encode_piece = [&](std::string_view piece, std::vector<Token>& to) {
      if (const auto word = ignore_merges ? whole.find(std::string(piece)) : whole.end(); word != whole.end())
        to.push_back(word->second);
      else
        pairs->encode(piece, to);
    };
    encode_pieces(pieces, encode_piece, out);
  }
};

Pretrained::Pretrained(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pretrained::Pretrained(Pretrained&&) noexcept = default;
Pretrained& Pretrained::operator=(Pretrained&&) noexcept = default;
Pretrained::~Pretrained() = default;

Pretrained Pretrained::load(const std::filesystem::path& file) {
  constexpr std::uint64_t kMostBytes = 1u << 30;
  std::string text;
  try {
    text = read_file_within(file, kMostBytes);
  } catch (const Error& e) {
    throw Error(e.what(), kExitUsage);
  }
  return from_json(text, file.string());
}

Pretrained Pretrained::from_json(std::string_view text, const std::string& name) {
  auto state = std::make_unique<State>();
  try {
    state->read(parse_json(text, name));
  } catch (const Error& e) {
    const std::string words = e.what();
    throw Error(words.starts_with(name) ? words : name + ": " + words, kExitUsage);
  }
  return Pretrained(std::move(state));
}

std::int32_t Pretrained::size() const { return static_cast<std::int32_t>(state_->bytes.size()); }
const std::vector<Token>& Pretrained::before() const { return state_->before; }
const std::vector<Token>& Pretrained::behind() const { return state_->behind; }

std::vector<Token> Pretrained::encode(std::string_view text) const {
  if (const std::size_t at = first_not_utf8(text); at != text.size())
    throw Error(fmt::format("byte {} of a text is no UTF-8", at), kExitUsage);
  std::vector<Token> out;
  std::vector<Stretch> stretches, inner;
  state_->raw.split(text, stretches);
  for (const Stretch& stretch : stretches) {
    if (stretch.token) {
      out.push_back(*stretch.token);
      continue;
    }
    const std::string in_nfc = state_->nfc ? to_nfc(stretch.text) : "";
    inner.clear();
    state_->normalized.split(state_->nfc ? std::string_view(in_nfc) : stretch.text, inner);
    for (const Stretch& part : inner) {
      if (part.token)
        out.push_back(*part.token);
      else
        state_->encode_plain(part.text, out);
    }
  }
  return out;
}

std::string Pretrained::decode(std::span<const Token> tokens, bool special) const {
  std::string text;
  for (const Token token : tokens) {
    const auto at = static_cast<std::size_t>(token);
    if (token >= 0 && at < state_->bytes.size() && (special || !state_->special[at]))
      text += state_->bytes[at];
  }
  return text;
}

std::optional<Token> Pretrained::find(std::string_view content) const {
  const auto found = state_->written.find(std::string(content));
  return found == state_->written.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace warpsmith::tokenizer
