#include "tilewright/accel/dpu/sim/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/base/check.h"

namespace tilewright::dpu {
namespace {

constexpr size_t kLane = kLanes;
constexpr uint8_t kOffset = 0x80;  // inputs of CONV are kept as value + 128

/// What an instruction reads at once is at most a memory, and padding; more only if rows overlap.
constexpr int64_t kMostGathered = int64_t{1} << 30;  // bytes

Status check_size(int64_t rows, int64_t columns, int64_t pixel_bytes) {
  if (rows * columns <= kMostGathered / pixel_bytes) return {};
  return fail(ErrorKind::Limit, "an instruction of overlapping rows is too large to simulate",
              fmt::format("{} rows of {} columns of {} bytes", rows, columns, pixel_bytes));
}

int32_t read_bias(const int8_t* bytes) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return static_cast<int32_t>(value);
}

}  // namespace

Machine::Machine(const Config& config, uint64_t ddr_bytes)
    : config_(config),
      word_bytes_(static_cast<size_t>(config.word_bytes())),
      ddr_bytes_(ddr_bytes),
      // calloc: pages that are never touched cost nothing.
      ddr_(static_cast<uint8_t*>(std::calloc(std::max<uint64_t>(ddr_bytes, 1), 1))) {
  TW_CHECK(ddr_ != nullptr, "no {} bytes for the simulated DDR", ddr_bytes);
  for (int m = 0; m < kMemories; ++m) {
    const auto words = static_cast<size_t>(config.fm_words(m));
    fm_[static_cast<size_t>(m)].bytes.resize(words * word_bytes_);
    fm_[static_cast<size_t>(m)].written.resize(words);
  }
  pm_.resize(static_cast<size_t>(config.pm_depth) * kPmWordBytes);
  packed_.resize(pm_.size());
  pm_written_.resize(static_cast<size_t>(config.pm_depth));
}

Status Machine::check_memory(uint64_t address, uint64_t bytes) const {
  if (address <= ddr_bytes_ && bytes <= ddr_bytes_ - address) return {};
  return fail(ErrorKind::Invalid, "beyond the end of DDR",
              fmt::format("bytes {}..{} of {}", address, address + bytes, ddr_bytes_));
}

Status Machine::write(uint64_t address, std::string_view bytes) {
  TW_TRY_STATUS(check_memory(address, bytes.size()));
  if (!bytes.empty()) std::memcpy(ddr() + address, bytes.data(), bytes.size());
  return {};
}

Status Machine::read(uint64_t address, char* into, uint64_t bytes) const {
  TW_TRY_STATUS(check_memory(address, bytes));
  if (bytes > 0) std::memcpy(into, ddr() + address, bytes);
  return {};
}

void Machine::begin_launch() {
  ++launch_;
  inits_ = {};
}

size_t Machine::bank_begin(int memory, int bank) const {
  return static_cast<size_t>(bank) *
         static_cast<size_t>(config_.fm_depth[static_cast<size_t>(memory)]);
}

Status Machine::check_written(int memory, size_t word, size_t count) const {
  const std::vector<uint32_t>& written = fm_[static_cast<size_t>(memory)].written;
  for (size_t w = word; w < word + count; ++w) {
    if (written[w] == launch_) continue;
    const auto depth = static_cast<size_t>(config_.fm_depth[static_cast<size_t>(memory)]);
    return fail(ErrorKind::Invalid, "reads a word that nothing wrote",
                fmt::format("bank {}, address {}", static_cast<size_t>(memory) * kBanks + w / depth,
                            w % depth));
  }
  return {};
}

Status Machine::check_pm(const PmRange& range) const {
  const int64_t words = std::min<int64_t>(range.words, config_.pm_depth);
  for (int64_t w = 0; w < words; ++w) {
    const auto word = static_cast<size_t>((range.address + w) % config_.pm_depth);
    if (pm_written_[word] != launch_)
      return fail(ErrorKind::Invalid, "reads a word of PM that nothing wrote",
                  fmt::format("address {}", word));
  }
  return {};
}

Status Machine::compute(const Insn& insn, Effects& into) {
  TW_TRY_STATUS(check_fields(insn, ""));
  inits_.update(insn.op);
  if (!inits_.complete_for(insn.op))
    return fail(ErrorKind::Invalid, fmt::format("{} comes before its INIT", op_name(insn.op)));
  TW_TRY_STATUS(check_ranges(config_, insn, inits_));
  TW_TRY_STATUS(check_ddr(config_, registers_, insn));
  into.op = insn.op;
  into.bytes.clear();
  if (const auto* op = std::get_if<Load>(&insn.op)) return load(*op, into);
  if (const auto* op = std::get_if<Save>(&insn.op)) return save(*op, into);
  if (const auto* op = std::get_if<Conv>(&insn.op)) return conv(*op, into);
  if (const auto* op = std::get_if<Pool>(&insn.op)) return pool(*op, into);
  if (const auto* op = std::get_if<Elew>(&insn.op)) return elew(*op, into);
  return {};
}

Status Machine::load(const Load& op, Effects& into) {
  const DdrSteps steps = *ddr_of(config_, op);
  const uint64_t region = registers_[static_cast<size_t>(op.reg_id)].address;
  TW_TRY_STATUS(check_memory(region + steps.begin, steps.end() - steps.begin));
  const uint8_t* from = ddr() + region + steps.begin;
  into.bytes.resize(steps.steps * steps.bytes);
  for (uint64_t l = 0; l < steps.steps; ++l)
    std::memcpy(into.bytes.data() + l * steps.bytes, from + l * steps.pitch, steps.bytes);
  return {};
}

Status Machine::save(const Save& op, Effects& into) {
  const DdrSteps steps = *ddr_of(config_, op);
  TW_TRY_STATUS(check_memory(registers_[static_cast<size_t>(op.reg_id)].address + steps.begin,
                             steps.end() - steps.begin));
  WordWindow row;
  row.rows = {op.bank_id / kBanks, op.bank_id % kBanks, op.bank_addr, op.jump_read, 0};
  row.x.outputs = row.x.exist = op.length;
  row.groups = static_cast<int>(groups(op.channel));
  return read_needed(row, into.bytes);
}

/// Calls f(row, word in the memory, column, word in the columns read from there, words) for all
/// that a window needs, neighbouring columns together.
template <class F>
Status Machine::for_each_needed(const WordWindow& window, F&& f) const {
  const Rows& rows = window.rows;
  std::vector<std::pair<int, int>> columns;
  for (const int x : window.x.needed()) {
    if (!columns.empty() && columns.back().first + columns.back().second == x)
      ++columns.back().second;
    else
      columns.emplace_back(x, 1);
  }
  Status status;
  for (const int j : window.y.needed()) {
    const size_t bank = bank_begin(rows.memory, rows.bank_of(j));
    for (const auto& [x, count] : columns) {
      const size_t before = static_cast<size_t>(x) * static_cast<size_t>(window.groups);
      for_each_run(depth(rows), rows.address_of(j, x), rows.jump, count, window.groups,
                   [&](size_t address, size_t first, size_t words) {
                     if (status) status = check_written(rows.memory, bank + address, words);
                     f(static_cast<size_t>(j), bank + address, before + first, words);
                   });
    }
    if (!status) return status;
  }
  return {};
}

/// What a window needs, by image, offset by 128: word (b, row, column, group) goes to
/// into[b * image_step + row * row_step + (column * groups + group) * 16].
Status Machine::gather(const WordWindow& window, uint8_t* into, size_t image_step,
                       size_t row_step) const {
  const Feature& memory = fm_[static_cast<size_t>(window.rows.memory)];
  const auto images = static_cast<size_t>(config_.pe);
  return for_each_needed(window, [&](size_t row, size_t word, size_t first, size_t words) {
    const uint8_t* from = memory.bytes.data() + word * word_bytes_;
    for (size_t w = 0; w < words; ++w)
      for (size_t b = 0; b < images; ++b, from += kLane) {
        uint8_t* to = into + b * image_step + row * row_step + (first + w) * kLane;
        for (size_t c = 0; c < kLane; ++c) to[c] = static_cast<uint8_t>(from[c] ^ kOffset);
      }
  });
}

/// What a window needs, in the order row, column, group; whatever lies between stays as it is.
Status Machine::read_needed(const WordWindow& window, std::vector<uint8_t>& into) const {
  const Feature& memory = fm_[static_cast<size_t>(window.rows.memory)];
  TW_TRY_STATUS(
      check_size(window.y.exist, window.x.exist, int64_t{window.groups} * config_.word_bytes()));
  const auto row_words = static_cast<size_t>(window.x.exist) * static_cast<size_t>(window.groups);
  into.resize(static_cast<size_t>(window.y.exist) * row_words * word_bytes_);
  return for_each_needed(window, [&](size_t row, size_t word, size_t first, size_t words) {
    std::memcpy(into.data() + (row * row_words + first) * word_bytes_,
                memory.bytes.data() + word * word_bytes_, words * word_bytes_);
  });
}

Status Machine::conv(const Conv& op, Effects& into) {
  const ConvInit& init = *inits_.conv;
  const Operands operands = operands_of(op, inits_);
  for (const PmRange& range : operands.weights) TW_TRY_STATUS(check_pm(range));
  const WordWindow& in = operands.reads[0];
  const int64_t rows = int64_t{in.y.exist} + op.pad_top + op.pad_bottom;
  const int64_t columns = int64_t{in.x.exist} + op.pad_left + op.pad_right;
  const auto pixel = static_cast<size_t>(in.groups) * kLane;
  const auto row_step = static_cast<size_t>(columns) * pixel;
  const size_t image_step = static_cast<size_t>(rows) * row_step;
  TW_TRY_STATUS(check_size(rows, columns, int64_t{in.groups} * config_.word_bytes()));
  gathered_.assign(image_step * static_cast<size_t>(config_.pe), kOffset);
  TW_TRY_STATUS(gather(in,
                       gathered_.data() + static_cast<size_t>(op.pad_top) * row_step +
                           static_cast<size_t>(op.pad_left) * pixel,
                       image_step, row_step));
  into.write = operands.write;
  into.bytes.resize(static_cast<size_t>(op.valid_rows) * static_cast<size_t>(op.length) *
                    static_cast<size_t>(op.out_groups) * word_bytes_);
  for (int g = 0; g < op.out_groups; ++g) conv_group(init, op, g, into);
  return {};
}

/// The packed weights of a group of outputs; copied if they wrap.
const int8_t* Machine::packed_weights(const Conv& op, int out_group) {
  const ConvInit& init = *inits_.conv;
  const auto depth = static_cast<size_t>(config_.pm_depth);
  const size_t words = static_cast<size_t>(init.kernel_h) * static_cast<size_t>(init.kernel_w) *
                       static_cast<size_t>(init.in_groups);
  const size_t begin =
      (static_cast<size_t>(op.bank_addr_weights) + static_cast<size_t>(out_group) * words) % depth;
  if (begin + words <= depth) return packed_.data() + begin * kPmWordBytes;
  unwrapped_.resize(words * kPmWordBytes);
  for (size_t at = 0, address = begin; at < words; address = 0) {
    const size_t count = std::min(words - at, depth - address);
    std::memcpy(unwrapped_.data() + at * kPmWordBytes, packed_.data() + address * kPmWordBytes,
                count * kPmWordBytes);
    at += count;
  }
  return unwrapped_.data();
}

/// One group of sixteen output channels of all images.
void Machine::conv_group(const ConvInit& init, const Conv& op, int out_group, Effects& into) {
  const int columns = (op.length - 1) * init.stride_w + (init.kernel_w - 1) * init.dilation_w + 1;
  const ptrdiff_t pixel = ptrdiff_t{init.in_groups} * kLanes, row_step = columns * pixel;
  const size_t image_step = gathered_.size() / static_cast<size_t>(config_.pe);
  ConvSums job;
  job.weights = packed_weights(op, out_group);
  job.kernel_h = init.kernel_h;
  job.kernel_w = init.kernel_w;
  job.groups = init.in_groups;
  job.row_step = init.dilation_h * row_step;
  job.column_step = init.dilation_w * pixel;
  job.pixel_step = init.stride_w * pixel;

  const ConvRounding rounding{init.shift_cut, init.shift_bias, init.act_type, init.fp_out};
  std::array<int32_t, kLane> bias{};
  std::array<int64_t, kLane> terms{};
  // Below 2^17 products of at most 2^14, sums fit 32 bits.
  const int64_t products = int64_t{init.kernel_h} * init.kernel_w * init.in_groups * kLanes;
  std::optional<NarrowRounding> fast;
  if (products < (1 << 17)) fast = narrow(rounding);
  for (size_t c = 0; c < kLane; ++c) {
    const size_t at = (static_cast<size_t>(op.bank_addr_bias + out_group) * kLane + c) * 4;
    bias[c] = read_bias(pm_.data() + at % pm_.size());
    const std::optional<int64_t> term = narrow_bias(rounding, bias[c]);
    if (!term) fast.reset();
    terms[c] = term.value_or(0);
  }
  std::array<int32_t, kLane> offset{};
  if (fast) offset_sums(job, offset.data());
  // Neighbours in the sums: the pixels of a row, or the images where there is one pixel.
  const auto images = static_cast<size_t>(config_.pe);
  const bool by_image = op.length == 1;
  const size_t neighbours = by_image ? images : static_cast<size_t>(op.length);
  const size_t pixel_out = static_cast<size_t>(op.out_groups) * word_bytes_;
  const size_t step = by_image ? kLane : pixel_out;
  if (by_image) job.pixel_step = static_cast<ptrdiff_t>(image_step);
  sums_.resize(neighbours * kLane);
  std::vector<int64_t> wide(fast ? 0 : neighbours * kLane);
  for (size_t b = 0; b < (by_image ? 1 : images); ++b)
    for (int i = 0; i < op.valid_rows; ++i) {
      job.input = gathered_.data() + b * image_step + i * init.stride_h * row_step;
      uint8_t* out = into.bytes.data() +
                     static_cast<size_t>(i) * static_cast<size_t>(op.length) * pixel_out +
                     static_cast<size_t>(out_group) * word_bytes_ + b * kLane;
      const int count = static_cast<int>(neighbours);
      if (fast) {
        conv_sums(job, offset.data(), count, sums_.data());
        round_sums(*fast, terms.data(), count, sums_.data(), static_cast<ptrdiff_t>(step), out);
        continue;
      }
      sum_row(job, count, wide.data());
      for (size_t n = 0; n < neighbours; ++n)
        for (size_t c = 0; c < kLane; ++c)
          out[n * step + c] =
              static_cast<uint8_t>(round_conv(rounding, wide[n * kLane + c], bias[c]));
    }
}

/// Sums of any size: row of taps by row of taps, each of which fits 32 bits.
void Machine::sum_row(const ConvSums& job, int pixels, int64_t* sums) {
  std::fill_n(sums, static_cast<size_t>(pixels) * kLane, 0);
  ConvSums part = job;
  part.kernel_h = 1;
  for (int ky = 0; ky < job.kernel_h; ++ky) {
    part.input = job.input + ky * job.row_step;
    part.weights = job.weights + ptrdiff_t{ky} * job.kernel_w * job.groups * kPmWordBytes;
    std::array<int32_t, kLane> offset{};
    offset_sums(part, offset.data());
    conv_sums(part, offset.data(), pixels, sums_.data());
    for (size_t i = 0; i < static_cast<size_t>(pixels) * kLane; ++i) sums[i] += sums_[i];
  }
}

Status Machine::pool(const Pool& op, Effects& into) {
  const PoolInit& init = *inits_.pool;
  const Operands operands = operands_of(op, inits_);
  const WordWindow& in = operands.reads[0];
  into.write = operands.write;
  const auto words = static_cast<size_t>(in.groups);
  const size_t pixel = words * word_bytes_;
  into.bytes.assign(static_cast<size_t>(op.valid_rows) * static_cast<size_t>(op.length) * pixel, 0);
  TW_TRY_STATUS(read_needed(in, gathered_));
  const auto source = [&](int row, int column) {
    return gathered_.data() + (static_cast<size_t>(row) * static_cast<size_t>(in.x.exist) +
                               static_cast<size_t>(column)) *
                                  pixel;
  };
  std::vector<int32_t> sums(init.type == kAveragePool ? pixel : 0);
  for (int i = 0; i < op.valid_rows; ++i)
    for (int x = 0; x < op.length; ++x) {
      uint8_t* out = into.bytes.data() + (static_cast<size_t>(i) * static_cast<size_t>(op.length) +
                                          static_cast<size_t>(x)) *
                                             pixel;
      if (init.type == kCopy)
        std::memcpy(out, source(i * init.stride_h, x * init.stride_w), pixel);
      else if (init.type == kUpsample)
        std::memcpy(out, source(i / init.stride_h, x / init.stride_w), pixel);
      else
        pool_window(init, in, i, x, sums, out);
    }
  return {};
}

/// One window of a maximum or average, in all channels and images.
void Machine::pool_window(const PoolInit& init, const WordWindow& in, int row, int column,
                          std::vector<int32_t>& sums, uint8_t* out) const {
  const size_t pixel = static_cast<size_t>(in.groups) * word_bytes_;
  const bool is_max = init.type == kMaxPool;
  if (is_max) std::fill_n(out, pixel, uint8_t{0x80});
  std::fill(sums.begin(), sums.end(), 0);
  for (int ky = 0; ky < in.y.kernel; ++ky)
    for (int kx = 0; kx < in.x.kernel; ++kx) {
      const int y = in.y.at(row, ky), x = in.x.at(column, kx);
      if (!in.y.inside(y) || !in.x.inside(x)) continue;
      const uint8_t* from =
          gathered_.data() +
          (static_cast<size_t>(y) * static_cast<size_t>(in.x.exist) + static_cast<size_t>(x)) *
              pixel;
      for (size_t c = 0; c < pixel; ++c) {
        const auto value = static_cast<int8_t>(from[c]);
        if (is_max)
          out[c] = static_cast<uint8_t>(std::max(static_cast<int8_t>(out[c]), value));
        else
          sums[c] += value;
      }
    }
  if (is_max) return;
  for (size_t c = 0; c < pixel; ++c)
    out[c] = static_cast<uint8_t>(round_shifted(int64_t{sums[c]} * init.factor, init.shift_avg));
}

Status Machine::elew(const Elew& op, Effects& into) {
  const ElewInit& init = *inits_.elew;
  const Operands operands = operands_of(op, inits_);
  into.write = operands.write;
  TW_TRY_STATUS(read_needed(operands.reads[0], gathered_));
  if (init.num == 2) TW_TRY_STATUS(read_needed(operands.reads[1], second_));
  const ElewTable table(init);
  std::array<int16_t, 256> a{}, b{};
  for (size_t v = 0; v < 256; ++v) {
    const auto value = static_cast<int8_t>(v);
    a[v] = static_cast<int16_t>(ElewTable::term(value, init.shift_read_a));
    b[v] = static_cast<int16_t>(ElewTable::term(value, init.shift_read_b));
  }
  into.bytes.resize(gathered_.size());
  for (size_t i = 0; i < gathered_.size(); ++i) {
    const int sum = a[gathered_[i]] + (init.num == 2 ? b[second_[i]] : 0);
    into.bytes[i] = static_cast<uint8_t>(table[sum]);
  }
  return {};
}

void Machine::commit(const Effects& effects) {
  if (effects.bytes.empty()) return;
  if (const auto* op = std::get_if<Save>(&effects.op)) {
    const DdrSteps steps = *ddr_of(config_, *op);
    uint8_t* to = ddr() + registers_[static_cast<size_t>(op->reg_id)].address + steps.begin;
    for (uint64_t l = 0; l < steps.steps; ++l)
      std::memcpy(to + l * steps.pitch, effects.bytes.data() + l * steps.bytes, steps.bytes);
    return;
  }
  if (const auto* op = std::get_if<Load>(&effects.op)) {
    if (op->mode == 1) return fill_pm(*op, effects.bytes);
    WordWindow row;
    row.rows = {op->bank_id / kBanks, op->bank_id % kBanks, op->bank_addr, op->jump_write, 0};
    row.x.outputs = row.x.exist = op->length;
    row.groups = static_cast<int>(groups(op->channel));
    return write_words(row, effects.bytes);
  }
  write_words(effects.write, effects.bytes);
}

void Machine::write_words(const WordWindow& window, const std::vector<uint8_t>& bytes) {
  const Rows& rows = window.rows;
  Feature& memory = fm_[static_cast<size_t>(rows.memory)];
  const auto row_words = static_cast<size_t>(window.x.exist) * static_cast<size_t>(window.groups);
  for (int j = 0; j < window.y.exist; ++j) {
    const size_t bank = bank_begin(rows.memory, rows.bank_of(j));
    const uint8_t* row = bytes.data() + static_cast<size_t>(j) * row_words * word_bytes_;
    for_each_run(depth(rows), rows.address_of(j, 0), rows.jump, window.x.exist, window.groups,
                 [&](size_t address, size_t first, size_t count) {
                   const size_t word = bank + address;
                   std::memcpy(memory.bytes.data() + word * word_bytes_, row + first * word_bytes_,
                               count * word_bytes_);
                   std::fill_n(memory.written.begin() + static_cast<ptrdiff_t>(word), count,
                               launch_);
                 });
  }
}

void Machine::fill_pm(const Load& op, const std::vector<uint8_t>& bytes) {
  for_each_run(config_.pm_depth, op.bank_addr, op.jump_write, op.length,
               static_cast<int>(groups(op.channel)),
               [&](size_t address, size_t first, size_t count) {
                 std::memcpy(pm_.data() + address * kPmWordBytes,
                             bytes.data() + first * kPmWordBytes, count * kPmWordBytes);
                 for (size_t w = address; w < address + count; ++w) {
                   pack_weights(pm_.data() + w * kPmWordBytes, packed_.data() + w * kPmWordBytes);
                   pm_written_[w] = launch_;
                 }
               });
}

}  // namespace tilewright::dpu
