// Faults, user mistakes and exit codes.
//
// Three kinds of trouble are kept apart (see src/README.md):
//  * outcomes are data (a verdict, a child's exit): enums in result structs, never exceptions;
//  * user mistakes are Diagnostics: collected, reported all at once with file:line:column and a hint, exit
//  code 2;
//  * faults (I/O errors, broken invariants) throw Error, with context added at module borders.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace warpsmith {

// Exit codes of every program of ours; documented in src/cli/README.md.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,        // the work was done and something in it failed
  kExitUsage = 2,         // a mistake in a file or on the command line; nothing was started
  kExitEnvironment = 3,   // this machine lacks something, a disk is full, a folder is gone
  kExitBusy = 4,          // another controller has this run
  kExitWrongDevice = 5,   // a job program: its GPU is not of the type that it was told to expect
  kExitInterrupted = 130  // Ctrl-C or SIGTERM; the run can be resumed
};

// A fault. what() reads from the outside in: "while loading run x: cannot open y: No such file or directory".
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = kExitEnvironment, int error_number = 0)
      : std::runtime_error(message), exit_code_(exit_code), error_number_(error_number) {}
  int exit_code() const { return exit_code_; }
  int error_number() const { return error_number_; }  // errno of the failed system call; 0: it was none
  // The same fault, seen from a caller that was doing `context`.
  Error with_context(std::string_view context) const;

 private:
  int exit_code_, error_number_;
};

// The file system, or this user's quota on it, has no room.
bool is_disk_full(const Error& error);

// Error made of `what` and errno, for failed system calls.
Error system_error(std::string_view what, int error_number);

// One mistake of a user at one place. line and column count from 1; 0 means "not known".
struct Diagnostic {
  std::string file;
  int line = 0;
  int column = 0;
  std::string message;
  std::string hint;  // may be empty
};

// "file:line:column: message (hint)"
std::string to_string(const Diagnostic& diagnostic);

using Diagnostics = std::vector<Diagnostic>;

// Thrown where user mistakes have been collected; what() holds one line each. Exit code 2.
class InvalidInput : public Error {
 public:
  explicit InvalidInput(Diagnostics diagnostics);
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

}  // namespace warpsmith
