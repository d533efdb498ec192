#include "protocol.h"

#include "../common/json_fields.h"

namespace warpsmith::toolchain {

constexpr std::string_view kWhat = "warpsmith-nvrtc";

template <typename Visit>
void for_each_field(NvrtcRequest& r, const Visit& visit) {
  visit("library", r.library);
  visit("source", r.source);
  visit("headers", r.headers);
  visit("names", r.names);
  visit("options", r.options);
  visit("targets", r.targets);
  visit("one_is_enough", r.one_is_enough);
}

template <typename Visit>
void for_each_field(NvrtcAnswer& a, const Visit& visit) {
  visit("ok", a.ok);
  visit("log", a.log);
  visit("lowered", a.lowered);
}

template <typename Visit>
void for_each_field(NvrtcAbout& a, const Visit& visit) {
  visit("version", a.version);
  visit("targets", a.targets);
}

Json to_json(const NvrtcRequest& r) { return struct_to_json(r); }
Json to_json(const NvrtcAnswer& a) { return struct_to_json(a); }
Json to_json(const NvrtcAbout& a) { return struct_to_json(a); }

NvrtcRequest nvrtc_request_from_json(const Json& json) { return struct_from_json<NvrtcRequest>(json, kWhat); }
NvrtcAnswer nvrtc_answer_from_json(const Json& json) { return struct_from_json<NvrtcAnswer>(json, kWhat); }
NvrtcAbout nvrtc_about_from_json(const Json& json) { return struct_from_json<NvrtcAbout>(json, kWhat); }

std::filesystem::path cubin_file(const std::filesystem::path& folder, const std::string& target) {
  return folder / (target + ".cubin");
}

std::filesystem::path answer_file(const std::filesystem::path& folder, const std::string& target) {
  return folder / (target + ".json");
}

}  // namespace warpsmith::toolchain
