// Kinds of hardware that a space can draw from: their keys, and what values of keys cannot be
// built.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/gemmini/config.h"
#include "tilewright/codesign/hardware.h"

namespace tilewright::codesign {

/// One key of a generator: a number, or one of some words.
struct SpaceKey {
  std::string name;
  std::vector<std::string> words;  ///< none: a number
  double low = 0, high = 0;        ///< of numbers
  bool whole = true, power_of_two = false;
  bool required = false;  ///< every space says what it is
  /// Means something only where the key `parent` is one of the words `when`; -1: everywhere.
  int parent = -1;
  std::vector<int> when;
  /// Size of a memory: the best mapping for a large one often fits smaller ones, too.
  bool memory = false;

  std::string text(double value) const;  ///< a number, or the word at that position
};

/// One value per key of a generator; of words their position.
using Values = std::vector<double>;

class Generator {
 public:
  virtual ~Generator() = default;
  virtual std::string_view name() const = 0;
  /// Parents come before those that depend on them.
  virtual const std::vector<SpaceKey>& keys() const = 0;
  virtual const Values& defaults() const = 0;
  /// Sets what follows from other values, of keys that a space does not name (`given`).
  virtual void complete(Values&, const std::vector<bool>& /*given*/) const {}
  /// Why this cannot be built; empty: it can.
  virtual std::vector<std::string> problems(const Values& values) const = 0;
  /// Whether there is a model of what its designs cost; without one a space can be looked at only.
  virtual bool judged() const { return true; }
  /// requires: judged().
  virtual Hardware hardware(const Values& values, const std::string& name) const = 0;
};

const Generator& spatial_generator();
const Generator& vta_generator();
const Generator& gemmini_generator();
const std::vector<const Generator*>& generators();

spatial::Design spatial_design(const Values& values);
vta::Config vta_config(const Values& values);
gemmini::Config gemmini_config(const Values& values);

}  // namespace tilewright::codesign
