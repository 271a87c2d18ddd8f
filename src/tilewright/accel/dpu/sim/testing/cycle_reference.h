// A plain machine that steps cycle by cycle, for comparing with the one that goes from event to
// event: written from docs/dpu-timing.md alone.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/operands.h"

namespace tilewright::dpu::testing {

class CycleReference {
 public:
  struct Time {
    uint64_t begin = 0, end = 0, done = 0;
  };

  CycleReference(const Config& config, const std::vector<Insn>& insns)
      : config_(config), insns_(insns), times(insns.size() - 1) {
    Inits inits;
    for (size_t i = 0; i + 1 < insns.size(); ++i) {
      inits.update(insns[i].op);
      work_.push_back(work(insns[i].op, inits));
    }
  }

  /// Whether the launch comes to its end.
  bool run() {
    for (;; ++now_) {
      while (settle()) {
      }
      for (const auto& from : tokens_)
        for (const int count : from)
          if (count > 255) return false;
      if (quiet()) break;
      pass_cycle();
    }
    for (const auto& from : tokens_)
      for (const int count : from)
        if (count != 0) return false;
    return finished_ == times.size();
  }

 private:
  const Config& config_;
  const std::vector<Insn>& insns_;

 public:
  std::vector<Time> times;
  uint64_t cycles = 0, shared_port = 0;

 private:
  static constexpr size_t kNobody = static_cast<size_t>(-1);
  struct UnitState {
    std::deque<size_t> queue;
    size_t running = kNobody;
    uint64_t left = 0;
    bool on_port = false;
    std::deque<size_t> ended;
    uint64_t last_done = 0;
  };

  static bool on_port(const Op& op) {
    return std::holds_alternative<Load>(op) || std::holds_alternative<Save>(op);
  }
  static uint64_t groups_of(int channels) { return (static_cast<uint64_t>(channels) + 15) / 16; }

  /// Busy cycles, or beats.
  uint64_t work(const Op& op, const Inits& inits) const {
    const uint64_t width = static_cast<uint64_t>(config_.ddr_bytes_per_cycle);
    const auto beats = [&](uint64_t bytes) { return bytes / width + (bytes % width != 0); };
    const uint64_t word = 16 * static_cast<uint64_t>(config_.pe);
    if (const auto* load = std::get_if<Load>(&op))
      return beats(static_cast<uint64_t>(load->length) * groups_of(load->channel) *
                   (load->mode == 1 ? 256 : word));
    if (const auto* save = std::get_if<Save>(&op))
      return beats(static_cast<uint64_t>(save->length) * groups_of(save->channel) * word);
    const Timing& t = config_.timing;
    if (const auto* conv = std::get_if<Conv>(&op)) {
      int worst = 1;
      for (int bank = 0; bank < 8 && t.stride_conflict && conv->mode == 0; ++bank) {
        int rows = 0;
        for (int i = 0; i < conv->valid_rows; ++i) rows += i * inits.conv->stride_h % 8 == bank;
        worst = std::max(worst, rows);
      }
      double steps = 1.0 * conv->length * inits.conv->in_groups * conv->out_groups *
                     inits.conv->kernel_h * inits.conv->kernel_w * worst;
      if (conv->valid_rows == 1 && conv->length == 1) steps *= t.fc_factor;
      uint64_t whole = static_cast<uint64_t>(steps);
      if (static_cast<double>(whole) < steps) ++whole;
      return static_cast<uint64_t>(t.lat_conv) + whole;
    }
    if (const auto* pool = std::get_if<Pool>(&op)) {
      const bool window = inits.pool->type == kMaxPool || inits.pool->type == kAveragePool;
      return static_cast<uint64_t>(t.lat_misc +
                                   pool->length * pool->channel_group *
                                       (window ? inits.pool->kernel_h * inits.pool->kernel_w : 1));
    }
    if (const auto* elew = std::get_if<Elew>(&op))
      return static_cast<uint64_t>(t.lat_misc +
                                   elew->length * elew->channel_group * inits.elew->num);
    return static_cast<uint64_t>(t.lat_init);
  }

  /// What happens within this cycle without time going by; whether anything did.
  bool settle() {
    bool changed = false;
    for (size_t u = 0; u < 4; ++u) {
      UnitState& unit = units_[u];
      if (unit.running != kNobody && unit.left == 0) {
        Time& time = times[unit.running];
        time.end = now_;
        time.done =
            now_ +
            (on_port(insns_[unit.running].op) ? static_cast<uint64_t>(config_.timing.lat_ddr) : 0);
        if (time.done < unit.last_done) time.done = unit.last_done;
        unit.last_done = time.done;
        unit.ended.push_back(unit.running);
        unit.running = kNobody;
        changed = true;
      }
      while (!unit.ended.empty() && times[unit.ended.front()].done == now_) {
        for (size_t b = 0; b < 4; ++b) tokens_[u][b] += insns_[unit.ended.front()].dpby >> b & 1;
        unit.ended.pop_front();
        ++finished_;
        cycles = now_;
        changed = true;
      }
    }
    while (fetched_ < times.size()) {
      UnitState& unit = units_[static_cast<size_t>(unit_of(insns_[fetched_]))];
      if (unit.queue.size() == static_cast<size_t>(config_.timing.queue)) break;
      unit.queue.push_back(fetched_++);
      changed = true;
    }
    for (size_t u = 0; u < 4; ++u) changed = try_begin(u) || changed;
    return changed;
  }
  bool try_begin(size_t u) {
    UnitState& unit = units_[u];
    if (unit.running != kNobody || unit.queue.empty()) return false;
    const size_t index = unit.queue.front();
    for (size_t a = 0; a < 4; ++a)
      if ((insns_[index].dpon >> a & 1) != 0 && tokens_[a][u] == 0) return false;
    for (size_t a = 0; a < 4; ++a) tokens_[a][u] -= insns_[index].dpon >> a & 1;
    unit.queue.pop_front();
    unit.running = index;
    unit.left = work_[index];
    unit.on_port = on_port(insns_[index].op);
    times[index].begin = now_;
    return true;
  }
  bool quiet() const {
    for (const UnitState& unit : units_)
      if (unit.running != kNobody || !unit.ended.empty()) return false;
    return true;
  }

  void pass_cycle() {
    count_ports();
    const bool load = units_[0].running != kNobody && units_[0].on_port;
    const bool save = units_[1].running != kNobody && units_[1].on_port;
    const bool to_save = load && save && both_before_ && load_before_;
    if (load && !to_save) --units_[0].left;
    if (save && (to_save || !load)) --units_[1].left;
    both_before_ = load && save;
    load_before_ = load && !to_save;
    for (UnitState& unit : units_)
      if (unit.running != kNobody && !unit.on_port) --unit.left;
  }
  void count_ports() {
    int readers[3] = {}, writers[3] = {};
    for (UnitState& unit : units_) {
      if (unit.running == kNobody) continue;
      bool reads[3] = {}, writes[3] = {};
      Inits held;
      for (size_t i = 0; i <= unit.running; ++i) held.update(insns_[i].op);
      for (const accel::Access& access : footprint(config_, insns_[unit.running], held))
        if (access.memory < 3) (access.write ? writes : reads)[access.memory] = true;
      for (int m = 0; m < 3; ++m) {
        readers[m] += reads[m];
        writers[m] += writes[m];
      }
    }
    bool shared = false;
    for (int m = 0; m < 3; ++m) shared = shared || readers[m] > 1 || writers[m] > 1;
    shared_port += shared;
  }

  std::vector<uint64_t> work_;
  UnitState units_[4];
  int tokens_[4][4] = {};
  uint64_t now_ = 0;
  size_t fetched_ = 0, finished_ = 0;
  bool both_before_ = false, load_before_ = false;
};

}  // namespace tilewright::dpu::testing
