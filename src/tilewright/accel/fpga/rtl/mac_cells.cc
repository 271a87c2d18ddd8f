#include "tilewright/accel/fpga/rtl/mac_cells.h"

#include <fmt/format.h>

#include "tilewright/accel/fpga/rtl/parts.h"

namespace tilewright::fpga {
namespace {

int fraction_of(const Number& number) { return number.bits - number.exponent - 1; }

std::string float_unit(const MacUnit& unit) {
  const Number &type = unit.type, &sum = unit.sum;
  return fmt::format(
      "  wire [{0}:0] product;\n"
      "  fpga_fmul #(.EXP({1}), .MAN({2}), .OF_EXP({3}), .OF_MAN({4}), .LATENCY({5})) multiply "
      "(.clk(clk), .a(a), .b(b), .out(product));\n"
      "  fpga_fadd #(.EXP({1}), .MAN({2}), .LATENCY({6})) add (.clk(clk), .a(product), .b(sum), "
      ".out(out));\n",
      sum.bits - 1, sum.exponent, fraction_of(sum), type.exponent, fraction_of(type),
      unit.product_cycles, unit.sum_cycles);
}

std::string integer_unit(const MacUnit& unit) {
  const int bits = unit.type.bits, wide = unit.sum.bits;
  const std::string parameters = fmt::format("#(.A({0}), .B({0}), .WIDTH({1}), .LATENCY({2}))",
                                             bits, wide, unit.product_cycles);
  const auto add = [&](const char* product, const char* sum, const char* out) {
    return fmt::format(
        "  fpga_add #(.WIDTH({}), .LATENCY({})) of_{} (.clk(clk), .a({}), .b({}), .out({}));\n",
        wide, unit.sum_cycles, out, product, sum, out);
  };
  if (!unit.pair)
    return fmt::format(
        "  wire [{}:0] product;\n"
        "  fpga_mul {} multiply (.clk(clk), .a(a), .b(b), .out(product));\n{}",
        wide - 1, parameters, add("product", "sum", "out"));
  return fmt::format(
      "  wire [{}:0] product, second_product;\n"
      "  fpga_mul_pair {} multiply (.clk(clk), .a(a), .b(second), .common(b), .a_out(product), "
      ".b_out(second_product));\n{}{}",
      wide - 1, parameters, add("product", "sum", "out"),
      add("second_product", "second_sum", "second_out"));
}

std::string ports(const MacUnit& unit) {
  const int in = unit.type.bits - 1, wide = unit.sum.bits - 1;
  std::string text = fmt::format(
      "  input wire clk,\n  input wire [{0}:0] a, b,\n  input wire [{1}:0] sum,\n"
      "  output wire [{1}:0] out",
      in, wide);
  if (unit.pair)
    text += fmt::format(
        ",\n  input wire [{0}:0] second,\n  input wire [{1}:0] second_sum,\n"
        "  output wire [{1}:0] second_out",
        in, wide);
  return text;
}

}  // namespace

std::string mac_verilog(const MacUnit& unit) {
  std::string text;
  for (const char* file : {"delay", "integer", "float"}) text += rtl::texts().at(file);
  return text + fmt::format("module {} (\n{}\n);\n{}endmodule\n", kMac, ports(unit),
                            unit.type.is_float() ? float_unit(unit) : integer_unit(unit));
}

Result<accel::Cells> mac_cells(const MacUnit& unit, accel::CellFamily family) {
  accel::SynthesisTask task;
  task.top = kMac;
  task.verilog = mac_verilog(unit);
  task.family = family;
  return TW_TRY(accel::synthesise(task)).cells();
}

}  // namespace tilewright::fpga
