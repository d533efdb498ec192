#include "warpsmith/synthesis/programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "warpsmith/base/text.h"
#include "warpsmith/synthesis/task_text.h"

namespace warpsmith::synthesis {

namespace {

using Lines = std::vector<std::string>;

constexpr std::int64_t kInRegisters = 1024;  // elements of a row that a warp's registers hold
constexpr int kInFloat = 8192;               // elements of a column whose pieces a float can sum

const char* begin_of(Fold fold) {
  return fold == Fold::kSum ? "0.f" : fold == Fold::kMax ? "-INFINITY" : "INFINITY";
}

std::string folded(Fold fold, const std::string& a, const std::string& term) {
  if (fold == Fold::kSum) return fmt::format("{} += {};", a, term);
  return fmt::format("{} = {}({}, {});", a, fold == Fold::kMax ? "fmaxf" : "fminf", a, term);
}

// The element of the operand `name` at `i`.
std::string element_of(const Operator& one, const std::string& name) {
  if (one.operand == Operand::kNone || one.operand == Operand::kScalar) return name;
  if (one.operand == Operand::kRowVector) return name + "[c]";
  return name + (one.operand == Operand::kColumnVector ? "[m]" : "[i]");
}

// A run of a chain's steps as one kernel has it: from what it reads to what it writes.
struct Part {
  std::string in;                   // a temporary; empty: the chain's start
  std::size_t first = 0, last = 0;  // steps [first, last)
  const Operator* end = nullptr;    // null: elements are written
  std::string out = "out";
};

// How the kernels of a program are written.
struct Style {
  std::string name;
  std::string element = "flat";   // flat, grid_stride, rows_2d, row_loop, chunk, vector4
  std::string row = "thread";     // thread, block, warp, registers
  std::string column = "thread";  // thread, pieces, tiles: as pieces, whose results a block of threads folds
  std::string all = "blocks";     // blocks, warps: how the threads of a block come together
  std::string scan = "thread", transpose = "direct", product = "direct";
  int block = 256;
};

class Writer {
 public:
  Writer(const Chain& chain, Style style, std::int64_t row, const Opening* opening)
      : chain_(chain),
        style_(std::move(style)),
        row_(row),
        opening_(opening),
        inputs_(inputs_of(chain)),
        operands_(operand_names_of(chain)) {}

  std::string source() {
    const std::vector<Part> parts = parts_of();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      kernel_ = parts.size() == 1 ? "k" : "k" + std::to_string(i + 1);
      write(parts[i]);
    }
    const char* const header = is_wide()                                 ? ""
                               : chain_.precision == Precision::kFloat16 ? "#include <cuda_fp16.h>\n"
                                                                         : "#include <cuda_bf16.h>\n";
    return fmt::format("{}\n{}{}\n", fmt::join(plan_, "\n"), header, fmt::join(code_, "\n"));
  }

 private:
  bool is_wide() const { return chain_.precision == Precision::kFloat32; }
  // An element of an input as a float, to compute with.
  std::string as_float(std::string element) const {
    return is_wide() ? element : "float(" + std::move(element) + ")";
  }
  // Of what a kernel reads or writes: temporaries are float32.
  const char* type_of(const std::string& name) const {
    return name == "out" || std::any_of(inputs_.begin(), inputs_.end(),
                                        [&](const Input& input) { return input.name == name; })
               ? cuda_type_of(chain_.precision)
               : "float";
  }
  bool is_product() const { return operators()[chain_.start].name == std::string("matmul"); }
  const Operator& step(std::size_t i) const { return operators()[chain_.steps[i]]; }
  bool has_rows(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i < last; ++i)
      if (step(i).place == Place::kRow) return true;
    return false;
  }

  std::vector<Part> parts_of() {
    const Operator* end = chain_.has_end() ? &operators()[chain_.end] : nullptr;
    const bool by_rows = end != nullptr && end->place == Place::kRowEnd;
    const std::size_t n = chain_.steps.size();
    std::vector<Part> parts;
    Part part;
    const auto cut = [&](std::size_t at) {
      part.last = at;
      part.out = "y" + std::string(parts.empty() ? "" : std::to_string(parts.size() + 1));
      plan_.push_back(fmt::format("// plan: temp {} float32[M, N]", part.out));
      parts.push_back(part);
      part = {.in = parts.back().out, .first = at};
    };
    if (is_product() && (has_rows(0, n) || end != nullptr)) {
      std::size_t at = 0;
      while (at < n && step(at).place != Place::kRow) ++at;
      cut(at);
    }
    if (end != nullptr && !by_rows && has_rows(part.first, n)) cut(n);
    part.last = n;
    part.end = end;
    parts.push_back(part);
    return parts;
  }

  // ---- what a kernel takes

  void use(const std::string& name) { used_.insert(name); }
  std::string arguments(bool typed, const Part& part) const {
    Lines out;
    const auto pointer = [&](const std::string& name, const char* type) {
      out.push_back(typed ? fmt::format("const {}* {}", type, name) : name);
    };
    if (!part.in.empty()) pointer(part.in, "float");
    for (const Input& input : inputs_)
      if (used_.contains(input.name)) pointer(input.name, input.is_index ? "long long" : type_of(input.name));
    out.push_back(typed ? fmt::format("{}* {}", type_of(part.out), part.out) : part.out);
    for (const auto& [name, value] : scalars_of(chain_))
      if (used_.contains(name)) out.push_back(typed ? "float " + name : name);
    for (const char* size : {"M", "N", "K"})
      if (std::string(size) != "K" || used_.contains("K"))
        out.push_back(typed ? fmt::format("int {}", size) : size);
    return fmt::format("{}", fmt::join(out, ", "));
  }

  // ---- elements

  std::string load(const Part& part) { return part.in.empty() ? start() : part.in + "[i]"; }
  std::string start() {
    const std::string start = operators()[chain_.start].name;
    if (start == "x") {
      use("x");
      const bool wider = chain_.storage == Storage::kWider, columns = chain_.storage == Storage::kColumns;
      return as_float(wider ? "x[m * 2 * N + c]" : columns ? "x[c * M + m]" : "x[i]");
    }
    use("t");
    use("idx");
    return as_float("t[idx[m] * N + c]");
  }
  std::string operand(std::size_t i, bool as_parameter) {
    if (step(i).operand == Operand::kNone) return "";
    if (step(i).operand == Operand::kStart && !as_parameter) return start();
    use(operands_[i]);
    if (as_parameter || !has_input(step(i))) return operands_[i];
    return as_float(element_of(step(i), operands_[i]));
  }
  // "v = …;" of step i; `results`: of its passes.
  std::string line(std::size_t i, const Lines& results, bool as_parameter = false) {
    std::string text = replaced(step(i).cuda, "{o}", operand(i, as_parameter));
    for (std::size_t k = 0; k < results.size(); ++k)
      text = replaced(text, fmt::format("{{{}}}", k), results[k]);
    return "v = " + text + ";";
  }
  // What the steps before `last` make of an element, from its load on; results_ of their passes are known.
  Lines element(const Part& part, std::size_t last) {
    Lines out;
    if (opening_ == nullptr) {
      out.push_back("float v = " + load(part) + ";");
    } else {
      out = opening_->lines;
      for (std::size_t k = 0; k < start_inputs(chain_); ++k) use(inputs_[k].name);
    }
    for (std::size_t i = part.first; i < last; ++i)
      out.push_back(line(i, step(i).place == Place::kRow ? results_[i] : Lines{}));
    return out;
  }
  // Whether the lines name the row or the column of an element.
  bool names(const Lines& lines, const std::string& word) const {
    if (opening_ != nullptr && opening_->names_channel && word == "c") return true;
    for (const std::string& text : lines)
      if (text.find("[" + word + "]") != std::string::npos ||
          (chain_.storage != Storage::kRows && text.find("[" + word + " * ") != std::string::npos) ||
          text.find(" + " + word + "]") != std::string::npos)
        return true;
    return false;
  }

  // The row and the column of the element at `i`, where the lines `work` name them.
  Lines places(const Lines& work) const {
    Lines out;
    if (names(work, "m")) out.emplace_back("int m = i / N;");
    if (names(work, "c"))
      out.push_back(fmt::format("int c = {};", opening_ == nullptr ? "i % N" : opening_->channel));
    return out;
  }

  // ---- kernels

  void launch(const std::string& grid, const std::string& block, const Part& part) {
    plan_.push_back(
        fmt::format("// plan: launch {}<<<{}, {}>>>({})", kernel_, grid, block, arguments(false, part)));
  }
  void kernel(const Part& part, const Lines& body, const std::string& name = "") {
    code_.push_back(fmt::format("extern \"C\" __global__ void {}({}) {{", name.empty() ? kernel_ : name,
                                arguments(true, part)));
    for (const std::string& text : body) code_.push_back(text.empty() ? "" : "  " + text);
    code_.emplace_back("}");
  }
  static void add(Lines& to, const Lines& lines, int depth) {
    for (const std::string& text : lines)
      to.push_back(std::string(static_cast<std::size_t>(2 * depth), ' ') + text);
  }

  void write(const Part& part) {
    used_.clear();
    const bool rows =
        has_rows(part.first, part.last) || (part.end != nullptr && part.end->place == Place::kRowEnd);
    if (part.in.empty() && is_product()) return product(part);
    if (rows) return style_.row == "registers" ? registers(part) : row(part);
    if (part.end == nullptr) return elements(part);
    if (part.end->place == Place::kColumnEnd) return column(part);
    if (part.end->place == Place::kAllEnd) return all(part);
    if (part.end->place == Place::kScan) return scan(part);
    return transpose(part);
  }

  // One kernel over elements, each by itself.
  void elements(const Part& part) {
    if (style_.element == "vector4") return vector4(part);
    Lines body, work = element(part, part.last);
    const Lines place = places(work);
    work.push_back(part.out + "[i] = v;");
    const std::string b = std::to_string(style_.block);
    std::string grid, block = b;
    if (style_.element == "flat") {
      body = {fmt::format("int i = blockIdx.x * {} + threadIdx.x;", b), "if (i >= M * N) return;"};
      add(body, place, 0);
      add(body, work, 0);
      grid = fmt::format("cdiv(M * N, {})", b);
    } else if (style_.element == "grid_stride") {
      body = {fmt::format("for (int i = blockIdx.x * {} + threadIdx.x; i < M * N; i += gridDim.x * {}) {{", b,
                          b)};
      add(body, place, 1);
      add(body, work, 1);
      body.emplace_back("}");
      grid = fmt::format("min(cdiv(M * N, {}), 4 * SMS)", b);
    } else if (style_.element == "chunk") {
      body = {fmt::format("int j = (blockIdx.x * {} + threadIdx.x) * 4;", b),
              "for (int i = j; i < j + 4 && i < M * N; i++) {"};
      add(body, place, 1);
      add(body, work, 1);
      body.emplace_back("}");
      grid = fmt::format("cdiv(M * N, {})", 4 * style_.block);
    } else if (style_.element == "rows_2d") {
      body = {"int c = blockIdx.x * 32 + threadIdx.x;", "int m = blockIdx.y * 8 + threadIdx.y;",
              "if (c >= N || m >= M) return;", "int i = m * N + c;"};
      add(body, work, 0);
      grid = "dim3(cdiv(N, 32), cdiv(M, 8))";
      block = "dim3(32, 8)";
    } else {  // row_loop
      body = {"int m = blockIdx.x;", fmt::format("for (int c = threadIdx.x; c < N; c += {}) {{", b),
              "  int i = m * N + c;"};
      add(body, work, 1);
      body.emplace_back("}");
      grid = "M";
    }
    launch(grid, block, part);
    kernel(part, body);
  }

  // Four elements a thread where rows allow it, by a function of one; else one. Of a known row: four alone.
  void vector4(const Part& part) {
    Lines function, typed = {"float v"}, single = {load(part)};
    std::vector<Lines> of_four(4);
    const std::string four = is_wide() ? "float4" : "Four";
    const auto load_four = [&](const std::string& name, const std::string& from, const char* place) {
      return fmt::format("{0} {1}4 = ((const {0}*){2})[{3}];", four, name, from, place);
    };
    Lines loads = {load_four("v", !part.in.empty() ? part.in : "x", "i")};
    const char* const kParts = "xyzw";
    for (int p = 0; p < 4; ++p)
      of_four[static_cast<std::size_t>(p)] = {as_float(fmt::format("v4.{}", kParts[p]))};
    for (std::size_t i = part.first; i < part.last; ++i) {
      function.push_back(line(i, {}, true));
      const Operator& one = step(i);
      if (one.operand == Operand::kNone) continue;
      const std::string name = operands_[i];
      const auto known = std::find(typed.begin(), typed.end(), "float " + name);
      if (known != typed.end()) continue;  // a scalar that comes twice
      typed.push_back("float " + name);
      single.push_back(operand(i, false));
      if (one.operand == Operand::kRowVector) loads.push_back(load_four(name, name, "i % (N / 4)"));
      if (one.operand == Operand::kMatrix) loads.push_back(load_four(name, name, "i"));
      for (int p = 0; p < 4; ++p)
        of_four[static_cast<std::size_t>(p)].push_back(
            one.operand == Operand::kScalar         ? name
            : one.operand == Operand::kStart        ? of_four[static_cast<std::size_t>(p)].front()
            : one.operand == Operand::kColumnVector ? as_float(name + "[i / (N / 4)]")
                                                    : as_float(fmt::format("{}4.{}", name, kParts[p])));
    }
    if (!is_wide())
      code_.push_back(fmt::format("struct alignas(8) Four {{ {} x, y, z, w; }};", type_of(part.out)));
    code_.push_back(fmt::format("__device__ float f({}) {{", fmt::join(typed, ", ")));
    add(code_, function, 1);
    code_.insert(code_.end(), {"  return v;", "}"});
    const std::string b = std::to_string(style_.block), one = kernel_;
    if (row_ == 0) {
      plan_.emplace_back("// plan: if N % 4 == 0");
      kernel_ = one + "4";
    }
    launch(fmt::format("cdiv(M * N, {})", 4 * style_.block), b, part);
    Lines body = {fmt::format("int i = blockIdx.x * {} + threadIdx.x;", b), "if (i * 4 >= M * N) return;"};
    add(body, loads, 0);
    body.push_back(four + " o;");
    for (int p = 0; p < 4; ++p)
      body.push_back(
          fmt::format("o.{} = f({});", kParts[p], fmt::join(of_four[static_cast<std::size_t>(p)], ", ")));
    body.push_back(fmt::format("(({}*){})[i] = o;", four, part.out));
    kernel(part, body);
    if (row_ != 0) return;
    kernel_ = one;
    plan_.emplace_back("// plan: else");
    launch(fmt::format("cdiv(M * N, {})", b), b, part);
    plan_.emplace_back("// plan: end");
    body = {fmt::format("int i = blockIdx.x * {} + threadIdx.x;", b), "if (i >= M * N) return;"};
    add(body, places(single), 0);
    body.push_back(fmt::format("{}[i] = f({});", part.out, fmt::join(single, ", ")));
    kernel(part, body);
  }

  // A loop over a row by those that share it.
  Lines row_loop(const Lines& work) const {
    const std::string step_by = style_.row == "thread" ? "c++"
                                : style_.row == "warp" ? "c += 32"
                                                       : fmt::format("c += {}", style_.block);
    Lines out = {fmt::format("for (int c = {}; c < N; {}) {{", style_.row == "thread" ? "0" : "j", step_by),
                 "  int i = m * N + c;"};
    add(out, work, 1);
    out.emplace_back("}");
    return out;
  }
  // A sum of thousands, one after the other, is off by more than a tree's: pieces of 32 are summed.
  static Lines summed_by_pieces(const Lines& work, const std::string& h) {
    Lines out = {"for (int c0 = 0; c0 < N; c0 += 32) {", "  float p = 0.f;",
                 "  for (int c = c0; c < min(c0 + 32, N); c++) {", "    int i = m * N + c;"};
    add(out, work, 2);
    out.insert(out.end(), {"  }", fmt::format("  {} += p;", h), "}"});
    return out;
  }
  // What the threads of a row have folded, together, to all of them.
  Lines together(Fold fold, const std::string& h) const {
    if (style_.row == "thread") return {};
    if (style_.row == "warp" || style_.row == "registers")
      return {"for (int z = 16; z > 0; z /= 2) " +
              folded(fold, h, fmt::format("__shfl_xor_sync(0xffffffff, {}, z)", h))};
    return {fmt::format("part[j] = {};", h),
            "__syncthreads();",
            fmt::format("for (int z = {}; z > 0; z /= 2) {{", style_.block / 2),
            "  if (j < z) " + folded(fold, "part[j]", "part[j + z]"),
            "  __syncthreads();",
            "}",
            fmt::format("{} = part[0];", h),
            "__syncthreads();"};
  }
  // The passes of an operator over the elements that the steps before `last` make; returns the results'
  // names.
  Lines passes(const Part& part, const Operator& one, std::size_t last, const std::string& scalar,
               Lines& body) {
    return passes_over(one, scalar, body,
                       [&](const Pass& pass, const std::string& h, const std::string& term) {
                         Lines work = element(part, last);
                         const bool long_sum = style_.row == "thread" && pass.fold == Fold::kSum;
                         work.push_back(folded(pass.fold, long_sum ? "p" : h, term));
                         add(body, long_sum ? summed_by_pieces(work, h) : row_loop(work), 0);
                       });
  }
  // The same; `fold` writes the loop that folds `term` into the variable `h`.
  Lines passes_over(
      const Operator& one, const std::string& scalar, Lines& body,
      const std::function<void(const Pass&, const std::string& h, const std::string& term)>& fold) {
    Lines results;
    for (const Pass& pass : one.passes) {
      const std::string h = "h" + std::to_string(next_++);
      const auto filled = [&](std::string text) {
        text = replaced(replaced(std::move(text), "{o}", scalar), "{a}", h);
        for (std::size_t k = 0; k < results.size(); ++k)
          text = replaced(text, fmt::format("{{{}}}", k), results[k]);
        return text;
      };
      body.push_back(fmt::format("float {} = {};", h, begin_of(pass.fold)));
      fold(pass, h, filled(pass.term));
      add(body, together(pass.fold, h), 0);
      if (const std::string end = filled(pass.finish); end != h)
        body.push_back(fmt::format("{} = {};", h, end));
      results.push_back(h);
    }
    return results;
  }

  // A warp a row, which lies in its registers: each element is read and computed once. Longer rows: warp. Of
  // a known row: the registers alone.
  void registers(const Part& part) {
    constexpr const char* kLoop = "for (int z = 0; z < 32; z++) {";
    results_.assign(chain_.steps.size(), {});
    next_ = 0;
    Lines body = {"int m = blockIdx.x * 4 + threadIdx.x / 32;", "int j = threadIdx.x % 32;",
                  "if (m >= M) return;", "float e[32];"};
    // Steps [first, last) on each element, behind `begin`, and `end` behind them.
    const auto each = [&](const std::string& begin, std::size_t first, std::size_t last,
                          const std::string& end) {
      body.insert(body.end(), {"#pragma unroll", kLoop, "  int c = z * 32 + j;", "  int i = m * N + c;",
                               "  if (c < N) {", "    " + begin});
      for (std::size_t i = first; i < last; ++i)
        body.push_back("    " + line(i, step(i).place == Place::kRow ? results_[i] : Lines{}));
      body.insert(body.end(), {"    " + end, "  }", "}"});
    };
    const auto fold = [&](const Operator& one, const std::string& scalar) {
      return passes_over(
          one, scalar, body, [&](const Pass& pass, const std::string& h, const std::string& term) {
            body.insert(body.end(), {"#pragma unroll", kLoop, "  float v = e[z];",
                                     "  if (z * 32 + j < N) " + folded(pass.fold, h, term), "}"});
          });
    };
    std::string begin = "float v = " + load(part) + ";";
    std::size_t first = part.first;
    for (std::size_t i = part.first; i < part.last; ++i) {
      if (step(i).place != Place::kRow) continue;
      each(begin, first, i, "e[z] = v;");
      if (step(i).operand == Operand::kScalar) use(operands_[i]);
      results_[i] = fold(step(i), operands_[i]);
      begin = "float v = e[z];";
      first = i;
    }
    if (part.end != nullptr) {
      each(begin, first, part.last, "e[z] = v;");
      body.push_back(fmt::format("if (j == 0) {}[m] = {};", part.out, fold(*part.end, "").back()));
    } else {
      each(begin, first, part.last, part.out + "[i] = v;");
    }
    const std::string name = kernel_;
    if (row_ == 0) {
      plan_.push_back(fmt::format("// plan: if N <= {}", kInRegisters));
      kernel_ = name + "r";
    }
    launch("cdiv(M, 4)", "128", part);
    kernel(part, body);
    if (row_ != 0) return;
    kernel_ = name;
    plan_.emplace_back("// plan: else");
    style_.row = "warp";
    row(part);
    style_.row = "registers";
    plan_.emplace_back("// plan: end");
  }

  // One kernel over rows: passes of each operator that wants some, then the elements or what a row becomes.
  void row(const Part& part) {
    results_.assign(chain_.steps.size(), {});
    next_ = 0;
    Lines body;
    const std::string b = std::to_string(style_.block);
    std::string grid = "M", block = b;
    if (style_.row == "thread") {
      body = {fmt::format("int m = blockIdx.x * {} + threadIdx.x;", b), "if (m >= M) return;"};
      grid = fmt::format("cdiv(M, {})", b);
    } else if (style_.row == "warp") {
      body = {fmt::format("int m = blockIdx.x * {} + threadIdx.x / 32;", style_.block / 32),
              "int j = threadIdx.x % 32;", "if (m >= M) return;"};
      grid = fmt::format("cdiv(M, {})", style_.block / 32);
    } else {
      body = {fmt::format("__shared__ float part[{}];", b), "int m = blockIdx.x;", "int j = threadIdx.x;"};
    }
    for (std::size_t i = part.first; i < part.last; ++i) {
      if (step(i).place != Place::kRow) continue;
      if (step(i).operand == Operand::kScalar) use(operands_[i]);
      results_[i] = passes(part, step(i), i, operands_[i], body);
    }
    if (part.end != nullptr && part.end->place == Place::kRowEnd) {
      const Lines results = passes(part, *part.end, part.last, "", body);
      const std::string store = fmt::format("{}[m] = {};", part.out, results.back());
      body.push_back(style_.row == "thread" ? store : "if (j == 0) " + store);
    } else {
      Lines work = element(part, part.last);
      work.push_back(part.out + "[i] = v;");
      add(body, row_loop(work), 0);
    }
    launch(grid, block, part);
    kernel(part, body);
  }

  // Names of a part's kernels where it has two.
  std::pair<std::string, std::string> two_kernels() const {
    if (kernel_ == "k") return {"k1", "k2"};
    return {kernel_, "k" + std::to_string(code_.size())};
  }

  // "float h = 0.f;": what the results of a column's pieces are folded into. A thousand of them, added up in
  // float32 one after the other, miss the bound, most of all where equal elements are rounded alike.
  std::string of_pieces(const char* name, Fold fold) const {
    if (fold == Fold::kSum && is_wide() && gpu_rows(chain_) > kInFloat)
      return fmt::format("double {} = 0.;", name);
    return fmt::format("float {} = {};", name, begin_of(fold));
  }

  void column(const Part& part) {
    const Pass& pass = part.end->passes.front();
    Lines work = element(part, part.last);
    work.push_back(folded(pass.fold, "a", pass.term));
    const std::string b = std::to_string(style_.block), result = replaced(pass.finish, "{a}", "a");
    Lines body = {fmt::format("int c = blockIdx.x * {} + threadIdx.x;", b), "if (c >= N) return;"};
    const auto loop = [&](const std::string& from, const std::string& to, int depth) {
      add(body,
          {fmt::format("float a = {};", begin_of(pass.fold)),
           fmt::format("for (int m = {}; m < {}; m++) {{", from, to), "  int i = m * N + c;"},
          depth);
      add(body, work, depth + 1);
      add(body, {"}"}, depth);
    };
    if (style_.column == "thread") {
      // A long sum in pieces, as of rows.
      body.push_back(of_pieces("h", pass.fold));
      body.emplace_back("for (int m0 = 0; m0 < M; m0 += 64) {");
      loop("m0", "min(m0 + 64, M)", 1);
      add(body, {folded(pass.fold, "h", "a")}, 1);
      body.emplace_back("}");
      body.push_back(fmt::format("{}[c] = {};", part.out, replaced(pass.finish, "{a}", "h")));
      launch(fmt::format("cdiv(N, {})", b), b, part);
      return kernel(part, body);
    }
    // Pieces of 64 rows, then their results.
    const auto [first, second] = two_kernels();
    plan_.emplace_back("// plan: temp p float32[cdiv(M, 64), N]");
    Part pieces = part;
    pieces.out = "p";
    loop("blockIdx.y * 64", "min(M, (int)blockIdx.y * 64 + 64)", 0);
    body.emplace_back("p[blockIdx.y * N + c] = a;");
    kernel_ = first;
    launch(fmt::format("dim3(cdiv(N, {}), cdiv(M, 64))", b), b, pieces);
    kernel(pieces, body);
    kernel_ = second;
    const bool tiles = style_.column == "tiles";
    plan_.push_back(fmt::format("// plan: launch {}<<<cdiv(N, {}), {}>>>(p, {}, M, N)", second,
                                tiles ? "32" : b, tiles ? "dim3(32, 32)" : b, part.out));
    code_.push_back(fmt::format("extern \"C\" __global__ void {}(const float* p, {}* {}, int M, int N) {{",
                                second, type_of(part.out), part.out));
    Lines rest = {fmt::format("int c = blockIdx.x * {} + threadIdx.x;", b), "if (c >= N) return;",
                  of_pieces("a", pass.fold),
                  "for (int j = 0; j * 64 < M; j++) " + folded(pass.fold, "a", "p[j * N + c]"),
                  fmt::format("{}[c] = {};", part.out, result)};
    if (tiles)
      rest = {
          "__shared__ float part[32][33];",
          "int c = blockIdx.x * 32 + threadIdx.x;",
          fmt::format("float a = {};", begin_of(pass.fold)),
          "for (int j = threadIdx.y; j * 64 < M && c < N; j += 32) " + folded(pass.fold, "a", "p[j * N + c]"),
          "part[threadIdx.x][threadIdx.y] = a;",
          "__syncthreads();",
          "c = blockIdx.x * 32 + threadIdx.y;",
          "a = part[threadIdx.y][threadIdx.x];",
          "for (int z = 16; z > 0; z /= 2) " + folded(pass.fold, "a", "__shfl_xor_sync(0xffffffff, a, z)"),
          fmt::format("if (threadIdx.x == 0 && c < N) {}[c] = {};", part.out, result)};
    add(code_, rest, 1);
    code_.emplace_back("}");
  }

  // Each block a share of all elements, then one block their results.
  void all(const Part& part) {
    const Pass& pass = part.end->passes.front();
    const bool warps = style_.all == "warps";
    const auto [first, second] = two_kernels();
    const Lines together = warps ? Lines{"for (int z = 16; z > 0; z /= 2) " +
                                             folded(pass.fold, "a", "__shfl_xor_sync(0xffffffff, a, z)"),
                                         "if (j % 32 == 0) part[j / 32] = a;", "__syncthreads();",
                                         fmt::format("a = j < 8 ? part[j] : {};", begin_of(pass.fold)),
                                         "for (int z = 4; z > 0; z /= 2) " +
                                             folded(pass.fold, "a", "__shfl_xor_sync(0xffffffff, a, z)")}
                                 : Lines{"part[j] = a;",
                                         "__syncthreads();",
                                         "for (int z = 128; z > 0; z /= 2) {",
                                         "  if (j < z) " + folded(pass.fold, "part[j]", "part[j + z]"),
                                         "  __syncthreads();",
                                         "}",
                                         "a = part[0];"};
    const Lines begin = {warps ? "__shared__ float part[8];" : "__shared__ float part[256];",
                         "int j = threadIdx.x;", fmt::format("float a = {};", begin_of(pass.fold))};
    Lines body = begin, work = element(part, part.last);
    work.push_back(folded(pass.fold, "a", pass.term));
    body.emplace_back("for (int i = blockIdx.x * 256 + j; i < M * N; i += gridDim.x * 256) {");
    add(body, places(work), 1);
    add(body, work, 1);
    body.emplace_back("}");
    add(body, together, 0);
    body.emplace_back("if (j == 0) p[blockIdx.x] = a;");
    Part shares = part;
    shares.out = "p";
    plan_.emplace_back("// plan: let G = min(cdiv(M * N, 1024), 8 * SMS)");
    plan_.emplace_back("// plan: temp p float32[G]");
    kernel_ = first;
    launch("G", "256", shares);
    kernel(shares, body);
    plan_.push_back(fmt::format("// plan: launch {}<<<1, 256>>>(p, {}, M, N, G)", second, part.out));
    code_.push_back(
        fmt::format("extern \"C\" __global__ void {}(const float* p, {}* {}, int M, int N, int G) {{", second,
                    type_of(part.out), part.out));
    Lines rest = begin;
    rest.push_back("for (int i = j; i < G; i += 256) " + folded(pass.fold, "a", "p[i]"));
    add(rest, together, 0);
    rest.push_back(fmt::format("if (j == 0) {}[0] = {};", part.out, replaced(pass.finish, "{a}", "a")));
    add(code_, rest, 1);
    code_.emplace_back("}");
  }

  void scan(const Part& part) {
    Lines body, work = element(part, part.last);
    const std::string b = std::to_string(style_.block);
    if (style_.scan == "thread") {
      body = {fmt::format("int m = blockIdx.x * {} + threadIdx.x;", b), "if (m >= M) return;",
              "float a = 0.f, p = 0.f;", "for (int c = 0; c < N; c++) {", "  int i = m * N + c;"};
      add(body, work, 1);
      add(body, {"p += v;", part.out + "[i] = a + p;", "if (c % 32 == 31) {", "  a += p;", "  p = 0.f;", "}"},
          1);
      body.emplace_back("}");
      launch(fmt::format("cdiv(M, {})", b), b, part);
      return kernel(part, body);
    }
    // A warp a row: 32 elements at a time, and what the ones before them came to.
    body = {"int m = blockIdx.x * 4 + threadIdx.x / 32;",
            "int j = threadIdx.x % 32;",
            "if (m >= M) return;",
            "float a = 0.f;",
            "for (int c0 = 0; c0 < N; c0 += 32) {",
            "  int c = c0 + j;",
            "  int i = m * N + c;",
            "  float e = 0.f;",
            "  if (c < N) {"};
    add(body, work, 2);
    add(body,
        {"  e = v;", "}", "for (int z = 1; z < 32; z *= 2) {",
         "  float o = __shfl_up_sync(0xffffffff, e, z);", "  if (j >= z) e += o;", "}", "e += a;",
         "if (c < N) " + part.out + "[i] = e;", "a = __shfl_sync(0xffffffff, e, 31);"},
        1);
    body.emplace_back("}");
    launch("cdiv(M, 4)", "128", part);
    kernel(part, body);
  }

  void transpose(const Part& part) {
    Lines body, work = element(part, part.last);
    if (style_.transpose == "direct") {
      const std::string b = std::to_string(style_.block);
      body = {fmt::format("int i = blockIdx.x * {} + threadIdx.x;", b), "if (i >= M * N) return;",
              "int m = i / N;", "int c = i % N;"};
      add(body, work, 0);
      body.push_back(part.out + "[c * M + m] = v;");
      launch(fmt::format("cdiv(M * N, {})", b), b, part);
      return kernel(part, body);
    }
    body = {"__shared__ float part[32][33];", "int c = blockIdx.x * 32 + threadIdx.x;",
            "int m = blockIdx.y * 32 + threadIdx.y;", "int i = m * N + c;", "if (m < M && c < N) {"};
    add(body, work, 1);
    add(body, {"part[threadIdx.y][threadIdx.x] = v;"}, 1);
    add(body,
        {"}", "__syncthreads();", "c = blockIdx.x * 32 + threadIdx.y;", "m = blockIdx.y * 32 + threadIdx.x;",
         "if (m < M && c < N) " + part.out + "[c * M + m] = part[threadIdx.x][threadIdx.y];"},
        0);
    launch("dim3(cdiv(N, 32), cdiv(M, 32))", "dim3(32, 32)", part);
    kernel(part, body);
  }

  // A matrix product, the elementwise steps on its left factor, and those behind it.
  void product(const Part& part) {
    use("x");
    use(inputs_[1].name);
    use("K");
    const std::string w = inputs_[1].name, b = std::to_string(style_.block);
    const bool changes = !chain_.before.empty();
    // An element of the left factor as `v`.
    const auto left = [&](const std::string& load) {
      Lines out = {"float v = " + load + ";"};
      for (const std::size_t number : chain_.before)
        out.push_back(fmt::format("v = {};", operators()[number].cuda));
      return out;
    };
    Lines steps;
    if (changes) steps.emplace_back("float v = a;");
    for (std::size_t i = part.first; i < part.last; ++i) steps.push_back(line(i, {}));
    steps.push_back(part.out + "[i] = v;");
    Lines body;
    if (style_.product == "direct") {
      body = {fmt::format("int i = blockIdx.x * {} + threadIdx.x;", b), "if (i >= M * N) return;",
              "int m = i / N;", "int c = i % N;"};
      if (changes) {
        add(body, {"float a = 0.f;", "for (int l = 0; l < K; l++) {"}, 0);
        add(body, left("x[m * K + l]"), 1);
        add(body, {fmt::format("  a += v * {}[l * N + c];", w), "}"}, 0);
      } else {
        add(body,
            {"float v = 0.f;",
             fmt::format("for (int l = 0; l < K; l++) v += x[m * K + l] * {}[l * N + c];", w)},
            0);
      }
      add(body, steps, 0);
      launch(fmt::format("cdiv(M * N, {})", b), b, part);
      return kernel(part, body);
    }
    const std::string sum = changes ? "a" : "v",
                      x = "m < M && l + threadIdx.x < K ? x[m * K + l + threadIdx.x] : 0.f";
    body = {"__shared__ float xs[16][17];",           "__shared__ float ws[16][17];",
            "int c = blockIdx.x * 16 + threadIdx.x;", "int m = blockIdx.y * 16 + threadIdx.y;",
            fmt::format("float {} = 0.f;", sum),      "for (int l = 0; l < K; l += 16) {"};
    if (changes) {
      add(body, left(x), 1);
      body.emplace_back("  xs[threadIdx.y][threadIdx.x] = v;");
    } else {
      body.push_back(fmt::format("  xs[threadIdx.y][threadIdx.x] = {};", x));
    }
    add(body,
        {fmt::format(
             "  ws[threadIdx.y][threadIdx.x] = l + threadIdx.y < K && c < N ? {}[(l + threadIdx.y) * N + "
             "c] : 0.f;",
             w),
         "  __syncthreads();",
         fmt::format("  for (int z = 0; z < 16; z++) {} += xs[threadIdx.y][z] * ws[z][threadIdx.x];", sum),
         "  __syncthreads();", "}", "if (m >= M || c >= N) return;", "int i = m * N + c;"},
        0);
    add(body, steps, 0);
    launch("dim3(cdiv(N, 16), cdiv(M, 16))", "dim3(16, 16)", part);
    kernel(part, body);
  }

  const Chain& chain_;
  Style style_;
  const std::int64_t row_;  // N; 0: any
  const Opening* const opening_;
  const std::vector<Input> inputs_;
  const Lines operands_;  // of each step
  Lines plan_, code_;
  std::string kernel_;
  std::set<std::string> used_;
  std::vector<Lines> results_;  // of the passes of each step
  int next_ = 0;
};

}  // namespace

std::vector<std::string> operand_names_of(const Chain& chain) {
  const std::vector<Input> inputs = inputs_of(chain);
  std::vector<std::string> out;
  std::size_t next = start_inputs(chain);
  for (const std::size_t number : chain.steps) {
    const Operator& one = op(number);
    out.push_back(has_input(one) ? inputs[next++].name : one.operand_name);
  }
  return out;
}

std::string step_line(const Operator& step, const std::string& name) {
  return "v = " + replaced(step.cuda, "{o}", element_of(step, name)) + ";";
}

std::vector<Program> programs_of(const Chain& chain, std::int64_t row, const Opening* opening) {
  const Operator* end = chain.has_end() ? &operators()[chain.end] : nullptr;
  const bool product = op(chain.start).name == std::string("matmul");
  const bool apart =  // it is read one element at a time
      operators()[chain.start].name == std::string("gather_rows") || chain.storage != Storage::kRows;
  const bool rows = std::any_of(chain.steps.begin(), chain.steps.end(),
                                [](std::size_t n) { return operators()[n].place == Place::kRow; }) ||
                    (end != nullptr && end->place == Place::kRowEnd);
  std::vector<Style> styles;
  const auto variants = [&](std::string Style::*member, std::vector<std::pair<const char*, int>> values,
                            const char* prefix) {
    for (const auto& [value, block] : values) {
      Style style{.name = std::string(value) + prefix, .block = block};
      style.*member = value;
      styles.push_back(std::move(style));
    }
  };
  if (end != nullptr && end->place == Place::kColumnEnd)
    variants(&Style::column, {{"thread", 64}, {"pieces", 128}, {"tiles", 128}}, "_per_column");
  else if (end != nullptr && end->place == Place::kAllEnd)
    variants(&Style::all, {{"blocks", 256}, {"warps", 256}}, "_of_all");
  else if (end != nullptr && end->place == Place::kScan)
    variants(&Style::scan, {{"thread", 64}, {"warp", 128}}, "_per_row");
  else if (end != nullptr && end->place == Place::kTranspose)
    variants(&Style::transpose, {{"direct", 256}, {"tile", 256}}, "");
  else if (rows) {
    variants(&Style::row, {{"thread", 64}, {"warp", 128}, {"block", 256}, {"block", 128}}, "_per_row");
    if (row <= kInRegisters) variants(&Style::row, {{"registers", 128}}, "_per_row");
  } else if (opening != nullptr)
    variants(&Style::element, {{"flat", 256}, {"grid_stride", 128}, {"chunk", 128}}, "");
  else if (!product)
    variants(&Style::element,
             {{"flat", 256}, {"grid_stride", 128}, {"chunk", 256}, {"rows_2d", 256}, {"row_loop", 128}}, "");
  if (!rows && !product && !apart && opening == nullptr && end == nullptr && row % 4 == 0)
    variants(&Style::element, {{"vector4", 256}}, "");
  if (product && !rows && end == nullptr) variants(&Style::product, {{"direct", 256}, {"tiled", 256}}, "");
  std::vector<Program> out;
  std::set<std::string> names;
  for (const Style& style : styles)
    for (const char* way : {"direct", "tiled"}) {
      Style one = style;
      if (product && (rows || end != nullptr)) {
        one.product = way;
        one.name += std::string("_") + way;
      } else if (std::string(way) == "tiled") {
        continue;
      }
      if (!names.insert(one.name).second) one.name += "_" + std::to_string(one.block);
      out.push_back({one.name, Writer(chain, one, row, opening).source()});
    }
  return out;
}

}  // namespace warpsmith::synthesis
