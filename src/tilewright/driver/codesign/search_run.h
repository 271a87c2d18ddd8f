// One search for designs: a model, a space and goals, kept in a folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tilewright/codesign/problem.h"
#include "tilewright/codesign/sqlite/study.h"
#include "tilewright/driver/codesign/front.h"
#include "tilewright/tune/spatial/methods.h"

namespace tilewright::driver {

struct SearchSettings {
  std::string method = "ours", acquisition;
  int evaluations = 0;  ///< designs in all; 0: 40, of `enumerate` all but what bounds rule out
  uint64_t seed = 0;
  tune::MappingSearch mapping;  ///< of each layer on each design
  std::string fidelity;         ///< `tsim:8,synth:4`: levels, and how many designs each looks at
  std::string warm;             ///< folder of another search of the same space; empty: none
};

/// What a search is about.
struct SearchSubject {
  std::string digest;  ///< of the files that the workload comes from
  codesign::Workload workload;
  codesign::DesignSpace space;
  codesign::Goals goals;
};

struct SearchResult {
  /// All evaluations of the model, those of earlier runs included; those that break a limit at a
  /// higher level, or have no result there, say so.
  std::vector<codesign::StudyRow> rows;
  std::vector<codesign::StudyRow> checked;  ///< evaluations at higher levels
  std::string level;                        ///< the highest that judged a design
  std::vector<FrontPoint> front;            ///< `front_at` the highest level
  search::Objectives of_default;            ///< of the default design, by the model
  size_t fresh = 0;                         ///< evaluations of this run
  size_t skipped = 0;  ///< designs that `enumerate` proved worse than others without evaluation
  search::Stop stop = search::Stop::Trials;
};

/// Evaluates designs until there are `settings.evaluations`, and keeps each (of `enumerate` some
/// hundred at once) in `folder`/study.sqlite before the next begins; at the end writes
/// points.jsonl, front.csv and report.html. With `settings.fidelity` the best designs of the front,
/// nearest to the knee first, are looked at again at each level; each that breaks a limit there is
/// infeasible and buys one evaluation more, up to as many again. `opened` is called once the folder
/// is known to be that of this search, before the first evaluation. errors: Usage (an unknown
/// method or level), Package (the folder holds another search), Io; Capacity (no legal point;
/// `enumerate` of too many); Unsupported (no layer matches, a level that cannot tell of such
/// designs); Tool (that of a level).
Result<SearchResult> search_designs(const SearchSubject& subject, const SearchSettings& settings,
                                    const std::string& folder,
                                    const std::function<Status()>& opened = {});

/// What must be the same for results to be comparable.
codesign::StudyKey study_key(const SearchSubject& subject, const tune::MappingSearch& mapping);
/// Says which units have nothing to do. errors: Unsupported (no layer matches a unit of the space,
/// or nobody knows what its designs cost).
Status check_subject(const SearchSubject& subject);
/// errors: Io.
Status make_folder(const std::string& folder);
/// Outcomes under the goals of the subject, on all threads.
std::vector<search::MultiOutcome> evaluate_designs(const SearchSubject& subject,
                                                   codesign::DesignEvaluator& evaluator,
                                                   const std::vector<search::Point>& points);

}  // namespace tilewright::driver
