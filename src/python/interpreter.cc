#include "warpsmith/python/interpreter.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "warpsmith/base/files.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/child.h"

extern char** environ;

namespace warpsmith::python {

namespace {

constexpr std::uint64_t kMostAnswer = 64 << 20;  // bytes of a line

std::map<std::string, std::string> environment_with(const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> all = more;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t at = text.find('=');
    if (at != std::string::npos) all.emplace(text.substr(0, at), text.substr(at + 1));
  }
  return all;
}

}  // namespace

struct Interpreter::State {
  std::filesystem::path log;
  int fd = -1;
  std::optional<process::Child> child;
  std::string read;  // of the line that is coming

  ~State() {
    child.reset();
    if (fd >= 0) ::close(fd);
  }

  // " (its last line)"
  std::string last_words() const {
    if (!std::filesystem::exists(log)) return "";
    const std::vector<std::string> lines = split_lines(read_file(log));
    for (auto line = lines.rbegin(); line != lines.rend(); ++line)
      if (!trim(*line).empty()) return " (" + trim(*line) + ")";
    return "";
  }

  [[noreturn]] void fail(const std::string& what) {
    child.reset();  // so that all it has printed is in the log
    throw Error("python3 " + what + last_words());
  }

  void send(std::string text) {
    text += '\n';
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n = ::send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("has ended");
      at += static_cast<std::size_t>(n);
    }
  }

  std::string receive_line(std::chrono::steady_clock::time_point until) {
    for (;;) {
      if (const std::size_t end = read.find('\n'); end != std::string::npos) {
        std::string line = read.substr(0, end);
        read.erase(0, end + 1);
        return line;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      if (left.count() <= 0) fail("does not answer");
      pollfd waiting{fd, POLLIN, 0};
      if (::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1000))) <= 0) continue;
      char buffer[65536];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail("has ended");
      read.append(buffer, static_cast<std::size_t>(n));
      if (read.size() > kMostAnswer) fail("answers without end");
    }
  }
};

Interpreter::Interpreter(const Options& options) : state_(std::make_unique<State>()) {
  std::filesystem::create_directories(options.folder);
  const std::filesystem::path script = options.folder / "script.py";
  write_file_atomic(script, options.script);
  state_->log = options.folder / "log.txt";
  std::filesystem::remove(state_->log);
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) throw system_error("socketpair", errno);
  state_->fd = fds[0];
  process::ChildSpec spec;
  spec.argv = {options.python.string(), "-u", script.string(), std::to_string(fds[1])};
  spec.environment = environment_with(options.environment);
  spec.capture_output = false;
  spec.stderr_file = state_->log;
  spec.stdout_to_stderr = true;
  spec.keep_fds = {fds[1]};
  try {
    state_->child.emplace(spec);
  } catch (...) {
    ::close(fds[1]);
    throw;
  }
  ::close(fds[1]);
}

Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

Json Interpreter::ask(const Json& question, double timeout_s) {
  if (!state_->child) throw Error("python3 has ended");
  const auto until = std::chrono::steady_clock::now() +
                     std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  state_->send(question.dump(-1, ' ', false, Json::error_handler_t::replace));
  const std::string line = state_->receive_line(until);
  try {
    return parse_json(line, "answer of python3");
  } catch (const Error&) {
    state_->fail("answers with what is no JSON: " + line.substr(0, 200));
  }
}

}  // namespace warpsmith::python
