// Counters that run as one: the lowest bits are the innermost. `step` names the one that grows when
// they advance, none in the last iteration; after it they are all 0 again.
module fpga_counters #(
    parameter LEVELS = 1,
    parameter WIDTH = 32
) (
    input  wire                 clk,
    input  wire                 reset,
    input  wire                 advance,
    input  wire [WIDTH*LEVELS-1:0] extents,
    output wire [   LEVELS-1:0] step,
    output wire                 row_end,
    output wire                 last
);
  localparam [WIDTH-1:0] ONE = 1;
  wire [LEVELS-1:0] at_end;
  wire [LEVELS-1:0] below;  // all counters further in are at their end
  assign row_end = at_end[0];
  assign last = &at_end;
  genvar k;
  generate
    for (k = 0; k < LEVELS; k = k + 1) begin : level
      reg [WIDTH-1:0] count;
      assign at_end[k] = count + ONE == extents[WIDTH*k+:WIDTH];
      assign below[k] = &(at_end | ({LEVELS{1'b1}} << k));
      assign step[k] = below[k] & ~at_end[k];
      always @(posedge clk) begin
        if (advance && below[k]) count <= at_end[k] ? {WIDTH{1'b0}} : count + ONE;
        if (reset) count <= {WIDTH{1'b0}};
      end
    end
  endgenerate
endmodule
