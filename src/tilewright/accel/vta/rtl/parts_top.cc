// Verilog text of the accelerator: modules, queues and memories wired together.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kTopModule = R"v(
// The accelerator. Ports: register bus; read port (requests are granted in the cycle in which
// ar_valid and ar_ready are set, beats are taken when they come, in order of the requests); write port
// (address, data, acknowledge). trace_* say in which cycle load, compute, alu, store begin and end
// a command.
module vta #(
    parameter LOG_INP_WIDTH = ${LOG_INP_WIDTH},
    parameter LOG_WGT_WIDTH = ${LOG_WGT_WIDTH},
    parameter LOG_ACC_WIDTH = ${LOG_ACC_WIDTH},
    parameter LOG_OUT_WIDTH = ${LOG_OUT_WIDTH},
    parameter LOG_BATCH = ${LOG_BATCH},
    parameter LOG_BLOCK_IN = ${LOG_BLOCK_IN},
    parameter LOG_BLOCK_OUT = ${LOG_BLOCK_OUT},
    parameter COMMAND_QUEUE = ${COMMAND_QUEUE},
    parameter LOG_BUS = ${LOG_BUS}  // log2 bytes
) (
    input  wire                    clk,
    input  wire                    reset,
    input  wire                    reg_write,
    input  wire [             7:0] reg_addr,
    input  wire [            31:0] reg_wdata,
    output wire [            31:0] reg_rdata,
    output wire                    ar_valid,
    input  wire                    ar_ready,
    output wire [             1:0] ar_client,
    output wire [            31:0] ar_addr,
    output wire [            15:0] ar_beats,
    input  wire                    r_valid,
    input  wire [             1:0] r_client,
    input  wire [(8<<LOG_BUS)-1:0] r_data,
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
    output wire                    idle,        // nothing executes and nothing is fetched
    output wire                    error,       // sticky until reset
    output wire                    finished,    // FINISH is done in this cycle
    output wire [             3:0] trace_begin,
    output wire [             3:0] trace_end
);
  localparam PIPELINE4 = ${PIPELINE4};
  localparam LOG_UOP = ${LOG_UOP_DEPTH}, LOG_INP = ${LOG_INP_DEPTH};
  localparam LOG_WGT = ${LOG_WGT_DEPTH}, LOG_ACC = ${LOG_ACC_DEPTH};
  localparam LOG_QUEUE = ${LOG_COMMAND_QUEUE};
  localparam LANES = 1 << (LOG_BATCH + LOG_BLOCK_OUT);
  localparam INP_WIDTH = 1 << (LOG_INP_WIDTH + LOG_BATCH + LOG_BLOCK_IN);
  localparam WGT_WIDTH = 1 << (LOG_WGT_WIDTH + LOG_BLOCK_OUT + LOG_BLOCK_IN);
  localparam ACC_BITS = 1 << LOG_ACC_WIDTH, OUT_BITS = 1 << LOG_OUT_WIDTH;
  localparam ACC_WIDTH = ACC_BITS * LANES, OUT_WIDTH = OUT_BITS * LANES;

  // Registers.
  wire launch, dispatch, undefined, overflow, fetching;
  wire [1:0] acc_writes_now;
  wire [31:0] insn_count, insn_addr, uop_base, inp_base, wgt_base, acc_base, out_base;
  wire [3:0] queue_valid, queue_full, begins, busy;
  wire [5:0] token_ready;
  reg failed;
  assign error = failed;
  assign idle = !fetching && busy == 0;
  assign trace_begin = begins;
  always @(posedge clk) failed <= !reset && (failed || undefined || overflow);
  vta_registers registers (
      .clk(clk), .reset(reset), .reg_write(reg_write), .reg_addr(reg_addr),
      .reg_wdata(reg_wdata), .reg_rdata(reg_rdata), .launch(launch), .insn_count(insn_count),
      .insn_addr(insn_addr), .uop_base(uop_base), .inp_base(inp_base), .wgt_base(wgt_base),
      .acc_base(acc_base), .out_base(out_base), .finish(finished), .acc_writes_now(acc_writes_now),
      .error(undefined || overflow), .dispatch(dispatch),
      .status({12'h0, queue_valid, 2'h0, token_ready, 5'h0, fetching, !idle, failed}));

  // Read port: clients fetch, uop, load, acc.
  wire [3:0] c_valid, c_ready;
  wire [127:0] c_addr;
  wire [63:0] c_beats;
  vta_read_port read_port (
      .valid(c_valid), .addr(c_addr), .beats(c_beats), .ready(c_ready), .ar_valid(ar_valid),
      .ar_ready(ar_ready), .ar_client(ar_client), .ar_addr(ar_addr), .ar_beats(ar_beats));

  // Fetch and command queues: load, compute, alu, store.
  wire [127:0] fetched;
  wire [3:0] queue_push;
  wire [127:0] load_insn, compute_insn, alu_insn, store_insn;
  vta_fetch fetch (
      .clk(clk), .reset(reset), .launch(launch), .insn_count(insn_count), .insn_addr(insn_addr),
      .ar_valid(c_valid[0]), .ar_ready(c_ready[0]), .ar_addr(c_addr[0+:32]),
      .ar_beats(c_beats[0+:16]), .r_valid(r_valid && r_client == 2'd0), .r_data(r_data),
      .insn(fetched), .push(queue_push), .full(queue_full), .dispatch(dispatch),
      .error(undefined), .busy(fetching));
  vta_fifo #(.DEPTH(COMMAND_QUEUE), .LOG_DEPTH(LOG_QUEUE)) load_queue (
      .clk(clk), .reset(reset), .push(queue_push[0]), .in(fetched), .full(queue_full[0]),
      .pop(begins[0]), .valid(queue_valid[0]), .out(load_insn));
  vta_fifo #(.DEPTH(COMMAND_QUEUE), .LOG_DEPTH(LOG_QUEUE)) compute_queue (
      .clk(clk), .reset(reset), .push(queue_push[1]), .in(fetched), .full(queue_full[1]),
      .pop(begins[1]), .valid(queue_valid[1]), .out(compute_insn));
  vta_fifo #(.DEPTH(COMMAND_QUEUE), .LOG_DEPTH(LOG_QUEUE)) store_queue (
      .clk(clk), .reset(reset), .push(queue_push[3]), .in(fetched), .full(queue_full[3]),
      .pop(begins[3]), .valid(queue_valid[3]), .out(store_insn));

  // Dependence queues between neighbours. Queue q goes to the next module for even q, back for
  // odd q; 0 and 1 lie behind load, 2 and 3 before store, 4 and 5 between compute and alu.
  wire [5:0] give, take, lost;
  assign overflow = lost != 0;
  genvar q;
  generate
    for (q = 0; q < 4 + 2 * PIPELINE4; q = q + 1) begin : dependence
      vta_tokens tokens (
          .clk(clk), .reset(reset), .push(give[q]), .pop(take[q]), .ready(token_ready[q]),
          .overflow(lost[q]));
    end
    if (PIPELINE4 == 0) begin : no_alu_queues
      assign token_ready[5:4] = 2'h0;
      assign lost[5:4] = 2'h0;
      assign give[5:4] = 2'h0;
      assign take[5:4] = 2'h0;
    end
  endgenerate

  // Load.
  wire inp_beat_en, wgt_beat_en, inp_zero_en, wgt_zero_en;
  wire [31:0] load_pos;
  wire [LOG_BUS:0] load_lo, load_hi;
  wire [LOG_INP-1:0] inp_zero_addr;
  wire [LOG_WGT-1:0] wgt_zero_addr;
  vta_load load (
      .clk(clk), .reset(reset), .valid(queue_valid[0]), .insn(load_insn), .begins(begins[0]),
      .done(trace_end[0]), .busy(busy[0]), .next_ready(token_ready[1]), .take_next(take[1]),
      .give_next(give[0]), .inp_base(inp_base), .wgt_base(wgt_base), .ar_valid(c_valid[2]),
      .ar_ready(c_ready[2]), .ar_addr(c_addr[64+:32]), .ar_beats(c_beats[32+:16]),
      .r_valid(r_valid && r_client == 2'd2), .inp_beat_en(inp_beat_en),
      .wgt_beat_en(wgt_beat_en), .beat_pos(load_pos), .beat_lo(load_lo), .beat_hi(load_hi),
      .inp_zero_en(inp_zero_en), .inp_zero_addr(inp_zero_addr), .wgt_zero_en(wgt_zero_en),
      .wgt_zero_addr(wgt_zero_addr));

  wire inp_rd_en, wgt_rd_en;
  wire [LOG_INP-1:0] inp_rd_addr;
  wire [LOG_WGT-1:0] wgt_rd_addr;
  wire [INP_WIDTH-1:0] inp_rd_data;
  wire [WGT_WIDTH-1:0] wgt_rd_data;
  wire [31:0] inp_chunk, wgt_chunk;
  wire [(1<<${INP_LOG_BEAT})-1:0] inp_mask;
  wire [(1<<${WGT_LOG_BEAT})-1:0] wgt_mask;
  vta_beat #(.LOG_CHUNK(${INP_LOG_CHUNK}), .LOG_BEAT(${INP_LOG_BEAT})) inp_beat (
      .pos(load_pos), .lo(load_lo), .hi(load_hi), .chunk(inp_chunk), .mask(inp_mask));
  vta_beat #(.LOG_CHUNK(${WGT_LOG_CHUNK}), .LOG_BEAT(${WGT_LOG_BEAT})) wgt_beat (
      .pos(load_pos), .lo(load_lo), .hi(load_hi), .chunk(wgt_chunk), .mask(wgt_mask));
  vta_sram #(
      .CHUNK(8 << ${INP_LOG_CHUNK}), .LOG_PER_ELEMENT(${INP_LOG_PER}), .LOG_BEAT(${INP_LOG_BEAT}),
      .LOG_BANKS(${INP_LOG_BANKS}), .LOG_DEPTH(LOG_INP)
  ) inp_memory (
      .clk(clk), .rd_en(inp_rd_en), .rd_addr(inp_rd_addr), .rd_data(inp_rd_data),
      .element_en(inp_zero_en), .element_addr(inp_zero_addr), .element_data({INP_WIDTH{1'b0}}),
      .beat_en(inp_beat_en), .beat_chunk(inp_chunk), .beat_mask(inp_mask), .beat_data(r_data));
  vta_sram #(
      .CHUNK(8 << ${WGT_LOG_CHUNK}), .LOG_PER_ELEMENT(${WGT_LOG_PER}), .LOG_BEAT(${WGT_LOG_BEAT}),
      .LOG_BANKS(${WGT_LOG_BANKS}), .LOG_DEPTH(LOG_WGT)
  ) wgt_memory (
      .clk(clk), .rd_en(wgt_rd_en), .rd_addr(wgt_rd_addr), .rd_data(wgt_rd_data),
      .element_en(wgt_zero_en), .element_addr(wgt_zero_addr), .element_data({WGT_WIDTH{1'b0}}),
      .beat_en(wgt_beat_en), .beat_chunk(wgt_chunk), .beat_mask(wgt_mask), .beat_data(r_data));

  // Store.
  wire out_rd_en;
  wire [LOG_ACC-1:0] out_rd_addr;
  wire [OUT_WIDTH-1:0] out_rd_data;
  vta_store store (
      .clk(clk), .reset(reset), .valid(queue_valid[3]), .insn(store_insn), .begins(begins[3]),
      .done(trace_end[3]), .busy(busy[3]), .prev_ready(token_ready[2]), .take_prev(take[2]),
      .give_prev(give[3]), .out_base(out_base), .aw_valid(aw_valid), .aw_ready(aw_ready),
      .aw_addr(aw_addr), .aw_transfers(aw_transfers), .w_valid(w_valid), .w_ready(w_ready),
      .w_data(w_data), .w_strobe(w_strobe), .w_last(w_last), .b_valid(b_valid),
      .rd_en(out_rd_en), .rd_addr(out_rd_addr), .rd_data(out_rd_data));
${COMPUTE}
endmodule
)v";

const char* const kOneCompute = R"v(
  // Compute.
  assign {queue_full[2], queue_valid[2], begins[2], busy[2], trace_end[2]} = 5'h0;
  assign alu_insn = 128'h0;
  wire uop_rd_en, acc_rd_en, src_rd_en, acc_wr_en, out_wr_en;
  assign acc_writes_now = {1'b0, acc_wr_en};
  wire uop_beat_en, acc_beat_en, acc_beat_8bit, uop_zero_en;
  wire [LOG_UOP-1:0] uop_rd_addr, uop_zero_addr;
  wire [LOG_ACC-1:0] acc_rd_addr, src_rd_addr, acc_wr_addr;
  wire [31:0] uop_rd_data, compute_pos, compute_addr;
  wire [15:0] compute_beats;
  wire [LOG_BUS:0] compute_lo, compute_hi;
  wire [ACC_WIDTH-1:0] acc_rd_data, src_rd_data, acc_wr_data;
  vta_compute compute (
      .clk(clk), .reset(reset), .valid(queue_valid[1]), .insn(compute_insn), .begins(begins[1]),
      .done(trace_end[1]), .busy(busy[1]), .prev_ready(token_ready[0]),
      .next_ready(token_ready[3]), .take_prev(take[0]), .take_next(take[3]),
      .give_prev(give[1]), .give_next(give[2]), .finish(finished), .uop_base(uop_base),
      .acc_base(acc_base), .uop_ar_valid(c_valid[1]), .acc_ar_valid(c_valid[3]),
      .uop_ar_ready(c_ready[1]), .acc_ar_ready(c_ready[3]), .ar_addr(compute_addr),
      .ar_beats(compute_beats), .r_valid(r_valid && r_client[0]), .uop_beat_en(uop_beat_en),
      .acc_beat_en(acc_beat_en), .acc_beat_8bit(acc_beat_8bit), .beat_pos(compute_pos),
      .beat_lo(compute_lo), .beat_hi(compute_hi), .uop_zero_en(uop_zero_en),
      .uop_zero_addr(uop_zero_addr), .uop_rd_en(uop_rd_en), .uop_rd_addr(uop_rd_addr),
      .uop_rd_data(uop_rd_data), .inp_rd_en(inp_rd_en), .inp_rd_addr(inp_rd_addr),
      .inp_rd_data(inp_rd_data), .wgt_rd_en(wgt_rd_en), .wgt_rd_addr(wgt_rd_addr),
      .wgt_rd_data(wgt_rd_data), .acc_rd_en(acc_rd_en), .acc_rd_addr(acc_rd_addr),
      .acc_rd_data(acc_rd_data), .src_rd_en(src_rd_en), .src_rd_addr(src_rd_addr),
      .src_rd_data(src_rd_data), .acc_wr_en(acc_wr_en), .acc_wr_addr(acc_wr_addr),
      .acc_wr_data(acc_wr_data), .out_wr_en(out_wr_en));
  assign {c_addr[32+:32], c_addr[96+:32]} = {2{compute_addr}};
  assign {c_beats[16+:16], c_beats[48+:16]} = {2{compute_beats}};
${BEATS}  vta_sram #(
      .CHUNK(32), .LOG_PER_ELEMENT(0), .LOG_BEAT(${UOP_LOG_BEAT}), .LOG_BANKS(${UOP_LOG_BANKS}),
      .LOG_DEPTH(LOG_UOP)
  ) uop_memory (
      .clk(clk), .rd_en(uop_rd_en), .rd_addr(uop_rd_addr), .rd_data(uop_rd_data),
      .element_en(uop_zero_en), .element_addr(uop_zero_addr), .element_data(32'h0),
      .beat_en(uop_beat_en), .beat_chunk(uop_chunk), .beat_mask(uop_mask), .beat_data(r_data));
  vta_sram #(
      .CHUNK(8 << ${ACC_LOG_CHUNK}), .LOG_PER_ELEMENT(${ACC_LOG_PER}), .LOG_BEAT(${ACC_LOG_BEAT}),
      .LOG_BANKS(${ACC_LOG_BANKS}), .LOG_DEPTH(LOG_ACC)
  ) acc_memory (
      .clk(clk), .rd_en(acc_rd_en), .rd_addr(acc_rd_addr), .rd_data(acc_rd_data),
      .element_en(acc_wr_en), .element_addr(acc_wr_addr), .element_data(acc_wr_data),
      .beat_en(acc_beat_en), .beat_chunk(acc_first), .beat_mask(acc_some),
      .beat_data(acc_beat_data));
${SECOND_ACC}
  // OUT shadows ACC at output width: narrowing keeps the low bits.
  wire [OUT_WIDTH-1:0] narrowed;
  genvar n;
  generate
    for (n = 0; n < LANES; n = n + 1) begin : narrow
      assign narrowed[n*OUT_BITS+:OUT_BITS] = acc_wr_data[n*ACC_BITS+:OUT_BITS];
    end
  endgenerate
  vta_sram #(
      .CHUNK(OUT_WIDTH), .LOG_PER_ELEMENT(0), .LOG_BEAT(0), .LOG_BANKS(0), .LOG_DEPTH(LOG_ACC)
  ) out_memory (
      .clk(clk), .rd_en(out_rd_en), .rd_addr(out_rd_addr), .rd_data(out_rd_data),
      .element_en(out_wr_en), .element_addr(acc_wr_addr), .element_data(narrowed),
      .beat_en(1'b0), .beat_chunk(32'h0), .beat_mask(1'b0), .beat_data({OUT_WIDTH{1'b0}}));
)v";

const char* const kAccBeat32 = R"v(
  assign acc8_chunk = 32'h0;
  assign acc8_mask = 0;
  assign acc_beat_data = r_data;
  wire [31:0] acc_first = acc_chunk;
  wire [(1<<${ACC_LOG_BEAT})-1:0] acc_some = acc_mask;
)v";

const char* const kAccBeat8 = R"v(
  // ACC_8BIT: the bytes of a beat are sign-extended to as many accumulators.
  wire [(32<<LOG_BUS)-1:0] extended;
  genvar e;
  generate
    for (e = 0; e < (1 << LOG_BUS); e = e + 1) begin : extend
      assign extended[e*32+:32] = {{24{r_data[e*8+7]}}, r_data[e*8+:8]};
    end
  endgenerate
  vta_beat #(.LOG_CHUNK(${ACC_LOG_CHUNK} - 2), .LOG_BEAT(${ACC_LOG_BEAT})) acc8_beat (
      .pos(${ACC_BEAT}_pos), .lo(${ACC_BEAT}_lo), .hi(${ACC_BEAT}_hi), .chunk(acc8_chunk),
      .mask(acc8_mask));
  assign acc_beat_data = acc_beat_8bit ? extended : {{(24 << LOG_BUS) {1'b0}}, r_data};
  wire [31:0] acc_first = acc_beat_8bit ? acc8_chunk : acc_chunk;
  wire [(1<<${ACC_LOG_BEAT})-1:0] acc_some =
      acc_beat_8bit ? acc8_mask
      : {{((1 << ${ACC_LOG_BEAT}) - (1 << (LOG_BUS - ${ACC_LOG_CHUNK}))) {1'b0}}, acc_mask};
)v";

const char* const kSecondAcc = R"v(
  // A copy for the second operand of the pipelined ALU.
  vta_sram #(
      .CHUNK(8 << ${ACC_LOG_CHUNK}), .LOG_PER_ELEMENT(${ACC_LOG_PER}), .LOG_BEAT(${ACC_LOG_BEAT}),
      .LOG_BANKS(${ACC_LOG_BANKS}), .LOG_DEPTH(LOG_ACC)
  ) src_memory (
      .clk(clk), .rd_en(src_rd_en), .rd_addr(src_rd_addr), .rd_data(src_rd_data),
      .element_en(acc_wr_en), .element_addr(acc_wr_addr), .element_data(acc_wr_data),
      .beat_en(acc_beat_en), .beat_chunk(acc_first), .beat_mask(acc_some),
      .beat_data(acc_beat_data));
)v";

const char* const kBeats = R"v(
  // Memories of compute.
  wire [31:0] uop_chunk, acc_chunk, acc8_chunk;
  wire [(1<<${UOP_LOG_BEAT})-1:0] uop_mask;
  wire [(1<<(LOG_BUS-${ACC_LOG_CHUNK}))-1:0] acc_mask;
  wire [(1<<${ACC_LOG_BEAT})-1:0] acc8_mask;
  wire [(8<<(${ACC_LOG_CHUNK}+${ACC_LOG_BEAT}))-1:0] acc_beat_data;
  vta_beat #(.LOG_CHUNK(${UOP_LOG_CHUNK}), .LOG_BEAT(${UOP_LOG_BEAT})) uop_beat (
      .pos(${UOP_BEAT}_pos), .lo(${UOP_BEAT}_lo), .hi(${UOP_BEAT}_hi), .chunk(uop_chunk),
      .mask(uop_mask));
  vta_beat #(.LOG_CHUNK(${ACC_LOG_CHUNK}), .LOG_BEAT(LOG_BUS - ${ACC_LOG_CHUNK})) acc_beat (
      .pos(${ACC_BEAT}_pos), .lo(${ACC_BEAT}_lo), .hi(${ACC_BEAT}_hi), .chunk(acc_chunk),
      .mask(acc_mask));
${ACC_BEAT_DATA})v";

const char* const kTwoComputes = R"v(
  // Compute: micro-ops and GEMM.
  wire g_uop_en, g_acc_en, g_wr_en, uop_beat_en, uop_zero_en;
  wire [LOG_UOP-1:0] g_uop, uop_zero_addr;
  wire [LOG_ACC-1:0] g_acc, g_wr;
  wire [31:0] g_uop_data, compute_pos;
  wire [LOG_BUS:0] compute_lo, compute_hi;
  wire [ACC_WIDTH-1:0] g_acc_data, g_data;
  wire uop_rd_en, a_acc_en, a_src_en, a_wr_en, a_out_en, acc_beat_en, acc_beat_8bit;
  wire [LOG_UOP-1:0] a_uop;
  wire [LOG_ACC-1:0] a_acc, a_src, a_wr;
  wire [31:0] a_uop_data, alu_pos;
  wire [LOG_BUS:0] alu_lo, alu_hi;
  wire [ACC_WIDTH-1:0] a_acc_data, a_src_data, a_data;
  assign acc_writes_now = {g_wr_en, a_wr_en};
  vta_fifo #(.DEPTH(COMMAND_QUEUE), .LOG_DEPTH(LOG_QUEUE)) alu_queue (
      .clk(clk), .reset(reset), .push(queue_push[2]), .in(fetched), .full(queue_full[2]),
      .pop(begins[2]), .valid(queue_valid[2]), .out(alu_insn));
  /* verilator lint_off PINCONNECTEMPTY */
  vta_compute #(.WITH_GEMM(1), .WITH_ALU(0)) compute (
      .clk(clk), .reset(reset), .valid(queue_valid[1]), .insn(compute_insn), .begins(begins[1]),
      .done(trace_end[1]), .busy(busy[1]), .prev_ready(token_ready[0]),
      .next_ready(token_ready[5]), .take_prev(take[0]), .take_next(take[5]),
      .give_prev(give[1]), .give_next(give[4]), .finish(), .uop_base(uop_base),
      .acc_base(32'h0), .uop_ar_valid(c_valid[1]), .acc_ar_valid(), .uop_ar_ready(c_ready[1]),
      .acc_ar_ready(1'b0), .ar_addr(c_addr[32+:32]), .ar_beats(c_beats[16+:16]),
      .r_valid(r_valid && r_client == 2'd1), .uop_beat_en(uop_beat_en), .acc_beat_en(),
      .acc_beat_8bit(), .beat_pos(compute_pos), .beat_lo(compute_lo), .beat_hi(compute_hi),
      .uop_zero_en(uop_zero_en), .uop_zero_addr(uop_zero_addr), .uop_rd_en(g_uop_en),
      .uop_rd_addr(g_uop), .uop_rd_data(g_uop_data), .inp_rd_en(inp_rd_en),
      .inp_rd_addr(inp_rd_addr), .inp_rd_data(inp_rd_data), .wgt_rd_en(wgt_rd_en),
      .wgt_rd_addr(wgt_rd_addr), .wgt_rd_data(wgt_rd_data), .acc_rd_en(g_acc_en),
      .acc_rd_addr(g_acc), .acc_rd_data(g_acc_data), .src_rd_en(), .src_rd_addr(),
      .src_rd_data({ACC_WIDTH{1'b0}}), .acc_wr_en(g_wr_en), .acc_wr_addr(g_wr),
      .acc_wr_data(g_data), .out_wr_en());

  // Alu: accumulator loads, ALU, FINISH.
  vta_compute #(.WITH_GEMM(0), .WITH_ALU(1)) alu (
      .clk(clk), .reset(reset), .valid(queue_valid[2]), .insn(alu_insn), .begins(begins[2]),
      .done(trace_end[2]), .busy(busy[2]), .prev_ready(token_ready[4]),
      .next_ready(token_ready[3]), .take_prev(take[4]), .take_next(take[3]),
      .give_prev(give[5]), .give_next(give[2]), .finish(finished), .uop_base(32'h0),
      .acc_base(acc_base), .uop_ar_valid(), .acc_ar_valid(c_valid[3]), .uop_ar_ready(1'b0),
      .acc_ar_ready(c_ready[3]), .ar_addr(c_addr[96+:32]), .ar_beats(c_beats[48+:16]),
      .r_valid(r_valid && r_client == 2'd3), .uop_beat_en(), .acc_beat_en(acc_beat_en),
      .acc_beat_8bit(acc_beat_8bit), .beat_pos(alu_pos), .beat_lo(alu_lo), .beat_hi(alu_hi),
      .uop_zero_en(), .uop_zero_addr(), .uop_rd_en(uop_rd_en), .uop_rd_addr(a_uop),
      .uop_rd_data(a_uop_data), .inp_rd_en(), .inp_rd_addr(), .inp_rd_data({INP_WIDTH{1'b0}}),
      .wgt_rd_en(), .wgt_rd_addr(), .wgt_rd_data({WGT_WIDTH{1'b0}}), .acc_rd_en(a_acc_en),
      .acc_rd_addr(a_acc), .acc_rd_data(a_acc_data), .src_rd_en(a_src_en), .src_rd_addr(a_src),
      .src_rd_data(a_src_data), .acc_wr_en(a_wr_en), .acc_wr_addr(a_wr), .acc_wr_data(a_data),
      .out_wr_en(a_out_en));
  /* verilator lint_on PINCONNECTEMPTY */
${BEATS}
  // A copy of the micro-ops for each reader.
  vta_sram #(
      .CHUNK(32), .LOG_PER_ELEMENT(0), .LOG_BEAT(${UOP_LOG_BEAT}), .LOG_BANKS(${UOP_LOG_BANKS}),
      .LOG_DEPTH(LOG_UOP)
  ) gemm_uops (
      .clk(clk), .rd_en(g_uop_en), .rd_addr(g_uop), .rd_data(g_uop_data),
      .element_en(uop_zero_en), .element_addr(uop_zero_addr), .element_data(32'h0),
      .beat_en(uop_beat_en), .beat_chunk(uop_chunk), .beat_mask(uop_mask), .beat_data(r_data));
  vta_sram #(
      .CHUNK(32), .LOG_PER_ELEMENT(0), .LOG_BEAT(${UOP_LOG_BEAT}), .LOG_BANKS(${UOP_LOG_BANKS}),
      .LOG_DEPTH(LOG_UOP)
  ) alu_uops (
      .clk(clk), .rd_en(uop_rd_en), .rd_addr(a_uop), .rd_data(a_uop_data),
      .element_en(uop_zero_en), .element_addr(uop_zero_addr), .element_data(32'h0),
      .beat_en(uop_beat_en), .beat_chunk(uop_chunk), .beat_mask(uop_mask), .beat_data(r_data));

  // A copy of ACC for each reader.
  vta_sram_two_writers #(
      .CHUNK(8 << ${ACC_LOG_CHUNK}), .LOG_PER_ELEMENT(${ACC_LOG_PER}), .LOG_BEAT(${ACC_LOG_BEAT}),
      .LOG_BANKS(${ACC_LOG_BANKS}), .LOG_DEPTH(LOG_ACC)
  ) gemm_acc (
      .clk(clk), .rd_en(g_acc_en), .rd_addr(g_acc), .rd_data(g_acc_data),
      .second_en(g_wr_en), .second_addr(g_wr), .second_data(g_data),
      .element_en(a_wr_en), .element_addr(a_wr), .element_data(a_data),
      .beat_en(acc_beat_en), .beat_chunk(acc_first), .beat_mask(acc_some),
      .beat_data(acc_beat_data));
  vta_sram_two_writers #(
      .CHUNK(8 << ${ACC_LOG_CHUNK}), .LOG_PER_ELEMENT(${ACC_LOG_PER}), .LOG_BEAT(${ACC_LOG_BEAT}),
      .LOG_BANKS(${ACC_LOG_BANKS}), .LOG_DEPTH(LOG_ACC)
  ) alu_acc (
      .clk(clk), .rd_en(a_acc_en), .rd_addr(a_acc), .rd_data(a_acc_data),
      .second_en(g_wr_en), .second_addr(g_wr), .second_data(g_data),
      .element_en(a_wr_en), .element_addr(a_wr), .element_data(a_data),
      .beat_en(acc_beat_en), .beat_chunk(acc_first), .beat_mask(acc_some),
      .beat_data(acc_beat_data));
${SECOND_ACC}
  // OUT shadows ACC at output width: narrowing keeps the low bits.
  wire [OUT_WIDTH-1:0] g_narrowed, a_narrowed;
  genvar n;
  generate
    for (n = 0; n < LANES; n = n + 1) begin : narrow
      assign g_narrowed[n*OUT_BITS+:OUT_BITS] = g_data[n*ACC_BITS+:OUT_BITS];
      assign a_narrowed[n*OUT_BITS+:OUT_BITS] = a_data[n*ACC_BITS+:OUT_BITS];
    end
  endgenerate
  vta_sram_two_writers #(
      .CHUNK(OUT_WIDTH), .LOG_PER_ELEMENT(0), .LOG_BEAT(0), .LOG_BANKS(0), .LOG_DEPTH(LOG_ACC)
  ) out_memory (
      .clk(clk), .rd_en(out_rd_en), .rd_addr(out_rd_addr), .rd_data(out_rd_data),
      .second_en(g_wr_en), .second_addr(g_wr), .second_data(g_narrowed),
      .element_en(a_out_en), .element_addr(a_wr), .element_data(a_narrowed),
      .beat_en(1'b0), .beat_chunk(32'h0), .beat_mask(1'b0), .beat_data({OUT_WIDTH{1'b0}}));
)v";

const char* const kSecondAccOfTwo = R"v(
  vta_sram_two_writers #(
      .CHUNK(8 << ${ACC_LOG_CHUNK}), .LOG_PER_ELEMENT(${ACC_LOG_PER}), .LOG_BEAT(${ACC_LOG_BEAT}),
      .LOG_BANKS(${ACC_LOG_BANKS}), .LOG_DEPTH(LOG_ACC)
  ) src_acc (
      .clk(clk), .rd_en(a_src_en), .rd_addr(a_src), .rd_data(a_src_data),
      .second_en(g_wr_en), .second_addr(g_wr), .second_data(g_data),
      .element_en(a_wr_en), .element_addr(a_wr), .element_data(a_data),
      .beat_en(acc_beat_en), .beat_chunk(acc_first), .beat_mask(acc_some),
      .beat_data(acc_beat_data));
)v";

}  // namespace tilewright::vta::rtl
