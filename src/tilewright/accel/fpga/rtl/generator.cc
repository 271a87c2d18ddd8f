// Control, memories and ports of the top module.
#include "tilewright/accel/fpga/rtl/generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "tilewright/accel/fpga/rtl/parts.h"

namespace tilewright::fpga::rtl {

int bits_for(int64_t values) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(values - 1))));
}

namespace {

uint64_t low_bits(int64_t value, int bits) {
  const auto all = static_cast<uint64_t>(value);
  return bits >= 64 ? all : all & ((uint64_t{1} << bits) - 1);
}

/// Bits that a number between `low` and `high` takes, with a sign if it may be negative.
int bits_between(int64_t low, int64_t high) {
  if (low >= 0) return bits_for(high + 1);
  return 1 + static_cast<int>(
                 std::max(std::bit_width(static_cast<uint64_t>(~low)),
                          std::bit_width(static_cast<uint64_t>(std::max<int64_t>(0, high)))));
}

}  // namespace

std::string sized(const Value& value, int bits) {
  if (value.is_constant()) return fmt::format("{}'d{}", bits, low_bits(value.low, bits));
  return extended(value.wire, value.type, bits);
}

/// Bits for what lies between `low` and `high`: those of the table have room for anything.
int Generator::width(int64_t low, int64_t high) const {
  return numbers_ == Numbers::Table ? 32 : bits_between(low, high);
}

/// A number of the design as an expression. requires: at most 32 bits, where there is a table.
std::string Generator::word(int64_t value, int bits) {
  if (numbers_ == Numbers::Fixed) return fmt::format("{}'d{}", bits, low_bits(value, bits));
  table_.push_back(static_cast<uint32_t>(value));
  return fmt::format("numbers[{}+:{}]", 32 * (table_.size() - 1), bits);
}

Value Generator::number(int64_t value) {
  if (numbers_ == Numbers::Fixed) return {"", {}, value, value};
  const std::string name = fmt::format("k{}", names_++);
  add(fmt::format("wire [31:0] {} = {};", name, word(value)));
  return {name};
}

ControlText Generator::control_of(size_t process, bool data) const {
  ControlText control;
  control.prefix = fmt::format("p{}{}", process, data ? "" : "q");
  control.process = static_cast<int>(process);
  control.data = data;
  const Process& whole = design_.processes[process];
  control.program = data ? whole : requests_of(whole);
  std::vector<int> open;
  for (const Item& item : control.program.items) {
    const bool begins = std::holds_alternative<LoopBegin>(item);
    control.state.push_back(control.states);
    control.loop.push_back(-1);
    if (begins) {
      control.loop.back() = static_cast<int>(control.loop_extents.size());
      open.push_back(control.loop.back());
      control.loop_extents.push_back(std::get<LoopBegin>(item).extent);
    }
    control.around.push_back(open);
    if (std::holds_alternative<LoopEnd>(item)) {
      control.loop.back() = open.back();
      open.pop_back();
    }
    control.states += begins ? 0 : 1;
  }
  return control;
}

std::string state_text(const ControlText& control, int state) {
  return fmt::format("{}'d{}", bits_for(control.states + 1), state);
}

/// Bits of the counter of a loop: it is compared with its extent.
int Generator::loop_bits(const ControlText& control, int loop) const {
  return width(0, control.loop_extents[static_cast<size_t>(loop)]);
}

void Generator::emit_state(const ControlText& control, size_t i) {
  const Item& item = control.program.items[i];
  const std::string& p = control.prefix;
  const int state = control.state[i];
  if (const auto* acquire = std::get_if<Acquire>(&item)) {
    add(fmt::format("      {}: if ({}_ready{}) {}_at <= {};", state_text(control, state), p,
                    acquire->memory, p, state_text(control, state + 1)));
  } else if (std::holds_alternative<Release>(item)) {
    add(fmt::format("      {}: {}_at <= {};", state_text(control, state), p,
                    state_text(control, state + 1)));
  } else if (std::holds_alternative<Nest>(item)) {
    add(fmt::format("      {}: if ({}_n{}_done) {}_at <= {};", state_text(control, state), p, i, p,
                    state_text(control, state + 1)));
  } else if (std::holds_alternative<LoopEnd>(item)) {
    const int loop = control.loop[i];
    const auto begin = static_cast<size_t>(
        std::find(control.loop.begin(), control.loop.end(), loop) - control.loop.begin());
    const int bits = loop_bits(control, loop);
    add(fmt::format("      {}: if ({}_exit[{}]) begin {}_at <= {}; {}_l{} <= {}'d0; end",
                    state_text(control, state), p, loop, p, state_text(control, state + 1), p, loop,
                    bits));
    add(fmt::format("      else begin {}_at <= {}; {}_l{} <= {}_l{} + {}'d1; end", p,
                    state_text(control, control.state[begin]), p, loop, p, loop, bits));
  }
}

void Generator::emit_control(const ControlText& control) {
  const std::string& p = control.prefix;
  const size_t loops = std::max<size_t>(1, control.loop_extents.size());
  add(fmt::format("// Process {}{}.", control.program.name, control.data ? "" : ": its requests"));
  add(fmt::format("wire [{}:0] {}_step, {}_exit;", loops - 1, p, p));
  if (control.loop_extents.empty())
    add(fmt::format("assign {}_step = 1'b0, {}_exit = 1'b0;", p, p));
  for (size_t i = 0; i < control.program.items.size(); ++i) {
    if (!std::holds_alternative<LoopEnd>(control.program.items[i])) continue;
    const int loop = control.loop[i];
    const int bits = loop_bits(control, loop);
    const auto extent = word(control.loop_extents[static_cast<size_t>(loop)], bits);
    add(fmt::format("reg [{}:0] {}_l{};", bits - 1, p, loop));
    add(fmt::format("wire {}_end{} = {}_l{} + {}'d1 == {};", p, loop, p, loop, bits, extent));
    add(fmt::format("assign {}_step[{}] = run && {}_at == {} && !{}_end{};", p, loop, p,
                    state_text(control, control.state[i]), p, loop));
    add(fmt::format("assign {}_exit[{}] = run && {}_at == {} && {}_end{};", p, loop, p,
                    state_text(control, control.state[i]), p, loop));
  }
  emit_counts(control);
  for (size_t i = 0; i < control.program.items.size(); ++i)
    if (std::holds_alternative<Nest>(control.program.items[i])) {
      add(fmt::format("wire {}_n{}_done;", p, i));
      control.data ? emit_nest(control, i) : emit_requests(control, i);
    }
  add("always @(posedge clk) begin");
  add(fmt::format("  if (run) begin case ({}_at)", p));
  for (size_t i = 0; i < control.program.items.size(); ++i) emit_state(control, i);
  add("      default: ;");
  add("  endcase end else begin");
  add(fmt::format("    {}_at <= {};", p, state_text(control, 0)));
  for (size_t loop = 0; loop < control.loop_extents.size(); ++loop)
    add(fmt::format("    {}_l{} <= {}'d0;", p, loop, loop_bits(control, static_cast<int>(loop))));
  add("  end");
  add("end");
  ended_.push_back(fmt::format("{}_at == {}", p, state_text(control, control.states)));
}

namespace {

/// States in which a control acquires or releases a channel, as an expression.
template <class T>
std::string in_states(const ControlText& control, int memory) {
  std::string out;
  for (size_t i = 0; i < control.program.items.size(); ++i) {
    const auto* item = std::get_if<T>(&control.program.items[i]);
    if (item == nullptr || item->memory != memory) continue;
    out += fmt::format("{}{}_at == {}", out.empty() ? "" : " || ", control.prefix,
                       state_text(control, control.state[i]));
  }
  return out.empty() ? "1'b0" : "(" + out + ")";
}

}  // namespace

/// Blocks that the control may take, for each of its channels, and the block that it has.
void Generator::emit_counts(const ControlText& control) {
  for (size_t m = 0; m < design_.memories.size(); ++m) {
    const auto memory = static_cast<int>(m);
    if (design_.memories[m].slots == 0) continue;
    const Ends ends = ends_of(design_, memory);
    if (ends.writer != control.process && ends.reader != control.process) continue;
    const bool writes = ends.writer == control.process;
    const ControlText other =
        control_of(static_cast<size_t>(writes ? ends.reader : ends.writer), true);
    const std::string& p = control.prefix;
    const std::string takes = in_states<Acquire>(control, memory);
    add(fmt::format("wire {}_ready{};", p, m));
    add(fmt::format("wire {}_takes{} = run && {} && {}_ready{};", p, m, takes, p, m));
    add(
        fmt::format("fpga_count #(.START({})) {}_count{} (.clk(clk), .reset(!run), .up(run && {}), "
                    ".down({}_takes{}), .ready({}_ready{}));",
                    writes ? design_.memories[m].slots : 0, p, m, in_states<Release>(other, memory),
                    p, m, p, m));
    if (!control.data) continue;
    add(fmt::format("wire [2:0] {}_slot{};", p, m));
    add(fmt::format("wire {}_held{};", p, m));
    add(fmt::format(
        "fpga_slot #(.SLOTS({})) {}_slots{} (.clk(clk), .reset(!run), "
        ".acquire({}_takes{}), .release_(run && {}), .slot({}_slot{}), "
        ".held({}_held{}));",
        design_.memories[m].slots, p, m, p, m, in_states<Release>(control, memory), p, m, p, m));
  }
}

/// Address in a RAM that has all slots.
std::string Generator::in_block(const Memory& memory, const std::string& slot,
                                const std::string& at) const {
  if (memory.slots <= 1 || memory.accumulated) return at;
  return fmt::format("{{{}[{}:0], {}}}", slot, bits_for(memory.slots) - 1, at);
}

/// Word that `process` reads in a bank.
std::string Generator::read_address(size_t m, int bank, int process) const {
  const int bits = bits_for(design_.memories[m].words);
  std::vector<std::string> words;
  for (const BankUse& use : reads_[m])
    if (use.process == process && (!use.bank.empty() || use.fixed_bank == bank))
      words.push_back(fmt::format("({{{}{{{}}}}} & {})", bits, use.valid, use.word));
  return words.empty() ? fmt::format("{}'d0", bits) : fmt::format("{}", fmt::join(words, " | "));
}

void Generator::emit_bank(size_t m, int bank) {
  const Memory& memory = design_.memories[m];
  const int bits = memory.element.bits;
  const std::string b = fmt::format("m{}_b{}", m, bank);
  const int address = bits_for(memory.words);
  std::vector<std::string> valid, words, data;
  for (const BankUse& use : stores_[m]) {
    if (use.bank.empty() && use.fixed_bank != bank) continue;
    const std::string own = use.bank.empty() ? use.valid
                                             : fmt::format("({} && {} == {}'d{})", use.valid,
                                                           use.bank, bits_for(memory.banks), bank);
    valid.push_back(own);
    words.push_back(fmt::format("({{{}{{{}}}}} & {})", address, own, use.word));
    data.push_back(fmt::format("({{{}{{{}}}}} & {})", bits, own, use.data));
  }
  if (valid.empty())
    valid = {"1'b0"}, words = {fmt::format("{}'d0", address)}, data = {fmt::format("{}'d0", bits)};
  const Ends ends = memory.slots > 0 ? ends_of(design_, static_cast<int>(m)) : Ends{};
  int reader = ends.reader;
  for (const BankUse& use : reads_[m])
    if (memory.slots == 0) reader = use.process;
  add(fmt::format("wire [{}:0] {}_wa = {};", address - 1, b, fmt::join(words, " | ")));
  add(fmt::format("wire [{}:0] {}_ra = {};", address - 1, b, read_address(m, bank, reader)));
  add(fmt::format("wire {}_we = {};", b, fmt::join(valid, " || ")));
  add(fmt::format("wire [{}:0] {}_in = {};", bits - 1, b, fmt::join(data, " | ")));
  if (!memory.accumulated) {
    const int all = address + (memory.slots > 1 ? bits_for(memory.slots) : 0);
    const int64_t depth = memory.slots > 1 ? int64_t{memory.slots} << address : memory.words;
    add(fmt::format(
        "fpga_bank #(.WIDTH({}), .ADDRESS({}), .WORDS({}), .LATENCY({})) {} (.clk(clk), "
        ".write({}_we), .write_at({}), .in({}_in), .read_at({}), .out({}_q));",
        bits, all, depth, memory.read_latency, b, b,
        in_block(memory, fmt::format("p{}_slot{}", ends.writer, m), b + "_wa"), b,
        in_block(memory, fmt::format("p{}_slot{}", ends.reader, m), b + "_ra"), b));
    return;
  }
  add(fmt::format("wire [{}:0] {}_sa = {};", address - 1, b, read_address(m, bank, ends.writer)));
  std::vector<std::string> of_writer, of_reader;
  for (int slot = 0; slot < memory.slots; ++slot) {
    const std::string mine =
        fmt::format("p{}_held{} && p{}_slot{} == 3'd{}", ends.writer, m, ends.writer, m, slot);
    add(fmt::format("wire {}_s{}_mine = {};", b, slot, mine));
    add(fmt::format("wire [{}:0] {}_s{}_ra = {}_s{}_mine ? {}_sa : {}_ra;", address - 1, b, slot, b,
                    slot, b, b));
    add(fmt::format("wire [{}:0] {}_s{}_q;", bits - 1, b, slot));
    add(
        fmt::format("fpga_bank #(.WIDTH({}), .ADDRESS({}), .WORDS({}), .LATENCY({})) {}_s{} "
                    "(.clk(clk), .write({}_we && {}_s{}_mine), .write_at({}), .in({}_in), "
                    ".read_at({}), .out({}_s{}_q));",
                    bits, address, memory.words, memory.read_latency, b, slot, b, b, slot,
                    in_block(memory, "", b + "_wa"), b,
                    in_block(memory, "", fmt::format("{}_s{}_ra", b, slot)), b, slot));
    for (const bool writer : {true, false})
      (writer ? of_writer : of_reader)
          .push_back(fmt::format("({{{}{{p{}_slot{} == 3'd{}}}}} & {}_s{}_q)", bits,
                                 writer ? ends.writer : ends.reader, m, slot, b, slot));
  }
  add(fmt::format("assign {}_q = {};", b, fmt::join(of_reader, " | ")));
  add(fmt::format("assign {}_qw = {};", b, fmt::join(of_writer, " | ")));
}

namespace {

bool has_floats(const Design& design) {
  for (const Process& process : design.processes)
    for (const Item& item : process.items)
      if (const auto* nest = std::get_if<Nest>(&item))
        for (const Node& node : nest->nodes)
          if (node.type.is_float()) return true;
  return false;
}

}  // namespace

std::string Generator::ports_text() const {
  std::string out;
  const int beat = design_.bus.beat_bytes;
  for (size_t p = 0; p < design_.ports.size(); ++p) {
    const bool writes = design_.ports[p].writes;
    const char a = writes ? 'w' : 'r';
    out += fmt::format(
        ",\n    output wire axi{0}_a{1}valid, input wire axi{0}_a{1}ready"
        ",\n    output wire [63:0] axi{0}_a{1}addr, output wire [7:0] axi{0}_a{1}len"
        ",\n    output wire [2:0] axi{0}_a{1}size, output wire [1:0] axi{0}_a{1}burst",
        p, a);
    out += writes ? fmt::format(
                        ",\n    output wire axi{0}_wvalid, input wire axi{0}_wready"
                        ",\n    output wire [{1}:0] axi{0}_wdata, output wire [{2}:0] axi{0}_wstrb"
                        ",\n    output wire axi{0}_wlast, input wire axi{0}_bvalid"
                        ",\n    output wire axi{0}_bready",
                        p, beat * 8 - 1, beat - 1)
                  : fmt::format(
                        ",\n    input wire axi{0}_rvalid, output wire axi{0}_rready"
                        ",\n    input wire [{1}:0] axi{0}_rdata, input wire axi{0}_rlast",
                        p, beat * 8 - 1);
  }
  return out;
}

/// The same ports, each connected to the wire of its name.
std::string Generator::connections_text() const {
  std::string out;
  for (size_t p = 0; p < design_.ports.size(); ++p) {
    const bool writes = design_.ports[p].writes;
    const char a = writes ? 'w' : 'r';
    for (const char* name : {"valid", "ready", "addr", "len", "size", "burst"})
      out += fmt::format(",\n      .axi{0}_a{1}{2}(axi{0}_a{1}{2})", p, a, name);
    const std::vector<const char*> data =
        writes ? std::vector{"wvalid", "wready", "wdata", "wstrb", "wlast", "bvalid", "bready"}
               : std::vector{"rvalid", "rready", "rdata", "rlast"};
    for (const char* name : data) out += fmt::format(",\n      .axi{0}_{1}(axi{0}_{1})", p, name);
  }
  return out;
}

Verilog Generator::run() {
  reads_.resize(design_.memories.size());
  stores_.resize(design_.memories.size());
  for (size_t m = 0; m < design_.memories.size(); ++m)
    for (int bank = 0; bank < design_.memories[m].banks; ++bank) {
      const int top = design_.memories[m].element.bits - 1;
      add(fmt::format("wire [{}:0] m{}_b{}_q;", top, m, bank));
      if (design_.memories[m].accumulated)
        add(fmt::format("wire [{}:0] m{}_b{}_qw;", top, m, bank));
    }
  for (size_t p = 0; p < design_.processes.size(); ++p)
    for (const bool data : {false, true})
      if (data || has_port(design_.processes[p]))
        add(fmt::format("reg [{}:0] p{}{}_at;", bits_for(control_of(p, data).states + 1) - 1, p,
                        data ? "" : "q"));
  for (size_t p = 0; p < design_.processes.size(); ++p) {
    if (has_port(design_.processes[p])) emit_control(control_of(p, false));
    emit_control(control_of(p, true));
  }
  for (size_t m = 0; m < design_.memories.size(); ++m) {
    add(fmt::format("// Memory {}.", design_.memories[m].name));
    for (int bank = 0; bank < design_.memories[m].banks; ++bank) emit_bank(m, bank);
  }
  std::vector<std::string> all = ended_;
  all.insert(all.end(), quiet_.begin(), quiet_.end());
  add(fmt::format("assign finished = {};", fmt::join(all, " && ")));

  Verilog out;
  out.text = fmt::format(
      "// {}, generated by Tilewright. Verilog-2005. Timing: "
      "docs/fpga-timing.md.\n",
      numbers_ == Numbers::Fixed ? design_.name : "A design");
  for (const auto& [name, text] : texts())
    if (name != "ice40" && (name != "float" || has_floats(design_))) out.text += text;
  const int arguments = std::max(1, design_.arguments);
  const size_t words = std::max<size_t>(1, table_.size());
  out.text += fmt::format(
      R"(// The design without its control: it runs while `run` is set.
module {} (
    input wire clk, input wire run, output wire finished,
    input wire [{}:0] arguments, input wire [{}:0] numbers{}
);
)",
      kKernel, 64 * arguments - 1, 32 * words - 1, ports_text());
  out.text += body_ + "endmodule\n";
  out.text += fmt::format(
      R"(// The design behind its control.
module {} #(
    parameter [31:0] IDENTITY = 32'd0
) (
    input wire clk, input wire reset,
    input wire s_awvalid, output wire s_awready, input wire [15:0] s_awaddr,
    input wire s_wvalid, output wire s_wready, input wire [31:0] s_wdata,
    output wire s_bvalid, input wire s_bready,
    input wire s_arvalid, output wire s_arready, input wire [15:0] s_araddr,
    output wire s_rvalid, input wire s_rready, output wire [31:0] s_rdata,
    output wire busy{}
);
  wire run, finished;
  assign busy = run;
  wire [{}:0] arguments;
  wire [{}:0] numbers;
  fpga_control #(.ARGUMENTS({}), .TABLE({}), .IDENTITY(IDENTITY)) control (
      .clk(clk), .reset(reset), .awvalid(s_awvalid), .awready(s_awready), .awaddr(s_awaddr),
      .wvalid(s_wvalid), .wready(s_wready), .wdata(s_wdata), .bvalid(s_bvalid), .bready(s_bready),
      .arvalid(s_arvalid), .arready(s_arready), .araddr(s_araddr), .rvalid(s_rvalid),
      .rready(s_rready), .rdata(s_rdata), .run(run), .finished(finished),
      .arguments(arguments), .numbers(numbers));
  {} kernel (
      .clk(clk), .run(run), .finished(finished), .arguments(arguments), .numbers(numbers){});
endmodule
)",
      kTop, ports_text(), 64 * arguments - 1, 32 * words - 1, arguments, words, kKernel,
      connections_text());
  out.table = std::move(table_);
  return out;
}

}  // namespace tilewright::fpga::rtl

namespace tilewright::fpga {

Status rtl_supports(const Design& design) {
  TW_TRY_STATUS(check_legal(design));
  for (const Process& process : design.processes)
    for (const Item& item : process.items) {
      const auto* nest = std::get_if<Nest>(&item);
      if (nest == nullptr) continue;
      for (const Node& node : nest->nodes) {
        if (node.inputs.empty() || node.op == Op::Select) continue;
        const bool from = nest->nodes[static_cast<size_t>(node.inputs[0])].type.is_float();
        const bool shift = node.op == Op::Shl || node.op == Op::Shr;
        if ((node.op == Op::Cast && from != node.type.is_float()) || (shift && from))
          return fail(ErrorKind::Unsupported,
                      fmt::format("the Verilog has no {} of {}", name(node.op), name(node.type)),
                      {}, "the C++ has it");
      }
    }
  return {};
}

Verilog verilog(const Design& design, Numbers numbers) {
  return rtl::Generator(design, numbers).run();
}

}  // namespace tilewright::fpga
