// An affine value of the loops around a nest and of its counters, kept by additions. `base` is its
// value in the first iteration: it follows the loops; `value` follows the counters.
module fpga_affine #(
    parameter LOOPS = 1,
    parameter LEVELS = 1,
    parameter WIDTH = 32
) (
    input  wire                 clk,
    input  wire                 reset,
    input  wire [   WIDTH-1:0] constant,
    input  wire [    LOOPS-1:0] loop_step,
    input  wire [    LOOPS-1:0] loop_exit,
    input  wire [WIDTH*LOOPS-1:0] loop_deltas,
    input  wire [WIDTH*LOOPS-1:0] loop_backs,
    input  wire                 start,
    input  wire                 advance,
    input  wire [   LEVELS-1:0] step,
    input  wire [WIDTH*LEVELS-1:0] deltas,
    output reg  [   WIDTH-1:0] value
);
  reg [WIDTH-1:0] base, loop_delta, delta;
  integer k;
  always @* begin
    loop_delta = {WIDTH{1'b0}};
    for (k = 0; k < LOOPS; k = k + 1)
      loop_delta = loop_delta | (loop_step[k] ? loop_deltas[WIDTH*k+:WIDTH] : {WIDTH{1'b0}}) |
          (loop_exit[k] ? loop_backs[WIDTH*k+:WIDTH] : {WIDTH{1'b0}});
    delta = {WIDTH{1'b0}};
    for (k = 0; k < LEVELS; k = k + 1)
      delta = delta | (step[k] ? deltas[WIDTH*k+:WIDTH] : {WIDTH{1'b0}});
  end
  always @(posedge clk) begin
    base <= reset ? constant : base + loop_delta;
    if (start) value <= base;
    else if (advance) value <= value + delta;
  end
endmodule
