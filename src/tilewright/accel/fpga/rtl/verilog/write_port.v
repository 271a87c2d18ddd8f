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
  reg [BEAT*9-1:0] beats[0:DEPTH-1];
  reg [7:0] bursts[0:BURSTS-1];
  reg [15:0] head, tail, count, in_flight, burst_head, burst_tail, burst_count;
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
  assign room = {16'd0, in_flight} + {16'd0, count} < DEPTH;
  assign valid = count != 16'd0 && burst_count != 16'd0;
  assign {strobe, data} = beats[head[LOG_DEPTH-1:0]];
  assign last = beat == bursts[burst_head[LOG_BURSTS-1:0]];

  always @(posedge clk) begin
    if (arrives) begin
      part <= ends_beat ? {(BEAT * 8) {1'b0}} : merged;
      part_strobe <= ends_beat ? {BEAT{1'b0}} : merged_strobe;
    end
    if (push) beats[tail[LOG_DEPTH-1:0]] <= {merged_strobe, merged};
    if (push) tail <= {16'd0, tail} == DEPTH - 1 ? 16'd0 : tail + 16'd1;
    if (pop) head <= {16'd0, head} == DEPTH - 1 ? 16'd0 : head + 16'd1;
    if (push && !pop) count <= count + 16'd1;
    if (pop && !push) count <= count - 16'd1;
    if (issued && !arrives) in_flight <= in_flight + 16'd1;
    if (arrives && !issued) in_flight <= in_flight - 16'd1;
    if (burst) bursts[burst_tail[LOG_BURSTS-1:0]] <= burst_length;
    if (burst) burst_tail <= {16'd0, burst_tail} == BURSTS - 1 ? 16'd0 : burst_tail + 16'd1;
    if (pop_burst) burst_head <= {16'd0, burst_head} == BURSTS - 1 ? 16'd0 : burst_head + 16'd1;
    if (burst && !pop_burst) burst_count <= burst_count + 16'd1;
    if (pop_burst && !burst) burst_count <= burst_count - 16'd1;
    if (pop) beat <= last ? 8'd0 : beat + 8'd1;
    if (reset) begin
      head <= 16'd0;
      tail <= 16'd0;
      count <= 16'd0;
      in_flight <= 16'd0;
      burst_head <= 16'd0;
      burst_tail <= 16'd0;
      burst_count <= 16'd0;
      beat <= 8'd0;
      part <= {(BEAT * 8) {1'b0}};
      part_strobe <= {BEAT{1'b0}};
    end
  end
endmodule
