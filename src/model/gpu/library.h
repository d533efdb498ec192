// A shared library that torch brings, opened when it is asked for: no program is linked with it.
#pragma once

#include <dlfcn.h>

#include <string>

#include "warpsmith/base/error.h"

namespace warpsmith::model {

class Library {
 public:
  explicit Library(const char* name, int scope = RTLD_LOCAL)
      : name_(name), handle_(::dlopen(name, RTLD_NOW | scope)) {
    if (handle_ == nullptr) throw Error(name_ + " cannot be loaded: " + ::dlerror());
  }
  template <typename Function>
  Function* find(const char* function) const {
    void* const symbol = ::dlsym(handle_, function);
    if (symbol == nullptr) throw Error(name_ + " has no " + function);
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  std::string name_;
  void* handle_;
};

}  // namespace warpsmith::model
