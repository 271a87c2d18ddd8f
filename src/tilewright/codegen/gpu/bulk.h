// Copies that the device's copy engine makes, in the text of kernels for CUDA: which maps they
// take, how one thread starts them and how all threads find that they have come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/codegen/common/expr_writer.h"
#include "tilewright/lower/gpu.h"

namespace tilewright::codegen {

/// What kernels with bulk copies use: maps as parameters, a tile brought to shared memory, barriers
/// that count its bytes. source: PTX ISA, 9.7.9.27 (cp.async.bulk.tensor) and 9.7.13.15 (mbarrier).
std::string cuda_bulk_helpers();

/// The thread that starts copies, the same everywhere. Asked where it is needed, since then the
/// assembler knows that one thread of a warp is here and needs no loop over those that might be.
/// requires: all threads of the block come here, whole warps.
inline constexpr std::string_view kOneThread = "tw_first_warp && tw_elected()";

/// Groups of copies, as commits and waits count them: a ring of barriers has one for each group
/// under way. A thread expects the bytes of a copy, starts it, and arrives when its group is
/// complete; everybody waits for groups in their order, by the parity of the turns of the ring.
class BulkText {
 public:
  explicit BulkText(const lower::BulkUse& use) : use_(use) {}

  bool any() const { return use_.groups > 0; }
  /// One for each map, behind all others.
  std::vector<std::string> parameters() const;
  /// Makes the barriers ready. `memory`: an expression for where they are; empty: declared here.
  void begin(const std::string& memory, CText& out) const;
  void commit(CText& out) const;
  void wait(int64_t groups, CText& out) const;
  /// The copy that `nest` is; false if it is none. requires: kOneThread.
  bool fetch(const For& nest, CNames& names, CExprWriter& exprs, CText& out) const;

 private:
  const lower::BulkUse& use_;
};

}  // namespace tilewright::codegen
