// Verilog text of the modules that execute instructions.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kLoadModule = R"v(
// LOAD of inputs and weights.
module vta_load #(
    parameter LOG_BUS = ${LOG_BUS},
    parameter LOG_INP = ${LOG_INP_DEPTH},
    parameter LOG_WGT = ${LOG_WGT_DEPTH}
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               valid,       // command queue
    input  wire [      127:0] insn,
    output wire               begins,
    output wire               done,
    output wire               busy,
    input  wire               next_ready,  // tokens from compute
    output wire               take_next,
    output wire               give_next,
    input  wire [       31:0] inp_base,
    input  wire [       31:0] wgt_base,
    output wire               ar_valid,
    input  wire               ar_ready,
    output wire [       31:0] ar_addr,
    output wire [       15:0] ar_beats,
    input  wire               r_valid,
    output wire               inp_beat_en,
    output wire               wgt_beat_en,
    output wire [       31:0] beat_pos,
    output wire [  LOG_BUS:0] beat_lo,
    output wire [  LOG_BUS:0] beat_hi,
    output wire               inp_zero_en,
    output wire [LOG_INP-1:0] inp_zero_addr,
    output wire               wgt_zero_en,
    output wire [LOG_WGT-1:0] wgt_zero_addr
);
  localparam WGT = 3'd1;
  wire is_wgt = insn[${transfer.mem}] == WGT;
  wire quick = insn[${transfer.x_size}] == 0 ||
               (insn[${transfer.y_size}] == 0 && insn[${transfer.y_pad_top}] == 0 &&
                insn[${transfer.y_pad_bottom}] == 0);
  wire last, beat_en, pad_en;
  wire [15:0] pad_addr;
  reg to_wgt;
  always @(posedge clk) if (begins) to_wgt <= is_wgt;

  /* verilator lint_off PINCONNECTEMPTY */
  vta_control control (
      .clk(clk), .reset(reset), .valid(valid), .pop_prev(1'b0), .pop_next(insn[4]),
      .push_prev(1'b0), .push_next(insn[6]), .quick(quick), .prev_ready(1'b0),
      .next_ready(next_ready), .last(last), .begins(begins), .done(done), .busy(busy),
      .take_prev(), .take_next(take_next), .give_prev(), .give_next(give_next));
  /* verilator lint_on PINCONNECTEMPTY */
  vta_dma dma (
      .clk(clk), .reset(reset), .start(begins && !quick),
      .log_element(is_wgt ? 4'd${WGT_LOG_BYTES} : 4'd${INP_LOG_BYTES}),
      .sram(insn[${transfer.sram}]), .dram(insn[${transfer.dram}]),
      .base(is_wgt ? wgt_base : inp_base), .y_size(insn[${transfer.y_size}]),
      .x_size(insn[${transfer.x_size}]), .x_stride(insn[${transfer.x_stride}]),
      .pad_top(insn[${transfer.y_pad_top}]), .pad_bottom(insn[${transfer.y_pad_bottom}]),
      .pad_left(insn[${transfer.x_pad_left}]), .pad_right(insn[${transfer.x_pad_right}]),
      .ar_valid(ar_valid), .ar_ready(ar_ready), .ar_addr(ar_addr), .ar_beats(ar_beats),
      .r_valid(r_valid), .beat_en(beat_en), .beat_pos(beat_pos), .beat_lo(beat_lo),
      .beat_hi(beat_hi), .pad_en(pad_en), .pad_addr(pad_addr), .last(last));

  assign inp_beat_en = beat_en && !to_wgt;
  assign wgt_beat_en = beat_en && to_wgt;
  assign inp_zero_en = pad_en && !to_wgt;
  assign wgt_zero_en = pad_en && to_wgt;
  assign inp_zero_addr = pad_addr[LOG_INP-1:0];
  assign wgt_zero_addr = pad_addr[LOG_WGT-1:0];
endmodule
)v";

const char* const kComputeModule = R"v(
// LOAD of micro-ops and accumulators, GEMM, ALU, FINISH, one at a time. With PIPELINE4 there are two
// of it: one with the GEMM core and micro-op loads, one with the ALU, accumulator loads and FINISH.
module vta_compute #(
    parameter WITH_GEMM = 1,
    parameter WITH_ALU = 1,
    parameter LOG_BUS = ${LOG_BUS},
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
    input  wire               valid,        // command queue
    input  wire [      127:0] insn,
    output wire               begins,
    output wire               done,
    output wire               busy,
    input  wire               prev_ready,   // tokens
    input  wire               next_ready,
    output wire               take_prev,
    output wire               take_next,
    output wire               give_prev,
    output wire               give_next,
    output wire               finish,       // FINISH is done
    input  wire [       31:0] uop_base,
    input  wire [       31:0] acc_base,
    output wire               uop_ar_valid,  // one transfer at a time, but two clients
    output wire               acc_ar_valid,
    input  wire               uop_ar_ready,
    input  wire               acc_ar_ready,
    output wire [       31:0] ar_addr,
    output wire [       15:0] ar_beats,
    input  wire               r_valid,      // for either client
    output wire               uop_beat_en,
    output wire               acc_beat_en,
    output wire               acc_beat_8bit,
    output wire [       31:0] beat_pos,
    output wire [  LOG_BUS:0] beat_lo,
    output wire [  LOG_BUS:0] beat_hi,
    output wire               uop_zero_en,
    output wire [LOG_UOP-1:0] uop_zero_addr,
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
    output wire               src_rd_en,
    output wire [LOG_ACC-1:0] src_rd_addr,
    input  wire [(ACC_BITS<<(LOG_BATCH+LOG_BLOCK_OUT))-1:0] src_rd_data,
    output wire               acc_wr_en,    // results and zero padding
    output wire [LOG_ACC-1:0] acc_wr_addr,
    output wire [(ACC_BITS<<(LOG_BATCH+LOG_BLOCK_OUT))-1:0] acc_wr_data,
    output wire               out_wr_en     // the write is a result: OUT gets it, too
);
  localparam WIDTH = ACC_BITS << (LOG_BATCH + LOG_BLOCK_OUT);
  localparam LOAD = 3'd0, GEMM = 3'd2, FINISH = 3'd3, ALU = 3'd4;
  localparam UOP = 3'd0, ACC8 = 3'd5;

  wire [2:0] opcode = insn[2:0];
  wire is_load = opcode == LOAD;
  wire is_uop = insn[${transfer.mem}] == UOP;
  wire is_acc8 = insn[${transfer.mem}] == ACC8;
  wire empty_load = insn[${transfer.x_size}] == 0 ||
                    (insn[${transfer.y_size}] == 0 && insn[${transfer.y_pad_top}] == 0 &&
                     insn[${transfer.y_pad_bottom}] == 0);
  wire quick = opcode == FINISH || (is_load && empty_load);
  wire dma_last, gemm_last, alu_last;

  vta_control control (
      .clk(clk), .reset(reset), .valid(valid), .pop_prev(insn[3]), .pop_next(insn[4]),
      .push_prev(insn[5]), .push_next(insn[6]), .quick(quick), .prev_ready(prev_ready),
      .next_ready(next_ready), .last(dma_last || gemm_last || alu_last), .begins(begins),
      .done(done), .busy(busy), .take_prev(take_prev), .take_next(take_next),
      .give_prev(give_prev), .give_next(give_next));

  reg [127:0] command;  // what is executed
  reg finishes, to_uop, from_8bit;
  assign finish = done && finishes;
  always @(posedge clk)
    if (begins) begin
      command <= insn;
      finishes <= opcode == FINISH;
      to_uop <= is_uop;
      from_8bit <= is_acc8;
    end

  // Loads.
  wire ar_valid, beat_en, pad_en;
  wire [15:0] pad_addr;
  vta_dma dma (
      .clk(clk), .reset(reset), .start(begins && is_load && !quick),
      .log_element(is_uop ? 4'd2 : is_acc8 ? 4'd${ACC8_LOG_BYTES} : 4'd${ACC_LOG_BYTES}),
      .sram(insn[${transfer.sram}]), .dram(insn[${transfer.dram}]),
      .base(is_uop ? uop_base : acc_base), .y_size(insn[${transfer.y_size}]),
      .x_size(insn[${transfer.x_size}]), .x_stride(insn[${transfer.x_stride}]),
      .pad_top(insn[${transfer.y_pad_top}]), .pad_bottom(insn[${transfer.y_pad_bottom}]),
      .pad_left(insn[${transfer.x_pad_left}]), .pad_right(insn[${transfer.x_pad_right}]),
      .ar_valid(ar_valid), .ar_ready(to_uop ? uop_ar_ready : acc_ar_ready), .ar_addr(ar_addr),
      .ar_beats(ar_beats), .r_valid(r_valid), .beat_en(beat_en), .beat_pos(beat_pos),
      .beat_lo(beat_lo), .beat_hi(beat_hi), .pad_en(pad_en), .pad_addr(pad_addr),
      .last(dma_last));
  assign uop_ar_valid = ar_valid && to_uop;
  assign acc_ar_valid = ar_valid && !to_uop;
  assign uop_beat_en = beat_en && to_uop;
  assign acc_beat_en = beat_en && !to_uop;
  assign acc_beat_8bit = from_8bit;
  assign uop_zero_en = pad_en && to_uop;
  assign uop_zero_addr = pad_addr[LOG_UOP-1:0];

  // Cores. Only one is active; the other's outputs are not enabled.
  wire g_uop_en, g_acc_en, g_wr_en, a_uop_en, a_acc_en, a_wr_en;
  wire [LOG_UOP-1:0] g_uop, a_uop;
  wire [LOG_ACC-1:0] g_acc, a_acc, g_wr, a_wr;
  wire [WIDTH-1:0] g_data, a_data;
  generate
    if (WITH_GEMM != 0) begin : with_gemm
      vta_gemm gemm (
          .clk(clk), .reset(reset), .start(begins && opcode == GEMM),
          .insn(begins ? insn : command), .last(gemm_last), .uop_rd_en(g_uop_en),
          .uop_rd_addr(g_uop), .uop_rd_data(uop_rd_data), .inp_rd_en(inp_rd_en),
          .inp_rd_addr(inp_rd_addr), .inp_rd_data(inp_rd_data), .wgt_rd_en(wgt_rd_en),
          .wgt_rd_addr(wgt_rd_addr), .wgt_rd_data(wgt_rd_data), .acc_rd_en(g_acc_en),
          .acc_rd_addr(g_acc), .acc_rd_data(acc_rd_data), .wr_en(g_wr_en), .wr_addr(g_wr),
          .wr_data(g_data));
    end else begin : without_gemm
      assign gemm_last = 1'b0;
      assign {g_uop_en, inp_rd_en, wgt_rd_en, g_acc_en, g_wr_en} = 5'h0;
      assign {g_uop, inp_rd_addr, wgt_rd_addr, g_acc, g_wr, g_data} = 0;
    end
    if (WITH_ALU != 0) begin : with_alu
      vta_alu alu (
          .clk(clk), .reset(reset), .start(begins && opcode == ALU),
          .insn(begins ? insn : command), .last(alu_last), .uop_rd_en(a_uop_en),
          .uop_rd_addr(a_uop), .uop_rd_data(uop_rd_data), .acc_rd_en(a_acc_en),
          .acc_rd_addr(a_acc), .acc_rd_data(acc_rd_data), .src_rd_en(src_rd_en),
          .src_rd_addr(src_rd_addr), .src_rd_data(src_rd_data), .wr_en(a_wr_en),
          .wr_addr(a_wr), .wr_data(a_data));
    end else begin : without_alu
      assign alu_last = 1'b0;
      assign {a_uop_en, a_acc_en, src_rd_en, a_wr_en} = 4'h0;
      assign {a_uop, a_acc, src_rd_addr, a_wr, a_data} = 0;
    end
  endgenerate

  wire acc_zero_en = pad_en && !to_uop;
  assign uop_rd_en = g_uop_en || a_uop_en;
  assign uop_rd_addr = g_uop_en ? g_uop : a_uop;
  assign acc_rd_en = g_acc_en || a_acc_en;
  assign acc_rd_addr = g_acc_en ? g_acc : a_acc;
  assign out_wr_en = g_wr_en || a_wr_en;
  assign acc_wr_en = out_wr_en || acc_zero_en;
  assign acc_wr_addr = g_wr_en ? g_wr : a_wr_en ? a_wr : pad_addr[LOG_ACC-1:0];
  assign acc_wr_data = g_wr_en ? g_data : a_wr_en ? a_data : {WIDTH{1'b0}};
endmodule
)v";

const char* const kStoreModule = R"v(
// STORE: reads OUT elements and writes each in as many transfers as it has beats; an element
// smaller than a beat is one narrow transfer. One burst at a time, acknowledged before the next.
module vta_store #(
    parameter STORE_ROW_OVERHEAD = ${STORE_ROW_OVERHEAD},
    parameter STORE_ELEMENT_EXTRA = ${STORE_ELEMENT_EXTRA},
    parameter LOG_BUS = ${LOG_BUS},
    parameter LOG_BURST = ${LOG_BURST},
    parameter LOG_ACC = ${LOG_ACC_DEPTH},
    parameter LOG_BYTES = ${OUT_LOG_BYTES},  // log2 bytes of an element
    parameter LOG_TRANSFERS = ${OUT_LOG_TRANSFERS}  // log2 transfers of an element
) (
    input  wire                    clk,
    input  wire                    reset,
    input  wire                    valid,       // command queue
    input  wire [           127:0] insn,
    output wire                    begins,
    output wire                    done,
    output wire                    busy,
    input  wire                    prev_ready,  // tokens from compute
    output wire                    take_prev,
    output wire                    give_prev,
    input  wire [            31:0] out_base,
    output wire                    aw_valid,
    input  wire                    aw_ready,
    output wire [            31:0] aw_addr,
    output wire [            15:0] aw_transfers,
    output wire                    w_valid,
    input  wire                    w_ready,
    output wire [(8<<LOG_BUS)-1:0] w_data,
    output wire [(1<<LOG_BUS)-1:0] w_strobe,
    output wire                    w_last,
    input  wire                    b_valid,
    output wire                    rd_en,
    output wire [     LOG_ACC-1:0] rd_addr,
    input  wire [(8<<LOG_BYTES)-1:0] rd_data
);
  localparam [31:0] BURST = 1 << LOG_BURST;
  localparam IDLE = 3'd0, ADDRESS = 3'd1, EXTRA = 3'd2, WRITE = 3'd3, TAIL = 3'd4;
  // Enough transfers to fill a beat, or an element's.
  localparam LOG_WIDE = LOG_BYTES > LOG_BUS ? LOG_BYTES : LOG_BUS;

  wire [15:0] y_size = insn[${transfer.y_size}];
  wire [15:0] x_size = insn[${transfer.x_size}];
  wire quick = x_size == 0 || y_size == 0;
  wire last;

  /* verilator lint_off PINCONNECTEMPTY */
  vta_control control (
      .clk(clk), .reset(reset), .valid(valid), .pop_prev(insn[3]), .pop_next(1'b0),
      .push_prev(insn[5]), .push_next(1'b0), .quick(quick), .prev_ready(prev_ready),
      .next_ready(1'b0), .last(last), .begins(begins), .done(done), .busy(busy),
      .take_prev(take_prev), .take_next(), .give_prev(give_prev), .give_next());
  /* verilator lint_on PINCONNECTEMPTY */

  reg [2:0] state;
  reg [15:0] rows, x_all, x_left;  // elements of a row and of its rest
  reg [31:0] row, address, stride, address_or;  // bytes
  reg [LOG_ACC-1:0] element;       // the next one to read
  reg [15:0] burst_left;           // elements of this burst after the current one
  reg [7:0] extra;
  reg [15:0] tail;
  reg [LOG_TRANSFERS:0] transfer;  // of the element
  reg acknowledged;
  reg [31:0] lane_addr;            // address of the element being written

  wire [31:0] room = (BURST - (address & (BURST - 1))) >> LOG_BYTES;  // elements
  wire [15:0] burst = {16'h0, x_left} < room ? x_left : room[15:0];
  wire [31:0] burst_wide = {16'h0, burst};
  wire [31:0] transfers = burst_wide << LOG_TRANSFERS;
  wire last_transfer = transfer == (1 << LOG_TRANSFERS) - 1;
  wire sent = w_valid && w_ready;
  wire element_done = sent && last_transfer;
  wire tail_done = state == TAIL && tail == 0 && (acknowledged || b_valid);

  assign aw_valid = state == ADDRESS;
  assign aw_addr = address | address_or;
  assign aw_transfers = transfers[15:0];
  assign w_valid = state == WRITE;
  assign w_last = last_transfer && burst_left == 0;
  // The element in every place it can have in a beat, and the part of it that is sent.
  wire [(8<<LOG_WIDE)-1:0] wide = {(1 << (LOG_WIDE - LOG_BYTES)) {rd_data}};
  assign w_data = wide[{{(31 - LOG_TRANSFERS) {1'b0}}, transfer}*(8<<LOG_BUS)+:(8<<LOG_BUS)];
  wire [31:0] offset = lane_addr & ((1 << LOG_BUS) - 1);
  localparam [(1<<LOG_BUS)-1:0] ONES = (1 << (1 << (LOG_BYTES < LOG_BUS ? LOG_BYTES : 0))) - 1;
  generate
    if (LOG_BYTES < LOG_BUS) assign w_strobe = ONES << offset;
    else assign w_strobe = {(1 << LOG_BUS) {1'b1}};
  endgenerate
  assign rd_en = (aw_valid && aw_ready) || element_done;
  assign rd_addr = element;
  assign last = tail_done && rows == 16'h1 && x_left == 0;

  always @(posedge clk) begin
    if (begins && !quick) begin
      state <= ADDRESS;
      rows <= y_size;
      x_all <= x_size;
      x_left <= x_size;
      row <= insn[${transfer.dram}] << LOG_BYTES;
      address <= insn[${transfer.dram}] << LOG_BYTES;
      stride <= {16'h0, insn[${transfer.x_stride}]} << LOG_BYTES;
      address_or <= out_base;
      element <= insn[${transfer.sram_acc}];
    end
    if (rd_en) element <= element + 1'b1;
    if (aw_valid && aw_ready) begin
      state <= STORE_ELEMENT_EXTRA == 0 ? WRITE : EXTRA;
      extra <= STORE_ELEMENT_EXTRA - 1;
      burst_left <= burst - 16'h1;
      x_left <= x_left - burst;
      lane_addr <= address;
      address <= address + (burst_wide << LOG_BYTES);
      transfer <= 0;
      acknowledged <= 1'b0;
    end
    if (state == EXTRA) begin
      extra <= extra - 8'h1;
      if (extra == 0) state <= WRITE;
    end
    if (sent) transfer <= last_transfer ? 0 : transfer + 1'b1;
    if (element_done) begin
      state <= STORE_ELEMENT_EXTRA == 0 ? WRITE : EXTRA;
      extra <= STORE_ELEMENT_EXTRA - 1;
      burst_left <= burst_left - 16'h1;
      lane_addr <= lane_addr + (1 << LOG_BYTES);
      if (burst_left == 0) begin
        state <= TAIL;
        tail  <= STORE_ROW_OVERHEAD - 2;
        element <= element;  // the read ahead was one too many
      end
    end
    if (b_valid) acknowledged <= 1'b1;
    if (state == TAIL && tail != 0) tail <= tail - 16'h1;
    if (tail_done) begin
      state <= ADDRESS;
      if (x_left == 0) begin
        rows <= rows - 16'h1;
        row <= row + stride;
        address <= row + stride;
        x_left <= x_all;
      end
      if (last) state <= IDLE;
    end
    if (reset) state <= IDLE;
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
