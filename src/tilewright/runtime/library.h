// Compiled code of a package, loaded into this process.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tilewright/base/result.h"

namespace tilewright::runtime {

/// A shared library loaded from memory; unloaded with its last owner. errors: Package (the loader's
/// text), Io (no place for it).
class Library {
 public:
  static Result<std::shared_ptr<const Library>> load(std::string_view bytes,
                                                     const std::string& name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// nullptr if there is none.
  void* find(const std::string& symbol) const;

 private:
  Library() = default;
  void* handle_ = nullptr;
  int fd_ = -1;
};

}  // namespace tilewright::runtime
