// Tensorize choices as a table and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tilewright/codesign/association.h"
#include "tilewright/codesign/choices.h"
#include "tilewright/driver/codesign/subjects.h"

namespace tilewright::driver {

/// One computation on several units.
struct ComputationReport {
  std::string title;  ///< of the layer or the computation
  cost::Computation computation;
  std::vector<codesign::UnitChoices> units;
};

struct SubjectReport {
  std::string name;
  std::vector<ComputationReport> computations;
  std::vector<codesign::Chain> chains;
  std::vector<cost::OtherStage> others;
};

/// `cycles`: predicted for each choice. errors: as codesign::workload_of of a model.
Result<SubjectReport> choices_report(const CodesignSubject& subject,
                                     const std::vector<spatial::Design>& designs, bool cycles);

std::string to_text(const SubjectReport& report, const std::vector<spatial::Design>& designs);
nlohmann::ordered_json to_json(const SubjectReport& report,
                               const std::vector<spatial::Design>& designs);

}  // namespace tilewright::driver
