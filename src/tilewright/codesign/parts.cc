#include "tilewright/codesign/parts.h"

#include <algorithm>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::codesign {
namespace {

constexpr double kKib = 1024;
/// VTA's memories give a whole element per cycle: so many banks of this width, side by side.
constexpr double kVtaBankBytes = 16;
/// A sum, and the two operands of a multiplication.
constexpr int kSumBits = 32, kOperandBits = 8;

BankedMemory vta_memory(const vta::Config& config, vta::Mem mem) {
  const auto bytes = static_cast<double>(config.element_bytes(mem));
  const double banks = std::max(1.0, bytes / kVtaBankBytes);
  return {static_cast<double>(config.depth(mem)) * bytes / kKib, banks, bytes / banks};
}

}  // namespace

// One operand stays where weights do: its registers are those in use and those being loaded.
Parts::Parts(const spatial::Design& d)
    : units(static_cast<double>(d.units())),
      moving_bits(kSumBits + kOperandBits * (spatial::weights_stay(d) ? 1 : 2)),
      register_bits(moving_bits + (spatial::weights_stay(d) ? 2 * kOperandBits : 0)),
      links(d.links),
      scratchpads{{static_cast<double>(d.spad_kb), static_cast<double>(d.banks),
                   static_cast<double>(d.bank_bytes)}},
      local_kb(d.local_kb),
      local_parts(static_cast<double>(spatial::sum_parts(d))),
      bus_bytes(d.bus_bytes),
      burst_bytes(d.burst_bytes),
      command_queue(d.timing.command_queue),
      clock_mhz(d.clock_mhz),
      spatial(d) {}

// Products of a block of inputs are added up by trees, and nothing stays in the array.
Parts::Parts(const vta::Config& c)
    : units(static_cast<double>(c.batch()) * c.block_in() * c.block_out()),
      moving_bits(kSumBits + 2 * kOperandBits),
      register_bits(moving_bits),
      links(spatial::Links::Full),
      scratchpads{vta_memory(c, vta::Mem::Wgt), vta_memory(c, vta::Mem::Inp),
                  vta_memory(c, vta::Mem::Uop)},
      local_kb(vta_memory(c, vta::Mem::Acc).kb + vta_memory(c, vta::Mem::Out).kb),
      local_parts(static_cast<double>(c.batch()) * c.block_out()),
      bus_bytes(c.timing.bus_bytes),
      burst_bytes(static_cast<double>(c.timing.bus_bytes) * c.timing.max_burst_beats),
      command_queue(c.timing.command_queue),
      clock_mhz(c.clock_mhz) {}

Parts::Parts(const Hardware& hardware)
    : Parts(std::visit([](const auto& design) { return Parts(design); }, hardware)) {}

double Parts::scratchpad_kb() const {
  double sum = 0;
  for (const BankedMemory& memory : scratchpads) sum += memory.kb;
  return sum;
}

double Parts::scratchpad_banks() const {
  double sum = 0;
  for (const BankedMemory& memory : scratchpads) sum += memory.banks;
  return sum;
}

}  // namespace tilewright::codesign
