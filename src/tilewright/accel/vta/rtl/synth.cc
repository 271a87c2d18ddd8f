// Area by Yosys.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::vta {
namespace {

/// Cells of the whole design: the last table of `stat`, which adds up the hierarchy.
std::map<std::string, int64_t> cells(const std::string& stat) {
  std::map<std::string, int64_t> out;
  size_t begin = stat.rfind("=== design hierarchy ===");
  if (begin == std::string::npos) begin = 0;
  begin = stat.find("Number of cells:", begin);
  if (begin == std::string::npos) return out;
  std::istringstream lines(stat.substr(begin));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string name;
    int64_t count = 0;
    if (!(words >> name >> count)) break;
    out[name] = count;
  }
  return out;
}

Area area_of(const std::map<std::string, int64_t>& cells) {
  Area area;
  for (const auto& [name, count] : cells) {
    const std::string& cell = name;
    const auto is = [&cell](std::string_view prefix) { return cell.rfind(prefix, 0) == 0; };
    // LUT RAM and shift registers sit in LUTs, too; the wide ones take the LUTs of several.
    if (is("LUT") || is("SRL")) area.lut += count;
    if (is("RAM32X1D") || is("RAM64X1D")) area.lut += 2 * count;
    if (is("RAM32M") || is("RAM64M")) area.lut += 4 * count;
    if (is("RAM128X1D")) area.lut += 4 * count;
    if (is("FD")) area.ff += count;
    if (is("DSP48")) area.dsp += count;
    if (is("RAMB18")) area.bram18 += count;
    if (is("RAMB36")) area.bram18 += 2 * count;
    if (is("CARRY4")) area.carry += count;
  }
  return area;
}

}  // namespace

Result<Area> synthesise(const Config& config, double limit_seconds) {
  TW_TRY_STATUS(rtl_supports(config));
  TW_TRY(checked_version(kYosys));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(write_file(folder.path() + "/vta.v", verilog(config)));
  const ToolResult result = TW_TRY(run_tool(
      {"yosys", "-q", "-p",
       "read_verilog vta.v; synth_xilinx -family xc7 -top vta -noiopad; tee -o stat.txt stat"},
      {folder.path(), limit_seconds}));
  if (result.timed_out)
    return fail(ErrorKind::Limit, fmt::format("Yosys did not finish in {} s", limit_seconds),
                label(config), "give it more time, or make the blocks smaller");
  if (result.killed()) return killed_tool("yosys", result);
  if (result.status != 0)
    return fail(ErrorKind::Tool, fmt::format("yosys failed with status {}", result.status),
                result.output.substr(0, 2000));
  Area area = area_of(cells(TW_TRY(read_file(folder.path() + "/stat.txt"))));
  if (area.lut == 0)
    return fail(ErrorKind::Tool, "the report of yosys has no cells", result.output.substr(0, 2000));
  area.seconds = result.seconds;
  return area;
}

}  // namespace tilewright::vta
