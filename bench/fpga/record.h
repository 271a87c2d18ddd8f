// What a long run has found so far, in a file: one that was stopped goes on behind it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::bench {

/// What was found of one thing that was looked at.
struct Finding {
  std::string type;
  int64_t count = 1, wrong = 0;  ///< designs; of these differ
  double seconds = 0;
  std::string text;  ///< a line: for people
};

/// Findings by name, a line each: name, type, count, wrong, seconds and text, with tabs between.
class Record {
 public:
  /// Empty: nothing is kept. errors: Io, Invalid (the file has other lines).
  static Result<Record> open(const std::string& file);

  /// Null: not looked at yet.
  const Finding* find(const std::string& name) const;
  void add(const std::string& name, const Finding& finding);
  const std::map<std::string, Finding>& all() const { return all_; }

 private:
  std::string file_;
  std::map<std::string, Finding> all_;
};

}  // namespace tilewright::bench
