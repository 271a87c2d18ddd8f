// Libraries that a machine may lack: drivers and compilers of devices, loaded when first needed.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

/// A loaded library. It stays loaded to the end of the process, as drivers own threads.
class DynamicLibrary {
 public:
  /// The library that the environment variable `variable` names, or else the first of `names` that
  /// the loader finds. errors: Tool, with the loader's text.
  static Result<DynamicLibrary> open(const char* variable, const std::vector<std::string>& names);

  /// nullptr if there is none.
  void* find(const char* symbol) const;
  /// Sets `function` to the entry point `symbol`. errors: Tool (too old to have it).
  template <class Function>
  Status bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr ? Status{} : missing(symbol);
  }
  /// The same of many: `member` points to a pointer to a function.
  struct Slot {
    void* member;
    const char* symbol;
  };
  Status bind_all(const std::vector<Slot>& slots) const;
  const std::string& name() const { return name_; }

 private:
  DynamicLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  Status missing(const char* symbol) const;

  void* handle_;
  std::string name_;
};

}  // namespace tilewright
