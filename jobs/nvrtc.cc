// warpsmith-nvrtc                         compiles what stands on stdin (src/toolchain/nvrtc/protocol.h)
// warpsmith-nvrtc --serve LIBRARY SOCKET  the same for one request after another, each in a fork
// warpsmith-nvrtc --about LIBRARY         prints the version and targets of an NVRTC
//
// Started by the toolchain, in a sandbox: NVRTC reads foreign source, and may run for ever.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

#include "nvrtc/child.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/terminal_text.h"

namespace {

// The sandbox forbids a system call: says which (kForbiddenCall), then ends as without this.
void on_forbidden_call(int number, siginfo_t* info, void*) {
  char text[64] = "";
  char* at = text + sizeof text - 1;
  *--at = '\n';
  int call = info->si_syscall;
  do *--at = static_cast<char>('0' + call % 10);
  while ((call /= 10) > 0);
  const std::string_view front = warpsmith::toolchain::kForbiddenCall;
  (void)!::write(STDERR_FILENO, front.data(), front.size());
  (void)!::write(STDERR_FILENO, at, static_cast<std::size_t>(text + sizeof text - 1 - at));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void report_forbidden_calls() {
  struct sigaction action {};
  action.sa_sigaction = on_forbidden_call;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace warpsmith;
  using namespace warpsmith::toolchain;
  report_forbidden_calls();
  try {
    if (argc == 3 && std::string_view(argv[1]) == "--about") {
      print_terminal_text(stdout, to_json(describe_nvrtc(argv[2])).dump() + "\n");
      return kExitOk;
    }
    if (argc == 4 && std::string_view(argv[1]) == "--serve") {
      serve_nvrtc(argv[2], std::atoi(argv[3]));
      return kExitOk;
    }
    if (argc != 1) {
      print_terminal_text(stderr, "usage: warpsmith-nvrtc [--about LIBRARY | --serve LIBRARY SOCKET]\n");
      return kExitUsage;
    }
    const std::string request{std::istreambuf_iterator<char>(std::cin), {}};
    run_nvrtc_request(nvrtc_request_from_json(parse_json(request, "request")));
    return kExitOk;
  } catch (const std::exception& e) {
    print_terminal_text(stderr, std::string(e.what()) + "\n");
    return kExitFailed;
  }
}
