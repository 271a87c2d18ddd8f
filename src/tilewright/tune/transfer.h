// Points known from elsewhere: those of earlier runs, and those of shapes alike.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/records/store.h"
#include "tilewright/search/space.h"
#include "tilewright/tune/methods.h"
#include "tilewright/tune/space.h"

namespace tilewright::tune {

/// The point of `space` nearest to one of another space of the same decisions: each takes the value
/// of the same text, else the one whose numbers are nearest. Lists of tiles, the outermost first,
/// keep the sizes of tiles, and go over more or fewer of them.
search::Point nearest_point(const search::Space& space, std::string_view text);

/// Programs of equal structure are equal up to their integers. units: sum of |log2| of the ratios
/// of these; absent where the structures differ.
std::optional<double> shape_distance(std::string_view func, std::string_view other);

/// The programs of a store by their structure, read once for all kernels of a run.
class ProgramsAlike {
 public:
  ProgramsAlike() = default;  ///< knows none
  /// errors: what the store reports.
  static Result<ProgramsAlike> read(const records::Store& store);
  /// Keys of those whose structure is that of a program (records::workload_text), itself excepted;
  /// the nearest first.
  std::vector<std::string> nearest(const std::string& text) const;

 private:
  struct Program {
    std::vector<double> numbers;
    std::string key;
  };
  std::map<std::string, std::vector<Program>> programs_;  ///< by hash of the structure
};

/// Where a search may start.
struct Transferred {
  std::vector<search::Point> points;  ///< best first; their costs say nothing here
  std::string machine;                ///< that they come from; empty: the task's own
};
/// The points that the best `count` records of the same program on another machine suggest for
/// `task`, or those of the nearest shapes of the same structure on its own, the best of each shape
/// first; none where the store has neither. `space_name`: as in Record::point. errors: what the
/// store reports.
Result<Transferred> transferred_points(const records::Store& store, const ProgramsAlike& alike,
                                       const measure::Task& task, const search::Space& space,
                                       const std::string& space_name, int count);

/// What a model may learn from: the nearest programs of the structure of `task` that have records
/// of its target and compiler, a few, each with a few schedules between the cheapest and the
/// dearest. errors: what the store reports.
Result<std::vector<KnownProgram>> known_programs(const records::Store& store,
                                                 const ProgramsAlike& alike,
                                                 const measure::Task& task,
                                                 const std::string& compiler);

}  // namespace tilewright::tune
