#include "tilewright/accel/common/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace tilewright::accel {
namespace {

bool has_bit(uint32_t mask, size_t queue) { return (mask >> queue & 1) != 0; }

/// The tokens of one direction between two queues.
struct TokenPath {
  std::deque<Waits> tokens;      ///< what the giver knew when it was done
  std::vector<uint32_t> takers;  ///< stamps of the instructions that took
  size_t given = 0, last_giver = 0;
  bool reported = false;
};

class TokenRun {
 public:
  TokenRun(const Queues& queues, const std::vector<Ordered>& insns)
      : queues_(queues), insns_(insns) {}

  TokenOrder run() {
    for (size_t i = 0; i < insns_.size(); ++i) {
      const auto queue = static_cast<size_t>(insns_[i].queue);
      if (!take(i, queue)) return std::move(order_);
      order_.known.push_back(now_[queue]);
      now_[queue][queue] = static_cast<uint32_t>(i + 1);
      for (size_t b = 0; b < size(); ++b)
        if (has_bit(insns_[i].gives, b)) give(queue, b, i);
    }
    find_leftovers();
    return std::move(order_);
  }

 private:
  size_t size() const { return queues_.list.size(); }
  const std::string& name(size_t queue) const { return queues_.list[queue].name; }
  void add(TokenRule rule, size_t insn, std::string text) {
    order_.findings.push_back({rule, insn, std::move(text)});
  }

  /// False: it waits for ever.
  bool take(size_t i, size_t queue) {
    for (size_t a = 0; a < size(); ++a) {
      if (!has_bit(insns_[i].takes, a)) continue;
      TokenPath& path = paths_[a][queue];
      if (path.tokens.empty()) {
        add(TokenRule::Deadlock, i,
            fmt::format("waits for token {} of {}, but {} are given before it",
                        path.takers.size() + 1, name(a), path.given));
        return false;
      }
      for (size_t q = 0; q < size(); ++q)
        now_[queue][q] = std::max(now_[queue][q], path.tokens.front()[q]);
      path.tokens.pop_front();
      path.takers.push_back(static_cast<uint32_t>(i + 1));
    }
    return true;
  }

  void give(size_t from, size_t to, size_t insn) {
    TokenPath& path = paths_[from][to];
    path.tokens.push_back(now_[from]);
    path.last_giver = insn;
    ++path.given;
    // The most there can be under any timing: all given so far, less those that the giver knows
    // to be taken.
    const auto taken = static_cast<size_t>(
        std::upper_bound(path.takers.begin(), path.takers.end(), now_[from][to]) -
        path.takers.begin());
    const size_t out = path.given - taken;
    if (out <= static_cast<size_t>(queues_.most_tokens) || path.reported) return;
    path.reported = true;
    add(TokenRule::Overflow, insn,
        fmt::format("{} tokens from {} to {} can be outstanding here; fewer than {} are safe", out,
                    name(from), name(to), queues_.most_tokens + 1));
  }

  void find_leftovers() {
    for (size_t a = 0; a < size(); ++a)
      for (size_t b = 0; b < size(); ++b)
        if (const TokenPath& path = paths_[a][b]; !path.tokens.empty())
          add(TokenRule::Leftover, path.last_giver,
              fmt::format("{} of {} tokens from {} to {} are left at the end", path.tokens.size(),
                          path.given, name(a), name(b)));
  }

  const Queues& queues_;
  const std::vector<Ordered>& insns_;
  std::array<std::array<TokenPath, kMaxQueues>, kMaxQueues> paths_;
  std::array<Waits, kMaxQueues> now_{};
  TokenOrder order_;
};

std::string meeting(const Queues& queues, const Footprint& a, const Footprint& b) {
  for (const Access& x : a)
    for (const Access& y : b)
      if (conflict(x, y))
        return fmt::format("{}, {}..{}", queues.memories[static_cast<size_t>(x.memory)],
                           std::max(hull(x).begin, hull(y).begin),
                           std::min(hull(x).end, hull(y).end));
  return "memory";
}

}  // namespace

TokenOrder order_by_tokens(const Queues& queues, const std::vector<Ordered>& insns) {
  return TokenRun(queues, insns).run();
}

std::vector<Race> find_races(const Queues& queues, const std::vector<int>& queue,
                             const std::vector<Footprint>& footprints,
                             const std::vector<Waits>& known) {
  std::vector<Race> races;
  const std::vector<Waits> waits = find_waits(queues, queue, footprints);
  for (size_t i = 0; i < waits.size(); ++i)
    for (size_t q = 0; q < queues.list.size(); ++q) {
      if (q == static_cast<size_t>(queue[i]) || waits[i][q] <= known[i][q]) continue;
      const size_t rival = waits[i][q] - 1;
      races.push_back({i, rival, meeting(queues, footprints[rival], footprints[i])});
    }
  return races;
}

}  // namespace tilewright::accel
