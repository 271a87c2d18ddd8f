// Which algorithm computes a convolution is decided before there are kernels: here by what was
// measured. Records of such decisions have a convolution as workload and no schedule.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tilewright/compile/compile.h"
#include "tilewright/driver/subject.h"

namespace tilewright::driver {

/// A decision for tiles of `m` (0: direct), as after a race that took `cost`. units: ns.
records::Record form_record(const tensor::Conv2dShape& conv, int64_t m,
                            const compile::CompileOptions& options, double cost);

/// Answers with `records`, by convolution.
compile::FindForm find_form(const std::vector<records::Record>& records);

/// A convolution that the model of the machine would compute in one form and might in another.
struct ConvForms {
  tensor::Conv2dShape conv;
  int64_t rule = 0, other = 0;   ///< tiles; 0: direct
  std::set<std::string> nodes;   ///< of the graph
  double before = 0, after = 0;  ///< of all nodes in both forms, in the last race. units: ns
};

/// A model with another form of some of its convolutions.
struct OtherForms {
  compile::CompiledModel compiled;
  std::vector<ConvForms> convs;
};

/// Tiles of the other forms of `conv` that are not hopeless by the model, those it finds fastest
/// first. `rule`: the tile that it would take.
std::vector<int64_t> other_tiles(const tensor::Conv2dShape& conv, int64_t rule,
                                 const compile::CompileOptions& options);

/// Compiles `subject` with every convolution of `asked` in the form that is number `rank` of its
/// `other_tiles`; absent if none has so many. `rule`: compiled without; `asked`: the convolutions
/// that its passes asked about. errors: as compile_subject.
Result<std::optional<OtherForms>> compile_other_forms(const Subject& subject,
                                                      const compile::CompiledModel& rule,
                                                      const std::vector<tensor::Conv2dShape>& asked,
                                                      size_t rank,
                                                      const compile::CompileOptions& options);

/// Whether `step` is part of one of the convolutions of `forms`, steps around it included.
bool computes(const OtherForms& forms, const std::string& step);
/// Time in `steps` (by name) of what computes the nodes of `conv`, steps around it included.
double time_of(const ConvForms& conv, const std::map<std::string, double>& steps);

}  // namespace tilewright::driver
