#include "tilewright/codesign/area.h"

#include <algorithm>
#include <cmath>

#include "tilewright/accel/spatial/needs.h"

namespace tilewright::codesign {
namespace {

using spatial::Dataflow;
using spatial::Design;
using spatial::Links;
using spatial::Unit;
using enum Quantity;

constexpr double kQueues = 3;  // load, compute, store
constexpr double kSumBytes = 4;

double as_double(int64_t value) { return static_cast<double>(value); }
/// Levels of a tree over all units.
double levels(const Design& design) { return std::log2(as_double(design.units())); }

bool weights_are_loaded(const Design& design) { return spatial::block_bytes(design) > 0; }

/// Operand registers of a unit: those whose value changes from step to step.
int moving_bits(const Design& design) {
  const bool one = weights_are_loaded(design);
  return 32 + (one ? 8 : 16);
}

/// KiB of one bank, and of one part of the private memory.
double bank_kb(const Design& design) { return static_cast<double>(design.spad_kb) / design.banks; }
double part_kb(const Design& design) {
  return design.local_kb / as_double(spatial::sum_parts(design));
}

// --- Components ---

double by_links(const Design& design, double systolic, double tree, double fetch) {
  switch (design.links) {
    case Links::Systolic:
      return systolic;
    case Links::Full:
      return tree * levels(design);
    case Links::None:
      return fetch;
  }
  return 0;
}

/// Of 8 bytes: grows as the square root of the memory, as the length of its wires does.
double sram_energy(double kb, const Technology& t) {
  return t[SramEnergy] * std::sqrt(kb / t[SramKb]);
}
double sram_area(double bytes, const Technology& t) {
  return bytes * 8 * t[SramCellArea] / t[SramEfficiency];
}

Area component_area(const Design& d, const Technology& t) {
  const double units = as_double(d.units()), parts = as_double(spatial::sum_parts(d));
  Area area;
  area.array = units * (t[MultiplyArea] + t[AddArea]);
  area.registers = units * register_bits(d) * t[RegisterArea];
  area.wiring = units * by_links(d, t[SystolicArea], t[TreeArea], t[FetchArea] * d.banks);
  area.bank = sram_area(bank_kb(d) * 1024, t) + t[BankArea] + d.bank_bytes * t[BankByteArea];
  area.scratchpad = d.banks * area.bank;
  area.local = sram_area(as_double(d.local_bytes()), t) + parts * t[PartArea];
  area.dma = t[DmaArea] + d.bus_bytes * t[DmaByteArea] + sram_area(d.burst_bytes, t);
  area.control = t[ControlArea] + sram_area(kQueues * d.timing.command_queue * t[CommandBytes], t);
  return area;
}

double component_leakage(const Design& d, const Technology& t) {
  const Area a = component_area(d, t);
  const double memory_kb = d.spad_kb + d.local_kb + d.burst_bytes / 1024.0 +
                           kQueues * d.timing.command_queue * t[CommandBytes] / 1024.0;
  const double memories = sram_area(memory_kb * 1024, t);
  return as_double(d.units()) * register_bits(d) * t[RegisterLeakage] + memory_kb * t[SramLeakage] +
         (a.total() - a.registers - memories) * t[LogicLeakage];
}

Energies component_energies(const Design& d, const Technology& t) {
  Energies e;
  e.mac = t[MultiplyEnergy] + t[AddEnergy] + moving_bits(d) * t[RegisterEnergy] +
          by_links(d, t[SystolicEnergy], t[TreeEnergy], t[FetchEnergy]);
  e.spad_byte = sram_energy(bank_kb(d), t) / 8;
  e.local_byte = sram_energy(part_kb(d), t) / 8;
  e.dma_byte = t[DmaEnergy];
  e.dram_byte = t[DramEnergy] / 8;
  e.command = t[CommandEnergy];
  e.static_mw = component_leakage(d, t);
  return e;
}

// --- Maestro ---

double bus_units(const MaestroSize& size, const Technology& t) {
  return (t[BusSlope] * size.units + t[BusOffset]) * size.bandwidth;
}
double arbiter_units(const MaestroSize& size, const Technology& t) {
  return t[ArbiterSquare] * size.units * size.units + t[ArbiterSlope] * size.units +
         t[ArbiterOffset];
}
/// Polynomials are negative for few units; its least arbiter has this many.
constexpr double kLeastArbiterArea = 1, kLeastArbiterPower = 1000;

double l1_blocks(const MaestroSize& size, const Technology& t) {
  return size.units * std::ceil(size.l1_bytes / t[L1BlockBytes]);
}
double l2_blocks(const MaestroSize& size, const Technology& t) {
  return std::ceil(size.l2_bytes / t[L2BlockBytes]);
}

MaestroSize maestro_size(const Design& design, const Technology& t) {
  return {as_double(design.units()), design.banks * t[BandwidthPerBank], 1, 1};
}

Energies maestro_energies(const Design& design, const Technology& t) {
  Energies e;
  e.mac = t[MacEnergy] * 1e3;
  e.local_byte = e.mac * t[L1Access];
  e.spad_byte = e.mac * t[L2Access];
  e.static_mw = maestro_power(maestro_size(design, t), t);
  e.accounting = Accounting::FixedPower;
  return e;
}

// --- Cells ---

double brams(double bytes, double bits, const Technology& t) {
  return std::max(std::ceil(bytes / t[BramBytes]), std::ceil(bits / t[BramBits]));
}

CellCount local_cells(const Design& d, const Technology& t) {
  const double parts = as_double(spatial::sum_parts(d)), bytes = part_kb(d) * 1024;
  CellCount count;
  if (bytes <= t[LutRamLimit])
    count.luts = parts * std::ceil(bytes * 8 / t[LutRamBits]);
  else
    count.brams = parts * brams(bytes, kSumBytes * 8, t);
  return count;
}

/// The kind of cells of which a design takes the largest share of the device.
struct Scarcest {
  double CellCount::* kind;
  double there;
};
Scarcest scarcest(const CellCount& all, const Technology& t) {
  const Scarcest kinds[] = {{&CellCount::luts, t[DeviceLuts]},
                            {&CellCount::ffs, t[DeviceFfs]},
                            {&CellCount::dsps, t[DeviceDsps]},
                            {&CellCount::brams, t[DeviceBrams]}};
  return *std::max_element(std::begin(kinds), std::end(kinds),
                           [&](const Scarcest& a, const Scarcest& b) {
                             return all.*a.kind / a.there < all.*b.kind / b.there;
                           });
}

Area cell_area(const Design& design, const Technology& t) {
  const CellParts parts = cells(design, t);
  const Scarcest scarce = scarcest(parts.total(), t);
  const auto share = [&](const CellCount& part) { return part.*scarce.kind / scarce.there; };
  Area area;
  area.array = share(parts.array);
  area.registers = share(parts.registers);
  area.wiring = share(parts.wiring);
  area.scratchpad = share(parts.scratchpad);
  area.local = share(parts.local);
  area.dma = share(parts.dma);
  area.control = share(parts.control);
  area.bank = area.scratchpad / design.banks;
  return area;
}

Energies cell_energies(const Design& d, const Technology& t) {
  Energies e;
  e.static_mw = t[BasePower] + t[UnitPower] * as_double(d.units()) + t[KibPower] * d.spad_kb;
  e.accounting = Accounting::PowerTimesTime;
  return e;
}

}  // namespace

int register_bits(const Design& design) {
  return moving_bits(design) + (weights_are_loaded(design) ? 16 : 0);
}

CellCount& CellCount::operator+=(const CellCount& other) {
  luts += other.luts;
  ffs += other.ffs;
  dsps += other.dsps;
  brams += other.brams;
  return *this;
}

CellCount CellParts::total() const {
  CellCount sum;
  for (const CellCount& part : {array, registers, wiring, scratchpad, local, dma, control})
    sum += part;
  return sum;
}

CellParts cells(const Design& d, const Technology& t) {
  const double units = as_double(d.units());
  CellParts parts;
  parts.array = {units * t[UnitLuts], 0, units * t[UnitDsps], 0};
  parts.registers.ffs = units * register_bits(d);
  parts.wiring.luts = units * by_links(d, 0, t[TreeLuts], t[FetchLuts] * d.banks);
  parts.scratchpad = {d.banks * (t[BankLuts] + d.bank_bytes * t[BankByteLuts]), 0, 0,
                      d.banks * brams(bank_kb(d) * 1024, d.bank_bytes * 8.0, t)};
  parts.local = local_cells(d, t);
  parts.dma = {t[DmaLuts] + d.bus_bytes * t[DmaByteLuts], t[DmaFfs], 0,
               brams(d.burst_bytes, d.bus_bytes * 8.0, t)};
  parts.control = {t[ControlLuts], t[ControlFfs], 0, 0};
  return parts;
}

Area maestro_area(const MaestroSize& size, const Technology& t) {
  Area area;
  area.array = size.units * t[Lanes] * t[MacArea];
  area.local = l1_blocks(size, t) * t[L1BlockArea];
  area.scratchpad = l2_blocks(size, t) * t[L2BlockArea];
  area.wiring = t[BusArea] * bus_units(size, t);
  area.control = t[ArbiterArea] * std::max(kLeastArbiterArea, arbiter_units(size, t));
  return area;
}

double maestro_power(const MaestroSize& size, const Technology& t) {
  return size.units * t[Lanes] * t[MacPower] + l1_blocks(size, t) * t[L1BlockPower] +
         l2_blocks(size, t) * t[L2BlockPower] + t[BusPower] * bus_units(size, t) +
         t[ArbiterPower] * std::max(kLeastArbiterPower, arbiter_units(size, t));
}

Area area(const Design& design, const Technology& t) {
  if (t.formula == Formula::Components) return component_area(design, t);
  if (t.formula == Formula::Cells) return cell_area(design, t);
  Area area = maestro_area(maestro_size(design, t), t);
  area.bank = area.scratchpad / design.banks;
  return area;
}

std::string_view area_unit(Formula formula) { return formula == Formula::Cells ? "share" : "um2"; }

Energies energies(const Design& design, const Technology& t) {
  if (t.formula == Formula::Components) return component_energies(design, t);
  if (t.formula == Formula::Cells) return cell_energies(design, t);
  return maestro_energies(design, t);
}

Consumption consumption(const Energies& e, double chip_pj, double dram_pj, double seconds) {
  const double static_pj = e.static_mw * seconds * 1e9;  // mW s = 1e9 pJ
  switch (e.accounting) {
    case Accounting::FixedPower:
      return {chip_pj + dram_pj, e.static_mw};
    case Accounting::PowerTimesTime:
      return {static_pj, e.static_mw};
    case Accounting::Events:
      break;
  }
  return {chip_pj + static_pj + dram_pj, (chip_pj + static_pj) / seconds * 1e-9};
}

double leakage(const Design& design, const Technology& t) { return energies(design, t).static_mw; }

double peak_power(const Design& d, const Technology& t) {
  const Energies e = energies(d, t);
  if (e.accounting != Accounting::Events) return e.static_mw;
  const double parts = as_double(spatial::sum_parts(d));
  const double per_cycle = as_double(d.units()) * e.mac + d.banks * d.bank_bytes * e.spad_byte +
                           parts * 2 * kSumBytes * e.local_byte + d.bus_bytes * e.dma_byte;
  return per_cycle * d.clock_mhz * 1e-3 + e.static_mw;  // pJ MHz = 1e-3 mW
}

}  // namespace tilewright::codesign
