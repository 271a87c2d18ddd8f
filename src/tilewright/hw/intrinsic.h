// Intrinsics as data: what an instruction of the hardware computes, and how it is written.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::hw {

/// One instruction. Its meaning is a function: what `schedule::Tensorize` matches, the interpreter
/// runs and a back-end replaces by what the fields say.
struct Intrinsic {
  using Fields = std::map<std::string, std::string>;

  Func meaning;
  Fields layout;   ///< memory of each parameter, by its name: `vta.acc`
  Fields compute;  ///< of the back-end: `unit = gemm`, opcode fields, templates
  Fields reset;    ///< how the result is first set to the neutral element; empty: it cannot
  Fields update;   ///< if other than `compute` where the result is not fresh

  const std::string& name() const { return meaning.name; }
  /// A field of `compute`; empty if there is none.
  std::string computed(const std::string& key) const {
    const auto found = compute.find(key);
    return found == compute.end() ? "" : found->second;
  }
};

/// Several intrinsics: IR text with fields in comments before each function, such as
/// `//@ layout.acc = vta.acc` and `//@ compute.unit = gemm` (sections layout, compute, reset,
/// update). `place` is for messages.
/// errors: Parse; Invalid (a field that says nothing, twice, or of an unknown section or parameter;
/// a function the verifier refuses).
Result<std::vector<Intrinsic>> parse_intrinsics(std::string_view text, const std::string& place);
/// The text it parses from.
std::string print(const Intrinsic& intrinsic);

/// Widths of the scalars in VTA's memories.
struct VtaBits {
  int inp = 8, wgt = 8, acc = 32;
};
/// The matrix unit of a VTA: `C[b, o] += X[b, i] * W[o, i]` on one element of each memory.
/// shape: C [batch, block_out], X [batch, block_in], W [block_out, block_in].
/// source: the VTA paper (arXiv 1807.04188).
/// errors: Parse (a width that no type has).
Result<Intrinsic> vta_gemm(int batch, int block_in, int block_out, const VtaBits& bits = {});

}  // namespace tilewright::hw
