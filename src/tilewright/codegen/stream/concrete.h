// Index expressions with the outer loops' values filled in: what is left is a
// sum over the loops of one nest, or a plain number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::codegen::stream {

/// Loops of a nest that are not unrolled here.
inline constexpr size_t kMaxLoops = 16;

/// c + sum of k[i] * (loop i).
struct Form {
  int64_t c = 0;
  std::array<int64_t, kMaxLoops> k{};

  bool constant() const;
  Form& operator+=(const Form& other);
  Form& scale(int64_t factor);
};

struct Range {
  int64_t lo = 0, hi = 0;  ///< inclusive
};

/// Values of variables: numbers, or forms over the loops of the present nest.
class Env {
 public:
  void set(const Var& var, int64_t value) { set(var, Form{value, {}}); }
  void set(const Var& var, const Form& value) { values_[var.id()] = value; }

  /// Starts a nest: it has no loops yet.
  void clear_loops() { extents_.clear(); }
  /// `var` runs from 0 to extent - 1. requires: fewer than kMaxLoops loops,
  /// extent >= 1.
  size_t add_loop(const Var& var, int64_t extent);
  /// Loop `loop` now starts at `lo` and has `extent` iterations.
  void clip_loop(size_t loop, const Var& var, int64_t lo, int64_t extent);
  const std::vector<int64_t>& extents() const { return extents_; }

  /// Absent if `e` is no sum of loops.
  std::optional<Form> form(const Expr& e) const;
  /// Absent if `e` depends on loops of the nest (or on data).
  std::optional<int64_t> value(const Expr& e) const;
  /// Values that a form takes.
  Range range(const Form& f) const;
  /// Bounds on the values of `e`, where they can be shown.
  std::optional<Range> range(const Expr& e) const;

  enum class Truth { Never, If, Unknown };
  /// Appends forms that must all be >= 0 for `condition` to be `wanted`; those
  /// that always are do not appear. Unknown: not a conjunction of inequalities.
  Truth collect(const Expr& condition, bool wanted, std::vector<Form>& out) const;
  /// Absent if the condition depends on loops of the nest.
  std::optional<bool> decide(const Expr& condition) const;

 private:
  std::optional<Form> binary(const Binary& b) const;
  Truth compare(const Binary& b, bool wanted, std::vector<Form>& out) const;
  Truth nonneg(Form f, std::vector<Form>& out) const;

  std::unordered_map<const void*, Form> values_;
  std::vector<int64_t> extents_;
};

}  // namespace tilewright::codegen::stream
