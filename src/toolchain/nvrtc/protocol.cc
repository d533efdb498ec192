#include "protocol.h"

namespace warpsmith::toolchain {

namespace {

template <typename T>
void read(const Json& json, const char* key, T* out) {
  *out = json_at<T>(json, key, "warpsmith-nvrtc");
}

}  // namespace

Json to_json(const NvrtcRequest& r) {
  return {{"library", r.library},
          {"source", r.source},
          {"headers", r.headers},
          {"names", r.names},
          {"options", r.options},
          {"targets", r.targets},
          {"one_is_enough", r.one_is_enough}};
}

NvrtcRequest nvrtc_request_from_json(const Json& json) {
  NvrtcRequest r;
  read(json, "library", &r.library);
  read(json, "source", &r.source);
  read(json, "headers", &r.headers);
  read(json, "names", &r.names);
  read(json, "options", &r.options);
  read(json, "targets", &r.targets);
  read(json, "one_is_enough", &r.one_is_enough);
  return r;
}

Json to_json(const NvrtcAnswer& a) { return {{"ok", a.ok}, {"log", a.log}, {"lowered", a.lowered}}; }

NvrtcAnswer nvrtc_answer_from_json(const Json& json) {
  NvrtcAnswer a;
  read(json, "ok", &a.ok);
  read(json, "log", &a.log);
  read(json, "lowered", &a.lowered);
  return a;
}

Json to_json(const NvrtcAbout& a) { return {{"version", a.version}, {"targets", a.targets}}; }

NvrtcAbout nvrtc_about_from_json(const Json& json) {
  NvrtcAbout a;
  read(json, "version", &a.version);
  read(json, "targets", &a.targets);
  return a;
}

std::filesystem::path cubin_file(const std::filesystem::path& folder, const std::string& target) {
  return folder / (target + ".cubin");
}

std::filesystem::path answer_file(const std::filesystem::path& folder, const std::string& target) {
  return folder / (target + ".json");
}

}  // namespace warpsmith::toolchain
