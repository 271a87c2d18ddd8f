#include "tilewright/accel/vta/config.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "tilewright/accel/vta/isa.h"
#include "tilewright/base/check.h"
#include "tilewright/base/names.h"
#include "tilewright/base/unknown_name.h"

namespace tilewright::vta {
namespace {

constexpr int kMaxLogDepth = 16;  // the `sram` field of LOAD and STORE has 16 bits

/// Problems of one configuration, gathered into one Error.
class Problems {
 public:
  /// `field`: the key whose value is wrong, if it is one; it becomes the place.
  void add(std::string what, std::string why = {}, std::string fix = {}, std::string field = {}) {
    errors_.push_back(Error{
        ErrorKind::Invalid, std::move(what), std::move(field), std::move(why), std::move(fix), {}});
  }
  bool empty() const { return errors_.empty(); }
  Status status() {
    if (errors_.empty()) return {};
    Error first = std::move(errors_.front());
    first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                        std::make_move_iterator(errors_.end()));
    return tl::unexpected<Error>(std::move(first));
  }

 private:
  std::vector<Error> errors_;
};

struct Limit {
  std::string_view field;
  int value, low, high;
};

void check_limits(std::initializer_list<Limit> limits, Problems& problems) {
  for (const Limit& limit : limits)
    if (limit.value < limit.low || limit.value > limit.high)
      problems.add(fmt::format("`{}` is {}, but must be in {}..{}", limit.field, limit.value,
                               limit.low, limit.high),
                   {}, {}, std::string(limit.field));
}

void check_ranges(const Config& c, Problems& problems) {
  check_limits({{"log_inp_width", c.log_inp_width, 0, 4},
                {"log_wgt_width", c.log_wgt_width, 0, 4},
                {"log_acc_width", c.log_acc_width, 5, 5},
                {"log_out_width", c.log_out_width, 0, 5},
                {"log_batch", c.log_batch, 0, 12},
                {"log_block_in", c.log_block_in, 0, 12},
                {"log_block_out", c.log_block_out, 0, 12},
                {"log_uop_buff", c.log_uop_buff, 0, 30},
                {"log_inp_buff", c.log_inp_buff, 0, 30},
                {"log_wgt_buff", c.log_wgt_buff, 0, 30},
                {"log_acc_buff", c.log_acc_buff, 0, 30}},
               problems);
  if (!(c.clock_mhz > 0 && c.clock_mhz < 1e6))
    problems.add(fmt::format("`clock_mhz` is {}, but must be above 0 and below 1e6", c.clock_mhz),
                 {}, {}, "clock_mhz");
}

bool power_of_two(int value) { return value > 0 && (value & (value - 1)) == 0; }

void check_timing(const Timing& t, Problems& problems) {
  constexpr int kMany = 1'000'000;
  check_limits({{"timing.bus_bytes", t.bus_bytes, 8, 64},
                {"timing.max_burst_beats", t.max_burst_beats, 1, 256},
                {"timing.read_latency", t.read_latency, 1, kMany},
                {"timing.burst_gap", t.burst_gap, 0, kMany},
                {"timing.load_overhead", t.load_overhead, 2, kMany},
                {"timing.store_element_extra", t.store_element_extra, 0, kMany},
                {"timing.store_row_overhead", t.store_row_overhead, 0, kMany},
                {"timing.gemm_overhead", t.gemm_overhead, 2, kMany},
                {"timing.gemm_ii", t.gemm_ii, 1, kMany},
                {"timing.alu_overhead", t.alu_overhead, 2, kMany},
                {"timing.alu_imm_ii", t.alu_imm_ii, 1, kMany},
                {"timing.alu_reg_ii", t.alu_reg_ii, 1, kMany},
                {"timing.loop_fill", t.loop_fill, 0, kMany},
                {"timing.finish", t.finish, 2, kMany},
                {"timing.empty", t.empty, 2, kMany},
                {"timing.token_latency", t.token_latency, 1, kMany},
                {"timing.fetch_batch", t.fetch_batch, 1, kMany},
                {"timing.command_queue", t.command_queue, 1, kMany}},
               problems);
  if (!power_of_two(t.bus_bytes))
    problems.add(fmt::format("`timing.bus_bytes` is {}, but must be 8, 16, 32 or 64", t.bus_bytes),
                 {}, {}, "timing.bus_bytes");
  if (!power_of_two(t.max_burst_beats))
    problems.add(fmt::format("`timing.max_burst_beats` is {}, but must be a power of two",
                             t.max_burst_beats),
                 {}, {}, "timing.max_burst_beats");
}

void check_elements(const Config& c, Problems& problems) {
  struct Tile {
    Mem mem;
    int log_bits;
    std::string_view fix;
  };
  const Tile tiles[] = {
      {Mem::Inp, c.log_batch + c.log_block_in + c.log_inp_width, "log_block_in or log_inp_width"},
      {Mem::Wgt, c.log_block_out + c.log_block_in + c.log_wgt_width, "the blocks or log_wgt_width"},
      {Mem::Acc, c.log_batch + c.log_block_out + c.log_acc_width, "log_batch or log_block_out"},
      {Mem::Out, c.log_batch + c.log_block_out + c.log_out_width, "log_block_out or log_out_width"},
  };
  for (const Tile& tile : tiles) {
    if (tile.log_bits < 3)
      problems.add(fmt::format("an element of {} has {} bits, less than one byte", name(tile.mem),
                               1 << tile.log_bits),
                   {}, fmt::format("raise {}", tile.fix));
    else if ((uint64_t{1} << (tile.log_bits - 3)) > kPage)
      problems.add(fmt::format("an element of {} has {} bytes, more than a page of {}",
                               name(tile.mem), int64_t{1} << (tile.log_bits - 3), kPage),
                   {}, fmt::format("lower {}", tile.fix));
  }
}

void check_depths(const Config& c, Problems& problems) {
  constexpr std::pair<Mem, std::string_view> kBuffers[] = {{Mem::Uop, "log_uop_buff"},
                                                           {Mem::Inp, "log_inp_buff"},
                                                           {Mem::Wgt, "log_wgt_buff"},
                                                           {Mem::Acc, "log_acc_buff"}};
  for (const auto& [mem, field] : kBuffers) {
    const int depth = c.log_depth(mem);
    if (depth < 1)
      problems.add(fmt::format("{} has room for less than two elements", name(mem)),
                   fmt::format("an element has {} bytes", c.element_bytes(mem)),
                   fmt::format("raise {} by {}", field, 1 - depth));
    else if (depth > kMaxLogDepth)
      problems.add(fmt::format("{} has 2^{} elements, but field `sram` of LOAD and STORE has only "
                               "{} bits: it overflows by {}",
                               name(mem), depth, kMaxLogDepth, depth - kMaxLogDepth),
                   {}, fmt::format("lower {} by {}", field, depth - kMaxLogDepth));
  }
}

void check_encoding(const Config& c, Problems& problems) {
  const std::string depths =
      fmt::format("log2 elements: uop {}, inp {}, wgt {}, acc {}", c.log_depth(Mem::Uop),
                  c.log_depth(Mem::Inp), c.log_depth(Mem::Wgt), c.log_depth(Mem::Acc));
  constexpr std::pair<std::string_view, std::string_view> kForms[] = {
      {"gemm", "a GEMM instruction"}, {"alu", "an ALU instruction"}, {"uop", "a micro-op"}};
  for (const auto& [form, text] : kForms) {
    const int limit = form == "uop" ? 32 : 128, last_word = form == "uop" ? 0 : 64;
    int excess = last_word - limit;  // of the fields in the last word, wherever they end up
    std::string_view first;
    for (const FieldInfo& field : field_layout(c, form)) {
      if (field.begin >= last_word) excess += field.width;
      if (first.empty() && field.begin + field.width > limit) first = field.name;
    }
    if (!first.empty())
      problems.add(fmt::format("field `{}` of {} overflows its {} bits: {} {} too many", first,
                               text, limit, excess, excess == 1 ? "bit" : "bits"),
                   depths, "make the uop, inp, wgt or acc buffer smaller");
  }
}

Config named(std::string name) {
  Config config;
  config.name = std::move(name);
  return config;
}

/// The Pynq implementation of the VTA paper: half the micro-op memory of the published default.
Config vta_paper() {
  Config config = named("vta-paper");
  config.log_uop_buff = 14;
  return config;
}

/// VDLA of the TVM paper, section 6.4: 16 x 16 unit at 200 MHz, 32 kB activations, 32 kB
/// parameters, 32 kB microcode, 128 kB registers.
Config vdla() {
  Config config = named("vdla");
  config.log_wgt_buff = 15;
  config.clock_mhz = 200;
  return config;
}

/// Default sizes with every extension and a 512-bit memory port.
Config vta_extended() {
  Config config = named("vta-extended");
  config.extensions = {true, true, true};
  config.timing.preset = "custom";
  config.timing.bus_bytes = 64;
  config.timing.alu_reg_ii = 1;
  return config;
}

/// The open HLS source on a Pynq. Only the micro-op loop is pipelined, so each inner iteration
/// fills and drains it: read a micro-op, form addresses, read operands, then the three cycles
/// between read and write of an accumulator that its hazard rule shows. ALU: II 2 in both forms.
/// Store: a copy loop at one beat per cycle. The vendor tool is needed to measure any of this.
/// source: the HLS design of the public hardware repository (docs/vta.md).
Timing hls_pynq() {
  Timing timing;
  timing.preset = "hls-pynq";
  timing.loop_fill = 6;
  timing.alu_imm_ii = 2;
  timing.alu_reg_ii = 2;
  timing.store_element_extra = 0;
  return timing;
}

struct Builtin {
  std::string_view name;
  Config (*make)();
};
constexpr Builtin kBuiltins[] = {{"vta", [] { return named("vta"); }},
                                 {"vta-paper", vta_paper},
                                 {"vdla", vdla},
                                 {"vta-extended", vta_extended}};

}  // namespace

int64_t Config::element_scalars(Mem mem) const {
  switch (mem) {
    case Mem::Uop:
      return 1;
    case Mem::Wgt:
      return int64_t{1} << (log_block_out + log_block_in);
    case Mem::Inp:
      return int64_t{1} << (log_batch + log_block_in);
    case Mem::Acc:
    case Mem::Out:
    case Mem::Acc8:
      return int64_t{1} << (log_batch + log_block_out);
  }
  TW_CHECK(false, "memory {}", static_cast<int>(mem));
}

int64_t Config::element_bytes(Mem mem) const {
  switch (mem) {
    case Mem::Uop:
      return 4;
    case Mem::Wgt:
      return (element_scalars(mem) << log_wgt_width) / 8;
    case Mem::Inp:
      return (element_scalars(mem) << log_inp_width) / 8;
    case Mem::Acc:
      return (element_scalars(mem) << log_acc_width) / 8;
    case Mem::Out:
      return (element_scalars(mem) << log_out_width) / 8;
    case Mem::Acc8:
      return (element_scalars(mem) << log_acc_width) / 32;
  }
  TW_CHECK(false, "memory {}", static_cast<int>(mem));
}

int Config::log_depth(Mem mem) const {
  switch (mem) {
    case Mem::Uop:
      return log_uop_buff - 2;
    case Mem::Inp:
      return log_inp_buff - log_batch - log_block_in - log_inp_width + 3;
    case Mem::Wgt:
      return log_wgt_buff - log_block_out - log_block_in - log_wgt_width + 3;
    case Mem::Acc:
    case Mem::Out:
    case Mem::Acc8:
      return log_acc_buff - log_batch - log_block_out - log_acc_width + 3;
  }
  TW_CHECK(false, "memory {}", static_cast<int>(mem));
}

bool Config::operator==(const Config&) const = default;

bool same_architecture(const Config& a, const Config& b) {
  Config same = b;
  same.name = a.name;
  same.clock_mhz = a.clock_mhz;
  same.timing = a.timing;
  same.extensions.pipelined_alu = a.extensions.pipelined_alu;
  return same == a;
}

Result<Timing> timing_preset(const std::string& preset) {
  if (preset == "chisel-64") return Timing{};
  if (preset == "hls-pynq") return hls_pynq();
  return fail(ErrorKind::Usage, fmt::format("there is no timing preset '{}'", preset),
              fmt::format("the presets are {}", fmt::join(timing_presets(), ", ")),
              did_you_mean(preset, timing_presets()));
}

std::vector<std::string> timing_presets() { return {"chisel-64", "hls-pynq"}; }

Status check(const Config& config) {
  Problems problems;
  check_timing(config.timing, problems);
  check_ranges(config, problems);
  if (!problems.empty()) return problems.status();  // sizes below are shifts by these values
  check_elements(config, problems);
  check_depths(config, problems);
  check_encoding(config, problems);
  return problems.status();
}

std::vector<std::string> builtin_configs() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

Result<Config> builtin_config(const std::string& name) {
  for (const Builtin& builtin : kBuiltins)
    if (builtin.name == name) return builtin.make();
  return unknown_name(fmt::format("there is no VTA configuration '{}'", name), name,
                      builtin_configs());
}

std::string label(const Config& c) {
  std::string tile = fmt::format("{}x{}", c.batch(), c.block_in());
  if (c.log_block_in != c.log_block_out) tile += fmt::format("x{}", c.block_out());
  std::string widths = fmt::format("i{}w{}a{}", c.inp_bits(), c.wgt_bits(), c.acc_bits());
  if (c.log_out_width != c.log_inp_width) widths += fmt::format("o{}", c.out_bits());
  return fmt::format("vta_{}_{}_{}_{}_{}_{}{}{}{}", tile, widths, c.log_uop_buff, c.log_inp_buff,
                     c.log_wgt_buff, c.log_acc_buff, c.extensions.pipeline4 ? "_p4" : "",
                     c.extensions.fused_reset ? "_fr" : "",
                     c.extensions.pipelined_alu ? "_pa" : "");
}

std::string_view name(Mem mem) {
  constexpr std::array<std::string_view, 6> kMemNames = {"uop", "wgt", "inp", "acc", "out", "acc8"};
  return kMemNames.at(static_cast<size_t>(mem));
}

}  // namespace tilewright::vta
