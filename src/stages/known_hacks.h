// Confirmed cases of cheating that a stage may quote: those of a database, of the stages before and of its
// own rounds.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "knowledge.h"
#include "warpsmith/records/hack.h"
#include "warpsmith/workflow/hack_database.h"

namespace warpsmith::stages {

class KnownHacks {
 public:
  // The database (null: none), then what the stages before confirmed, whatever they measured on.
  KnownHacks(const StageInputs& inputs, const workflow::HackDatabase* database) {
    if (database != nullptr)
      for (const HackCase& hack : database->cases) add(hack);
    for (const std::string& stage : inputs.upstream_order)
      for (const Known& known : known_candidates(inputs, {stage}, Comparable::kAnything)) learn(known);
  }
  void learn(const Known& known) {
    if (auto hack = hack_case(known.candidate, known.measurement)) add(std::move(*hack));
  }
  const std::vector<HackCase>& cases() const { return cases_; }  // oldest first, each program once a kind

 private:
  void add(HackCase hack) {
    if (seen_.emplace(hack.candidate.id, hack.kind).second) cases_.push_back(std::move(hack));
  }
  std::vector<HackCase> cases_;
  std::set<std::pair<std::string, std::string>> seen_;
};

}  // namespace warpsmith::stages
