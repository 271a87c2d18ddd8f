// Packs groups into beats, keeps beats until their burst was asked for, and marks the last ones.
module fpga_write_port #(
    parameter BEAT = 8,
    parameter LOG_BEAT = 3,
    parameter GROUP = 1,
    parameter DEPTH = 64,
    parameter BURSTS = 32
) (
    input  wire               clk,
    input  wire               reset,
    input  wire               issued,      // a group is on its way
    output wire               room,
    input  wire               arrives,
    input  wire [GROUP*8-1:0] group,
    input  wire [LOG_BEAT:0]  place,       // of the group in its beat, in bytes
    input  wire               ends_beat,
    input  wire               burst,       // one was asked for
    input  wire [        7:0] burst_length,
    output wire               valid,
    input  wire               ready,
    output wire [ BEAT*8-1:0] data,
    output wire [   BEAT-1:0] strobe,
    output wire               last
);
  localparam LOG_DEPTH = $clog2(DEPTH);
  localparam LOG_BURSTS = BURSTS > 1 ? $clog2(BURSTS) : 1;
  localparam COUNT = $clog2(DEPTH + 1);
  localparam BURST_COUNT = $clog2(BURSTS + 1);
  localparam [31:0] LAST_BEAT = DEPTH - 1;
  localparam [31:0] LAST_BURST = BURSTS - 1;
  localparam [31:0] ALL_BEATS = DEPTH;
  localparam [LOG_DEPTH-1:0] NEXT = 1;
  localparam [LOG_BURSTS-1:0] NEXT_BURST = 1;
  localparam [COUNT-1:0] ONE = 1;
  localparam [BURST_COUNT-1:0] ONE_BURST = 1;
  reg [BEAT*9-1:0] beats[0:DEPTH-1];
  reg [7:0] bursts[0:BURSTS-1];
  reg [LOG_DEPTH-1:0] head, tail;
  reg [COUNT-1:0] count, in_flight;
  reg [LOG_BURSTS-1:0] burst_head, burst_tail;
  reg [BURST_COUNT-1:0] burst_count;
  reg [7:0] beat;
  reg [BEAT*8-1:0] part;
  reg [BEAT-1:0] part_strobe;

  wire [(BEAT+GROUP)*8-1:0] wide_group = {{(BEAT * 8) {1'b0}}, group};
  wire [BEAT+GROUP-1:0] wide_ones = {{BEAT{1'b0}}, {GROUP{1'b1}}};
  wire [BEAT*8-1:0] merged = part | (wide_group[BEAT*8-1:0] << {place, 3'd0});
  wire [BEAT-1:0] merged_strobe = part_strobe | (wide_ones[BEAT-1:0] << place);
  wire push = arrives && ends_beat;
  wire pop = valid && ready;
  wire pop_burst = pop && last;
  assign room = {1'b0, in_flight} + {1'b0, count} < {1'b0, ALL_BEATS[COUNT-1:0]};
  assign valid = count != {COUNT{1'b0}} && burst_count != {BURST_COUNT{1'b0}};
  assign {strobe, data} = beats[head];
  assign last = beat == bursts[burst_head];

  always @(posedge clk) begin
    if (arrives) begin
      part <= ends_beat ? {(BEAT * 8) {1'b0}} : merged;
      part_strobe <= ends_beat ? {BEAT{1'b0}} : merged_strobe;
    end
    if (push) beats[tail] <= {merged_strobe, merged};
    if (push) tail <= tail == LAST_BEAT[LOG_DEPTH-1:0] ? {LOG_DEPTH{1'b0}} : tail + NEXT;
    if (pop) head <= head == LAST_BEAT[LOG_DEPTH-1:0] ? {LOG_DEPTH{1'b0}} : head + NEXT;
    if (push && !pop) count <= count + ONE;
    if (pop && !push) count <= count - ONE;
    if (issued && !arrives) in_flight <= in_flight + ONE;
    if (arrives && !issued) in_flight <= in_flight - ONE;
    if (burst) bursts[burst_tail] <= burst_length;
    if (burst)
      burst_tail <= burst_tail == LAST_BURST[LOG_BURSTS-1:0] ? {LOG_BURSTS{1'b0}} :
          burst_tail + NEXT_BURST;
    if (pop_burst)
      burst_head <= burst_head == LAST_BURST[LOG_BURSTS-1:0] ? {LOG_BURSTS{1'b0}} :
          burst_head + NEXT_BURST;
    if (burst && !pop_burst) burst_count <= burst_count + ONE_BURST;
    if (pop_burst && !burst) burst_count <= burst_count - ONE_BURST;
    if (pop) beat <= last ? 8'd0 : beat + 8'd1;
    if (reset) begin
      head <= {LOG_DEPTH{1'b0}};
      tail <= {LOG_DEPTH{1'b0}};
      count <= {COUNT{1'b0}};
      in_flight <= {COUNT{1'b0}};
      burst_head <= {LOG_BURSTS{1'b0}};
      burst_tail <= {LOG_BURSTS{1'b0}};
      burst_count <= {BURST_COUNT{1'b0}};
      beat <= 8'd0;
      part <= {(BEAT * 8) {1'b0}};
      part_strobe <= {BEAT{1'b0}};
    end
  end
endmodule
