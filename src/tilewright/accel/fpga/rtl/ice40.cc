#include "tilewright/accel/fpga/rtl/ice40.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <sstream>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/process.h"

namespace tilewright::fpga {

const ToolNeed kNextpnrIce40 = {"nextpnr-ice40", {"--version"}, "0.4"};

namespace {

constexpr size_t kLastBytes = 2000;  // of what a tool said

/// Runs tools in one folder, all within one limit.
class Tools {
 public:
  Tools(std::string folder, double limit) : folder_(std::move(folder)), left_(limit) {}

  /// Seconds that it took.
  Result<double> run(const std::vector<std::string>& argv) {
    const ToolResult result = TW_TRY(run_tool(argv, {folder_, left_}));
    left_ -= result.seconds;
    if (result.timed_out)
      return fail(ErrorKind::Limit, fmt::format("{} did not finish in time", argv[0]),
                  fmt::format("after {:.0f} s", result.seconds), "a larger --limit");
    if (result.killed()) return killed_tool(argv[0], result);
    if (result.status == 0) return result.seconds;
    const std::string said =
        result.output.substr(result.output.size() - std::min(result.output.size(), kLastBytes));
    if (said.find("remaining to implement") != std::string::npos ||
        said.find("Unable to place") != std::string::npos)
      return fail(ErrorKind::Capacity, "the design does not fit the iCE40", said,
                  "smaller tiles or fewer products side by side: --trace");
    return fail(ErrorKind::Tool, fmt::format("{} failed with status {}", argv[0], result.status),
                said);
  }
  std::string file(const char* name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
  double left_;
};

}  // namespace

Ice40Cells cells_of_stat(std::string_view stat) {
  Ice40Cells cells;
  std::istringstream lines{std::string(stat)};
  std::string line, cell;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    int64_t count = 0;
    if (!(words >> cell >> count)) continue;
    if (cell == "SB_LUT4") cells.luts += count;
    if (cell.rfind("SB_DFF", 0) == 0) cells.ffs += count;
    if (cell == "SB_CARRY") cells.carries += count;
    if (cell == "SB_MAC16") cells.dsps += count;
    if (cell.rfind("SB_RAM40_4K", 0) == 0) cells.blocks += count;
    if (cell == "SB_SPRAM256KA") cells.rams += count;
  }
  return cells;
}

Status check_cells(const Ice40Cells& cells, const Ice40Cells& there) {
  const std::tuple<const char*, int64_t, int64_t, const char*> rows[] = {
      {"block RAMs (SB_RAM40_4K)", cells.blocks, there.blocks,
       "fewer banks or slots, or smaller tiles"},
      {"DSPs (SB_MAC16)", cells.dsps, there.dsps, "fewer products side by side"},
      {"LUTs", cells.luts, there.luts, "fewer products side by side, or less behind the sum"},
      {"flip-flops", cells.ffs, there.ffs, "fewer products side by side"},
      {"RAMs of 32 KiB (SB_SPRAM256KA)", cells.rams, there.rams, "fewer arguments"}};
  for (const auto& [what, needs, have, change] : rows)
    if (needs > have)
      return fail(ErrorKind::Capacity, "the design does not fit the iCE40",
                  fmt::format("{}: needs {} of {}", what, needs, have),
                  fmt::format("{} by one step: --trace", change));
  return {};
}

Result<RouteReport> read_route_report(std::string_view json) {
  const auto report = parse_json(json, std::nothrow);
  const auto no_report = [](const char* why) {
    return fail(ErrorKind::Tool, "nextpnr wrote no report that can be read", why,
                "install a newer nextpnr-ice40");
  };
  if (!report.is_object()) return no_report("it is no JSON object");
  RouteReport out;
  out.mhz = std::numeric_limits<double>::infinity();
  const auto clocks = report.value("fmax", nlohmann::json::object());
  for (const auto& [name, clock] : clocks.items())
    if (clock.is_object() && clock.value("achieved", nlohmann::json()).is_number())
      out.mhz = std::min(out.mhz, clock["achieved"].get<double>());
  if (!(out.mhz < std::numeric_limits<double>::infinity())) return no_report("it has no clock");
  const auto places = report.value("utilization", nlohmann::json::object());
  for (const auto& [kind, of] : places.items())
    if (of.is_object() && of.value("used", nlohmann::json()).is_number_integer() &&
        of.value("available", nlohmann::json()).is_number_integer())
      out.places.push_back({kind, of["used"].get<int64_t>(), of["available"].get<int64_t>()});
  return out;
}

namespace {

/// The cells of a board, by Yosys.
Result<Bitstream> synthesised(const std::string& verilog, Tools& tools) {
  TW_TRY_STATUS(write_file(tools.file("top.v"), verilog));
  TW_TRY_STATUS(
      write_file(tools.file("run.ys"), fmt::format("read_verilog -DFPGA_KEEP_PRODUCTS top.v\n"
                                                   "synth_ice40 -dsp -top {} -json top.json\n"
                                                   "tee -o stat.txt stat\n",
                                                   kBoardTop)));
  Bitstream made;
  made.synthesis_seconds = TW_TRY(tools.run({"yosys", "-q", "-s", "run.ys"}));
  made.cells = cells_of_stat(TW_TRY(read_file(tools.file("stat.txt"))));
  TW_TRY_STATUS(check_cells(made.cells));
  made.netlist = TW_TRY(read_file(tools.file("top.json")));
  return made;
}

}  // namespace

Result<Bitstream> synthesise_board(const std::string& verilog, double limit_seconds) {
  TW_TRY(checked_version(kYosys));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  Tools tools(folder.path(), limit_seconds);
  return synthesised(verilog, tools);
}

Result<Bitstream> make_bitstream(const std::string& verilog, const BitstreamOptions& options) {
  TW_TRY(checked_version(kYosys));
  TW_TRY(checked_version(kNextpnrIce40));
  if (find_program(kIcepack).empty())
    return fail(ErrorKind::Tool, "'icepack' was not found", "it is not on PATH",
                "install the package fpga-icestorm");
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  Tools tools(folder.path(), options.limit_seconds);
  TW_TRY_STATUS(
      write_file(tools.file("pins.pcf"), options.pins.empty() ? kDefaultPins : options.pins));
  Bitstream made = TW_TRY(synthesised(verilog, tools));
  std::future<void> beside;  // is waited for when it goes
  if (options.beside) beside = std::async(std::launch::async, options.beside, made.netlist);
  made.routing_seconds = TW_TRY(tools.run(
      {"nextpnr-ice40", "--up5k", "--package", "sg48", "--json", "top.json", "--pcf", "pins.pcf",
       "--asc", "top.asc", "--report", "report.json", "--freq",
       fmt::format("{}", options.clock_mhz), "--timing-allow-fail", "--seed", "1", "-q"}));
  made.route = TW_TRY(read_route_report(TW_TRY(read_file(tools.file("report.json")))));
  if (made.route.mhz < options.clock_mhz)
    return fail(ErrorKind::Capacity, "the design is too slow for the clock of the device",
                fmt::format("clock after routing: needs {:.4g} MHz of {:.4g} that there are",
                            options.clock_mhz, made.route.mhz),
                "a smaller clock_mhz in the file of the device");
  TW_TRY(tools.run({kIcepack, "top.asc", "top.bin"}));
  made.bytes = TW_TRY(read_file(tools.file("top.bin")));
  return made;
}

}  // namespace tilewright::fpga
