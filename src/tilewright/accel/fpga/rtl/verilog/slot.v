// Which block of a channel a process has or gets next, and whether it has one.
module fpga_slot #(
    parameter SLOTS = 2
) (
    input  wire       clk,
    input  wire       reset,
    input  wire       acquire,
    input  wire       release_,
    output reg  [2:0] slot,
    output reg        held
);
  always @(posedge clk) begin
    if (acquire) held <= 1'b1;
    if (release_) held <= 1'b0;
    if (release_) slot <= {29'd0, slot} + 32'd1 == SLOTS ? 3'd0 : slot + 3'd1;
    if (reset) begin
      slot <= 3'd0;
      held <= 1'b0;
    end
  end
endmodule
