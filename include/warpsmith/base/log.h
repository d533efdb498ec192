// Human messages on stderr, with time and level. Job programs print their progress through it; library code
// does not.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace warpsmith {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Once, at the start of main. `program` stands before each line. Colour only where stderr is a terminal.
void start_logging(std::string_view program, LogLevel level = LogLevel::kInfo);

void log_debug(const std::string& message);
void log_info(const std::string& message);
void log_warning(const std::string& message);
void log_error(const std::string& message);

// Of a program that does `work`: 0, or that of the error which ended it, after it was logged.
int exit_code_of(const std::function<void()>& work);

}  // namespace warpsmith
