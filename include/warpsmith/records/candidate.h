// One program meant to compute the same as a task's reference, faster.
#pragma once

#include <string>
#include <vector>

#include "warpsmith/base/json.h"
#include "warpsmith/records/field.h"

namespace warpsmith {

enum class Tier { kPlan, kExtension, kPython };
std::string_view to_string(Tier tier);
Tier parse_tier(std::string_view name);             // throws Error
void from_text(std::string_view name, Tier& tier);  // throws Error

struct SourceFile {
  std::string path;  // relative; "kernel.cu" for the one file of a `plan` candidate
  std::string content;
};
const Fields<SourceFile>& fields_of(const SourceFile& file);

// Where a candidate came from.
struct Origin {
  std::string kind;   // "dataset", "augmented", "teacher", "generated", "imported"
  std::string stage;  // stage that made it
  int round = 0;
  std::string detail;  // dataset file, or prompt item and sample number
  std::string parent;  // candidate id that it was derived from; may be empty
};
const Fields<Origin>& fields_of(const Origin& origin);

struct Candidate {
  std::string id;  // candidate_id(*this)
  std::string task;
  Tier tier = Tier::kPlan;
  std::vector<std::string> options;  // compile options
  std::vector<SourceFile> files;
  Origin origin;  // not part of the id
  const std::string& source() const { return files.at(0).content; }
};

// SHA-256 (64 hex digits) over tier, task id, options and every (path, content), each framed by its length.
std::string candidate_id(const Candidate& candidate);
// Of one file, "kernel.cu" or, of tier `python`, "model.py"; with its id.
Candidate make_one_file_candidate(Tier tier, std::string task, std::string source, Origin origin);
Candidate make_plan_candidate(std::string task, std::string source, Origin origin);

const Fields<Candidate>& candidate_fields();
Json to_json(const Candidate& candidate);
Candidate candidate_from_json(const Json& json);  // throws Error; checks the id against the content

}  // namespace warpsmith
