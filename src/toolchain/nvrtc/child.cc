#include "child.h"

#include <dlfcn.h>
#include <linux/seccomp.h>
#include <nvrtc.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "warpsmith/base/error.h"
#include "warpsmith/base/files.h"
#include "warpsmith/process/child.h"

namespace warpsmith::toolchain {

namespace {

// The calls that are used. The library stays loaded.
class Nvrtc {
  void* handle_;  // first: the calls are found in it

 public:
  explicit Nvrtc(const std::string& library) : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw Error(kCannotLoad + std::string(::dlerror()));
  }

#define WARPSMITH_NVRTC_CALL(name) \
  decltype(&::nvrtc##name) name = find<decltype(&::nvrtc##name)>("nvrtc" #name)
  WARPSMITH_NVRTC_CALL(Version);
  WARPSMITH_NVRTC_CALL(GetErrorString);
  WARPSMITH_NVRTC_CALL(GetNumSupportedArchs);
  WARPSMITH_NVRTC_CALL(GetSupportedArchs);
  WARPSMITH_NVRTC_CALL(CreateProgram);
  WARPSMITH_NVRTC_CALL(DestroyProgram);
  WARPSMITH_NVRTC_CALL(AddNameExpression);
  WARPSMITH_NVRTC_CALL(CompileProgram);
  WARPSMITH_NVRTC_CALL(GetProgramLogSize);
  WARPSMITH_NVRTC_CALL(GetProgramLog);
  WARPSMITH_NVRTC_CALL(GetLoweredName);
  WARPSMITH_NVRTC_CALL(GetCUBINSize);
  WARPSMITH_NVRTC_CALL(GetCUBIN);
  WARPSMITH_NVRTC_CALL(GetPTXSize);
  WARPSMITH_NVRTC_CALL(GetPTX);
#undef WARPSMITH_NVRTC_CALL

  void check(nvrtcResult result, const char* what) const {
    if (result == NVRTC_SUCCESS) return;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY) throw Error("NVRTC: out of memory");
    throw Error(std::string("NVRTC: ") + what + ": " + GetErrorString(result));
  }

 private:
  template <typename F>
  F find(const char* name) const {
    void* const symbol = ::dlsym(handle_, name);
    if (symbol == nullptr) throw Error(std::string(kCannotLoad) + "it has no " + name);
    return reinterpret_cast<F>(symbol);
  }
};

class Program {
 public:
  Program(const Nvrtc& nvrtc, const NvrtcRequest& request) : nvrtc_(nvrtc) {
    std::vector<const char*> texts, names;
    for (const auto& [name, text] : request.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    nvrtc.check(nvrtc.CreateProgram(&program_, request.source.c_str(), "kernel.cu",
                                    static_cast<int>(names.size()), texts.data(), names.data()),
                "creating a program");
    for (const std::string& name : request.names)
      nvrtc.check(nvrtc.AddNameExpression(program_, name.c_str()), "adding a name");
  }
  ~Program() { nvrtc_.DestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Whether it compiled. What a candidate can bring about is data, what it cannot throws.
  bool compile(const std::vector<std::string>& options) {
    std::vector<const char*> list;
    for (const std::string& o : options) list.push_back(o.c_str());
    const nvrtcResult result = nvrtc_.CompileProgram(program_, static_cast<int>(list.size()), list.data());
    if (result == NVRTC_ERROR_COMPILATION || result == NVRTC_ERROR_INVALID_OPTION ||
        result == NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID)
      return false;
    nvrtc_.check(result, "compiling");
    return true;
  }

  std::string log() const {
    std::size_t size = 0;
    if (nvrtc_.GetProgramLogSize(program_, &size) != NVRTC_SUCCESS || size == 0) return "";
    std::string text(size, '\0');
    if (nvrtc_.GetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return "";
    // With --ptxas-options=-v another NUL stands between the figures and why the assembler refused.
    std::erase(text, '\0');
    return text;
  }

  // Empty where there is no such thing.
  std::string lowered(const std::string& name) const {
    const char* out = nullptr;
    if (nvrtc_.GetLoweredName(program_, name.c_str(), &out) != NVRTC_SUCCESS || out == nullptr) return "";
    return out;
  }

  std::string cubin() const {
    std::size_t size = 0;
    nvrtc_.check(nvrtc_.GetCUBINSize(program_, &size), "asking for the cubin");
    std::string bytes(size, '\0');
    nvrtc_.check(nvrtc_.GetCUBIN(program_, bytes.data()), "asking for the cubin");
    return bytes;
  }

  std::string ptx() const {
    std::size_t size = 0;
    nvrtc_.check(nvrtc_.GetPTXSize(program_, &size), "asking for the PTX");
    std::string text(size, '\0');
    nvrtc_.check(nvrtc_.GetPTX(program_, text.data()), "asking for the PTX");
    return text;
  }

 private:
  const Nvrtc& nvrtc_;
  nvrtcProgram program_ = nullptr;
};

// Without fsync: what a power cut leaves half written is found by its checksum in the cache.
void write_whole(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) throw system_error("cannot write " + path.string(), errno);
}

// In a fork of the server: NVRTC reads a candidate, and is shut off from the server and its other forks.
void answer_in_fork(int socket) {
  ::prctl(PR_SET_DUMPABLE, 1);  // the guard looks at what it has open
  ::close(socket);
  // What it has to say is asked for again, in a child of its own.
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(STDIN_FILENO, stream);
  // The server may fork, its forks may not. Without a sandbox there may be no filter either.
  if (::prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER) process::enter_compiling_seccomp(false);
  run_nvrtc_request(nvrtc_request_from_json(read_json_file(kRequestFile)));
}

bool exited_well(pid_t fork) {
  int status = 0;
  while (::waitpid(fork, &status, 0) < 0)
    if (errno != EINTR) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == kExitOk;
}

}  // namespace

NvrtcAbout describe_nvrtc(const std::string& library) {
  const Nvrtc nvrtc(library);
  NvrtcAbout about;
  int major = 0, minor = 0, count = 0;
  nvrtc.check(nvrtc.Version(&major, &minor), "asking for the version");
  about.version = std::to_string(major) + "." + std::to_string(minor);
  nvrtc.check(nvrtc.GetNumSupportedArchs(&count), "asking for the targets");
  about.targets.resize(static_cast<std::size_t>(count));
  nvrtc.check(nvrtc.GetSupportedArchs(about.targets.data()), "asking for the targets");
  return about;
}

void run_nvrtc_request(const NvrtcRequest& request) {
  const Nvrtc nvrtc(request.library);
  for (const std::string& target : request.targets) {
    Program program(nvrtc, request);
    std::vector<std::string> options = request.options;
    options.push_back("--gpu-architecture=" + target);
    NvrtcAnswer answer;
    answer.ok = program.compile(options);
    answer.log = program.log();
    if (answer.ok) {
      for (const std::string& name : request.names) answer.lowered[name] = program.lowered(name);
      write_whole(cubin_file(".", target), target.starts_with("compute_") ? program.ptx() : program.cubin());
    }
    // Last: it makes the answer whole.
    write_whole(answer_file(".", target),
                to_json(answer).dump(-1, ' ', false, Json::error_handler_t::replace));
    if (answer.ok && request.one_is_enough) return;
  }
}

void serve_nvrtc(const std::string& library, int socket) {
  const Nvrtc loaded(library);  // by all forks at once
  // No fork reads or writes this process's memory by /proc.
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) throw system_error("prctl", errno);
  for (char request = 0; ::read(socket, &request, 1) == 1;) {
    const pid_t fork = ::fork();
    if (fork == 0) {
      try {
        answer_in_fork(socket);
      } catch (...) {
        ::_exit(kExitFailed);
      }
      ::_exit(kExitOk);
    }
    const char reply = fork > 0 && exited_well(fork) ? kServed : kNotServed;
    if (::write(socket, &reply, 1) != 1) return;
  }
}

}  // namespace warpsmith::toolchain
