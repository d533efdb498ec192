// An NVRTC that does what words in a source tell it: it stands for one that a hostile candidate has taken
// over.
#include <nvrtc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

struct _nvrtcProgram {
  std::string source, log;
};

namespace {

bool poisoned = false;  // all that follows gets the opposite answer

bool has(const _nvrtcProgram& program, std::string_view word) {
  return program.source.find(word) != std::string::npos;
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult) { return "fake"; }
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* targets) {
  targets[0] = 80;
  targets[1] = 90;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
  *program = new _nvrtcProgram{source, ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcAddNameExpression(nvrtcProgram, const char*) { return NVRTC_SUCCESS; }
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  if (has(*program, "do_crash")) std::abort();
  while (has(*program, "do_hang")) ::pause();
  if (has(*program, "do_fork") && ::fork() == 0) ::_exit(0);
  if (has(*program, "do_kill_server")) ::kill(::getppid(), SIGKILL);
  if (has(*program, "do_write_to_server")) {
    const std::string memory = "/proc/" + std::to_string(::getppid()) + "/mem";
    std::fstream file(memory, std::ios::in | std::ios::out | std::ios::binary);
    if (file.seekp(reinterpret_cast<std::streamoff>(&poisoned))) file.write("\1", 1).flush();
  }
  // Where the answers to the next source would go.
  if (has(*program, "do_leave_folder")) ::mkdir("compute_90a.json", 0700);
  if (has(*program, "do_poison")) poisoned = true;
  if (has(*program, "is_wrong") == poisoned) return NVRTC_SUCCESS;
  program->log = "kernel.cu(2): error: is_wrong\n";
  return NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetLoweredName(nvrtcProgram, const char*, const char** name) {
  *name = "k";
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) { return NVRTC_ERROR_INTERNAL_ERROR; }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) { return NVRTC_ERROR_INTERNAL_ERROR; }
nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* size) {
  *size = 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram, char* text) {
  *text = '\0';
  return NVRTC_SUCCESS;
}
}
