#include "source.h"

#include <algorithm>

#include "../common/directives.h"
#include "../common/source_path.h"
#include "warpsmith/base/text.h"
#include "warpsmith/task/hosted_files.h"

namespace warpsmith::toolchain {

namespace {

// What host code has besides what is_device_header() names. Folders end with a slash.
constexpr std::string_view kHostHeaders =
    "thrust/ driver_types.h cublas_v2.h cublas_api.h cublasLt.h cudnn.h cudnn_v9.h cudnn_ops.h "
    "cudnn_cnn.h cudnn_adv.h cudnn_graph.h cudnn_backend.h cudnn_version.h library_types.h "
    "cuda_profiler_api.h cudaTypedefs.h curand.h";

// C++'s own, without those that reach for files and programs. What the child cannot do it cannot do by any
// header.
constexpr std::string_view kStandardHeaders =
    "algorithm array atomic bit bitset cassert cctype cerrno cfloat chrono cinttypes climits cmath "
    "complex concepts condition_variable cstddef cstdint cstdio cstdlib cstring deque exception "
    "functional future initializer_list iomanip iostream istream iterator limits list map memory mutex "
    "new numeric optional ostream queue random ratio set span sstream stack stdexcept string "
    "string_view thread tuple type_traits typeinfo unordered_map unordered_set utility variant vector "
    "stdio.h stdlib.h string.h stdbool.h";

// Those of torch that ours stand in for.
constexpr std::string_view kTensorHeaders =
    "torch/extension.h torch/torch.h torch/types.h torch/all.h torch/python.h ATen/ATen.h "
    "ATen/Dispatch.h ATen/core/Tensor.h ATen/cuda/CUDAContext.h ATen/cuda/CUDABlas.h "
    "ATen/cuda/Exceptions.h c10/cuda/CUDAException.h c10/cuda/CUDAFunctions.h c10/cuda/CUDAGuard.h "
    "c10/cuda/CUDAStream.h c10/util/BFloat16.h c10/util/Exception.h c10/util/Half.h c10/util/Optional.h "
    "pybind11/pybind11.h warpsmith/extension.h";

bool is_unit(std::string_view path) {
  return path.ends_with(".cu") || path.ends_with(".cpp") || path.ends_with(".cc") || path.ends_with(".cxx");
}

bool is_library_header(std::string_view name) {
  if (!is_plain_path(name)) return false;
  return is_device_header(name) || is_listed(kHostHeaders, name) || is_listed(kStandardHeaders, name) ||
         is_listed(kTensorHeaders, name);
}

// Reads the files of one candidate.
class Reader {
 public:
  explicit Reader(const Candidate& candidate) : candidate_(candidate) {
    for (const SourceFile& file : candidate.files) paths_.insert(file.path);
  }

  ExtensionSources read() {
    if (std::optional<FileProblem> problem =
            problem_of_files(candidate_, task::is_native_source, "kernel.cu"))
      throw std::move(*problem);
    bool has_module = false;
    std::size_t with_forward = candidate_.files.size();
    for (std::size_t i = 0; i < candidate_.files.size(); ++i) {
      const SourceFile& file = candidate_.files[i];
      try {
        CleanSource clean;
        read_tokens(file.content, &clean);
        check_tokens(file.path, clean);
        has_module = has_module || names_module(clean);
        if (is_unit(file.path) && defines_forward(clean)) with_forward = i;
        out_.files.push_back({file.path, clean.text});
      } catch (const SourceProblem& problem) {
        throw ExtensionProblem{file.path, problem};
      }
      if (is_unit(file.path)) out_.units.push_back(file.path);
    }
    if (out_.units.empty()) fail(candidate_.files.front().path, "no file ends in .cu or .cpp");
    if (has_module) return std::move(out_);
    if (with_forward == candidate_.files.size())
      fail(candidate_.files.front().path,
           "no function `forward` is defined, and no PYBIND11_MODULE names one");
    out_.files[with_forward].content += "\nWARPSMITH_EXPORT(forward)\n";
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(const std::string& path, const std::string& message) {
    throw ExtensionProblem{path, {1, 1, message, false}};
  }

  void check_tokens(const std::string& path, const CleanSource& source) {
    refuse_hidden_text(source);
    for (const Token& t : source.tokens) {
      if (t.kind == TokenKind::kDirective) check_directive(path, source, t);
      const bool is_name = t.kind == TokenKind::kIdentifier;
      check_word(source, t, t,
                 is_name && (asks_for_files(t.text) || t.text == "import" || t.text == "__import"));
    }
  }

  // In code, and in what macros stand for.
  void check_word(const CleanSource& source, const Token& at, const Token& word, bool forbidden) {
    if (forbidden) refuse(source, at, "`" + std::string(word.text) + "` is no part of a candidate", false);
    if (word.kind == TokenKind::kString && word.text.find(".incbin") != std::string_view::npos)
      refuse(source, at, ".incbin is no part of a candidate", false);
    if (word.text == "getCurrentCUDABlasHandle") {
      out_.blas_handle = true;
      out_.libraries.insert("cublas");
    }
  }

  void check_directive(const std::string& path, const CleanSource& source, const Token& at) {
    const Directive directive = read_directive(source, at);
    if (directive.word == "include") {
      const std::string name(included_header(source, at, directive));
      if (is_own_file(path, name)) return;
      if (!is_library_header(name))
        refuse(
            source, at,
            "only CUDA's and C++'s own headers, torch/extension.h and the candidate's files can be included",
            false);
      if (name.starts_with("cudnn")) out_.libraries.insert("cudnn");
      if (name == "cublasLt.h") out_.libraries.insert("cublasLt");
      if (name.starts_with("cublas_")) out_.libraries.insert("cublas");
      if (name == "curand.h") refuse(source, at, "cuRAND's host part is not here", true);
      return;
    }
    if (directive.is_text()) {
      if (directive.body.find("dependency") != std::string_view::npos)
        refuse(source, at, "#pragma GCC dependency is no part of a candidate", false);
      return;
    }
    for (const Token& t : tokens_of(directive.body, at.line))
      check_word(source, at, t, asks_for_files(t.text) || steers_includes(t.text) || t.text == "_Pragma");
  }

  // From the folder of the file that includes it, or from the top.
  bool is_own_file(const std::string& from, const std::string& name) const {
    if (!is_plain_path(name)) return false;
    const std::size_t slash = from.rfind('/');
    return paths_.contains(name) ||
           (slash != std::string::npos && paths_.contains(from.substr(0, slash + 1) + name));
  }

  static bool names_module(const CleanSource& source) {
    return std::any_of(source.tokens.begin(), source.tokens.end(),
                       [](const Token& t) { return t.text == "PYBIND11_MODULE"; });
  }

  // `forward` and its parameters in front of a body, outside of every other.
  static bool defines_forward(const CleanSource& source) {
    int depth = 0;
    for (std::size_t i = 0; i + 1 < source.tokens.size(); ++i) {
      const std::string_view text = source.tokens[i].text;
      if (text == "{") ++depth;
      if (text == "}") --depth;
      if (depth != 0 || text != "forward" || source.tokens[i + 1].text != "(") continue;
      int open = 0;
      for (std::size_t j = i + 1; j + 1 < source.tokens.size(); ++j) {
        if (source.tokens[j].text == "(") ++open;
        if (source.tokens[j].text == ")" && --open == 0) {
          if (source.tokens[j + 1].text == "{") return true;
          break;
        }
      }
    }
    return false;
  }

  const Candidate& candidate_;
  std::set<std::string> paths_;
  ExtensionSources out_;
};

}  // namespace

const std::vector<std::string>& tensor_headers() {
  static const std::vector<std::string> names = split(kTensorHeaders, ' ');
  return names;
}

ExtensionSources read_extension(const Candidate& candidate) { return Reader(candidate).read(); }

}  // namespace warpsmith::toolchain
