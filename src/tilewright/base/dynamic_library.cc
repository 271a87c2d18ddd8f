#include "tilewright/base/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "tilewright/base/environment.h"

namespace tilewright {

Result<DynamicLibrary> DynamicLibrary::open(const char* variable,
                                            const std::vector<std::string>& names) {
  const std::optional<std::string> chosen = environment(variable);
  std::vector<std::string> reasons;
  for (const std::string& name : chosen ? std::vector<std::string>{*chosen} : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return DynamicLibrary(handle, name);
    const char* reason = ::dlerror();
    reasons.push_back(reason != nullptr ? reason : name + " does not load");
  }
  return fail(ErrorKind::Tool, fmt::format("{} cannot be loaded", chosen.value_or(names.front())),
              fmt::format("{}{}", chosen ? fmt::format("{} names it; ", variable) : "",
                          fmt::join(reasons, "; ")));
}

void* DynamicLibrary::find(const char* symbol) const { return ::dlsym(handle_, symbol); }

Status DynamicLibrary::bind_all(const std::vector<Slot>& slots) const {
  for (const Slot& slot : slots) {
    void* const found = find(slot.symbol);
    if (found == nullptr) return missing(slot.symbol);
    std::memcpy(slot.member, &found, sizeof found);
  }
  return {};
}

Status DynamicLibrary::missing(const char* symbol) const {
  return fail(ErrorKind::Tool, fmt::format("{} has no entry point {}", name_, symbol),
              "the library is too old");
}

}  // namespace tilewright
