#include "cubin_facts.h"

#include <algorithm>

#include "../common/compile_cache.h"
#include "../common/cubin.h"
#include "compiler.h"
#include "log.h"
#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"

namespace warpsmith::toolchain {

namespace {

constexpr std::string_view kWhat = "facts of a cubin";

template <typename T>
void read(const Json& json, const char* key, T* out) {
  *out = json_at<T>(json, key, kWhat);
}

Json to_json(const SymbolFacts& s) {
  return {{"name", s.name}, {"lowered", s.lowered}, {"bytes", s.bytes}, {"constant", s.constant}};
}

KernelFacts kernel_from_json(const Json& json) {
  KernelFacts k;
  read(json, "name", &k.name);
  read(json, "lowered", &k.lowered);
  read(json, "registers", &k.registers);
  read(json, "shared_bytes", &k.shared_bytes);
  read(json, "local_bytes", &k.local_bytes);
  read(json, "spill_store_bytes", &k.spill_store_bytes);
  read(json, "spill_load_bytes", &k.spill_load_bytes);
  read(json, "max_threads", &k.max_threads);
  k.parameters = json.value("parameters", k.parameters);  // caches of earlier versions lack it
  return k;
}

SymbolFacts symbol_from_json(const Json& json) {
  SymbolFacts s;
  read(json, "name", &s.name);
  read(json, "lowered", &s.lowered);
  read(json, "bytes", &s.bytes);
  read(json, "constant", &s.constant);
  return s;
}

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

Json to_json(const KernelFacts& k) {
  return {{"name", k.name},
          {"lowered", k.lowered},
          {"registers", k.registers},
          {"shared_bytes", k.shared_bytes},
          {"local_bytes", k.local_bytes},
          {"spill_store_bytes", k.spill_store_bytes},
          {"spill_load_bytes", k.spill_load_bytes},
          {"max_threads", k.max_threads},
          {"parameters", k.parameters}};
}

Json to_json(const CubinFacts& facts) {
  Json kernels = Json::array(), symbols = Json::array();
  for (const KernelFacts& k : facts.kernels) kernels.push_back(to_json(k));
  for (const SymbolFacts& s : facts.symbols) symbols.push_back(to_json(s));
  return {{"target", facts.target},
          {"nvrtc", facts.nvrtc},
          {"kernels", kernels},
          {"symbols", symbols},
          {"tensor_cores", facts.tensor_cores}};
}

CubinFacts read_cubin_facts(const fs::path& cubin) {
  fs::path answer = cubin;
  const Json json = read_cached_facts(answer.replace_extension(".json"));
  try {
    CubinFacts facts;
    read(json, "target", &facts.target);
    read(json, "nvrtc", &facts.nvrtc);
    for (const Json& k : json_at<Json>(json, "kernels", kWhat)) facts.kernels.push_back(kernel_from_json(k));
    for (const Json& s : json_at<Json>(json, "symbols", kWhat)) facts.symbols.push_back(symbol_from_json(s));
    read(json, "tensor_cores", &facts.tensor_cores);
    return facts;
  } catch (const Error& e) {
    throw e.with_context("while reading " + answer.string());
  }
}

}  // namespace warpsmith::toolchain
