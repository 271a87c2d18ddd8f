// Instructions of CPUs that compute more than lanes of one operation: dot products and small
// matrix products, described in hw/intrinsics/{x86,aarch64}.tw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/intrinsic.h"
#include "tilewright/hw/target.h"

namespace tilewright::hw {

/// A vector register as instructions see it: `v16i32`.
struct RegisterType {
  int lanes = 1;
  DType dtype = DType::I8;
  int bits() const { return lanes * bit_width(dtype); }
};
/// errors: Parse.
Result<RegisterType> parse_register_type(std::string_view text);

/// How a compiler calls an instruction: LLVM intrinsic, operands in order with their registers. The
/// first operand is the result's old value.
struct CpuCall {
  struct Operand {
    size_t param;  ///< of the meaning
    RegisterType type;
    bool turned = false;  ///< a matrix whose columns the register holds one after the other
  };
  std::string call;
  std::vector<Operand> operands;
};
/// errors: Invalid (fields are missing or do not fit the meaning).
Result<CpuCall> cpu_call(const Intrinsic& intrinsic);

/// All of both files; valid by test.
const std::vector<Intrinsic>& cpu_intrinsics();
bool has_intrinsic(const CpuTarget& target, const Intrinsic& intrinsic);
/// The instruction of `target` that means `callee`; null if there is none.
const Intrinsic* find_intrinsic(const CpuTarget& target, const Func& callee);

/// `acc[lanes] += sum of a[depth] * b[lanes, depth]`: one instruction with one operand repeated.
struct Dot {
  const Intrinsic* intrinsic = nullptr;
  DType a = DType::U8, b = DType::I8, acc = DType::I32;
  int64_t lanes = 0, depth = 0;
  int64_t rows = 1;  ///< of a tile
};
/// What the lanes of a dot product multiply.
enum class DotKind {
  Repeated,  ///< the same a[depth]
  Taps,      ///< a[depth, lanes]: each lane a window of its own, `a[.., lane] * b[lane, ..]`
  Tile,      ///< a[rows, depth], acc[rows, lanes]: a product of small matrices
};
/// The dot products of `target`, widest first.
std::vector<Dot> dots_of(const CpuTarget& target, DotKind kind = DotKind::Repeated);
/// The widest one of `target` with these operand types whose lanes divide `extent` (0: any).
std::optional<Dot> find_dot(const CpuTarget& target, DType a, DType b, int64_t extent = 0,
                            DotKind kind = DotKind::Repeated);

}  // namespace tilewright::hw
