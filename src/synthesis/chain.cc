#include "warpsmith/synthesis/chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "warpsmith/base/random.h"

namespace warpsmith::synthesis {

namespace {

std::vector<std::size_t> all_of(const Chain& chain) {
  std::vector<std::size_t> all = chain.before;
  if (chain.start != 0) all.push_back(chain.start);
  all.insert(all.end(), chain.steps.begin(), chain.steps.end());
  if (chain.has_end()) all.push_back(chain.end);
  return all;
}

// b, b2, b3 …
class Names {
 public:
  std::string fresh(const std::string& name) {
    const int n = ++count_[name];
    return n == 1 ? name : name + std::to_string(n);
  }

 private:
  std::map<std::string, int> count_;
};

// ---- evaluation

// What chains are evaluated at.
constexpr int kRows = 3, kColumns = 5, kInner = 4, kTable = 7;
constexpr int kImages = 2, kChannels = 2;
constexpr std::array<int, 3> kImage = {2, 3, 4};  // the last of these sizes

struct Matrix {
  int rows, columns;
  std::vector<double> at;
  double& operator()(int r, int c) { return at[static_cast<std::size_t>(r * columns + c)]; }
  double operator()(int r, int c) const { return at[static_cast<std::size_t>(r * columns + c)]; }
};

class Evaluation {
 public:
  Evaluation(const Chain& chain, std::uint64_t seed, int changed, bool by_kind)
      : chain_(chain), seed_(seed), changed_(changed), by_kind_(by_kind), inputs_(inputs_of(chain)) {}

  std::vector<double> run() {
    start();
    const Matrix begun = v_;
    for (const std::size_t number : chain_.steps) step(op(number), begun);
    if (chain_.has_end()) return end(op(chain_.end));
    return v_.at;
  }

 private:
  Matrix draw(int rows, int columns) {
    // By its name, so that operands are the same in whatever order their steps stand.
    const int number = drawn_++;
    const Input& input = inputs_[static_cast<std::size_t>(number)];
    const auto of_kind = [&](const Input& other) { return other.operand == input.operand; };
    const std::string name =
        by_kind_ ? fmt::format("{} {}", static_cast<int>(input.operand),
                               std::count_if(inputs_.begin(), inputs_.begin() + number, of_kind))
                 : input.name;
    Random random(random_key({seed_, name_key(name), number == changed_ ? 1u : 0u}));
    Matrix m{rows, columns, std::vector<double>(static_cast<std::size_t>(rows * columns))};
    for (double& value : m.at) value = 4 * random.uniform() - 2;
    return m;
  }

  void start() {
    const std::string_view name = op(chain_.start).name;
    if (has_windows(chain_)) return slide(op(chain_.start));
    if (name == "x") {
      v_ = draw(kRows, kColumns);
      return;
    }
    Matrix a = name == "matmul" ? draw(kRows, kInner) : draw(kTable, kColumns);
    for (const std::size_t number : chain_.before)
      for (double& v : a.at) v = op(number).value(v, 0);
    Matrix b = name == "matmul" ? draw(kInner, kColumns) : draw(kRows, 1);
    v_ = {kRows, kColumns, std::vector<double>(static_cast<std::size_t>(kRows * kColumns))};
    for (int r = 0; r < v_.rows; ++r)
      for (int c = 0; c < v_.columns; ++c) {
        if (name == "gather_rows") {
          const int row = static_cast<int>(std::fabs(b(r, 0)) / 2 * (kTable - 1));
          v_(r, c) = a(row, c);
          continue;
        }
        for (int k = 0; k < kInner; ++k) v_(r, c) += a(r, k) * b(k, c);
      }
  }

  // A column a channel, a row a place of an image.
  void slide(const Operator& one) {
    const bool weighted = is_convolution(one),
               each = one.windows != Windows::kFull && one.windows != Windows::kPointwise;
    const int kernel = one.windows == Windows::kPointwise ? 1 : 2, padding = kernel - 1;
    const std::vector<int> sizes(kImage.end() - one.rank, kImage.end());
    std::vector<int> makes, taps(sizes.size(), kernel);
    for (const int size : sizes) makes.push_back(size + 2 * padding - kernel + 1);
    const auto count = [](const std::vector<int>& of) {
      return std::accumulate(of.begin(), of.end(), 1, std::multiplies<>());
    };
    Matrix a = draw(kImages * count(sizes), kChannels);
    for (const std::size_t number : chain_.before)
      for (double& v : a.at) v = op(number).value(v, 0);
    const int seen = each ? 1 : kChannels;  // channels in a window
    const Matrix w = weighted ? draw(count(taps) * seen, kChannels) : Matrix{0, 0, {}};
    const bool is_max = one.windows == Windows::kMax;
    v_ = {kImages * count(makes), kChannels, {}};
    for (int r = 0; r < v_.rows; ++r)
      for (int c = 0; c < v_.columns; ++c) {
        double sum = is_max ? -std::numeric_limits<double>::infinity() : 0;
        for (int tap = 0; tap < count(taps); ++tap) {
          int from = 0;  // the place in the image
          bool inside = true;
          for (std::size_t d = 0; d < sizes.size(); ++d) {
            int behind = 1, taps_behind = 1;
            for (std::size_t k = d + 1; k < sizes.size(); ++k) {
              behind *= makes[k];
              taps_behind *= kernel;
            }
            const int at = r % count(makes) / behind % makes[d] - padding + tap / taps_behind % kernel;
            inside = inside && at >= 0 && at < sizes[d];
            from = from * sizes[d] + at;
          }
          if (!inside) continue;
          from += r / count(makes) * count(sizes);
          for (int k = 0; k < seen; ++k) {
            const double v = a(from, each ? c : k);
            sum = is_max ? std::max(sum, v) : sum + v * (weighted ? w(tap * seen + k, c) : 1.0 / count(taps));
          }
        }
        v_.at.push_back(sum);
      }
  }

  void step(const Operator& one, const Matrix& begun) {
    if (one.place == Place::kRow) return row(one);
    Matrix o{1, 1, {std::strtod(one.operand_values, nullptr)}};
    if (one.operand == Operand::kStart) o = begun;
    if (one.operand == Operand::kMatrix) o = draw(v_.rows, v_.columns);
    if (one.operand == Operand::kRowVector) o = draw(1, v_.columns);
    if (one.operand == Operand::kColumnVector) o = draw(v_.rows, 1);
    for (int r = 0; r < v_.rows; ++r)
      for (int c = 0; c < v_.columns; ++c)
        v_(r, c) = one.value(v_(r, c), o(o.rows == 1 ? 0 : r, o.columns == 1 ? 0 : c));
  }

  void row(const Operator& one) {
    const std::string_view name = one.name;
    const double n = v_.columns, eps = 1e-5;
    for (int r = 0; r < v_.rows; ++r) {
      double sum = 0, squares = 0, most = -std::numeric_limits<double>::infinity(), exps = 0, spread = 0;
      double magnitudes = 0;
      for (int c = 0; c < v_.columns; ++c) {
        sum += v_(r, c);
        squares += v_(r, c) * v_(r, c);
        magnitudes += std::fabs(v_(r, c));
        most = std::max(most, v_(r, c));
      }
      for (int c = 0; c < v_.columns; ++c) {
        exps += std::exp(v_(r, c) - most);
        spread += (v_(r, c) - sum / n) * (v_(r, c) - sum / n);
      }
      for (int c = 0; c < v_.columns; ++c) {
        double& v = v_(r, c);
        if (name == "center") v -= sum / n;
        if (name == "subtract_max") v -= most;
        if (name == "rms_norm") v /= std::sqrt(squares / n + eps);
        if (name == "l2_norm") v /= std::sqrt(squares + eps);
        if (name == "row_softmax") v = std::exp(v - most) / exps;
        if (name == "log_softmax") v -= most + std::log(exps);
        if (name == "l1_norm") v /= magnitudes / n;
        if (name == "unit_norm") v /= std::sqrt(squares);
        if (name == "standardize") v = (v - sum / n) / std::sqrt(spread / n + eps);
      }
    }
  }

  std::vector<double> end(const Operator& one) {
    const std::string_view name = one.name;
    const bool by_column = one.place == Place::kColumnEnd;
    std::vector<double> out;
    if (one.place == Place::kAllEnd) {
      double sum = 0;
      for (const double v : v_.at) sum += v;
      return {name == "all_mean" ? sum / static_cast<double>(v_.at.size()) : sum};
    }
    if (one.place == Place::kScan) {
      for (int r = 0; r < v_.rows; ++r) {
        double sum = 0;
        for (int c = 0; c < v_.columns; ++c) out.push_back(sum += v_(r, c));
      }
      return out;
    }
    for (int i = 0; i < (by_column || one.place == Place::kTranspose ? v_.columns : v_.rows); ++i) {
      const int n = by_column || one.place == Place::kTranspose ? v_.rows : v_.columns;
      const auto at = [&](int k) {
        return by_column || one.place == Place::kTranspose ? v_(k, i) : v_(i, k);
      };
      double sum = 0, squares = 0, most = at(0), least = at(0), exps = 0;
      for (int k = 0; k < n; ++k) {
        if (one.place == Place::kTranspose) out.push_back(at(k));
        sum += at(k);
        squares += at(k) * at(k);
        most = std::max(most, at(k));
        least = std::min(least, at(k));
      }
      for (int k = 0; k < n; ++k) exps += std::exp(at(k) - most);
      if (name.ends_with("_sum")) out.push_back(sum);
      if (name.ends_with("_mean")) out.push_back(sum / n);
      if (name.ends_with("_max")) out.push_back(most);
      if (name == "row_min") out.push_back(least);
      if (name == "row_norm") out.push_back(std::sqrt(squares));
      if (name == "logsumexp") out.push_back(most + std::log(exps));
    }
    return out;
  }

  const Chain& chain_;
  const std::uint64_t seed_;
  const int changed_;
  const bool by_kind_;
  const std::vector<Input> inputs_;
  int drawn_ = 0;
  Matrix v_{0, 0, {}};
};

}  // namespace

std::vector<std::string> Chain::names() const {
  std::vector<std::string> out;
  for (const std::size_t number : all_of(*this)) out.emplace_back(op(number).name);
  return out;
}

std::vector<std::string> Chain::pairs() const {
  const std::vector<std::string> all = names();
  std::vector<std::string> out;
  for (std::size_t i = 1; i < all.size(); ++i) out.push_back(all[i - 1] + ">" + all[i]);
  return out;
}

std::vector<Input> inputs_of(const Chain& chain) {
  std::vector<Input> out;
  Names names;
  const std::string_view start = op(chain.start).name;
  if (start == "gather_rows") {
    out.push_back({names.fresh("t"), Operand::kMatrix, "normal(0, 1)", false, true});
    out.push_back({names.fresh("idx"), Operand::kColumnVector, "integers(0, V)", true, false});
  } else {
    const bool factors = start == "matmul" || is_convolution(op(chain.start));
    out.push_back({names.fresh("x"), Operand::kMatrix, "normal(0, 1)", false, factors || has_windows(chain)});
    if (factors) out.push_back({names.fresh("w"), Operand::kMatrix, "normal(0, 1 / sqrt(K))", false, true});
  }
  for (const std::size_t number : chain.steps)
    if (const Operator& one = op(number); has_input(one))
      out.push_back({names.fresh(one.operand_name), one.operand, one.operand_values});
  return out;
}

const char* dtype_of(Precision precision) {
  return precision == Precision::kFloat16    ? "float16"
         : precision == Precision::kBFloat16 ? "bfloat16"
                                             : "float32";
}
const char* cuda_type_of(Precision precision) {
  return precision == Precision::kFloat16    ? "half"
         : precision == Precision::kBFloat16 ? "__nv_bfloat16"
                                             : "float";
}
int bytes_of(Precision precision) { return precision == Precision::kFloat32 ? 4 : 2; }

bool can_lie(const Chain& chain, Storage storage) {
  if (storage == Storage::kRows) return true;
  const bool transposes = chain.has_end() && op(chain.end).place == Place::kTranspose;
  return op(chain.start).name == std::string_view("x") && (storage == Storage::kWider || !transposes);
}

std::optional<Precision> half_precision_of(const Chain& chain) {
  if (has_windows(chain) || op(chain.start).name == std::string_view("matmul")) return std::nullopt;
  const auto sums = [](const Operator& one) {
    return one.place == Place::kScan ||
           std::any_of(one.passes.begin(), one.passes.end(), [](const Pass& pass) {
             return pass.fold == Fold::kSum &&
                    std::string_view(pass.finish).find("/ N") == std::string_view::npos;
           });
  };
  int products = 0;  // of two values that may both be large
  for (const std::size_t number : chain.steps) {
    const Operator& one = op(number);
    if (sums(one) && !std::string_view(one.name).ends_with("softmax")) return Precision::kBFloat16;
    products += one.name == std::string_view("square") || one.operand == Operand::kStart ||
                one.operand == Operand::kMatrix;
  }
  const bool large = products > 1 || (chain.has_end() && sums(op(chain.end)));
  return large ? Precision::kBFloat16 : Precision::kFloat16;
}

bool has_branch(const Chain& chain) {
  return std::any_of(chain.steps.begin(), chain.steps.end(),
                     [](std::size_t step) { return op(step).branches; });
}

std::size_t start_inputs(const Chain& chain) {
  const Operator& start = op(chain.start);
  return std::string_view(start.name) == "x" || family_of(start) == "pooling" ? 1 : 2;
}

std::vector<std::pair<std::string, double>> scalars_of(const Chain& chain) {
  std::vector<std::pair<std::string, double>> out;
  for (const std::size_t number : chain.steps) {
    const Operator& one = op(number);
    if (one.operand != Operand::kScalar) continue;
    const auto known = [&](const auto& scalar) { return scalar.first == one.operand_name; };
    if (std::none_of(out.begin(), out.end(), known))
      out.emplace_back(one.operand_name, std::strtod(one.operand_values, nullptr));
  }
  return out;
}

std::vector<double> evaluate(const Chain& chain, std::uint64_t seed, int changed, bool by_kind) {
  return Evaluation(chain, seed, changed, by_kind).run();
}

}  // namespace warpsmith::synthesis
