// Technologies as files: what a memory access, a multiplier or a wire costs, and how that is known.
//
// hw/tech/asic45.toml is an example with comments. A file has `kind = "technology"`, a name, the
// `formula` that its numbers go into, the table `[sources]`, and in `[numbers]` every number of
// that formula with its unit, its `kind` (published, fitted, assumed, measured) and its source:
//
//   [sources]
//   horowitz = "M. Horowitz, Computing's energy problem, ISSCC 2014; 45 nm, 0.9 V"
//   [numbers]
//   multiply_energy = { value = 0.2, unit = "pJ", kind = "published", source = "horowitz" }
//
// A number without a source is an error: nobody could tell a measurement from a guess.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::codesign {

/// How a number is known.
enum class Evidence {
  Published,  ///< by others, for the technology that is named
  Fitted,     ///< to results that others published
  Assumed,    ///< nobody's: plausible
  Measured    ///< by us, with a tool that the source names
};

/// What the numbers go into (area.h has the formulas).
enum class Formula {
  Components,  ///< areas and energies of adders, bits, wires: a chip
  Maestro,     ///< the closed forms of the MAESTRO cost model
  Cells        ///< cells of an FPGA, and power as a line over units and KiB
};

// clang-format off
/// Numbers of all formulas; `quantities()` has the unit of each.
enum class Quantity {
  // Components: one multiply-accumulate of int8 into int32 and the register bits around it,
  MultiplyEnergy, AddEnergy, RegisterEnergy, MultiplyArea, AddArea, RegisterArea, RegisterLeakage,
  // links per unit (Systolic), per unit and level of a tree (Full), per unit and bank (None),
  SystolicEnergy, TreeEnergy, FetchEnergy, SystolicArea, TreeArea, FetchArea,
  // memories: 8 bytes of one with SramKb KiB, cells and what surrounds them,
  SramEnergy, SramKb, SramCellArea, SramEfficiency, BankArea, BankByteArea, PartArea, SramLeakage,
  // port and control; LogicLeakage is of everything that is neither register nor memory.
  DramEnergy, DmaEnergy, DmaArea, DmaByteArea, CommandEnergy, CommandBytes, ControlArea, LogicLeakage,
  // Maestro: n units of `Lanes` multipliers, L1 per unit, L2, bus, arbiter.
  Lanes, MacArea, MacPower, MacEnergy, L1BlockBytes, L1BlockArea, L1BlockPower, L1Access,
  L2BlockBytes, L2BlockArea, L2BlockPower, L2Access, BandwidthPerBank, BusArea, BusPower, BusSlope,
  BusOffset, ArbiterArea, ArbiterPower, ArbiterSquare, ArbiterSlope, ArbiterOffset,
  // Cells: power, cells of the device, and of parts.
  BasePower, UnitPower, KibPower, DeviceLuts, DeviceFfs, DeviceDsps, DeviceBrams, UnitLuts, UnitDsps,
  TreeLuts, FetchLuts, BankLuts, BankByteLuts, BramBytes, BramBits, LutRamBits, LutRamLimit, DmaLuts,
  DmaByteLuts, DmaFfs, ControlLuts, ControlFfs,
  Count
};
// clang-format on
inline constexpr size_t kQuantities = static_cast<size_t>(Quantity::Count);

struct QuantityInfo {
  Quantity quantity;
  std::string_view key, unit;  ///< in files
  Formula formula;
  double low = 0, high = 1e12;
};
/// In the order of `Quantity`.
std::span<const QuantityInfo> quantities();

struct Number {
  double value = 0;
  Evidence evidence = Evidence::Assumed;
  std::string source;  ///< the citation
};

struct Technology {
  std::string name, about;
  Formula formula = Formula::Components;
  std::array<Number, kQuantities> numbers;  ///< those of other formulas are 0
  std::string text;                         ///< the file

  double operator[](Quantity quantity) const { return number(quantity).value; }
  const Number& number(Quantity quantity) const { return numbers[static_cast<size_t>(quantity)]; }
  /// How its numbers are known: one entry per kind that occurs, with how many numbers have it.
  std::vector<std::pair<Evidence, int>> evidence() const;
};

/// errors: Parse, with all problems and their places: unknown and missing numbers, wrong units,
/// numbers without source.
Result<Technology> read_technology(std::string_view toml, const std::string& place);
/// A name of `builtin_technologies`, or a file (`my.toml`). errors: Usage with the nearest name,
/// Io, Parse.
Result<Technology> load_technology(const std::string& name_or_path);
std::vector<std::string> builtin_technologies();

std::string_view name(Evidence evidence);
std::string_view name(Formula formula);

}  // namespace tilewright::codesign
