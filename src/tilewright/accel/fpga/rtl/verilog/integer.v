// Operators on signed integers; what is wider than the result is cut off.
module fpga_mul #(
    parameter A = 8,
    parameter B = 8,
    parameter WIDTH = 16,
    parameter LATENCY = 1
) (
    input  wire                    clk,
    input  wire signed [    A-1:0] a,
    input  wire signed [    B-1:0] b,
    output wire        [WIDTH-1:0] out
);
  wire signed [WIDTH+A+B-1:0] product = a * b;
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) behind (.clk(clk), .in(product[WIDTH-1:0]), .out(out));
endmodule

module fpga_add #(
    parameter WIDTH = 32,
    parameter SUBTRACT = 0,
    parameter LATENCY = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] a,
    input  wire [WIDTH-1:0] b,
    output wire [WIDTH-1:0] out
);
  wire [WIDTH-1:0] sum = SUBTRACT != 0 ? a - b : a + b;
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) behind (.clk(clk), .in(sum), .out(out));
endmodule

module fpga_compare #(
    parameter WIDTH = 32,
    parameter KIND = 0,  // 0: equal, 1: less, 2: less or equal
    parameter LATENCY = 1
) (
    input  wire                    clk,
    input  wire signed [WIDTH-1:0] a,
    input  wire signed [WIDTH-1:0] b,
    output wire                    out
);
  wire result = KIND == 0 ? a == b : KIND == 1 ? a < b : a <= b;
  fpga_delay #(.WIDTH(1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule

module fpga_shift #(
    parameter WIDTH = 32,
    parameter RIGHT = 0,
    parameter LATENCY = 1
) (
    input  wire                    clk,
    input  wire signed [WIDTH-1:0] a,
    input  wire        [     31:0] b,
    output wire        [WIDTH-1:0] out
);
  wire [WIDTH-1:0] left = a << b;
  wire signed [WIDTH-1:0] right = a >>> b;
  wire [WIDTH-1:0] moved = RIGHT != 0 ? right : left;
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) behind (.clk(clk), .in(moved), .out(out));
endmodule

module fpga_select #(
    parameter WIDTH = 32,
    parameter LATENCY = 0
) (
    input  wire             clk,
    input  wire             flag,
    input  wire [WIDTH-1:0] a,
    input  wire [WIDTH-1:0] b,
    output wire [WIDTH-1:0] out
);
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) behind (.clk(clk), .in(flag ? a : b), .out(out));
endmodule
