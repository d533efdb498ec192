// A run as KernelBench knows runs: problems among its tasks, and the files that its scripts read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "warpsmith/store/results.h"

namespace warpsmith::report {

// KernelBench calls a problem by its level and its number there, and by its file's name.
struct KernelBenchProblem {
  int level = 0, number = 0;
  std::string file;  // "19_ReLU.py"
};

// The problem that a task is, by its id: `level1_19_ReLU`, with or without a prefix (`kb_level1_19_ReLU`).
// Nothing where the id has no such form.
std::optional<KernelBenchProblem> kernelbench_problem(const std::string& task);

struct ExportedFile {
  std::filesystem::path path;  // relative to KernelBench's folder
  std::string content;
};

// The samples of one stage. Layout and meaning: datasets/kernelbench.md.
struct KernelBenchFiles {
  std::string stage, hardware;
  std::vector<ExportedFile> files;
  struct Run {
    std::string name;  // runs/<name>/
    int level = 0;
    std::size_t problems = 0, samples = 0, correct = 0;
    std::size_t without_time = 0;  // problems that have no time of `eager`: theirs leaves them out
  };
  std::vector<Run> runs;  // one a level, as KernelBench has them
};

// `stage`: one that has samples; empty: the last one that has. Throws Error where there is none (`stage` is
// not empty: with the nearest name).
KernelBenchFiles kernelbench_files(const store::Results& results, const std::string& stage = "");

}  // namespace warpsmith::report
