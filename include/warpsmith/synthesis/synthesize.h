// Draws chains without end: seeded and reproducible, each once, none that is degenerate or has nothing to
// gain. Held out by composition: pairs of operators that never meet in training, operators never seen, longer
// chains.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/synthesis/chain.h"
#include "warpsmith/synthesis/traced.h"
#include "warpsmith/workflow/spec.h"

namespace warpsmith::synthesis {

struct Settings : workflow::SynthesizeSettings {
  // Tasks that are never made: by the sorted names of their operators, the grammar's or torch's (each once),
  // and whatever computes what a chain of at most three such operators does; and by their references but for
  // names.
  std::set<std::vector<std::string>> without;
  std::set<std::string> without_references;  // normal_form_of_reference()
};

struct Synthesised {
  Chain chain;
  std::string id;      // "square_bias_relu_3f2a"
  std::string split;   // "train", "heldout_combination", "heldout_operation", "heldout_length", "sft_only"
  bool solved = true;  // it has programs that may be learned from
  std::optional<Traced> traced = std::nullopt;  // how it is written as KernelBench's are
};

struct Dropped {
  int known = 0, duplicate = 0, degenerate = 0, redundant = 0, without_gain = 0, long_programs = 0;
};

struct Synthesis {
  std::vector<Synthesised> tasks;  // trained ones first
  std::set<std::string> operators_out, pairs_out;
  Dropped dropped;
};

// Throws Error (kExitUsage) where the grammar has not so many tasks.
Synthesis synthesize(const Settings& settings);

// Of a synthesised task, whether they are given or not.
std::vector<Program> programs_of(const Synthesised& task);

// Equal for references that differ in names, constants and layout alone.
std::string normal_form_of_reference(std::string_view torchscript);
// Why a chain is no task: "degenerate: …", "redundant: …"; empty: it is one.
std::string flaw_of(const Chain& chain);
// Equal for chains that compute the same, by values at random inputs: also where operators stand in another
// order. `by_kind`: also where their inputs have other names.
std::string fingerprint(const Chain& chain, bool by_kind = false);

}  // namespace warpsmith::synthesis
