#include "warpsmith/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "warpsmith/base/error.h"
#include "warpsmith/base/terminal_text.h"

namespace warpsmith {

void start_logging(std::string_view program, LogLevel level) {
  auto logger = spdlog::stderr_color_mt(std::string(program));
  logger->set_pattern("%H:%M:%S.%e %n %^%l%$ %v");
  static constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                          spdlog::level::warn, spdlog::level::err};
  logger->set_level(kLevels[static_cast<int>(level)]);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

void log_debug(const std::string& message) { spdlog::debug("{}", terminal_text(message)); }
void log_info(const std::string& message) { spdlog::info("{}", terminal_text(message)); }
void log_warning(const std::string& message) { spdlog::warn("{}", terminal_text(message)); }
void log_error(const std::string& message) { spdlog::error("{}", terminal_text(message)); }

int exit_code_of(const std::function<void()>& work) {
  try {
    work();
    return kExitOk;
  } catch (const Error& e) {
    log_error(e.what());
    return e.exit_code();
  } catch (const std::exception& e) {
    log_error(e.what());
    return kExitFailed;
  }
}

}  // namespace warpsmith
