#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "code.h"
#include "server.h"

namespace warpsmith::device {

namespace {

namespace ws = ::warpsmith_extension;
namespace fs = std::filesystem;

void say(ws::Frame& frame, ws::Status status, const std::string& words) {
  frame.status = status;
  const std::size_t bytes = std::min<std::size_t>(words.size(), ws::kMessageBytes - 1);
  std::memcpy(frame.message, words.data(), bytes);
  frame.message[bytes] = '\0';
}

class SharedObject : public ExtensionCode {
 public:
  explicit SharedObject(fs::path binary) : binary_(std::move(binary)) {}
  void open(ExtensionServer& server) override { server_ = &server; }

  void load(ws::Frame& frame) override {
    void* const object = ::dlopen(binary_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (object == nullptr) {
      const std::string why = ::dlerror();
      const std::size_t colon = why.rfind(": ");
      return say(frame, ws::Status::kNoForward,
                 "it cannot be loaded: " + why.substr(colon == std::string::npos ? 0 : colon + 2));
    }
    entry_ = reinterpret_cast<ws::Entry>(::dlsym(object, WARPSMITH_EXTENSION_ENTRY));
    if (entry_ == nullptr)
      return say(frame, ws::Status::kNoForward, "it has no forward(): torch/extension.h is not included");
    entry_(ws::Action::kBind, &server_->services(), &frame);
  }

  void call(std::uint32_t set, ws::Frame& frame) override {
    const std::vector<ws::PlainTensor> inputs = server_->inputs_of(set);
    frame.inputs = inputs.data();
    frame.input_count = static_cast<std::int32_t>(inputs.size());
    frame.scalars = server_->scalars().data();
    frame.scalar_count = static_cast<std::int32_t>(server_->scalars().size());
    entry_(ws::Action::kCall, &server_->services(), &frame);
  }
  void drop(ws::Frame& frame) override { entry_(ws::Action::kDrop, &server_->services(), &frame); }

  bool row(std::uint32_t first, std::uint32_t count) override {
    for (std::uint32_t set = first; set < first + count; ++set) {
      server_->before_call(set);
      if (!server_->call(set)) return false;
    }
    return true;
  }

 private:
  fs::path binary_;
  ExtensionServer* server_ = nullptr;
  ws::Entry entry_ = nullptr;
};

}  // namespace

std::unique_ptr<ExtensionCode> make_shared_object_code(fs::path binary) {
  return std::make_unique<SharedObject>(std::move(binary));
}

}  // namespace warpsmith::device
