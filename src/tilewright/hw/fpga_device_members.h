// The numbers of FPGAs by name, each with the least and the greatest value that it may have. What
// reads and writes device files goes by these lists.
#pragma once

#include <cstdint>

#include "tilewright/hw/fpga_device.h"

namespace tilewright::hw {

// Each calls f(name, member, low, high) in the order of the file; what they walk may be const.

template <class Device, class F>
void each_cell_of_fpga(Device& t, F&& f) {
  constexpr int64_t kMost = int64_t{1} << 32;
  constexpr double kCells = 4294967296.0;
  f("luts", t.cells.luts, 1.0, kCells);
  f("ffs", t.cells.ffs, 1.0, kCells);
  f("dsps", t.cells.dsps, 0.0, kCells);
  f("bram18", t.cells.bram18, int64_t{0}, kMost);
  f("uram", t.cells.uram, int64_t{0}, kMost);
}

template <class Shares, class F>
void each_share_of_fpga(Shares& t, F&& f) {
  f("dsp", t.dsp, 0.0, 1.0);
  f("lut", t.lut, 0.0, 1.0);
  f("bram", t.bram, 0.0, 1.0);
}

template <class Memory, class F>
void each_number_of_memory(Memory& t, F&& f) {
  f("channels", t.channels, int64_t{1}, int64_t{64});
  f("gigabytes", t.gigabytes, 1e-6, 1e6);
  f("bytes", t.bytes, int64_t{1}, int64_t{1} << 50);
}

template <class Port, class F>
void each_number_of_port(Port& t, F&& f) {
  f("bytes", t.bytes, int64_t{1}, int64_t{128});
  f("burst_beats", t.burst_beats, int64_t{1}, int64_t{256});
  f("outstanding", t.outstanding, int64_t{1}, int64_t{1024});
  f("read_latency", t.read_latency, int64_t{0}, int64_t{100000});
  f("write_latency", t.write_latency, int64_t{0}, int64_t{100000});
  f("write_gap", t.write_gap, int64_t{0}, int64_t{100000});
  f("read_share", t.read_share, 1e-3, 1.0);
  f("write_share", t.write_share, 1e-3, 1.0);
  f("count", t.count, int64_t{1}, int64_t{1024});
}

template <class Operator, class F>
void each_number_of_operator(Operator& t, F&& f) {
  constexpr double kMost = 1e7;
  f("luts", t.luts, 0.0, kMost);
  f("ffs", t.ffs, 0.0, kMost);
  f("dsps", t.dsps, 0.0, kMost);
  f("latency", t.latency, int64_t{0}, int64_t{10000});
  f("recurrence", t.recurrence, int64_t{1}, int64_t{10000});
}

}  // namespace tilewright::hw
