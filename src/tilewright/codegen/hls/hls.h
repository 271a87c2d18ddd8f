// C++ for high-level synthesis: one process per function, channels of whole blocks between them.
//
//   read_X:  for t in 4 { lock T; T[i] = X[t*16 + i] }   ->  static void read_X(...)
//   compute: for t in 4 { lock T; Y[..] = T[i] * 2.0 }   ->  static void compute(...)
//                                     top function: #pragma HLS dataflow, both are called
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/hw/fpga_device.h"
#include "tilewright/lower/processes.h"
#include "tilewright/runtime/kernel_abi.h"

namespace tilewright::codegen {

/// Vitis: the vendor's pragmas and headers, memory ports of whole words, processes side by side.
/// Plain: C++17 without headers of a vendor, channels are arrays, statements in program order.
enum class HlsDialect { Vitis, Plain };
/// `vitis`, `plain`.
std::string_view name(HlsDialect dialect);
std::optional<HlsDialect> parse_hls_dialect(std::string_view text);

struct HlsOptions {
  HlsDialect dialect = HlsDialect::Vitis;
  std::string notes;  ///< lines of a comment at the top of the kernel: the steps of its schedule
};

/// A memory that the kernel's top function takes as an argument.
struct HlsPort {
  std::string name;  ///< in the text; also of its bundle
  Buffer buffer;     ///< a parameter, or memory of the kernel's own between its regions
  bool reads = false, writes = false;
  int param = -1;  ///< index of Func::params; -1: memory of its own
};

struct HlsKernel {
  std::string symbol;  ///< of the top function
  std::vector<HlsPort> ports;
  /// By name: kernel.cpp, kernel.h, tw_arithmetic.h, host.cpp, link.cfg, build.sh, README.md.
  std::map<std::string, std::string> files;
  /// A `tw_kernel` around the top function, for running it here (csim.h).
  std::string csim;
  KernelInfo info;  ///< of that function
};

/// What processes are made of: the Func with calls inlined and indices simplified. Buffers on the
/// chip that hold more than is used of them at a time, as steps leave them, shrink to that
/// (pipeline `fpga`); sums of such a program are not regrouped as trees, nor widths proven, since
/// both need blocks. errors: Unsupported (a call that does not fit).
Result<Func> prepare_hls(const Func& func);
/// requires: `program` is of `func`, which is prepared. errors: Unsupported (an allocation without
/// an upper bound; more than 4096 products side by side for `vitis`).
Result<HlsKernel> emit_hls(const Func& func, const lower::ProcessProgram& program,
                           const hw::FpgaDevice& device, const HlsOptions& options = {});

}  // namespace tilewright::codegen
