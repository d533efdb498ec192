// Draws chains without end: seeded and reproducible, each once, none that is degenerate or has nothing to
// gain. Held out by composition: pairs of operators that never meet in training, operators never seen, longer
// chains.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "warpsmith/synthesis/chain.h"

namespace warpsmith::synthesis {

struct Settings {
  std::uint64_t seed = 1;
  std::uint64_t split_seed = 1;  // which pairs and operators are held out
  int count = 100;               // of trained tasks
  int heldout = 0;               // of each kind of held-out task
  int longest = 4;               // operators in a trained chain; longer ones are held out, up to three more
  double pairs_share = 0.15;     // of pairs that are held out
  int operators_out = 2;         // operators that are held out
  double least_gain = 1.1;       // gain_of()
  // Tasks that are never made: by the sorted names of their operators, and by their references but for names.
  std::set<std::vector<std::string>> without;
  std::set<std::string> without_references;  // normal_form_of_reference()
};

struct Synthesised {
  Chain chain;
  std::string id;     // "square_bias_relu_3f2a"
  std::string split;  // "train", "heldout_combination", "heldout_operation", "heldout_length"
};

struct Dropped {
  int known = 0, duplicate = 0, degenerate = 0, redundant = 0, without_gain = 0;
};

struct Synthesis {
  std::vector<Synthesised> tasks;  // trained ones first
  std::set<std::string> operators_out, pairs_out;
  Dropped dropped;
};

// Throws Error (kExitUsage) where the grammar has not so many tasks.
Synthesis synthesize(const Settings& settings);

// Equal for references that differ in names, constants and layout alone.
std::string normal_form_of_reference(std::string_view torchscript);
// Why a chain is no task: "degenerate: …", "redundant: …"; empty: it is one.
std::string flaw_of(const Chain& chain);
// Equal for chains that compute the same, by values at random inputs: also where operators stand in another
// order.
std::string fingerprint(const Chain& chain);

}  // namespace warpsmith::synthesis
