// Verilog text of the GEMM core.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kMathModules = R"v(
// The two hardware loops around a range of micro-ops: one step in every II-th cycle, from the
// cycle after start on; then OVERHEAD - 2 cycles in which the last steps leave the pipeline.
module vta_index #(
    parameter OVERHEAD = 7,
    parameter LOG_UOP = ${LOG_UOP_DEPTH},
    parameter LOG_DST = ${LOG_ACC_DEPTH},
    parameter LOG_SRC = ${LOG_SRC_DEPTH},
    parameter LOG_WGT = ${LOG_WGT_DEPTH}
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               start,
    input  wire               every_second,  // initiation interval 2 instead of 1
    input  wire [LOG_UOP-1:0] uop_begin,
    input  wire [  LOG_UOP:0] uop_end,
    input  wire [       13:0] outer,
    input  wire [       13:0] inner,
    input  wire [LOG_DST-1:0] dst_outer,
    input  wire [LOG_DST-1:0] dst_inner,
    input  wire [LOG_SRC-1:0] src_outer,
    input  wire [LOG_SRC-1:0] src_inner,
    input  wire [LOG_WGT-1:0] wgt_outer,
    input  wire [LOG_WGT-1:0] wgt_inner,
    output wire               step,          // in this cycle, with the values below
    output wire               first_outer,   // a step of the first outer iteration
    output wire [LOG_UOP-1:0] uop,
    output reg  [LOG_DST-1:0] dst,           // what the loops add to the micro-op
    output reg  [LOG_SRC-1:0] src,
    output reg  [LOG_WGT-1:0] wgt,
    output wire               last           // nothing left after this cycle
);
  reg active, draining, second;
  reg [7:0] drain;
  reg [LOG_UOP:0] position;
  reg [13:0] o, i;
  reg [LOG_DST-1:0] dst_row;  // at the start of the inner loop
  reg [LOG_SRC-1:0] src_row;
  reg [LOG_WGT-1:0] wgt_row;

  wire empty = {1'b0, uop_begin} >= uop_end || outer == 0 || inner == 0;
  wire last_uop = position + 1'b1 == uop_end;
  wire last_inner = i + 14'h1 == inner;
  wire last_outer = o + 14'h1 == outer;
  wire advance = active && (second || !every_second);

  assign step = active && !second;
  assign first_outer = o == 0;
  assign uop = position[LOG_UOP-1:0];
  assign last = draining && drain == 0;

  always @(posedge clk) begin
    if (active) second <= every_second && !second;
    if (advance) begin
      position <= position + 1'b1;
      if (last_uop) begin
        position <= {1'b0, uop_begin};
        i <= i + 14'h1;
        dst <= dst + dst_inner;
        src <= src + src_inner;
        wgt <= wgt + wgt_inner;
        if (last_inner) begin
          i <= 14'h0;
          o <= o + 14'h1;
          dst_row <= dst_row + dst_outer;
          src_row <= src_row + src_outer;
          wgt_row <= wgt_row + wgt_outer;
          dst <= dst_row + dst_outer;
          src <= src_row + src_outer;
          wgt <= wgt_row + wgt_outer;
          if (last_outer) begin
            active   <= 1'b0;
            draining <= 1'b1;
          end
        end
      end
    end
    if (draining) begin
      drain <= drain - 8'h1;
      if (drain == 0) draining <= 1'b0;
    end
    if (start) begin
      active <= !empty;
      draining <= empty;
      drain <= OVERHEAD - 3;
      second <= 1'b0;
      position <= {1'b0, uop_begin};
      o <= 14'h0;
      i <= 14'h0;
      dst <= 0;
      src <= 0;
      wgt <= 0;
      dst_row <= 0;
      src_row <= 0;
      wgt_row <= 0;
    end
    if (reset) begin
      active   <= 1'b0;
      draining <= 1'b0;
    end
  end
endmodule

// One output channel of one batch row: the dot product of BLOCK_IN scalars in two stages.
module vta_dot #(
    parameter LOG_BLOCK_IN = ${LOG_BLOCK_IN},
    parameter INP_BITS = ${INP_BITS},
    parameter WGT_BITS = ${WGT_BITS},
    parameter ACC_BITS = ${ACC_BITS}
) (
    input  wire                                clk,
    input  wire                                multiply,  // products of this cycle's operands
    input  wire                                add,       // sum of the last products
    input  wire [(INP_BITS<<LOG_BLOCK_IN)-1:0] inp,
    input  wire [(WGT_BITS<<LOG_BLOCK_IN)-1:0] wgt,
    output reg  [                ACC_BITS-1:0] sum
);
  localparam BLOCK_IN = 1 << LOG_BLOCK_IN;
  localparam PRODUCT = INP_BITS + WGT_BITS;
  localparam TOTAL = PRODUCT + LOG_BLOCK_IN;
  localparam WIDE = TOTAL > ACC_BITS ? TOTAL : ACC_BITS;
  reg [PRODUCT*BLOCK_IN-1:0] products;
  reg signed [WIDE-1:0] total;
  reg signed [PRODUCT-1:0] product, term;
  reg signed [INP_BITS-1:0] a;
  reg signed [WGT_BITS-1:0] b;
  integer j, k;

  /* verilator lint_off BLKSEQ */  // a, b, product, term and total are local to a loop
  /* verilator lint_off WIDTH */   // sign extension by assignment
  always @(posedge clk) begin
    if (multiply)
      for (k = 0; k < BLOCK_IN; k = k + 1) begin
        a = inp[k*INP_BITS+:INP_BITS];
        b = wgt[k*WGT_BITS+:WGT_BITS];
        product = a * b;
        products[k*PRODUCT+:PRODUCT] <= product;
      end
  end
  always @(posedge clk) begin
    if (add) begin
      total = 0;
      for (j = 0; j < BLOCK_IN; j = j + 1) begin
        term  = products[j*PRODUCT+:PRODUCT];
        total = total + term;
      end
      sum <= total[ACC_BITS-1:0];
    end
  end
  /* verilator lint_on WIDTH */
  /* verilator lint_on BLKSEQ */
endmodule

// GEMM: a step's micro-op is read in cycle 0, its operands in 1, multiplied in 2, added up in 3,
// added to the accumulator and written in 4. The accumulator is read in 3, so it misses only the
// write of the step before: that one is forwarded.
module vta_gemm #(
    parameter GEMM_OVERHEAD = ${GEMM_OVERHEAD},
    parameter FUSED_RESET = ${FUSED_RESET},
    parameter LOG_BATCH = ${LOG_BATCH},
    parameter LOG_BLOCK_IN = ${LOG_BLOCK_IN},
    parameter LOG_BLOCK_OUT = ${LOG_BLOCK_OUT},
    parameter INP_BITS = ${INP_BITS},
    parameter WGT_BITS = ${WGT_BITS},
    parameter ACC_BITS = ${ACC_BITS},
    parameter LOG_UOP = ${LOG_UOP_DEPTH},
    parameter LOG_INP = ${LOG_INP_DEPTH},
    parameter LOG_WGT = ${LOG_WGT_DEPTH},
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
    output wire               inp_rd_en,
    output wire [LOG_INP-1:0] inp_rd_addr,
    input  wire [(INP_BITS<<(LOG_BATCH+LOG_BLOCK_IN))-1:0] inp_rd_data,
    output wire               wgt_rd_en,
    output wire [LOG_WGT-1:0] wgt_rd_addr,
    input  wire [(WGT_BITS<<(LOG_BLOCK_OUT+LOG_BLOCK_IN))-1:0] wgt_rd_data,
    output wire               acc_rd_en,
    output wire [LOG_ACC-1:0] acc_rd_addr,
    input  wire [(ACC_BITS<<(LOG_BATCH+LOG_BLOCK_OUT))-1:0] acc_rd_data,
    output wire               wr_en,        // to ACC and, narrowed, to OUT
    output wire [LOG_ACC-1:0] wr_addr,
    output wire [(ACC_BITS<<(LOG_BATCH+LOG_BLOCK_OUT))-1:0] wr_data
);
  localparam BATCH = 1 << LOG_BATCH;
  localparam BLOCK_OUT = 1 << LOG_BLOCK_OUT;
  localparam LANES = BATCH * BLOCK_OUT;
  localparam INP_ROW = INP_BITS << LOG_BLOCK_IN;
  localparam WGT_ROW = WGT_BITS << LOG_BLOCK_IN;

  wire resets = insn[${gemm.reset}];
  wire replaces = FUSED_RESET != 0 && insn[63];

  wire step, first_outer;
  wire [LOG_ACC-1:0] dst_offset;
  wire [LOG_INP-1:0] src_offset;
  wire [LOG_WGT-1:0] wgt_offset;
  vta_index #(.OVERHEAD(GEMM_OVERHEAD), .LOG_SRC(LOG_INP)) index (
      .clk(clk), .reset(reset), .start(start), .every_second(1'b0),
      .uop_begin(insn[${gemm.uop_begin}]), .uop_end(insn[${gemm.uop_end}]),
      .outer(insn[${gemm.outer}]), .inner(insn[${gemm.inner}]),
      .dst_outer(insn[${gemm.dst_outer}]), .dst_inner(insn[${gemm.dst_inner}]),
      .src_outer(insn[${gemm.src_outer}]), .src_inner(insn[${gemm.src_inner}]),
      .wgt_outer(insn[${gemm.wgt_outer}]), .wgt_inner(insn[${gemm.wgt_inner}]),
      .step(step), .first_outer(first_outer), .uop(uop_rd_addr),
      .dst(dst_offset), .src(src_offset), .wgt(wgt_offset), .last(last));
  assign uop_rd_en = step;

  // Cycle 1: the micro-op is there.
  reg [4:1] valid;
  reg first1, first2, first3, first4;
  reg [LOG_ACC-1:0] dst1, dst2, dst3, dst4;
  reg [LOG_INP-1:0] src1;
  reg [LOG_WGT-1:0] wgt1;
  assign inp_rd_en = valid[1] && !resets;
  assign wgt_rd_en = valid[1] && !resets;
  assign inp_rd_addr = uop_rd_data[${uop.src_inp}] + src1;
  assign wgt_rd_addr = uop_rd_data[${uop.wgt}] + wgt1;

  // Cycles 2 and 3: multiply, add up.
  wire [ACC_BITS*LANES-1:0] sums;
  genvar b, c;
  generate
    for (b = 0; b < BATCH; b = b + 1) begin : row
      for (c = 0; c < BLOCK_OUT; c = c + 1) begin : channel
        vta_dot dot (
            .clk(clk), .multiply(valid[2] && !resets), .add(valid[3] && !resets),
            .inp(inp_rd_data[b*INP_ROW+:INP_ROW]), .wgt(wgt_rd_data[c*WGT_ROW+:WGT_ROW]),
            .sum(sums[(b*BLOCK_OUT+c)*ACC_BITS+:ACC_BITS]));
      end
    end
  endgenerate
  assign acc_rd_en   = valid[3] && !resets;
  assign acc_rd_addr = dst3;

  // Cycle 4: accumulate and write.
  reg hit;  // the accumulator was written while it was read
  reg [ACC_BITS*LANES-1:0] written;
  reg [ACC_BITS*LANES-1:0] result;
  reg [ACC_BITS-1:0] old;
  integer i;
  always @* begin
    result = 0;
    old = 0;
    if (valid[4] && !resets)
      for (i = 0; i < LANES; i = i + 1) begin
        old = hit ? written[i*ACC_BITS+:ACC_BITS] : acc_rd_data[i*ACC_BITS+:ACC_BITS];
        if (replaces && first4) old = 0;
        result[i*ACC_BITS+:ACC_BITS] = old + sums[i*ACC_BITS+:ACC_BITS];
      end
  end
  assign wr_en   = valid[4];
  assign wr_addr = dst4;
  assign wr_data = result;

  always @(posedge clk) begin
    valid <= {valid[3:1], step};
    if (step) begin
      dst1 <= dst_offset;
      src1 <= src_offset;
      wgt1 <= wgt_offset;
    end
    dst2 <= uop_rd_data[${uop.dst}] + dst1;
    dst3 <= dst2;
    dst4 <= dst3;
    first1 <= first_outer;
    first2 <= first1;
    first3 <= first2;
    first4 <= first3;
    hit <= wr_en && acc_rd_en && wr_addr == acc_rd_addr;
    if (wr_en && acc_rd_en && wr_addr == acc_rd_addr) written <= wr_data;
    if (reset) valid <= 4'h0;
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
