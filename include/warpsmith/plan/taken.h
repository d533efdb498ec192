// The candidates that stages take from elsewhere: from another run (`candidates_of_run`), or from their
// dataset (`candidates: imported`).
#pragma once

#include "warpsmith/workflow/spec.h"

namespace warpsmith::plan {

// Fills StageSpec::taken of every stage that takes any; or StageSpec::blocked where there are none that will
// do.
//
// Imported: all below imported/ of the stage's tasks, each program of a task once, under the first of its
// names. Of a run: from that run's folder. Reads <run>/state.json and the output.json of each
// stage's current version; where there is no state.json, of the version that was written last.
//
// Programs that will do: verdict ok, of a task of the stage, measured on the run's own device kind over its
// own baseline, which are those of the first stage that has a success. Of each task the fastest over all
// stages, or all, each once.
void take_candidates(workflow::WorkflowSpec& spec);

}  // namespace warpsmith::plan
