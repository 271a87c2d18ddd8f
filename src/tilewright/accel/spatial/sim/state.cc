#include "tilewright/accel/spatial/sim/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/sim/kernels.h"

namespace tilewright::spatial {
namespace {

constexpr uint64_t kMostDram = uint64_t{16} << 30;

/// The first of `count` places from `at` on that nothing wrote, or -1.
int64_t first_unwritten(const std::vector<uint8_t>& written, int64_t at, int64_t count) {
  const uint8_t* begin = written.data() + at;
  const void* found = std::memchr(begin, 0, static_cast<size_t>(count));
  return found == nullptr ? -1 : at + (static_cast<const uint8_t*>(found) - begin);
}

tl::unexpected<Error> undefined(std::string_view what, int64_t at) {
  return fail(ErrorKind::Invalid, fmt::format("reads {} {}, which nothing wrote", what, at));
}

int32_t read_word(const int8_t* bytes) {
  uint32_t word = 0;
  for (int b = 0; b < 4; ++b) word |= uint32_t{static_cast<uint8_t>(bytes[b])} << 8 * b;
  return static_cast<int32_t>(word);
}

void write_word(int32_t word, int8_t* bytes) {
  for (int b = 0; b < 4; ++b)
    bytes[b] = static_cast<int8_t>(static_cast<uint32_t>(word) >> 8 * b & 0xff);
}

/// Place of a position in the scratchpad, less the instruction's.
int64_t spad_place(const Load& load, int axis, uint32_t position) {
  const LoadAxis& a = load.axes[static_cast<size_t>(axis)];
  if (axis != load.lane_axis) return int64_t{position} * a.spad_step;
  return int64_t{position / load.lanes} * load.lane_pitch +
         int64_t{position % load.lanes} * a.spad_step;
}

/// Calls f(p) for all positions of the axes but the last one.
template <class Axes, class F>
Status each_line(const Axes& axes, F&& f) {
  std::array<uint32_t, kAxes> p{};
  for (int a = kAxes - 2; a >= 0;) {
    if (a == kAxes - 2) TW_TRY_STATUS(f(p));
    const auto axis = static_cast<size_t>(a);
    if (++p[axis] < axes[axis].count) {
      a = kAxes - 2;
    } else {
      p[axis] = 0;
      --a;
    }
  }
  return {};
}

}  // namespace

Status SimDram::write(uint64_t address, std::string_view bytes) {
  if (bytes.empty()) return {};
  if (address > kDramBytes || bytes.size() > kDramBytes - address)
    return fail(ErrorKind::Invalid,
                fmt::format("{} bytes at {} are beyond DRAM", bytes.size(), address));
  const auto begin = static_cast<int64_t>(address);
  const auto end = begin + static_cast<int64_t>(bytes.size());
  if (bytes_.empty()) base_ = begin;
  const int64_t low = std::min(base_, begin);
  const int64_t high = std::max(base_ + std::ssize(bytes_), end);
  if (static_cast<uint64_t>(high - low) > kMostDram)
    return fail(ErrorKind::Capacity, fmt::format("DRAM from {} to {} is in use", low, high),
                fmt::format("this simulator holds {} GiB", kMostDram >> 30));
  if (low < base_) bytes_.insert(bytes_.begin(), static_cast<size_t>(base_ - low), 0);
  base_ = low;
  if (std::ssize(bytes_) < high - low) bytes_.resize(static_cast<size_t>(high - low));
  std::memcpy(at(begin), bytes.data(), bytes.size());
  return {};
}

void SimDram::read(uint64_t address, char* into, uint64_t bytes) const {
  for (uint64_t i = 0; i < bytes; ++i) {
    const auto at = static_cast<int64_t>(address + i) - base_;
    into[i] =
        static_cast<char>(at < 0 || at >= std::ssize(bytes_) ? 0 : bytes_[static_cast<size_t>(at)]);
  }
}

Status SimDram::check(const Runs& runs) const {
  if (runs.bytes == 0) return {};
  const int64_t begin = runs.begins.first();
  const int64_t end = runs.begins.last() + static_cast<int64_t>(runs.bytes);
  if (begin >= base_ && end <= base_ + std::ssize(bytes_)) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("bytes {}..{} of DRAM, but the host wrote {}..{}", begin, end - 1, base_,
                          base_ + std::ssize(bytes_) - 1));
}

State::State(const Design& design)
    : design_(design),
      parts_(sum_parts(design)),
      all_(all_lanes(design)),
      spad_(static_cast<size_t>(design.spad_bytes())),
      sums_(static_cast<size_t>(parts_ * sum_words(design) + kGroup)),
      bias_(kBiasWords) {
  begin_launch();
}

Status State::read(uint64_t address, char* into, uint64_t bytes) const {
  if (address > kDramBytes || bytes > kDramBytes - address)
    return fail(ErrorKind::Invalid, fmt::format("{} bytes at {} are beyond DRAM", bytes, address));
  dram_.read(address, into, bytes);
  return {};
}

void State::begin_launch() {
  spad_written_.assign(spad_.size(), 0);
  sums_written_.assign(sums_.size(), 0);
  bias_written_.assign(bias_.size(), 0);
}

Status State::run(const Insn& insn) {
  TW_TRY_STATUS(check_fields(design_, insn));
  if (const auto* load = std::get_if<Load>(&insn.work)) return this->load(*load);
  if (const auto* compute = std::get_if<Compute>(&insn.work)) return this->compute(*compute);
  return store(std::get<Store>(insn.work));
}

Status State::load(const Load& load) {
  TW_TRY_STATUS(dram_.check(runs(load)));
  for (int w = 0; w < load.bias_words; ++w) {
    const auto at = static_cast<size_t>(load.bias + w);
    bias_[at] = read_word(dram_.at(static_cast<int64_t>(load.dram) + 4 * (w - load.bias_words)));
    bias_written_[at] = 1;
  }
  return each_line(load.axes, [&](const auto& p) -> Status {
    int64_t from = static_cast<int64_t>(load.dram), to = load.spad;
    bool zeros = load.axes.back().there() == 0;
    for (size_t a = 0; a + 1 < kAxes; ++a) {
      const LoadAxis& axis = load.axes[a];
      zeros = zeros || p[a] < axis.before || p[a] >= axis.count - axis.after;
      from += (int64_t{p[a]} - axis.before) * axis.dram_step;
      to += spad_place(load, static_cast<int>(a), p[a]);
    }
    load_line(load, zeros ? nullptr : dram_.at(from), to, zeros);
    return {};
  });
}

/// The last axis, from its first byte that is there: zeros, what is there, zeros; each cut into
/// pieces that lie in one block of lanes.
void State::load_line(const Load& load, const int8_t* from, int64_t to, bool zeros) {
  const LoadAxis& axis = load.axes.back();
  const uint32_t begin = zeros ? axis.count : axis.before;
  const uint32_t end = axis.count - (zeros ? 0 : axis.after);
  const uint32_t block = load.lane_axis == kAxes - 1 ? load.lanes : axis.count;
  for (uint32_t p = 0; p < axis.count;) {
    const uint32_t part_end = p < begin ? begin : p < end ? end : axis.count;
    const uint32_t next = std::min(part_end, (p / block + 1) * block);
    const bool there = p >= begin && p < end;
    copy(there ? from + (p - begin) : nullptr, to + spad_place(load, kAxes - 1, p), next - p,
         axis.spad_step);
    p = next;
  }
}

/// `from`: null for zeros.
void State::copy(const int8_t* from, int64_t to, int64_t count, int64_t step) {
  if (step == 1) {
    if (from != nullptr)
      std::copy_n(from, count, spad_.begin() + to);
    else
      std::fill_n(spad_.begin() + to, count, int8_t{0});
    std::fill_n(spad_written_.begin() + to, count, uint8_t{1});
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(to + i * step);
    spad_[at] = from != nullptr ? from[i] : int8_t{0};
    spad_written_[at] = 1;
  }
}

Status State::compute(const Compute& compute) {
  const bool stays = weights_stay(design_);
  // What a block takes of the private memory holds no sums any more.
  std::fill(sums_written_.begin() + sum_limit(design_, compute) * parts_, sums_written_.end(),
            uint8_t{0});
  const int64_t rows = stays ? taps(compute) * ((all_.k + 1) / 2) : 1;
  const int64_t lanes = design_.unit == Unit::Gemv ? all_.i : all_.j;
  block_.assign(static_cast<size_t>(rows * packed_row(lanes)), 0);
  Place place;
  begin_place(compute, place);
  for (int moved = 0; moved >= 0; moved = next_place(compute, place)) {
    settle(compute, place);
    // Loop 0 counts as moved in the first step; without block loops there is one block.
    if (stays && (moved < compute.block_loops || place.at == std::array<uint32_t, kLoops>{}))
      TW_TRY_STATUS(read_block(compute, place));
    TW_TRY_STATUS(step(place));
  }
  return {};
}

void State::begin_place(const Compute& compute, Place& place) const {
  place.first = compute.spad[0];
  place.second = compute.spad[1];
  place.sum = compute.sum;
}

/// Goes one step further; returns the outermost loop that moved, or -1 at the end.
int State::next_place(const Compute& compute, Place& place) const {
  int64_t tap_step = 1;
  for (int l = kLoops - 1; l >= 0; --l) {
    const auto at = static_cast<size_t>(l);
    const ComputeLoop& loop = compute.loops[at];
    const bool tap = l >= kLoops - compute.tap_loops;
    const int64_t steps = place.at[at] + 1 < loop.count ? 1 : -int64_t{place.at[at]};
    place.at[at] = static_cast<uint32_t>(place.at[at] + steps);
    place.first += steps * loop.spad_step[0];
    place.second += steps * loop.spad_step[1];
    place.sum += steps * loop.sum_step;
    if (tap) place.tap += steps * tap_step;
    if (steps > 0) return l;
    if (tap) tap_step *= loop.count;
  }
  return -1;
}

/// Which lanes work, and whether sums begin.
void State::settle(const Compute& compute, Place& place) const {
  const auto working = [&](const Lanes& lanes, int64_t width) {
    const int64_t block = lanes.loop < 0 ? 0 : place.at[static_cast<size_t>(lanes.loop)];
    return std::clamp<int64_t>(lanes.count - block * width, 0, width);
  };
  place.lanes = {working(compute.i, all_.i), working(compute.j, all_.j),
                 working(compute.k, all_.k)};
  place.begins = compute.begins;
  for (size_t l = 0; l < kLoops; ++l)
    if (compute.loops[l].reduces && place.at[l] != 0) place.begins = false;
}

/// The weights of all taps, by pairs of k. requires: the loops that choose the tap are at 0.
Status State::read_block(const Compute& compute, const Place& place) {
  const bool conv = design_.unit == Unit::Conv2d;
  const int64_t row = packed_row(all_.j), tap_size = (all_.k + 1) / 2 * row;
  const int64_t lines = conv ? place.lanes.j : place.lanes.k;
  const int64_t bytes = conv ? place.lanes.k : place.lanes.j;
  std::fill(block_.begin(), block_.end(), int16_t{0});
  for (int64_t tap = 0; tap < taps(compute); ++tap) {
    int64_t at = place.second, left = tap;
    for (int l = kLoops - 1; l >= kLoops - compute.tap_loops; --l) {
      const ComputeLoop& loop = compute.loops[static_cast<size_t>(l)];
      at += left % loop.count * loop.spad_step[1];
      left /= loop.count;
    }
    for (int64_t line = 0; line < lines; ++line, at += compute.row_step) {
      TW_TRY_STATUS(check_read(at, bytes));
      for (int64_t b = 0; b < bytes; ++b) {
        const int64_t j = conv ? line : b, k = conv ? b : line;
        block_[static_cast<size_t>(tap * tap_size + k / 2 * row + 2 * j + k % 2)] =
            spad_[static_cast<size_t>(at + b)];
      }
    }
  }
  return {};
}

Status State::check_read(int64_t byte, int64_t count) const {
  const int64_t bad = first_unwritten(spad_written_, byte, count);
  if (bad < 0) return {};
  return undefined("byte", bad);
}

/// Sums that a step changes: zeros if they begin.
Status State::begin_sums(int64_t word, int64_t count, bool begins) {
  if (begins) {
    std::fill_n(sums_.begin() + word, count, 0);
    std::fill_n(sums_written_.begin() + word, count, uint8_t{1});
    return {};
  }
  const int64_t bad = first_unwritten(sums_written_, word, count);
  if (bad < 0) return {};
  return undefined(fmt::format("part {}, sum", bad % parts_), bad / parts_);
}

Status State::step(const Place& place) {
  const RoleLanes& lanes = place.lanes;
  const std::array<int64_t, 2> read = row_lanes(design_, lanes);
  const int8_t* first = spad_.data() + place.first;
  const int8_t* second = spad_.data() + place.second;
  const int64_t word = place.sum * parts_;
  int32_t* sums = sums_.data() + word;
  TW_TRY_STATUS(check_read(place.first, read[0]));
  if (read[1] > 0) TW_TRY_STATUS(check_read(place.second, read[1]));
  if (design_.unit == Unit::Dot) {
    TW_TRY_STATUS(begin_sums(word, 1, place.begins));
    *sums = wrapped(int64_t{*sums} + dot_product(first, second, lanes.k));
  } else if (design_.unit == Unit::Gemv) {
    TW_TRY_STATUS(begin_sums(word, lanes.i, place.begins));
    pack_row(first, lanes.i, block_.data());
    add_products(sums, second, 1, block_.data(), lanes.i);
  } else if (weights_stay(design_)) {
    TW_TRY_STATUS(begin_sums(word, lanes.j, place.begins));
    const int64_t tap_size = (all_.k + 1) / 2 * packed_row(all_.j);
    add_products(sums, first, lanes.k, block_.data() + place.tap * tap_size, all_.j);
  } else {
    // Rows of sums whose lanes all work follow each other.
    const bool whole = lanes.j == all_.j;
    for (int64_t i = 0; i < (whole ? 1 : lanes.i); ++i)
      TW_TRY_STATUS(
          begin_sums(word + i * all_.j, whole ? lanes.i * lanes.j : lanes.j, place.begins));
    pack_row(second, lanes.j, block_.data());
    add_outer_product(sums, all_.j, first, lanes.i, block_.data(), lanes.j);
  }
  return {};
}

Status State::store(const Store& store) {
  TW_TRY_STATUS(dram_.check(runs(store)));
  const auto part = [](const StoreAxis& axis, uint32_t p) {
    return int64_t{p % axis.lanes} * axis.part_step;
  };
  const auto sum = [](const StoreAxis& axis, uint32_t p) {
    return int64_t{p / axis.lanes} * axis.sum_step;
  };
  return each_line(store.axes, [&](const auto& p) -> Status {
    int64_t line_part = 0, line_sum = store.sum, to = static_cast<int64_t>(store.dram);
    for (size_t a = 0; a + 1 < kAxes; ++a) {
      line_part += part(store.axes[a], p[a]);
      line_sum += sum(store.axes[a], p[a]);
      to += int64_t{p[a]} * store.axes[a].dram_step;
    }
    const StoreAxis& axis = store.axes.back();
    for (uint32_t last = 0; last < axis.count; ++last, to += axis.dram_step) {
      const uint32_t bias_at = store.bias_axis == kAxes - 1 ? last
                               : store.bias_axis < 0        ? 0
                                                     : p[static_cast<size_t>(store.bias_axis)];
      TW_TRY_STATUS(store_one(store, line_part + part(axis, last), line_sum + sum(axis, last),
                              bias_at, dram_.at(to)));
    }
    return {};
  });
}

Status State::store_one(const Store& store, int64_t part, int64_t sum, uint32_t bias_at,
                        int8_t* to) {
  const auto word = static_cast<size_t>(sum * parts_ + part);
  if (sums_written_[word] == 0) return undefined(fmt::format("part {}, sum", part), sum);
  int64_t value = sums_[word];
  if (store.bias_axis >= 0) {
    const size_t at = store.bias + bias_at;
    if (bias_written_[at] == 0) return undefined("bias", static_cast<int64_t>(at));
    value = wrapped(value + bias_[at]);
  }
  if (store.wide) {
    write_word(static_cast<int32_t>(value), to);
    return {};
  }
  if (store.shift > 0) value = (value + (int64_t{1} << (store.shift - 1))) >> store.shift;
  *to = static_cast<int8_t>(std::clamp<int64_t>(value, store.low, store.high));
  return {};
}

}  // namespace tilewright::spatial
