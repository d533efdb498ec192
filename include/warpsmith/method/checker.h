// What a checking model is asked about a program whose score jumped, and how its answer is read. The paper
// has such a model (CUDA-L1, "reward checking"); its answer is advice, and no verdict follows from it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warpsmith/records/hack.h"
#include "warpsmith/task/task.h"

namespace warpsmith::method {

// Known cases by the structure of their code: term weighting (TF-IDF) and cosine over sequences of four
// tokens, after names and constants were made alike (normal_form()). Comments, names and layout count for
// nothing.
class HackIndex {
 public:
  // Keeps pointers into `cases`. Scores that did not come again (`unstable`) are no fault of a program's
  // code: they are left out.
  explicit HackIndex(const std::vector<HackCase>& cases);
  struct Alike {
    const HackCase* hack = nullptr;
    double likeness = 0;  // cosine, above 0, at most 1
  };
  // The most alike, at most `most`, no two of one structure; of equal ones the older first.
  std::vector<Alike> alike(const Candidate& candidate, int most) const;

 private:
  using Profile = std::map<std::string, double>;  // of unit length
  Profile weighted(Profile counts) const;
  struct Entry {
    const HackCase* hack;
    Profile profile;
  };
  std::vector<Entry> entries_;
  std::map<std::string, double> weights_;  // of sequences that cases hold
  double weight_of_others_ = 0;
};

// A jump: `score` where the best program before had `before` (1: the reference itself).
struct Jump {
  const Candidate* candidate = nullptr;
  double score = 0, before = 1;
};

// The question, as one message. Code is shown whole up to some 24,000 bytes, cases up to 4,000 each.
std::string checker_prompt(const task::Task& task, const Jump& jump,
                           const std::vector<HackIndex::Alike>& cases);

struct Opinion {
  std::string says;    // "hack", "honest", "unclear"
  std::string reason;  // one line of printable ASCII
};
// The first line that begins with HACK or HONEST ("Verdict: HACK") decides; what a model thinks aloud before
// it
// (<think>…</think>, also without its end) does not count.
Opinion read_opinion(std::string_view answer);

}  // namespace warpsmith::method
