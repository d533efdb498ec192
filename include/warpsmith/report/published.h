// Speedups that others published: files of CUDA-L1's release and of KernelBench's evaluator.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/base/error.h"

namespace warpsmith::report {

// What a file says of a problem over one baseline. It has neither interval nor verdict.
struct PublishedScore {
  int level = 0, number = 0;      // KernelBench's
  std::string baseline;           // by our names: "eager", "torch_compile", …
  std::optional<double> speedup;  // nothing: see `note`
  std::string note;               // "no kernel", "incorrect", "no time of a baseline"
  std::string source;             // the kernel's text; empty: the file does not have it
};

struct Published {
  std::string form;    // "CUDA-L1's release", "KernelBench's evaluator"
  std::string device;  // "h100", "NVIDIA H100 80GB HBM3"; empty: the file does not say
  std::vector<PublishedScore> scores;
};

// A problem in a file of CUDA-L1's release.
struct ReleaseRecord {
  int line = 0;                          // in the file; 0: it is an element of a list, see `place`
  std::string place;                     // "line 19", "level 1, record 19"
  int level = 0, number = 0;             // KernelBench's
  std::string reference;                 // `ref_code`; empty: the record has none
  std::string kernel, missing;           // `custom_code`; where there is none, why
  std::map<std::string, double> scores;  // by our names of the baselines; also where there is no kernel
};

// The records of either form: lines of JSON with level_id, task_id, ref_code, custom_code and scores, or one
// object of lists of records by level, with one `score`. What is no record goes to `mistakes`, and costs the
// others nothing. Throws Error (kExitUsage) where the file is of neither form.
std::vector<ReleaseRecord> read_release(const std::filesystem::path& file, Diagnostics& mistakes);

// What an eval_results.json of KernelBench does not say.
struct PublishedHints {
  std::optional<int> level;              // its problems are of one level
  std::filesystem::path baseline_times;  // results/timing/<hardware>/baseline_time_torch….json; may be empty
};

// Reads `file`: lines of JSON with level_id, task_id, custom_code and scores (CUDA-L1's
// optimized_cuda_code/*.json: the device is the file's name), or one object of lists of samples by problem
// (KernelBench's eval_results.json: of each problem the fastest correct sample; its speedup is the mean time
// in `baseline_times`, or else the sample's own ref_runtime, by its runtime). A score of CUDA-L1's without a
// kernel counts as none. Throws Error where the file is of neither form, or a value is of another type.
Published read_published(const std::filesystem::path& file, const PublishedHints& hints);

}  // namespace warpsmith::report
