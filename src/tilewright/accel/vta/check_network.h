// The modules of one run as a network of processes joined by queues, without time. Internal.
//
// Which instruction knows which others to be complete follows from the tokens alone, so it is the
// same in every order of execution.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "tilewright/accel/vta/check_memory.h"
#include "tilewright/accel/vta/check_static.h"
#include "tilewright/accel/vta/isa.h"

namespace tilewright::vta::check_detail {

class Network {
 public:
  Network(const Config& config, const std::vector<Insn>& insns);

  /// Runs until nothing can; `act` sees each instruction that runs, after it took its tokens.
  void run(const std::function<void(uint32_t insn, const Actor& actor)>& act);

  struct Problem {
    size_t insn = 0;
    Note note;
  };
  /// Instructions that never run. requires: run.
  std::vector<Problem> stuck() const;
  /// Tokens left, and queues that can overflow. requires: run.
  std::vector<Problem> queues() const;

  size_t size() const { return chain_.size(); }
  Module module(size_t place) const { return chain_[place]; }
  /// Instructions of a module in the stream.
  uint32_t total(size_t place) const { return totals_[place]; }
  /// The `seq`-th instruction (from 1) that a module ran.
  uint32_t insn_of(size_t place, uint32_t seq) const { return pending_[place][seq - 1]; }
  /// The last STORE that moves something, counted in its module; 0 if there is none.
  uint32_t last_store() const { return last_store_; }

 private:
  /// One direction between two neighbours of the chain.
  struct Queue {
    std::deque<Clock> tokens;
    std::vector<uint32_t> push_insns;  ///< which instruction pushed
    std::vector<uint32_t> push_knows;  ///< how many of the taker's instructions it knew complete
    std::vector<uint32_t> pop_seqs;    ///< which of the taker's instructions took, from 1
  };

  bool fetch();
  bool ready(size_t m) const;
  void execute(size_t m, const std::function<void(uint32_t, const Actor&)>& act);
  void take(Queue& queue, size_t m);
  void give(Queue& queue, size_t m, size_t taker);
  void check_queue(const Queue& queue, Module from, Module to, std::vector<Problem>& into) const;

  // Whether an instruction has a flag and its module the neighbour that the flag speaks of.
  bool pops_prev(size_t m, const Deps& deps) const { return deps.pop_prev && m > 0; }
  bool pops_next(size_t m, const Deps& deps) const { return deps.pop_next && m + 1 < size(); }
  const Insn& head(size_t m) const { return insns_[pending_[m][next_[m]]]; }

  const std::vector<Insn>& insns_;
  std::vector<Module> chain_;
  std::vector<uint8_t> place_;  ///< of each instruction
  size_t fetched_ = 0;
  std::array<std::vector<uint32_t>, 4> pending_;  ///< instructions fetched, per module
  std::array<size_t, 4> next_{};                  ///< of them, the first that has not run
  std::array<uint32_t, 4> totals_{};
  uint32_t last_store_ = 0;
  std::array<Clock, 4> clocks_{};
  std::array<Queue, 3> forward_, backward_;  ///< between module m and m + 1
};

/// `load`, `compute`, ...
std::string_view name(Module module);

}  // namespace tilewright::vta::check_detail
