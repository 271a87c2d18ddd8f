// Verilog text of what all modules share: their state machine, decoding, the register file.
#include "tilewright/accel/vta/rtl/parts.h"

namespace tilewright::vta::rtl {

const char* const kControlModules = R"v(
// The state machine of every executing module: wait for a command and its tokens, execute, give
// tokens. A quick command goes from begin to done at once.
module vta_control (
    input  wire clk,
    input  wire reset,
    input  wire valid,       // a command is at the head of the queue
    input  wire pop_prev,    // its flags
    input  wire pop_next,
    input  wire push_prev,
    input  wire push_next,
    input  wire quick,       // it needs no execution: empty transfers, FINISH
    input  wire prev_ready,  // tokens are there
    input  wire next_ready,
    input  wire last,        // last cycle of the execution
    output wire begins,      // takes command and tokens in this cycle
    output wire done,        // last cycle of the command
    output wire busy,
    output wire take_prev,
    output wire take_next,
    output wire give_prev,
    output wire give_next
);
  localparam IDLE = 2'd0, EXEC = 2'd1, DONE = 2'd2;
  reg [1:0] state;
  reg gives_prev, gives_next;

  assign begins = state == IDLE && valid && (prev_ready || !pop_prev) && (next_ready || !pop_next);
  assign done = state == DONE;
  assign busy = state != IDLE;
  assign take_prev = begins && pop_prev;
  assign take_next = begins && pop_next;
  assign give_prev = done && gives_prev;
  assign give_next = done && gives_next;

  always @(posedge clk) begin
    case (state)
      IDLE:
      if (begins) begin
        state <= quick ? DONE : EXEC;
        gives_prev <= push_prev;
        gives_next <= push_next;
      end
      EXEC: if (last) state <= DONE;
      default: state <= IDLE;
    endcase
    if (reset) state <= IDLE;
  end
endmodule

// Where an instruction goes, and whether it is one at all.
module vta_decode (
    input  wire [127:0] insn,
    output wire         to_load,
    output wire         to_compute,  // LOAD UOP, GEMM; with three modules also what Alu does
    output wire         to_alu,      // four modules only: LOAD ACC, ALU, FINISH
    output wire         to_store,
    output wire         undefined
);
  localparam PIPELINE4 = ${PIPELINE4};
  localparam HAS_MUL = ${HAS_MUL};
  localparam HAS_ACC8 = ${HAS_ACC8};
  localparam LOAD = 3'd0, STORE = 3'd1, GEMM = 3'd2, FINISH = 3'd3, ALU = 3'd4;
  localparam UOP = 3'd0, WGT = 3'd1, INP = 3'd2, ACC = 3'd3, OUT = 3'd4, ACC8 = 3'd5;

  wire [2:0] opcode = insn[2:0];
  wire [2:0] memory = insn[${transfer.mem}];
  wire [2:0] alu_op = insn[${alu.op}];
  wire load_uop = opcode == LOAD && memory == UOP;
  wire load_acc = opcode == LOAD && (memory == ACC || (memory == ACC8 && HAS_ACC8 != 0));
  wire alu = opcode == ALU && (alu_op < 3'd4 || (alu_op == 3'd4 && HAS_MUL != 0));
  wire alu_work = load_acc || alu || opcode == FINISH;

  assign to_load = opcode == LOAD && (memory == INP || memory == WGT);
  assign to_compute = load_uop || opcode == GEMM || (alu_work && PIPELINE4 == 0);
  assign to_alu = alu_work && PIPELINE4 != 0;
  assign to_store = opcode == STORE && memory == OUT;
  assign undefined = !(to_load || to_compute || to_alu || to_store);
endmodule

// The register file. Writing 1 to word 0 launches; hardware overwrites it with 2 at the end.
//   0x00 control   0x04 cycles, latched at FINISH   0x08 instruction count   0x0C its address
//   0x10 .. 0x20 bases of UOP, INP, WGT, ACC, OUT   0x24 accumulator writes
//   0x28 status: bit 0 error, 1 busy, 2 fetching, 8.. tokens are in a queue, 16.. commands are
//   0x2C instructions dispatched since the launch
module vta_registers (
    input  wire        clk,
    input  wire        reset,
    input  wire        reg_write,
    input  wire [ 7:0] reg_addr,
    input  wire [31:0] reg_wdata,
    output reg  [31:0] reg_rdata,
    output wire        launch,      // one cycle, the first of the launch
    output wire [31:0] insn_count,
    output wire [31:0] insn_addr,
    output wire [31:0] uop_base,
    output wire [31:0] inp_base,
    output wire [31:0] wgt_base,
    output wire [31:0] acc_base,
    output wire [31:0] out_base,
    input  wire        finish,      // FINISH is done
    input  wire [ 1:0] acc_writes_now,
    input  wire        error,
    input  wire        dispatch,
    input  wire [31:0] status       // bit 0 is the error
);
  reg launched, running, finished, failed;
  reg [31:0] cycles, latched, acc_writes, dispatched;
  reg [31:0] words[2:8];  // what the host writes, by word address

  assign launch = launched;
  assign insn_count = words[2];
  assign insn_addr = words[3];
  assign uop_base = words[4];
  assign inp_base = words[5];
  assign wgt_base = words[6];
  assign acc_base = words[7];
  assign out_base = words[8];

  always @* begin
    case (reg_addr[7:2])
      6'h0: reg_rdata = {30'h0, finished, launched || running};
      6'h1: reg_rdata = latched;
      6'h2, 6'h3, 6'h4, 6'h5, 6'h6, 6'h7, 6'h8: reg_rdata = words[reg_addr[5:2]];
      6'h9: reg_rdata = acc_writes;
      6'ha: reg_rdata = {status[31:1], failed};
      6'hb: reg_rdata = dispatched;
      default: reg_rdata = 32'h0;
    endcase
  end

  always @(posedge clk) begin
    launched <= 1'b0;
    cycles <= cycles + 32'h1;
    acc_writes <= acc_writes + {31'h0, acc_writes_now[0]} + {31'h0, acc_writes_now[1]};
    if (reg_write && reg_addr[7:2] >= 6'h2 && reg_addr[7:2] <= 6'h8)
      words[reg_addr[5:2]] <= reg_wdata;
    if (reg_write && reg_addr[7:2] == 6'h0 && reg_wdata[0] && !running && !launched) begin
      launched <= 1'b1;
      running <= 1'b1;
      finished <= 1'b0;
      cycles <= 32'h0;
      acc_writes <= 32'h0;
      dispatched <= 32'h0;
    end
    if (dispatch) dispatched <= dispatched + 32'h1;
    if (error) failed <= 1'b1;
    if (finish) begin
      latched  <= cycles + 32'h1;
      running  <= 1'b0;
      finished <= 1'b1;
    end
    if (reset) begin
      launched <= 1'b0;
      running  <= 1'b0;
      finished <= 1'b0;
      failed   <= 1'b0;
    end
  end
endmodule
)v";

}  // namespace tilewright::vta::rtl
