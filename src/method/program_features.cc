#include "warpsmith/method/program_features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "warpsmith/base/text.h"
#include "warpsmith/method/source_text.h"

namespace warpsmith::method {

namespace {

constexpr double kUnknown = -1;

bool is_vector_type(const std::string& word) {
  static const std::set<std::string> kBases = {"float", "double", "int",    "uint",     "char", "uchar",
                                               "short", "ushort", "__half", "longlong", "half", "ulonglong"};
  if (word == "__nv_bfloat162") return true;
  const std::string base = word.substr(0, word.size() - 1);
  return (word.ends_with('2') || word.ends_with('4')) && kBases.contains(base);
}

bool is_math(const std::string& word) {
  static const std::set<std::string> kMath = {"exp", "exp2", "log",  "log2", "log1p", "expm1",  "pow",
                                              "sin", "cos",  "tanh", "erf",  "sqrt",  "sigmoid"};
  return kMath.contains(word) || (word.ends_with('f') && kMath.contains(word.substr(0, word.size() - 1)));
}

bool is_fast_math(const std::string& word) {
  static const std::set<std::string> kFast = {"__expf", "__exp10f",  "__logf",     "__log2f", "__log10f",
                                              "__powf", "__sinf",    "__cosf",     "__tanf",  "__fdividef",
                                              "rsqrtf", "__frcp_rn", "__frsqrt_rn"};
  return kFast.contains(word);
}

// A count of tokens: of the code, or of the launch plan.
struct WordCount {
  const char* name;
  bool plan;
  std::function<bool(const std::string&)> counts;
};

std::function<bool(const std::string&)> any_of_words(std::set<std::string> words) {
  return [words = std::move(words)](const std::string& word) { return words.contains(word); };
}
std::function<bool(const std::string&)> begins(std::vector<std::string> starts) {
  return [starts = std::move(starts)](const std::string& word) {
    return std::any_of(starts.begin(), starts.end(),
                       [&](const std::string& start) { return word.starts_with(start); });
  };
}

const std::vector<WordCount>& word_counts() {
  static const std::vector<WordCount> counts = {
      {"kernels", false, any_of_words({"__global__", "jit"})},
      {"loops", false, any_of_words({"for", "while"})},
      {"branches", false, any_of_words({"if", "switch", "?"})},
      {"shared", false, any_of_words({"__shared__"})},
      {"syncthreads", false, begins({"__syncthreads"})},
      {"syncwarp", false, begins({"__syncwarp"})},
      {"shuffles", false, begins({"__shfl", "__reduce_", "__ballot"})},
      {"atomics", false, begins({"atomic"})},
      {"vector_types", false, is_vector_type},
      {"cached_loads", false, begins({"__ld", "__st"})},
      {"async_copies", false, begins({"__pipeline", "cp_async", "memcpy_async"})},
      {"matrix", false, begins({"wmma", "mma", "nvcuda"})},
      {"asm", false, any_of_words({"asm"})},
      {"unroll", false, any_of_words({"unroll"})},
      {"restrict", false, any_of_words({"__restrict__"})},
      {"templates", false, any_of_words({"template"})},
      {"math", false, is_math},
      {"fast_math", false, is_fast_math},
      {"fma", false, any_of_words({"fmaf", "fma", "__fmaf_rn", "__hfma2"})},
      {"divisions", false, any_of_words({"/", "%"})},
      {"libraries", false, begins({"cublas", "cudnn", "torch"})},
      {"launches", true, any_of_words({"launch"})},
      {"temporaries", true, any_of_words({"temp"})},
      {"plan_loops", true, any_of_words({"for"})},
      {"plan_branches", true, any_of_words({"if"})},
      {"cooperative", true, any_of_words({"cooperative", "cluster", "pdl"})},
  };
  return counts;
}

double log_count(double n) { return std::log2(1 + n); }

// The parts between <<< and >>>, cut at commas outside brackets.
std::vector<std::string> launch_parts(std::string_view inside) {
  std::vector<std::string> parts(1);
  int open = 0;
  for (const char c : inside) {
    open += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && open == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  for (std::string& part : parts) part = trim(part);
  return parts;
}

// The extents of "dim3(a, b)" or of a single number.
std::vector<std::string> extents_of(const std::string& part) {
  if (!part.starts_with("dim3(") || !part.ends_with(")")) return {part};
  return launch_parts(std::string_view(part).substr(5, part.size() - 6));
}

std::optional<double> product_of(const std::vector<std::string>& extents) {
  constexpr std::size_t kDigits = 9;
  double product = 1;
  for (const std::string& extent : extents) {
    if (extent.empty() || extent.size() > kDigits ||
        extent.find_first_not_of("0123456789") != std::string::npos)
      return std::nullopt;
    product *= std::stod(extent);
  }
  return product;
}

// Over all launches of a program: the widest.
struct Launches {
  double block = kUnknown;      // threads, where they are written as numbers
  double block_dimensions = 0;  // 0: it has no launch
  double grid_dimensions = 0;
  double fixed_grid = 0;      // launches whose grid is numbers alone
  double resident_grid = 0;   // launches whose grid is of the device's processors
  double dynamic_shared = 0;  // launches with it

  void add(std::string_view inside) {
    const std::vector<std::string> parts = launch_parts(inside);
    if (parts.size() < 2) return;
    const std::vector<std::string> grid = extents_of(parts[0]), threads = extents_of(parts[1]);
    if (const auto n = product_of(threads)) block = std::max(block, log_count(*n));
    block_dimensions = std::max(block_dimensions, static_cast<double>(threads.size()));
    grid_dimensions = std::max(grid_dimensions, static_cast<double>(grid.size()));
    fixed_grid += product_of(grid) ? 1 : 0;
    resident_grid +=
        parts[0].find("SMS") != std::string::npos || parts[0].find("blocks_per_sm") != std::string::npos ? 1
                                                                                                         : 0;
    dynamic_shared += parts.size() > 2 && parts[2] != "0" ? 1 : 0;
  }
  void add_source(std::string_view source) {
    for (std::size_t at = source.find("<<<"); at != std::string_view::npos; at = source.find("<<<", at)) {
      at += 3;
      const std::size_t end = source.find(">>>", at);
      if (end == std::string_view::npos) return;
      add(source.substr(at, end - at));
    }
  }
};

using Features = std::vector<std::pair<std::string, double>>;

// Without comments but plans. Comments of Python are no comments to tokenise().
std::vector<Token> words_of(const SourceFile& file) {
  const bool is_python = language_of(file.path) == Language::kPython;
  std::vector<Token> tokens =
      tokenise(is_python ? layout_normal_form(file.content, Language::kPython) : file.content);
  std::erase_if(tokens, [](const Token& token) {
    return token.kind == TokenKind::kSpace || token.kind == TokenKind::kComment;
  });
  return tokens;
}

void add_words(const Candidate& candidate, Features& out) {
  std::vector<double> counts(word_counts().size());
  double bytes = 0;
  Launches launches;
  for (const SourceFile& file : candidate.files) {
    const std::vector<Token> tokens = words_of(file);
    const std::string text = join(tokens);
    bytes += static_cast<double>(text.size());
    launches.add_source(text);
    for (const Token& token : tokens)
      for (std::size_t i = 0; i < counts.size(); ++i)
        counts[i] += token.plan == word_counts()[i].plan && word_counts()[i].counts(token.text) ? 1 : 0;
  }
  out.emplace_back("bytes", log_count(bytes));
  for (std::size_t i = 0; i < counts.size(); ++i)
    out.emplace_back(word_counts()[i].name, log_count(counts[i]));
  out.emplace_back("block", launches.block);
  out.emplace_back("block_dimensions", launches.block_dimensions);
  out.emplace_back("grid_dimensions", launches.grid_dimensions);
  out.emplace_back("fixed_grid", launches.fixed_grid);
  out.emplace_back("resident_grid", launches.resident_grid);
  out.emplace_back("dynamic_shared", launches.dynamic_shared);
}

void add_code(const CodeFacts& code, Features& out) {
  const auto known = [](const std::optional<std::int64_t>& n) {
    return n && *n >= 0 ? log_count(static_cast<double>(*n)) : kUnknown;
  };
  out.emplace_back("registers", known(code.registers));
  out.emplace_back("static_shared", known(code.shared_bytes));
  out.emplace_back("spills", known(code.spill_bytes));
  out.emplace_back("tensor_cores", code.tensor_cores ? (*code.tensor_cores ? 1 : 0) : kUnknown);
}

Features named_features(const Candidate& candidate, const CodeFacts& code) {
  Features out;
  add_words(candidate, out);
  add_code(code, out);
  return out;
}

}  // namespace

const std::vector<std::string>& program_feature_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, value] : named_features({}, {})) out.push_back(name);
    return out;
  }();
  return names;
}

std::vector<double> program_features(const Candidate& candidate, const CodeFacts& code) {
  std::vector<double> out;
  for (const auto& [name, value] : named_features(candidate, code)) out.push_back(value);
  return out;
}

}  // namespace warpsmith::method
