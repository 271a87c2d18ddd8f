// The designs of a search that no other beats.
#pragma once

#include <string>
#include <vector>

#include "tilewright/codesign/sqlite/study.h"

namespace tilewright::driver {

/// One evaluated design that meets all limits, as reports show it.
struct FrontPoint {
  size_t number = 0;  ///< of its evaluation, from 1
  search::Objectives objectives;
  std::string design;  ///< TOML
  std::string level;   ///< that the objectives are of
  search::Point point;
};

/// The designs that no other feasible one dominates, by the first objective; each with what the
/// highest level said of it.
std::vector<FrontPoint> front_of(const std::vector<codesign::StudyRow>& rows);
/// Where figures are of: the highest level that judged a design of `rows`.
std::string highest_level(const std::vector<codesign::StudyRow>& rows);
/// The front of the designs that `level` judged, by its figures: those of two levels do not
/// compare, and one front of both would favour the level that flatters.
std::vector<FrontPoint> front_at(const std::vector<codesign::StudyRow>& rows,
                                 const std::string& level);
/// How far each point of the front is from the best of every objective, on their log scales.
std::vector<double> knee_distances(const std::vector<FrontPoint>& front);
/// The point of the front that is nearest to the best of every objective, on their log scales.
size_t knee_of(const std::vector<FrontPoint>& front);

}  // namespace tilewright::driver
