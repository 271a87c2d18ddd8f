// Spaces of designs as files: what hardware may be built.
//
// spaces/edge.toml is an example with comments. A file has `kind = "space"`, a name, a technology
// (a name or a file), perhaps a `generator` ("spatial", the default, "vta" or "gemmini"), and
//
//   rules = ["rows * cols <= 256"]      the language of space_rule.h
//   [parameters]                        dimensions of the space:
//   rows = [8, 16, 32]                  - choices
//   banks = { from = 1, to = 8 }        - a range; step = 2 or times = 2 are possible
//   dataflow = ["ws", "os"]             - words
//   [fixed]                             no dimensions:
//   intrinsic = "gemm"                  - one value
//   cols = "rows"                       - computed from others
//   [limits]                            a search looks for designs that keep them
//   power = "2 W"
//
// Keys are those of a design file (hw/spatial.toml). Fixing a primitive removes its dimension. The
// unit (`intrinsic`) may be a dimension; `dataflow` is one only where the unit is gemm. Where
// `links` is not named, gemm has systolic links and the other units full ones.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/codesign/generator.h"
#include "tilewright/codesign/limits.h"
#include "tilewright/codesign/space_rule.h"
#include "tilewright/codesign/technology.h"
#include "tilewright/search/space.h"

namespace tilewright::codesign {

/// What a file says, checked key by key.
struct SpaceFile {
  struct Parameter {
    int key = 0;                 ///< of the generator
    std::vector<double> values;  ///< two or more, rising; of words as written
  };
  struct Computed {
    int key = 0;
    SpaceRule value;
  };
  struct Condition {
    SpaceRule rule;
    std::string place;  ///< file:line:column
  };
  std::string name, about;
  const Generator* generator = &spatial_generator();
  Technology technology;
  std::vector<Parameter> parameters;  ///< in the order of keys
  Values fixed;                       ///< of all keys: what is fixed, or defaults
  std::vector<bool> given;            ///< keys that the file names
  std::vector<Computed> computed;
  std::vector<Condition> rules;
  std::vector<Limit> limits;
};

/// Why no value of that technology has the unit of the limit; empty: it has.
std::string misplaced_unit(const Limit& limit, const Technology& technology);

/// Everything that decides which designs there are and what they cost, as text: for studies, that
/// another file of the same name must not go on with.
std::string fingerprint(const SpaceFile& file);

class DesignSpace {
 public:
  explicit DesignSpace(SpaceFile file);

  const SpaceFile& file() const { return file_; }
  /// One decision per parameter, in the order of keys: sizes by their log2, words one-hot.
  const search::Space& points() const { return points_; }

  /// What a point means for the generator, legal or not.
  Values values(const search::Point& point) const;
  /// Keeps all rules and can be built. Limits are another matter.
  bool legal(const search::Point& point) const;
  /// Why a point is not legal; empty: it is.
  std::vector<std::string> reasons(const search::Point& point) const;
  /// requires: a legal point, a generator that is judged.
  Hardware hardware(const search::Point& point) const;
  /// requires: the generator `spatial` and a legal point.
  spatial::Design design(const search::Point& point) const;

  /// Calls `visit` with every point once, legal or not, until it returns false.
  void for_each(const std::function<bool(const search::Point&)>& visit) const;
  /// How many points are legal; absent where there are more than `most` points to look at.
  std::optional<int64_t> legal_points(double most = 1e7) const;

  /// Whether some values of what a rule reads meet it; absent where that are too many to look at.
  std::optional<bool> can_be_met(const SpaceRule& rule) const;

 private:
  using Visit = std::function<bool(const search::Point&)>;
  bool visit_from(size_t decision, const std::vector<bool>& free, search::Point& point,
                  const Visit& visit) const;
  std::vector<bool> decisions_read(const SpaceRule& rule) const;
  /// Computed values that no design could hold.
  const SpaceFile::Computed* unfit(const Values& values) const;

  SpaceFile file_;
  search::Space points_;
};

/// errors: Parse, with all problems and their places: unknown and missing keys, empty and reversed
/// ranges, rules that no point meets.
Result<DesignSpace> read_space(std::string_view toml, const std::string& place);
/// A name of `builtin_spaces`, or a file (`my.toml`). errors: Usage with the nearest name, Io,
/// Parse.
Result<DesignSpace> load_space(const std::string& name_or_path);
std::vector<std::string> builtin_spaces();

}  // namespace tilewright::codesign
