// Spaces of named discrete decisions: all that searchers see of schedules, or of anything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/rng.h"

namespace tilewright::search {

struct DecisionValue {
  std::string text;
  std::vector<double> features;  ///< as many for every value of a decision
};

/// One decision: a finite table of values and the moves between them.
struct Decision {
  std::string name;
  std::vector<DecisionValue> values;
  /// moves[direction][value] is the neighbour in that direction, or `value` itself: no move.
  std::vector<std::vector<int>> moves;
  /// Asked only where the earlier decision `parent` is asked and has one of the values `when`.
  int parent = -1;
  std::vector<int> when;
};

/// All ordered factorisations of `extent` into `parts`; direction (i, j) raises part i to the next
/// larger divisor of the product of both. source: FlexTensor paper, section 4.2.
Decision split_decision(const std::string& name, int64_t extent, int parts);
/// Values in a row; the two directions go up and down and stop at the ends.
Decision ordered_decision(const std::string& name, const std::vector<DecisionValue>& values);
/// Values without an order: direction d goes d + 1 places on, around the end.
Decision choice_decision(const std::string& name, const std::vector<std::string>& values);

/// The value taken in each decision; 0 where a decision is not asked.
using Point = std::vector<int>;

/// A move from a point: `direction` of the decision.
struct Move {
  int decision = 0, direction = 0;
};

class Space {
 public:
  /// requires: parents come before their children; tables and moves agree in length (checked).
  explicit Space(std::vector<Decision> decisions);

  const std::vector<Decision>& decisions() const { return decisions_; }
  /// Number of distinct points; exact below 2^53.
  double size() const;
  bool active(const Point& point, int decision) const;
  /// `point` with 0 in every decision that is not asked: equal points mean the same.
  Point canonical(Point point) const;
  /// Every decision drawn evenly among its values.
  Point random(Rng& rng) const;
  /// The `index`-th point in an order that visits each once. requires: 0 <= index < size().
  Point at(int64_t index) const;

  const std::vector<Move>& moves() const { return moves_; }
  /// The point a move leads to; `point` itself if there is none.
  Point step(const Point& point, const Move& move) const;
  /// All other points one move away, each once.
  std::vector<Point> neighbours(const Point& point) const;

  /// Features of all values side by side, zeros for decisions not asked.
  std::vector<double> features(const Point& point) const;
  size_t feature_count() const { return feature_count_; }
  std::string text(const Point& point) const;
  /// The point whose text is `text`; absent if there is none.
  std::optional<Point> find(std::string_view text) const;
  /// What `text` (`a=1 b=2x3 ...`) has for the decision `name`, up to the next decision.
  std::string_view value_text(std::string_view text, const std::string& name) const;

 private:
  double count(int decision) const;
  double count_under(int decision, int value) const;
  void decode(int decision, int64_t& index, Point& point) const;

  std::vector<Decision> decisions_;
  std::vector<std::vector<int>> children_;
  std::vector<Move> moves_;
  size_t feature_count_ = 0;
};

}  // namespace tilewright::search
