// Asks for the bursts of a nest: in each cycle it looks at a row, or asks for a burst of it. Bursts
// have at most BURST beats and never cross a multiple of 4096 bytes.
module fpga_requests #(
    parameter LEVELS = 1,
    parameter WIDTH = 32,    // of extents
    parameter ADDRESS = 32,  // bits of addresses, ends of rows included
    parameter CLIP = 32,     // bits of groups and of what clips them, signed
    parameter BEATS = 31,    // bits of the beats of a row
    parameter BEAT = 8,
    parameter LOG_BEAT = 3,
    parameter BURST = 32,
    parameter OUTSTANDING = 32,
    parameter GROUP = 8,
    parameter CLIPPED = 0
) (
    input  wire                    clk,
    input  wire                    reset,
    input  wire                    here,
    input  wire [WIDTH*LEVELS-1:0] extents,  // of the rows
    input  wire [        CLIP-1:0] groups,   // of a row
    input  wire [     ADDRESS-1:0] address,  // of the row, in bytes
    input  wire                    row_moves,    // of the row: in all ranges
    input  wire [        CLIP-1:0] clip_value,
    input  wire [        CLIP-1:0] clip_extent,
    output wire                    start,
    output wire                    advance,
    output wire [      LEVELS-1:0] step,
    output wire                    done,
    output wire                    valid,
    input  wire                    ready,
    output wire [            31:0] burst_address,
    output wire [             7:0] burst_length,  // beats - 1
    input  wire                    finished,      // a burst
    output wire                    quiet
);
  localparam PER_PAGE = 4096 / BEAT;
  localparam PAGE = $clog2(PER_PAGE);
  localparam LOG_GROUP = $clog2(GROUP);
  localparam [0:0] CLIPS = CLIPPED[0];
  // Widths in which differences to a page and to the longest burst are right.
  localparam W = BEATS > PAGE + 1 ? BEATS : PAGE + 1;
  localparam U = $clog2(OUTSTANDING + 1);
  localparam SHORT = BEATS < 31 && (1 << BEATS) - 1 <= BURST;      // a row is no longer than a burst
  localparam ONE_PAGE = ADDRESS < 32 && (1 << ADDRESS) <= 4096;  // all are in the first page
  localparam [31:0] LONGEST = BURST;
  localparam [31:0] MOST_UNDER_WAY = OUTSTANDING;
  localparam [U-1:0] ONE = 1;
  localparam [W-1:0] ONE_BEAT = 1;
  reg active, in_row, last_row;
  reg [ADDRESS-1:0] beat;
  reg [BEATS-1:0] left;
  reg [U-1:0] under_way;
  wire last, row_end;
  assign start = here && !active;
  assign advance = active && !in_row;
  fpga_counters #(.LEVELS(LEVELS), .WIDTH(WIDTH)) counters (
      .clk(clk), .reset(reset), .advance(advance), .extents(extents),
      .step(step), .row_end(row_end), .last(last));

  wire [CLIP-1:0] room = clip_extent - clip_value;
  wire [CLIP-1:0] first = CLIPS && clip_value[CLIP-1] ? -clip_value : {CLIP{1'b0}};
  wire [CLIP-1:0] end_ = CLIPS && $signed(room) < $signed(groups) ? room : groups;
  wire any = row_moves && $signed(first) < $signed(end_);
  wire [ADDRESS+CLIP-1:0] first_byte = {{ADDRESS{1'b0}}, first} << LOG_GROUP;
  wire [ADDRESS+CLIP-1:0] behind_byte = {{ADDRESS{1'b0}}, end_} << LOG_GROUP;
  wire [ADDRESS-1:0] begin_byte = address + first_byte[ADDRESS-1:0];
  wire [ADDRESS-1:0] end_byte = address + behind_byte[ADDRESS-1:0];
  wire [ADDRESS-1:0] begin_beat = begin_byte >> LOG_BEAT;
  localparam [ADDRESS-1:0] UP = BEAT - 1;
  wire [ADDRESS-1:0] up_byte = end_byte + UP;
  wire [ADDRESS-1:0] end_beat = up_byte >> LOG_BEAT;
  wire [ADDRESS+BEATS-1:0] row_beats = {{BEATS{1'b0}}, end_beat - begin_beat};

  wire [W+ADDRESS-1:0] wide_beat = {{W{1'b0}}, beat};
  wire [W+BEATS-1:0] wide_left = {{W{1'b0}}, left};
  localparam [31:0] A_PAGE = PER_PAGE;
  wire [W-1:0] in_page = A_PAGE[W-1:0] - (wide_beat[W-1:0] & (A_PAGE[W-1:0] - ONE_BEAT));
  wire [W-1:0] most = SHORT || {1'b0, left} < LONGEST[BEATS:0] ? wide_left[W-1:0] : LONGEST[W-1:0];
  wire [W-1:0] beats = ONE_PAGE || most < in_page ? most : in_page;
  wire [W-1:0] beats_minus_1 = beats - ONE_BEAT;
  wire whole = beats == wide_left[W-1:0];
  wire accept = valid && ready;
  wire [W+ADDRESS-1:0] wide_beats = {{ADDRESS{1'b0}}, beats};
  wire [W+31:0] long_length = {32'd0, beats_minus_1};
  wire [ADDRESS+31:0] long_beat = {32'd0, beat};
  assign valid = active && in_row && under_way < MOST_UNDER_WAY[U-1:0];
  assign burst_address = long_beat[31:0] << LOG_BEAT;
  assign burst_length = long_length[7:0];
  assign done = active && (in_row ? accept && whole && last_row : !any && last);
  assign quiet = under_way == {U{1'b0}};

  always @(posedge clk) begin
    if (start) active <= 1'b1;
    if (advance) begin
      beat <= begin_beat;
      left <= row_beats[BEATS-1:0];
      in_row <= any;
      last_row <= last;
    end
    if (accept) begin
      beat <= beat + wide_beats[ADDRESS-1:0];
      left <= left - beats[BEATS-1:0];
      if (whole) in_row <= 1'b0;
    end
    if (done) active <= 1'b0;
    if (accept && !finished) under_way <= under_way + ONE;
    if (finished && !accept) under_way <= under_way - ONE;
    if (reset) begin
      active <= 1'b0;
      in_row <= 1'b0;
      last_row <= 1'b0;
      under_way <= {U{1'b0}};
    end
  end
endmodule
