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
`ifdef FPGA_KEEP_PRODUCTS
  // Yosys 0.23 takes two registers behind a product into an SB_MAC16 of an iCE40, which then has one
  // of them: results come a cycle early. Of a register whose name is kept it takes that one only.
  generate
    if (LATENCY == 0) begin : now
      assign out = product[WIDTH-1:0];
    end else begin : later
      (* keep *) reg [WIDTH-1:0] first;
      always @(posedge clk) first <= product[WIDTH-1:0];
      fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY - 1)) behind (.clk(clk), .in(first), .out(out));
    end
  endgenerate
`else
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) behind (.clk(clk), .in(product[WIDTH-1:0]), .out(out));
`endif
endmodule

// Two products with a common factor in one multiplier.
module fpga_mul_pair #(
    parameter A = 8,
    parameter B = 8,
    parameter WIDTH = 16,
    parameter LATENCY = 1
) (
    input  wire                    clk,
    input  wire signed [    A-1:0] a,
    input  wire signed [    A-1:0] b,
    input  wire signed [    B-1:0] common,
    output wire        [WIDTH-1:0] a_out,
    output wire        [WIDTH-1:0] b_out
);
  localparam P = A + B;  // bits of a product
  wire signed [A+P:0] both = {a[A-1], a, {P{1'b0}}} + {{P + 1{b[A-1]}}, b};
  wire signed [A+P+B:0] product = both * common;
  wire signed [P-1:0] low = product[P-1:0];
  // A negative product of b has borrowed 1 from that of a.
  wire signed [P-1:0] high = product[2*P-1:P] + {{P - 1{1'b0}}, low[P-1]};
  wire signed [WIDTH+P-1:0] wide_high = {{WIDTH{high[P-1]}}, high};
  wire signed [WIDTH+P-1:0] wide_low = {{WIDTH{low[P-1]}}, low};
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) of_a (.clk(clk), .in(wide_high[WIDTH-1:0]), .out(a_out));
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY)) of_b (.clk(clk), .in(wide_low[WIDTH-1:0]), .out(b_out));
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
