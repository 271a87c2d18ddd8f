// Random programs that Gemmini allows, for tests.
#pragma once

#include <algorithm>
#include <iterator>

#include "tilewright/accel/gemmini/program.h"
#include "tilewright/base/rng.h"

namespace tilewright::gemmini::testing {

inline Config random_config(Rng& rng) {
  Config config;
  config.dim = 2 << rng.below(5);
  config.spad_kb = static_cast<int>(1 + rng.below(3)) * config.dim;
  config.banks = 1 << rng.below(3);
  config.acc_kb = config.dim * config.dim / 64 + static_cast<int>(1 + rng.below(4));
  return config;
}

/// Commands that read and write anywhere: what is undefined was zero before.
class RandomCommands {
 public:
  RandomCommands(const Config& config, uint64_t base, uint64_t bytes, Rng& rng)
      : config_(config), base_(base), bytes_(bytes), rng_(rng) {}

  std::vector<Insn> make(int count) {
    std::vector<Insn> insns;
    configure_ex(insns);
    for (int w = 0; w < 3; ++w) configure_in(insns, w);
    insns.push_back({random_out()});
    insns.push_back({random_preload()});
    insns.push_back({random_compute(true)});
    for (int i = 0; i < count; ++i) step(insns);
    return insns;
  }

 private:
  int64_t pick(int64_t low, int64_t high) { return rng_.between(low, high); }
  float random_scale() {
    constexpr float kScales[] = {1, 1, 0.5f, 0.0078125f, 2, -0.25f, 0.3f, 0.001f, 1e6f};
    return kScales[rng_.below(std::ssize(kScales))];
  }

  void step(std::vector<Insn>& insns) {
    switch (rng_.below(12)) {
      case 0:
        return configure_ex(insns);
      case 1:
        return configure_in(insns, static_cast<int>(rng_.below(3)));
      case 2:
        out_ = random_out();
        insns.push_back({out_});
        return;
      case 3:
      case 4:
      case 5:
        insns.push_back({random_in()});
        return;
      case 6:
      case 7:
        insns.push_back({random_move_out()});
        return;
      case 8:
        insns.push_back({Flush{}});
        return;
      default:
        insns.push_back({random_preload()});
        insns.push_back({random_compute(fresh_ || rng_.below(2) == 0)});
        fresh_ = false;
        return;
    }
  }

  void configure_ex(std::vector<Insn>& insns) {
    const ConfigEx was = ex_;
    ex_.weights_stay = rng_.below(2) == 0;
    ex_.activation = static_cast<Activation>(rng_.below(2));
    ex_.a_transposed = rng_.below(3) == 0;
    ex_.b_transposed = ex_.weights_stay ? !ex_.a_transposed && rng_.below(3) == 0
                                        : ex_.a_transposed && rng_.below(2) == 0;
    ex_.a_stride = static_cast<uint16_t>(ex_.a_transposed ? 1 : pick(0, 3));
    ex_.c_stride = static_cast<uint16_t>(pick(1, 3));
    ex_.shift = ex_.weights_stay ? 0 : static_cast<uint32_t>(rng_.below(12));
    fresh_ = fresh_ || was.weights_stay != ex_.weights_stay || was.b_transposed != ex_.b_transposed;
    insns.push_back({ex_});
  }
  void configure_in(std::vector<Insn>& insns, int which) {
    ConfigMvin& c = in_[which];
    c.which = which;
    c.narrow = rng_.below(3) == 0;
    c.block_stride = static_cast<uint16_t>(pick(config_.dim, 2 * config_.dim));
    c.scale = random_scale();
    c.stride = static_cast<uint64_t>(pick(0, 100));
    insns.push_back({c});
  }
  ConfigMvout random_out() {
    ConfigMvout c;
    c.activation = static_cast<Activation>(rng_.below(2));
    c.stride = static_cast<uint32_t>(pick(0, 300));
    c.scale = random_scale();
    return out_ = c;
  }

  uint64_t dram_for(uint64_t stride, int64_t rows, int64_t row_bytes) {
    const uint64_t all =
        static_cast<uint64_t>(rows - 1) * stride + static_cast<uint64_t>(row_bytes);
    return base_ + static_cast<uint64_t>(rng_.below(static_cast<int64_t>(bytes_ - all)));
  }
  /// A place for so many rows, `stride` apart.
  Local place(bool acc, int64_t span, uint32_t flags = 0) {
    const int64_t all = acc ? config_.acc_rows() : config_.spad_rows();
    const int64_t near = std::min<int64_t>(all - span, 4 * config_.dim);  // so that they meet
    return acc ? Local::acc(pick(0, near), flags) : Local::spad(pick(0, near));
  }

  Mvin random_in() {
    Mvin c;
    c.which = static_cast<int>(rng_.below(3));
    const ConfigMvin& config = in_[c.which];
    const int64_t rows = pick(1, config_.dim);
    const bool acc = rng_.below(3) == 0;
    const int size = acc && !config.narrow ? 4 : 1;
    int64_t cols = pick(1, config_.most_columns(size));
    const auto span = [&] { return (cols - 1) / config_.dim * config.block_stride + config_.dim; };
    if (span() > (acc ? config_.acc_rows() : config_.spad_rows()))
      cols = std::min<int64_t>(cols, config_.dim);
    c.to = {place(acc, span(), rng_.below(2) == 0 ? Local::kAdds : 0), static_cast<uint16_t>(cols),
            static_cast<uint16_t>(rows)};
    c.dram = rng_.below(6) == 0 ? 0 : dram_for(config.stride, rows, cols * size);
    return c;
  }
  Mvout random_move_out() {
    Mvout c;
    const int64_t rows = pick(1, config_.dim), cols = pick(1, config_.dim);
    const bool acc = rng_.below(4) != 0, whole = acc && rng_.below(2) == 0;
    c.from = {place(acc, rows, whole ? Local::kWhole : 0), static_cast<uint16_t>(cols),
              static_cast<uint16_t>(rows)};
    c.dram = dram_for(out_.stride, rows, cols * (whole ? 4 : 1));
    return c;
  }
  Block operand(int64_t stride) {
    const auto rows = static_cast<uint16_t>(pick(1, config_.dim));
    const auto cols = static_cast<uint16_t>(pick(1, config_.dim));
    return {place(false, (config_.dim - 1) * stride + 1), cols, rows};
  }
  Preload random_preload() {
    Preload c;
    if (rng_.below(5) != 0) c.held = operand(1);
    if (rng_.below(5) == 0) return c;
    c.result = operand(ex_.c_stride);
    if (const int64_t span = (config_.dim - 1) * ex_.c_stride + 1;
        span <= config_.acc_rows() && rng_.below(3) != 0)
      c.result.at = place(true, span, rng_.below(2) == 0 ? Local::kAdds : 0);
    return c;
  }
  Compute random_compute(bool preloaded) {
    Compute c;
    c.preloaded = preloaded;
    c.a = operand(ex_.a_stride);
    if (rng_.below(5) != 0) c.other = operand(1);
    return c;
  }

  Config config_;
  uint64_t base_, bytes_;
  Rng& rng_;
  ConfigEx ex_;
  ConfigMvin in_[3];
  ConfigMvout out_;
  bool fresh_ = false;  ///< nothing is held since the configuration changed
};

inline Program random_program(Rng& rng, int commands) {
  Program program;
  program.config = random_config(rng);
  program.config.name = "random";
  for (int i = 0; i < 40000; ++i) program.image += static_cast<char>(rng.next());
  Run run;
  run.insns =
      RandomCommands(program.config, program.base, program.image.size(), rng).make(commands);
  program.runs.push_back(std::move(run));
  return program;
}

}  // namespace tilewright::gemmini::testing
