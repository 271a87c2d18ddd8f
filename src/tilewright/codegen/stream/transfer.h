// Copies between DRAM and an on-chip memory as 2D transfers. arith/copy.h recognises such copies in
// loops whose outer variables have no values yet, and proves what it says; here the outer loops
// have run, a layer has thousands of small nests of numbers, and making expressions of them to
// prove things about would be the dearest part of the walk.
#pragma once

#include <functional>
#include <optional>

#include "tilewright/base/result.h"
#include "tilewright/codegen/stream/nest.h"

namespace tilewright::codegen::stream {

/// One transfer: rows that follow each other on chip and are `x_stride` apart in DRAM, with zeros
/// around them on chip. All in elements.
struct Transfer {
  int64_t sram = 0, dram = 0;
  int64_t y_size = 0, x_size = 0, x_stride = 0;
  int64_t y_pad_top = 0, y_pad_bottom = 0, x_pad_left = 0, x_pad_right = 0;
};

/// What one transfer of a memory can do.
struct TransferLimits {
  int64_t size = 0xffff;          ///< rows, elements of a row, elements from row to row in DRAM
  int64_t pad = 15;               ///< rows or elements of zeros at each end
  int64_t last = 0xffffffff;      ///< place in DRAM
  std::optional<Error> no_zeros;  ///< what is wrong with zeros, if the memory takes none
};

using SendTransfer = std::function<Status(const Transfer&)>;

/// The transfers of a nest whose first form is the on-chip address, the second the DRAM address
/// (both in elements), the others conditions outside of which zeros are loaded instead. requires:
/// each condition depends on one loop at most. errors: `no_zeros`, Unsupported (outside of the
/// buffer), those of `send`.
Status emit_transfers(ConcreteNest nest, const TransferLimits& limits, const SendTransfer& send);

}  // namespace tilewright::codegen::stream
