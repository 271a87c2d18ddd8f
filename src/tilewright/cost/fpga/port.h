// How long a port of an FPGA's kernel takes to read or write memory.
//
// source: the form and six constants (FpgaPort) are fitted to bandwidths that AMD measured on a
// U200 (Vitis_Accel_Examples, axi_burst_performance); port_test.cc has all 48, of which 24 were not
// used for the fit.
#pragma once

#include "tilewright/hw/fpga_device.h"

namespace tilewright::cost {

/// Cycles of the kernel's clock for one burst of `beats` in a long row of equal bursts. A channel
/// alone for this port delivers `channel` bytes per cycle.
double read_burst_cycles(const hw::FpgaPort& port, double channel, double beats);
double write_burst_cycles(const hw::FpgaPort& port, double channel, double beats);

/// What a memory channel delivers in a cycle of the kernel's clock.
double channel_bytes_per_cycle(const hw::FpgaDevice& device);

/// What moving `runs` contiguous pieces of `bytes` each takes: cycles of the port, and of the
/// channel, which ports share. Each run is cut into the longest bursts.
struct FpgaTransfer {
  double port = 0, channel = 0;
};
FpgaTransfer read_runs(const hw::FpgaDevice& device, double runs, double bytes);
FpgaTransfer write_runs(const hw::FpgaDevice& device, double runs, double bytes);

}  // namespace tilewright::cost
