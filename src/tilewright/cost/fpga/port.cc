#include "tilewright/cost/fpga/port.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cost {
namespace {

/// Cycles by which a written burst occupies one of the outstanding ones, for each of its beats.
constexpr double kWriteBeat = 3;

template <class Burst>
FpgaTransfer move_runs(const hw::FpgaDevice& device, double runs, double bytes, double share,
                       const Burst& burst) {
  const hw::FpgaPort& port = device.port;
  const double channel = channel_bytes_per_cycle(device);
  const double beats = std::ceil(bytes / port.bytes);
  const double whole = std::floor(beats / port.burst_beats);
  const double rest = beats - whole * port.burst_beats;
  double cycles = 0;
  if (whole > 0) cycles += whole * burst(port, channel, port.burst_beats);
  if (rest > 0) cycles += burst(port, channel, rest);
  return {runs * cycles, runs * beats * port.bytes / (share * channel)};
}

}  // namespace

double read_burst_cycles(const hw::FpgaPort& port, double channel, double beats) {
  return std::max({beats, (port.read_latency + beats) / port.outstanding,
                   beats * port.bytes / (port.read_share * channel)});
}

double write_burst_cycles(const hw::FpgaPort& port, double channel, double beats) {
  return std::max({beats + port.write_gap,
                   (port.write_latency + kWriteBeat * beats) / port.outstanding,
                   beats * port.bytes / (port.write_share * channel)});
}

double channel_bytes_per_cycle(const hw::FpgaDevice& device) {
  return device.memory.gigabytes * 1e3 / device.clock_mhz;
}

FpgaTransfer read_runs(const hw::FpgaDevice& device, double runs, double bytes) {
  return move_runs(device, runs, bytes, device.port.read_share, read_burst_cycles);
}

FpgaTransfer write_runs(const hw::FpgaDevice& device, double runs, double bytes) {
  return move_runs(device, runs, bytes, device.port.write_share, write_burst_cycles);
}

}  // namespace tilewright::cost
