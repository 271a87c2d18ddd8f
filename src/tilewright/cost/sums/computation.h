// Sums of products as values: the computations of a Func, one by one, as units may be given them.
//
// Example: MTTKRP has two, `mttkrp_half[i, k, j] += x0[i, k, l] * x1[l, j]` and
// `y0[i, j] += mttkrp_half[i, k, j] * x2[k, j]`.
#pragma once

#include <string>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"
#include "tilewright/cost/spatial/layer.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::cost {

/// result[...] += factor[...] * factor[...] * ..., each index a sum of strided loops; a factor is
/// zero outside of its extents.
struct Computation {
  std::string name;
  std::vector<SpatialLoop> loops;  ///< those of the result first
  std::vector<SpatialTensor> factors;
  SpatialTensor result;
  /// Of the factors and, last, of the result.
  std::vector<DType> dtypes;
  /// By factor: the computation of the same Func whose result it is; -1: given from outside.
  std::vector<int> sources;

  int64_t macs() const;  ///< iterations of all loops
};

bool moves(const SpatialTensor& tensor, int loop);
/// `C[i, j] += A[i, k] * B[k, j]`; padding shows as `x + r - 1`.
std::string to_string(const Computation& computation);

/// A part of a Func that no unit computes.
struct OtherStage {
  std::string name, reason;
  bool free = false;  ///< LOADs or STOREs do it beside their work
  int64_t bytes = 0;  ///< read and written, as int8
  int64_t macs = 0;
};

struct Computations {
  std::vector<Computation> sums;  ///< in the order of the program
  std::vector<OtherStage> others;
};

/// Every block of `func` (inits aside) is a sum or another stage with its reason. Copies that pad
/// or turn an operand are folded into its reads. Loops that all factors and the result share are
/// split off from an index that is computed by `/` and `%`, as groups of channels are. A loop of
/// one iteration is left out where another loop runs through the same tensors.
Computations computations_of(const Func& func);

/// As models of costs see it. errors: Unsupported (not two factors; more loops or dimensions than
/// there is room for; indices that run backwards or along a diagonal).
Result<SpatialLayer> layer_of(const Computation& computation);
/// A layer of a model: int8 factors, sums in i32.
Computation computation_of(const SpatialLayer& layer);

/// The Func of computations that read one another's results. The last one's result is the output,
/// factors from outside are the inputs; sums between have the output's type.
/// requires: each index of a result is a loop of its own.
Func func_of(const std::string& name, const std::vector<Computation>& stages);

/// The computation as a nest for schedule::find_matches: names and sizes do not matter there, loop
/// `n` is called `l<n>`, padding is left out.
Func nest_for_matching(const Computation& computation);

}  // namespace tilewright::cost
