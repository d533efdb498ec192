#include "windows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace warpsmith::synthesis {

namespace {

std::vector<int> places_of(const Traced& traced) { return {traced.sizes.begin() + 1, traced.sizes.end()}; }

// Elements of x that a window sees, those outside of x counted, too.
std::int64_t taps_of(const Chain& chain, const Traced& traced) {
  const bool all_channels =
      op(chain.start).windows == Windows::kFull || op(chain.start).windows == Windows::kPointwise;
  return product_of(traced.window.kernel) * (all_channels ? traced.sizes.front() : 1);
}

// Places of a dimension that some window sees.
int seen_of(const Window& window, std::size_t d, int size, int made) {
  std::set<int> seen;
  for (int at = 0; at < made; ++at)
    for (int tap = 0; tap < window.kernel[d]; ++tap) {
      const int place = at * window.stride[d] - window.padding[d] + tap * window.dilation[d];
      if (place >= 0 && place < size) seen.insert(place);
    }
  return static_cast<int>(seen.size());
}
std::int64_t seen_places(const Traced& traced) {
  const std::vector<int> made = made_sizes(traced);
  std::int64_t seen = 1;
  for (std::size_t d = 0; d < traced.window.kernel.size(); ++d)
    seen *= seen_of(traced.window, d, traced.sizes[d + 1], made[d + 1]);
  return seen;
}

class WindowDrawer {
 public:
  WindowDrawer(const Chain& chain, Random& random, const SizeDraw& size, bool runs)
      : start_(op(chain.start)), random_(random), size_(size), runs_(runs) {}

  void draw(Traced& traced) {
    traced.window = {};
    traced.sizes = {channels()};
    traced.window.channels = start_.windows == Windows::kFull || start_.windows == Windows::kPointwise
                                 ? size_(4, runs_ ? 32 : 128)
                                 : traced.sizes.front();
    const int side = place();
    const bool is_cube = random_.uniform() < 0.7, is_square = random_.uniform() < 0.8;
    for (int d = 0; d < start_.rank; ++d) {
      traced.sizes.push_back(is_cube ? side : place());
      if (d == 0 || !is_square) window(traced.window);
      for (std::vector<int>* of :
           {&traced.window.kernel, &traced.window.stride, &traced.window.padding, &traced.window.dilation})
        if (of->size() < traced.sizes.size() - 1) of->push_back(of->back());
    }
  }

 private:
  int one_of(const std::vector<int>& numbers) { return numbers[random_.below(numbers.size())]; }
  int channels() {
    if (start_.windows == Windows::kFull) return random_.uniform() < 0.3 ? 3 : size_(2, runs_ ? 16 : 64);
    return size_(2, runs_ ? 32 : 128);
  }
  int place() {
    if (start_.rank == 1) return size_(32, runs_ ? 1024 : 65536);
    if (start_.rank == 2) return size_(8, runs_ ? 64 : 256);
    return size_(6, runs_ ? 20 : 64);
  }
  void window(Window& window) {
    const bool is_max = start_.windows == Windows::kMax, pools = is_max || start_.windows == Windows::kMean;
    const bool is_point = start_.windows == Windows::kPointwise;
    const int kernel = is_point ? 1
                       : pools  ? one_of({2, 2, 3, 3, 4, 5, start_.rank == 1 ? 8 : 3})
                                : one_of({2, 3, 3, 3, 5, start_.rank == 1 ? 7 : 3});
    const int dilation = is_max && random_.uniform() < 0.25 ? one_of({2, 3}) : 1;
    const int stride = is_point ? 1 : pools ? one_of({kernel, kernel, 1, 2}) : one_of({1, 1, 1, 2});
    const int padding = is_point || random_.uniform() < 0.4 ? 0 : kernel / 2;
    window.kernel.push_back(kernel);
    window.stride.push_back(stride);
    window.padding.push_back(pools ? std::min(padding, kernel / 2) : padding);
    window.dilation.push_back(dilation);
  }

  const Operator& start_;
  Random& random_;
  const SizeDraw& size_;
  const bool runs_;
};

}  // namespace

std::int64_t product_of(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::string product(const std::vector<int>& sizes, std::size_t first, std::size_t last) {
  return fmt::format("{}", fmt::join(sizes.begin() + static_cast<std::ptrdiff_t>(first),
                                     sizes.begin() + static_cast<std::ptrdiff_t>(last), " * "));
}
std::string in_brackets(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : "(" + text + ")";
}

std::vector<int> made_sizes(const Traced& traced) {
  std::vector<int> made = {traced.window.channels};
  for (std::size_t d = 0; d < traced.window.kernel.size(); ++d) {
    const Window& window = traced.window;
    const int room =
        traced.sizes[d + 1] + 2 * window.padding[d] - window.dilation[d] * (window.kernel[d] - 1) - 1;
    made.push_back(room < 0 ? 0 : room / window.stride[d] + 1);
  }
  return made;
}

std::vector<int> weight_sizes(const Chain& chain, const Traced& traced) {
  std::vector<int> sizes = {traced.window.channels,
                            op(chain.start).windows == Windows::kDepthwise ? 1 : traced.sizes.front()};
  sizes.insert(sizes.end(), traced.window.kernel.begin(), traced.window.kernel.end());
  return sizes;
}

// Limits: an item of the batch has room on a GPU sixteen times, and the CPU twin is quick. All but 4 % of x
// is seen: else it would be a task whose inputs are not needed.
void draw_windows(const Chain& chain, Random& random, const SizeDraw& size, bool runs, Traced& traced) {
  const std::int64_t elements = runs ? 1 << 15 : 1 << 20, most = runs ? 1 << 19 : 1 << 29;
  WindowDrawer drawer(chain, random, size, runs);
  const auto fits = [&] {
    const std::vector<int> made = made_sizes(traced);
    const std::int64_t seen = product_of(traced.sizes), out = product_of(made);
    return *std::min_element(made.begin(), made.end()) > 1 && seen <= elements && out <= elements &&
           out * taps_of(chain, traced) <= most &&
           100 * seen_places(traced) >= 96 * product_of(places_of(traced));
  };
  do drawer.draw(traced);
  while (!fits());
  traced.window.has_bias = is_convolution(op(chain.start)) && !chain.steps.empty() &&
                           op(chain.steps.front()).name == std::string("bias") && random.uniform() < 0.75;
}

std::string weight_values(const Chain& chain, const Traced& traced) {
  const double bound =
      1 / std::sqrt(static_cast<double>(product_of(weight_sizes(chain, traced)) / traced.window.channels));
  return fmt::format("uniform(-{0:.6g}, {0:.6g})", bound);
}

std::string window_module(const Chain& chain, const Traced& traced) {
  const Operator& start = op(chain.start);
  const Window& window = traced.window;
  const auto numbers = [](const std::vector<int>& of) {  // one number, where all are the same
    const bool is_one = std::all_of(of.begin(), of.end(), [&](int one) { return one == of.front(); });
    return is_one ? std::to_string(of.front()) : fmt::format("({})", fmt::join(of, ", "));
  };
  std::string text = fmt::format("kernel_size={}, stride={}, padding={}", numbers(window.kernel),
                                 numbers(window.stride), numbers(window.padding));
  if (!is_convolution(start)) {
    if (start.windows == Windows::kMax) text += fmt::format(", dilation={}", numbers(window.dilation));
    return fmt::format("nn.{}Pool{}d({})", start.windows == Windows::kMax ? "Max" : "Avg", start.rank, text);
  }
  if (start.windows == Windows::kDepthwise) text += fmt::format(", groups={}", window.channels);
  return fmt::format("nn.Conv{}d({}, {}, {}, bias={})", start.rank, traced.sizes.front(), window.channels,
                     text, window.has_bias ? "True" : "False");
}

std::string window_arguments(const Chain& chain, const Traced& traced, const std::string& bias) {
  const Window& window = traced.window;
  const auto list = [](const std::vector<int>& numbers) {
    return fmt::format("[{}]", fmt::join(numbers, ", "));
  };
  const auto all = [](const std::vector<int>& numbers, int number) {
    return std::all_of(numbers.begin(), numbers.end(), [&](int one) { return one == number; });
  };
  struct Argument {
    std::string text;
    bool is_default;
  };
  const Argument stride{list(window.stride), all(window.stride, 1)},
      padding{list(window.padding), all(window.padding, 0)},
      dilation{list(window.dilation), all(window.dilation, 1)};
  std::vector<Argument> arguments;
  if (is_convolution(op(chain.start))) {
    const bool groups = op(chain.start).windows == Windows::kDepthwise;
    arguments = {{bias.empty() ? "None" : bias, bias.empty()},
                 stride,
                 padding,
                 dilation,
                 {std::to_string(groups ? window.channels : 1), !groups}};
  } else {
    arguments = {{list(window.kernel), false}, {stride.text, false}, padding};
    if (op(chain.start).windows == Windows::kMax) arguments.push_back(dilation);
  }
  while (!arguments.empty() && arguments.back().is_default) arguments.pop_back();
  std::string out;
  for (const Argument& one : arguments) out += ", " + one.text;
  return out;
}

WindowCosts window_costs(const Chain& chain, const Traced& traced) {
  const Operator& start = op(chain.start);
  WindowCosts costs;
  const std::int64_t places = seen_places(traced) * traced.sizes.front();
  costs.seen = product_of(traced.sizes);
  costs.made = product_of(made_sizes(traced));
  costs.sums = costs.made * taps_of(chain, traced);
  // A maximum of n has n - 1 comparisons; a mean as many sums, and a division.
  costs.window_flops = start.windows == Windows::kMax    ? costs.sums - costs.made
                       : start.windows == Windows::kMean ? costs.sums
                                                         : 2 * costs.sums;
  costs.flops = costs.window_flops;
  for (const std::size_t number : chain.before) costs.flops += op(number).flops * places;
  for (const std::size_t number : chain.steps) costs.flops += op(number).flops * costs.made;
  costs.bytes = 4 * places;
  if (is_convolution(start)) costs.bytes_once += 4 * product_of(weight_sizes(chain, traced));
  for (const std::size_t number : chain.steps) {
    if (op(number).operand == Operand::kMatrix) costs.bytes += 4 * costs.made;
    if (op(number).operand == Operand::kRowVector) costs.bytes_once += 4 * traced.window.channels;
  }
  if (chain.has_end()) {
    costs.flops += op(chain.end).flops * costs.made;
    costs.bytes_once += 4;
  } else {
    costs.bytes += 4 * costs.made;
  }
  return costs;
}

}  // namespace warpsmith::synthesis
