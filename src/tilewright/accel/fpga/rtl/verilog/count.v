// Blocks of a channel that one side may take: full ones for the reader, free ones for the writer.
module fpga_count #(
    parameter START = 0
) (
    input  wire clk,
    input  wire reset,
    input  wire up,
    input  wire down,
    output wire ready
);
  reg [3:0] count;
  assign ready = count != 0;
  always @(posedge clk) begin
    if (up && !down) count <= count + 4'd1;
    if (down && !up) count <= count - 4'd1;
    if (reset) count <= START[3:0];
  end
endmodule
