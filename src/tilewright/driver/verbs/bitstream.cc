#include "tilewright/driver/verbs/bitstream.h"

#include <fmt/format.h>

#include <utility>

#include "tilewright/accel/fpga/rtl/ice40.h"
#include "tilewright/base/file.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/compile/fpga/network.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/inputs.h"
#include "tilewright/driver/verify/reference.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::driver {
namespace {

/// What a program's arguments are before a run and must be after it.
struct BoardCase {
  std::vector<std::string> before, after;  ///< bytes, by parameter
  std::vector<bool> writes;
};

std::string bytes_of(const Array& array) {
  return {static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
}

/// Made-up inputs, integers of 8 bits over their whole range, and what the interpreter makes of
/// them.
Result<BoardCase> board_case(const Func& func, uint64_t seed) {
  std::vector<InputType> types;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) continue;
    InputType type{param.buffer.name(), param.buffer.dtype(), {}};
    for (const Expr& extent : param.buffer.shape())
      type.shape.push_back(as_int(extent).value_or(0));
    if (type.dtype == DType::I8) type.limits = InputLimits{-128, 127};
    types.push_back(std::move(type));
  }
  const std::map<std::string, Array> inputs = TW_TRY(make_inputs(types, {}, seed));
  const std::map<std::string, Array> outputs = TW_TRY(run_reference(func, inputs));
  BoardCase made;
  for (const Param& param : func.params) {
    const bool writes = param.mode == ParamMode::Out;
    const std::string& name = param.buffer.name();
    made.writes.push_back(writes);
    made.after.push_back(bytes_of(writes ? outputs.at(name) : inputs.at(name)));
    made.before.push_back(writes ? std::string(made.after.back().size(), '\0') : made.after.back());
  }
  return made;
}

/// Bytes that differ.
int64_t differences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < a[i].size(); ++k) count += a[i][k] != b[i][k];
  return count;
}

struct BitstreamReport {
  std::string label;
  double clock_mhz = 0;
  fpga::Bitstream made;
  fpga::BoardRun run;
  int64_t simulator_cycles = 0, different = 0;
};

nlohmann::ordered_json json_of(const BitstreamReport& report) {
  nlohmann::ordered_json json = document("synth");
  const fpga::Ice40Cells& cells = report.made.cells;
  json["config"] = report.label;
  json["source"] = "yosys synth_ice40, nextpnr-ice40, icepack";
  json["lut"] = cells.luts;
  json["ff"] = cells.ffs;
  json["dsp"] = cells.dsps;
  json["bram4"] = cells.blocks;
  json["carry"] = cells.carries;
  json["spram"] = cells.rams;
  for (const auto& places : report.made.route.places)
    json["places"][places.kind] = {{"used", places.used}, {"there", places.there}};
  json["clock_mhz"] = report.made.route.mhz;
  json["clock_wanted_mhz"] = report.clock_mhz;
  json["cycles"] = report.run.cycles;
  json["cycles_simulator"] = report.simulator_cycles;
  json["values_different"] = report.different;
  json["bytes"] = report.made.bytes.size();
  json["seconds"] = {{"synthesis", report.made.synthesis_seconds},
                     {"routing", report.made.routing_seconds},
                     {"netlist", report.run.seconds}};
  return json;
}

std::string text_of(const BitstreamReport& report) {
  const fpga::Ice40Cells &c = report.made.cells, &all = fpga::kUp5k;
  std::vector<std::vector<std::string>> rows = {{report.label, "used", "there"}};
  const std::tuple<const char*, int64_t, int64_t> cells[] = {
      {"LUT", c.luts, all.luts},
      {"flip-flops", c.ffs, all.ffs},
      {"SB_MAC16", c.dsps, all.dsps},
      {"block RAM, 4 Kbit", c.blocks, all.blocks},
      {"SPRAM, 32 KiB", c.rams, all.rams}};
  for (const auto& [what, used, there] : cells)
    rows.push_back({what, std::to_string(used), std::to_string(there)});
  for (const auto& places : report.made.route.places)
    if (places.kind == "ICESTORM_LC")
      rows.push_back(
          {"logic cells, routed", std::to_string(places.used), std::to_string(places.there)});
  std::string text = table(rows);
  text += fmt::format("clock after routing: {:.1f} MHz, of which {:.4g} are wanted\n",
                      report.made.route.mhz, report.clock_mhz);
  text += fmt::format(
      "cycles: {} of the netlist with its host, {} in fpga:tsim; {:.4g} ms at {:.4g} MHz\n",
      report.run.cycles, report.simulator_cycles,
      static_cast<double>(report.run.cycles) / report.clock_mhz * 1e-3, report.clock_mhz);
  text += report.different == 0
              ? "values: netlist = interpreter, in every byte\n"
              : fmt::format("values: {} bytes of the netlist differ from the interpreter's\n",
                            report.different);
  text += fmt::format(
      "time: synthesis {:.1f} s, placing and routing {:.1f} s, running the netlist {:.1f} s\n",
      report.made.synthesis_seconds, report.made.routing_seconds, report.run.seconds);
  return text;
}

Status check_device(const hw::FpgaDevice& device) {
  if (device.family == hw::FpgaFamily::Ice40) return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("no open tool makes a bitstream for {}", device.part),
              fmt::format("the family {} is placed and routed by its vendor's tools only",
                          name(device.family)),
              "--hw ice40up5k; or `hls` and `rtl`, which write what the vendor's tools take");
}

}  // namespace

Result<int> write_bitstream(const BitstreamRequest& request, bool as_json) {
  TW_TRY_STATUS(check_device(TW_TRY(hw::load_fpga_device(request.program.hw))));
  const LoadedFpgaProgram loaded = TW_TRY(load_fpga_program(request.program));
  if (loaded.program.unscheduled && loaded.program.unscheduled->kind == ErrorKind::Capacity)
    return tl::unexpected<Error>(*loaded.program.unscheduled);
  const Func& func = loaded.program.func;
  const fpga::Design design = TW_TRY(compile::fpga_design(func, loaded.device));
  const BoardCase values = TW_TRY(board_case(func, request.program.subject.seed));
  std::vector<int64_t> sizes;
  for (const std::string& bytes : values.before)
    sizes.push_back(static_cast<int64_t>(bytes.size()));
  const std::string board = TW_TRY(fpga::board_verilog(design, sizes));

  BitstreamReport report;
  report.label = fmt::format("{} on {}", func.name, loaded.device.name);
  report.clock_mhz = loaded.device.clock_mhz;
  std::vector<std::string> simulated = values.before, run = values.before;
  fpga::RunOptions options;
  options.memory = compile::memory_timing(loaded.device);
  report.simulator_cycles = TW_TRY(fpga::simulate(design, options, simulated)).cycles;

  fpga::BitstreamOptions tools;
  tools.clock_mhz = report.clock_mhz;
  tools.limit_seconds = request.limit;
  if (!request.pins.empty()) tools.pins = TW_TRY(read_file(request.pins));
  Result<fpga::BoardRun> ran = fpga::BoardRun{};
  tools.beside = [&](const std::string& netlist) {
    ran = fpga::run_board(netlist, values.writes, 4 * report.simulator_cycles + 10000, run);
  };
  say(fmt::format("synthesising, placing and routing {}, and running its netlist", report.label));
  report.made = TW_TRY(fpga::make_bitstream(board, tools));
  report.run = TW_TRY(std::move(ran));
  report.different = differences(run, values.after);
  if (report.different == 0) TW_TRY_STATUS(write_file(request.output, report.made.bytes));
  if (as_json)
    print_json(json_of(report));
  else
    fmt::print("{}", text_of(report));
  return report.different == 0 ? 0 : exit_code(ErrorKind::Mismatch);
}

}  // namespace tilewright::driver
