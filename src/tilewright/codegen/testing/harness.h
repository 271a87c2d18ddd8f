// Differential tests of back-ends: programs, arguments, a serial runtime, comparison with interp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/testing/guard.h"
#include "tilewright/interp/interp.h"

namespace tilewright::codegen::testing {

/// A scheduled or tensor-level program and how exactly a back-end must agree with the interpreter.
struct Case {
  std::string name;  ///< letters, digits and _; unique
  Func func;
  double tolerance = 0;    ///< relative to max(1, |expected|); 0 means equal bits
  bool real_data = false;  ///< arguments with fractions instead of small integers
};

/// Element-wise operators, casts, reductions, convolutions, guards, nests with every loop kind,
/// over all dtypes and shapes with primes and tails.
std::vector<Case> standard_cases();
/// Random programs with these seeds, some of their loops unrolled.
std::vector<Case> random_cases(uint64_t first, uint64_t last);

/// Values for every parameter, seeded. Integer-valued unless `real_data`.
interp::Arguments random_arguments(const Func& func, uint64_t seed, bool real_data = false);

/// How a caller lays out a parameter: where its elements are, in row-major order of its shape.
struct Layout {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<int64_t> offsets;  ///< in elements
  int64_t bytes = 0;             ///< from the first element to the end of the last
};
/// errors: Invalid (a shape or stride that the scalars do not decide).
Result<Layout> layout_of(const Func& func, const Param& param, const interp::Arguments& arguments);
/// Between a dense array and memory laid out so. requires: `array` has the layout's shape and type.
void scatter(const Layout& layout, const Array& array, unsigned char* memory);
Array gather(const Layout& layout, const unsigned char* memory);

/// Calls `kernel` with a parallel_for that runs iterations backwards on two worker numbers, every
/// buffer and the workspace between pages without access. errors: Mismatch (memory outside was
/// touched).
Result<std::map<std::string, Array>> call_kernel(const Func& func, tw_kernel kernel,
                                                 const KernelInfo& info,
                                                 const interp::Arguments& arguments,
                                                 Side side = Side::Back);

/// errors: Mismatch with the first differing element.
Status compare(const std::map<std::string, Array>& expected,
               const std::map<std::string, Array>& got, double tolerance);

/// All cases through the default pipeline, named after the case. errors: as the passes report.
Result<std::vector<Func>> lower_all(const std::vector<Case>& cases);
/// Runs the kernel on two sets of arguments and compares with the interpreter on the Func as given.
Status check(const Case& test, tw_kernel kernel, const KernelInfo& info);

}  // namespace tilewright::codegen::testing
