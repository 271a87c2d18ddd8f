// What comes in leaves DELAY cycles later.
module fpga_delay #(
    parameter WIDTH = 1,
    parameter DELAY = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] in,
    output wire [WIDTH-1:0] out
);
  generate
    if (DELAY == 0) begin : none
      assign out = in;
    end else if (DELAY == 1) begin : one
      reg [WIDTH-1:0] held;
      assign out = held;
      always @(posedge clk) held <= in;
    end else begin : more
      reg [WIDTH*DELAY-1:0] moving;
      assign out = moving[WIDTH*(DELAY-1)+:WIDTH];
      always @(posedge clk) moving <= {moving[WIDTH*(DELAY-1)-1:0], in};
    end
  endgenerate
endmodule
