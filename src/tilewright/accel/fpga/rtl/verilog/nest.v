// Control of a nest: an iteration every II cycles at most, when `go` permits it; then DRAIN cycles
// in which the last ones end.
module fpga_nest #(
    parameter LEVELS = 1,
    parameter WIDTH = 32,
    parameter II = 1,
    parameter DRAIN = 1
) (
    input  wire                    clk,
    input  wire                    reset,
    input  wire                    here,     // the process stands at this nest
    input  wire                    go,
    input  wire [WIDTH*LEVELS-1:0] extents,
    output wire                    start,
    output wire                    wants,    // an iteration begins now if `go`
    output wire                    issue,
    output wire [      LEVELS-1:0] step,
    output wire                    row_end,
    output wire                    done
);
  localparam PAUSE = II > 2 ? $clog2(II) : 1;
  localparam DRAINS = $clog2(DRAIN + 1);
  localparam [PAUSE-1:0] PAUSE_ONE = 1;
  localparam [DRAINS-1:0] DRAIN_ONE = 1;
  localparam [31:0] WAIT = II - 1;
  localparam [31:0] LAST = DRAIN;
  reg active, draining;
  reg [PAUSE-1:0] pause;
  reg [DRAINS-1:0] drain;
  wire last;
  assign start = here && !active && !draining;
  assign wants = active && (II == 1 || pause == {PAUSE{1'b0}});
  assign issue = wants && go;
  assign done  = draining && drain == DRAIN_ONE;
  fpga_counters #(.LEVELS(LEVELS), .WIDTH(WIDTH)) counters (
      .clk(clk), .reset(reset), .advance(issue), .extents(extents),
      .step(step), .row_end(row_end), .last(last));
  always @(posedge clk) begin
    if (start) active <= 1'b1;
    if (pause != {PAUSE{1'b0}}) pause <= pause - PAUSE_ONE;
    if (issue && !last) pause <= WAIT[PAUSE-1:0];
    if (issue && last) begin
      active <= 1'b0;
      draining <= 1'b1;
      drain <= LAST[DRAINS-1:0];
    end
    if (draining) drain <= drain - DRAIN_ONE;
    if (done) draining <= 1'b0;
    if (reset) begin
      active <= 1'b0;
      draining <= 1'b0;
      pause <= {PAUSE{1'b0}};
      drain <= {DRAINS{1'b0}};
    end
  end
endmodule
