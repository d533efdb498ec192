#include "warpsmith/tokenizer/byte_pairs.h"

#include <limits>
#include <queue>

namespace warpsmith::tokenizer {

namespace {

constexpr std::size_t kShort = 32;  // bytes: looking through all pairs is faster than a queue

std::uint64_t pair_key(Token left, Token right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

}  // namespace

BytePairs::BytePairs(const std::array<Token, 256>& bytes, std::span<const Merge> merges) : bytes_(bytes) {
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (const Merge& merge : merges)
    merges_.try_emplace(pair_key(merge.left, merge.right), Into{rank++, merge.into});
}

const BytePairs::Into* BytePairs::find(Token left, Token right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void BytePairs::encode(std::string_view piece, std::vector<Token>& out) const {
  if (piece.size() > kShort) return encode_long(piece, out);
  Token tokens[kShort];
  std::size_t count = 0;
  for (const char c : piece)
    if (const Token token = bytes_[static_cast<unsigned char>(c)]; token != kNoToken) tokens[count++] = token;
  while (count > 1) {
    std::size_t at = count;
    Into best{std::numeric_limits<std::int32_t>::max(), 0};
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (const Into* into = find(tokens[i], tokens[i + 1]); into != nullptr && into->rank < best.rank) {
        best = *into;
        at = i;
      }
    if (at == count) break;
    tokens[at] = best.token;
    for (std::size_t i = at + 1; i + 1 < count; ++i) tokens[i] = tokens[i + 1];
    --count;
  }
  out.insert(out.end(), tokens, tokens + count);
}

// A list of tokens, and a queue of the pairs in it by rank and place. A pair that has changed since it was
// queued is passed over.
void BytePairs::encode_long(std::string_view piece, std::vector<Token>& out) const {
  constexpr std::size_t kEnd = static_cast<std::size_t>(-1);
  struct Node {
    Token token;
    std::size_t before, behind;
  };
  struct Candidate {
    std::int32_t rank;
    std::size_t at;
    Token left, right, into;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<Node> nodes;
  nodes.reserve(piece.size());
  for (const char c : piece)
    if (const Token token = bytes_[static_cast<unsigned char>(c)]; token != kNoToken)
      nodes.push_back({token, nodes.empty() ? kEnd : nodes.size() - 1, nodes.size() + 1});
  if (!nodes.empty()) nodes.back().behind = kEnd;
  std::priority_queue<Candidate> queue;
  const auto add = [&](std::size_t at) {
    if (at == kEnd || nodes[at].behind == kEnd) return;
    const Token left = nodes[at].token, right = nodes[nodes[at].behind].token;
    if (const Into* into = find(left, right)) queue.push({into->rank, at, left, right, into->token});
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) add(i);
  while (!queue.empty()) {
    const Candidate next = queue.top();
    queue.pop();
    Node& node = nodes[next.at];
    if (node.token != next.left || node.behind == kEnd || nodes[node.behind].token != next.right) continue;
    Node& gone = nodes[node.behind];
    node.token = next.into;
    gone.token = kNoToken;
    node.behind = gone.behind;
    if (node.behind != kEnd) nodes[node.behind].before = next.at;
    add(node.before);
    add(next.at);
  }
  for (const Node& node : nodes)
    if (node.token != kNoToken) out.push_back(node.token);
}

std::array<std::string, 256> characters_of_bytes() {
  std::array<std::string, 256> characters;
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool plain =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    const char32_t code = plain ? byte : next++;
    characters[byte] = code < 0x80 ? std::string{static_cast<char>(code)}
                                   : std::string{static_cast<char>(0xC0 | code >> 6),
                                                 static_cast<char>(0x80 | (code & 0x3F))};
  }
  return characters;
}

}  // namespace warpsmith::tokenizer
