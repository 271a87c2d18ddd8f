// Operators of a nest as instances of modules: integers (verilog/integer.v) and floats (float.v).
//
// Example: a sum of two i32 with a register behind it is
// `fpga_add #(.WIDTH(32), .SUBTRACT(0), .LATENCY(1)) p0_n1_v4_of (.clk(clk), .a(..), .b(..), ..);`
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/fpga/rtl/generator.h"

namespace tilewright::fpga::rtl {

bool is_narrow_product(const Nest& nest, size_t n) {
  const Node& node = nest.nodes[n];
  if (node.op != Op::Mul || !node.type.is_float()) return false;
  const auto fraction = [](const Number& type) { return type.bits - 1 - type.exponent; };
  const auto factor = [&](size_t input) {
    const Node& cast = nest.nodes[static_cast<size_t>(node.inputs[input])];
    if (cast.op != Op::Cast) return Number();
    return nest.nodes[static_cast<size_t>(cast.inputs[0])].type;
  };
  const Number a = factor(0);
  return a.is_float() && a == factor(1) && a.exponent <= node.type.exponent &&
         fraction(a) <= fraction(node.type);
}

std::vector<bool> widened_in_products(const Nest& nest) {
  std::vector<bool> used(nest.nodes.size(), false), only(nest.nodes.size(), false);
  for (size_t n = 0; n < nest.nodes.size(); ++n)
    for (const int input : nest.nodes[n].inputs)
      (is_narrow_product(nest, n) ? only : used)[static_cast<size_t>(input)] = true;
  for (const Store& store : nest.stores) used[static_cast<size_t>(store.node)] = true;
  for (const int node : nest.stream.nodes) used[static_cast<size_t>(node)] = true;
  for (size_t n = 0; n < only.size(); ++n) only[n] = only[n] && !used[n];
  return only;
}

namespace {

/// `.EXP(8), .MAN(23), `: a type of floats as parameters of a module.
std::string format(const Number& type, const char* prefix) {
  return fmt::format(".{}EXP({}), .{}MAN({}), ", prefix, type.exponent, prefix,
                     type.bits - 1 - type.exponent);
}

/// The operator on floats of type `from` as an instance of a module.
std::string float_operator(const std::string& name, const Node& node, const Number& from,
                           const std::vector<std::string>& in) {
  const auto instance = [&](const char* module, const std::string& parameters) {
    return fmt::format("fpga_{} #({}{}.LATENCY({})) {}_of (.clk(clk), .a({}){}, .out({}));", module,
                       format(from, ""), parameters, node.latency, name, in[0],
                       in.size() > 1 ? fmt::format(", .b({})", in[1]) : "", name);
  };
  switch (node.op) {
    case Op::Add:
      return instance("fadd", "");
    case Op::Sub:
      return instance("fadd", ".SUBTRACT(1), ");
    case Op::Mul:
      return instance("fmul", "");
    case Op::Min:
      return instance("fselect", "");
    case Op::Max:
      return instance("fselect", ".MAX(1), ");
    case Op::Eq:
      return instance("fcompare", "");
    case Op::Lt:
      return instance("fcompare", ".KIND(1), ");
    case Op::Le:
      return instance("fcompare", ".KIND(2), ");
    default:  // Cast
      return instance("fcast", format(node.type, "TO_"));
  }
}

}  // namespace

std::string narrow_product(const std::string& name, const Node& node, const Number& of,
                           const std::string& a, const std::string& b) {
  return fmt::format("fpga_fmul #({}{}.LATENCY({})) {}_of (.clk(clk), .a({}), .b({}), .out({}));",
                     format(node.type, ""), format(of, "OF_"), node.latency, name, a, b, name);
}

/// The operator as an instance of a module; its result is the wire `name`.
std::string Generator::emit_operator(const std::string& name, const Nest& nest, const Node& node,
                                     const std::vector<std::string>& in) {
  const auto type = [&](size_t input) {
    return nest.nodes[static_cast<size_t>(node.inputs[input])].type;
  };
  const auto needed = [&](size_t input) { return signed_bits(type(input)); };
  const auto operand = [&](size_t input, int width) {
    return extended(in[input], type(input), width);
  };
  if (node.op != Op::Select && type(0).is_float()) return float_operator(name, node, type(0), in);
  const int bits = node.type.bits;
  const std::string tail = fmt::format(".LATENCY({})) {}_of (.clk(clk), ", node.latency, name);
  switch (node.op) {
    case Op::Add:
    case Op::Sub:
      return fmt::format("fpga_add #(.WIDTH({}), .SUBTRACT({}), {}.a({}), .b({}), .out({}));", bits,
                         node.op == Op::Sub ? 1 : 0, tail, operand(0, bits), operand(1, bits),
                         name);
    case Op::Mul:
      return fmt::format("fpga_mul #(.A({}), .B({}), .WIDTH({}), {}.a({}), .b({}), .out({}));",
                         needed(0), needed(1), bits, tail, operand(0, needed(0)),
                         operand(1, needed(1)), name);
    case Op::Eq:
    case Op::Lt:
    case Op::Le: {
      const int width = std::max(needed(0), needed(1));
      return fmt::format("fpga_compare #(.WIDTH({}), .KIND({}), {}.a({}), .b({}), .out({}));",
                         width,
                         node.op == Op::Eq   ? 0
                         : node.op == Op::Lt ? 1
                                             : 2,
                         tail, operand(0, width), operand(1, width), name);
    }
    case Op::Min:
    case Op::Max: {
      const int width = std::max(needed(0), needed(1));
      const bool min = node.op == Op::Min;
      add(fmt::format("wire {}_less;", name));
      add(
          fmt::format("fpga_compare #(.WIDTH({}), .KIND(1), .LATENCY(0)) {}_by (.clk(clk), "
                      ".a({}), .b({}), .out({}_less));",
                      width, name, operand(0, width), operand(1, width), name));
      return fmt::format("fpga_select #(.WIDTH({}), {}.flag({}_less), .a({}), .b({}), .out({}));",
                         bits, tail, name, operand(min ? 0 : 1, bits), operand(min ? 1 : 0, bits),
                         name);
    }
    case Op::Select:
      return fmt::format("fpga_select #(.WIDTH({}), {}.flag({}), .a({}), .b({}), .out({}));", bits,
                         tail, in[0], operand(1, bits), operand(2, bits), name);
    case Op::Shl:
    case Op::Shr: {
      const int width = std::max(bits, needed(0));
      add(fmt::format("wire [{}:0] {}_wide;", width - 1, name));
      add(fmt::format("assign {} = {}_wide{};", name, name,
                      width > bits ? fmt::format("[{}:0]", bits - 1) : ""));
      return fmt::format("fpga_shift #(.WIDTH({}), .RIGHT({}), {}.a({}), .b({}), .out({}_wide));",
                         width, node.op == Op::Shr ? 1 : 0, tail, operand(0, width), operand(1, 32),
                         name);
    }
    default:  // Cast
      return fmt::format(
          "fpga_delay #(.WIDTH({}), .DELAY({})) {}_of (.clk(clk), .in({}), "
          ".out({}));",
          bits, node.latency, name, operand(0, bits), name);
  }
}

}  // namespace tilewright::fpga::rtl
