#include "tilewright/accel/vta/rtl/bench_text.h"

namespace tilewright::vta::rtl {

const char* const kQueueBench = R"v(
module bench;
  reg clk, reset, push, pop;
  reg [15:0] in;
  wire full, valid;
  wire [15:0] out;
  integer cycle, errors;
  vta_fifo #(.WIDTH(16), .DEPTH(5), .LOG_DEPTH(3)) dut (
      .clk(clk), .reset(reset), .push(push), .in(in), .full(full), .pop(pop), .valid(valid),
      .out(out));
  always #5 clk = ~clk;

  task step(input new_push, input [15:0] new_in, input new_pop, input want_valid,
            input [15:0] want_out, input want_full);
    begin
      push = new_push;
      in = new_in;
      pop = new_pop;
      #1;
      if (valid !== want_valid || full !== want_full || (want_valid && out !== want_out)) begin
        if (errors == 0)
          $display("FAIL cycle %0d: valid %b want %b, full %b want %b, out %h want %h", cycle,
                   valid, want_valid, full, want_full, out, want_out);
        errors = errors + 1;
      end
      cycle = cycle + 1;
      @(negedge clk);
    end
  endtask

  initial begin
    {clk, push, pop} = 0;
    reset = 1;
    cycle = 0;
    errors = 0;
    repeat (2) @(negedge clk);
    reset = 0;
    STEPS;
    if (errors == 0) $display("PASS");
    $finish;
  end
endmodule
)v";

const char* const kTokenBench = R"v(
module bench;
  reg clk, reset, push, pop;
  wire ready, overflow;
  integer cycle, errors;
  vta_tokens dut (
      .clk(clk), .reset(reset), .push(push), .pop(pop), .ready(ready), .overflow(overflow));
  always #5 clk = ~clk;

  task step(input new_push, input new_pop, input want_ready);
    begin
      push = new_push;
      pop = new_pop;
      #1;
      if (ready !== want_ready || overflow !== 1'b0) begin
        if (errors == 0) $display("FAIL cycle %0d: ready %b want %b", cycle, ready, want_ready);
        errors = errors + 1;
      end
      cycle = cycle + 1;
      @(negedge clk);
    end
  endtask

  initial begin
    {clk, push, pop} = 0;
    reset = 1;
    cycle = 0;
    errors = 0;
    repeat (2) @(negedge clk);
    reset = 0;
    STEPS;
    // The counter saturates at 255 and says so.
    push = 0;
    pop = 1;
    while (ready) @(negedge clk);
    pop = 0;
    push = 1;
    repeat (255) @(negedge clk);
    push = 0;
    repeat (${TOKEN_LATENCY}) @(negedge clk);
    push = 1;
    repeat (${TOKEN_LATENCY} - 1) @(negedge clk);
    #1;
    if (overflow !== 1'b1) begin
      $display("FAIL: token 256 is not reported");
      errors = errors + 1;
    end
    if (errors == 0) $display("PASS");
    $finish;
  end
endmodule
)v";

const char* const kGemmBench = R"v(
module bench;
  localparam ACC_WIDTH = ${ACC_BITS} << (${LOG_BATCH} + ${LOG_BLOCK_OUT});
  localparam INP_WIDTH = ${INP_BITS} << (${LOG_BATCH} + ${LOG_BLOCK_IN});
  localparam WGT_WIDTH = ${WGT_BITS} << (${LOG_BLOCK_OUT} + ${LOG_BLOCK_IN});
  reg clk, reset, start;
  reg [127:0] insn;
  wire last, uop_en, inp_en, wgt_en, acc_en, wr_en;
  wire [${LOG_UOP_DEPTH}-1:0] uop_addr;
  wire [${LOG_INP_DEPTH}-1:0] inp_addr;
  wire [${LOG_WGT_DEPTH}-1:0] wgt_addr;
  wire [${LOG_ACC_DEPTH}-1:0] acc_addr, wr_addr;
  wire [ACC_WIDTH-1:0] wr_data;
  reg [31:0] uops[0:(1<<${LOG_UOP_DEPTH})-1], uop_q;
  reg [INP_WIDTH-1:0] inp[0:(1<<${LOG_INP_DEPTH})-1], inp_q;
  reg [WGT_WIDTH-1:0] wgt[0:(1<<${LOG_WGT_DEPTH})-1], wgt_q;
  reg [ACC_WIDTH-1:0] acc[0:(1<<${LOG_ACC_DEPTH})-1], acc_q;
  integer errors, cycles;

  vta_gemm dut (
      .clk(clk), .reset(reset), .start(start), .insn(insn), .last(last), .uop_rd_en(uop_en),
      .uop_rd_addr(uop_addr), .uop_rd_data(uop_q), .inp_rd_en(inp_en), .inp_rd_addr(inp_addr),
      .inp_rd_data(inp_q), .wgt_rd_en(wgt_en), .wgt_rd_addr(wgt_addr), .wgt_rd_data(wgt_q),
      .acc_rd_en(acc_en), .acc_rd_addr(acc_addr), .acc_rd_data(acc_q), .wr_en(wr_en),
      .wr_addr(wr_addr), .wr_data(wr_data));
  always #5 clk = ~clk;
  always @(posedge clk) begin
    if (uop_en) uop_q <= uops[uop_addr];
    if (inp_en) inp_q <= inp[inp_addr];
    if (wgt_en) wgt_q <= wgt[wgt_addr];
    if (acc_en) acc_q <= acc[acc_addr];
    if (wr_en) acc[wr_addr] <= wr_data;
  end

  task run(input [127:0] word, input integer want);
    begin
      insn = word;
      start = 1;
      @(negedge clk);
      start = 0;
      cycles = 1;
      while (!last) begin
        @(negedge clk);
        cycles = cycles + 1;
      end
      @(negedge clk);
      if (cycles != want) begin
        if (errors == 0) $display("FAIL insn %h: %0d cycles, want %0d", word, cycles, want);
        errors = errors + 1;
      end
    end
  endtask
  task check(input integer index, input [ACC_WIDTH-1:0] want);
    if (acc[index] !== want) begin
      if (errors == 0)
        $display("FAIL insn %h: acc[%0d] %h, want %h", insn, index, acc[index], want);
      errors = errors + 1;
    end
  endtask

  initial begin
    {clk, start} = 0;
    reset = 1;
    errors = 0;
    repeat (2) @(negedge clk);
    reset = 0;
    STEPS;
    if (errors == 0) $display("PASS");
    $finish;
  end
endmodule
)v";

const char* const kAluBench = R"v(
module bench;
  localparam ACC_WIDTH = ${ACC_BITS} << (${LOG_BATCH} + ${LOG_BLOCK_OUT});
  reg clk, reset, start;
  reg [127:0] insn;
  wire last, uop_en, acc_en, src_en, wr_en;
  wire [${LOG_UOP_DEPTH}-1:0] uop_addr;
  wire [${LOG_ACC_DEPTH}-1:0] acc_addr, src_addr, wr_addr;
  wire [ACC_WIDTH-1:0] wr_data;
  reg [31:0] uops[0:(1<<${LOG_UOP_DEPTH})-1], uop_q;
  reg [ACC_WIDTH-1:0] acc[0:(1<<${LOG_ACC_DEPTH})-1], acc_q, src_q;
  integer errors, cycles;

  vta_alu dut (
      .clk(clk), .reset(reset), .start(start), .insn(insn), .last(last), .uop_rd_en(uop_en),
      .uop_rd_addr(uop_addr), .uop_rd_data(uop_q), .acc_rd_en(acc_en), .acc_rd_addr(acc_addr),
      .acc_rd_data(acc_q), .src_rd_en(src_en), .src_rd_addr(src_addr), .src_rd_data(src_q),
      .wr_en(wr_en), .wr_addr(wr_addr), .wr_data(wr_data));
  always #5 clk = ~clk;
  always @(posedge clk) begin
    if (uop_en) uop_q <= uops[uop_addr];
    if (acc_en) acc_q <= acc[acc_addr];
    if (src_en) src_q <= acc[src_addr];
    if (wr_en) acc[wr_addr] <= wr_data;
  end

  task run(input [127:0] word, input integer want);
    begin
      insn = word;
      start = 1;
      @(negedge clk);
      start = 0;
      cycles = 1;
      while (!last) begin
        @(negedge clk);
        cycles = cycles + 1;
      end
      @(negedge clk);
      if (cycles != want) begin
        if (errors == 0) $display("FAIL insn %h: %0d cycles, want %0d", word, cycles, want);
        errors = errors + 1;
      end
    end
  endtask
  task check(input integer index, input [ACC_WIDTH-1:0] want);
    if (acc[index] !== want) begin
      if (errors == 0)
        $display("FAIL insn %h: acc[%0d] %h, want %h", insn, index, acc[index], want);
      errors = errors + 1;
    end
  endtask

  initial begin
    {clk, start} = 0;
    reset = 1;
    errors = 0;
    repeat (2) @(negedge clk);
    reset = 0;
    STEPS;
    if (errors == 0) $display("PASS");
    $finish;
  end
endmodule
)v";

const char* const kDmaBench = R"v(
// The load module, its input memory, and memory with one waiting burst as in docs/vta-timing.md 3.
module bench;
  localparam LOG_BUS = ${LOG_BUS}, LOG_INP = ${LOG_INP_DEPTH};
  localparam INP_WIDTH = ${INP_BITS} << (${LOG_BATCH} + ${LOG_BLOCK_IN});
  reg clk, reset, valid, clear, look;
  reg [127:0] insn;
  reg [(8<<LOG_BUS)-1:0] dram[0:${BENCH_BEATS}-1];
  wire begins, done, ar_valid, beat_en, zero_en;
  wire [31:0] ar_addr, pos, chunk;
  wire [15:0] ar_beats;
  wire [LOG_BUS:0] lo, hi;
  wire [LOG_INP-1:0] zero_addr;
  wire [(1<<${INP_LOG_BEAT})-1:0] mask;
  wire [INP_WIDTH-1:0] q;
  reg [LOG_INP-1:0] addr;
  integer errors, cycles, i;

  // Memory.
  integer now, waiting_first, waiting_beats, waiting_addr, first, beats, at, free;
  reg waiting;
  wire ar_ready = !waiting || now >= waiting_first;
  wire moving = now >= first && now < first + beats;
  wire promoted = waiting && now >= waiting_first;
  wire r_valid = promoted || moving;
  wire [31:0] word = promoted ? waiting_addr : at + (now - first);
  always @(posedge clk) begin
    now <= now + 1;
    if (promoted) begin
      first <= waiting_first;
      beats <= waiting_beats;
      at <= waiting_addr;
      waiting <= 0;
    end
    if (ar_valid && ar_ready) begin
      waiting <= 1;
      waiting_addr <= ar_addr >> LOG_BUS;
      waiting_beats <= ar_beats;
      waiting_first <= now + ${READ_LATENCY} > free + ${BURST_GAP} ? now + ${READ_LATENCY}
                                                                   : free + ${BURST_GAP};
      free <= ar_beats + (now + ${READ_LATENCY} > free + ${BURST_GAP} ? now + ${READ_LATENCY}
                                                                      : free + ${BURST_GAP});
    end
  end

  vta_load dut (
      .clk(clk), .reset(reset), .valid(valid), .insn(insn), .begins(begins), .done(done), .busy(),
      .next_ready(1'b0), .take_next(), .give_next(), .inp_base(32'h0), .wgt_base(32'h0),
      .ar_valid(ar_valid), .ar_ready(ar_ready), .ar_addr(ar_addr), .ar_beats(ar_beats),
      .r_valid(r_valid), .inp_beat_en(beat_en), .wgt_beat_en(), .beat_pos(pos), .beat_lo(lo),
      .beat_hi(hi), .inp_zero_en(zero_en), .inp_zero_addr(zero_addr), .wgt_zero_en(),
      .wgt_zero_addr());
  vta_beat #(.LOG_CHUNK(${INP_LOG_CHUNK}), .LOG_BEAT(${INP_LOG_BEAT})) beat (
      .pos(pos), .lo(lo), .hi(hi), .chunk(chunk), .mask(mask));
  vta_sram #(
      .CHUNK(8 << ${INP_LOG_CHUNK}), .LOG_PER_ELEMENT(${INP_LOG_PER}), .LOG_BEAT(${INP_LOG_BEAT}),
      .LOG_BANKS(${INP_LOG_BANKS}), .LOG_DEPTH(LOG_INP)
  ) memory (
      .clk(clk), .rd_en(look), .rd_addr(addr), .rd_data(q), .element_en(zero_en || clear),
      .element_addr(clear ? addr : zero_addr), .element_data({INP_WIDTH{1'b0}}),
      .beat_en(beat_en), .beat_chunk(chunk), .beat_mask(mask), .beat_data(dram[word]));
  always #5 clk = ~clk;

  task zero_all;
    begin
      clear = 1;
      for (i = 0; i < (1 << LOG_INP); i = i + 1) begin
        addr = i;
        @(negedge clk);
      end
      clear = 0;
    end
  endtask
  task run(input [127:0] load, input integer want);
    begin
      insn = load;
      valid = 1;
      cycles = 0;
      while (!done) begin
        @(negedge clk);
        valid = 0;
        cycles = cycles + 1;
      end
      @(negedge clk);
      if (cycles != want) begin
        if (errors == 0) $display("FAIL insn %h: %0d cycles, want %0d", load, cycles, want);
        errors = errors + 1;
      end
    end
  endtask
  task check(input integer index, input [INP_WIDTH-1:0] want);
    begin
      look = 1;
      addr = index;
      @(negedge clk);
      look = 0;
      if (q !== want) begin
        if (errors == 0) $display("FAIL insn %h: inp[%0d] %h, want %h", insn, index, q, want);
        errors = errors + 1;
      end
    end
  endtask

  initial begin
    {clk, valid, clear, look, waiting} = 0;
    {now, first, beats, at, free, waiting_first, waiting_beats, waiting_addr} = 0;
    free = -1000;
    reset = 1;
    errors = 0;
    repeat (2) @(negedge clk);
    reset = 0;
    STEPS;
    if (errors == 0) $display("PASS");
    $finish;
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
