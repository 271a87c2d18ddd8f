#include "tilewright/codesign/technology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "codesign_builtin_files.h"
#include "tilewright/base/names.h"

namespace tilewright::codesign {
namespace {

constexpr FileKind kTechnology = {"technology", "hw/tech",
                                  "hw/tech/asic45.toml shows what a technology looks like"};
constexpr std::string_view kEvidence[] = {"published", "fitted", "assumed", "measured"};
constexpr std::string_view kFormulas[] = {"components", "maestro", "cells"};
constexpr double kTiny = 1e-12;  // of numbers by which others are divided

using enum Quantity;
constexpr Formula kComponents = Formula::Components, kMaestro = Formula::Maestro,
                  kCells = Formula::Cells;

constexpr QuantityInfo kTable[] = {
    {MultiplyEnergy, "multiply_energy", "pJ", kComponents},
    {AddEnergy, "add_energy", "pJ", kComponents},
    {RegisterEnergy, "register_energy", "pJ/bit", kComponents},
    {MultiplyArea, "multiply_area", "um2", kComponents},
    {AddArea, "add_area", "um2", kComponents},
    {RegisterArea, "register_area", "um2/bit", kComponents},
    {RegisterLeakage, "register_leakage", "mW/bit", kComponents},
    {SystolicEnergy, "systolic_energy", "pJ", kComponents},
    {TreeEnergy, "tree_energy", "pJ", kComponents},
    {FetchEnergy, "fetch_energy", "pJ", kComponents},
    {SystolicArea, "systolic_area", "um2", kComponents},
    {TreeArea, "tree_area", "um2", kComponents},
    {FetchArea, "fetch_area", "um2", kComponents},
    {SramEnergy, "sram_energy", "pJ/8B", kComponents},
    {SramKb, "sram_kb", "KiB", kComponents, kTiny},
    {SramCellArea, "sram_cell_area", "um2/bit", kComponents},
    {SramEfficiency, "sram_efficiency", "1", kComponents, kTiny, 1},
    {BankArea, "bank_area", "um2", kComponents},
    {BankByteArea, "bank_byte_area", "um2/B", kComponents},
    {PartArea, "part_area", "um2", kComponents},
    {SramLeakage, "sram_leakage", "mW/KiB", kComponents},
    {DramEnergy, "dram_energy", "pJ/8B", kComponents},
    {DmaEnergy, "dma_energy", "pJ/B", kComponents},
    {DmaArea, "dma_area", "um2", kComponents},
    {DmaByteArea, "dma_byte_area", "um2/B", kComponents},
    {CommandEnergy, "command_energy", "pJ", kComponents},
    {CommandBytes, "command_bytes", "B", kComponents},
    {ControlArea, "control_area", "um2", kComponents},
    {LogicLeakage, "logic_leakage", "mW/um2", kComponents},
    {Lanes, "lanes", "1", kMaestro},
    {MacArea, "mac_area", "um2", kMaestro},
    {MacPower, "mac_power", "mW", kMaestro},
    {MacEnergy, "mac_energy", "nJ", kMaestro},
    {L1BlockBytes, "l1_block_bytes", "B", kMaestro, 1},
    {L1BlockArea, "l1_block_area", "um2", kMaestro},
    {L1BlockPower, "l1_block_power", "mW", kMaestro},
    {L1Access, "l1_access", "MAC", kMaestro},
    {L2BlockBytes, "l2_block_bytes", "B", kMaestro, 1},
    {L2BlockArea, "l2_block_area", "um2", kMaestro},
    {L2BlockPower, "l2_block_power", "mW", kMaestro},
    {L2Access, "l2_access", "MAC", kMaestro},
    {BandwidthPerBank, "bandwidth_per_bank", "1/cycle", kMaestro},
    {BusArea, "bus_area", "um2", kMaestro},
    {BusPower, "bus_power", "mW", kMaestro},
    {BusSlope, "bus_slope", "1", kMaestro},
    {BusOffset, "bus_offset", "1", kMaestro},
    {ArbiterArea, "arbiter_area", "um2", kMaestro},
    {ArbiterPower, "arbiter_power", "mW", kMaestro},
    {ArbiterSquare, "arbiter_square", "1", kMaestro},
    {ArbiterSlope, "arbiter_slope", "1", kMaestro},
    {ArbiterOffset, "arbiter_offset", "1", kMaestro, -1e6},
    {BasePower, "base_power", "mW", kCells},
    {UnitPower, "unit_power", "mW", kCells},
    {KibPower, "kib_power", "mW", kCells},
    {DeviceLuts, "device_luts", "LUT", kCells, 1},
    {DeviceFfs, "device_ffs", "FF", kCells, 1},
    {DeviceDsps, "device_dsps", "DSP", kCells, 1},
    {DeviceBrams, "device_brams", "BRAM18", kCells, 1},
    {UnitLuts, "unit_luts", "LUT", kCells},
    {UnitDsps, "unit_dsps", "DSP", kCells},
    {TreeLuts, "tree_luts", "LUT", kCells},
    {FetchLuts, "fetch_luts", "LUT", kCells},
    {BankLuts, "bank_luts", "LUT", kCells},
    {BankByteLuts, "bank_byte_luts", "LUT/B", kCells},
    {BramBytes, "bram_bytes", "B", kCells, 1},
    {BramBits, "bram_bits", "bit", kCells, 1},
    {LutRamBits, "lutram_bits", "bit/LUT", kCells, 1},
    {LutRamLimit, "lutram_limit", "B", kCells},
    {DmaLuts, "dma_luts", "LUT", kCells},
    {DmaByteLuts, "dma_byte_luts", "LUT/B", kCells},
    {DmaFfs, "dma_ffs", "FF", kCells},
    {ControlLuts, "control_luts", "LUT", kCells},
    {ControlFfs, "control_ffs", "FF", kCells},
};
static_assert(std::size(kTable) == kQuantities);

/// The position of `text` among `words`; a problem if it is none of them.
std::optional<size_t> word_of(TomlTable& table, std::string_view key, const std::string& prefix,
                              std::span<const std::string_view> words) {
  std::string text;
  if (!table.read_text(key, text)) return std::nullopt;
  const std::vector<std::string> known(words.begin(), words.end());
  const auto found = std::find(known.begin(), known.end(), text);
  if (found != known.end()) return static_cast<size_t>(found - known.begin());
  if (table.find(key) == nullptr)
    table.problem(key, fmt::format("`{}{}` is missing", prefix, key),
                  fmt::format("one of {}", fmt::join(known, ", ")));
  else
    table.problem(key, fmt::format("`{}{}` cannot be `{}`", prefix, key, text),
                  fmt::format("one of {}", fmt::join(known, ", ")));
  return std::nullopt;
}

class TechnologyReader {
 public:
  TechnologyReader(const toml::table& top, const std::string& place)
      : top_(top), problems_(place), table_(top, "", problems_) {}

  Result<Technology> read() {
    read_file_head(table_, kTechnology, into_.name, into_.about);
    const auto formula = word_of(table_, "formula", "", kFormulas);
    sources_ = table_.subtable("sources");
    const toml::table* numbers = table_.subtable("numbers");
    if (formula) into_.formula = static_cast<Formula>(*formula);
    check_sources();
    if (numbers != nullptr && formula) read_numbers(*numbers);
    if (numbers == nullptr && table_.find("numbers") == nullptr)
      problems_.add("the table `[numbers]` is missing", kTechnology.example, &top_);
    table_.finish();
    TW_TRY_STATUS(problems_.status());
    return std::move(into_);
  }

 private:
  void check_sources() {
    if (sources_ == nullptr) return;
    for (const auto& [key, node] : *sources_)
      if (node.value_exact<std::string>().value_or("").empty())
        problems_.add(fmt::format("the source `{}` must be a text in quotes", key.str()), {},
                      &node);
  }

  void read_numbers(const toml::table& numbers) {
    TomlTable table(numbers, "numbers.", problems_);
    for (const QuantityInfo& info : kTable) {
      if (info.formula != into_.formula) continue;
      const toml::table* entry = table.subtable(info.key);
      if (entry != nullptr)
        read_number(info, *entry);
      else if (table.find(info.key) == nullptr)
        problems_.add(fmt::format("`numbers.{}` is missing: the formula {} needs it", info.key,
                                  name(into_.formula)),
                      {}, &numbers);
    }
    table.finish();
  }

  void read_number(const QuantityInfo& info, const toml::table& entry) {
    const std::string prefix = fmt::format("numbers.{}.", info.key);
    TomlTable table(entry, prefix, problems_);
    Number& number = into_.numbers[static_cast<size_t>(info.quantity)];
    if (entry.contains("value"))
      table.read_number("value", number.value, info.low, info.high);
    else
      problems_.add(fmt::format("`{}value` is missing", prefix), {}, &entry);
    std::string unit;
    if (!entry.contains("unit"))
      problems_.add(fmt::format("`numbers.{}` has no unit", info.key),
                    fmt::format("unit = \"{}\"", info.unit), &entry);
    if (table.read_text("unit", unit) && entry.contains("unit") && unit != info.unit)
      table.problem("unit",
                    fmt::format("`numbers.{}` is in {}, not in `{}`", info.key, info.unit, unit));
    if (const auto kind = word_of(table, "kind", prefix, kEvidence))
      number.evidence = static_cast<Evidence>(*kind);
    read_source(info, entry, table, number);
    table.finish();
  }

  void read_source(const QuantityInfo& info, const toml::table& entry, TomlTable& table,
                   Number& number) {
    std::string source;
    const bool text = table.read_text("source", source);
    if (!entry.contains("source"))
      return problems_.add(fmt::format("`numbers.{}` has no source", info.key),
                           "every number says where it comes from: source = \"NAME\"", &entry);
    if (!text) return;
    std::vector<std::string> known;
    if (sources_ != nullptr)
      for (const auto& [key, node] : *sources_) {
        known.emplace_back(key.str());
        if (key.str() == source) number.source = node.value_or(std::string());
      }
    if (std::find(known.begin(), known.end(), source) == known.end())
      table.problem("source", fmt::format("`{}` is not in [sources]", source),
                    did_you_mean(source, known));
  }

  const toml::table& top_;
  TomlProblems problems_;
  TomlTable table_;
  const toml::table* sources_ = nullptr;
  Technology into_;
};

}  // namespace

std::span<const QuantityInfo> quantities() { return kTable; }

std::vector<std::pair<Evidence, int>> Technology::evidence() const {
  std::array<int, std::size(kEvidence)> count{};
  for (const QuantityInfo& info : kTable)
    if (info.formula == formula) ++count[static_cast<size_t>(number(info.quantity).evidence)];
  std::vector<std::pair<Evidence, int>> found;
  for (size_t kind = 0; kind < count.size(); ++kind)
    if (count[kind] > 0) found.emplace_back(static_cast<Evidence>(kind), count[kind]);
  return found;
}

Result<Technology> read_technology(std::string_view text, const std::string& place) {
  const toml::table top = TW_TRY(parse_toml(text, place, kTechnology.example));
  Technology technology = TW_TRY(TechnologyReader(top, place).read());
  technology.text = text;
  return technology;
}

Result<Technology> load_technology(const std::string& name_or_path) {
  return load_named(kTechnology, kTechnologyFiles, name_or_path, read_technology);
}

std::vector<std::string> builtin_technologies() { return names_of(kTechnologyFiles); }

std::string_view name(Evidence evidence) { return kEvidence[static_cast<size_t>(evidence)]; }
std::string_view name(Formula formula) { return kFormulas[static_cast<size_t>(formula)]; }

}  // namespace tilewright::codesign
