#include "tilewright/codesign/area.h"

#include <algorithm>
#include <cmath>

#include "tilewright/accel/spatial/cells.h"

namespace tilewright::codesign {
namespace {

using spatial::Links;
using enum Quantity;

constexpr double kQueues = 3;  // load, compute, store
constexpr double kSumBytes = 4;

/// Levels of a tree over all units.
double levels(const Parts& parts) { return std::log2(parts.units); }

// --- Components ---

double by_links(const Parts& parts, double systolic, double tree, double fetch) {
  switch (parts.links) {
    case Links::Systolic:
      return systolic;
    case Links::Full:
      return tree * levels(parts);
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
double bank_area(const BankedMemory& memory, const Technology& t) {
  return sram_area(memory.bank_kb() * 1024, t) + t[BankArea] + memory.bank_bytes * t[BankByteArea];
}

Area component_area(const Parts& p, const Technology& t) {
  Area area;
  area.array = p.units * (t[MultiplyArea] + t[AddArea]);
  area.registers = p.units * p.register_bits * t[RegisterArea];
  area.wiring =
      p.units * by_links(p, t[SystolicArea], t[TreeArea], t[FetchArea] * p.scratchpad_banks());
  area.bank = bank_area(p.scratchpads[0], t);
  for (const BankedMemory& memory : p.scratchpads)
    area.scratchpad += memory.banks * bank_area(memory, t);
  area.local = sram_area(p.local_kb * 1024, t) + p.local_parts * t[PartArea];
  area.dma = t[DmaArea] + p.bus_bytes * t[DmaByteArea] + sram_area(p.burst_bytes, t);
  area.control = t[ControlArea] + sram_area(kQueues * p.command_queue * t[CommandBytes], t);
  return area;
}

double component_leakage(const Parts& p, const Technology& t) {
  const Area a = component_area(p, t);
  const double memory_kb = p.scratchpad_kb() + p.local_kb + p.burst_bytes / 1024.0 +
                           kQueues * p.command_queue * t[CommandBytes] / 1024.0;
  const double memories = sram_area(memory_kb * 1024, t);
  return p.units * p.register_bits * t[RegisterLeakage] + memory_kb * t[SramLeakage] +
         (a.total() - a.registers - memories) * t[LogicLeakage];
}

Energies component_energies(const Parts& p, const Technology& t) {
  Energies e;
  e.mac = t[MultiplyEnergy] + t[AddEnergy] + p.moving_bits * t[RegisterEnergy] +
          by_links(p, t[SystolicEnergy], t[TreeEnergy], t[FetchEnergy]);
  for (const BankedMemory& memory : p.scratchpads)
    e.spad_bytes.push_back(sram_energy(memory.bank_kb(), t) / 8);
  e.local_byte = sram_energy(p.part_kb(), t) / 8;
  e.dma_byte = t[DmaEnergy];
  e.dram_byte = t[DramEnergy] / 8;
  e.command = t[CommandEnergy];
  e.static_mw = component_leakage(p, t);
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

MaestroSize maestro_size(const Parts& parts, const Technology& t) {
  return {parts.units, parts.scratchpad_banks() * t[BandwidthPerBank], 1, 1};
}

Energies maestro_energies(const Parts& parts, const Technology& t) {
  Energies e;
  e.mac = t[MacEnergy] * 1e3;
  e.local_byte = e.mac * t[L1Access];
  e.spad_bytes.assign(parts.scratchpads.size(), e.mac * t[L2Access]);
  e.static_mw = maestro_power(maestro_size(parts, t), t);
  e.accounting = Accounting::FixedPower;
  return e;
}

// --- Cells ---

double brams(double bytes, double bits, const Technology& t) {
  return std::max(std::ceil(bytes / t[BramBytes]), std::ceil(bits / t[BramBits]));
}

/// Of the Verilog of a design, by what its modules are there for.
CellParts spatial_cells(const spatial::Design& design) {
  CellParts parts;
  const auto part_of = [&parts](spatial::CellPart part) -> CellCount& {
    using enum spatial::CellPart;
    switch (part) {
      case Array:
        return parts.array;
      case Wiring:
        return parts.wiring;
      case Scratchpad:
        return parts.scratchpad;
      case Local:
        return parts.local;
      case Port:
        return parts.dma;
      case Control:
        break;
    }
    return parts.control;
  };
  for (const spatial::ModuleCells& m : spatial::predicted_cells(design))
    part_of(m.part) += {m.copies * m.luts, m.copies * m.ffs, m.copies * m.dsps, m.copies * m.brams};
  std::swap(parts.registers.ffs, parts.array.ffs);
  return parts;
}

CellCount local_cells(const Parts& p, const Technology& t) {
  const double bytes = p.part_kb() * 1024;
  CellCount count;
  if (bytes <= t[LutRamLimit])
    count.luts = p.local_parts * std::ceil(bytes * 8 / t[LutRamBits]);
  else
    count.brams = p.local_parts * brams(bytes, kSumBytes * 8, t);
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

Area cell_area(const Parts& of, const Technology& t) {
  const CellParts parts = cells(of, t);
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
  area.bank = area.scratchpad / of.scratchpad_banks();
  return area;
}

Energies cell_energies(const Parts& p, const Technology& t) {
  Energies e;
  e.spad_bytes.assign(p.scratchpads.size(), 0);
  e.static_mw = t[BasePower] + t[UnitPower] * p.units + t[KibPower] * p.scratchpad_kb();
  e.accounting = Accounting::PowerTimesTime;
  return e;
}

}  // namespace

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

CellParts cells(const Parts& p, const Technology& t) {
  if (p.spatial) return spatial_cells(*p.spatial);
  CellParts parts;
  parts.array = {p.units * t[UnitLuts], 0, p.units * t[UnitDsps], 0};
  parts.registers.ffs = p.units * p.register_bits;
  parts.wiring.luts = p.units * by_links(p, 0, t[TreeLuts], t[FetchLuts] * p.scratchpad_banks());
  for (const BankedMemory& m : p.scratchpads)
    parts.scratchpad += {m.banks * (t[BankLuts] + m.bank_bytes * t[BankByteLuts]), 0, 0,
                         m.banks * brams(m.bank_kb() * 1024, m.bank_bytes * 8.0, t)};
  parts.local = local_cells(p, t);
  parts.dma = {t[DmaLuts] + p.bus_bytes * t[DmaByteLuts], t[DmaFfs], 0,
               brams(p.burst_bytes, p.bus_bytes * 8.0, t)};
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

Area area(const Parts& parts, const Technology& t) {
  if (t.formula == Formula::Components) return component_area(parts, t);
  if (t.formula == Formula::Cells) return cell_area(parts, t);
  Area area = maestro_area(maestro_size(parts, t), t);
  area.bank = area.scratchpad / parts.scratchpad_banks();
  return area;
}

double share(const CellCount& count, const Technology& t) {
  const Scarcest scarce = scarcest(count, t);
  return count.*scarce.kind / scarce.there;
}

std::string_view area_unit(Formula formula) { return formula == Formula::Cells ? "share" : "um2"; }

Energies energies(const Parts& parts, const Technology& t) {
  const auto of_formula = [&] {
    if (t.formula == Formula::Components) return component_energies(parts, t);
    if (t.formula == Formula::Cells) return cell_energies(parts, t);
    return maestro_energies(parts, t);
  };
  Energies energies = of_formula();
  energies.spad_byte = energies.spad_bytes[0];
  return energies;
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

double leakage(const Parts& parts, const Technology& t) { return energies(parts, t).static_mw; }

double peak_power(const Parts& p, const Technology& t) {
  const Energies e = energies(p, t);
  if (e.accounting != Accounting::Events) return e.static_mw;
  double per_cycle = p.units * e.mac;
  for (size_t m = 0; m < p.scratchpads.size(); ++m)
    per_cycle += p.scratchpads[m].banks * p.scratchpads[m].bank_bytes * e.spad_bytes[m];
  per_cycle += p.local_parts * 2 * kSumBytes * e.local_byte;
  per_cycle += p.bus_bytes * e.dma_byte;
  return per_cycle * p.clock_mhz * 1e-3 + e.static_mw;  // pJ MHz = 1e-3 mW
}

}  // namespace tilewright::codesign
