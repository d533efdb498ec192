#include "request.h"

#include <algorithm>

#include "compiler.h"
#include "source.h"

namespace warpsmith::toolchain {

namespace {

constexpr const char* kStandard = "--std=c++20";
// Cooperative groups take the whole of CUDA's C++ library with them, 30 times the work, unless told not to.
constexpr const char* kNoCudaLibrary = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES";

// A standard that the candidate names comes behind, and wins; so do its other options. Of warnings nobody
// reads, and the log has room for errors. The assembler's figures go into the facts. nvcc has a host side for
// functions that say nothing, and knows the lambdas and members among them that kernels use: here all are the
// device's, and so are variables, which are then symbols like others.
const std::vector<std::string>& fixed_options() {
  static const std::vector<std::string> options = {"--disable-warnings", "--ptxas-options=-v",
                                                   "--device-as-default-execution-space",
                                                   std::string("--pre-include=") + kAlwaysIncluded};
  return options;
}

// Between what is defined for a candidate and its own text. No line of a candidate looks like this one.
constexpr std::string_view kOwnText = "#line 1\n";

}  // namespace

std::string_view own_text(std::string_view source) {
  const std::size_t at = source.find(kOwnText);
  return at == std::string_view::npos ? source : source.substr(at + kOwnText.size());
}

NvrtcRequest make_nvrtc_request(const Candidate& candidate, const ModuleNames& names) {
  CleanSource clean;
  read_tokens(candidate.source(), &clean);
  drop_dead_text(&clean);
  refuse_for_gpu(clean, [](std::string_view name) {
    return headers_for_nvrtc().contains(std::string(name)) || nvrtc_here().has_header(name);
  });
  const CandidateOptions own = read_options(candidate);
  NvrtcRequest request;
  // The text that was looked at, not the one that was handed in: comments cannot hide anything from us.
  // Its options' definitions stand behind our headers, which have such names as N and T of their own.
  request.source =
      own.defines.empty() ? clean.text : define_lines(own.defines) + std::string(kOwnText) + clean.text;
  request.headers = headers_for_nvrtc();
  request.options = fixed_options();
  const bool has_standard = std::any_of(own.device.begin(), own.device.end(), [](const std::string& o) {
    return o.find("-std=") != std::string::npos;
  });
  if (!has_standard) request.options.push_back(kStandard);
  if (!uses_cuda_library(clean)) request.options.push_back(kNoCudaLibrary);
  request.options.insert(request.options.end(), own.device.begin(), own.device.end());
  request.names = names.kernels;
  for (const std::string& s : names.symbols) request.names.push_back("&" + s);
  return request;
}

std::string nvrtc_options_id() {
  std::string text = std::string(" ") + kStandard + " " + kNoCudaLibrary;
  for (const std::string& o : fixed_options()) text += " " + o;
  return text;
}

}  // namespace warpsmith::toolchain
