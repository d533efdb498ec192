// Whether a candidate that is right when blocks and threads run in ascending order is right in other orders,
// too. CUDA promises none: a program that needs one has a data race, and is wrong on a GPU now and then.
#pragma once

#include <vector>

#include "warpsmith/device/twin_session.h"
#include "warpsmith/measure/check.h"
#include "warpsmith/task/launch_plan.h"

namespace warpsmith::measure {

// Runs the candidate in four orders (src/device/schedule.h) at each hidden shape and in two at the timing
// shapes, in a child of its own: TwinOptions::mixed. A wrong answer is `nondeterministic`. What cannot be
// decided, as too slow in such a run, is ok and says so in `detail`. `found` is what check_candidate() has
// found, and kept where nothing is wrong.
CheckOutcome check_for_races(const task::Task& task, const task::LaunchPlan& plan,
                             device::TwinOptions options, Oracle& oracle, const std::vector<CheckCase>& cases,
                             CheckOutcome found);

}  // namespace warpsmith::measure
