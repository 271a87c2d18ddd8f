// Counters that run as one: the lowest bits are the innermost. `step` names the one that grows when
// they advance, none in the last iteration; after it they are all 0 again.
module fpga_counters #(
    parameter LEVELS = 1
) (
    input  wire                 clk,
    input  wire                 reset,
    input  wire                 advance,
    input  wire [32*LEVELS-1:0] extents,
    output wire [   LEVELS-1:0] step,
    output wire                 row_end,
    output wire                 last
);
  wire [LEVELS-1:0] at_end;
  wire [LEVELS-1:0] below;  // all counters further in are at their end
  assign row_end = at_end[0];
  assign last = &at_end;
  genvar k;
  generate
    for (k = 0; k < LEVELS; k = k + 1) begin : level
      reg [31:0] count;
      assign at_end[k] = count + 32'd1 == extents[32*k+:32];
      assign below[k] = &(at_end | ({LEVELS{1'b1}} << k));
      assign step[k] = below[k] & ~at_end[k];
      always @(posedge clk) begin
        if (advance && below[k]) count <= at_end[k] ? 32'd0 : count + 32'd1;
        if (reset) count <= 32'd0;
      end
    end
  endgenerate
endmodule
