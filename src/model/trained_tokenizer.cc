#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <unordered_set>

#include "coding.h"
#include "exported_tokenizer.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/json.h"

namespace warpsmith::model {

namespace {

constexpr std::string_view kTokenizerSchema = "warpsmith.tokenizer/1";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_newline(char c) { return c == '\n' || c == '\r'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool ends_phrase(char c) { return std::string_view(",;()[{").find(c) != std::string_view::npos; }

std::uint64_t pair_key(Token a, Token b) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 | static_cast<std::uint32_t>(b);
}

// Pair counts over distinct pieces, kept up to date while pairs are merged.
class MergeLearner {
 public:
  explicit MergeLearner(const std::map<std::string_view, std::int64_t>& pieces) {
    for (const auto& [piece, count] : pieces) {
      std::vector<Token> word;
      for (const char c : piece) word.push_back(kFirstByte + static_cast<unsigned char>(c));
      words_.push_back(std::move(word));
      counts_.push_back(count);
      count_pairs(words_.size() - 1, +1);
    }
    for (const auto& [key, count] : pair_counts_) queue_.push({count, key});
  }

  // The most frequent pair; false where none occurs twice.
  bool best(Token& a, Token& b) {
    while (!queue_.empty()) {
      const auto [count, key] = queue_.top();
      const auto now = pair_counts_.find(key);
      if (now != pair_counts_.end() && now->second == count && count >= 2) {
        a = static_cast<Token>(key >> 32);
        b = static_cast<Token>(key & 0xffffffffu);
        return true;
      }
      queue_.pop();  // an outdated count: the present one was pushed when it changed
    }
    return false;
  }

  void merge(Token a, Token b, Token into) {
    const std::unordered_set<std::size_t> words = std::move(where_[pair_key(a, b)]);
    changed_.clear();
    for (const std::size_t w : words) {
      count_pairs(w, -1);
      std::vector<Token>& word = words_[w];
      std::size_t out = 0;
      for (std::size_t i = 0; i < word.size(); ++i, ++out) {
        const bool here = i + 1 < word.size() && word[i] == a && word[i + 1] == b;
        word[out] = here ? into : word[i];
        if (here) ++i;
      }
      word.resize(out);
      count_pairs(w, +1);
    }
    for (const std::uint64_t key : changed_)
      if (const std::int64_t count = pair_counts_[key]; count > 0) queue_.push({count, key});
  }

 private:
  struct Entry {
    std::int64_t count;
    std::uint64_t key;
    bool operator<(const Entry& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void count_pairs(std::size_t w, int sign) {
    const std::vector<Token>& word = words_[w];
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const std::uint64_t key = pair_key(word[i], word[i + 1]);
      pair_counts_[key] += sign * counts_[w];
      if (sign > 0) where_[key].insert(w);
      changed_.insert(key);
    }
  }

  std::vector<std::vector<Token>> words_;
  std::vector<std::int64_t> counts_;
  std::unordered_map<std::uint64_t, std::int64_t> pair_counts_;
  std::unordered_map<std::uint64_t, std::unordered_set<std::size_t>> where_;
  std::unordered_set<std::uint64_t> changed_;
  std::priority_queue<Entry> queue_;
};

class TrainedCoding final : public Tokenizer::Coding {
 public:
  explicit TrainedCoding(std::vector<std::pair<Token, Token>> merges) : merges_(std::move(merges)) {
    bytes_.resize(kFirstByte);
    std::array<Token, 256> of_bytes{};
    for (std::size_t c = 0; c < of_bytes.size(); ++c) {
      of_bytes[c] = static_cast<Token>(bytes_.size());
      bytes_.emplace_back(1, static_cast<char>(c));
    }
    std::unordered_set<std::uint64_t> known;
    std::vector<tokenizer::Merge> all;
    for (const auto& [a, b] : merges_) {
      const auto limit = static_cast<Token>(bytes_.size());
      if (a < kFirstByte || b < kFirstByte || a >= limit || b >= limit)
        throw Error("tokenizer: merge " + std::to_string(limit - kFirstMerge) + " is of unknown tokens");
      if (!known.insert(pair_key(a, b)).second)
        throw Error("tokenizer: merge " + std::to_string(limit - kFirstMerge) + " occurs twice");
      all.push_back({a, b, limit});
      bytes_.push_back(bytes_[static_cast<std::size_t>(a)] + bytes_[static_cast<std::size_t>(b)]);
    }
    pairs_ = tokenizer::BytePairs(of_bytes, all);
  }

  std::string to_json() const override {
    Json merges = Json::array();
    for (const auto& [a, b] : merges_) merges.push_back({a, b});
    return Json{{"schema", kTokenizerSchema}, {"merges", merges}}.dump();
  }
  std::string to_hugging_face() const override { return hugging_face_tokenizer(merges_, bytes_); }
  int size() const override { return kFirstMerge + static_cast<int>(merges_.size()); }

  std::vector<Token> encode(std::string_view text) const override {
    std::vector<Token> out;
    const auto encode_piece = [&](std::string_view piece, std::vector<Token>& to) {
      pairs_.encode(piece, to);
    };
    tokenizer::encode_pieces(split_pieces(text), encode_piece, out);
    return out;
  }

  std::string decode(std::span<const Token> tokens) const override {
    std::string text;
    for (const Token token : tokens)
      if (token >= kFirstByte && token < size()) text += bytes_[static_cast<std::size_t>(token)];
    return text;
  }

  std::vector<Token> encode_prompt(std::string_view prompt) const override {
    std::vector<Token> tokens = {kBos, kPrompt};
    const std::vector<Token> body = encode(prompt);
    tokens.insert(tokens.end(), body.begin(), body.end());
    tokens.push_back(kAnswer);
    return tokens;
  }
  Token end() const override { return kEos; }
  const std::vector<Token>& stops() const override { return stops_; }

 private:
  std::vector<std::pair<Token, Token>> merges_;
  tokenizer::BytePairs pairs_;
  std::vector<std::string> bytes_;  // of each token
  std::vector<Token> stops_ = {kEos};
};

}  // namespace

std::vector<std::string_view> split_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const auto run = [&](auto&& belongs) {
      while (end < text.size() && end - begin < kLongestPiece && belongs(text[end])) ++end;
    };
    if (is_newline(text[begin])) {
      run(is_newline);
      run(is_blank);
    } else if (is_digit(text[begin])) {
      run(is_digit);
    } else {
      run([&](char c) {
        return !is_digit(c) && !is_newline(c) && (end == begin || !ends_phrase(text[end - 1]));
      });
    }
    pieces.push_back(text.substr(begin, end - begin));
  }
  return pieces;
}

Tokenizer Tokenizer::train(std::span<const std::string> texts, int vocabulary) {
  if (vocabulary < kFirstMerge)
    throw Error("a vocabulary of " + std::to_string(vocabulary) + " tokens: at least " +
                    std::to_string(kFirstMerge) + " are needed (256 bytes and the special tokens)",
                kExitUsage);
  std::map<std::string_view, std::int64_t> pieces;
  for (const std::string& text : texts)
    for (const std::string_view piece : split_pieces(text)) ++pieces[piece];
  MergeLearner learner(pieces);
  std::vector<std::pair<Token, Token>> merges;
  Token a = 0, b = 0;
  for (Token next = kFirstMerge; next < vocabulary && learner.best(a, b); ++next) {
    merges.emplace_back(a, b);
    learner.merge(a, b, next);
  }
  return Tokenizer(std::make_shared<TrainedCoding>(std::move(merges)));
}

Tokenizer Tokenizer::from_json(std::string_view text) {
  const Json json = parse_json(text, "tokenizer");
  if (const auto schema = json_at<std::string>(json, "schema", "tokenizer"); schema != kTokenizerSchema)
    throw Error("tokenizer: schema " + schema + " where " + std::string(kTokenizerSchema) + " is known");
  return Tokenizer(std::make_shared<TrainedCoding>(
      json_at<std::vector<std::pair<Token, Token>>>(json, "merges", "tokenizer")));
}

}  // namespace warpsmith::model
