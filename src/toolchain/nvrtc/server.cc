#include "server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>

#include "../common/compile_cache.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/descriptors.h"

namespace warpsmith::toolchain {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEndMilliseconds = 2000;

// Without fsync: the child reads it at once, nobody later.
void write_request(const NvrtcRequest& request, const fs::path& folder) {
  std::ofstream file(folder / kRequestFile, std::ios::binary);
  file << to_json(request).dump(-1, ' ', false, Json::error_handler_t::replace);
  file.close();
  if (!file) throw system_error("cannot write " + (folder / kRequestFile).string(), errno);
}

// The byte that answers a request; nothing at the end of the socket and where the time is over.
struct Reply {
  std::optional<char> byte;
  bool in_time = true;
};
Reply wait_for_reply(int socket, double seconds) {
  const auto until =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd readable{socket, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&readable, 1, static_cast<int>(left)) : 0;
    if (ready == 0) return {{}, false};
    if (ready < 0 && errno == EINTR) continue;
    char byte = 0;
    if (::read(socket, &byte, 1) == 1) return {byte, true};
    if (errno != EINTR) return {};
  }
}

}  // namespace

struct NvrtcServer::State {
  CompileOptions limits;
  std::optional<Scratch> scratch;
  process::Fd socket;
  std::optional<process::Child> child;

  // An idle server ends by itself, and so the time that it used counts as ours: the kernel drops that of a
  // namespace that is killed.
  ~State() {
    socket.reset();
    if (!child) return;
    pollfd ended{child->event_fd(), POLLIN, 0};
    (void)::poll(&ended, 1, kEndMilliseconds);
  }
  // Kills it.
  void stop() {
    child.reset();
    socket.reset();
  }
  void start();
  void empty_folder();
  Reply ask(const NvrtcRequest& request);
};

void NvrtcServer::State::start() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw system_error("socketpair", errno);
  socket.reset(ends[0]);
  const process::Fd theirs(ends[1]);
  process::ChildSpec spec = nvrtc_spec(scratch->path(), limits);
  spec.argv.insert(spec.argv.end(), {"--serve", nvrtc_here().library.string(), std::to_string(theirs.get())});
  spec.keep_fds = {theirs.get()};
  spec.limits.wall_s = 0;  // of each request instead
  spec.sandbox.allow_processes = true;
  child.emplace(spec);
}

// Nothing of one candidate is there for the next. What cannot be removed is left behind with its folder.
void NvrtcServer::State::empty_folder() {
  std::error_code error;
  if (scratch)
    for (const auto& entry : fs::directory_iterator(scratch->path(), error)) {
      fs::remove_all(entry.path(), error);
      if (error) break;
    }
  if (scratch && !error) return;
  stop();
  scratch.emplace(limits.cache);
}

Reply NvrtcServer::State::ask(const NvrtcRequest& request) {
  write_request(request, scratch->path());
  const char go = 'g';
  if (::send(socket.get(), &go, 1, MSG_NOSIGNAL) != 1) return {};
  return wait_for_reply(socket.get(), limits.timeout_s);
}

NvrtcServer::NvrtcServer(const CompileOptions& limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
}
NvrtcServer::~NvrtcServer() = default;
NvrtcServer::NvrtcServer(NvrtcServer&&) noexcept = default;
NvrtcServer& NvrtcServer::operator=(NvrtcServer&&) noexcept = default;

const fs::path& NvrtcServer::folder() const { return state_->scratch->path(); }

NvrtcRun NvrtcServer::run(const NvrtcRequest& request) {
  State& s = *state_;
  s.empty_folder();
  Reply reply;
  try {
    if (!s.child) s.start();
    reply = s.ask(with_places(request));
  } catch (const Error&) {
    // A child of its own starts, or says why not.
  }
  NvrtcRun run;
  if (!reply.in_time) {
    s.stop();
    run.outcome = CompilerRun::kTimedOut;
    return run;
  }
  if (reply.byte == kServed) {
    run.outcome = CompilerRun::kDone;
    run.answers = read_answers(request, folder());
    return run;
  }
  if (!reply.byte) s.stop();
  s.empty_folder();
  return run_nvrtc(request, folder(), s.limits);
}

}  // namespace warpsmith::toolchain
