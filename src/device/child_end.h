// What the end of a candidate's process says of it.
#pragma once

#include <string>

#include "warpsmith/process/child.h"
#include "warpsmith/records/verdict.h"

namespace warpsmith::device {

struct ChildEnd {
  Verdict verdict = Verdict::kCrash;
  std::string detail;
};
ChildEnd read_end(const process::ChildResult& end);
// Of one that did not answer: where it still runs it is killed, and has timed out.
ChildEnd end_silent(process::Child& child);

}  // namespace warpsmith::device
