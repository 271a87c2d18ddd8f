// Floating-point operators for any width of exponent and fraction: rounding to nearest even,
// denormals kept, one quiet NaN. The logic is one step with LATENCY registers behind it, for a tool
// to spread.

// The float nearest to (-1)^sign * digits * 2^n, with n so that a 1 in the highest digit would have
// the biased exponent `exponent`.
module fpga_round #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter DIGITS = 48
) (
    input  wire                      sign,
    input  wire signed [       15:0] exponent,
    input  wire        [ DIGITS-1:0] digits,
    output wire        [EXP+MAN:0] out
);
  localparam WIDTH = (DIGITS > MAN + 3 ? DIGITS : MAN + 3) + 1;  // the lowest says "and more"
  localparam signed [15:0] MOST = (1 << EXP) - 1;
  reg [15:0] zeros;
  integer k;
  always @* begin
    zeros = DIGITS[15:0];
    for (k = 0; k < DIGITS; k = k + 1) if (digits[k]) zeros = DIGITS[15:0] - 16'd1 - k[15:0];
  end
  wire [WIDTH-1:0] wide = {digits, {(WIDTH - DIGITS) {1'b0}}} << zeros;
  wire signed [15:0] biased = exponent - $signed(zeros);
  wire denormal = biased <= 16'sd0;
  wire [15:0] down = denormal ? 16'd1 - $unsigned(biased) : 16'd0;
  wire all_gone = {16'd0, down} >= WIDTH;
  wire [WIDTH-1:0] lost_mask = ~({WIDTH{1'b1}} << down);
  wire more = all_gone ? |wide : |(wide & lost_mask);
  wire [WIDTH-1:0] moved = (all_gone ? {WIDTH{1'b0}} : wide >> down) | {{(WIDTH - 1) {1'b0}}, more};
  wire [MAN-1:0] fraction = moved[WIDTH-2-:MAN];
  wire half = moved[WIDTH-2-MAN];
  wire rest = |moved[WIDTH-3-MAN:0];
  wire up = half && (rest || fraction[0]);
  wire [EXP-1:0] field = denormal ? {EXP{1'b0}} : biased[EXP-1:0];
  wire [EXP+MAN-1:0] packed_ = {field, fraction} + {{(EXP + MAN - 1) {1'b0}}, up};
  wire [EXP+MAN-1:0] infinite = {{EXP{1'b1}}, {MAN{1'b0}}};
  assign out = {sign, digits == {DIGITS{1'b0}} ? {(EXP + MAN) {1'b0}} :
                biased >= MOST ? infinite : packed_};
endmodule

// What a float is.
module fpga_unpack #(
    parameter EXP = 8,
    parameter MAN = 23
) (
    input  wire        [EXP+MAN:0] in,
    output wire                    sign,
    output wire signed [     15:0] exponent,  // biased; of a denormal: 1
    output wire        [    MAN:0] digits,
    output wire                    nan,
    output wire                    infinite
);
  wire [EXP-1:0] field = in[MAN+:EXP];
  wire normal = field != {EXP{1'b0}};
  wire top = field == {EXP{1'b1}};
  assign sign = in[EXP+MAN];
  assign exponent = normal ? $signed({{(16 - EXP) {1'b0}}, field}) : 16'sd1;
  assign digits = {normal, in[MAN-1:0]};
  assign nan = top && in[MAN-1:0] != {MAN{1'b0}};
  assign infinite = top && in[MAN-1:0] == {MAN{1'b0}};
endmodule

// A product of EXP, MAN; its factors may be narrower floats, which are widened by that.
module fpga_fmul #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter OF_EXP = EXP,
    parameter OF_MAN = MAN,
    parameter LATENCY = 4
) (
    input  wire                   clk,
    input  wire [OF_EXP+OF_MAN:0] a,
    input  wire [OF_EXP+OF_MAN:0] b,
    output wire [      EXP+MAN:0] out
);
  localparam signed [15:0] BIAS = (1 << (EXP - 1)) - 1;
  localparam signed [15:0] OF_BIAS = (1 << (OF_EXP - 1)) - 1;
  wire sa, sb, nan_a, nan_b, inf_a, inf_b;
  wire signed [15:0] ea, eb;
  wire [OF_MAN:0] ma, mb;
  fpga_unpack #(.EXP(OF_EXP), .MAN(OF_MAN)) of_a (.in(a), .sign(sa), .exponent(ea), .digits(ma), .nan(nan_a), .infinite(inf_a));
  fpga_unpack #(.EXP(OF_EXP), .MAN(OF_MAN)) of_b (.in(b), .sign(sb), .exponent(eb), .digits(mb), .nan(nan_b), .infinite(inf_b));
  wire [2*OF_MAN+1:0] product = {{(OF_MAN + 1) {1'b0}}, ma} * {{(OF_MAN + 1) {1'b0}}, mb};
  wire [EXP+MAN:0] rounded;
  fpga_round #(.EXP(EXP), .MAN(MAN), .DIGITS(2 * OF_MAN + 2)) round (
      .sign(sa ^ sb), .exponent(ea + eb - OF_BIAS - OF_BIAS + BIAS + 16'sd1), .digits(product), .out(rounded));
  wire zero = ma == {(OF_MAN + 1) {1'b0}} || mb == {(OF_MAN + 1) {1'b0}};
  wire infinite = inf_a || inf_b;
  wire nan = nan_a || nan_b || (infinite && zero);
  wire [EXP+MAN:0] result = nan ? {1'b0, {(EXP + 1) {1'b1}}, {(MAN - 1) {1'b0}}} :
      infinite ? {sa ^ sb, {EXP{1'b1}}, {MAN{1'b0}}} : rounded;
  fpga_delay #(.WIDTH(EXP + MAN + 1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule

module fpga_fadd #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter SUBTRACT = 0,
    parameter LATENCY = 6
) (
    input  wire             clk,
    input  wire [EXP+MAN:0] a,
    input  wire [EXP+MAN:0] b,
    output wire [EXP+MAN:0] out
);
  localparam WIDTH = MAN + 5;
  wire [EXP+MAN:0] c = {b[EXP+MAN] ^ (SUBTRACT != 0), b[EXP+MAN-1:0]};
  wire swap = a[EXP+MAN-1:0] < c[EXP+MAN-1:0];
  wire [EXP+MAN:0] bigger = swap ? c : a;
  wire [EXP+MAN:0] smaller = swap ? a : c;
  wire sl, ss, nan_l, nan_s, inf_l, inf_s;
  wire signed [15:0] el, es;
  wire [MAN:0] ml, ms;
  fpga_unpack #(.EXP(EXP), .MAN(MAN)) of_l (.in(bigger), .sign(sl), .exponent(el), .digits(ml), .nan(nan_l), .infinite(inf_l));
  fpga_unpack #(.EXP(EXP), .MAN(MAN)) of_s (.in(smaller), .sign(ss), .exponent(es), .digits(ms), .nan(nan_s), .infinite(inf_s));
  wire [15:0] apart = $unsigned(el - es);
  wire all_gone = {16'd0, apart} >= WIDTH;
  wire [WIDTH-1:0] wide_l = {1'b0, ml, 3'b000};
  wire [WIDTH-1:0] wide_s = {1'b0, ms, 3'b000};
  wire more = all_gone ? |wide_s : |(wide_s & ~({WIDTH{1'b1}} << apart));
  wire [WIDTH-1:0] near = (all_gone ? {WIDTH{1'b0}} : wide_s >> apart) | {{(WIDTH - 1) {1'b0}}, more};
  wire [WIDTH-1:0] sum = sl == ss ? wide_l + near : wide_l - near;
  wire exact_zero = sum == {WIDTH{1'b0}};
  wire [EXP+MAN:0] rounded;
  fpga_round #(.EXP(EXP), .MAN(MAN), .DIGITS(WIDTH)) round (
      .sign(exact_zero ? sl && ss : sl), .exponent(el + 16'sd1), .digits(sum), .out(rounded));
  wire nan = nan_l || nan_s || (inf_l && inf_s && sl != ss);
  wire [EXP+MAN:0] result = nan ? {1'b0, {(EXP + 1) {1'b1}}, {(MAN - 1) {1'b0}}} :
      inf_l ? {sl, {EXP{1'b1}}, {MAN{1'b0}}} : rounded;
  fpga_delay #(.WIDTH(EXP + MAN + 1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule

module fpga_fcompare #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter KIND = 0,  // 0: equal, 1: less, 2: less or equal, 3: one is NaN
    parameter LATENCY = 1
) (
    input  wire             clk,
    input  wire [EXP+MAN:0] a,
    input  wire [EXP+MAN:0] b,
    output wire             out
);
  localparam [EXP+MAN-1:0] INFINITE = {{EXP{1'b1}}, {MAN{1'b0}}};
  wire nan = a[EXP+MAN-1:0] > INFINITE || b[EXP+MAN-1:0] > INFINITE;
  wire zero = a[EXP+MAN-1:0] == {(EXP + MAN) {1'b0}} && b[EXP+MAN-1:0] == {(EXP + MAN) {1'b0}};
  wire sa = a[EXP+MAN], sb = b[EXP+MAN];
  wire equal = zero || a == b;
  wire below = sa != sb ? sa : sa ? a[EXP+MAN-1:0] > b[EXP+MAN-1:0] : a[EXP+MAN-1:0] < b[EXP+MAN-1:0];
  wire less = !equal && below;
  wire result = KIND == 3 ? nan : !nan && (KIND == 0 ? equal : KIND == 1 ? less : equal || less);
  fpga_delay #(.WIDTH(1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule

// min and max: NaN if either is; of two equal values the first.
module fpga_fselect #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter MAX = 0,
    parameter LATENCY = 1
) (
    input  wire             clk,
    input  wire [EXP+MAN:0] a,
    input  wire [EXP+MAN:0] b,
    output wire [EXP+MAN:0] out
);
  wire nan, second;
  fpga_fcompare #(.EXP(EXP), .MAN(MAN), .KIND(3), .LATENCY(0)) is_nan (.clk(clk), .a(a), .b(b), .out(nan));
  fpga_fcompare #(.EXP(EXP), .MAN(MAN), .KIND(1), .LATENCY(0)) is_less (
      .clk(clk), .a(MAX != 0 ? a : b), .b(MAX != 0 ? b : a), .out(second));
  wire [EXP+MAN:0] result = nan ? {1'b0, {(EXP + 1) {1'b1}}, {(MAN - 1) {1'b0}}} : second ? b : a;
  fpga_delay #(.WIDTH(EXP + MAN + 1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule

// From one format to another.
module fpga_fcast #(
    parameter EXP = 8,
    parameter MAN = 23,
    parameter TO_EXP = 8,
    parameter TO_MAN = 7,
    parameter LATENCY = 1
) (
    input  wire                   clk,
    input  wire [      EXP+MAN:0] a,
    output wire [TO_EXP+TO_MAN:0] out
);
  localparam signed [15:0] SHIFT = (1 << (TO_EXP - 1)) - (1 << (EXP - 1));
  wire sign, nan, infinite;
  wire signed [15:0] exponent;
  wire [MAN:0] digits;
  fpga_unpack #(.EXP(EXP), .MAN(MAN)) of (.in(a), .sign(sign), .exponent(exponent), .digits(digits), .nan(nan), .infinite(infinite));
  wire [TO_EXP+TO_MAN:0] rounded;
  fpga_round #(.EXP(TO_EXP), .MAN(TO_MAN), .DIGITS(MAN + 1)) round (
      .sign(sign), .exponent(exponent + SHIFT), .digits(digits), .out(rounded));
  wire [TO_EXP+TO_MAN:0] result = nan ? {1'b0, {(TO_EXP + 1) {1'b1}}, {(TO_MAN - 1) {1'b0}}} :
      infinite ? {sign, {TO_EXP{1'b1}}, {TO_MAN{1'b0}}} : rounded;
  fpga_delay #(.WIDTH(TO_EXP + TO_MAN + 1), .DELAY(LATENCY)) behind (.clk(clk), .in(result), .out(out));
endmodule
