#include "compiler.h"

#include <algorithm>
#include <fstream>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/base/sha256.h"
#include "warpsmith/base/text.h"
#include "warpsmith/process/program_path.h"

namespace warpsmith::toolchain {

namespace {

// Found when this was configured; empty where CUDA is off.
#ifdef WARPSMITH_NVRTC_LIBRARY
constexpr const char* kBuiltLibrary = WARPSMITH_NVRTC_LIBRARY;
constexpr const char* kBuiltInclude = WARPSMITH_CUDA_INCLUDE;
constexpr const char* kBuiltCrt = WARPSMITH_CUDA_CRT;
#else
constexpr const char* kBuiltLibrary = "";
constexpr const char* kBuiltInclude = "";
constexpr const char* kBuiltCrt = "";
#endif

fs::path find_program() {
  const fs::path here = program_folder();
  for (const fs::path& folder : {here, here.parent_path()})
    if (fs::exists(folder / "warpsmith-nvrtc")) return folder / "warpsmith-nvrtc";
  throw Error("warpsmith-nvrtc is missing beside this program, in " + here.string());
}

// Torch's wheel brings it in <folder of packages>/nvidia/<part>/lib. Of several, the one of the build's major
// version, else the last by name: folders are listed in no order. Empty: there is none.
fs::path library_beside(const fs::path& torch) {
  if (torch.empty()) return {};
  const fs::path built = fs::path(kBuiltLibrary).filename();
  fs::path last;
  std::error_code error;
  for (fs::directory_iterator part(torch.parent_path() / "nvidia", error), end; !error && part != end;
       part.increment(error)) {
    std::error_code none;
    for (const fs::directory_entry& file : fs::directory_iterator(part->path() / "lib", none)) {
      const fs::path name = file.path().filename();
      if (name == built) return file.path();
      if (name.string().starts_with("libnvrtc.so")) last = std::max(last, file.path());
    }
  }
  return last;
}

fs::path find_library() {
  if (*kBuiltLibrary == '\0')
    throw Error(
        "this build has no CUDA: candidates cannot be compiled for a GPU (configure with WARPSMITH_CUDA=ON)");
  fs::path library = environment("WARPSMITH_NVRTC");
  if (library.empty()) library = library_beside(process::chosen_torch());
  if (library.empty()) library = kBuiltLibrary;
  std::error_code error;
  const fs::path real = fs::canonical(library, error);
  if (error)
    throw Error("there is no NVRTC at " + library.string() +
                ": name its libnvrtc.so in WARPSMITH_NVRTC, or the folder of torch in TORCH_ROOT");
  return real;
}

bool is_include_folder(const fs::path& folder) { return fs::exists(folder / "cuda_fp16.h"); }
bool has_toolkit_headers(const fs::path& folder) { return fs::exists(folder / "crt" / "mma.h"); }

// "CUDA_VERSION 13000" of cuda.h.
std::string version_of_headers(const fs::path& folder) {
  std::ifstream file(folder / "cuda.h");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("#define CUDA_VERSION ")) return trim(line.substr(21));
  return "?";
}

// Of a wheel, include/ lies beside lib/; of a toolkit, too. CUDA 13 keeps its C++ library in a folder inside.
std::vector<fs::path> find_include_folders(const fs::path& library) {
  std::vector<fs::path> candidates = {library.parent_path().parent_path() / "include", kBuiltInclude};
  if (const std::string chosen = environment("WARPSMITH_CUDA_INCLUDE"); !chosen.empty())
    candidates = {chosen};
  for (const fs::path& folder : candidates) {
    if (!is_include_folder(folder)) continue;
    const fs::path real = fs::canonical(folder);
    std::vector<fs::path> out = {real};
    if (fs::exists(real / "cccl")) out.push_back(real / "cccl");
    // A toolkit of the same version that lies elsewhere. Last: what is in both is taken from the first.
    if (!has_toolkit_headers(real) && has_toolkit_headers(kBuiltCrt) &&
        version_of_headers(real) == version_of_headers(kBuiltCrt))
      out.push_back(fs::canonical(kBuiltCrt));
    return out;
  }
  throw Error("CUDA's headers were not found in " + candidates.front().string() +
              ": name their folder in WARPSMITH_CUDA_INCLUDE");
}

// The head of the library holds its build id and the sizes of its segments.
std::string digest_of_library(const fs::path& library) {
  std::ifstream file(library, std::ios::binary);
  std::string head(4096, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return sha256_hex(head).substr(0, 16);
}

// NVRTC looks for its own second library by name alone.
std::map<std::string, std::string> library_environment(const fs::path& library) {
  return {{"LD_LIBRARY_PATH", library.parent_path().string()}, {"LC_ALL", "C"}};
}

NvrtcAbout ask_about(const fs::path& program, const fs::path& library) {
  process::ChildSpec spec;
  spec.argv = {program.string(), "--about", library.string()};
  spec.environment = library_environment(library);
  spec.limits.wall_s = 60;
  const process::ChildResult result = process::run_child(spec);
  if (result.ending != process::Ending::kExited || result.exit_code != 0)
    throw Error("NVRTC does not work: " + (result.problem.empty() ? trim(result.err) : result.problem));
  return nvrtc_about_from_json(parse_json(result.out, "warpsmith-nvrtc --about"));
}

}  // namespace

namespace {

NvrtcHere find_nvrtc() {
  NvrtcHere h;
  h.library = find_library();
  h.program = find_program();
  h.include_folders = find_include_folders(h.library);
  h.about = ask_about(h.program, h.library);
  h.id = "NVRTC " + h.about.version + " (" + digest_of_library(h.library) + ") headers " +
         version_of_headers(h.include_folders.front()) + (h.has_header("mma.h") ? " crt" : "") +
         (h.has_header("cuda/") ? " cccl" : "");
  return h;
}

struct Search {
  NvrtcHere here;
  std::string problem;
};

// Looked for once a process.
const Search& search() {
  static const Search done = []() -> Search {
    try {
      return {find_nvrtc(), ""};
    } catch (const Error& e) {
      return {{}, e.what()};
    }
  }();
  return done;
}

}  // namespace

const std::string& nvrtc_problem() { return search().problem; }

const NvrtcHere& nvrtc_here() {
  if (!nvrtc_problem().empty()) throw Error(nvrtc_problem());
  return search().here;
}

bool NvrtcHere::has_header(std::string_view name) const {
  const auto has = [this](std::string_view file) {
    return std::any_of(include_folders.begin(), include_folders.end(),
                       [&](const fs::path& folder) { return fs::exists(folder / file); });
  };
  // Of a folder that is here a file may be missing because there is none of that name: the compiler says so.
  return has(name.substr(0, name.find('/'))) && (name != "mma.h" || has("crt/mma.h"));
}

process::ChildSpec nvrtc_spec(const fs::path& scratch, const CompileOptions& limits) {
  const NvrtcHere& here = nvrtc_here();
  process::ChildSpec spec = compiler_spec(scratch, limits);
  spec.argv = {here.program.string()};
  spec.environment->merge(library_environment(here.library));
  spec.sandbox.read_only = here.include_folders;
  spec.sandbox.read_only.push_back(here.library.parent_path());
  return spec;
}

NvrtcRequest with_places(NvrtcRequest request) {
  request.library = nvrtc_here().library.string();
  for (const fs::path& folder : nvrtc_here().include_folders)
    request.options.push_back("--include-path=" + folder.string());
  return request;
}

NvrtcAnswers read_answers(const NvrtcRequest& request, const fs::path& folder) {
  NvrtcAnswers answers;
  for (const std::string& target : request.targets) {
    const fs::path file = answer_file(folder, target);
    if (!fs::exists(file)) continue;
    try {
      answers.emplace(target, nvrtc_answer_from_json(read_json_file(file)));
    } catch (const Error&) {
      // The child ended while it wrote this one.
    }
  }
  return answers;
}

NvrtcRun run_nvrtc(const NvrtcRequest& request, const fs::path& scratch, const CompileOptions& limits) {
  process::ChildSpec spec = nvrtc_spec(scratch, limits);
  spec.input = to_json(with_places(request)).dump(-1, ' ', false, Json::error_handler_t::replace);
  NvrtcRun run{run_compiler_child(spec), {}};
  // Not the source's fault.
  if (run.outcome == CompilerRun::kFailed && run.output.starts_with(kCannotLoad))
    throw Error(trim(run.output));
  run.answers = read_answers(request, spec.folder);
  return run;
}

}  // namespace warpsmith::toolchain
