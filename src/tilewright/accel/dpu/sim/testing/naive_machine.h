// What instructions do, one after the other, word by word and straight from the formulas of
// docs/dpu.md: for comparing with the fast machine. Keeps what it touched.
#pragma once

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu::testing {

/// DPU_ROUND of an exact number. Long doubles hold all that do not saturate anyway.
inline int8_t naive_round(long double t) {
  const long double rounded = std::floor(t + 0.5L);
  return static_cast<int8_t>(rounded < -128 ? -128 : rounded > 127 ? 127 : rounded);
}

inline long double naive_act(long double t, int act, int fp_out) {
  if (act == kRelu) return t < 0 ? 0 : t;
  if (act == kLeaky) return t < 0 ? t * 26 / 256 : t;
  if (act != kRelu6) return t;
  const long double cap = std::ldexp(6.0L, fp_out);
  return t < 0 ? 0 : t > cap ? cap : t;
}

class NaiveMachine {
 public:
  using Place = std::pair<int, uint64_t>;  ///< memory of a footprint, word or byte

  NaiveMachine(const Config& config, const Program& program)
      : config_(config), regions_(program.regions), base_(program.base), ddr(program.image) {
    for (int bank = 0; bank < 24; ++bank)
      fm_.emplace_back(static_cast<size_t>(depth(bank) * config.pe * 16));
    pm_.resize(static_cast<size_t>(config.pm_depth) * 256);
  }

  void run(const Op& op) {
    reads.clear();
    writes.clear();
    inits_.update(op);
    std::vector<std::pair<int8_t*, int8_t>> results;
    if (const auto* one = std::get_if<Load>(&op)) load(*one);
    if (const auto* one = std::get_if<Save>(&op)) save(*one);
    if (const auto* one = std::get_if<Conv>(&op)) conv(*one, *inits_.conv, results);
    if (const auto* one = std::get_if<Pool>(&op)) pool(*one, *inits_.pool, results);
    if (const auto* one = std::get_if<Elew>(&op)) elew(*one, *inits_.elew, results);
    for (const auto& [place, value] : results) *place = value;  // all is read before
  }

 private:
  const Config config_;
  const std::array<Region, kRegs> regions_;
  const uint64_t base_;

 public:
  std::string ddr;
  std::set<Place> reads, writes;

 private:
  int64_t depth(int bank) const { return config_.fm_depth[static_cast<size_t>(bank / 8)]; }

  int8_t* fm(int bank, int64_t address, int image, int channel, std::set<Place>& touched) {
    const int64_t at = address % depth(bank);
    touched.insert({bank / 8, static_cast<uint64_t>(bank % 8 * depth(bank) + at)});
    return &fm_[static_cast<size_t>(bank)]
               [static_cast<size_t>((at * config_.pe + image) * 16 + channel)];
  }
  /// Row j from a named one, column x, channel c.
  int8_t* word(int bank_id, int address, int jump, int endl, int j, int x, int c, int image,
               std::set<Place>& touched) {
    const int m = bank_id / 8, o = bank_id % 8;
    return fm(8 * m + (o + j) % 8,
              address + int64_t{(o + j) / 8} * endl + int64_t{x} * jump + c / 16, image, c % 16,
              touched);
  }
  char* ddr_at(int reg, uint64_t offset, std::set<Place>& touched) {
    touched.insert({kDdrMemory + reg, offset});
    return &ddr[regions_[static_cast<size_t>(reg)].address - base_ + offset];
  }
  static int cg(int channels) { return (channels + 15) / 16; }

  void load(const Load& op) {
    for (int l = 0; l < op.length; ++l)
      for (int g = 0; g < cg(op.channel); ++g) {
        const auto step = static_cast<uint64_t>(l * cg(op.jump_read) + g);
        if (op.mode == 1) {
          const int64_t at = (op.bank_addr + l * op.jump_write + g) % config_.pm_depth;
          writes.insert({kPmMemory, static_cast<uint64_t>(at)});
          for (uint64_t i = 0; i < 256; ++i)
            pm_[static_cast<size_t>(at) * 256 + i] = static_cast<int8_t>(
                *ddr_at(op.reg_id, static_cast<uint64_t>(op.ddr_addr) + 256 * step + i, reads));
          continue;
        }
        for (int b = 0; b < config_.pe; ++b)
          for (int c = 0; c < 16; ++c)
            *fm(op.bank_id, op.bank_addr + l * op.jump_write + g, b, c, writes) =
                static_cast<int8_t>(*ddr_at(op.reg_id,
                                            static_cast<uint64_t>(op.ddr_addr) +
                                                step * 16 * static_cast<uint64_t>(config_.pe) +
                                                static_cast<uint64_t>(16 * b + c),
                                            reads));
      }
  }
  void save(const Save& op) {
    for (int l = 0; l < op.length; ++l)
      for (int g = 0; g < cg(op.channel); ++g)
        for (int b = 0; b < config_.pe; ++b)
          for (int c = 0; c < 16; ++c)
            *ddr_at(op.reg_id,
                    static_cast<uint64_t>(op.ddr_addr) +
                        static_cast<uint64_t>(l * cg(op.jump_write) + g) * 16 *
                            static_cast<uint64_t>(config_.pe) +
                        static_cast<uint64_t>(16 * b + c),
                    writes) = static_cast<char>(*fm(op.bank_id, op.bank_addr + l * op.jump_read + g,
                                                    b, c, reads));
  }

  using Results = std::vector<std::pair<int8_t*, int8_t>>;
  int8_t weight(const Conv& op, const ConvInit& init, int oc, int ky, int kx, int ic) {
    const int64_t word =
        ((int64_t{oc / 16} * init.kernel_h + ky) * init.kernel_w + kx) * init.in_groups + ic / 16;
    const int64_t at = (op.bank_addr_weights + word) % config_.pm_depth;
    reads.insert({kPmMemory, static_cast<uint64_t>(at)});
    return pm_[static_cast<size_t>(at * 256 + oc % 16 * 16 + ic % 16)];
  }
  int32_t bias(const Conv& op, int oc) {
    const int64_t byte = (int64_t{op.bank_addr_bias} * 16 + oc) * 4 % (config_.pm_depth * 256);
    reads.insert({kPmMemory, static_cast<uint64_t>(byte / 256)});
    uint32_t value = 0;
    for (int64_t i = 0; i < 4; ++i)
      value |= uint32_t{static_cast<uint8_t>(pm_[static_cast<size_t>(byte + i)])} << (8 * i);
    return static_cast<int32_t>(value);
  }
  void conv(const Conv& op, const ConvInit& init, Results& results) {
    const int rows = (op.valid_rows - 1) * init.stride_h + (init.kernel_h - 1) * init.dilation_h +
                     1 - op.pad_top - op.pad_bottom;
    const int columns = (op.length - 1) * init.stride_w + (init.kernel_w - 1) * init.dilation_w +
                        1 - op.pad_left - op.pad_right;
    for (int b = 0; b < config_.pe; ++b)
      for (int i = 0; i < op.valid_rows; ++i)
        for (int x = 0; x < op.length; ++x)
          for (int oc = 0; oc < 16 * op.out_groups; ++oc) {
            int64_t acc = 0;
            for (int ky = 0; ky < init.kernel_h; ++ky)
              for (int kx = 0; kx < init.kernel_w; ++kx)
                for (int ic = 0; ic < 16 * init.in_groups; ++ic) {
                  const int y = i * init.stride_h + ky * init.dilation_h - op.pad_top;
                  const int at = x * init.stride_w + kx * init.dilation_w - op.pad_left;
                  const int w = weight(op, init, oc, ky, kx, ic);
                  if (y < 0 || y >= rows || at < 0 || at >= columns) continue;
                  acc += w * *word(op.bank_id_in, op.bank_addr_in, init.jump_read,
                                   init.jump_read_endl, y, at, ic, b, reads);
                }
            const long double sum =
                2.0L * acc + std::floor(std::ldexp(2.0L * bias(op, oc), init.shift_bias));
            const long double t = std::ldexp(sum, -(init.shift_cut + 1));
            results.emplace_back(word(op.bank_id_out, op.bank_addr_out, init.jump_write,
                                      init.jump_write_endl, i, x, oc, b, writes),
                                 naive_round(naive_act(t, init.act_type, init.fp_out)));
          }
  }
  void pool(const Pool& op, const PoolInit& init, Results& results) {
    const int rows =
        (op.valid_rows - 1) * init.stride_h + init.kernel_h - op.pad_top - op.pad_bottom;
    const int columns =
        (op.length - 1) * init.stride_w + init.kernel_w - op.pad_left - op.pad_right;
    for (int b = 0; b < config_.pe; ++b)
      for (int i = 0; i < op.valid_rows; ++i)
        for (int x = 0; x < op.length; ++x)
          for (int c = 0; c < 16 * op.channel_group; ++c) {
            const auto in = [&](int y, int at) {
              return *word(op.bank_id_in, op.bank_addr_in, init.jump_read, init.jump_read_endl, y,
                           at, c, b, reads);
            };
            int largest = -128, sum = 0;
            if (init.type == kCopy) largest = in(i * init.stride_h, x * init.stride_w);
            if (init.type == kUpsample) largest = in(i / init.stride_h, x / init.stride_w);
            for (int ky = 0; init.type <= kAveragePool && ky < init.kernel_h; ++ky)
              for (int kx = 0; kx < init.kernel_w; ++kx) {
                const int y = i * init.stride_h + ky - op.pad_top;
                const int at = x * init.stride_w + kx - op.pad_left;
                if (y < 0 || y >= rows || at < 0 || at >= columns) continue;
                largest = std::max<int>(largest, in(y, at));
                sum += in(y, at);
              }
            const int8_t value =
                init.type == kAveragePool
                    ? naive_round(std::ldexp(1.0L * sum * init.factor, -init.shift_avg))
                    : static_cast<int8_t>(largest);
            results.emplace_back(word(op.bank_id_out, op.bank_addr_out, init.jump_write,
                                      init.jump_write_endl, i, x, c, b, writes),
                                 value);
          }
  }
  void elew(const Elew& op, const ElewInit& init, Results& results) {
    for (int b = 0; b < config_.pe; ++b)
      for (int i = 0; i < op.valid_rows; ++i)
        for (int x = 0; x < op.length; ++x)
          for (int c = 0; c < 16 * op.channel_group; ++c) {
            const auto term = [](int value, int shift) {
              return std::floor(std::ldexp(4.0L * value, -shift));
            };
            long double u = term(*word(op.bank_id_a, op.bank_addr_a, init.jump_read_a,
                                       init.jump_read_a_endl, i, x, c, b, reads),
                                 init.shift_read_a);
            if (init.num == 2)
              u += term(*word(op.bank_id_b, op.bank_addr_b, init.jump_read_b, init.jump_read_b_endl,
                              i, x, c, b, reads),
                        init.shift_read_b);
            const long double t = std::ldexp(u, init.shift_write - 2);
            results.emplace_back(word(op.bank_id_out, op.bank_addr_out, init.jump_write,
                                      init.jump_write_endl, i, x, c, b, writes),
                                 naive_round(naive_act(t, init.act_type, init.fp_out)));
          }
  }

  Inits inits_;
  std::vector<std::vector<int8_t>> fm_;
  std::vector<int8_t> pm_;
};

}  // namespace tilewright::dpu::testing
