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
/// errors: Io, and those of parse_intrinsics.
Result<std::vector<Intrinsic>> load_intrinsics(const std::string& path);
/// The text it parses from.
std::string print(const Intrinsic& intrinsic);

/// The function that sets the result to the neutral element of its combination, named
/// `<name>.reset`. errors: Unsupported if the meaning is no single nest around an update.
Result<Func> reset_of(const Intrinsic& intrinsic);

/// Scalar types of VTA's memories.
struct VtaTypes {
  DType inp = DType::I8, wgt = DType::I8, acc = DType::I32;
};
/// The matrix unit of a VTA: `acc[b, o] += inp[b, i] * wgt[o, i]` on one element of each memory.
/// shape: acc [batch, block_out], inp [batch, block_in], wgt [block_out, block_in].
/// source: the VTA paper (arXiv 1807.04188).
std::string vta_gemm(int batch, int block_in, int block_out, const VtaTypes& types = {});

}  // namespace tilewright::hw
