// For tests: docs/vta-timing.md cycle by cycle, with nothing shared with the simulator.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta::testing {

class CycleReference {
 public:
  CycleReference(const Config& config, const std::vector<Insn>& insns)
      : c_(config),
        t_(config.timing),
        insns_(insns),
        chain_(modules(config)),
        modules_(chain_.size()),
        tokens_(2 * chain_.size()),
        begin_(insns.size()),
        end_(insns.size()) {
    start_batch(1);
  }

  /// Until all is done; false after `limit` cycles.
  bool run(uint64_t limit) {
    for (now_ = 0; now_ < limit && finished_ < insns_.size(); ++now_) cycle();
    return finished_ == insns_.size();
  }
  uint64_t begin(size_t i) const { return begin_[i]; }
  uint64_t end(size_t i) const { return end_[i]; }

 private:
  struct Row {
    uint64_t address, bytes;
  };
  struct Client {
    std::deque<Row> rows;
    uint64_t valid_from = 0;
  };
  struct Granted {
    size_t client = 0;
    uint64_t at = 0, beats = 0;
    bool last = false;  ///< of the client's rows
  };
  enum class State { Idle, Wait, Load };
  struct ModuleState {
    std::deque<std::pair<size_t, uint64_t>> queue;  ///< instruction, valid from
    uint64_t freed = 0;                             ///< cycle of the last take
    State state = State::Idle;
    size_t insn = 0;
    uint64_t until = 0;  ///< first idle cycle
    uint64_t write_from = 0, pads = 0;
    bool data = false;  ///< beats are to come
    size_t client = 0;
  };

  void cycle() {
    const std::optional<size_t> beat = port();
    for (size_t m = 0; m < modules_.size(); ++m) execute(modules_[m], beat);
    for (size_t m = 0; m < modules_.size(); ++m) take(m);
    fetch(beat);
  }

  /// The beat of this cycle, if any: whose it is. `was_last_` tells whether it ends its client's
  /// rows.
  std::optional<size_t> port() {
    if (waiting_ && moving_.beats == 0 && idle_ == 0 &&
        now_ >= waiting_->at + static_cast<uint64_t>(t_.read_latency)) {
      moving_ = *waiting_;
      waiting_.reset();
    }
    grant();
    was_last_ = false;
    if (moving_.beats == 0) {
      if (idle_ > 0) --idle_;
      return std::nullopt;
    }
    if (--moving_.beats == 0) {
      idle_ = t_.burst_gap;
      was_last_ = moving_.last;
    }
    return moving_.client;
  }
  void grant() {
    if (waiting_) return;
    for (size_t k = 0; k < 4; ++k) {
      Client& client = clients_[k];
      if (client.rows.empty() || client.valid_from > now_) continue;
      Row& row = client.rows.front();
      const uint64_t bus = t_.bus_bytes;
      uint64_t bytes = 0, beats = 0;
      // Byte by byte until the block or the row ends.
      do {
        if (bytes == 0 || (row.address + bytes) % bus == 0) ++beats;
        ++bytes;
      } while (bytes < row.bytes && (row.address + bytes) % (bus * t_.max_burst_beats) != 0);
      row.address += bytes;
      row.bytes -= bytes;
      if (row.bytes == 0) client.rows.pop_front();
      client.valid_from = now_ + 1;
      waiting_ = Granted{k, now_, beats, client.rows.empty()};
      return;
    }
  }

  void execute(ModuleState& m, std::optional<size_t> beat) {
    if (m.state == State::Load && now_ >= m.write_from) {
      if (beat == m.client) {
        if (was_last_) m.data = false;
      } else if (m.pads > 0) {
        --m.pads;
      }
      if (!m.data && m.pads == 0) {
        m.state = State::Wait;
        m.until = now_ + 2;
      }
    }
    if (m.state == State::Wait && now_ + 1 == m.until) {  // DONE
      const Deps& deps = insns_[m.insn].deps;
      const size_t at = static_cast<size_t>(&m - modules_.data());
      if (deps.push_prev) tokens_[2 * at - 1].push_back(now_);
      if (deps.push_next) tokens_[2 * at].push_back(now_);
    }
    if (m.state == State::Wait && now_ == m.until) {
      end_[m.insn] = now_;
      ++finished_;
      m.state = State::Idle;
    }
  }
  bool there(size_t queue) const {
    return !tokens_[queue].empty() &&
           tokens_[queue].front() + static_cast<uint64_t>(t_.token_latency) <= now_;
  }
  void take(size_t at) {
    ModuleState& m = modules_[at];
    if (m.state != State::Idle || m.queue.empty() || m.queue.front().second > now_) return;
    const size_t i = m.queue.front().first;
    const Deps& deps = insns_[i].deps;
    if (deps.pop_prev && !there(2 * at - 2)) return;
    if (deps.pop_next && !there(2 * at + 1)) return;
    if (deps.pop_prev) tokens_[2 * at - 2].pop_front();
    if (deps.pop_next) tokens_[2 * at + 1].pop_front();
    m.queue.pop_front();
    m.freed = now_;
    m.insn = i;
    begin_[i] = now_;
    start(m, insns_[i]);
  }
  void start(ModuleState& m, const Insn& insn) {
    m.state = State::Wait;
    if (const auto* t = std::get_if<Transfer>(&insn.op)) {
      const uint64_t rows = t->y_pad_top + t->y_size + t->y_pad_bottom;
      if (t->x_size == 0 || rows == 0)
        m.until = now_ + t_.empty;
      else if (t->store)
        m.until = now_ + 2 + store(*t);
      else
        load(m, *t);
      return;
    }
    if (std::holds_alternative<Finish>(insn.op)) {
      m.until = now_ + t_.finish;
      return;
    }
    const auto* gemm = std::get_if<Gemm>(&insn.op);
    const auto* alu = std::get_if<Alu>(&insn.op);
    const Loops& l = gemm ? gemm->loops : alu->loops;
    const uint64_t iterations = uint64_t{l.outer} * l.inner;
    int ii = gemm ? t_.gemm_ii : alu->use_imm ? t_.alu_imm_ii : t_.alu_reg_ii;
    if (alu && !alu->use_imm && c_.extensions.pipelined_alu) ii = 1;
    m.until = now_ + iterations * (l.uop_end - l.uop_begin) * ii + iterations * t_.loop_fill +
              (gemm ? t_.gemm_overhead : t_.alu_overhead);
  }
  uint64_t store(const Transfer& t) const {
    const uint64_t element = c_.element_bytes(Mem::Out), bus = t_.bus_bytes;
    uint64_t cycles = 0;
    for (uint64_t y = 0; y < t.y_size; ++y)
      for (uint64_t x = 0; x < t.x_size; ++x) {
        const uint64_t address = (t.dram + y * t.x_stride + x) * element;
        for (uint64_t byte = 0; byte < element; ++byte)
          if ((x == 0 && byte == 0) || (address + byte) % (bus * t_.max_burst_beats) == 0)
            cycles += t_.store_row_overhead;
        cycles += (element > bus ? element / bus : 1) + t_.store_element_extra;
      }
    return cycles;
  }
  void load(ModuleState& m, const Transfer& t) {
    m.state = State::Load;
    m.write_from = now_ + (t_.load_overhead > 2 ? t_.load_overhead - 1 : 1);
    const uint64_t width = t.x_pad_left + t.x_size + t.x_pad_right;
    m.pads = width * (t.y_pad_top + t.y_size + t.y_pad_bottom) - uint64_t{t.x_size} * t.y_size;
    m.data = t.y_size > 0;
    m.client = t.mem == Mem::Uop ? 1 : t.mem == Mem::Inp || t.mem == Mem::Wgt ? 2 : 3;
    const uint64_t element = c_.element_bytes(t.mem);
    for (uint64_t y = 0; y < t.y_size; ++y)
      clients_[m.client].rows.push_back({(t.dram + y * t.x_stride) * element, t.x_size * element});
    clients_[m.client].valid_from = m.write_from;
  }

  void start_batch(uint64_t at) {
    batch_ = std::min<size_t>(t_.fetch_batch, insns_.size() - fetched_);
    if (batch_ == 0) return;
    clients_[0].rows.push_back({fetched_ * 16, batch_ * 16});
    clients_[0].valid_from = at;
    dispatch_from_ = UINT64_MAX;
  }
  void fetch(std::optional<size_t> beat) {
    if (beat == size_t{0} && was_last_) dispatch_from_ = now_ + 2;
    if (batch_ == 0 || now_ < dispatch_from_) return;
    size_t at = 0;
    while (chain_[at] != module_of(c_, insns_[fetched_])) ++at;
    ModuleState& m = modules_[at];
    // What was taken in this cycle frees its place only for the next one.
    const size_t held = m.queue.size() + (m.freed == now_ && now_ > 0);
    if (held >= static_cast<size_t>(t_.command_queue)) return;
    m.queue.push_back({fetched_++, now_ + 1});
    if (--batch_ == 0) start_batch(now_ + 1);
  }

  Config c_;
  Timing t_;
  const std::vector<Insn>& insns_;
  std::vector<Module> chain_;
  std::vector<ModuleState> modules_;
  std::vector<std::deque<uint64_t>> tokens_;  ///< cycles of pushes
  std::vector<uint64_t> begin_, end_;
  Client clients_[4];  ///< fetch, uop, load, acc
  std::optional<Granted> waiting_;
  Granted moving_;
  int idle_ = 0;
  bool was_last_ = false;
  uint64_t now_ = 0, dispatch_from_ = UINT64_MAX;
  size_t fetched_ = 0, batch_ = 0, finished_ = 0;
};

}  // namespace tilewright::vta::testing
