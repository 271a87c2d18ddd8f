// Puts tokens into a serial list of instructions, for tests: by comparing every instruction with
// every earlier one, so it shares no code with the builder.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "tilewright/accel/vta/footprint.h"
#include "tilewright/base/rng.h"

namespace tilewright::vta::testing {

/// How instructions of different modules are ordered.
enum class Weave {
  Serial,     ///< each change of module hands a token over: no two instructions overlap
  Conflicts,  ///< only where instructions conflict
  Random,     ///< as Conflicts, and some tokens more
};

class TokenWeaver {
 public:
  TokenWeaver(const Config& config, Weave weave, Rng& rng)
      : config_(config), chain_(modules(config)), weave_(weave), rng_(rng) {}

  /// `uops`: the micro-op memory when the instruction runs.
  void add(Insn insn, std::span<const Uop> uops) {
    const size_t m = place_of(insn);
    const accel::Footprint touched = footprint(config_, insn, uops);
    pending_ = {};
    for (size_t other = 0; other < chain_.size(); ++other) {
      if (other == m) continue;
      if (known_[m][other] < needed(other, m, touched)) token(other, m, m);
    }
    if (weave_ == Weave::Random && rng_.chance(0.2)) {
      const auto from = static_cast<size_t>(rng_.below(static_cast<int64_t>(chain_.size())));
      if (from != m) token(from, m, m);
    }
    take_pending(insn);
    append(insn, touched, m);
  }

  /// FINISH, after everything.
  std::vector<Insn> finish() {
    Insn insn{{}, Finish{}};
    const size_t m = place_of(insn);
    pending_ = {};
    for (size_t other = 0; other < chain_.size(); ++other)
      if (other != m && known_[m][other] < last_[other]) token(other, m, m);
    take_pending(insn);
    append(insn, {}, m);
    return std::move(insns_);
  }

 private:
  using Known = std::array<size_t, 4>;  ///< per module, how much of the stream is complete

  size_t place_of(const Insn& insn) const {
    const auto at = std::find(chain_.begin(), chain_.end(), module_of(config_, insn));
    return static_cast<size_t>(at - chain_.begin());
  }

  /// One past the last instruction of `other` that must be complete before one that touches this.
  size_t needed(size_t other, size_t m, const accel::Footprint& touched) const {
    if (weave_ == Weave::Serial)
      return !insns_.empty() && places_.back() == other ? last_[other] : 0;
    if (last_[other] == 0 || m == other) return 0;
    for (size_t i = insns_.size(); i-- > 0;)
      if (places_[i] == other && conflict(footprints_[i], touched)) return i + 1;
    return 0;
  }

  /// Hands tokens from neighbour to neighbour until `to`; the last pop waits for the instruction
  /// to come if that is of module `coming`.
  void token(size_t from, size_t to, size_t coming) {
    while (from != to) {
      const size_t next = from < to ? from + 1 : from - 1;
      hop(from, next, coming);
      from = next;
    }
  }
  void hop(size_t from, size_t next, size_t coming) {
    const bool up = next > from;
    const auto push = up ? &Deps::push_next : &Deps::push_prev;
    const auto pop = up ? &Deps::pop_prev : &Deps::pop_next;
    if (last_[from] == 0 || insns_[last_[from] - 1].deps.*push) append(nothing(from), {}, from);
    insns_[last_[from] - 1].deps.*push = true;
    Known known = known_[from];
    known[from] = last_[from];
    if (next == coming && !(pending_.*pop)) {
      pending_.*pop = true;
    } else {
      // Where an instruction to come pops as well, its pop is the later one.
      Insn empty = nothing(next);
      empty.deps.*pop = true;
      append(empty, {}, next);
    }
    for (size_t k = 0; k < known.size(); ++k) known_[next][k] = std::max(known_[next][k], known[k]);
  }

  void take_pending(Insn& insn) {
    insn.deps.pop_prev = insn.deps.pop_prev || pending_.pop_prev;
    insn.deps.pop_next = insn.deps.pop_next || pending_.pop_next;
    pending_ = {};
  }
  void append(const Insn& insn, const accel::Footprint& touched, size_t m) {
    insns_.push_back(insn);
    footprints_.push_back(touched);
    places_.push_back(m);
    last_[m] = insns_.size();
  }

  Insn nothing(size_t place) const {
    Transfer move;
    switch (chain_[place]) {
      case Module::Load:
        move.mem = Mem::Inp;
        break;
      case Module::Compute:
        move.mem = Mem::Uop;
        break;
      case Module::Alu:
        move.mem = Mem::Acc;
        break;
      case Module::Store:
        move.store = true;
        move.mem = Mem::Out;
        break;
    }
    return {{}, move};
  }

  const Config& config_;
  std::vector<Module> chain_;
  Weave weave_;
  Rng& rng_;
  std::vector<Insn> insns_;
  std::vector<accel::Footprint> footprints_;
  std::vector<size_t> places_;
  std::array<size_t, 4> last_{};
  std::array<Known, 4> known_{};
  Deps pending_;
};

}  // namespace tilewright::vta::testing
