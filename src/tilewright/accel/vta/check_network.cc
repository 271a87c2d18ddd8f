#include "tilewright/accel/vta/check_network.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta::check_detail {
namespace {

constexpr size_t kTokenLimit = 255;    // counters of 8 bits: docs/vta-timing.md 1
constexpr size_t kCommandQueue = 512;  // docs/vta-timing.md 2

bool moving_store(const Insn& insn) {
  const auto* move = std::get_if<Transfer>(&insn.op);
  return move != nullptr && move->store && move->moves();
}

}  // namespace

std::string_view name(Module module) {
  constexpr std::array<std::string_view, 4> kNames = {"load", "compute", "alu", "store"};
  return kNames.at(static_cast<size_t>(module));
}

Network::Network(const Config& config, const std::vector<Insn>& insns)
    : insns_(insns), chain_(modules(config)), place_(insns.size()) {
  for (size_t i = 0; i < insns.size(); ++i) {
    const auto at = std::find(chain_.begin(), chain_.end(), module_of(config, insns[i]));
    place_[i] = static_cast<uint8_t>(at - chain_.begin());
    ++totals_[place_[i]];
    if (moving_store(insns[i])) last_store_ = totals_[place_[i]];
  }
}

void Network::run(const std::function<void(uint32_t, const Actor&)>& act) {
  for (bool progress = true; progress;) {
    progress = fetch();
    for (size_t m = 0; m < size(); ++m)
      while (next_[m] < pending_[m].size() && ready(m)) {
        execute(m, act);
        progress = true;
      }
  }
}

/// Routes instructions in program order until a command queue is full.
bool Network::fetch() {
  const size_t before = fetched_;
  for (; fetched_ < insns_.size(); ++fetched_) {
    const uint8_t m = place_[fetched_];
    if (pending_[m].size() - next_[m] >= kCommandQueue) break;
    pending_[m].push_back(static_cast<uint32_t>(fetched_));
  }
  return fetched_ > before;
}

bool Network::ready(size_t m) const {
  const Deps& deps = head(m).deps;
  return !(pops_prev(m, deps) && forward_[m - 1].tokens.empty()) &&
         !(pops_next(m, deps) && backward_[m].tokens.empty());
}

void Network::execute(size_t m, const std::function<void(uint32_t, const Actor&)>& act) {
  const uint32_t insn = pending_[m][next_[m]++];
  const Deps& deps = insns_[insn].deps;
  if (pops_prev(m, deps)) take(forward_[m - 1], m);
  if (pops_next(m, deps)) take(backward_[m], m);
  const auto seq = static_cast<uint32_t>(next_[m]);
  act(insn, {static_cast<uint8_t>(m), seq, &clocks_[m]});
  clocks_[m][m] = seq;
  if (deps.push_prev && m > 0) give(backward_[m - 1], m, m - 1);
  if (deps.push_next && m + 1 < size()) give(forward_[m], m, m + 1);
}

void Network::take(Queue& queue, size_t m) {
  for (size_t k = 0; k < clocks_[m].size(); ++k)
    clocks_[m][k] = std::max(clocks_[m][k], queue.tokens.front()[k]);
  queue.tokens.pop_front();
  queue.pop_seqs.push_back(static_cast<uint32_t>(next_[m]));
}

void Network::give(Queue& queue, size_t m, size_t taker) {
  queue.tokens.push_back(clocks_[m]);
  queue.push_insns.push_back(pending_[m][next_[m] - 1]);
  queue.push_knows.push_back(clocks_[m][taker]);
}

std::vector<Network::Problem> Network::stuck() const {
  std::vector<Problem> problems;
  for (size_t m = 0; m < size(); ++m) {
    if (next_[m] == pending_[m].size()) continue;
    const Deps& deps = head(m).deps;
    std::string text;
    if (pops_prev(m, deps) && forward_[m - 1].tokens.empty())
      text = fmt::format("token {} from {}", forward_[m - 1].push_insns.size() + 1,
                         name(chain_[m - 1]));
    if (pops_next(m, deps) && backward_[m].tokens.empty())
      text += fmt::format("{}token {} from {}", text.empty() ? "" : " and ",
                          backward_[m].push_insns.size() + 1, name(chain_[m + 1]));
    problems.push_back({pending_[m][next_[m]],
                        {Rule::Deadlock, true,
                         fmt::format("waits for ever for {}; {} instructions of {} behind it never "
                                     "run",
                                     text, totals_[m] - next_[m] - 1, name(chain_[m]))}});
  }
  if (fetched_ < insns_.size())
    problems.push_back({fetched_,
                        {Rule::Deadlock, true,
                         fmt::format("is never fetched: {} instructions wait in the queue of {}, "
                                     "which holds no more",
                                     kCommandQueue, name(chain_[place_[fetched_]]))}});
  return problems;
}

std::vector<Network::Problem> Network::queues() const {
  std::vector<Problem> problems;
  for (size_t m = 0; m + 1 < size(); ++m) {
    check_queue(forward_[m], chain_[m], chain_[m + 1], problems);
    check_queue(backward_[m], chain_[m + 1], chain_[m], problems);
  }
  return problems;
}

void Network::check_queue(const Queue& queue, Module from, Module to,
                          std::vector<Problem>& into) const {
  if (!queue.tokens.empty())
    into.push_back(
        {queue.push_insns.back(),
         {Rule::LeftoverToken, true,
          fmt::format("{} of {} tokens from {} to {} are left at the end", queue.tokens.size(),
                      queue.push_insns.size(), name(from), name(to))}});
  // The most tokens there can be in any order of execution: all pushes so far, less the pops that
  // the pusher knows to be done.
  size_t done = 0;
  for (size_t i = 0; i < queue.push_insns.size(); ++i) {
    while (done < queue.pop_seqs.size() && queue.pop_seqs[done] <= queue.push_knows[i]) ++done;
    if (i + 1 - done < kTokenLimit) continue;
    into.push_back({queue.push_insns[i],
                    {Rule::TokenOverflow, true,
                     fmt::format("{} tokens from {} to {} can be outstanding here; fewer than {} "
                                 "are safe",
                                 i + 1 - done, name(from), name(to), kTokenLimit)}});
    return;
  }
}

}  // namespace tilewright::vta::check_detail
