#include <regex>

#include "warpsmith/report/kernelbench.h"

namespace warpsmith::report {

std::optional<KernelBenchProblem> kernelbench_problem(const std::string& task) {
  static const std::regex form("(?:\\w+_)?level([0-9]{1,4})_(([0-9]{1,6})(?:_\\w*)?)");
  std::smatch part;
  if (!std::regex_match(task, part, form)) return std::nullopt;
  return KernelBenchProblem{std::stoi(part[1]), std::stoi(part[3]), part[2].str() + ".py"};
}

}  // namespace warpsmith::report
