#include "cubin_facts.h"

#include <algorithm>

#include "../common/compile_cache.h"
#include "../common/cubin.h"
#include "../common/cuda_log.h"
#include "../common/json_fields.h"
#include "compiler.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

constexpr std::string_view kWhat = "facts of a cubin";

template <typename Visit>
void for_each_field(KernelFacts& k, const Visit& visit) {
  visit("name", k.name);
  visit("lowered", k.lowered);
  visit("registers", k.registers);
  visit("shared_bytes", k.shared_bytes);
  visit("local_bytes", k.local_bytes);
  visit("spill_store_bytes", k.spill_store_bytes);
  visit("spill_load_bytes", k.spill_load_bytes);
  visit("max_threads", k.max_threads);
}

template <typename Visit>
void for_each_field(SymbolFacts& s, const Visit& visit) {
  visit("name", s.name);
  visit("lowered", s.lowered);
  visit("bytes", s.bytes);
  visit("constant", s.constant);
}

namespace {

KernelFacts gather_kernel(const std::string& name, const NvrtcAnswer& answer, const CubinContent& content,
                          const std::map<std::string, KernelResources>& resources) {
  KernelFacts k;
  k.name = name;
  k.lowered = answer.lowered.at(name);
  const auto used = resources.find(k.lowered);
  const auto bound = content.kernels.find(k.lowered);
  if (used == resources.end() || bound == content.kernels.end())
    throw Error("NVRTC told nothing of kernel `" + name + "`");
  k.registers = used->second.registers;
  k.shared_bytes = used->second.shared_bytes;
  k.local_bytes = used->second.local_bytes;
  k.spill_store_bytes = used->second.spill_store_bytes;
  k.spill_load_bytes = used->second.spill_load_bytes;
  k.max_threads = bound->second.max_threads;
  k.parameters = bound->second.parameters;
  return k;
}

}  // namespace

CubinFacts gather_facts(const CubinContent& content, const NvrtcAnswer& answer, const std::string& target,
                        const ModuleNames& names) {
  const std::map<std::string, KernelResources> resources = read_resources(answer.log);
  CubinFacts facts;
  facts.target = target;
  facts.nvrtc = nvrtc_here().about.version;
  facts.tensor_cores = content.tensor_cores;
  for (const std::string& name : names.kernels)
    facts.kernels.push_back(gather_kernel(name, answer, content, resources));
  std::vector<CubinVariable> others = content.variables;
  for (const std::string& name : names.symbols) {
    const std::string lowered = answer.lowered.at("&" + name);
    const auto found =
        std::find_if(others.begin(), others.end(), [&](const CubinVariable& v) { return v.name == lowered; });
    if (found == others.end()) throw Error("the cubin has no variable `" + name + "`");
    facts.symbols.push_back({name, lowered, found->bytes, found->constant});
    others.erase(found);
  }
  for (const CubinVariable& v : others) facts.symbols.push_back({v.name, v.name, v.bytes, v.constant});
  return facts;
}

Json to_json(const CubinFacts& facts) {
  Json kernels = Json::array(), symbols = Json::array();
  for (const KernelFacts& k : facts.kernels) {
    kernels.push_back(struct_to_json(k));
    kernels.back()["parameters"] = k.parameters;
  }
  for (const SymbolFacts& s : facts.symbols) symbols.push_back(struct_to_json(s));
  return {{"target", facts.target},
          {"nvrtc", facts.nvrtc},
          {"kernels", kernels},
          {"symbols", symbols},
          {"tensor_cores", facts.tensor_cores}};
}

CubinFacts read_cubin_facts(const fs::path& cubin) {
  return read_cached_facts(cubin, [](const Json& json) {
    CubinFacts facts;
    facts.target = json_at<std::string>(json, "target", kWhat);
    facts.nvrtc = json_at<std::string>(json, "nvrtc", kWhat);
    facts.tensor_cores = json_at<bool>(json, "tensor_cores", kWhat);
    for (const Json& k : json_at<Json>(json, "kernels", kWhat)) {
      facts.kernels.push_back(struct_from_json<KernelFacts>(k, kWhat));
      facts.kernels.back().parameters = k.value("parameters", -1);  // caches of earlier versions lack it
    }
    for (const Json& s : json_at<Json>(json, "symbols", kWhat))
      facts.symbols.push_back(struct_from_json<SymbolFacts>(s, kWhat));
    return facts;
  });
}

}  // namespace warpsmith::toolchain
