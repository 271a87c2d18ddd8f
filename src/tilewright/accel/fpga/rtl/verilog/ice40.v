// What surrounds a design on an iCE40 UltraPlus: a memory for each argument, and a host that loads
// them, starts the design and reads results over two wires (UART, 8N1). docs/fpga.md has the bytes.

// One of the four RAMs of 32 KiB: a word in each cycle, written or read.
module ice40_ram (
    input  wire        clk,
    input  wire [13:0] address,
    input  wire        write,
    input  wire [ 1:0] bytes,  // that are written
    input  wire [15:0] in,
    output wire [15:0] out     // of the cycle before
);
  SB_SPRAM256KA ram (
      .ADDRESS(address), .DATAIN(in), .MASKWREN({{2{bytes[1]}}, {2{bytes[0]}}}), .WREN(write),
      .CHIPSELECT(1'b1), .CLOCK(clk), .STANDBY(1'b0), .SLEEP(1'b0), .POWEROFF(1'b1), .DATAOUT(out));
endmodule

// An argument that the design reads. Beats of a burst come from the cycle after its request on.
module ice40_read_memory (
    input  wire        clk,
    input  wire        run,
    input  wire [13:0] host_address,
    input  wire        host_write,
    input  wire [15:0] host_data,
    output wire [15:0] host_out,
    input  wire        arvalid,
    output wire        arready,
    input  wire [13:0] araddr,  // in words
    input  wire [ 7:0] arlen,
    output wire        rvalid,
    input  wire        rready,
    output wire [15:0] rdata,
    output wire        rlast
);
  reg busy;
  reg [13:0] at;
  reg [7:0] left;
  wire accept = arvalid && !busy;
  wire taken = busy && rready;
  wire [13:0] next = accept ? araddr : taken ? at + 14'd1 : at;
  assign arready = !busy;
  assign rvalid = busy;
  assign rlast = left == 8'd0;
  assign rdata = host_out;
  ice40_ram ram (
      .clk(clk), .address(run ? next : host_address), .write(host_write), .bytes(2'b11),
      .in(host_data), .out(host_out));
  always @(posedge clk) begin
    at <= next;
    if (accept) left <= arlen;
    else if (taken) left <= left - 8'd1;
    busy <= run && (accept || (busy && !(taken && rlast)));
  end
endmodule

// An argument that the design writes. Beats are taken from the cycle after their request on.
module ice40_write_memory (
    input  wire        clk,
    input  wire        run,
    input  wire [13:0] host_address,
    input  wire        host_write,
    input  wire [15:0] host_data,
    output wire [15:0] host_out,
    input  wire        awvalid,
    output wire        awready,
    input  wire [13:0] awaddr,  // in words
    input  wire [ 7:0] awlen,
    input  wire        wvalid,
    output wire        wready,
    input  wire [15:0] wdata,
    input  wire [ 1:0] wstrb,
    input  wire        wlast,
    output reg         bvalid
);
  reg busy;
  reg [13:0] at;
  wire accept = awvalid && !busy;
  wire taken = busy && wvalid;
  assign awready = !busy;
  assign wready = busy;
  ice40_ram ram (
      .clk(clk), .address(run ? at : host_address), .write(run ? taken : host_write),
      .bytes(run ? wstrb : 2'b11), .in(run ? wdata : host_data), .out(host_out));
  always @(posedge clk) begin
    if (accept) at <= awaddr;
    else if (taken) at <= at + 14'd1;
    busy <= run && (accept || (busy && !(taken && wlast)));
    bvalid <= run && taken && wlast;
  end
endmodule

// Bytes from one wire, with DIVIDE cycles for each bit.
module ice40_receive #(
    parameter DIVIDE = 8
) (
    input  wire       clk,
    input  wire       rx,
    output reg  [7:0] data,
    output reg        valid
);
  localparam [7:0] BIT = DIVIDE - 1;
  localparam [7:0] BIT_AND_HALF = DIVIDE + DIVIDE / 2 - 2;  // from the edge that was seen late
  reg [1:0] line = 2'b11;
  reg [3:0] bits = 4'd0;  // that are still to come, with the stop bit
  reg [7:0] wait_ = 8'd0;
  initial valid = 1'b0;
  always @(posedge clk) begin
    line <= {line[0], rx};
    valid <= 1'b0;
    if (bits == 4'd0) begin
      wait_ <= BIT_AND_HALF;
      if (!line[1]) bits <= 4'd9;
    end else if (wait_ != 8'd0) begin
      wait_ <= wait_ - 8'd1;
    end else begin
      wait_ <= BIT;
      bits <= bits - 4'd1;
      if (bits != 4'd1) data <= {line[1], data[7:1]};
      valid <= bits == 4'd1 && line[1];
    end
  end
endmodule

// Bytes onto one wire.
module ice40_send #(
    parameter DIVIDE = 8
) (
    input  wire       clk,
    input  wire       start,
    input  wire [7:0] data,
    output wire       ready,
    output wire       tx
);
  localparam [7:0] BIT = DIVIDE - 1;
  reg [8:0] moving = 9'h1ff;
  reg [3:0] bits = 4'd0;
  reg [7:0] wait_ = 8'd0;
  assign tx = moving[0];
  assign ready = bits == 4'd0;
  always @(posedge clk)
    if (ready) begin
      if (start) begin
        moving <= {data, 1'b0};
        bits <= 4'd10;
        wait_ <= BIT;
      end
    end else if (wait_ != 8'd0) begin
      wait_ <= wait_ - 8'd1;
    end else begin
      wait_ <= BIT;
      bits <= bits - 4'd1;
      moving <= {1'b1, moving[8:1]};
    end
endmodule

// The host's side: 1 writes words, 2 reads words, 3 runs the design. Numbers have their low byte
// first. The words of all memories count as one: argument a begins at 16384 a.
//   1 address(2) words(2) data...        2 address(2) words(2) -> data...        3 -> cycles(4)
module ice40_host #(
    parameter DIVIDE = 8
) (
    input  wire        clk,
    input  wire        rx,
    output wire        tx,
    output reg  [15:0] address,
    output reg         write,
    output wire [15:0] data,
    input  wire [15:0] read,  // the word at the address of the cycle before
    output reg         run,
    input  wire        finished
);
  localparam IDLE = 4'd0, A0 = 4'd1, A1 = 4'd2, L0 = 4'd3, L1 = 4'd4, LOW = 4'd5, HIGH = 4'd6,
      SETTLE = 4'd7, SEND_LOW = 4'd8, SEND_HIGH = 4'd9, RUN = 4'd10, REPORT = 4'd11;
  reg [3:0] state = IDLE;
  reg writes;
  reg [15:0] left;
  reg [7:0] low, high;
  reg [31:0] cycles;
  reg [2:0] reported;
  wire [7:0] got;
  wire valid, ready;
  wire reads = state == SEND_LOW || state == SEND_HIGH;
  wire start = ready && (reads || (state == REPORT && !reported[2]));
  wire [7:0] out = state == REPORT ? cycles[7:0] : state == SEND_LOW ? read[7:0] : read[15:8];
  ice40_receive #(.DIVIDE(DIVIDE)) receive (.clk(clk), .rx(rx), .data(got), .valid(valid));
  ice40_send #(.DIVIDE(DIVIDE)) send (
      .clk(clk), .start(start), .data(out), .ready(ready), .tx(tx));
  assign data = {high, low};
  initial begin
    write = 1'b0;
    run = 1'b0;
  end
  always @(posedge clk) begin
    write <= 1'b0;
    if (write) begin
      address <= address + 16'd1;
      left <= left - 16'd1;
    end
    case (state)
      IDLE: begin
        cycles <= 32'd0;
        reported <= 3'd0;
        writes <= got == 8'd1;
        if (valid && (got == 8'd1 || got == 8'd2)) state <= A0;
        if (valid && got == 8'd3) begin
          state <= RUN;
          run <= 1'b1;
        end
      end
      A0, A1, L0, L1: if (valid) begin
        address <= state == A0 ? {8'd0, got} : state == A1 ? {got, address[7:0]} : address;
        left <= state == L0 ? {8'd0, got} : {got, left[7:0]};
        state <= state == L1 ? (writes ? LOW : SETTLE) : state + 4'd1;
      end
      LOW: if (valid) begin
        low <= got;
        state <= HIGH;
      end
      HIGH: if (valid) begin
        high <= got;
        write <= 1'b1;
        state <= left == 16'd1 ? IDLE : LOW;
      end
      SETTLE: state <= SEND_LOW;
      SEND_LOW: if (ready) state <= SEND_HIGH;
      SEND_HIGH: if (ready) begin
        address <= address + 16'd1;
        left <= left - 16'd1;
        state <= left == 16'd1 ? IDLE : SETTLE;
      end
      RUN: begin
        if (finished) begin
          run <= 1'b0;
          state <= REPORT;
        end else cycles <= cycles + 32'd1;
      end
      REPORT: if (ready) begin
        reported <= reported + 3'd1;
        cycles <= {8'd0, cycles[31:8]};
        if (reported[2]) state <= IDLE;
      end
      default: state <= IDLE;
    endcase
  end
endmodule
