// The exact search places pieces by rising offset, each as low as those below it allow. Every
// arrangement can be brought into that form by letting pieces sink, so nothing is missed; and a
// partial arrangement in which a later piece would float above a hole it fits in is no such form.
#include "tilewright/graph/partition/arena.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace tilewright::graph {
namespace {

constexpr int64_t kLine = 64;

/// Pieces that can only be packed together: no moment between two of these sets is used by both.
/// Times are sections: maximal stretches over which the same pieces live.
struct Problem {
  struct Piece {
    int64_t size = 0;      ///< lines
    int from = 0, to = 0;  ///< sections, `to` excluded
    int id = 0;
  };
  std::vector<Piece> pieces;
  int sections = 0;

  std::vector<int64_t> load() const {
    std::vector<int64_t> sum(static_cast<size_t>(sections), 0);
    for (const Piece& piece : pieces)
      for (int s = piece.from; s < piece.to; ++s) sum[static_cast<size_t>(s)] += piece.size;
    return sum;
  }
  int64_t lower_bound() const {
    const std::vector<int64_t> sum = load();
    return sum.empty() ? 0 : *std::max_element(sum.begin(), sum.end());
  }
};

/// Splits where no piece lives on; within each part, moments between the same events are one.
std::vector<Problem> split(const std::vector<Lifetime>& lifetimes) {
  std::vector<int> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int i) -> const Lifetime& { return lifetimes[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return at(a).first < at(b).first; });
  std::vector<Problem> problems;
  for (size_t begin = 0; begin < order.size();) {
    int last = at(order[begin]).last;
    size_t end = begin;
    std::set<int> starts;
    for (; end < order.size() && at(order[end]).first <= last; ++end) {
      last = std::max(last, at(order[end]).last);
      starts.insert(at(order[end]).first);
    }
    // Only sections in which some piece begins can be the fullest ones.
    const std::vector<int> times(starts.begin(), starts.end());
    Problem problem;
    problem.sections = static_cast<int>(times.size());
    for (; begin < end; ++begin) {
      const Lifetime& life = at(order[begin]);
      const auto from = std::lower_bound(times.begin(), times.end(), life.first);
      const auto to = std::upper_bound(times.begin(), times.end(), life.last);
      problem.pieces.push_back({(life.bytes + kLine - 1) / kLine,
                                static_cast<int>(from - times.begin()),
                                static_cast<int>(to - times.begin()), order[begin]});
    }
    problems.push_back(std::move(problem));
  }
  return problems;
}

/// Offsets in lines, in the order of the pieces, and how many lines they need.
struct Packing {
  std::vector<int64_t> offset;
  int64_t size = 0;
};

bool meet(const Problem::Piece& a, const Problem::Piece& b) {
  return a.from < b.to && b.from < a.to;
}

/// Exchanging them changes nothing.
bool alike(const Problem::Piece& a, const Problem::Piece& b) {
  return a.from == b.from && a.to == b.to && a.size == b.size;
}

/// Each piece, in the given order, into the smallest gap that holds it.
Packing best_fit(const Problem& problem, const std::vector<int>& order) {
  Packing packing;
  packing.offset.assign(problem.pieces.size(), -1);
  std::vector<std::pair<int64_t, int64_t>> busy;
  for (size_t n = 0; n < order.size(); ++n) {
    const Problem::Piece& mine = problem.pieces[static_cast<size_t>(order[n])];
    busy.clear();
    for (size_t other = 0; other < n; ++other) {
      const auto o = static_cast<size_t>(order[other]);
      if (meet(mine, problem.pieces[o]))
        busy.emplace_back(packing.offset[o], packing.offset[o] + problem.pieces[o].size);
    }
    std::sort(busy.begin(), busy.end());
    int64_t end = 0, best = -1, best_gap = 0;
    for (const auto& [from, to] : busy) {
      const int64_t gap = from - end;
      if (gap >= mine.size && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
      end = std::max(end, to);
    }
    const int64_t offset = best >= 0 ? best : end;
    packing.offset[static_cast<size_t>(order[n])] = offset;
    packing.size = std::max(packing.size, offset + mine.size);
  }
  return packing;
}

/// Orders worth trying: large, long-lived, large times long, in crowded moments, as given.
std::vector<std::vector<int>> orders_of(const Problem& problem) {
  const std::vector<int64_t> load = problem.load();
  std::vector<int> given(problem.pieces.size());
  std::iota(given.begin(), given.end(), 0);
  const auto by = [&](auto key) {
    std::vector<int> sorted = given;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return key(problem.pieces[static_cast<size_t>(a)]) >
             key(problem.pieces[static_cast<size_t>(b)]);
    });
    return sorted;
  };
  const auto length = [](const Problem::Piece& p) { return int64_t{p.to} - p.from; };
  const auto crowd = [&](const Problem::Piece& p) {
    return *std::max_element(load.begin() + p.from, load.begin() + p.to);
  };
  return {by([](const Problem::Piece& p) { return p.size; }),
          by([&](const Problem::Piece& p) { return p.size * length(p); }),
          by([&](const Problem::Piece& p) { return length(p); }),
          by([&](const Problem::Piece& p) { return std::pair(crowd(p), p.size); }), given};
}

/// Depth-first search for an arrangement within `capacity` lines.
class Search {
 public:
  enum class Outcome { Found, None, GaveUp };

  Search(const Problem& problem, const std::vector<int>& order, int64_t capacity, int64_t& nodes)
      : capacity_(capacity), nodes_(nodes), order_(order) {
    for (int i : order) pieces_.push_back(problem.pieces[static_cast<size_t>(i)]);
    floor_.assign(static_cast<size_t>(problem.sections), 0);
    left_ = problem.load();
    offset_.assign(pieces_.size(), -1);
    open_ = static_cast<int>(pieces_.size());
  }

  Outcome run() { return place(0, -1); }

  Packing packing() const {
    Packing found;
    found.offset.assign(pieces_.size(), 0);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      found.offset[static_cast<size_t>(order_[i])] = offset_[i];
      found.size = std::max(found.size, offset_[i] + pieces_[i].size);
    }
    return found;
  }

 private:
  struct Candidate {
    int64_t offset;
    int piece;
    friend bool operator<(const Candidate& a, const Candidate& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.piece < b.piece;
    }
  };

  int64_t lowest(const Problem::Piece& piece) const {
    return *std::max_element(floor_.begin() + piece.from, floor_.begin() + piece.to);
  }

  /// The pieces that may come next, or false if no arrangement follows from here.
  bool candidates(int64_t last, int last_piece, std::vector<Candidate>& found) const {
    // Where the first piece that is still to come begins in each section, at least.
    std::vector<int64_t> begin(floor_.size(), INT64_MAX);
    int64_t top = INT64_MAX;  // a piece that begins here or above floats above a hole
    for (size_t i = 0; i < pieces_.size(); ++i) {
      if (offset_[i] >= 0) continue;
      const Problem::Piece& piece = pieces_[i];
      const int64_t offset = lowest(piece);
      const int64_t least = std::max(offset, last);
      if (least + piece.size > capacity_) return false;
      if (offset + piece.size <= last) return false;
      for (int s = piece.from; s < piece.to; ++s)
        begin[static_cast<size_t>(s)] = std::min(begin[static_cast<size_t>(s)], least);
      top = std::min(top, offset + piece.size);
      const int number = static_cast<int>(i);
      if (offset > last || (offset == last && number > last_piece))
        found.push_back({offset, number});
    }
    for (size_t s = 0; s < begin.size(); ++s)
      if (left_[s] > 0 && begin[s] + left_[s] > capacity_) return false;
    std::erase_if(found, [&](const Candidate& c) { return c.offset >= top; });
    std::sort(found.begin(), found.end());
    return true;
  }

  Outcome place(int64_t last, int last_piece) {
    if (open_ == 0) return Outcome::Found;
    if (--nodes_ < 0) return Outcome::GaveUp;
    std::vector<Candidate> next;
    if (!candidates(last, last_piece, next)) return Outcome::None;
    for (size_t n = 0; n < next.size(); ++n) {
      const Candidate& candidate = next[n];
      const auto i = static_cast<size_t>(candidate.piece);
      const Problem::Piece& piece = pieces_[i];
      if (n > 0 && alike(piece, pieces_[static_cast<size_t>(next[n - 1].piece)])) continue;
      const std::vector<int64_t> below(floor_.begin() + piece.from, floor_.begin() + piece.to);
      offset_[i] = candidate.offset;
      --open_;
      for (int s = piece.from; s < piece.to; ++s) {
        floor_[static_cast<size_t>(s)] = candidate.offset + piece.size;
        left_[static_cast<size_t>(s)] -= piece.size;
      }
      const Outcome outcome = place(candidate.offset, candidate.piece);
      if (outcome != Outcome::None) return outcome;
      for (int s = piece.from; s < piece.to; ++s) left_[static_cast<size_t>(s)] += piece.size;
      std::copy(below.begin(), below.end(), floor_.begin() + piece.from);
      ++open_;
      offset_[i] = -1;
    }
    return Outcome::None;
  }

  const int64_t capacity_;
  int64_t& nodes_;
  const std::vector<int>& order_;
  std::vector<Problem::Piece> pieces_;  ///< in the order in which they are tried
  std::vector<int64_t> floor_, left_;   ///< of each section: lines placed up to, lines to come
  std::vector<int64_t> offset_;
  int open_;
};

struct Solution {
  Packing packing;
  bool optimal = false;
};

Solution solve(const Problem& problem, int64_t nodes) {
  const int64_t bound = problem.lower_bound();
  const std::vector<std::vector<int>> orders = orders_of(problem);
  Solution best{best_fit(problem, orders[0]), false};
  for (size_t i = 1; i < orders.size() && best.packing.size > bound; ++i) {
    Packing other = best_fit(problem, orders[i]);
    if (other.size < best.packing.size) best.packing = std::move(other);
  }
  // First for the bound itself, then for anything better than what is known.
  bool bound_fails = false;
  for (const bool lowest : {true, false})
    for (const std::vector<int>& order : orders) {
      int64_t left = nodes / static_cast<int64_t>(2 * orders.size());
      while (left > 0 && !best.optimal && best.packing.size > bound) {
        if (lowest && bound_fails) break;
        const int64_t capacity = lowest ? bound : best.packing.size - 1;
        Search search(problem, order, capacity, left);
        const Search::Outcome outcome = search.run();
        if (outcome == Search::Outcome::Found) best.packing = search.packing();
        if (outcome == Search::Outcome::None) {
          bound_fails |= lowest;
          best.optimal = capacity == best.packing.size - 1;
        }
        if (outcome == Search::Outcome::GaveUp) break;
      }
    }
  best.optimal |= best.packing.size == bound;
  return best;
}

}  // namespace

Arena pack_arena(const std::vector<Lifetime>& pieces, int64_t nodes) {
  Arena arena;
  arena.offset.assign(pieces.size(), 0);
  arena.optimal = true;
  std::vector<Problem> problems = split(pieces);
  for (const Problem& problem : problems)
    arena.lower_bound = std::max(arena.lower_bound, problem.lower_bound() * kLine);
  for (const Problem& problem : problems) {
    const Solution solution = solve(problem, nodes);
    const int64_t bytes = solution.packing.size * kLine;
    if (bytes > arena.bytes) {
      arena.bytes = bytes;
      arena.optimal = solution.optimal;
    } else if (bytes == arena.bytes) {
      arena.optimal |= solution.optimal;
    }
    for (size_t i = 0; i < problem.pieces.size(); ++i)
      arena.offset[static_cast<size_t>(problem.pieces[i].id)] = solution.packing.offset[i] * kLine;
  }
  arena.optimal |= arena.bytes == arena.lower_bound;
  return arena;
}

}  // namespace tilewright::graph
