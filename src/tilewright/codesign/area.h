// What a design costs in a technology before it does anything: area by part, leakage, highest
// power; and what each thing it does costs: energies for a model to multiply with its counts.
//
// Example: `area(design, asic45).total()` in square micrometres, of which `.scratchpad` are its
// banks.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/codesign/parts.h"
#include "tilewright/codesign/technology.h"

namespace tilewright::codesign {

/// By part: they add up to the total. In um2, or as share (0..1) of a device's scarcest cells.
struct Area {
  double array = 0;       ///< multipliers and adders
  double registers = 0;   ///< of the array
  double wiring = 0;      ///< links between units, or the bus to them
  double scratchpad = 0;  ///< all banks of all
  double local = 0;       ///< private memory for sums and what stays
  double dma = 0;         ///< the memory port
  double control = 0;     ///< queues, decoders; Maestro's arbiter
  double bank = 0;        ///< one bank of the (first) scratchpad, which is in `scratchpad` already

  double total() const { return array + registers + wiring + scratchpad + local + dma + control; }
};
/// requires: parts of a legal design, here and below.
Area area(const Parts& parts, const Technology& technology);
/// `um2` or `share`.
std::string_view area_unit(Formula formula);

/// Cells of an FPGA; those of one part, or of a design.
struct CellCount {
  double luts = 0, ffs = 0, dsps = 0, brams = 0;
  CellCount& operator+=(const CellCount& other);
};
/// By part, in the order of Area's members. requires: Formula::Cells.
struct CellParts {
  CellCount array, registers, wiring, scratchpad, local, dma, control;
  CellCount total() const;
};
CellParts cells(const Parts& parts, const Technology& technology);
/// Of the device's cells of the kind of which these take most (0..1). requires: Formula::Cells.
double share(const CellCount& count, const Technology& technology);

/// How power and energy belong together in a technology.
enum class Accounting {
  Events,         ///< energy: of all events, and leakage; power = energy on the chip / time
  FixedPower,     ///< power: the same whatever happens; energy: of all events alone (Maestro)
  PowerTimesTime  ///< power: the same whatever happens; energy = power x time (Cells)
};

/// What single events cost. Units: pJ. A byte in a memory is one read or written there.
struct Energies {
  double mac = 0;                  ///< with the registers and links around it
  double spad_byte = 0;            ///< of the (first) scratchpad; the capacity of one bank counts
  std::vector<double> spad_bytes;  ///< by scratchpad
  double local_byte = 0;           ///< the capacity of one part counts
  double dma_byte = 0;             ///< on the way through the memory port
  double dram_byte = 0;            ///< not on the chip: no part of the power
  double command = 0;              ///< one instruction
  double static_mw = 0;            ///< leakage, or all of the power where that is fixed
  Accounting accounting = Accounting::Events;
};
Energies energies(const Parts& parts, const Technology& technology);

/// Energy of something by where it goes. Units: pJ.
struct EnergyLevels {
  double array = 0, scratchpad = 0, local = 0, dma = 0, commands = 0, dram = 0;
  double chip() const { return array + scratchpad + local + dma + commands; }
};

struct Consumption {
  double energy_pj = 0;  ///< DRAM and leakage included
  double power_mw = 0;   ///< mean, without DRAM
};
/// Of a program of that many seconds (more than 0), whose events on the chip and at the DRAM cost
/// so much.
Consumption consumption(const Energies& energies, double chip_pj, double dram_pj, double seconds);

/// Without DRAM. Units: mW.
double leakage(const Parts& parts, const Technology& technology);
/// All units multiply, every bank, every part of the private memory and the port are busy in every
/// cycle. Units: mW.
double peak_power(const Parts& parts, const Technology& technology);

/// MAESTRO's closed forms for any unit count, bus width (elements per cycle) and bytes that a
/// mapping needs in L1 and L2. `area` and `energies` take `banks` times `bandwidth_per_bank`, and
/// one block of each memory. requires: Formula::Maestro.
struct MaestroSize {
  double units = 1, bandwidth = 1, l1_bytes = 1, l2_bytes = 1;
};
Area maestro_area(const MaestroSize& size, const Technology& technology);
double maestro_power(const MaestroSize& size, const Technology& technology);  ///< units: mW

}  // namespace tilewright::codesign
