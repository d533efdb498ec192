// Where the operands of a plan lie in the memory file, and the plan as the child reads it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "twin_protocol.h"
#include "warpsmith/device/twin_session.h"

namespace warpsmith::device {

// An operand between canaries and guard pages, in set 0.
struct Placed {
  Operand operand;
  bool is_temp = false;
  std::uint64_t pages_offset = 0, pages_bytes = 0, offset = 0;
};

struct Layout {
  std::vector<Placed> operands;  // the caller's, then the plan's temporaries
  std::map<std::string, std::size_t> numbers;
  std::uint64_t set_bytes = 0, file_bytes = 0, data_bytes = 0;  // data_bytes: of all sets, without guards
  int sets = 0;
};

// Each operand ends as near to a guard page as its 256-byte alignment lets it.
Layout lay_out(const task::ConcretePlan& plan, const std::vector<Operand>& operands, int sets);

// The bytes of the plan. Where the plan cannot be run, `problem` says why and nothing is returned.
struct PlanProblem {
  Verdict verdict = Verdict::kOk;
  std::string detail;
};
std::vector<std::byte> encode_plan(const task::ConcretePlan& plan, const Layout& layout,
                                   PlanProblem* problem);

// Which part of which operand an offset in the file belongs to, in words; and whether it is data of a
// read-only operand.
struct PlaceInFile {
  std::string words;
  bool read_only_data = false;
};
PlaceInFile describe_offset(const Layout& layout, std::int64_t offset);

}  // namespace warpsmith::device
