// Machine code of NVIDIA's GPUs read back by `nvdisasm`: which instructions kernels are made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::codegen {

/// How often each instruction stands in a stretch of code, by its full name: `LDG.E.128`.
using SassCounts = std::map<std::string, int64_t>;

/// Instructions of one opcode (`LDG`) that have all `modifiers` (`128`, or `E.128`).
int64_t count(const SassCounts& counts, std::string_view opcode, std::string_view modifiers = {});
int64_t total(const SassCounts& counts);

/// A loop that contains no other one but such as only wait for copies, which do not count as loops.
struct SassLoop {
  int64_t begin = 0, end = 0;  ///< addresses of its first instruction and of the branch back
  SassCounts counts;
};

struct SassKernel {
  std::string symbol;
  SassCounts all;
  std::vector<SassLoop> loops;  ///< innermost ones, in the order of their addresses

  /// The loop with the most instructions of `opcode`; null where no loop has any.
  const SassLoop* loop_with(std::string_view opcode, std::string_view modifiers = {}) const;
};

/// Kernels of a cubin, by symbol. errors: Tool (nvdisasm is neither at TILEWRIGHT_NVDISASM nor on
/// PATH, with what to install, or does not read the cubin), Parse.
Result<std::vector<SassKernel>> disassemble(std::string_view cubin);

/// From what `nvdisasm -c` prints. errors: Parse (a branch to nowhere, an instruction that is
/// none).
Result<std::vector<SassKernel>> parse_sass(std::string_view text);

/// Where nvdisasm is. errors: Tool, with what to install.
Result<std::string> find_nvdisasm();

}  // namespace tilewright::codegen
