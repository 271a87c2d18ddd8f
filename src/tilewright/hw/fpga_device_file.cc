#include "tilewright/hw/fpga_device_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "target_files_text.h"
#include "tilewright/base/check.h"
#include "tilewright/base/dtype.h"
#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/names.h"
#include "tilewright/base/toml_table.h"
#include "tilewright/hw/fpga_device_members.h"

namespace tilewright::hw {
namespace {

constexpr const char* kFpgaExample = "hw/fpga/vu9p.toml shows what a device looks like";
constexpr std::string_view kFpgaFamilies[] = {"series7", "ultrascale", "ice40"};
constexpr std::string_view kFpgaPaths[] = {"hls", "rtl"};
constexpr int64_t kAxiPage = 4096;  ///< bursts never go across such a border
const std::vector<std::string> kFpgaOperators = {
    "mac", "mul", "add", "sub", "max", "min", "compare", "select", "shift", "cast", "requantize"};

/// Reads the members that a list of the file fpga_device_members.h calls it with.
auto fpga_number_reader(TomlTable& table, const toml::table& entries, std::string prefix,
                        TomlProblems& problems) {
  return [&table, &entries, prefix = std::move(prefix), &problems]<class T>(
             std::string_view key, T& value, auto low, auto high) {
    if (!entries.contains(key))
      problems.add(fmt::format("`{}{}` is missing", prefix, key), kFpgaExample, &entries);
    if constexpr (std::is_same_v<T, double>)
      table.read_number(key, value, low, high);
    else
      table.read_integer(key, value, low, high);
  };
}

class FpgaReader {
 public:
  FpgaReader(const toml::table& top, const std::string& place)
      : file_(top), problems_(place), top_(top, "", problems_) {}

  Result<FpgaDevice> read() {
    read_head();
    each_cell_of_fpga(device_, fpga_number_reader(top_, file_, "", problems_));
    read_source(top_, file_, "", device_.source);
    read_table("usable", device_.usable, [](auto& t, auto f) { each_share_of_fpga(t, f); });
    read_table(
        "memory", device_.memory, [](auto& t, auto f) { each_number_of_memory(t, f); },
        [&](TomlTable& table) { read_text(table, "memory.", "name", device_.memory.name); });
    read_table("port", device_.port, [](auto& t, auto f) { each_number_of_port(t, f); });
    if (const toml::table* table = top_.subtable("board")) read_board(*table);
    if (const toml::table* table = top_.subtable("operator")) read_operators(*table);
    top_.finish();
    check_sizes();
    TW_TRY_STATUS(problems_.status());
    return std::move(device_);
  }

 private:
  void read_head() {
    std::string kind;
    read_text(top_, "", "kind", kind);
    if (!kind.empty() && kind != "fpga")
      top_.problem("kind", fmt::format("`kind` must be \"fpga\", not \"{}\"", kind));
    read_text(top_, "", "name", device_.name);
    read_text(top_, "", "part", device_.part);
    std::string family;
    read_text(top_, "", "family", family);
    const auto found = std::find(std::begin(kFpgaFamilies), std::end(kFpgaFamilies), family);
    if (found != std::end(kFpgaFamilies))
      device_.family = static_cast<FpgaFamily>(found - std::begin(kFpgaFamilies));
    else if (!family.empty())
      top_.problem("family", fmt::format("there is no family '{}'", family),
                   fmt::format("the families are {}", fmt::join(kFpgaFamilies, ", ")));
    const auto number = fpga_number_reader(top_, file_, "", problems_);
    number("clock_mhz", device_.clock_mhz, 0.001, 1e5);
    number("regions", device_.regions, int64_t{1}, int64_t{64});
  }

  /// A text that must be there.
  void read_text(TomlTable& table, const std::string& prefix, std::string_view key,
                 std::string& into) {
    if (table.read_text(key, into) && into.empty())
      table.problem(key, fmt::format("`{}{}` is missing", prefix, key), kFpgaExample);
  }

  void read_source(TomlTable& table, const toml::table& entries, const std::string& prefix,
                   std::string& into) {
    if (table.read_text("source", into) && into.empty())
      problems_.add(fmt::format("`{}source` is missing", prefix),
                    "every table says where its numbers come from: source = \"data sheet\"",
                    &entries);
  }

  template <class Part, class Each, class More>
  void read_table(const char* key, Part& part, const Each& each, const More& more) {
    const toml::table* entries = top_.subtable(key);
    if (entries == nullptr) {
      if (top_.find(key) == nullptr)
        problems_.add(fmt::format("the table `[{}]` is missing", key), kFpgaExample, &file_);
      return;
    }
    const std::string prefix = std::string(key) + ".";
    TomlTable table(*entries, prefix, problems_);
    more(table);
    each(part, fpga_number_reader(table, *entries, prefix, problems_));
    read_source(table, *entries, prefix, part.source);
    table.finish();
  }
  template <class Part, class Each>
  void read_table(const char* key, Part& part, const Each& each) {
    read_table(key, part, each, [](TomlTable&) {});
  }

  /// A table that need not be there.
  void read_board(const toml::table& entries) {
    TomlTable table(entries, "board.", problems_);
    read_text(table, "board.", "registers", device_.board.registers);
    read_text(table, "board.", "memory", device_.board.memory);
    table.finish();
  }

  /// `[operator.OP.TYPE.PATH]`: tables in tables, so that there is one of each.
  void read_operators(const toml::table& operators) {
    for (const auto& [op, types] : operators) {
      const std::string name(op.str());
      if (std::find(kFpgaOperators.begin(), kFpgaOperators.end(), name) == kFpgaOperators.end())
        problems_.add(fmt::format("there is no operator '{}'", name),
                      fmt::format("the operators are {}", fmt::join(kFpgaOperators, ", ")), &types);
      for_each_table(types, "operator." + name, [&](const std::string& type, const toml::node& at) {
        if (!parse_dtype(type))
          problems_.add(fmt::format("`operator.{}`: there is no type '{}'", name, type),
                        "types are written as in programs: f32, i8", &at);
        for_each_table(at, fmt::format("operator.{}.{}", name, type),
                       [&](const std::string& path, const toml::node& entry) {
                         read_operator(name, type, path, entry);
                       });
      });
    }
    std::sort(device_.operators.begin(), device_.operators.end(),
              [](const FpgaOperator& a, const FpgaOperator& b) {
                return std::tie(a.op, a.dtype, a.path) < std::tie(b.op, b.dtype, b.path);
              });
  }

  template <class F>
  void for_each_table(const toml::node& node, const std::string& where, const F& f) {
    if (!node.is_table())
      return problems_.add(fmt::format("`{}` must be a table", where),
                           "as in [operator.mac.f32.rtl]", &node);
    for (const auto& [key, entry] : *node.as_table()) f(std::string(key.str()), entry);
  }

  void read_operator(const std::string& op, const std::string& type, const std::string& path,
                     const toml::node& node) {
    const std::string where = fmt::format("operator.{}.{}.{}", op, type, path);
    const auto found = std::find(std::begin(kFpgaPaths), std::end(kFpgaPaths), path);
    if (found == std::end(kFpgaPaths) || !node.is_table())
      return problems_.add(fmt::format("`{}` must be a table of path hls or rtl", where),
                           "as in [operator.mac.f32.rtl]", &node);
    FpgaOperator row;
    row.op = op;
    row.dtype = type;
    row.path = static_cast<FpgaPath>(found - std::begin(kFpgaPaths));
    const toml::table& entries = *node.as_table();
    TomlTable table(entries, where + ".", problems_);
    each_number_of_operator(row, fpga_number_reader(table, entries, where + ".", problems_));
    read_source(table, entries, where + ".", row.source);
    table.finish();
    rows_.push_back({row, &node});
    device_.operators.push_back(std::move(row));
  }

  /// Numbers that must fit together, where all are the file's.
  void check_sizes() {
    if (problems_.count() > 0) return;
    const FpgaCells there = device_.usable_cells();
    for (const auto& [row, node] : rows_)
      for (const auto& [what, needed, have] :
           {std::tuple{"DSPs", row.dsps, there.dsps}, std::tuple{"LUTs", row.luts, there.luts},
            std::tuple{"FFs", row.ffs, there.ffs}})
        if (needed > have)
          problems_.add(fmt::format("`operator.{}.{}.{}` takes {} {} of {} usable", row.op,
                                    row.dtype, name(row.path), needed, what, have),
                        {}, node);
    const FpgaPort& port = device_.port;
    const toml::node* table = top_.find("port");
    if ((port.bytes & (port.bytes - 1)) != 0)
      problems_.add(fmt::format("`port.bytes` is {}, no power of two", port.bytes), {}, table);
    if (int64_t{port.bytes} * port.burst_beats > kAxiPage)
      problems_.add(fmt::format("a burst of `port.burst_beats`, {}, of `port.bytes`, {}, has more "
                                "than {} bytes",
                                port.burst_beats, port.bytes, kAxiPage),
                    "AXI bursts do not go across 4 KiB", table);
  }

  const toml::table& file_;
  TomlProblems problems_;
  TomlTable top_;
  FpgaDevice device_;
  std::vector<std::pair<FpgaOperator, const toml::node*>> rows_;  ///< in the order of the file
};

std::string fpga_text_entry(std::string_view key, const std::string& value) {
  toml::table table;
  table.insert(key, value);
  std::ostringstream text;
  text << table;
  return text.str() + "\n";
}

}  // namespace

std::string_view name(FpgaFamily family) { return kFpgaFamilies[static_cast<size_t>(family)]; }
std::string_view name(FpgaPath path) { return kFpgaPaths[static_cast<size_t>(path)]; }

FpgaCells FpgaDevice::usable_cells() const {
  const auto share = [](int64_t there, double of_it) {
    return static_cast<int64_t>(std::floor(static_cast<double>(there) * of_it));
  };
  return {std::floor(cells.luts * usable.lut), std::floor(cells.ffs * usable.lut),
          std::floor(cells.dsps * usable.dsp * 2) / 2, share(cells.bram18, usable.bram),
          share(cells.uram, usable.bram)};
}

const FpgaOperator* FpgaDevice::find(std::string_view op, std::string_view dtype,
                                     FpgaPath path) const {
  for (const FpgaOperator& row : operators)
    if (row.op == op && row.dtype == dtype && row.path == path) return &row;
  return nullptr;
}

Result<FpgaDevice> parse_fpga_device(std::string_view text, const std::string& place) {
  const toml::table table = TW_TRY(parse_toml(text, place, kFpgaExample));
  return FpgaReader(table, place).read();
}

const std::vector<FpgaDevice>& fpga_devices() {
  static const std::vector<FpgaDevice> devices = [] {
    std::vector<FpgaDevice> all;
    for (const TargetFile& file : kFpgaFiles) {
      Result<FpgaDevice> device = parse_fpga_device(file.text, std::string(file.name));
      TW_CHECK(device, "{}", to_string(device.error()));
      TW_CHECK(device->name == file.name, "{} is called {}", file.name, device->name);
      all.push_back(*std::move(device));
    }
    return all;
  }();
  return devices;
}

std::vector<std::string> fpga_names() {
  std::vector<std::string> names;
  for (const TargetFile& file : kFpgaFiles) names.emplace_back(file.name);
  return names;
}

Result<FpgaDevice> load_fpga_device(const std::string& name_or_path) {
  for (const FpgaDevice& device : fpga_devices())
    if (device.name == name_or_path) return device;
  if (is_path(name_or_path))
    return parse_fpga_device(TW_TRY(read_file(name_or_path)), name_or_path);
  const std::string near = did_you_mean(name_or_path, fpga_names());
  return fail(ErrorKind::Usage, fmt::format("no FPGA is called '{}'", name_or_path),
              fmt::format("the devices are {}", fmt::join(fpga_names(), ", ")),
              near.empty() ? "or a file: my.toml" : near);
}

std::string to_toml(const FpgaDevice& device) {
  std::string text = "kind = \"fpga\"\n";
  const auto number = [&](std::string_view key, const auto& value, auto, auto) {
    text += fmt::format("{} = {}\n", key, value);
  };
  const auto texts = [&](std::string_view key, const std::string& value) {
    text += fpga_text_entry(key, value);
  };
  texts("name", device.name);
  texts("part", device.part);
  texts("family", std::string(name(device.family)));
  text += fmt::format("clock_mhz = {}\nregions = {}\n", device.clock_mhz, device.regions);
  each_cell_of_fpga(device, number);
  texts("source", device.source);
  text += "\n[usable]\n";
  each_share_of_fpga(device.usable, number);
  texts("source", device.usable.source);
  text += "\n[memory]\n";
  texts("name", device.memory.name);
  each_number_of_memory(device.memory, number);
  texts("source", device.memory.source);
  text += "\n[port]\n";
  each_number_of_port(device.port, number);
  texts("source", device.port.source);
  if (!device.board.registers.empty()) {
    text += "\n[board]\n";
    texts("registers", device.board.registers);
    texts("memory", device.board.memory);
  }
  for (const FpgaOperator& row : device.operators) {
    text += fmt::format("\n[operator.{}.{}.{}]\n", row.op, row.dtype, name(row.path));
    each_number_of_operator(row, number);
    texts("source", row.source);
  }
  return text;
}

}  // namespace tilewright::hw
