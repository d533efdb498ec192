#include "nvcc.h"

#include <algorithm>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/program_path.h"

// extension_abi.h and torch.h, made by CMake.
extern const char extension_abi_header[];
extern const char extension_tensor_header[];

namespace warpsmith::toolchain {

namespace {

#ifdef WARPSMITH_NVRTC_LIBRARY
constexpr const char* kBuiltNvrtc = WARPSMITH_NVRTC_LIBRARY;
#else
constexpr const char* kBuiltNvrtc = "";
#endif
constexpr const char* kHeaders = "warpsmith_headers";  // a folder; no candidate's file may have such a name
constexpr const char* kBody = "warpsmith/tensors.h";
constexpr const char* kOutput = "warpsmith_out.so";
// The front end and the optimizer reserve address space that they never touch.
constexpr std::uint64_t kLeastAddressSpace = 6ull << 30;
constexpr std::uint64_t kOutputBytes = 4 << 20;  // ptxas has some lines of each kernel

fs::path find_nvcc() {
  if (const std::string chosen = environment("WARPSMITH_NVCC"); !chosen.empty())
    return process::find_program(chosen);
  if (const fs::path found = process::find_program("nvcc"); !found.empty()) return found;
  for (const std::string& root :
       {environment("CUDA_HOME"), environment("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!root.empty() && fs::exists(fs::path(root) / "bin/nvcc")) return fs::path(root) / "bin/nvcc";
  return {};
}

// What is called nvcc may be a script or a link into another folder: where the toolkit lies nvcc itself says.
fs::path toolkit_of(const fs::path& nvcc) {
  process::ChildSpec spec;
  spec.argv = {nvcc.string(), "--dryrun", "-E", "-x", "cu", "/dev/null"};
  spec.limits.wall_s = 20;
  const process::ChildResult result = process::ask_program(spec);
  for (const std::string& line : split(result.out + result.err, '\n')) {
    const std::size_t at = line.find("TOP=");
    std::error_code error;
    if (at == std::string::npos) continue;
    if (fs::path top = fs::canonical(std::string(trim(line.substr(at + 4))), error); !error) return top;
  }
  return fs::canonical(nvcc).parent_path().parent_path();
}

// "Cuda compilation tools, release 13.0, V13.0.88" -> "13.0.88"
std::string nvcc_version(const std::string& text) {
  const std::size_t at = text.find(", V");
  if (at == std::string::npos) return "";
  return text.substr(at + 3, text.find_first_not_of("0123456789.", at + 3) - at - 3);
}

// <folder>/lib<name>.so or, of a wheel, lib<name>.so.<number>.
fs::path library_in(const fs::path& folder, const std::string& name) {
  std::error_code error;
  const fs::path plain = folder / ("lib" + name + ".so");
  if (fs::exists(plain, error)) return plain;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with("lib" + name + ".so.")) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found.empty() ? fs::path() : found.front();
}

// With nvcc, or in torch's wheels, where the NVRTC lies that this program was built with.
void find_libraries(const fs::path& root, NvccHere* here) {
  std::vector<fs::path> folders = {root / "lib64", root / "lib", root / "targets/x86_64-linux/lib"};
  std::error_code error;
  if (const fs::path nvrtc = fs::canonical(kBuiltNvrtc, error); !error) {
    const fs::path wheels = nvrtc.parent_path().parent_path().parent_path();
    folders.push_back(nvrtc.parent_path());
    for (const char* wheel : {"cublas", "cudnn"}) folders.push_back(wheels / wheel / "lib");
    const fs::path cudnn = wheels / "cudnn/include";
    if (!fs::exists(root / "include/cudnn.h") && fs::exists(cudnn / "cudnn.h"))
      here->include_folders.push_back(cudnn);
  }
  for (fs::path& folder : folders)  // of a link the sandbox could not make the folders
    if (const fs::path real = fs::canonical(folder, error); !error) folder = real;
  for (const std::string name : {"cublas", "cublasLt", "cudnn"})
    for (const fs::path& folder : folders)
      if (fs::path found = library_in(folder, name); !found.empty() && !here->libraries.contains(name))
        here->libraries[name] = found;
  here->visible = {root};
  for (const auto& [name, path] : here->libraries) here->visible.push_back(path.parent_path());
  here->visible.insert(here->visible.end(), here->include_folders.begin(), here->include_folders.end());
}

NvccHere look() {
  NvccHere here;
  here.nvcc = find_nvcc();
  if (here.nvcc.empty()) {
    here.problem =
        "C++ and CUDA with torch's headers are compiled by nvcc, which is not here: CUDA's toolkit has it "
        "(name it "
        "in WARPSMITH_NVCC)";
    return here;
  }
  const std::string chosen = environment("WARPSMITH_HOST_CXX");
  here.host_compiler = process::past_alternatives(process::find_program(chosen.empty() ? "g++" : chosen));
  if (here.host_compiler.empty()) {
    here.problem = "nvcc wants a host compiler: install g++, or name one in WARPSMITH_HOST_CXX";
    return here;
  }
  const fs::path root = toolkit_of(here.nvcc);
  here.nvcc = fs::exists(root / "bin/nvcc") ? root / "bin/nvcc" : fs::canonical(here.nvcc);
  here.version = nvcc_version(ask_version(here.nvcc).value_or(""));
  const std::string host = ask_version(here.host_compiler).value_or("");
  here.host_version = host.substr(0, host.find('\n'));
  if (here.version.empty() || here.host_version.empty()) {
    here.problem = "nvcc or its host compiler does not start";
    return here;
  }
  find_libraries(root, &here);
  if (fs::path prefix = own_prefix(here.host_compiler); !prefix.empty())
    here.visible.push_back(std::move(prefix));
  return here;
}

}  // namespace

std::string gencode(const GpuTarget& target) {
  const std::string name = to_string(target).substr(3);
  return "arch=compute_" + name + ",code=sm_" + name;
}

const NvccHere& nvcc_here() {
  static const NvccHere here = look();
  return here;
}

// Machine code for the one target and no PTX: half the work. It lies there as it is, for who looks at it, and
// ptxas tells what it spills. -nodlink: no device code is linked between
// files. Of the runtime a candidate has a copy of its own.
const std::vector<std::string>& nvcc_options() {
  static const std::vector<std::string> options = {
      "-shared",
      "-nodlink",
      "-w",
      "-cudart=static",
      "--no-compress",
      "-Xptxas=-v",
      "--expt-relaxed-constexpr",
      "--expt-extended-lambda",
      "-Xcompiler=-fPIC,-O2,-fvisibility=hidden,-fdiagnostics-color=never,-fno-diagnostics-show-caret,"
      "-fno-diagnostics-show-option,-fmax-errors=20",
      "-Xlinker=--exclude-libs,ALL,-z,defs,-z,now"};
  return options;
}

std::string digest_of_our_headers() {
  return Sha256().field(extension_abi_header).field(extension_tensor_header).hex().substr(0, 16);
}

void write_sources(const ExtensionSources& sources, const fs::path& scratch) {
  for (const SourceFile& file : sources.files) {
    make_folders((scratch / file.path).parent_path());
    write_file_atomic(scratch / file.path, file.content);
  }
  const fs::path headers = scratch / kHeaders;
  for (const std::string& name : tensor_headers()) {
    make_folders((headers / name).parent_path());
    write_file_atomic(headers / name, std::string("#include <") + kBody + ">\n");
  }
  std::string abi = extension_abi_header, tensors = extension_tensor_header;
  for (std::string* text : {&abi, &tensors})
    if (const std::size_t at = text->find("#pragma once"); at != std::string::npos) text->replace(at, 12, "");
  write_file_atomic(headers / kBody, "#pragma once\n" + abi + tensors);
}

CompilerRun run_nvcc(const ExtensionSources& sources, const std::vector<std::string>& options,
                     const GpuTarget& target, const fs::path& scratch, const CompileOptions& limits) {
  const NvccHere& here = nvcc_here();
  process::ChildSpec spec = compiler_spec(scratch, limits);
  spec.limits.memory_bytes = std::max(limits.memory_bytes, kLeastAddressSpace);
  spec.limits.output_bytes = kOutputBytes;
  spec.argv = {here.nvcc.string(), "-ccbin", here.host_compiler.string(), "-gencode", gencode(target)};
  spec.argv.insert(spec.argv.end(), nvcc_options().begin(), nvcc_options().end());
  spec.argv.insert(spec.argv.end(), options.begin(), options.end());
  spec.argv.insert(spec.argv.end(), {std::string("-I") + kHeaders, "-I."});
  for (const fs::path& folder : here.include_folders) spec.argv.push_back("-isystem=" + folder.string());
  if (sources.blas_handle) spec.argv.emplace_back("-DWARPSMITH_CUBLAS");
  spec.argv.insert(spec.argv.end(), sources.units.begin(), sources.units.end());
  for (const std::string& name : sources.libraries)
    spec.argv.push_back("-Xlinker=" + here.libraries.at(name).string());
  // Libraries of CUDA's want others of theirs, which are looked for where the candidate runs.
  if (!sources.libraries.empty()) spec.argv.emplace_back("-Xlinker=--allow-shlib-undefined");
  spec.argv.insert(spec.argv.end(), {"-o", kOutput});
  spec.sandbox.allow_processes = true;
  spec.sandbox.read_only = here.visible;
  CompilerRun run = run_compiler_child(spec);
  if (run.output.find("nvcc fatal   : Unsupported gpu architecture") != std::string::npos)
    throw Error("nvcc " + here.version + " makes no code for " + to_string(target), kExitUsage);
  run.binary = spec.folder / kOutput;
  return run;
}

}  // namespace warpsmith::toolchain
