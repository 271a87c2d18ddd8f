// One search for designs: a model, a space and goals, kept in a folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/codesign/problem.h"
#include "tilewright/codesign/sqlite/study.h"
#include "tilewright/tune/spatial/methods.h"

namespace tilewright::driver {

struct SearchSettings {
  std::string method = "ours", acquisition;
  int evaluations = 40;
  uint64_t seed = 0;
  tune::MappingSearch mapping;  ///< of each layer on each design
};

/// What a search is about.
struct SearchSubject {
  std::string model_path;
  codesign::Workload workload;
  codesign::DesignSpace space;
  codesign::Goals goals;
};

/// One evaluated design that meets all limits, as reports show it.
struct FrontPoint {
  size_t number = 0;  ///< of its evaluation, from 1
  search::Objectives objectives;
  std::string design;  ///< TOML
};

struct SearchResult {
  std::vector<codesign::StudyRow> rows;  ///< all evaluations, those of earlier runs included
  std::vector<FrontPoint> front;         ///< by the first objective
  size_t fresh = 0;                      ///< evaluations of this run
  search::Stop stop = search::Stop::Trials;
};

/// Evaluates designs until there are `settings.evaluations`, and keeps each in
/// `folder`/study.sqlite before the next begins; at the end writes points.jsonl, front.csv and
/// report.html.
/// errors: Usage (an unknown method), Package (the folder holds another search), Io; Capacity (no
/// legal point; `enumerate` of too many).
Result<SearchResult> search_designs(const SearchSubject& subject, const SearchSettings& settings,
                                    const std::string& folder);

/// The rows that no other feasible row dominates, by the first objective.
std::vector<FrontPoint> front_of(const std::vector<codesign::StudyRow>& rows);
/// The point of the front that is nearest to the best of every objective, on their log scales.
size_t knee_of(const std::vector<FrontPoint>& front);

}  // namespace tilewright::driver
