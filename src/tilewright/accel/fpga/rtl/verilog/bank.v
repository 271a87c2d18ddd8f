// A RAM with one port to write and one to read. An element written in one cycle is read from the
// next one on; what is asked for is there LATENCY (1 or 2) cycles later.
module fpga_bank #(
    parameter WIDTH = 8,
    parameter ADDRESS = 4,
    parameter WORDS = 16,
    parameter LATENCY = 2
) (
    input  wire               clk,
    input  wire               write,
    input  wire [ADDRESS-1:0] write_at,
    input  wire [  WIDTH-1:0] in,
    input  wire [ADDRESS-1:0] read_at,
    output wire [  WIDTH-1:0] out
);
  reg [WIDTH-1:0] words[0:WORDS-1];
  reg [WIDTH-1:0] read;
  always @(posedge clk) begin
    if (write) words[write_at] <= in;
    read <= words[read_at];
  end
  fpga_delay #(.WIDTH(WIDTH), .DELAY(LATENCY - 1)) behind (.clk(clk), .in(read), .out(out));
endmodule
