#include "warpsmith/method/augment.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "warpsmith/base/random.h"
#include "warpsmith/method/source_text.h"

namespace warpsmith::method {

namespace {

using Tokens = std::vector<Token>;

std::optional<int> small_integer(const std::string& text) {
  if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(text);
}

// A block as the plan writes it: one literal, or dim3 of two.
struct Block {
  int x = 0, y = 0;  // y = 0: one-dimensional
  friend bool operator==(const Block&, const Block&) = default;
};

std::string describe(const Block& b) {
  return b.y == 0 ? std::to_string(b.x) : std::to_string(b.x) + "x" + std::to_string(b.y);
}

// The words of `tokens` from `i` up to the `,` or `>>>` that ends a launch argument at depth 0; `i` is moved
// there.
std::vector<std::string> launch_argument(const Tokens& tokens, std::size_t& i) {
  std::vector<std::string> words;
  int depth = 0;
  for (; i < tokens.size() && tokens[i].plan; ++i) {
    const std::string& text = tokens[i].text;
    if (tokens[i].kind == TokenKind::kSpace) continue;
    if (depth == 0 && (text == "," || text == ">>>")) return words;
    if (text == "(" || text == "[") ++depth;
    if (text == ")" || text == "]") --depth;
    words.push_back(text);
  }
  return words;
}

// `let` names of a literal.
std::map<std::string, int> literal_lets(const Tokens& tokens) {
  std::map<std::string, int> lets;
  std::vector<std::string> line;
  const auto end_of_line = [&] {
    if (line.size() == 4 && line[0] == "let" && line[2] == "=")
      if (const auto value = small_integer(line[3])) lets[line[1]] = *value;
    line.clear();
  };
  for (const Token& t : tokens) {
    if (t.plan && t.kind != TokenKind::kSpace && t.kind != TokenKind::kComment) line.push_back(t.text);
    if (!t.plan || t.text == "\n") end_of_line();
  }
  end_of_line();
  return lets;
}

std::optional<Block> read_block(const std::vector<std::string>& words,
                                const std::map<std::string, int>& lets) {
  const auto value = [&](const std::string& word) -> std::optional<int> {
    if (const auto literal = small_integer(word)) return literal;
    const auto it = lets.find(word);
    return it == lets.end() ? std::nullopt : std::optional(it->second);
  };
  if (words.size() == 1) {
    if (const auto x = value(words[0])) return Block{*x, 0};
  } else if (words.size() == 6 && words[0] == "dim3" && words[3] == ",") {
    const auto x = value(words[2]), y = value(words[4]);
    if (x && y) return Block{*x, *y};
  }
  return std::nullopt;
}

// Distinct blocks of the plan's launches, in order.
std::vector<Block> blocks_of(const Tokens& tokens) {
  const std::map<std::string, int> lets = literal_lets(tokens);
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].plan || tokens[i].text != "<<<") continue;
    launch_argument(tokens, ++i);
    if (i >= tokens.size() || tokens[i].text != ",") continue;
    const auto block = read_block(launch_argument(tokens, ++i), lets);
    if (block && std::find(blocks.begin(), blocks.end(), *block) == blocks.end()) blocks.push_back(*block);
  }
  return blocks;
}

std::string replace_numbers(Tokens tokens, const std::map<std::string, std::string>& changes) {
  for (Token& t : tokens)
    if (t.kind == TokenKind::kNumber)
      if (const auto it = changes.find(t.text); it != changes.end()) t.text = it->second;
  return join(tokens);
}

// Whether a `for` counts down from `start`: "= start; h > 0". A reduction tree does, from half the block.
bool counts_down_from(const Tokens& tokens, const std::string& start) {
  std::vector<const std::string*> words;
  for (const Token& t : tokens)
    if (!t.plan && t.kind != TokenKind::kSpace && t.kind != TokenKind::kComment) words.push_back(&t.text);
  for (std::size_t i = 0; i + 5 < words.size(); ++i)
    if (*words[i] == "=" && *words[i + 1] == start && *words[i + 2] == ";" && *words[i + 4] == ">" &&
        *words[i + 5] == "0")
      return true;
  return false;
}

std::map<std::string, std::string> changes_of(const Tokens& tokens, const Block& from, const Block& to) {
  std::map<std::string, std::string> changes = {{std::to_string(from.x), std::to_string(to.x)}};
  if (from.y != 0) {
    changes[std::to_string(from.y)] = std::to_string(to.y);
  } else if (const std::string half = std::to_string(from.x / 2); counts_down_from(tokens, half)) {
    changes[half] = std::to_string(to.x / 2);
  }
  return changes;
}

// Lanes of a warp exchange values: a block of 32 is the warp, and stays.
bool is_warp(const Tokens& tokens, const Block& block) {
  return block == Block{32, 0} && std::any_of(tokens.begin(), tokens.end(), [](const Token& t) {
           return t.text.starts_with("__shfl") || t.text.starts_with("__ballot") ||
                  t.text.starts_with("__reduce");
         });
}

// Blocks to try in place of `block`.
std::vector<Block> other_blocks(const Block& block, const std::vector<int>& sizes) {
  std::vector<Block> out;
  const auto take = [&](Block b) {
    if (b != block) out.push_back(b);
  };
  // A launch of one thread is no block size: its literal means something else.
  if (block.y == 0 && block.x > 1)
    for (const int size : sizes) take({size, 0});
  if (block.y != 0 && block.x == block.y)
    for (const int size : sizes)
      if (const int side = static_cast<int>(std::lround(std::sqrt(size))); side * side == size)
        take({side, side});
  if (block.y != 0 && block.x != block.y && !sizes.empty()) {
    if (block.x % 2 == 0) take({block.x / 2, block.y * 2});
    if (block.y % 2 == 0) take({block.x * 2, block.y / 2});
  }
  return out;
}

constexpr const char* kKernelNames[] = {"k", "kernel", "run", "op", "apply", "compute", "body", "work"};
constexpr const char* kNames[] = {"a",   "b",   "c",   "d",    "e",    "g",    "h",   "i",   "j",
                                  "l",   "m",   "n",   "o",    "p",    "q",    "r",   "s",   "t",
                                  "u",   "v",   "w",   "y",    "z",    "idx",  "tid", "acc", "val",
                                  "sum", "tmp", "buf", "tile", "item", "lane", "src", "dst", "cur",
                                  "num", "pos", "off", "low",  "top",  "part", "res", "inp"};

// New names for what the source declares; none of them occurs in it.
std::map<std::string, std::string> new_names(const Tokens& tokens, Random& random) {
  const DeclaredNames declared = declared_names(tokens);
  std::set<std::string> taken, kernels;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    taken.insert(tokens[i].text);
    if (tokens[i].plan && tokens[i].text == "<<<" && i > 0) kernels.insert(tokens[i - 1].text);
  }
  std::set<std::string> names = declared.code;
  // A plan's own name is renamed where the code does not use the same word for something of its own.
  for (const std::string& name : declared.plan) names.insert(name);
  std::map<std::string, std::string> out;
  for (const std::string& name : names) {
    std::vector<std::string> pool;
    if (kernels.contains(name)) {
      pool.assign(std::begin(kKernelNames), std::end(kKernelNames));
    } else {
      pool.assign(std::begin(kNames), std::end(kNames));
    }
    std::erase_if(pool, [&](const std::string& word) { return taken.contains(word); });
    if (pool.empty()) continue;  // keeps its name
    const std::string& word = pool[random.below(pool.size())];
    taken.insert(word);
    out[name] = word;
  }
  return out;
}

// In the plan only kernels and the plan's own names are renamed: the others are the task's.
std::string rename(std::string_view source, Random& random) {
  Tokens tokens = tokenise(source);
  const DeclaredNames declared = declared_names(tokens);
  const std::map<std::string, std::string> names = new_names(tokens, random);
  std::string before;  // last significant token
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Token& t = tokens[i];
    if (t.kind == TokenKind::kSpace) continue;
    const std::string was = t.text;
    const bool member = before == "." || before == "->" || before == "::";
    const bool kernel = t.plan && (before == "launch" || before == "const");
    if (t.kind == TokenKind::kIdentifier && !member)
      if (const auto it = names.find(t.text);
          it != names.end() &&
          (t.plan ? kernel || declared.plan.contains(t.text) : declared.code.contains(t.text)))
        t.text = it->second;
    before = was;
  }
  return join(tokens);
}

}  // namespace

std::vector<Variant> augment(std::string_view source, const AugmentOptions& options, std::uint64_t key) {
  std::vector<Variant> out;
  std::set<std::string> seen = {layout_normal_form(source)};
  const auto full = [&] { return out.size() >= static_cast<std::size_t>(std::max(options.variants, 0)); };
  const auto take = [&](std::string text, std::string detail) {
    if (!full() && seen.insert(layout_normal_form(text)).second)
      out.push_back({std::move(text), std::move(detail)});
  };
  const Tokens tokens = tokenise(source);
  for (const Block& block : blocks_of(tokens)) {
    if (is_warp(tokens, block)) continue;
    for (const Block& other : other_blocks(block, options.block_sizes))
      take(replace_numbers(tokens, changes_of(tokens, block, other)),
           "block " + describe(block) + " -> " + describe(other));
  }
  if (!options.rename_identifiers) return out;
  Random random(key);
  const std::size_t sized = out.size();
  // The source and each variant in turn; eight rounds without a new one mean that there is none.
  for (std::size_t turn = 0; !full() && turn < 8 * (sized + 1) + static_cast<std::size_t>(options.variants);
       ++turn) {
    const std::size_t which = turn % (sized + 1);
    if (which == 0) {
      take(rename(source, random), "renamed");
    } else {
      take(rename(out[which - 1].source, random), out[which - 1].detail + ", renamed");
    }
  }
  return out;
}

}  // namespace warpsmith::method
