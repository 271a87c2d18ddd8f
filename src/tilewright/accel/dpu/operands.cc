#include "tilewright/accel/dpu/operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/check.h"

namespace tilewright::dpu {
namespace {

Rows rows_at(int bank_id, int address, int jump, int endl) {
  return {bank_id / kBanks, bank_id % kBanks, address, jump, endl};
}

/// `count` places of which all are touched.
Axis all_of(int count) {
  Axis axis;
  axis.outputs = axis.exist = count;
  return axis;
}

Axis window(int outputs, int kernel, int stride, int dilation, int pad_before, int pad_after) {
  const int exist = (outputs - 1) * stride + (kernel - 1) * dilation + 1 - pad_before - pad_after;
  return {outputs, kernel, stride, dilation, pad_before, exist};
}

Operands operands(const ConvInit& init, const Conv& op) {
  Operands out;
  WordWindow in;
  in.rows = rows_at(op.bank_id_in, op.bank_addr_in, init.jump_read, init.jump_read_endl);
  in.y = window(op.valid_rows, init.kernel_h, init.stride_h, init.dilation_h, op.pad_top,
                op.pad_bottom);
  in.x =
      window(op.length, init.kernel_w, init.stride_w, init.dilation_w, op.pad_left, op.pad_right);
  in.groups = init.in_groups;
  out.reads = {in};
  out.write.rows = rows_at(op.bank_id_out, op.bank_addr_out, init.jump_write, init.jump_write_endl);
  out.write.y = all_of(op.valid_rows);
  out.write.x = all_of(op.length);
  out.write.groups = op.out_groups;
  const int64_t words = int64_t{op.out_groups} * init.kernel_h * init.kernel_w * init.in_groups;
  // Four groups of sixteen biases of four bytes fill a word; a CONV can begin at any of them.
  const int first = op.bank_addr_bias / 4;
  const int64_t biases = (op.bank_addr_bias + op.out_groups + 3) / 4 - first;
  out.weights = {{op.bank_addr_weights, words}, {first, biases}};
  return out;
}

Operands operands(const PoolInit& init, const Pool& op) {
  Operands out;
  WordWindow in;
  in.rows = rows_at(op.bank_id_in, op.bank_addr_in, init.jump_read, init.jump_read_endl);
  in.groups = op.channel_group;
  if (init.type == kUpsample) {
    in.y = all_of((op.valid_rows - 1) / init.stride_h + 1);
    in.x = all_of((op.length - 1) / init.stride_w + 1);
  } else {
    const bool copies = init.type == kCopy;
    in.y = window(op.valid_rows, copies ? 1 : init.kernel_h, init.stride_h, 1, op.pad_top,
                  op.pad_bottom);
    in.x =
        window(op.length, copies ? 1 : init.kernel_w, init.stride_w, 1, op.pad_left, op.pad_right);
  }
  out.reads = {in};
  out.write.rows = rows_at(op.bank_id_out, op.bank_addr_out, init.jump_write, init.jump_write_endl);
  out.write.y = all_of(op.valid_rows);
  out.write.x = all_of(op.length);
  out.write.groups = op.channel_group;
  return out;
}

Operands operands(const ElewInit& init, const Elew& op) {
  Operands out;
  WordWindow one;
  one.y = all_of(op.valid_rows);
  one.x = all_of(op.length);
  one.groups = op.channel_group;
  out.reads.assign(static_cast<size_t>(init.num), one);
  out.reads[0].rows =
      rows_at(op.bank_id_a, op.bank_addr_a, init.jump_read_a, init.jump_read_a_endl);
  if (init.num == 2)
    out.reads[1].rows =
        rows_at(op.bank_id_b, op.bank_addr_b, init.jump_read_b, init.jump_read_b_endl);
  out.write = one;
  out.write.rows = rows_at(op.bank_id_out, op.bank_addr_out, init.jump_write, init.jump_write_endl);
  return out;
}

/// The on-chip row of a LOAD or SAVE: `length` steps of some words.
struct ChipRow {
  int bank_id = 0, address = 0, jump = 0, length = 0, groups = 0;
  bool pm = false;
};
std::optional<ChipRow> chip_row(const Op& op) {
  if (const auto* load = std::get_if<Load>(&op))
    return ChipRow{load->bank_id,
                   load->bank_addr,
                   load->jump_write,
                   load->length,
                   static_cast<int>(groups(load->channel)),
                   load->mode == 1};
  if (const auto* save = std::get_if<Save>(&op))
    return ChipRow{save->bank_id,
                   save->bank_addr,
                   save->jump_read,
                   save->length,
                   static_cast<int>(groups(save->channel)),
                   false};
  return std::nullopt;
}

/// Whether steps of `width` words, `jump` apart, meet in a circular memory.
bool meets_itself(int64_t steps, int64_t jump, int64_t width, int64_t depth) {
  if (steps > 1 && jump < width) return true;
  if ((steps - 1) * jump + width <= depth) return false;
  std::vector<bool> taken(static_cast<size_t>(depth));
  for (int64_t s = 0; s < steps; ++s)
    for (int64_t w = 0; w < width; ++w) {
      auto word = taken[static_cast<size_t>((s * jump + w) % depth)];
      if (word) return true;
      word = true;
    }
  return false;
}

/// Gathers what is wrong.
class RangeChecker {
 public:
  RangeChecker(const Config& config, accel::Problems& problems)
      : config_(config), problems_(problems) {}

  void bad(std::string what, ErrorKind kind = ErrorKind::Invalid) {
    problems_.add(Error{kind, std::move(what), {}, {}, {}, {}});
  }
  /// The depth of the memory of a bank; 0 if there is none.
  int fm_place(std::string_view what, int bank_id, int address) {
    if (bank_id >= kBanks * kMemories) {
      bad(fmt::format("{} is in bank {}, but there are {}", what, bank_id, kBanks * kMemories),
          ErrorKind::Capacity);
      return 0;
    }
    const int depth = config_.fm_depth[static_cast<size_t>(bank_id / kBanks)];
    if (address >= depth)
      bad(fmt::format("{} is at {} of bank {}, which has {} words", what, address, bank_id, depth),
          ErrorKind::Capacity);
    return depth;
  }
  void pm_place(std::string_view what, int address) {
    if (address >= config_.pm_depth)
      bad(fmt::format("{} are at {} of PM, which has {} words", what, address, config_.pm_depth),
          ErrorKind::Capacity);
  }
  void window(std::string_view what, const WordWindow& in) {
    place(what, in.rows);
    if (in.y.exist < 1) bad(fmt::format("{} has {} rows that exist", what, in.y.exist));
    if (in.x.exist < 1) bad(fmt::format("{} has {} columns that exist", what, in.x.exist));
  }
  void written(const WordWindow& out) {
    const int depth = place("the output", out.rows);
    if (depth > 0 && meets_itself(out.x.outputs, out.rows.jump, out.groups, depth))
      bad("writes a word twice");
  }
  void chip(const ChipRow& row, bool writes) {
    int depth = config_.pm_depth;
    if (row.pm) {
      pm_place("the words", row.address);
      if (row.bank_id != 0) bad(fmt::format("bank {} of PM, which has one", row.bank_id));
    } else {
      depth = fm_place("the row", row.bank_id, row.address);
    }
    if (writes && depth > 0 && meets_itself(row.length, row.jump, row.groups, depth))
      bad("writes a word twice");
  }

 private:
  int place(std::string_view what, const Rows& rows) {
    return fm_place(what, rows.memory * kBanks + rows.bank, rows.address);
  }
  const Config& config_;
  accel::Problems& problems_;
};

void check_pool(const PoolInit& init, const Pool& op, const WordWindow& in, RangeChecker& checker) {
  const bool has_pads = (op.pad_left | op.pad_top | op.pad_right | op.pad_bottom) != 0;
  if ((init.type == kCopy || init.type == kUpsample) && has_pads)
    checker.bad("a copy or upsampling has no padding");
  if (init.type == kMaxPool && (in.y.has_empty_window() || in.x.has_empty_window()))
    checker.bad("a window of the maximum lies wholly in the padding");
}

/// Splits rows of words where the memory ends. requires: not empty.
void add_words(accel::Access words, uint64_t base, uint64_t depth, accel::Footprint& into) {
  if (words.rows == 1 || words.pitch == words.width) {
    words.width *= words.rows;
    words.pitch = words.width;
    words.rows = 1;
  }
  for (uint32_t row = 0; row < words.rows;) {
    const uint64_t begin = (words.address + row * words.pitch) % depth;
    if (begin + words.width > depth) {
      const uint64_t rest = std::min(begin, words.width - (depth - begin));
      into.push_back(accel::one_row(words.memory, base + begin, base + depth, words.write));
      if (rest > 0) into.push_back(accel::one_row(words.memory, base, base + rest, words.write));
      ++row;
      continue;
    }
    accel::Access piece = words;
    piece.address = base + begin;
    piece.rows = words.rows - row;
    if (words.pitch > 0)
      piece.rows = static_cast<uint32_t>(
          std::min<uint64_t>(piece.rows, (depth - words.width - begin) / words.pitch + 1));
    into.push_back(piece);
    row += piece.rows;
  }
}

/// Places in order as pieces of equal steps.
struct Steps {
  int first = 0, step = 1, count = 0;
};
std::vector<Steps> steps_of(const std::vector<int>& places) {
  if (places.size() == 1) return {{places[0], 1, 1}};
  const int step = places.size() > 1 ? places[1] - places[0] : 1;
  bool even = true;
  for (size_t i = 1; i < places.size(); ++i) even = even && places[i] - places[i - 1] == step;
  if (even && !places.empty()) return {{places[0], step, static_cast<int>(places.size())}};
  std::vector<Steps> out;
  for (const int place : places) {
    if (!out.empty() && out.back().first + out.back().count == place)
      ++out.back().count;
    else
      out.push_back({place, 1, 1});
  }
  return out;
}

void add_window(const Config& config, const WordWindow& window, bool write,
                accel::Footprint& into) {
  const auto depth =
      static_cast<uint64_t>(config.fm_depth[static_cast<size_t>(window.rows.memory)]);
  const std::vector<Steps> columns = steps_of(window.x.needed());
  for (const int row : window.y.needed()) {
    const uint64_t base = static_cast<uint64_t>(window.rows.bank_of(row)) * depth;
    for (const Steps& part : columns) {
      accel::Access words;
      words.memory = window.rows.memory;
      words.address = static_cast<uint64_t>(window.rows.address_of(row, part.first));
      words.pitch = static_cast<uint64_t>(int64_t{part.step} * window.rows.jump);
      words.width = static_cast<uint64_t>(window.groups);
      words.rows = static_cast<uint32_t>(part.count);
      words.write = write;
      add_words(words, base, depth, into);
    }
  }
}

void add_transfer(const Config& config, const Op& op, accel::Footprint& into) {
  const std::optional<ChipRow> row = chip_row(op);
  const std::optional<DdrSteps> ddr = ddr_of(config, op);
  if (!row || !ddr) return;
  const bool to_chip = std::holds_alternative<Load>(op);
  into.push_back({kDdrMemory + ddr->reg, ddr->begin, ddr->pitch, ddr->bytes,
                  static_cast<uint32_t>(ddr->steps), !to_chip});
  const int memory = row->pm ? kPmMemory : row->bank_id / kBanks;
  const auto depth = static_cast<uint64_t>(row->pm ? config.pm_depth
                                                   : config.fm_depth[static_cast<size_t>(memory)]);
  accel::Access words;
  words.memory = memory;
  words.address = static_cast<uint64_t>(row->address);
  words.pitch = static_cast<uint64_t>(row->jump);
  words.width = static_cast<uint64_t>(row->groups);
  words.rows = static_cast<uint32_t>(row->length);
  words.write = to_chip;
  add_words(words, row->pm ? 0 : static_cast<uint64_t>(row->bank_id % kBanks) * depth, depth, into);
}

}  // namespace

void Inits::update(const Op& op) {
  if (const auto* init = std::get_if<ConvInit>(&op)) conv = *init;
  if (const auto* init = std::get_if<PoolInit>(&op)) pool = *init;
  if (const auto* init = std::get_if<ElewInit>(&op)) elew = *init;
}

bool Inits::complete_for(const Op& op) const {
  if (std::holds_alternative<Conv>(op)) return conv.has_value();
  if (std::holds_alternative<Pool>(op)) return pool.has_value();
  return !std::holds_alternative<Elew>(op) || elew.has_value();
}

std::vector<int> Axis::needed() const {
  std::vector<bool> wanted(static_cast<size_t>(std::max(exist, 0)));
  for (int o = 0; o < outputs; ++o)
    for (int k = 0; k < kernel; ++k)
      if (inside(at(o, k))) wanted[static_cast<size_t>(at(o, k))] = true;
  std::vector<int> places;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) places.push_back(static_cast<int>(i));
  return places;
}

int64_t Axis::taps_inside() const {
  int64_t count = 0;
  for (int o = 0; o < outputs; ++o)
    for (int k = 0; k < kernel; ++k) count += inside(at(o, k));
  return count;
}

bool Axis::has_empty_window() const {
  for (int o = 0; o < outputs; ++o) {
    bool any = false;
    for (int k = 0; k < kernel; ++k) any = any || inside(at(o, k));
    if (!any) return true;
  }
  return false;
}

Operands operands_of(const Op& op, const Inits& inits) {
  TW_CHECK(inits.complete_for(op), "no INIT");
  if (const auto* conv = std::get_if<Conv>(&op)) return operands(*inits.conv, *conv);
  if (const auto* pool = std::get_if<Pool>(&op)) return operands(*inits.pool, *pool);
  if (const auto* elew = std::get_if<Elew>(&op)) return operands(*inits.elew, *elew);
  return {};
}

Status check_ranges(const Config& config, const Insn& insn, const Inits& inits) {
  accel::Problems problems;
  RangeChecker checker(config, problems);
  if (const std::optional<ChipRow> row = chip_row(insn.op))
    checker.chip(*row, std::holds_alternative<Load>(insn.op));
  const Operands operands = operands_of(insn.op, inits);
  for (size_t i = 0; i < operands.reads.size(); ++i)
    checker.window(i == 0 ? "the input" : "the second input", operands.reads[i]);
  if (!operands.reads.empty()) checker.written(operands.write);
  if (!operands.weights.empty()) {
    checker.pm_place("the weights", operands.weights[0].address);
    checker.pm_place("the biases", operands.weights[1].address);
  }
  if (const auto* pool = std::get_if<Pool>(&insn.op))
    check_pool(*inits.pool, *pool, operands.reads[0], checker);
  return std::move(problems).status();
}

std::optional<DdrSteps> ddr_of(const Config& config, const Op& op) {
  const auto steps = [&](int reg, int address, int jump, int channel, int length, bool pm) {
    const auto word = static_cast<uint64_t>(pm ? kPmWordBytes : config.word_bytes());
    return DdrSteps{reg, static_cast<uint64_t>(address), static_cast<uint64_t>(groups(jump)) * word,
                    static_cast<uint64_t>(groups(channel)) * word, static_cast<uint64_t>(length)};
  };
  if (const auto* load = std::get_if<Load>(&op))
    return steps(load->reg_id, load->ddr_addr, load->jump_read, load->channel, load->length,
                 load->mode == 1);
  if (const auto* save = std::get_if<Save>(&op))
    return steps(save->reg_id, save->ddr_addr, save->jump_write, save->channel, save->length,
                 false);
  return std::nullopt;
}

Status check_ddr(const Config& config, const std::array<Region, kRegs>& regions, const Insn& insn) {
  const std::optional<DdrSteps> ddr = ddr_of(config, insn.op);
  if (!ddr) return {};
  const auto* load = std::get_if<Load>(&insn.op);
  const int word = load != nullptr && load->mode == 1 ? kPmWordBytes : config.word_bytes();
  if (ddr->begin % static_cast<uint64_t>(word) != 0)
    return fail(ErrorKind::Invalid,
                fmt::format("`ddr_addr` {} is no multiple of {}", ddr->begin, word));
  const Region& region = regions.at(static_cast<size_t>(ddr->reg));
  if (ddr->end() > region.bytes)
    return fail(ErrorKind::Invalid,
                fmt::format("touches bytes {}..{} of region `{}`, which has {}", ddr->begin,
                            ddr->end(), name(static_cast<Reg>(ddr->reg)), region.bytes));
  if (load == nullptr && ddr->steps > 1 && ddr->pitch < ddr->bytes)
    return fail(ErrorKind::Invalid, "writes bytes of DDR twice");
  return {};
}

accel::Queues queues() {
  accel::Queues out;
  constexpr int kIn = kDdrMemory, kOut = kIn + 1, kSwap = kIn + 2, kParams = kIn + 3;
  out.list = {{"LOAD", {kIn, kOut, kSwap, kParams}, {0, 1, 2, kPmMemory}},
              {"SAVE", {0, 1, 2}, {kOut, kSwap}},
              {"CONV", {0, 1, 2, kPmMemory}, {0, 1, 2}},
              {"MISC", {0, 1, 2}, {0, 1, 2}}};
  out.memories = {"FM 0", "FM 1", "FM 2", "PM", "input", "output", "swap", "params"};
  out.paths = accel::TokenPaths::AnyPair;
  return out;
}

accel::Footprint footprint(const Config& config, const Insn& insn, const Inits& inits) {
  accel::Footprint out;
  add_transfer(config, insn.op, out);
  const Operands operands = operands_of(insn.op, inits);
  for (const WordWindow& window : operands.reads) add_window(config, window, false, out);
  for (const PmRange& range : operands.weights) {
    accel::Access words;
    words.memory = kPmMemory;
    words.address = static_cast<uint64_t>(range.address);
    words.width = words.pitch = static_cast<uint64_t>(range.words);
    add_words(words, 0, static_cast<uint64_t>(config.pm_depth), out);
  }
  if (!operands.reads.empty()) add_window(config, operands.write, true, out);
  return out;
}

}  // namespace tilewright::dpu
