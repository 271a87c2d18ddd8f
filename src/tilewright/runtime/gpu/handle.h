// Ownership of what drivers hand out.
#pragma once

#include <functional>
#include <utility>

namespace tilewright::runtime {

/// Owns one object of a driver; the empty handle owns none. requires: T{} is no object.
template <class T>
class Handle {
 public:
  Handle() = default;
  template <class R>
  Handle(T object, R (*release)(T)) : object_(object), release_(release) {}
  Handle(Handle&& other) noexcept
      : object_(std::exchange(other.object_, T{})), release_(std::move(other.release_)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Handle() {
    if (object_ != T{}) release_(object_);
  }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != T{}; }

 private:
  T object_{};
  std::function<void(T)> release_;
};

}  // namespace tilewright::runtime
