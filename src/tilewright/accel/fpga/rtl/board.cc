#include "tilewright/accel/fpga/rtl/board.h"

#include <fmt/format.h>

#include "tilewright/accel/fpga/rtl/parts.h"
#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga {
namespace {

constexpr int64_t kBoardMemories = 4;

/// The port of each argument; -1: nobody moves it.
Result<std::vector<int>> ports_of_arguments(const Design& design) {
  std::vector<int> ports(static_cast<size_t>(design.arguments), -1);
  for (size_t p = 0; p < design.ports.size(); ++p) {
    int& port = ports[static_cast<size_t>(design.ports[p].argument)];
    if (port >= 0)
      return fail(ErrorKind::Unsupported,
                  fmt::format("argument {} is moved by two processes", design.ports[p].name),
                  "on the iCE40 each argument is a RAM with one port",
                  "pass it twice, as two arguments");
    port = static_cast<int>(p);
  }
  return ports;
}

Status check_board(const Design& design, const std::vector<int64_t>& bytes) {
  TW_TRY_STATUS(rtl_supports(design));
  if (design.bus.beat_bytes != 2 || design.bus.outstanding != 1)
    return fail(ErrorKind::Unsupported, "the iCE40's RAMs move 2 bytes, one burst at a time",
                fmt::format("the device has ports of {} bytes, {} bursts under way",
                            design.bus.beat_bytes, design.bus.outstanding),
                "bytes = 2 and outstanding = 1 in the table [port] of its file");
  if (design.arguments > kBoardMemories)
    return fail(ErrorKind::Capacity, "the design has more arguments than the iCE40 has RAMs",
                fmt::format("RAMs of 32 KiB: needs {} of {}", design.arguments, kBoardMemories),
                "join arguments to one");
  for (size_t a = 0; a < bytes.size(); ++a)
    if (bytes[a] > 2 * kBoardWords)
      return fail(ErrorKind::Capacity,
                  fmt::format("argument {} is larger than a RAM of the iCE40", a),
                  fmt::format("bytes: needs {} of {}", bytes[a], 2 * kBoardWords),
                  "smaller images or fewer channels");
  return {};
}

/// The memory of one argument with the wires of its port.
std::string memory_text(const Design& design, size_t argument, int port) {
  const bool writes = port >= 0 && design.ports[static_cast<size_t>(port)].writes;
  std::string out = fmt::format(
      "  {} memory{} (\n      .clk(clk), .run(run), .host_address(address[13:0]),\n"
      "      .host_write(write && address[15:14] == 2'd{}), .host_data(data), .host_out(out{})",
      writes ? "ice40_write_memory" : "ice40_read_memory", argument, argument, argument);
  if (port < 0)
    return out +
           ",\n      .arvalid(1'b0), .arready(), .araddr(14'd0), .arlen(8'd0), .rvalid(),\n"
           "      .rready(1'b0), .rdata(), .rlast());\n";
  const char a = writes ? 'w' : 'r';
  out += fmt::format(
      ",\n      .a{1}valid(a{1}valid{0}), .a{1}ready(a{1}ready{0}), .a{1}addr(a{1}addr{0}[14:1]),"
      "\n      .a{1}len(a{1}len{0})",
      port, a);
  const std::vector<const char*> names =
      writes ? std::vector<const char*>{"wvalid", "wready", "wdata", "wstrb", "wlast", "bvalid"}
             : std::vector<const char*>{"rvalid", "rready", "rdata", "rlast"};
  for (const char* name : names) out += fmt::format(", .{1}({1}{0})", port, name);
  return out + ");\n";
}

/// Wires of one port, and its part of the design's connections.
void add_port(const Port& port, size_t p, std::string& wires, std::string& connections) {
  const char a = port.writes ? 'w' : 'r';
  wires += fmt::format(
      "  wire a{1}valid{0}, a{1}ready{0}, {1}valid{0}, {1}ready{0}, {1}last{0};\n"
      "  wire [63:0] a{1}addr{0};\n  wire [7:0] a{1}len{0};\n  wire [15:0] {1}data{0};\n",
      p, a);
  if (port.writes) wires += fmt::format("  wire [1:0] wstrb{0};\n  wire bvalid{0};\n", p);
  for (const char* name : {"valid", "ready", "addr", "len"})
    connections += fmt::format(",\n      .axi{0}_a{1}{2}(a{1}{2}{0})", p, a, name);
  connections += fmt::format(", .axi{0}_a{1}size(), .axi{0}_a{1}burst()", p, a);
  for (const char* name : {"valid", "ready", "data", "last"})
    connections += fmt::format(",\n      .axi{0}_{1}{2}({1}{2}{0})", p, a, name);
  if (port.writes)
    connections += fmt::format(
        ",\n      .axi{0}_wstrb(wstrb{0}), .axi{0}_bvalid(bvalid{0}), .axi{0}_bready()", p);
}

}  // namespace

Result<std::string> board_verilog(const Design& design, const std::vector<int64_t>& bytes) {
  TW_TRY_STATUS(check_board(design, bytes));
  const std::vector<int> ports = TW_TRY(ports_of_arguments(design));
  std::string wires, connections, memories, chosen;
  for (size_t p = 0; p < design.ports.size(); ++p) add_port(design.ports[p], p, wires, connections);
  for (size_t a = 0; a < ports.size(); ++a) {
    wires += fmt::format("  wire [15:0] out{};\n", a);
    memories += memory_text(design, a, ports[a]);
    chosen +=
        fmt::format("{}({{16{{address[15:14] == 2'd{}}}}} & out{})", a == 0 ? "" : " | ", a, a);
  }
  return verilog(design, Numbers::Fixed).text + rtl::texts().at("ice40") +
         fmt::format(R"(
// The design with its memories and its host.
module {} (
    input wire clk, input wire rx, output wire tx
);
  wire run, finished, write;
  wire [15:0] address, data;
{}  ice40_host #(.DIVIDE({})) host (
      .clk(clk), .rx(rx), .tx(tx), .address(address), .write(write), .data(data),
      .read({}), .run(run), .finished(finished));
{}  {} kernel (
      .clk(clk), .run(run), .finished(finished), .arguments({}'d0), .numbers(32'd0){});
endmodule
)",
                     kBoardTop, wires, kBoardDivide, chosen, memories, kKernel,
                     64 * std::max(1, design.arguments), connections);
}

}  // namespace tilewright::fpga
