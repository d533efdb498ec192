// Behaviour versions: part of every stage's hash. Raise a number, with a line in the changelog, when equal
// inputs give other results than before; never for a change that only makes something faster or clearer.
#include <array>

#include "warpsmith/plan/inputs.h"

namespace warpsmith::plan {

namespace {

struct Version {
  std::string_view program;
  int number;
};

// Changelog
//   1  first version of every program and of the protocol
//   2  protocol: each arm's values are renewed right before its own run; its operands have several places in
//      memory, a candidate a process of its own for each; a ceiling is measured again before it calls a
//      candidate too fast
//   3  protocol: a task's own math counts; on a GPU longer rows in four times as many places, a slow
//      candidate ends at the first look, what is doubtful is measured again by a fresh process, tier
//      extension on one processor; on the twin 227 KB of dynamic shared memory, and fills of outputs in their
//      own dtype
//   4  protocol: on a GPU the target itself is enough behind 200 rounds; tier extension's baseline beside and
//      alone in turns where they disagree, and a slow candidate whom it flatters is imprecise, not unstable;
//      tier python is measured
//   5  protocol: on a GPU the rows of both sides are of one length, not of as many calls, and a slow
//      candidate is known better before it is left; results of calls to come may not be touched
//   6  protocol: on a GPU a process times in a context whose launches cost least; tiers extension and python
//      pause between two calls, and make the others on other values; python3's baselines have rows of one
//      length
//   7  protocol: values of inputs take other places in the pools for each block of 256 elements, and a
//      permutation is shuffled, so that none follow from others
//      warpsmith-compile 2: variables of tier plan on a GPU have 4 MiB in all
//      warpsmith-compile 3: on the twin what is a thread's own stays so in kernels that wait, whoever changes
//      it
//   8  protocol: on a GPU each place in memory comes once before any comes again; what a candidate with host
//      code does beside the clock is charged beyond chance as it was measured, its rows are as long as the
//      baseline's, and the next call behind a pause is looked at
//  10  protocol: on the twin a right candidate is run in other orders of blocks and threads, which shows data
//      races; a shuffle from a lane that takes no part gives an undefined value
//      warpsmith-compile 4: the twin's programs hold a form for that; kernels whose threads wait run on
//      fibers alone; for the twin NVRTC, where it is, decides what is a compile_error; there shifts by 32
//      places and more give what a GPU gives, and every cast to a pointer is checked for alignment
//  11  protocol: tier `python` is timed against the reference in a python3 of its own; a candidate that is
//      surely slow is `ok` when its time is up; on a GPU a search for a quick context takes 1 s at most
//  12  protocol: rows by a host's clock are equally long on both sides, 4 ms in tier `python`, less what a
//      call costs beside its work; children look for a quick context; a module's candidate that is right at
//      its own shape alone is timed; where a bound is not enough, more seeds of the reference are asked
//  13  protocol: by a host's clock rows are equally long beside slower candidates, too; a score at one shape
//      alone is gone where its timing came to a bad end; a stopped row is looked at as soon as what was begun
//      must be done
//  14  protocol: by a host's clock both sides begin with as many calls and become equally long by and by; the
//      stacks of both sides' python3 lie at one place
//      warpsmith-train 2: the head's gradients are formed with the loss; sums are rounded otherwise
//      warpsmith-generate 2, warpsmith-train 3: exemplars are left out of prompts that do not fit the model's
//      context
//      warpsmith-compile 5: says what a program's machine code is like, so that one which differs from a
//      known one in dead code or the order of lines counts as known
//      warpsmith-generate 3, warpsmith-train 4: operators add a layer's output up behind its last product
//      warpsmith-train 5: contrastive examples of stage 1 are made of tasks whose programs are learned as
//      they are, too
constexpr std::array<Version, 6> kVersions = {{
    {"warpsmith-collect", 1},
    {"warpsmith-generate", 3},
    {"warpsmith-compile", 5},
    {"warpsmith-measure", 1},
    {"warpsmith-train", 5},
    {"protocol", 14},  // how times become a score, and what is checked before
}};

}  // namespace

int behaviour_version(std::string_view program) {
  for (const Version& version : kVersions)
    if (version.program == program) return version.number;
  return 0;
}

std::vector<std::string> programs_of(const workflow::StageSpec& stage) {
  const std::string& kind = stage.kind;
  if (const auto* collect = std::get_if<workflow::CollectSettings>(&stage.settings);
      collect != nullptr && !collect->teachers.empty())
    return {"warpsmith-collect", "warpsmith-generate", "warpsmith-compile", "warpsmith-measure", "protocol"};
  if (kind == "collect") return {"warpsmith-collect", "warpsmith-compile", "warpsmith-measure", "protocol"};
  if (kind == "sft") return {"warpsmith-train"};
  if (kind == "measure" || !workflow::has_own_model(stage))
    return {"warpsmith-generate", "warpsmith-compile", "warpsmith-measure", "protocol"};
  if (workflow::runs_program(kind)) return {};
  return {"warpsmith-generate", "warpsmith-compile", "warpsmith-measure", "protocol", "warpsmith-train"};
}

}  // namespace warpsmith::plan
