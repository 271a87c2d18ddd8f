// Which algorithm computes a convolution is decided before there are kernels: here by what was
// measured. Records of such decisions have a convolution as workload and no schedule.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/driver/compile.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// `conv 1x64->64 of 56x56, window 3x3`: what records know a convolution by.
std::string conv_text(const graph::PlaneConv& conv);
/// The key of its records.
std::string conv_key(const graph::PlaneConv& conv);

/// A decision for tiles of `m` (0: direct), as after a race that took `cost`. units: ns.
tune::Record form_record(const graph::PlaneConv& conv, int64_t m, const CompileOptions& options,
                         double cost);
/// The tile that a record decides for; absent where it is about a schedule.
std::optional<int64_t> form_in(const tune::Record& record);
/// `direct` or `winograd 4`.
std::string form_name(int64_t m);

/// Answers with `records`, by convolution.
FindForm find_form(const std::vector<tune::Record>& records);

/// A convolution that the model of the machine would compute in one form and might in another.
struct ConvForms {
  graph::PlaneConv conv;
  int64_t rule = 0, other = 0;   ///< tiles; 0: direct
  std::set<std::string> nodes;   ///< of the graph
  double before = 0, after = 0;  ///< of all nodes in both forms, in the last race. units: ns
};

/// A model with another form of some of its convolutions.
struct OtherForms {
  CompiledModel compiled;
  std::vector<ConvForms> convs;
};

/// Tiles of the other forms of `conv` that are not hopeless by the model, those it finds fastest
/// first. `rule`: the tile that it would take.
std::vector<int64_t> other_tiles(const graph::PlaneConv& conv, int64_t rule,
                                 const CompileOptions& options);

/// Compiles `subject` with every convolution of `asked` in the form that is number `rank` of its
/// `other_tiles`; absent if none has so many. `rule`: compiled without; `asked`: the convolutions
/// that its passes asked about. errors: as compile_subject.
Result<std::optional<OtherForms>> compile_other_forms(const Subject& subject,
                                                      const CompiledModel& rule,
                                                      const std::vector<graph::PlaneConv>& asked,
                                                      size_t rank, const CompileOptions& options);

/// Whether `step` is part of one of the convolutions of `forms`, steps around it included.
bool computes(const OtherForms& forms, const std::string& step);
/// Time in `steps` (by name) of what computes the nodes of `conv`, steps around it included.
double time_of(const ConvForms& conv, const std::map<std::string, double>& steps);

}  // namespace tilewright::driver
