// Random right programs for tests: all opcodes, small memories that wrap, and every word that was
// written saved in the end.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/builder.h"
#include "tilewright/accel/dpu/operands.h"
#include "tilewright/base/rng.h"

namespace tilewright::dpu::testing {

inline Config small_config(Rng& rng) {
  Config config;
  config.name = "small";
  config.pe = static_cast<int>(rng.between(1, 4));
  config.fm_depth = {64, 64, static_cast<int>(rng.between(64, 80))};
  config.pm_depth = static_cast<int>(rng.between(64, 90));
  config.ddr_bytes_per_cycle = 16 << rng.below(4);
  config.timing.lat_ddr = static_cast<int>(rng.below(30));
  config.timing.lat_conv = static_cast<int>(rng.below(20));
  config.timing.lat_misc = static_cast<int>(rng.below(10));
  config.timing.lat_init = static_cast<int>(rng.below(3));
  config.timing.fc_factor = static_cast<double>(rng.between(16, 48)) / 16;
  config.timing.stride_conflict = rng.chance(0.7);
  config.timing.queue = static_cast<int>(rng.chance(0.5) ? 64 : rng.between(1, 4));
  return config;
}

/// A kernel with its regions, filled with random bytes.
inline Program empty_program(const Config& config, Rng& rng) {
  Program program;
  program.config = config;
  const uint64_t sizes[] = {16384, 262144, 16384, 32768};
  uint64_t at = program.base;
  for (size_t r = 0; r < 4; ++r) {
    program.regions[r] = {std::string(name(static_cast<Reg>(r))), at, sizes[r]};
    at += sizes[r];
  }
  program.image.resize(at - program.base);
  for (const Reg reg : {Reg::Input, Reg::Params}) {
    const Region& region = program.regions[static_cast<size_t>(reg)];
    for (uint64_t i = 0; i < region.bytes; ++i)
      program.image[region.address - program.base + i] = static_cast<char>(rng.next());
  }
  return program;
}

/// Instructions that are right one after the other.
class RandomOps {
 public:
  RandomOps(const Config& config, Rng& rng) : config_(config), rng_(rng) {
    for (int m = 0; m < kMemories; ++m)
      written_.emplace_back(static_cast<size_t>(config.fm_words(m)));
    written_.emplace_back(static_cast<size_t>(config.pm_depth));
    for (int r = 0; r < 4; ++r) written_.emplace_back(262144 / kLanes, r == 0 || r == 3);
  }

  /// Fills most of the memories, then `count` instructions, then saves all there is.
  std::vector<Op> make(int count) {
    for (int bank = 0; bank < kBanks * kMemories; ++bank)
      if (rng_.chance(0.9)) add(whole_bank(bank));
    add(whole_pm());
    for (int i = 0; i < count; ++i) add_random();
    save_all();
    return std::move(ops_);
  }

 private:
  int between(int64_t low, int64_t high) { return static_cast<int>(rng_.between(low, high)); }
  int depth(int bank) const { return config_.fm_depth[static_cast<size_t>(bank / kBanks)]; }

  Load whole_bank(int bank) {
    Load load;
    load.bank_id = bank;
    load.bank_addr = between(0, depth(bank) - 1);
    load.jump_read = load.channel = kLanes;
    load.jump_write = 1;
    load.length = depth(bank);
    load.ddr_addr = between(0, 64) * config_.word_bytes();
    return load;
  }
  Load whole_pm() {
    Load load;
    load.mode = 1;
    load.jump_read = load.channel = kLanes;
    load.jump_write = 1;
    load.length = config_.pm_depth;
    load.reg_id = 3;
    return load;
  }
  Load random_load() {
    Load load;
    load.mode = rng_.chance(0.25);
    load.length = between(1, 9);
    load.channel = between(1, 40);
    load.jump_read = between(0, 48);
    load.jump_write = between(0, 4);
    const int word = load.mode == 1 ? kPmWordBytes : config_.word_bytes();
    load.bank_id = load.mode == 1 ? 0 : between(0, 23);
    load.bank_addr = between(0, (load.mode == 1 ? config_.pm_depth : depth(load.bank_id)) - 1);
    load.reg_id = between(0, 3);
    load.ddr_addr = between(0, 16) * word;
    return load;
  }
  Save random_save() {
    Save save;
    save.length = between(1, 9);
    save.channel = between(1, 40);
    save.jump_read = between(0, 4);
    save.jump_write = between(0, 48);
    save.bank_id = between(0, 23);
    save.bank_addr = between(0, depth(save.bank_id) - 1);
    save.reg_id = between(1, 2);
    save.ddr_addr = between(0, 16) * config_.word_bytes();
    return save;
  }
  ConvInit random_conv_init() {
    ConvInit init;
    init.kernel_w = between(1, 3);
    init.kernel_h = between(1, 3);
    init.stride_w = between(1, 3);
    init.stride_h = between(1, 3);
    init.dilation_w = between(1, 2);
    init.dilation_h = between(1, 2);
    init.shift_cut = between(4, 12);
    init.shift_bias = between(-26, 0);
    const int acts[] = {kNone, kRelu, kLeaky, kRelu6};
    init.act_type = acts[rng_.below(4)];
    init.fp_out = between(-2, 6);
    init.in_groups = between(1, 2);
    init.jump_read = between(0, 4);
    init.jump_read_endl = between(0, 40);
    init.jump_write = between(1, 4);
    init.jump_write_endl = between(0, 40);
    return init;
  }
  PoolInit random_pool_init() {
    PoolInit init;
    init.type = between(0, 3);
    init.kernel_w = between(1, 3);
    init.kernel_h = between(1, 3);
    init.stride_w = between(1, 3);
    init.stride_h = between(1, 3);
    init.factor = between(0, 1023);
    init.shift_avg = between(6, 12);
    init.jump_read = between(0, 4);
    init.jump_read_endl = between(0, 40);
    init.jump_write = between(1, 4);
    init.jump_write_endl = between(0, 40);
    return init;
  }
  ElewInit random_elew_init() {
    ElewInit init;
    init.num = between(1, 2);
    const int acts[] = {kNone, kRelu, kLeaky, kRelu6};
    init.act_type = acts[rng_.below(4)];
    init.fp_out = between(-2, 6);
    init.shift_read_a = between(0, 4);
    init.shift_read_b = between(0, 4);
    init.shift_write = between(-3, 2);
    init.jump_read_a = between(0, 4);
    init.jump_read_a_endl = between(0, 40);
    init.jump_read_b = between(0, 4);
    init.jump_read_b_endl = between(0, 40);
    init.jump_write = between(1, 4);
    init.jump_write_endl = between(0, 40);
    return init;
  }
  template <class T>
  void random_pads(T& op, int most) {
    op.pad_left = between(0, most);
    op.pad_top = between(0, most);
    op.pad_right = between(0, most);
    op.pad_bottom = between(0, most);
  }
  template <class T>
  void random_places(T& op) {
    op.bank_id_in = between(0, 23);
    op.bank_addr_in = between(0, depth(op.bank_id_in) - 1);
    op.bank_id_out = between(0, 23);
    op.bank_addr_out = between(0, depth(op.bank_id_out) - 1);
    op.length = between(1, 6);
  }
  Conv random_conv() {
    Conv op;
    op.mode = rng_.chance(0.2);
    random_pads(op, 2);
    random_places(op);
    op.bank_addr_weights = between(0, config_.pm_depth - 1);
    op.bank_addr_bias = between(0, 4 * config_.pm_depth - 1);
    op.out_groups = between(1, 2);
    op.valid_rows = between(1, 8);
    return op;
  }
  Pool random_pool() {
    Pool op;
    random_pads(op, rng_.chance(0.5) ? 0 : 1);
    random_places(op);
    op.channel_group = between(1, 2);
    op.valid_rows = between(1, 2);
    return op;
  }
  Elew random_elew() {
    Elew op;
    op.bank_id_a = between(0, 23);
    op.bank_addr_a = between(0, depth(op.bank_id_a) - 1);
    op.bank_id_b = between(0, 23);
    op.bank_addr_b = between(0, depth(op.bank_id_b) - 1);
    op.bank_id_out = between(0, 23);
    op.bank_addr_out = between(0, depth(op.bank_id_out) - 1);
    op.length = between(1, 6);
    op.channel_group = between(1, 2);
    op.valid_rows = between(1, 2);
    return op;
  }
  Op random_op() {
    switch (rng_.below(11)) {
      case 0:
      case 1:
        return random_load();
      case 2:
        return random_save();
      case 3:
        return random_conv_init();
      case 4:
        return random_pool_init();
      case 5:
        return random_elew_init();
      case 6:
      case 7:
        return random_conv();
      case 8:
        return random_pool();
      case 9:
        return random_elew();
      default:
        return Nop{between(0, 3)};
    }
  }
  void add_random() {
    for (int tries = 0; tries < 100; ++tries)
      if (add(random_op())) return;
  }

  /// Appends it if it is right here.
  bool add(const Op& op) {
    Inits inits = inits_;
    inits.update(op);
    const Insn insn{0, 0, op};
    if (!inits.complete_for(op) || !check_fields(insn, "") || !check_ranges(config_, insn, inits))
      return false;
    if (const auto ddr = ddr_of(config_, op);
        ddr && (ddr->end() > (ddr->reg == 3 ? 32768u : 16384u) ||
                (std::holds_alternative<Save>(op) && ddr->steps > 1 && ddr->pitch < ddr->bytes)))
      return false;
    const accel::Footprint touched = footprint(config_, insn, inits);
    bool defined = true;
    for (const accel::Access& access : touched)
      if (!access.write)
        each_word(access, [&](std::vector<bool>::reference word) { defined = defined && word; });
    if (!defined) return false;
    for (const accel::Access& access : touched)
      if (access.write) each_word(access, [](std::vector<bool>::reference word) { word = true; });
    inits_ = inits;
    ops_.push_back(op);
    return true;
  }
  template <class F>
  void each_word(const accel::Access& access, F&& f) {
    const uint64_t unit = access.memory < kDdrMemory ? 1 : kLanes;
    std::vector<bool>& words = written_[static_cast<size_t>(access.memory)];
    for (uint32_t row = 0; row < access.rows; ++row)
      for (uint64_t w = 0; w < access.width; w += unit)
        f(words[(access.address + row * access.pitch + w) / unit]);
  }

  void save_all() {
    int place = 16384 / config_.word_bytes() + 1;
    for (int bank = 0; bank < kBanks * kMemories; ++bank) {
      const std::vector<bool>& words = written_[static_cast<size_t>(bank / kBanks)];
      const int first = bank % kBanks * depth(bank);
      for (int at = 0; at < depth(bank);) {
        int end = at;
        while (end < depth(bank) && words[static_cast<size_t>(first + end)]) ++end;
        if (end > at) {
          Save save;
          save.bank_id = bank;
          save.bank_addr = at;
          save.jump_read = 1;
          save.jump_write = save.channel = kLanes;
          save.length = end - at;
          save.reg_id = 1;
          save.ddr_addr = place * config_.word_bytes();
          place += save.length;
          ops_.push_back(save);
        }
        at = end + 1;
      }
    }
  }

  const Config& config_;
  Rng& rng_;
  Inits inits_;
  std::vector<std::vector<bool>> written_;  ///< by memory of a footprint; DDR in units of 16 bytes
  std::vector<Op> ops_;
};

enum class Scheme { Addresses, Serial };

/// The program of some instructions. Serial: each one is a group of its own.
inline Program program_of(Program program, const std::vector<Op>& ops, Scheme scheme) {
  Builder builder(program.config);
  builder.begin_span("all");
  for (const Op& op : ops) {
    if (scheme == Scheme::Serial) builder.begin_group();
    const Status status = builder.add(op);
    EXPECT_TRUE(status) << to_string(status.error());
  }
  Result<Run> run = builder.finish(scheme == Scheme::Addresses);
  EXPECT_TRUE(run);
  program.runs = {*std::move(run)};
  return program;
}

}  // namespace tilewright::dpu::testing
