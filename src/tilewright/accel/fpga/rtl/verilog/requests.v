// Asks for the bursts of a nest: in each cycle it looks at a row, or asks for a burst of it. Bursts
// have at most BURST beats and never cross a multiple of 4096 bytes.
module fpga_requests #(
    parameter LEVELS = 1,
    parameter BEAT = 8,
    parameter LOG_BEAT = 3,
    parameter BURST = 32,
    parameter OUTSTANDING = 32,
    parameter GROUP = 8,
    parameter CLIPPED = 0
) (
    input  wire                 clk,
    input  wire                 reset,
    input  wire                 here,
    input  wire [32*LEVELS-1:0] extents,  // of the rows
    input  wire [         31:0] groups,   // of a row
    input  wire [         31:0] address,  // of the row, in bytes
    input  wire                 row_moves,    // of the row: in all ranges
    input  wire [         31:0] clip_value,
    input  wire [         31:0] clip_extent,
    output wire                 start,
    output wire                 advance,
    output wire [   LEVELS-1:0] step,
    output wire                 done,
    output wire                 valid,
    input  wire                 ready,
    output wire [         31:0] burst_address,
    output wire [          7:0] burst_length,  // beats - 1
    input  wire                 finished,      // a burst
    output wire                 quiet
);
  localparam PER_PAGE = 4096 / BEAT;
  localparam [0:0] CLIP = CLIPPED[0];
  reg active, in_row, last_row;
  reg [31:0] beat, left;
  reg [8:0] under_way;
  wire last, row_end;
  assign start = here && !active;
  assign advance = active && !in_row;
  fpga_counters #(.LEVELS(LEVELS)) counters (
      .clk(clk), .reset(reset), .advance(advance), .extents(extents),
      .step(step), .row_end(row_end), .last(last));

  wire [31:0] room = clip_extent - clip_value;
  wire [31:0] first = CLIP && clip_value[31] ? -clip_value : 32'd0;
  wire [31:0] end_ = CLIP && $signed(room) < $signed(groups) ? room : groups;
  wire any = row_moves && $signed(first) < $signed(end_);
  wire [31:0] begin_byte = address + first * GROUP;
  wire [31:0] end_byte = address + end_ * GROUP;
  wire [31:0] begin_beat = begin_byte >> LOG_BEAT;
  wire [31:0] end_beat = (end_byte + (BEAT - 1)) >> LOG_BEAT;

  wire [31:0] in_page = PER_PAGE - (beat & (PER_PAGE - 1));
  wire [31:0] most = left < BURST ? left : BURST;
  wire [31:0] beats = most < in_page ? most : in_page;
  wire [31:0] beats_minus_1 = beats - 32'd1;
  wire accept = valid && ready;
  assign valid = active && in_row && {23'd0, under_way} < OUTSTANDING;
  assign burst_address = beat << LOG_BEAT;
  assign burst_length = beats_minus_1[7:0];
  assign done = active && (in_row ? accept && left == beats && last_row : !any && last);
  assign quiet = under_way == 9'd0;

  always @(posedge clk) begin
    if (start) active <= 1'b1;
    if (advance) begin
      beat <= begin_beat;
      left <= end_beat - begin_beat;
      in_row <= any;
      last_row <= last;
    end
    if (accept) begin
      beat <= beat + beats;
      left <= left - beats;
      if (left == beats) in_row <= 1'b0;
    end
    if (done) active <= 1'b0;
    if (accept && !finished) under_way <= under_way + 9'd1;
    if (finished && !accept) under_way <= under_way - 9'd1;
    if (reset) begin
      active <= 1'b0;
      in_row <= 1'b0;
      last_row <= 1'b0;
      under_way <= 9'd0;
    end
  end
endmodule
