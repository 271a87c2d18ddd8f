// The members of a design as files and spaces name them, declared once: reading, writing, checking
// and spaces of designs follow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tilewright/accel/spatial/design.h"

namespace tilewright::spatial {

/// A member that is one of some words; as a number it is the position of its word.
struct Words {
  std::span<const std::string_view> words;
  int (*get)(const Design&);
  void (*set)(Design&, int);
};

/// All members but the name.
struct Key {
  using Int = int& (*)(Design&);
  using Double = double& (*)(Design&);
  std::string_view table;  ///< ``: at the top
  std::string_view name;
  std::variant<Int, Double, Words> value;
  double low = 0, high = 0;  ///< of numbers
  bool power_of_two = false;

  std::string path() const;  ///< `timing.read_latency`
  bool whole() const { return !std::holds_alternative<Double>(value); }
  /// Of words their position.
  double get(const Design& design) const;
  /// requires: a number that its type holds; of words a position.
  void set(Design& design, double to) const;
};
/// In the order in which files have them; `intrinsic` (the unit) is the first.
std::span<const Key> design_keys();

struct Problem {
  std::string key;  ///< path of the key to change
  std::string what;
};
/// As `problems`, each with the key that it is about.
std::vector<Problem> placed_problems(const Design& design);

}  // namespace tilewright::spatial
