// How whoever compiles hears of progress and warnings, and stops it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::compile {

/// Functions that the compiler calls, from one thread at a time; empty ones are not called.
struct Observer {
  /// `done` of `total` steps of `task` are done, `what` is next; the last call has done == total.
  std::function<void(const std::string& task, int64_t done, int64_t total, const std::string& what)>
      progress;
  /// One remark or warning, as text for people.
  std::function<void(const std::string&)> warn;
  /// Whether to stop; called by several threads at once.
  std::function<bool()> cancelled;

  void step(const std::string& task, int64_t done, int64_t total, const std::string& what) const {
    if (progress) progress(task, done, total, what);
  }
  void end(const std::string& task) const { step(task, 1, 1, {}); }
  void say(const std::string& text) const {
    if (warn && !text.empty()) warn(text);
  }
  bool stop() const { return cancelled && cancelled(); }
  /// errors: Interrupted.
  Status check() const {
    if (!stop()) return {};
    return fail(ErrorKind::Interrupted, "interrupted");
  }
};

}  // namespace tilewright::compile
