#include "tilewright/driver/verbs/calibrate_fpga.h"

#include <fmt/format.h>

#include <ctime>

#include "tilewright/accel/fpga/rtl/mac_cells.h"
#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/output_file.h"
#include "tilewright/base/tool_version.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/hw/fpga_device_file.h"

namespace tilewright::driver {
namespace {

/// What the row describes. Sums are of 32 bits, as programs have them; two products of i8 share a
/// multiplier (accel/fpga/pairs.h).
fpga::MacUnit unit_of(const hw::FpgaOperator& row, DType dtype) {
  fpga::MacUnit unit{fpga::number_of(dtype), fpga::number_of(DType::I32)};
  unit.pair = dtype == DType::I8;
  if (!is_float(dtype)) return unit;
  unit.sum = fpga::number_of(DType::F32);
  unit.product_cycles = row.product_cycles();
  unit.sum_cycles = row.sum_cycles();
  return unit;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

/// A row before and after.
struct Measured {
  hw::FpgaOperator before, after;
};

Result<std::vector<Measured>> measure(const hw::FpgaDevice& device) {
  const bool series7 = device.family == hw::FpgaFamily::Series7;
  const auto family = series7 ? accel::CellFamily::Xc7 : accel::CellFamily::XcUp;
  const std::string source =
      fmt::format("Yosys {}, synth_xilinx -family {}, product and sum of our Verilog, {}",
                  TW_TRY(checked_version(kYosys)), series7 ? "xc7" : "xcup", today());
  std::vector<const hw::FpgaOperator*> rows;
  for (const hw::FpgaOperator& row : device.operators)
    if (row.op == "mac" && row.path == hw::FpgaPath::Rtl) rows.push_back(&row);
  std::vector<Measured> found;
  Progress progress("calibrating");
  for (const hw::FpgaOperator* row : rows) {
    progress.update(static_cast<int64_t>(found.size()), static_cast<int64_t>(rows.size()),
                    row->dtype);
    const fpga::MacUnit unit = unit_of(*row, *parse_dtype(row->dtype));
    const accel::Cells cells = TW_TRY(fpga::mac_cells(unit, family));
    const double share = unit.pair ? 0.5 : 1;
    hw::FpgaOperator after = *row;
    after.luts = share * static_cast<double>(cells.lut);
    after.ffs = share * static_cast<double>(cells.ff);
    after.dsps = share * static_cast<double>(cells.dsp);
    after.source = source;
    found.push_back({*row, std::move(after)});
  }
  return found;
}

void print_rows(const std::vector<Measured>& measured) {
  std::vector<std::vector<std::string>> rows = {
      {"mac", "LUT", "Yosys", "FF", "Yosys", "DSP", "Yosys"}};
  for (const auto& [before, after] : measured)
    rows.push_back({before.dtype, fmt::format("{:g}", before.luts), fmt::format("{:g}", after.luts),
                    fmt::format("{:g}", before.ffs), fmt::format("{:g}", after.ffs),
                    fmt::format("{:g}", before.dsps), fmt::format("{:g}", after.dsps)});
  fmt::print("{}", table(rows));
}

void print_json_of(const hw::FpgaDevice& device, const std::vector<Measured>& measured,
                   const std::string& output) {
  nlohmann::ordered_json json = document("calibrate");
  json["device"] = device.name;
  json["output"] = output;
  json["operators"] = nlohmann::ordered_json::array();
  for (const auto& [before, after] : measured) {
    nlohmann::ordered_json row = {{"op", after.op}, {"dtype", after.dtype}};
    for (const auto& [name, of] : {std::pair("before", &before), std::pair("measured", &after)})
      row[name] = {{"luts", of->luts}, {"ffs", of->ffs}, {"dsps", of->dsps}};
    row["source"] = after.source;
    json["operators"].push_back(std::move(row));
  }
  print_json(json);
}

}  // namespace

Result<int> calibrate_fpga(const FpgaCalibration& task, bool as_json) {
  TW_TRY_STATUS(check_outputs({{task.output}, {}}, {task.hw}, as_json));
  hw::FpgaDevice device = TW_TRY(hw::load_fpga_device(task.hw));
  if (device.family == hw::FpgaFamily::Ice40)
    return fail(ErrorKind::Unsupported, "operators are measured for AMD's families only",
                fmt::format("{} is an iCE40", device.name),
                "`synth F.tw --target fpga --hw ice40up5k --bitstream B` routes a whole design");
  const std::vector<Measured> measured = TW_TRY(measure(device));
  for (const auto& [before, after] : measured)
    for (hw::FpgaOperator& row : device.operators)
      if (row == before) row = after;
  if (!task.output.empty()) {
    TW_TRY_STATUS(write_file(task.output, hw::to_toml(device)));
    say(fmt::format("{}: the device with what was measured, for --hw", task.output));
  }
  if (as_json)
    print_json_of(device, measured, task.output);
  else
    print_rows(measured);
  return 0;
}

}  // namespace tilewright::driver
