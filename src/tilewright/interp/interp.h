// The reference interpreter: the meaning of a program, slow and obvious (docs/ir.md, line by line).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::interp {

/// Arguments by parameter name: in and const are read, inout read and written, out created by `run`
/// (passing one is allowed: it is overwritten). Scalars by name.
struct Arguments {
  std::map<std::string, Array> arrays;
  std::map<std::string, int64_t> scalars;
};

/// A violation found by the checking mode.
struct Finding {
  enum class Kind { Race, UndefinedRead, WrittenTwice, OutOfBounds } kind;
  std::string text;  ///< block, buffer, indices and the loop concerned
};

struct Options {
  /// Shuffle concurrent loops (seeded) and report conflicts, undefined reads, double writes.
  bool check = false;
  /// The checking mode reports elements written twice. Programs after the steps `inplace` and
  /// `pipeline` overwrite elements on purpose: pass false for them.
  bool single_assignment = true;
  uint64_t seed = 1;
  size_t max_findings = 8;
  /// Polled now and then; true stops with ErrorKind::Interrupted.
  std::function<bool()> stop;
};

struct Outcome {
  std::map<std::string, Array> outputs;  ///< out and inout parameters
  std::vector<Finding> findings;
};

/// Runs `func`. errors: Invalid (missing or misshapen argument, index out of bounds, scalar out of
/// range).
Result<Outcome> run(const Func& func, const Arguments& arguments, const Options& options = {});

/// Value of a constant expression (no variables, no loads); used by tests of arith.
Result<double> evaluate(const Expr& e, const std::map<Var, int64_t>& values = {});

}  // namespace tilewright::interp
