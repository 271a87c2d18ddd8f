// Kernels on AMD's cards through XRT, which a library of ours calls that is loaded when asked for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/runtime/fpga/board.h"

namespace tilewright::runtime {

/// A kernel of a file on the first card. Not for several threads; kernels of several files take
/// turns on the card.
class XrtKernel {
 public:
  virtual ~XrtKernel() = default;
  virtual const std::string& card() const = 0;  ///< its name
  /// `scalars`: arguments behind those with memory. errors: Device, with XRT's words; Package.
  virtual Status run(const std::vector<KernelArgument>& arguments,
                     const std::vector<int64_t>& scalars = {}) = 0;
};

/// The first card's name. errors: Device.
Result<std::string> xrt_card();
/// errors: Device (no library, no XRT, no card), Package (no such file or kernel, or not for this
/// card).
Result<std::unique_ptr<XrtKernel>> open_xrt(const std::string& xclbin, const std::string& kernel);

}  // namespace tilewright::runtime
