// warpsmith-nvrtc                  compiles what stands on stdin (src/toolchain/nvrtc_protocol.h)
// warpsmith-nvrtc --about LIBRARY  prints the version and targets of an NVRTC
//
// Started by the toolchain, in a sandbox: NVRTC reads foreign source, and may run for ever.
#include <iostream>
#include <iterator>
#include <string_view>

#include "nvrtc_child.h"
#include "warpsmith/base/error.h"

int main(int argc, char** argv) {
  using namespace warpsmith;
  using namespace warpsmith::toolchain;
  try {
    if (argc == 3 && std::string_view(argv[1]) == "--about") {
      std::cout << to_json(describe_nvrtc(argv[2])).dump() << "\n";
      return kExitOk;
    }
    if (argc != 1) {
      std::cerr << "usage: warpsmith-nvrtc [--about LIBRARY]\n";
      return kExitUsage;
    }
    const std::string request{std::istreambuf_iterator<char>(std::cin), {}};
    run_nvrtc_request(nvrtc_request_from_json(parse_json(request, "request")));
    return kExitOk;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return kExitFailed;
  }
}
