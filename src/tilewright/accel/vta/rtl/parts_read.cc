// Verilog text of everything that reads memory: strided transfers, arbitration, instruction fetch.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kReadModules = R"v(
// Reads a strided block of memory in bursts, and says where each beat and each padding element goes.
// Positions count the bytes that an element has in memory: element e starts at e << log_element.
// A beat whose bytes [lo, hi) are wanted has its byte 0 at beat_pos. The request side runs ahead
// of the data side, which sees the same rows beat by beat.
module vta_dma #(
    parameter SETUP = ${LOAD_SETUP},  // cycles from start to the first request
    parameter LOG_BUS = ${LOG_BUS},  // log2 bytes of a beat
    parameter LOG_BURST = ${LOG_BURST}  // log2 bytes; a burst ends at multiples of this
) (
    input  wire            clk,
    input  wire            reset,
    input  wire            start,        // with the fields below; not empty
    input  wire [     3:0] log_element,  // log2 bytes of an element in memory
    input  wire [    15:0] sram,
    input  wire [    31:0] dram,         // elements
    input  wire [    31:0] base,         // or-ed to every address
    input  wire [    15:0] y_size,
    input  wire [    15:0] x_size,
    input  wire [    15:0] x_stride,
    input  wire [     3:0] pad_top,
    input  wire [     3:0] pad_bottom,
    input  wire [     3:0] pad_left,
    input  wire [     3:0] pad_right,
    output wire            ar_valid,
    input  wire            ar_ready,
    output wire [    31:0] ar_addr,
    output wire [    15:0] ar_beats,
    input  wire            r_valid,
    output wire            beat_en,
    output wire [    31:0] beat_pos,
    output wire [LOG_BUS:0] beat_lo,
    output wire [LOG_BUS:0] beat_hi,
    output wire            pad_en,       // write zero to element pad_addr
    output wire [    15:0] pad_addr,
    output wire            last          // the last write is in this cycle
);
  localparam [31:0] BUS = 1 << LOG_BUS;
  localparam [31:0] BURST = 1 << LOG_BURST;

  reg active;              // from the first request on
  reg waiting;             // set-up
  reg [15:0] setup;
  reg [31:0] row_bytes, stride_bytes, pitch_bytes;
  reg [31:0] address_or;

  // Requests: the rest of the row starts at q_addr and has q_left bytes.
  reg [15:0] q_rows;
  reg [31:0] q_row, q_addr, q_left;
  wire [31:0] q_room = BURST - (q_addr & (BURST - 1));
  wire [31:0] q_bytes = q_left < q_room ? q_left : q_room;
  wire [31:0] q_beats = ((q_addr & (BUS - 1)) + q_bytes + BUS - 1) >> LOG_BUS;
  assign ar_valid = active && q_rows != 0;
  assign ar_addr  = q_addr | address_or;
  assign ar_beats = q_beats[15:0];

  // Data: the rest of the row has d_left bytes, the first of them at byte d_lo of the next beat.
  reg [15:0] d_rows;
  reg [31:0] d_left, d_pos, d_row_pos, d_lo, d_row_lo;
  wire [31:0] d_end = d_lo + d_left;
  wire d_row_ends = d_end <= BUS;
  wire [31:0] d_hi = d_row_ends ? d_end : BUS;
  wire [31:0] d_next_lo = (d_row_lo + stride_bytes) & (BUS - 1);
  assign beat_en  = r_valid && d_rows != 0;
  assign beat_pos = d_pos - d_lo;
  assign beat_lo  = d_lo[LOG_BUS:0];
  assign beat_hi  = d_hi[LOG_BUS:0];

  // Padding: a run before the first row, one between rows, one after the last row.
  localparam HEAD = 2'd0, BETWEEN = 2'd1, TAIL = 2'd2, NONE = 2'd3;
  reg [1:0] run;
  reg [20:0] run_left, between, tail;
  reg [15:0] run_addr, tail_addr, skip;
  reg [15:0] betweens;  // runs between rows that are still to come
  wire run_ends = run_left == 1;
  wire [1:0] run_next = (run != TAIL && betweens != 0) ? BETWEEN
                        : (run != TAIL && tail != 0) ? TAIL : NONE;
  assign pad_en   = active && run != NONE && !beat_en;
  assign pad_addr = run_addr;

  wire no_pads = run == NONE;
  wire last_beat = beat_en && d_rows == 1 && d_row_ends;
  wire last_pad = pad_en && run_ends && run_next == NONE;
  assign last = (last_beat && no_pads) || (last_pad && d_rows == 0);

  // Set-up of the padding runs. Element addresses and runs have 16 and 21 bits.
  wire [31:0] width = {16'h0, x_size} + {28'h0, pad_left} + {28'h0, pad_right};
  wire [15:0] s_rows = y_size + {12'h0, pad_top} + {12'h0, pad_bottom};
  wire [15:0] s_area = s_rows * width[15:0];
  wire [20:0] s_top = {17'h0, pad_top} * width[20:0];
  wire [20:0] s_bottom = {17'h0, pad_bottom} * width[20:0];
  wire [20:0] s_head = y_size == 0 ? s_top + s_bottom : s_top + {17'h0, pad_left};
  wire [20:0] s_tail = y_size == 0 ? 21'h0 : s_bottom + {17'h0, pad_right};
  wire [20:0] s_between = {17'h0, pad_left} + {17'h0, pad_right};
  wire [15:0] s_betweens = (s_between == 0 || y_size == 0) ? 16'h0 : y_size - 16'h1;
  wire [15:0] s_tail_addr = sram + s_area - s_tail[15:0];
  wire [31:0] s_dram = dram << log_element;
  wire [31:0] s_row = ({16'h0, sram} + {11'h0, s_top} + {28'h0, pad_left}) << log_element;

  always @(posedge clk) begin
    if (start) begin
      waiting <= SETUP > 1;
      active <= SETUP == 1;
      setup <= SETUP - 2;
      address_or <= base;
      row_bytes <= {16'h0, x_size} << log_element;
      stride_bytes <= {16'h0, x_stride} << log_element;
      pitch_bytes <= width << log_element;
      q_rows <= y_size;
      q_row <= s_dram;
      q_addr <= s_dram;
      q_left <= {16'h0, x_size} << log_element;
      d_rows <= y_size;
      d_left <= {16'h0, x_size} << log_element;
      d_pos <= s_row;
      d_row_pos <= s_row;
      d_lo <= s_dram & (BUS - 1);
      d_row_lo <= s_dram & (BUS - 1);
      between <= s_between;
      tail <= s_tail;
      tail_addr <= s_tail_addr;
      skip <= x_size + 16'h1;
      betweens <= s_betweens;
      run <= s_head != 0 ? HEAD : s_betweens != 0 ? BETWEEN : s_tail != 0 ? TAIL : NONE;
      run_left <= s_head != 0 ? s_head : s_betweens != 0 ? s_between : s_tail;
      run_addr <= s_head != 0 ? sram : s_betweens != 0 ? sram + x_size : s_tail_addr;
      if (s_head == 0 && s_betweens != 0) betweens <= s_betweens - 16'h1;
    end
    if (waiting) begin
      setup <= setup - 16'h1;
      if (setup == 0) begin
        waiting <= 1'b0;
        active  <= 1'b1;
      end
    end
    if (ar_valid && ar_ready) begin
      if (q_bytes == q_left) begin
        q_rows <= q_rows - 16'h1;
        q_row  <= q_row + stride_bytes;
        q_addr <= q_row + stride_bytes;
        q_left <= row_bytes;
      end else begin
        q_addr <= q_addr + q_bytes;
        q_left <= q_left - q_bytes;
      end
    end
    if (beat_en) begin
      if (d_row_ends) begin
        d_rows <= d_rows - 16'h1;
        d_left <= row_bytes;
        d_pos <= d_row_pos + pitch_bytes;
        d_row_pos <= d_row_pos + pitch_bytes;
        d_lo <= d_next_lo;
        d_row_lo <= d_next_lo;
      end else begin
        d_left <= d_left - (BUS - d_lo);
        d_pos  <= d_pos + (BUS - d_lo);
        d_lo   <= 32'h0;
      end
    end
    if (pad_en) begin
      run_left <= run_left - 21'h1;
      run_addr <= run_addr + 16'h1;
      if (run_ends) begin
        run <= run_next;
        run_left <= run_next == BETWEEN ? between : tail;
        run_addr <= run_next == BETWEEN ? run_addr + skip : tail_addr;
        if (run_next == BETWEEN) betweens <= betweens - 16'h1;
      end
    end
    if (last) active <= 1'b0;
    if (reset) begin
      active  <= 1'b0;
      waiting <= 1'b0;
      q_rows  <= 16'h0;
      d_rows  <= 16'h0;
      run     <= NONE;
    end
  end
endmodule

// A beat in terms of the chunks of a memory.
module vta_beat #(
    parameter LOG_BUS = ${LOG_BUS},
    parameter LOG_CHUNK = 3,  // log2 of the bytes that a chunk has in external memory
    parameter LOG_BEAT = 0    // log2 of the chunks of a beat
) (
    input  wire [            31:0] pos,
    input  wire [       LOG_BUS:0] lo,
    input  wire [       LOG_BUS:0] hi,
    output wire [            31:0] chunk,
    output wire [(1<<LOG_BEAT)-1:0] mask
);
  assign chunk = pos >> LOG_CHUNK;
  genvar i;
  generate
    for (i = 0; i < (1 << LOG_BEAT); i = i + 1) begin : place
      localparam [31:0] BYTE = i << LOG_CHUNK;
      assign mask[i] = BYTE >= {{(31 - LOG_BUS) {1'b0}}, lo} &&
                       BYTE < {{(31 - LOG_BUS) {1'b0}}, hi};
    end
  endgenerate
endmodule

// Fixed priority: fetch, micro-ops, inputs and weights, accumulators. Client numbers in this order.
module vta_read_port (
    input  wire [3:0] valid,
    input  wire [127:0] addr,   // of the four clients, client 0 lowest
    input  wire [63:0] beats,
    output wire [3:0] ready,
    output wire        ar_valid,
    input  wire        ar_ready,
    output wire [ 1:0] ar_client,
    output wire [31:0] ar_addr,
    output wire [15:0] ar_beats
);
  assign ar_valid = valid != 0;
  assign ar_client = valid[0] ? 2'd0 : valid[1] ? 2'd1 : valid[2] ? 2'd2 : 2'd3;
  assign ar_addr = addr[ar_client*32+:32];
  assign ar_beats = beats[ar_client*16+:16];
  assign ready = (valid & (~valid + 4'h1)) & {4{ar_ready}};
endmodule

// Reads instructions in batches; only when a whole batch is there, writes one per cycle to the
// queue of its module. An undefined instruction raises the error bit and goes nowhere.
module vta_fetch #(
    parameter FETCH_BATCH = ${FETCH_BATCH},
    parameter LOG_FETCH_BATCH = ${LOG_FETCH_BATCH},
    parameter LOG_BUS = ${LOG_BUS},
    parameter LOG_CHUNK = ${LOG_INSN_CHUNK},  // log2 bytes
    parameter LOG_BEAT = LOG_BUS - LOG_CHUNK
) (
    input  wire                clk,
    input  wire                reset,
    input  wire                launch,
    input  wire [        31:0] insn_count,
    input  wire [        31:0] insn_addr,
    output wire                ar_valid,
    input  wire                ar_ready,
    output wire [        31:0] ar_addr,
    output wire [        15:0] ar_beats,
    input  wire                r_valid,
    input  wire [(8<<LOG_BUS)-1:0] r_data,
    output wire [       127:0] insn,
    output wire [         3:0] push,      // to load, compute, alu, store
    input  wire [         3:0] full,
    output wire                dispatch,  // an instruction leaves
    output wire                error,
    output wire                busy
);
  localparam IDLE = 2'd0, READ = 2'd1, FIRST = 2'd2, DISPATCH = 2'd3;
  reg [1:0] state;
  reg [31:0] left;       // instructions behind this batch
  reg [31:0] address;    // in instructions
  reg [15:0] batch, next;
  wire read_last;

  wire start = launch || (dispatch && next == batch && left != 0);
  wire [31:0] start_left = launch ? insn_count : left;
  wire [31:0] start_address = launch ? insn_addr >> 4 : address;
  wire [31:0] start_batch = start_left < FETCH_BATCH ? start_left : FETCH_BATCH;

  wire beat_en;
  wire [31:0] beat_pos, beat_chunk;
  wire [LOG_BUS:0] beat_lo, beat_hi;
  wire [(1<<LOG_BEAT)-1:0] beat_mask;
  /* verilator lint_off PINCONNECTEMPTY */
  vta_dma #(.SETUP(1)) dma (
      .clk(clk), .reset(reset), .start(start && start_batch != 0),
      .log_element(4'd4), .sram(16'h0), .dram(start_address), .base(32'h0), .y_size(16'h1),
      .x_size(start_batch[15:0]), .x_stride(16'h0),
      .pad_top(4'h0), .pad_bottom(4'h0), .pad_left(4'h0), .pad_right(4'h0),
      .ar_valid(ar_valid), .ar_ready(ar_ready), .ar_addr(ar_addr), .ar_beats(ar_beats),
      .r_valid(r_valid), .beat_en(beat_en), .beat_pos(beat_pos), .beat_lo(beat_lo),
      .beat_hi(beat_hi), .pad_en(), .pad_addr(), .last(read_last));
  /* verilator lint_on PINCONNECTEMPTY */
  vta_beat #(.LOG_CHUNK(LOG_CHUNK), .LOG_BEAT(LOG_BEAT)) beat (
      .pos(beat_pos), .lo(beat_lo), .hi(beat_hi), .chunk(beat_chunk), .mask(beat_mask));

  wire [15:0] rd_index = state == FIRST ? 16'h0 : next;
  vta_sram #(
      .CHUNK(8 << LOG_CHUNK), .LOG_PER_ELEMENT(4 - LOG_CHUNK), .LOG_BEAT(LOG_BEAT),
      .LOG_BANKS(${LOG_INSN_BANKS}), .LOG_DEPTH(LOG_FETCH_BATCH)
  ) buffer (
      .clk(clk), .rd_en(state == FIRST || dispatch), .rd_addr(rd_index[LOG_FETCH_BATCH-1:0]),
      .rd_data(insn), .element_en(1'b0), .element_addr({LOG_FETCH_BATCH{1'b0}}),
      .element_data(128'h0), .beat_en(beat_en), .beat_chunk(beat_chunk), .beat_mask(beat_mask),
      .beat_data(r_data));

  wire to_load, to_compute, to_alu, to_store, undefined;
  vta_decode decode (
      .insn(insn), .to_load(to_load), .to_compute(to_compute), .to_alu(to_alu),
      .to_store(to_store), .undefined(undefined));
  wire [3:0] target = {to_store, to_alu, to_compute, to_load};
  assign dispatch = state == DISPATCH && (target & full) == 0;
  assign push = dispatch ? target : 4'h0;
  assign error = dispatch && undefined;
  assign busy = state != IDLE;

  always @(posedge clk) begin
    if (state == READ && read_last) state <= FIRST;
    if (state == FIRST) begin
      state <= DISPATCH;
      next  <= 16'h1;
    end
    if (dispatch) begin
      next <= next + 16'h1;
      if (next == batch) state <= IDLE;
    end
    if (start) begin
      state <= start_batch != 0 ? READ : IDLE;
      batch <= start_batch[15:0];
      left <= start_left - start_batch;
      address <= start_address + start_batch;
    end
    if (reset) state <= IDLE;
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
