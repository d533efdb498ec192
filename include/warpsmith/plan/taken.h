// The candidates that stages take from another run: `candidates_of_run`.
#pragma once

#include "warpsmith/workflow/spec.h"

namespace warpsmith::plan {

// Fills StageSpec::taken of every stage that names a run, from that run's folder; or StageSpec::blocked where
// there is none, or it has no program that will do. Reads <run>/state.json and the output.json of each
// stage's current version; where there is no state.json, of the version that was written last.
//
// Programs that will do: verdict ok, of a task of the stage, measured on the run's own device kind over its
// own baseline, which are those of the first stage that has a success. Of each task the fastest over all
// stages, or all, each once.
void take_candidates(workflow::WorkflowSpec& spec);

}  // namespace warpsmith::plan
