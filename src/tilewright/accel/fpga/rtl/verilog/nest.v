// Control of a nest: an iteration every II cycles at most, when `go` permits it; then DRAIN cycles
// in which the last ones end.
module fpga_nest #(
    parameter LEVELS = 1,
    parameter II = 1,
    parameter DRAIN = 1
) (
    input  wire                 clk,
    input  wire                 reset,
    input  wire                 here,     // the process stands at this nest
    input  wire                 go,
    input  wire [32*LEVELS-1:0] extents,
    output wire                 start,
    output wire                 wants,    // an iteration begins now if `go`
    output wire                 issue,
    output wire [   LEVELS-1:0] step,
    output wire                 row_end,
    output wire                 done
);
  reg active, draining;
  reg [15:0] pause, drain;
  wire last;
  assign start = here && !active && !draining;
  assign wants = active && pause == 16'd0;
  assign issue = wants && go;
  assign done  = draining && drain == 16'd1;
  fpga_counters #(.LEVELS(LEVELS)) counters (
      .clk(clk), .reset(reset), .advance(issue), .extents(extents),
      .step(step), .row_end(row_end), .last(last));
  always @(posedge clk) begin
    if (start) active <= 1'b1;
    if (pause != 16'd0) pause <= pause - 16'd1;
    if (issue && !last) pause <= II[15:0] - 16'd1;
    if (issue && last) begin
      active <= 1'b0;
      draining <= 1'b1;
      drain <= DRAIN[15:0];
    end
    if (draining) drain <= drain - 16'd1;
    if (done) draining <= 1'b0;
    if (reset) begin
      active <= 1'b0;
      draining <= 1'b0;
      pause <= 16'd0;
      drain <= 16'd0;
    end
  end
endmodule
