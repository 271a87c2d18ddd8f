// Boards without a vendor's runtime, such as Zynq: Linux maps a design's registers as /dev/uioN,
// and memory without gaps as u-dma-buf's /dev/NAME, or from a range that the kernel leaves alone.
// Bitstreams in /lib/firmware are loaded through the kernel's FPGA manager.
#pragma once

#include <memory>
#include <string>

#include "tilewright/runtime/fpga/board.h"

namespace tilewright::runtime {

/// What to look for.
struct BoardNames {
  std::string registers = "tilewright";  ///< in /sys/class/uio/uioN/name: the device tree's label
  /// Of u-dma-buf's device, or a range of reserved memory: `0x30000000+0x1000000`.
  std::string memory = "udmabuf0";
};

/// Maps both. `root`: the folder with sys and dev, for containers; empty: that of
/// $TILEWRIGHT_BOARD_ROOT, else `/`. Memory is mapped without caches (O_SYNC).
/// errors: Device, with what was looked for and what to do.
Result<std::unique_ptr<Board>> open_uio(const BoardNames& names, const std::string& root = {});

/// Folders that describe u-dma-buf's and UIO's devices.
inline constexpr const char *kUioClass = "/sys/class/uio", *kDmaClass = "/sys/class/u-dma-buf";
/// The kernel's FPGA manager. A name that is written to its file `firmware` is that of a bitstream
/// in /lib/firmware, which is then loaded. Kernels of the boards' vendors have that file.
/// source: AMD, Linux Drivers, "FPGA programming using sysfs attributes"
inline constexpr const char* kFpgaManager = "/sys/class/fpga_manager/fpga0";

}  // namespace tilewright::runtime
