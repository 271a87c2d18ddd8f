// AXI4-Lite control in the layout of Vitis RTL kernels: 0x000 start, done, idle and ready; argument
// a at 0x010 + 12 a (64 bits); 0x400 cycles of the last run (64 bits); 0x408 which design this is;
// 0x1000 the table of numbers.
module fpga_control #(
    parameter ARGUMENTS = 1,
    parameter TABLE = 1,
    parameter [31:0] IDENTITY = 32'd0
) (
    input  wire                    clk,
    input  wire                    reset,
    input  wire                    awvalid,
    output wire                    awready,
    input  wire [            15:0] awaddr,
    input  wire                    wvalid,
    output wire                    wready,
    input  wire [            31:0] wdata,
    output reg                     bvalid,
    input  wire                    bready,
    input  wire                    arvalid,
    output wire                    arready,
    input  wire [            15:0] araddr,
    output reg                     rvalid,
    input  wire                    rready,
    output reg  [            31:0] rdata,
    output reg                     run,
    input  wire                    finished,
    output reg  [64*ARGUMENTS-1:0] arguments,
    output reg  [    32*TABLE-1:0] numbers
);
  reg done;
  reg [63:0] cycles;
  wire write = awvalid && wvalid && !bvalid;
  wire read = arvalid && !rvalid;
  assign awready = write;
  assign wready  = write;
  assign arready = !rvalid;
  integer k;
  always @(posedge clk) begin
    if (write) bvalid <= 1'b1;
    else if (bready) bvalid <= 1'b0;
    if (write && awaddr == 16'h0000 && wdata[0]) begin
      run <= 1'b1;
      cycles <= 64'd0;
    end
    for (k = 0; k < ARGUMENTS; k = k + 1) begin
      if (write && {16'd0, awaddr} == 16 + 12 * k) arguments[64*k+:32] <= wdata;
      if (write && {16'd0, awaddr} == 20 + 12 * k) arguments[64*k+32+:32] <= wdata;
    end
    for (k = 0; k < TABLE; k = k + 1)
      if (write && {16'd0, awaddr} == 4096 + 4 * k) numbers[32*k+:32] <= wdata;
    if (run) begin
      if (finished) begin
        run  <= 1'b0;
        done <= 1'b1;
      end else cycles <= cycles + 64'd1;
    end
    if (read) begin
      rvalid <= 1'b1;
      rdata <= araddr == 16'h0000 ? {28'd0, done, !run, done, run} :
          araddr == 16'h0400 ? cycles[31:0] : araddr == 16'h0404 ? cycles[63:32] :
          araddr == 16'h0408 ? IDENTITY : 32'd0;
      if (araddr == 16'h0000) done <= 1'b0;
    end else if (rready) rvalid <= 1'b0;
    if (reset) begin
      run <= 1'b0;
      done <= 1'b0;
      bvalid <= 1'b0;
      rvalid <= 1'b0;
    end
  end
endmodule
