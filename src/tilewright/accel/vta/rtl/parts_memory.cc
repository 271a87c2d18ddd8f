// Verilog text of the storage modules: queues, token counters, on-chip memories.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kMemoryModules = R"v(
// First-in first-out queue in block RAM. A word pushed in one cycle is at the head in the next.
module vta_fifo #(
    parameter WIDTH = 128,
    parameter DEPTH = 512,
    parameter LOG_DEPTH = 9
) (
    input  wire             clk,
    input  wire             reset,
    input  wire             push,
    input  wire [WIDTH-1:0] in,
    output wire             full,
    input  wire             pop,
    output wire             valid,
    output wire [WIDTH-1:0] out
);
  reg [WIDTH-1:0] mem[0:(1<<LOG_DEPTH)-1];
  reg [LOG_DEPTH-1:0] head, tail;
  reg [LOG_DEPTH:0] count;
  reg [WIDTH-1:0] read, written;
  reg fresh;  // the head was written in the last cycle, too late for the read

  wire [LOG_DEPTH-1:0] one = 1;
  wire [LOG_DEPTH-1:0] next_head = pop ? head + one : head;

  assign full = count == DEPTH[LOG_DEPTH:0];
  assign valid = count != 0;
  assign out = fresh ? written : read;

  always @(posedge clk) begin
    if (push) mem[tail] <= in;
    read <= mem[next_head];
    written <= in;
    fresh <= push && tail == next_head;
    head <= next_head;
    if (push) tail <= tail + one;
    if (push && !pop) count <= count + 1'b1;
    if (pop && !push) count <= count - 1'b1;
    if (reset) begin
      head  <= 0;
      tail  <= 0;
      count <= 0;
      fresh <= 0;
    end
  end
endmodule

// Dependence queue: tokens carry no data, so it is a counter. A token given in cycle t can be taken
// in cycle t + TOKEN_LATENCY.
module vta_tokens #(
    parameter TOKEN_LATENCY = ${TOKEN_LATENCY}
) (
    input  wire clk,
    input  wire reset,
    input  wire push,
    input  wire pop,
    output wire ready,     // there is a token
    output wire overflow   // a token was lost
);
  reg [7:0] count;
  reg [TOKEN_LATENCY:0] delay;  // tokens on their way; bit 0 is not used
  wire [TOKEN_LATENCY:0] moving = {delay[TOKEN_LATENCY-1:0], push};
  wire arrives = moving[TOKEN_LATENCY-1];

  assign ready = count != 0;
  assign overflow = arrives && !pop && count == 8'hff;

  always @(posedge clk) begin
    delay <= moving;
    if (arrives && !pop && !overflow) count <= count + 8'h1;
    if (pop && !arrives) count <= count - 8'h1;
    if (reset) begin
      count <= 0;
      delay <= 0;
    end
  end
endmodule

// On-chip memory. An element is 2^LOG_PER_ELEMENT chunks; chunk c of the memory is in bank
// c mod BANKS. A chunk is the smaller of an element and a beat of the bus.
// One write a cycle: a whole element, else up to 2^LOG_BEAT chunks from chunk beat_chunk on, those
// whose bit is set in beat_mask. A reader gives the address one cycle ahead and sees what was
// there before a write of the same cycle.
module vta_sram #(
    parameter CHUNK = 64,           // bits
    parameter LOG_PER_ELEMENT = 1,  // log2 of the chunks of an element
    parameter LOG_BEAT = 0,         // log2 of the chunks a beat writes
    parameter LOG_BANKS = 1,        // at least both of them
    parameter LOG_DEPTH = 11        // elements
) (
    input  wire                                clk,
    input  wire                                rd_en,
    input  wire [               LOG_DEPTH-1:0] rd_addr,
    output wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] rd_data,
    input  wire                                element_en,
    input  wire [               LOG_DEPTH-1:0] element_addr,
    input  wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] element_data,
    input  wire                                beat_en,
    input  wire [                        31:0] beat_chunk,
    input  wire [           (1<<LOG_BEAT)-1:0] beat_mask,
    input  wire [       (CHUNK<<LOG_BEAT)-1:0] beat_data
);
  localparam BANKS = 1 << LOG_BANKS;
  // At least two rows, even if that is more than the depth.
  localparam LOG_NEEDED = LOG_DEPTH + LOG_PER_ELEMENT - LOG_BANKS;
  localparam LOG_ROWS = LOG_NEEDED < 1 ? 1 : LOG_NEEDED;
  localparam PER_ELEMENT = 1 << LOG_PER_ELEMENT;

  wire [31:0] rd_chunk = {{(32 - LOG_DEPTH) {1'b0}}, rd_addr} << LOG_PER_ELEMENT;
  wire [31:0] element_chunk = {{(32 - LOG_DEPTH) {1'b0}}, element_addr} << LOG_PER_ELEMENT;
  wire [31:0] first = element_en ? element_chunk : beat_chunk;
  wire        write = element_en || beat_en;
  wire [CHUNK*BANKS-1:0] q;  // what the banks read
  reg  [31:0] rd_bank;       // where the element starts in it

  always @(posedge clk) if (rd_en) rd_bank <= rd_chunk & (BANKS - 1);

  genvar i;
  generate
    for (i = 0; i < BANKS; i = i + 1) begin : bank
      reg [CHUNK-1:0] mem[0:(1<<LOG_ROWS)-1];
      reg [CHUNK-1:0] read;
      wire [31:0] place = (i - first) & (BANKS - 1);  // of this bank in what is written
      wire [31:0] row = (first + place) >> LOG_BANKS;
      wire [31:0] rd_row = rd_chunk >> LOG_BANKS;
      always @(posedge clk) begin
        if (write) begin
          if (element_en) begin
            if (place < PER_ELEMENT)
              mem[row[LOG_ROWS-1:0]] <= element_data[(i%PER_ELEMENT)*CHUNK+:CHUNK];
          end else if (place < (1 << LOG_BEAT) && beat_mask[place&((1<<LOG_BEAT)-1)])
            mem[row[LOG_ROWS-1:0]] <= beat_data[(place&((1<<LOG_BEAT)-1))*CHUNK+:CHUNK];
        end
        if (rd_en) read <= mem[rd_row[LOG_ROWS-1:0]];
      end
      assign q[i*CHUNK+:CHUNK] = read;
    end
    if (LOG_BANKS == LOG_PER_ELEMENT) assign rd_data = q;
    else assign rd_data = q[rd_bank*CHUNK+:(CHUNK<<LOG_PER_ELEMENT)];
  endgenerate
endmodule
)v";

const char* const kTwoWriters = R"v(
// The same memory with a second writer of whole elements: one memory per writer, and for each
// element whose write was the last.
module vta_sram_two_writers #(
    parameter CHUNK = 64,
    parameter LOG_PER_ELEMENT = 1,
    parameter LOG_BEAT = 0,
    parameter LOG_BANKS = 1,
    parameter LOG_DEPTH = 11
) (
    input  wire                                clk,
    input  wire                                rd_en,
    input  wire [               LOG_DEPTH-1:0] rd_addr,
    output wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] rd_data,
    input  wire                                second_en,
    input  wire [               LOG_DEPTH-1:0] second_addr,
    input  wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] second_data,
    input  wire                                element_en,
    input  wire [               LOG_DEPTH-1:0] element_addr,
    input  wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] element_data,
    input  wire                                beat_en,
    input  wire [                        31:0] beat_chunk,
    input  wire [           (1<<LOG_BEAT)-1:0] beat_mask,
    input  wire [       (CHUNK<<LOG_BEAT)-1:0] beat_data
);
  wire [(CHUNK<<LOG_PER_ELEMENT)-1:0] first_read, second_read;
  reg [(1<<LOG_DEPTH)-1:0] second_was_last;
  reg second_chosen;
  assign rd_data = second_chosen ? second_read : first_read;

  vta_sram #(
      .CHUNK(CHUNK), .LOG_PER_ELEMENT(LOG_PER_ELEMENT), .LOG_BEAT(LOG_BEAT),
      .LOG_BANKS(LOG_BANKS), .LOG_DEPTH(LOG_DEPTH)
  ) own (
      .clk(clk), .rd_en(rd_en), .rd_addr(rd_addr), .rd_data(first_read),
      .element_en(element_en), .element_addr(element_addr), .element_data(element_data),
      .beat_en(beat_en), .beat_chunk(beat_chunk), .beat_mask(beat_mask), .beat_data(beat_data));
  vta_sram #(
      .CHUNK(CHUNK), .LOG_PER_ELEMENT(LOG_PER_ELEMENT), .LOG_BEAT(0),
      .LOG_BANKS(LOG_PER_ELEMENT), .LOG_DEPTH(LOG_DEPTH)
  ) other (
      .clk(clk), .rd_en(rd_en), .rd_addr(rd_addr), .rd_data(second_read),
      .element_en(second_en), .element_addr(second_addr), .element_data(second_data),
      .beat_en(1'b0), .beat_chunk(32'h0), .beat_mask(1'b0), .beat_data({CHUNK{1'b0}}));

  integer i;
  /* verilator lint_off BLKSEQ */  // loaded is local to the loop
  reg [31:0] loaded;
  always @(posedge clk) begin
    if (rd_en) second_chosen <= second_was_last[rd_addr];
    if (element_en) second_was_last[element_addr] <= 1'b0;
    if (beat_en)
      for (i = 0; i < (1 << LOG_BEAT); i = i + 1) begin
        loaded = (beat_chunk + i) >> LOG_PER_ELEMENT;
        if (beat_mask[i]) second_was_last[loaded[LOG_DEPTH-1:0]] <= 1'b0;
      end
    if (second_en) second_was_last[second_addr] <= 1'b1;
  end
  /* verilator lint_on BLKSEQ */
endmodule
)v";

}  // namespace tilewright::vta::rtl
