// A warm python3 that runs a file of ours: it is asked in JSON lines over a socket, and answers in JSON
// lines.
//
// The child is started without a sandbox: it runs our script and references of the dataset, never a
// candidate. It is a process of its own with its own flags, and dies with this one.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "warpsmith/base/json.h"

namespace warpsmith::python {

// The first of these that is there: $WARPSMITH_PYTHON (a path, or a name in PATH; empty: none at all), the
// python3 of the environment that LibTorch was taken from when this was built, python3 in PATH.
std::optional<std::filesystem::path> find_python();

// The script that serves measure's baselines; what it is asked and answers stands at its head.
std::string baselines_script();

// Move-only; not thread-safe. The destructor kills the child with all that it has started.
class Interpreter {
 public:
  struct Options {
    std::filesystem::path python;
    std::string script;  // its text; it finds the socket's descriptor in sys.argv[1]
    std::filesystem::path
        folder;  // made where it is missing: holds the script, `log.txt`, and caches of torch
    std::map<std::string, std::string> environment;  // besides ours
  };
  // Throws Error where it cannot be started.
  explicit Interpreter(const Options& options);
  ~Interpreter();
  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;

  // Waits for the answer. Throws Error with the last line that it printed where it is gone or takes longer;
  // then it is of no use any more.
  Json ask(const Json& question, double timeout_s);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warpsmith::python
