// Nests: counters, affine values, operators, accesses to banks, streams of ports.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include "tilewright/accel/fpga/rtl/generator.h"

namespace tilewright::fpga::rtl {

std::string nest_name(const ControlText& control, size_t item) {
  return fmt::format("{}_n{}", control.prefix, item);
}
const Nest& nest_of(const ControlText& control, size_t item) {
  return std::get<Nest>(control.program.items[item]);
}
int log2_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

std::vector<int64_t> levels_of(const ControlText& control, const Nest& nest) {
  std::vector<int64_t> levels = nest.extents;
  if (!control.data) levels.pop_back();
  if (levels.empty()) levels.push_back(1);
  return levels;
}

std::string extended(const std::string& wire, const Number& from, int width) {
  if (width == from.bits) return wire;
  if (width < from.bits) return fmt::format("{}[{}:0]", wire, width - 1);
  const int more = width - from.bits;
  if (from.is_signed())
    return fmt::format("{{{{{}{{{}[{}]}}}}, {}}}", more, wire, from.bits - 1, wire);
  return fmt::format("{{{}'d0, {}}}", more, wire);
}

/// The affine value as a wire that is right when the iteration (or row) begins. Of a wider one only
/// the lowest `most_bits` are there.
Value Generator::affine(const ControlText& control, size_t item, const Affine& a, int most_bits) {
  if (a.is_constant()) return number(a.constant);
  const std::string nest = nest_name(control, item);
  const std::string key = fmt::format("{} {} {} {} {}", nest, a.constant, fmt::join(a.loops, ","),
                                      fmt::join(a.counters, ","), most_bits);
  if (numbers_ == Numbers::Fixed && affines_.contains(key)) return affines_.at(key);
  Value value;
  if (numbers_ == Numbers::Fixed) {
    value.low = value.high = a.constant;
    const auto add_term = [&](int64_t of, int64_t extent) {
      (of < 0 ? value.low : value.high) += of * (extent - 1);
    };
    const std::vector<int64_t> levels = levels_of(control, nest_of(control, item));
    const std::vector<int>& around = control.around[item];
    for (size_t k = 0; k < std::min(levels.size(), a.counters.size()); ++k)
      add_term(a.counters[k], levels[k]);
    for (size_t k = 0; k < std::min(around.size(), a.loops.size()); ++k)
      add_term(a.loops[k], control.loop_extents[static_cast<size_t>(around[k])]);
    if (value.is_constant()) return affines_[key] = value;
    const bool negative = value.low < 0;
    value.type = {negative ? Number::Kind::Signed : Number::Kind::Unsigned,
                  width(value.low, value.high)};
    if (value.type.bits > most_bits) {
      value.type = {Number::Kind::Unsigned, most_bits};
      value.low = 0;
      value.high = (int64_t{1} << most_bits) - 1;
    }
  }
  value.wire = affine_module(control, item, a, value.type.bits);
  if (numbers_ == Numbers::Fixed) affines_[key] = value;
  return value;
}

/// The module that keeps the lowest `bits` of an affine value; its output's wire.
std::string Generator::affine_module(const ControlText& control, size_t item, const Affine& a,
                                     int bits) {
  const std::string nest = nest_name(control, item);
  const std::vector<int64_t> levels = levels_of(control, nest_of(control, item));
  std::vector<std::string> deltas, loop_deltas, loop_backs;
  int64_t inner = 0;  // what the counters further in have added
  for (size_t k = levels.size(); k-- > 0;) {
    const int64_t of = k < a.counters.size() ? a.counters[k] : 0;
    deltas.insert(deltas.begin(), word(of - inner, bits));
    inner += of * (levels[k] - 1);
  }
  std::vector<std::string> steps, exits;
  const std::vector<int>& around = control.around[item];
  for (size_t k = 0; k < around.size(); ++k) {
    const int64_t of = k < a.loops.size() ? a.loops[k] : 0;
    if (of == 0 && numbers_ == Numbers::Fixed) continue;
    const int64_t extent = control.loop_extents[static_cast<size_t>(around[k])];
    loop_deltas.push_back(word(of, bits));
    loop_backs.push_back(word(-of * (extent - 1), bits));
    steps.push_back(fmt::format("{}_step[{}]", control.prefix, around[k]));
    exits.push_back(fmt::format("{}_exit[{}]", control.prefix, around[k]));
  }
  if (steps.empty()) loop_deltas = loop_backs = {word(0, bits)}, steps = exits = {"1'b0"};
  const std::string name = fmt::format("{}_a{}", nest, names_++);
  add(fmt::format("wire [{}:0] {};", bits - 1, name));
  add(fmt::format(
      "fpga_affine #(.LOOPS({}), .LEVELS({}), .WIDTH({})) {}_of (.clk(clk), .reset(!run), "
      ".constant({}), "
      ".loop_step({{{}}}), .loop_exit({{{}}}), .loop_deltas({{{}}}), .loop_backs({{{}}}), "
      ".start({}_start), .advance({}_advance), .step({}_step), .deltas({{{}}}), .value({}));",
      steps.size(), levels.size(), bits, name, word(a.constant, bits), fmt::join(steps, ", "),
      fmt::join(exits, ", "), fmt::join(loop_deltas, ", "), fmt::join(loop_backs, ", "), nest, nest,
      nest, fmt::join(deltas, ", "), name));
  return name;
}

std::string Generator::in_ranges(const ControlText& control, size_t item,
                                 const std::vector<Range>& ranges) {
  std::vector<std::string> all;
  for (const Range& range : ranges) {
    const Value value = affine(control, item, range.value);
    if (value.low >= 0 && value.high < range.extent) continue;
    if (value.high < 0 || value.low >= range.extent) return "1'b0";
    const int bits = value.type.bits;
    // A negative value has its highest bit set, and so is as large as no extent is.
    if (value.high < range.extent)
      all.push_back(fmt::format("!{}[{}]", value.wire, bits - 1));
    else
      all.push_back(fmt::format("{} < {}", sized(value, bits), word(range.extent, bits)));
  }
  if (all.empty()) return "1'b1";
  const std::string name = fmt::format("{}_f{}", nest_name(control, item), names_++);
  add(fmt::format("wire {} = {};", name, fmt::join(all, " && ")));
  return name;
}

std::string Generator::delayed(const std::string& wire, int bits, int cycles) {
  const bool constant = wire.find('\'') != std::string::npos || wire.rfind("numbers[", 0) == 0;
  if (cycles == 0 || constant) return wire;
  const auto [found, first] = delays_.try_emplace({wire, cycles});
  if (!first) return found->second;
  const std::string name = fmt::format("d{}", names_++);
  found->second = name;
  add(fmt::format("wire [{}:0] {};", bits - 1, name));
  add(fmt::format("fpga_delay #(.WIDTH({}), .DELAY({})) {}_of (.clk(clk), .in({}), .out({}));",
                  bits, cycles, name, wire, name));
  return name;
}

Value Generator::delayed(const Value& value, int cycles) {
  Value later = value;
  if (!value.is_constant()) later.wire = delayed(value.wire, value.type.bits, cycles);
  return later;
}

/// Reads the bank when the iteration is `issue` cycles old.
std::string Generator::emit_read(const ControlText& control, size_t item, const Node& node,
                                 int issue) {
  const auto m = static_cast<size_t>(node.place.memory);
  const Memory& memory = design_.memories[m];
  const bool writer =
      memory.slots > 0 && ends_of(design_, node.place.memory).writer == control.process;
  const char* side = writer && memory.accumulated ? "qw" : "q";
  BankUse use;
  use.process = control.process;
  use.valid = delayed(nest_name(control, item) + "_issue", 1, issue);
  use.word = sized(delayed(affine(control, item, node.place.word), issue), bits_for(memory.words));
  if (node.place.bank.is_constant()) {
    use.fixed_bank = node.place.bank.constant;
    reads_[m].push_back(use);
    return fmt::format("m{}_b{}_{}", m, use.fixed_bank, side);
  }
  const int bits = bits_for(memory.banks);
  const Value bank = affine(control, item, node.place.bank);
  use.bank = sized(delayed(bank, issue), bits);
  reads_[m].push_back(use);
  const std::string chosen = sized(delayed(bank, issue + memory.read_latency), bits);
  std::vector<std::string> all;
  for (int b = 0; b < memory.banks; ++b)
    all.push_back(fmt::format("({{{}{{{} == {}'d{}}}}} & m{}_b{}_{})", memory.element.bits, chosen,
                              bits, b, m, b, side));
  return fmt::format("{}", fmt::join(all, " | "));
}

std::string Generator::emit_node(const ControlText& control, size_t item, const NestTimes& times,
                                 size_t n) {
  const Nest& nest = nest_of(control, item);
  const Node& node = nest.nodes[n];
  const std::string name = fmt::format("{}_v{}", nest_name(control, item), n);
  const int bits = node.type.bits;
  const auto is = [&](const std::string& value) {
    add(fmt::format("wire [{}:0] {} = {};", bits - 1, name, value));
    return name;
  };
  if (node.op == Op::Const) {
    if (node.varies && numbers_ == Numbers::Table)
      return is(word(static_cast<int64_t>(node.bits), bits));
    const uint64_t value = bits >= 64 ? node.bits : node.bits & ((uint64_t{1} << bits) - 1);
    return is(fmt::format("{}'h{:x}", bits, value));
  }
  if (node.op == Op::Flag)
    return is(delayed(in_ranges(control, item, node.ranges), 1, node.latency));
  if (node.op == Op::Read) return is(emit_read(control, item, node, times.issue[n]));
  if (node.op == Op::Stream) {
    const std::string nest_prefix = nest_name(control, item);
    const int from = node.lane * nest.stream.element.bytes() * 8;
    add(fmt::format("wire [{}:0] {}_now = {}_inside ? {}_group[{}+:{}] : {}'d0;", bits - 1, name,
                    nest_prefix, nest_prefix, from, bits, bits));
    return is(delayed(name + "_now", bits, node.latency));
  }
  add(fmt::format("wire [{}:0] {};", bits - 1, name));
  if (emit_in_pair(control, item, times, n)) return name;
  if (is_narrow_product(nest, n)) {
    const auto narrow = [&](size_t input) {
      return nest.nodes[static_cast<size_t>(node.inputs[input])].inputs[0];
    };
    add(narrow_product(name, node, nest.nodes[static_cast<size_t>(narrow(0))].type,
                       input_of(nest, times, n, narrow(0)), input_of(nest, times, n, narrow(1))));
    return name;
  }
  std::vector<std::string> in;
  for (const int input : node.inputs) in.push_back(input_of(nest, times, n, input));
  add(emit_operator(name, nest, node, in));
  return name;
}

/// The value of node `input` when node `n` works.
std::string Generator::input_of(const Nest& nest, const NestTimes& times, size_t n, int input) {
  const auto i = static_cast<size_t>(input);
  if (nest.nodes[i].op == Op::Const) return values_[i];
  return delayed(values_[i], nest.nodes[i].type.bits, times.issue[n] - times.ready[i]);
}

/// Whether node `n` is one of a pair of products; with the second one the module for both is there.
bool Generator::emit_in_pair(const ControlText& control, size_t item, const NestTimes& times,
                             size_t n) {
  const Nest& nest = nest_of(control, item);
  const auto is = [n](int node) { return static_cast<size_t>(node) == n; };
  const auto pair = std::find_if(pairs_.begin(), pairs_.end(),
                                 [&](const ProductPair& p) { return is(p.first) || is(p.second); });
  if (pair == pairs_.end()) return false;
  if (is(pair->first)) return true;
  const auto type = [&](int node) { return nest.nodes[static_cast<size_t>(node)].type; };
  const int other = std::max(signed_bits(type(pair->a)), signed_bits(type(pair->b)));
  const int common = signed_bits(type(pair->common));
  const auto operand = [&](int node, int width) {
    return extended(input_of(nest, times, n, node), type(node), width);
  };
  const std::string prefix = nest_name(control, item);
  add(
      fmt::format("fpga_mul_pair #(.A({}), .B({}), .WIDTH({}), .LATENCY({})) {}_pair{} "
                  "(.clk(clk), .a({}), .b({}), .common({}), .a_out({}_v{}), .b_out({}_v{}));",
                  other, common, nest.nodes[n].type.bits, nest.nodes[n].latency, prefix, n,
                  operand(pair->a, other), operand(pair->b, other), operand(pair->common, common),
                  prefix, pair->first, prefix, pair->second));
  return true;
}

void Generator::emit_stores(const ControlText& control, size_t item, const NestTimes& times) {
  const Nest& nest = nest_of(control, item);
  for (size_t s = 0; s < nest.stores.size(); ++s) {
    const Store& store = nest.stores[s];
    const int at = times.store[s];
    BankUse use;
    use.process = control.process;
    use.valid = delayed(nest_name(control, item) + "_issue", 1, at);
    if (!store.ranges.empty())
      use.valid = fmt::format("({} && {})", use.valid,
                              delayed(in_ranges(control, item, store.ranges), 1, at));
    const auto node = static_cast<size_t>(store.node);
    const auto& memory = design_.memories[static_cast<size_t>(store.place.memory)];
    use.word = sized(delayed(affine(control, item, store.place.word), at), bits_for(memory.words));
    use.fixed_bank = store.place.bank.constant;
    if (!store.place.bank.is_constant())
      use.bank =
          sized(delayed(affine(control, item, store.place.bank), at), bits_for(memory.banks));
    use.data = extended(values_[node], nest.nodes[node].type, memory.element.bits);
    stores_[static_cast<size_t>(store.place.memory)].push_back(use);
  }
}

/// Whether the iteration that could begin now is the last one in the range.
std::string Generator::is_last_in(const ControlText& control, size_t item, const Range& range) {
  const Value value = affine(control, item, range.value);
  if (numbers_ == Numbers::Table)
    return fmt::format("{} + 32'd1 == {}", sized(value, 32), word(range.extent));
  if (value.high < range.extent - 1 || value.is_constant())
    return value.low == range.extent - 1 ? "1'b1" : "1'b0";
  const int bits = value.type.bits;
  return fmt::format("{} == {}", sized(value, bits), word(range.extent - 1, bits));
}

/// What the nest's port and its address say in the iteration that could begin now.
void Generator::emit_stream(const ControlText& control, size_t item) {
  const Nest& nest = nest_of(control, item);
  const Stream& stream = nest.stream;
  const std::string n = nest_name(control, item);
  const int beat = design_.bus.beat_bytes, group = stream.group_bytes();
  const std::string inside = in_ranges(control, item, stream.ranges);
  add(fmt::format("wire {}_inside = {};", n, inside));
  const int log_beat = log2_of(beat);
  const std::string low =
      log_beat == 0 ? "" : ", " + sized(affine(control, item, stream.address, log_beat), log_beat);
  add(fmt::format("wire [{}:0] {}_place = {{1'b0{}}};", log_beat, n, low));
  std::string ends =
      fmt::format("{}_row_end || {}_place == {}'d{}", n, n, log_beat + 1, beat - group);
  if (stream.clipped) ends += " || " + is_last_in(control, item, stream.ranges[0]);
  add(fmt::format("wire {}_ends_beat = {};", n, ends));
  if (design_.ports[static_cast<size_t>(stream.port)].writes) {
    add(fmt::format("wire {}_go = !{}_inside || {}_room;", n, n, n));
    return;
  }
  const int p = stream.port;
  add(fmt::format("wire {}_go = !{}_inside || axi{}_rvalid;", n, n, p));
  add(fmt::format("wire [{}:0] {}_group = axi{}_rdata[{{{}_place[{}:0], 3'd0}}+:{}];",
                  group * 8 - 1, n, p, n, std::max(0, log_beat - 1), group * 8));
  add(fmt::format("assign axi{}_rready = {}_wants && {}_inside && {}_ends_beat && axi{}_rvalid;", p,
                  n, n, n, p));
}

void Generator::emit_writes(const ControlText& control, size_t item, const NestTimes& times) {
  const Nest& nest = nest_of(control, item);
  const Stream& stream = nest.stream;
  const std::string n = nest_name(control, item);
  const int p = stream.port, beat = design_.bus.beat_bytes, bits = stream.element.bytes() * 8;
  std::vector<std::string> lanes;  // the first is in the lowest bits
  for (const int lane : stream.nodes) {
    const auto node = static_cast<size_t>(lane);
    const std::string value =
        delayed(values_[node], nest.nodes[node].type.bits, times.stream - times.ready[node]);
    lanes.insert(lanes.begin(), extended(value, nest.nodes[node].type, bits));
  }
  add(fmt::format("wire {}_issued = {}_issue && {}_inside;", n, n, n));
  const std::string arrives = delayed(n + "_issued", 1, times.stream);
  const std::string place = delayed(n + "_place", log2_of(beat) + 1, times.stream);
  const std::string ends = delayed(n + "_ends_beat", 1, times.stream);
  add(fmt::format(
      "fpga_write_port #(.BEAT({}), .LOG_BEAT({}), .GROUP({}), .DEPTH({}), .BURSTS({})) {}_port "
      "(.clk(clk), .reset(!run), .issued({}_issued), .room({}_room), .arrives({}), "
      ".group({{{}}}), .place({}[{}:0]), .ends_beat({}), "
      ".burst(axi{}_awvalid && axi{}_awready), .burst_length(axi{}_awlen), .valid(axi{}_wvalid), "
      ".ready(axi{}_wready), .data(axi{}_wdata), .strobe(axi{}_wstrb), .last(axi{}_wlast));",
      beat, log2_of(beat), stream.group_bytes(), design_.bus.write_fifo, design_.bus.outstanding, n,
      n, n, arrives, fmt::join(lanes, ", "), place, log2_of(beat), ends, p, p, p, p, p, p, p, p));
  add(fmt::format("assign axi{}_bready = 1'b1;", p));
}

/// The bits of each counter.
int Generator::emit_counters(const std::string& n, const std::vector<int64_t>& levels) {
  const int bits = width(0, *std::max_element(levels.begin(), levels.end()));
  std::vector<std::string> extents;
  for (const int64_t extent : levels) extents.push_back(word(extent, bits));
  add(fmt::format("wire {}_start, {}_advance;", n, n));
  add(fmt::format("wire [{}:0] {}_step;", levels.size() - 1, n));
  add(fmt::format("wire [{}:0] {}_extents = {{{}}};", static_cast<size_t>(bits) * levels.size() - 1,
                  n, fmt::join(extents, ", ")));
  return bits;
}

void Generator::emit_nest(const ControlText& control, size_t item) {
  const Nest& nest = nest_of(control, item);
  const std::string n = nest_name(control, item);
  const NestTimes times = times_of(design_, nest);
  const bool streams = nest.stream.port >= 0;
  add(fmt::format("// Nest {}.", nest.name));
  const int bits = emit_counters(n, nest.extents);
  add(fmt::format("wire {}_issue, {}_wants, {}_row_end, {}_room;", n, n, n, n));
  if (!streams || !design_.ports[static_cast<size_t>(nest.stream.port)].writes)
    add(fmt::format("assign {}_room = 1'b1;", n));
  add(fmt::format("assign {}_advance = {}_issue;", n, n));
  if (streams) emit_stream(control, item);
  add(fmt::format(
      "fpga_nest #(.LEVELS({}), .WIDTH({}), .II({}), .DRAIN({})) {}_control (.clk(clk), "
      ".reset(!run), .here(run && {}_at == {}), .go({}), .extents({}_extents), .start({}_start), "
      ".wants({}_wants), .issue({}_issue), .step({}_step), .row_end({}_row_end), .done({}_done));",
      nest.extents.size(), bits, nest.ii, nest.ii + times.last, n, control.prefix,
      state_text(control, control.state[item]), streams ? n + "_go" : "1'b1", n, n, n, n, n, n, n));
  values_.clear();
  pairs_ = product_pairs(design_, nest, times);
  const std::vector<bool> left_out = widened_in_products(nest);
  for (size_t k = 0; k < nest.nodes.size(); ++k)
    values_.push_back(left_out[k] ? std::string() : emit_node(control, item, times, k));
  emit_stores(control, item, times);
  if (streams && !nest.stream.nodes.empty()) emit_writes(control, item, times);
}

}  // namespace tilewright::fpga::rtl
