// Nests that ask a port for bursts: the address, the length and what is left out of each row.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/fpga/rtl/generator.h"

namespace tilewright::fpga::rtl {

/// What the requests of a nest know of a row, in as few bits as there can be.
RowText Generator::row_text(const ControlText& control, size_t item) {
  const Nest& nest = nest_of(control, item);
  const Stream& stream = nest.stream;
  const int64_t groups = nest.extents.back(), group = stream.group_bytes();
  const int64_t beat = design_.bus.beat_bytes;
  const Value address = affine(control, item, stream.address);
  const Value clip =
      stream.clipped ? affine(control, item, stream.ranges[0].value) : Value{"", {}, 0, 0};
  const int64_t limit = stream.clipped ? stream.ranges[0].extent : 0;
  RowText row;
  row.address_bits = width(0, address.high + groups * group + beat);
  // Signed, with room for the groups that are left to the limit.
  row.clip_bits = width(std::min(clip.low, limit - clip.high) - 1,
                        std::max({clip.high, limit - clip.low, -clip.low, groups}));
  // A row that begins in the middle of a beat reaches into one more.
  row.beats_bits = std::min(31, width(0, (groups - 1) * group / beat + (group < beat ? 2 : 1)));
  row.address = sized(address, row.address_bits);
  row.clip = sized(clip, row.clip_bits);
  row.groups = sized(number(groups), row.clip_bits);
  row.limit = sized(number(limit), row.clip_bits);
  return row;
}

void Generator::emit_requests(const ControlText& control, size_t item) {
  const Nest& nest = nest_of(control, item);
  const Stream& stream = nest.stream;
  const std::string n = nest_name(control, item);
  const Port& port = design_.ports[static_cast<size_t>(stream.port)];
  const int p = stream.port, beat = design_.bus.beat_bytes;
  const char a = port.writes ? 'w' : 'r';
  const std::vector<int64_t> levels = levels_of(control, nest);
  const int bits = emit_counters(n, levels);
  const size_t own = stream.clipped ? 1 : 0;
  const std::string inside = in_ranges(
      control, item, {stream.ranges.begin() + static_cast<int64_t>(own), stream.ranges.end()});
  const RowText row = row_text(control, item);
  add(fmt::format("wire [31:0] {}_burst;", n));
  add(fmt::format("wire {}_quiet;", n));
  add(fmt::format(
      "fpga_requests #(.LEVELS({}), .WIDTH({}), .ADDRESS({}), .CLIP({}), .BEATS({}), .BEAT({}), "
      ".LOG_BEAT({}), .BURST({}), .OUTSTANDING({}), .GROUP({}), .CLIPPED({})) {}_of (.clk(clk), "
      ".reset(!run), .here(run && {}_at == {}), "
      ".extents({}_extents), .groups({}), .address({}), .row_moves({}), .clip_value({}), "
      ".clip_extent({}), .start({}_start), .advance({}_advance), .step({}_step), .done({}_done), "
      ".valid(axi{}_a{}valid), .ready(axi{}_a{}ready), .burst_address({}_burst), "
      ".burst_length(axi{}_a{}len), .finished({}), .quiet({}_quiet));",
      levels.size(), bits, row.address_bits, row.clip_bits, row.beats_bits, beat, log2_of(beat),
      design_.bus.burst_beats, design_.bus.outstanding, stream.group_bytes(),
      stream.clipped ? 1 : 0, n, control.prefix, state_text(control, control.state[item]), n,
      row.groups, row.address, inside, row.clip, row.limit, n, n, n, n, p, a, p, a, n, p, a,
      port.writes ? fmt::format("axi{}_bvalid", p)
                  : fmt::format("axi{}_rvalid && axi{}_rready && axi{}_rlast", p, p, p),
      n));
  add(fmt::format("assign axi{}_a{}addr = arguments[{}+:64] + {{32'd0, {}_burst}};", p, a,
                  64 * port.argument, n));
  add(fmt::format("assign axi{}_a{}size = 3'd{}, axi{}_a{}burst = 2'd1;", p, a, log2_of(beat), p,
                  a));
  quiet_.push_back(n + "_quiet");
}

}  // namespace tilewright::fpga::rtl
