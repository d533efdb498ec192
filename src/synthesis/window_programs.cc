// Programs of chains with windows. A block of threads stages what its windows see in shared memory, or a
// thread makes several channels of a convolution; the openings serve the templates of all chains.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "warpsmith/base/text.h"
#include "windows.h"

namespace warpsmith::synthesis {

namespace {

using Code = std::vector<std::string>;

constexpr int kTogether = 4;  // of a convolution that a thread makes

// "i / 64 % 32", where `behind` sizes stand behind one of size `size`; 0: the first of all.
std::string part_of(const std::string& place, const std::string& behind, int size) {
  return place + (behind.empty() ? "" : " / " + in_brackets(behind)) +
         (size == 0 ? "" : fmt::format(" % {}", size));
}
std::string multiplied(const std::string& text, int by) {
  return by == 1 ? text : fmt::format("{} * {}", in_brackets(text), by);
}
void indent(Code& to, const Code& lines, int depth) {
  for (const std::string& line : lines)
    to.push_back(std::string(static_cast<std::size_t>(2 * depth), ' ') + line);
}

class WindowWriter {
 public:
  WindowWriter(const Chain& chain, const Traced& traced)
      : chain_(chain),
        traced_(traced),
        start_(op(chain.start)),
        window_(traced.window),
        made_(made_sizes(traced)),
        rank_(window_.kernel.size()),
        all_(start_.windows == Windows::kFull || start_.windows == Windows::kPointwise),
        operands_(operand_names_of(chain)) {
    for (const char* letter : {"m", "y", "z"}) letters_.emplace_back(letter);
    letters_.erase(letters_.begin(), letters_.end() - static_cast<std::ptrdiff_t>(rank_));
  }

  Opening opening() const {
    const std::string place = product(made_, 1, rank_ + 1);
    Code lines = {fmt::format("int n = {};",
                              all_ ? part_of("i", product(made_, 0, rank_ + 1), 0) : part_of("i", place, 0))};
    if (start_.windows == Windows::kPointwise) {
      lines.front() = fmt::format("int n = {}, l = {};", part_of("i", product(made_, 0, rank_ + 1), 0),
                                  "i % " + in_brackets(place));
    } else {
      lines.push_back(begins(
          [&](std::size_t d) { return part_of("i", product(made_, d + 2, rank_ + 1), made_[d + 1]); }));
    }
    indent(lines, windows("v", {}), 0);
    return {lines, part_of("i", place, made_.front()), is_convolution(start_)};
  }

  std::vector<Program> programs() {
    std::vector<Program> out;
    if (chain_.has_end()) return out;
    if (all_) out.push_back({fmt::format("channels_{}", kTogether), channels()});
    if (start_.windows == Windows::kPointwise) {
      out.push_back({"product", tiled_product()});
    } else if (const std::int64_t elements = tile_elements(); elements <= 8192 && (all_ || pays())) {
      out.push_back({"tile", tile()});
    }
    return out;
  }

 private:
  // "int y = … * 2 - 1, z = …;": where the windows of an output begin in x; `place`: the output's, by
  // dimension.
  template <typename Place>
  std::string begins(const Place& place) const {
    Code parts;
    for (std::size_t d = 0; d < rank_; ++d) {
      std::string text = place(d);
      if (window_.stride[d] > 1 && text != "0") text += fmt::format(" * {}", window_.stride[d]);
      if (window_.padding[d] > 0)
        text = (text == "0" ? "-" : text + " - ") + std::to_string(window_.padding[d]);
      parts.push_back(letters_[d] + " = " + text);
    }
    return fmt::format("int {};", fmt::join(parts, ", "));
  }

  const char* first_value() const { return start_.windows == Windows::kMax ? "-INFINITY" : "0.f"; }
  std::string folded_into(const std::string& sum, const std::string& term) const {
    return start_.windows == Windows::kMax ? fmt::format("{0} = fmaxf({0}, {1});", sum, term)
                                           : fmt::format("{} += {};", sum, term);
  }
  // A weight of channel `c`.
  std::string weight(const std::string& c) const {
    std::string text = all_ ? fmt::format("{} * {} + ci", in_brackets(c), traced_.sizes.front()) : c;
    if (start_.windows == Windows::kPointwise) return inputs_of(chain_)[1].name + "[" + text + "]";
    for (std::size_t d = 0; d < rank_; ++d)
      text = fmt::format("{} * {} + k{}", in_brackets(text), window_.kernel[d], letters_[d]);
    return inputs_of(chain_)[1].name + "[" + text + "]";
  }
  std::string term(const std::string& v, const std::string& c) const {
    return is_convolution(start_) ? v + " * " + weight(c) : v;
  }
  std::string tap(std::size_t d) const {
    return fmt::format("{} + {}", letters_[d], multiplied("k" + letters_[d], window_.dilation[d]));
  }
  bool is_padded(std::size_t d) const { return window_.padding[d] > 0; }
  bool is_padded() const {
    return std::any_of(window_.padding.begin(), window_.padding.end(), [](int one) { return one > 0; });
  }
  // Whether the places `i<letter>` of some dimensions lie in x.
  std::string inside(bool all) const {
    Code parts;
    for (std::size_t d = 0; d < rank_; ++d)
      if (all || is_padded(d))
        parts.push_back(fmt::format("i{0} >= 0 && i{0} < {1}", letters_[d], traced_.sizes[d + 1]));
    return fmt::format("{}", fmt::join(parts, " && "));
  }
  // An element of x at the places `i<letter>` or, `taps`, at those of a tap.
  std::string element(bool taps) const {
    std::string text = all_ ? fmt::format("n * {} + ci", traced_.sizes.front()) : "n";
    if (start_.windows == Windows::kPointwise)
      return fmt::format("x[({}) * {} + l]", text, in_brackets(product(made_, 1, rank_ + 1)));
    for (std::size_t d = 0; d < rank_; ++d)
      text = fmt::format("{} * {} + {}", in_brackets(text), traced_.sizes[d + 1],
                         taps ? tap(d) : "i" + letters_[d]);
    return "x[" + text + "]";
  }
  Code before() const {
    Code lines;
    for (const std::size_t number : chain_.before) lines.push_back(fmt::format("v = {};", op(number).cuda));
    return lines;
  }
  // Loops over the taps of a window, and the channels of a convolution if `by_channels`, around `body`.
  Code over_taps(const Code& body, bool by_channels) const {
    Code lines;
    int depth = 0;
    const auto loop = [&](const std::string& name, int size) {
      indent(lines, {fmt::format("for (int {0} = 0; {0} < {1}; {0}++)", name, size)}, depth++);
    };
    if (by_channels) loop("ci", traced_.sizes.front());
    if (start_.windows != Windows::kPointwise)
      for (std::size_t d = 0; d < rank_; ++d) loop("k" + letters_[d], window_.kernel[d]);
    if (body.size() == 1 && depth > 0) {
      indent(lines, body, depth);
      return lines;
    }
    if (depth > 0) lines.back() += " {";
    indent(lines, body, depth);
    if (depth > 0) indent(lines, {"}"}, depth - 1);
    return lines;
  }
  // What a window comes to, in `sum`, from memory; `work`: instead of adding to it, what is done with a `v`.
  Code windows(const std::string& sum, const Code& work) const {
    const bool changes = !chain_.before.empty() || !work.empty();
    const std::string s = changes && work.empty() ? "acc" : sum;
    Code body, lines;
    const bool padded = is_padded();
    const std::string v = element(!padded);
    if (padded) {
      Code places;
      for (std::size_t d = 0; d < rank_; ++d) places.push_back(fmt::format("i{} = {}", letters_[d], tap(d)));
      body.push_back(fmt::format("int {};", fmt::join(places, ", ")));
    }
    if (!changes) {
      body.push_back((padded ? "if (" + inside(false) + ") " : "") + folded_into(s, term(v, "c")));
    } else {
      if (padded) body.push_back("if (!(" + inside(false) + ")) continue;");
      body.push_back("float v = " + v + ";");
      indent(body, before(), 0);
      if (work.empty()) body.push_back(folded_into(s, term("v", "c")));
      indent(body, work, 0);
    }
    if (work.empty()) lines.push_back(fmt::format("float {} = {};", s, first_value()));
    indent(lines, over_taps(body, all_), 0);
    if (work.empty()) finish(s, lines);
    if (s != sum && work.empty()) lines.push_back(fmt::format("float {} = {};", sum, s));
    return lines;
  }
  void finish(const std::string& sum, Code& lines) const {
    if (start_.windows != Windows::kMean) return;
    lines.push_back(fmt::format("{} /= {}.f;", sum, product_of(window_.kernel)));
  }

  Code steps() const {
    Code lines;
    for (std::size_t i = 0; i < chain_.steps.size(); ++i)
      lines.push_back(step_line(op(chain_.steps[i]), operands_[i]));
    lines.emplace_back("out[i] = v;");
    return lines;
  }
  bool steps_name_channel() const {
    return std::any_of(chain_.steps.begin(), chain_.steps.end(),
                       [](std::size_t number) { return op(number).operand == Operand::kRowVector; });
  }

  std::string written(const std::string& grid, const std::string& block, const Code& body) const {
    Code names, parameters;
    for (const Input& input : inputs_of(chain_)) {
      names.push_back(input.name);
      parameters.push_back("const float* " + input.name);
    }
    for (const auto& [name, value] : scalars_of(chain_)) {
      names.push_back(name);
      parameters.push_back("float " + name);
    }
    std::string text =
        fmt::format("// plan: launch k<<<{}, {}>>>({}, out, M, N)\n", grid, block, fmt::join(names, ", "));
    text += fmt::format("extern \"C\" __global__ void k({}, float* out, int M, int N) {{\n",
                        fmt::join(parameters, ", "));
    for (const std::string& line : body) text += "  " + line + "\n";
    return text + "}\n";
  }

  // ---- several channels of a place, by one thread

  int groups() const { return (made_.front() + kTogether - 1) / kTogether; }
  // The image and the first channel of a block of threads, and such blocks of all images.
  std::string block_begins() const {
    if (groups() == 1) return "int n = blockIdx.x, c0 = 0;";
    return fmt::format("int n = blockIdx.x / {0}, c0 = blockIdx.x % {0} * {1};", groups(), kTogether);
  }
  std::string blocks() const { return groups() == 1 ? "BATCH" : fmt::format("BATCH * {}", groups()); }
  // Whether `c0 + o` is a channel: empty where it always is.
  std::string is_channel() const {
    return made_.front() % kTogether == 0 ? "" : fmt::format("c0 + o < {}", made_.front());
  }
  Code each_channel(const Code& body) const {
    const std::string guard = is_channel();
    Code lines = {"#pragma unroll", fmt::format("for (int o = 0; o < {}; o++)", kTogether)};
    if (body.size() == 1) {
      lines.push_back("  " + (guard.empty() ? "" : "if (" + guard + ") ") + body.front());
      return lines;
    }
    lines.back() += " {";
    if (!guard.empty()) lines.push_back("  if (!(" + guard + ")) break;");
    indent(lines, body, 1);
    lines.emplace_back("}");
    return lines;
  }
  // Writes all channels of the accumulators; `place`: of the output in its image.
  Code stores(const std::string& place) const {
    Code body = {"int c = c0 + o;",
                 fmt::format("int i = (n * {} + c) * {} + {};", made_.front(),
                             in_brackets(product(made_, 1, rank_ + 1)), place),
                 "float v = acc[o];"};
    indent(body, steps(), 0);
    return each_channel(body);
  }

  std::string channels() const {
    const std::string places = product(made_, 1, rank_ + 1);
    Code body = {"int l = blockIdx.y * 128 + threadIdx.x;", fmt::format("if (l >= {}) return;", places),
                 block_begins()};
    if (start_.windows != Windows::kPointwise)
      body.push_back(begins([&](std::size_t d) {
        return part_of("l", product(made_, d + 2, rank_ + 1), d == 0 ? 0 : made_[d + 1]);
      }));
    body.push_back(fmt::format("float acc[{}] = {{}};", kTogether));
    indent(body, windows("", each_channel({"acc[o] += v * " + weight("c0 + o") + ";"})), 0);
    indent(body, stores("l"), 0);
    return written(fmt::format("dim3({}, cdiv({}, 128))", blocks(), places), "128", body);
  }

  // ---- what the windows of a block of outputs see, in shared memory

  // Outputs of a block of threads.
  std::vector<int> block() const {
    const int last = made_.back();
    if (rank_ == 1) return {last > 64 ? 256 : 64};
    if (rank_ == 2)
      return last >= 32 ? std::vector{8, 32} : last > 8 ? std::vector{16, 16} : std::vector{8, 8};
    return last >= 16 ? std::vector{4, 4, 16} : std::vector{4, 8, 8};
  }
  std::vector<int> tiles() const {
    std::vector<int> out = block();
    for (std::size_t d = 0; d < rank_; ++d) out[d] = (made_[d + 1] + out[d] - 1) / out[d];
    return out;
  }
  // Where the tile begins in dimension d of the output: "blockIdx.y % 4 * 16"; "0" where there is one tile.
  std::string tile_begins(std::size_t d) const {
    const std::vector<int> all = tiles(), of_block = block();
    if (all[d] == 1) return "0";
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(d);
    const std::int64_t before = product_of({all.begin(), middle}),
                       behind = product_of({middle + 1, all.end()});
    return part_of("blockIdx.y", behind == 1 ? "" : std::to_string(behind), before == 1 ? 0 : all[d]) +
           fmt::format(" * {}", of_block[d]);
  }
  std::vector<int> tile_sizes() const {
    std::vector<int> sizes = block();
    for (std::size_t d = 0; d < rank_; ++d)
      sizes[d] = (sizes[d] - 1) * window_.stride[d] + (window_.kernel[d] - 1) * window_.dilation[d] + 1;
    return sizes;
  }
  std::int64_t tile_elements() const { return product_of(tile_sizes()); }
  std::int64_t threads() const { return product_of(block()); }
  // Elements are seen more than once.
  bool pays() const {
    for (std::size_t d = 0; d < rank_; ++d)
      if (window_.kernel[d] > window_.stride[d]) return true;
    return false;
  }
  std::string of_tile(std::size_t d, const std::string& place, const std::vector<int>& sizes) const {
    return part_of(place, product(sizes, d + 1, rank_), d == 0 ? 0 : sizes[d]);
  }
  // Fills `part` with what all threads load.
  Code loads(const std::vector<int>& sizes) const {
    Code body, places;
    for (std::size_t d = 0; d < rank_; ++d)
      places.push_back(fmt::format("i{0} = {0} + {1}", letters_[d], of_tile(d, "e", sizes)));
    body.push_back(fmt::format("int {};", fmt::join(places, ", ")));
    body.push_back(fmt::format("float v = {};", first_value()));
    if (chain_.before.empty()) {
      body.push_back(fmt::format("if ({}) v = {};", inside(true), element(false)));
    } else {
      body.push_back(fmt::format("if ({}) {{", inside(true)));
      body.push_back(fmt::format("  v = {};", element(false)));
      indent(body, before(), 1);
      body.emplace_back("}");
    }
    body.emplace_back("part[e] = v;");
    Code lines = {
        fmt::format("for (int e = threadIdx.x; e < {}; e += {}) {{", product(sizes, 0, rank_), threads())};
    indent(lines, body, 1);
    lines.insert(lines.end(), {"}", "__syncthreads();"});
    return lines;
  }
  std::string tile() const {
    const std::vector<int> threads_by = block(), sizes = tile_sizes();
    Code body = {fmt::format("__shared__ float part[{}];", product(sizes, 0, rank_)),
                 all_ ? block_begins() : "int n = blockIdx.x;", begins([&](std::size_t d) {
                   const std::string begin = tile_begins(d);
                   return begin == "0" ? begin : "(int)(" + begin + ")";
                 })};
    // An element of the tile at a tap.
    std::string at;
    for (std::size_t d = 0; d < rank_; ++d) {
      std::string place = of_tile(d, "threadIdx.x", threads_by);
      if (window_.stride[d] > 1) place += fmt::format(" * {}", window_.stride[d]);
      place += " + " + multiplied("k" + letters_[d], window_.dilation[d]);
      at = at.empty() ? place : fmt::format("({}) * {} + {}", at, sizes[d], place);
    }
    at = "part[" + at + "]";
    Code outputs, outside, index;
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::string out = "o" + letters_[d];
      const std::string begin = tile_begins(d);
      outputs.push_back(fmt::format("{} = {}{}", out, begin == "0" ? "" : begin + " + ",
                                    of_tile(d, "threadIdx.x", threads_by)));
      outside.push_back(fmt::format("{} >= {}", out, made_[d + 1]));
      index.push_back(out);
    }
    const Code leave = {fmt::format("int {};", fmt::join(outputs, ", ")),
                        fmt::format("if ({}) return;", fmt::join(outside, " || "))};
    const auto in_image = [&](std::string text) {
      for (std::size_t d = 0; d < rank_; ++d)
        text =
            text.empty() ? index[d] : fmt::format("{} * {} + {}", in_brackets(text), made_[d + 1], index[d]);
      return text;
    };
    const std::string grid = product(tiles(), 0, rank_), block_size = std::to_string(threads());
    if (all_) {
      body.push_back(fmt::format("float acc[{}] = {{}};", kTogether));
      body.push_back(fmt::format("for (int ci = 0; ci < {}; ci++) {{", traced_.sizes.front()));
      indent(body, loads(sizes), 1);
      Code work = {"float v = " + at + ";"};
      indent(work, each_channel({"acc[o] += v * " + weight("c0 + o") + ";"}), 0);
      indent(body, over_taps(work, false), 1);
      indent(body, {"__syncthreads();"}, 1);
      body.emplace_back("}");
      indent(body, leave, 0);
      indent(body, stores(in_image("")), 0);
      return written(fmt::format("dim3({}, {})", blocks(), grid), block_size, body);
    }
    indent(body, loads(sizes), 0);
    indent(body, leave, 0);
    if (is_convolution(start_) || steps_name_channel())
      body.push_back(fmt::format("int c = n % {};", made_.front()));
    body.push_back(fmt::format("float v = {};", first_value()));
    indent(body, over_taps({folded_into("v", term(at, "c"))}, false), 0);
    finish("v", body);
    body.push_back(fmt::format("int i = {};", in_image("n")));
    indent(body, steps(), 0);
    return written(fmt::format("dim3(BATCH * {}, {})", made_.front(), grid), block_size, body);
  }

  // ---- a pointwise convolution as a product: tiles of 16 by 16

  std::string tiled_product() const {
    const std::string places = product(made_, 1, rank_ + 1), w = inputs_of(chain_)[1].name;
    const int inner = traced_.sizes.front();
    const std::string across = in_brackets(fmt::format("({} + 15) / 16", places));
    Code body = {
        "__shared__ float xs[16][17];",
        "__shared__ float ws[16][17];",
        fmt::format("int n = blockIdx.x / {};", across),
        fmt::format("int l = blockIdx.x % {} * 16 + threadIdx.x, c = blockIdx.y * 16 + threadIdx.y;", across),
        "float acc = 0.f;",
        fmt::format("for (int k0 = 0; k0 < {}; k0 += 16) {{", inner),
        "  int ci = k0 + threadIdx.y;",
        fmt::format("  float v = ci < {} && l < {} ? {} : 0.f;", inner, places, element(false))};
    indent(body, before(), 1);
    const Code rest = {"  xs[threadIdx.y][threadIdx.x] = v;",
                       fmt::format("  ws[threadIdx.y][threadIdx.x] = c < {0} && k0 + threadIdx.x < {1} ? "
                                   "{2}[c * {1} + k0 + threadIdx.x] : 0.f;",
                                   made_.front(), inner, w),
                       "  __syncthreads();",
                       "  for (int e = 0; e < 16; e++) acc += ws[threadIdx.y][e] * xs[e][threadIdx.x];",
                       "  __syncthreads();",
                       "}",
                       fmt::format("if (c >= {} || l >= {}) return;", made_.front(), places),
                       fmt::format("int i = (n * {} + c) * {} + l;", made_.front(), in_brackets(places)),
                       "float v = acc;"};
    body.insert(body.end(), rest.begin(), rest.end());
    indent(body, steps(), 0);
    return written(fmt::format("dim3(BATCH * cdiv({}, 16), cdiv({}, 16))", places, made_.front()),
                   "dim3(16, 16)", body);
  }

  const Chain& chain_;
  const Traced& traced_;
  const Operator& start_;
  const Window& window_;
  const std::vector<int> made_;  // channels and places of what the windows make
  const std::size_t rank_;
  const bool all_;  // a window sees all channels
  const std::vector<std::string> operands_;
  std::vector<std::string> letters_;  // of the dimensions
};

}  // namespace

Opening opening_of(const Chain& chain, const Traced& traced) { return WindowWriter(chain, traced).opening(); }

std::vector<Program> window_programs(const Chain& chain, const Traced& traced) {
  return WindowWriter(chain, traced).programs();
}

}  // namespace warpsmith::synthesis
