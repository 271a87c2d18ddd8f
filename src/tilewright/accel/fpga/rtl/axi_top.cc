#include "tilewright/accel/fpga/rtl/axi_top.h"

#include <fmt/format.h>

#include <vector>

#include "tilewright/accel/common/rtl/identity.h"
#include "tilewright/accel/fpga/rtl/rtl.h"

namespace tilewright::fpga {
namespace {

/// Port `p` at the border of the module. Memory is shared with a processor: arcache and awcache say
/// that accesses may be merged and are not kept in caches.
std::string border_of(const Port& port, size_t p, int beat) {
  const char a = port.writes ? 'w' : 'r';
  std::string out = fmt::format(
      ",\n    output wire m_axi_gmem{0}_a{1}valid, input wire m_axi_gmem{0}_a{1}ready"
      ",\n    output wire [63:0] m_axi_gmem{0}_a{1}addr, output wire [7:0] m_axi_gmem{0}_a{1}len"
      ",\n    output wire [2:0] m_axi_gmem{0}_a{1}size, output wire [1:0] m_axi_gmem{0}_a{1}burst"
      ",\n    output wire [3:0] m_axi_gmem{0}_a{1}cache, output wire [2:0] m_axi_gmem{0}_a{1}prot",
      p, a);
  out += port.writes
             ? fmt::format(
                   ",\n    output wire m_axi_gmem{0}_wvalid, input wire m_axi_gmem{0}_wready"
                   ",\n    output wire [{1}:0] m_axi_gmem{0}_wdata"
                   ", output wire [{2}:0] m_axi_gmem{0}_wstrb"
                   ",\n    output wire m_axi_gmem{0}_wlast, input wire m_axi_gmem{0}_bvalid"
                   ",\n    output wire m_axi_gmem{0}_bready, input wire [1:0] m_axi_gmem{0}_bresp",
                   p, beat * 8 - 1, beat - 1)
             : fmt::format(
                   ",\n    input wire m_axi_gmem{0}_rvalid, output wire m_axi_gmem{0}_rready"
                   ",\n    input wire [{1}:0] m_axi_gmem{0}_rdata, input wire m_axi_gmem{0}_rlast"
                   ",\n    input wire [1:0] m_axi_gmem{0}_rresp",
                   p, beat * 8 - 1);
  return out;
}

std::string connections_of(const Port& port, size_t p) {
  const char a = port.writes ? 'w' : 'r';
  std::string out;
  for (const char* name : {"valid", "ready", "addr", "len", "size", "burst"})
    out += fmt::format(",\n      .axi{0}_a{1}{2}(m_axi_gmem{0}_a{1}{2})", p, a, name);
  const std::vector<const char*> data =
      port.writes ? std::vector{"wvalid", "wready", "wdata", "wstrb", "wlast", "bvalid", "bready"}
                  : std::vector{"rvalid", "rready", "rdata", "rlast"};
  for (const char* name : data)
    out += fmt::format(",\n      .axi{0}_{1}(m_axi_gmem{0}_{1})", p, name);
  return out;
}

}  // namespace

uint32_t identity(const Design& design, Numbers numbers) {
  return accel::identity_of(verilog(design, numbers).text);
}

std::string axi_top(const Design& design, Numbers numbers) {
  std::string border, fixed, connections;
  for (size_t p = 0; p < design.ports.size(); ++p) {
    const char a = design.ports[p].writes ? 'w' : 'r';
    border += border_of(design.ports[p], p, design.bus.beat_bytes);
    fixed += fmt::format(
        "  assign m_axi_gmem{0}_a{1}cache = 4'b0011, m_axi_gmem{0}_a{1}prot = 3'b000;\n", p, a);
    connections += connections_of(design.ports[p], p);
  }
  return fmt::format(R"(// {0} with the names that vendors' tools look for.
module {1} (
    input wire ap_clk, input wire ap_rst_n,
    input wire s_axi_control_awvalid, output wire s_axi_control_awready,
    input wire [15:0] s_axi_control_awaddr,
    input wire s_axi_control_wvalid, output wire s_axi_control_wready,
    input wire [31:0] s_axi_control_wdata, input wire [3:0] s_axi_control_wstrb,
    output wire s_axi_control_bvalid, input wire s_axi_control_bready,
    output wire [1:0] s_axi_control_bresp,
    input wire s_axi_control_arvalid, output wire s_axi_control_arready,
    input wire [15:0] s_axi_control_araddr,
    output wire s_axi_control_rvalid, input wire s_axi_control_rready,
    output wire [31:0] s_axi_control_rdata, output wire [1:0] s_axi_control_rresp{2}
);
  assign s_axi_control_bresp = 2'b00, s_axi_control_rresp = 2'b00;
{3}  wire busy;
  {4} #(.IDENTITY(32'h{5:08x})) top (
      .clk(ap_clk), .reset(!ap_rst_n),
      .s_awvalid(s_axi_control_awvalid), .s_awready(s_axi_control_awready),
      .s_awaddr(s_axi_control_awaddr), .s_wvalid(s_axi_control_wvalid),
      .s_wready(s_axi_control_wready), .s_wdata(s_axi_control_wdata),
      .s_bvalid(s_axi_control_bvalid), .s_bready(s_axi_control_bready),
      .s_arvalid(s_axi_control_arvalid), .s_arready(s_axi_control_arready),
      .s_araddr(s_axi_control_araddr), .s_rvalid(s_axi_control_rvalid),
      .s_rready(s_axi_control_rready), .s_rdata(s_axi_control_rdata), .busy(busy){6});
endmodule
)",
                     numbers == Numbers::Fixed ? design.name : "A design", kAxiTop, border, fixed,
                     kTop, identity(design, numbers), connections);
}

}  // namespace tilewright::fpga
