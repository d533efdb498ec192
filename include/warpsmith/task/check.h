// The checks of a folder of tasks that need neither compiler nor torch: `warpsmith validate datasets/`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/base/error.h"
#include "warpsmith/task/task.h"

namespace warpsmith::task {

// How many tasks and candidates were looked at.
struct DatasetCount {
  int tasks = 0, candidates = 0;
};

// Every mistake in the tasks below `folder` and in their candidates goes to `diagnostics`:
//  * task files and folders of candidates (load_task, load_candidate_files); flops and bytes are given;
//  * every plan parses and can be evaluated at every timing and hidden shape (but those of `compile_error`
//  candidates; trouble at a shape may be what `launch_error` and `out_of_memory` ones are there for);
//  * a task has at least 6 `ok` candidates and one each that is `compile_error`, `wrong_output` and
//  `wrong_hidden`;
//  * no two candidates of a task have the same text, no two `ok` ones the same form().
DatasetCount check_dataset(const std::filesystem::path& folder, Diagnostics& diagnostics);

// Of one task alone: files and folders of candidates, and plans, as above. Gives the number of candidates.
int check_candidates(const Task& task, Diagnostics& diagnostics);

// A source with all names and constants taken out: comments (launch plans, too) dropped, every identifier
// that is no word of the language replaced by `I`, every number by `N`, every text by `S`; words are divided
// by one blank. Sources that differ only in names and constants have equal forms.
std::string form(std::string_view source);

}  // namespace warpsmith::task
