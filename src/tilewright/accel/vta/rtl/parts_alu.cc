// Verilog text of the vector ALU.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kAluModules = R"v(
// One lane: MIN, MAX, ADD, SHR (left for negative amounts), MUL.
module vta_alu_lane #(
    parameter HAS_MUL = ${HAS_MUL},
    parameter LOG_ACC_WIDTH = ${LOG_ACC_WIDTH}
) (
    input  wire [                       2:0] op,
    input  wire [(1<<LOG_ACC_WIDTH)-1:0] x,
    input  wire [(1<<LOG_ACC_WIDTH)-1:0] y,
    output reg  [(1<<LOG_ACC_WIDTH)-1:0] z
);
  localparam MIN = 3'd0, MAX = 3'd1, ADD = 3'd2, SHR = 3'd3;
  localparam ACC_BITS = 1 << LOG_ACC_WIDTH;
  wire signed [ACC_BITS-1:0] sx = x;
  wire signed [ACC_BITS-1:0] sy = y;
  wire [ACC_BITS-1:0] minus_y = -y;
  wire [LOG_ACC_WIDTH-1:0] right = y[LOG_ACC_WIDTH-1:0];
  wire [LOG_ACC_WIDTH-1:0] left = minus_y[LOG_ACC_WIDTH-1:0];
  wire [ACC_BITS-1:0] shifted_right = sx >>> right;
  wire [ACC_BITS-1:0] shifted_left = x << left;
  wire [ACC_BITS-1:0] product;
  generate
    if (HAS_MUL != 0) assign product = x * y;
    else assign product = {ACC_BITS{1'b0}};
  endgenerate

  always @* begin
    case (op)
      MIN: z = sx < sy ? x : y;
      MAX: z = sx > sy ? x : y;
      ADD: z = x + y;
      SHR: z = sy[ACC_BITS-1] ? shifted_left : shifted_right;
      default: z = product;
    endcase
  end
endmodule

// ALU: a step's micro-op is read in cycle 0, its destination in 1. With an immediate, or with a
// second read port (PIPELINED_ALU), the result is written in 2. Otherwise the source is read in 2
// and the result is written in 3. A read misses only a write of its own cycle, which is forwarded.
module vta_alu #(
    parameter ALU_OVERHEAD = ${ALU_OVERHEAD},
    parameter PIPELINED_ALU = ${PIPELINED_ALU},
    parameter LOG_BATCH = ${LOG_BATCH},
    parameter LOG_BLOCK_OUT = ${LOG_BLOCK_OUT},
    parameter LOG_ACC_WIDTH = ${LOG_ACC_WIDTH},
    parameter LOG_UOP = ${LOG_UOP_DEPTH},
    parameter LOG_ACC = ${LOG_ACC_DEPTH}
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               start,
    input  wire [      127:0] insn,         // from start to last
    output wire               last,
    output wire               uop_rd_en,
    output wire [LOG_UOP-1:0] uop_rd_addr,
    input  wire [       31:0] uop_rd_data,
    output wire               acc_rd_en,
    output wire [LOG_ACC-1:0] acc_rd_addr,
    input  wire [(1<<(LOG_ACC_WIDTH+LOG_BATCH+LOG_BLOCK_OUT))-1:0] acc_rd_data,
    output wire               src_rd_en,    // second port, PIPELINED_ALU only
    output wire [LOG_ACC-1:0] src_rd_addr,
    input  wire [(1<<(LOG_ACC_WIDTH+LOG_BATCH+LOG_BLOCK_OUT))-1:0] src_rd_data,
    output wire               wr_en,        // to ACC and, narrowed, to OUT
    output wire [LOG_ACC-1:0] wr_addr,
    output wire [(1<<(LOG_ACC_WIDTH+LOG_BATCH+LOG_BLOCK_OUT))-1:0] wr_data
);
  localparam ACC_BITS = 1 << LOG_ACC_WIDTH;
  localparam LANES = 1 << (LOG_BATCH + LOG_BLOCK_OUT);
  localparam WIDTH = ACC_BITS * LANES;

  wire [2:0] op = insn[${alu.op}];
  wire use_imm = insn[${alu.use_imm}];
  wire [15:0] imm = insn[${alu.imm}];
  wire two_reads = !use_imm && PIPELINED_ALU == 0;

  wire step;
  wire [LOG_ACC-1:0] dst_offset, src_offset;
  /* verilator lint_off PINCONNECTEMPTY */
  vta_index #(.OVERHEAD(ALU_OVERHEAD), .LOG_SRC(LOG_ACC), .LOG_WGT(1)) index (
      .clk(clk), .reset(reset), .start(start), .every_second(two_reads),
      .uop_begin(insn[${alu.uop_begin}]), .uop_end(insn[${alu.uop_end}]),
      .outer(insn[${alu.outer}]), .inner(insn[${alu.inner}]),
      .dst_outer(insn[${alu.dst_outer}]), .dst_inner(insn[${alu.dst_inner}]),
      .src_outer(insn[${alu.src_outer}]), .src_inner(insn[${alu.src_inner}]),
      .wgt_outer(1'b0), .wgt_inner(1'b0),
      .step(step), .first_outer(), .uop(uop_rd_addr),
      .dst(dst_offset), .src(src_offset), .wgt(), .last(last));
  /* verilator lint_on PINCONNECTEMPTY */
  assign uop_rd_en = step;

  reg [3:1] valid;
  reg [LOG_ACC-1:0] dst1, src1, dst2, dst3, src2;
  wire [LOG_ACC-1:0] dst = uop_rd_data[${uop.dst}] + dst1;
  wire [LOG_ACC-1:0] src = uop_rd_data[${uop.src_acc}] + src1;

  // Cycle 1: read the destination. Cycle 2: it is there; read the source, or write.
  assign acc_rd_en = valid[1] || (valid[2] && two_reads);
  assign acc_rd_addr = valid[1] ? dst : src2;
  assign src_rd_en = valid[1] && PIPELINED_ALU != 0 && !use_imm;
  assign src_rd_addr = src;
  reg hit, src_hit;  // what is read was written in the same cycle
  reg [WIDTH-1:0] written, held;
  wire [WIDTH-1:0] first_read = hit ? written : acc_rd_data;
  wire [WIDTH-1:0] second_read = src_hit ? written : src_rd_data;

  // The result, in cycle 2 or 3.
  wire [WIDTH-1:0] x = two_reads ? held : first_read;
  wire [WIDTH-1:0] y = use_imm ? {LANES{{(ACC_BITS - 16) {imm[15]}}, imm}}
                       : two_reads ? first_read : second_read;
  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : lane
      vta_alu_lane unit (
          .op(op), .x(x[i*ACC_BITS+:ACC_BITS]), .y(y[i*ACC_BITS+:ACC_BITS]),
          .z(wr_data[i*ACC_BITS+:ACC_BITS]));
    end
  endgenerate
  assign wr_en   = two_reads ? valid[3] : valid[2];
  assign wr_addr = two_reads ? dst3 : dst2;

  always @(posedge clk) begin
    valid <= {valid[2:1], step};
    if (step) begin
      dst1 <= dst_offset;
      src1 <= src_offset;
    end
    if (valid[1]) begin
      dst2 <= dst;
      src2 <= src;
    end
    dst3 <= dst2;
    if (valid[2] && two_reads) held <= first_read;
    hit <= wr_en && acc_rd_en && wr_addr == acc_rd_addr;
    src_hit <= wr_en && src_rd_en && wr_addr == src_rd_addr;
    if (wr_en) written <= wr_data;
    if (reset) valid <= 3'h0;
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
