// What warpsmith-nvrtc is asked (one JSON value on stdin) and what it leaves in its folder: for each target,
// in order and as soon as it is done, <target>.cubin (PTX for "compute_…") where it compiled and
// <target>.json, the answer.
//
// As a server (--serve) it gets a byte on its socket for each request. The request then lies in kRequestFile
// of its folder. A fork of it leaves the answers, as above. When the fork has ended, a byte goes back:
// kServed where it left all answers and exited with 0, else kNotServed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "warpsmith/base/json.h"

namespace warpsmith::toolchain {

// How its message on stderr begins where the library is at fault.
inline constexpr const char* kCannotLoad = "cannot load NVRTC: ";

inline constexpr const char* kRequestFile = "request.json";
inline constexpr char kServed = 'y', kNotServed = 'n';

struct NvrtcRequest {
  std::string library;                         // path of libnvrtc
  std::string source;                          // compiled under the name kernel.cu
  std::map<std::string, std::string> headers;  // by the name that is included
  std::vector<std::string> names;              // name expressions whose lowered names are wanted
  std::vector<std::string> options;            // for every target
  std::vector<std::string> targets;            // "sm_90a"; "compute_80": PTX instead of machine code
  bool one_is_enough = false;                  // the first that compiles is the last that is tried
};
Json to_json(const NvrtcRequest& request);
NvrtcRequest nvrtc_request_from_json(const Json& json);

struct NvrtcAnswer {
  bool ok = false;
  std::string log;
  std::map<std::string, std::string> lowered;  // name expression -> lowered name
};
Json to_json(const NvrtcAnswer& answer);
NvrtcAnswer nvrtc_answer_from_json(const Json& json);

// What `warpsmith-nvrtc --about LIBRARY` prints, as JSON.
struct NvrtcAbout {
  std::string version;       // "13.0"
  std::vector<int> targets;  // 75, 80, …
};
Json to_json(const NvrtcAbout& about);
NvrtcAbout nvrtc_about_from_json(const Json& json);

// The answer's files of a target.
std::filesystem::path cubin_file(const std::filesystem::path& folder, const std::string& target);
std::filesystem::path answer_file(const std::filesystem::path& folder, const std::string& target);

}  // namespace warpsmith::toolchain
