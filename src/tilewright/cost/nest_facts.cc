// What the learned models see of a scheduled program: per block the loops around it, and per buffer
// the bytes touched by each of these loops with all inside it, and the stride along it.
//
//   for i in 64, j in 16 { C[i] += A[i, j] }    A: touched 64 bytes by j alone (16 elements in one
//                                               cache line), 4096 by both; strides 16 (i), 1 (j)
//
// Ranges of indices are computed in floating point, without proofs: a search asks this for
// thousands of programs.
#include <algorithm>
#include <cmath>
#include <map>

#include "tilewright/cost/loop_features.h"
#include "tilewright/cost/prediction.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"

namespace tilewright::cost {
namespace {

/// Values an index takes while some loops run. Not arith's bounds: these are a hundred times
/// cheaper, and a wrong feature is only a worse one.
struct Span {
  double lo = 0, hi = 0;
};

using Ranges = std::map<Var, Span>;

Span span_of(const Expr& e, const Ranges& ranges);

Span span_of(const Binary& b, const Ranges& ranges) {
  const Span x = span_of(b.a, ranges), y = span_of(b.b, ranges);
  switch (b.op) {
    case BinaryOp::Add:
      return {x.lo + y.lo, x.hi + y.hi};
    case BinaryOp::Sub:
      return {x.lo - y.hi, x.hi - y.lo};
    case BinaryOp::Mul: {
      const double p[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
      return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
    }
    case BinaryOp::Div:
      if (y.lo != y.hi || y.lo <= 0) return x;
      return {std::floor(x.lo / y.lo), std::floor(x.hi / y.lo)};
    case BinaryOp::Mod: {
      if (y.lo != y.hi || y.lo <= 0) return x;
      if (std::floor(x.lo / y.lo) != std::floor(x.hi / y.lo)) return {0, y.lo - 1};
      const double base = std::floor(x.lo / y.lo) * y.lo;
      return {x.lo - base, x.hi - base};
    }
    case BinaryOp::Min:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case BinaryOp::Max:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default:
      return {0, 1};
  }
}

Span span_of(const Expr& e, const Ranges& ranges) {
  if (const IntImm* i = e.as<IntImm>()) {
    const auto v = static_cast<double>(i->value);
    return {v, v};
  }
  if (const VarRef* v = e.as<VarRef>()) {
    const auto found = ranges.find(v->var);
    return found == ranges.end() ? Span{} : found->second;
  }
  if (const Binary* b = e.as<Binary>()) return span_of(*b, ranges);
  if (const Cast* c = e.as<Cast>()) return span_of(c->a, ranges);
  if (const Select* s = e.as<Select>()) {
    const Span x = span_of(s->on_true, ranges), y = span_of(s->on_false, ranges);
    return {std::min(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
  return {};
}

int64_t extent_of(const Expr& e, const Ranges& ranges) {
  constexpr double kMost = 1LL << 40;
  return static_cast<int64_t>(std::clamp(span_of(e, ranges).hi, 1.0, kMost));
}

/// The hull of what several accesses to a buffer touch.
class Touch {
 public:
  explicit Touch(const Buffer& buffer) : buffer_(buffer), hull_(buffer.rank()) {
    for (const Expr& e : buffer.shape()) shape_.push_back(static_cast<double>(extent_of(e, {})));
  }

  void add(const std::vector<Expr>& indices, const Ranges& ranges) {
    for (size_t d = 0; d < hull_.size() && d < indices.size(); ++d) {
      const Span span = span_of(indices[d], ranges);
      hull_[d] =
          empty_ ? span : Span{std::min(hull_[d].lo, span.lo), std::max(hull_[d].hi, span.hi)};
    }
    empty_ = false;
  }

  double bytes() const {
    const auto element = static_cast<double>(storage_bytes(buffer_.dtype(), 8)) / 8;
    double lines = 1, run = element;
    // Full inner axes make one run; the first axis that is not full ends it.
    bool contiguous = true;
    for (size_t d = hull_.size(); d-- > 0;) {
      const double size = std::clamp(hull_[d].hi - hull_[d].lo + 1, 1.0, shape_[d]);
      if (contiguous)
        run *= size;
      else
        lines *= size;
      contiguous = contiguous && size >= shape_[d];
    }
    return lines * std::ceil(run / kLineBytes) * kLineBytes;
  }

  /// Row-major position of the hull's first element.
  double begin() const {
    double at = 0;
    for (size_t d = 0; d < hull_.size(); ++d) at = at * shape_[d] + hull_[d].lo;
    return at;
  }

 private:
  const Buffer& buffer_;
  std::vector<double> shape_;
  std::vector<Span> hull_;
  bool empty_ = true;
};

double operations_of(const Block& block) {
  double count = 0;
  walk(
      block.body, [](const Stmt&) {},
      [&](const Expr& top) {
        walk(top, [&](const Expr& e) {
          if (e.as<Load>() != nullptr || (is_float(e.dtype()) && e.as<FloatImm>() == nullptr))
            ++count;
        });
      });
  return count;
}

class Collector {
 public:
  std::vector<NestFact> facts;

  void visit(const Stmt& s) {
    if (const For* loop = s.as<For>()) {
      const int64_t extent = extent_of(loop->extent, ranges_);
      loops_.push_back({{extent, loop->kind}, loop->var});
      ranges_[loop->var] = {0, 0};
      visit(loop->body);
      loops_.pop_back();
    } else if (const Block* block = s.as<Block>()) {
      add(*block);
    } else {
      for (const Stmt& child : children(s)) visit(child);
    }
  }

 private:
  struct Loop {
    LoopFact fact;
    Var var;
  };

  void add(const Block& block) {
    NestFact nest;
    nest.operations = operations_of(block);
    for (const Loop& loop : loops_) nest.loops.push_back(loop.fact);
    std::vector<std::vector<schedule::Access>> groups;  // by buffer
    for (schedule::Access& access : schedule::accesses(block)) {
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return group[0].buffer == access.buffer;
      });
      if (same == groups.end())
        groups.push_back({std::move(access)});
      else
        same->push_back(std::move(access));
    }
    for (const auto& group : groups) nest.accesses.push_back(fact_of(group));
    facts.push_back(std::move(nest));
  }

  AccessFact fact_of(const std::vector<schedule::Access>& group) {
    AccessFact fact;
    fact.buffer = group[0].buffer;
    fact.in_registers = fact.buffer.scope() == "local";
    Ranges ranges = ranges_;  // every loop at its start
    for (const schedule::Access& access : group) {
      fact.writes |= access.write;
      fact.reads |= !access.write || access.update;
      ++fact.count;
      for (const auto& [var, size] : access.inner)
        ranges[var] = {0, static_cast<double>(extent_of(size, ranges) - 1)};
    }
    auto touch = [&] {
      Touch hull(fact.buffer);
      for (const schedule::Access& access : group) hull.add(access.indices, ranges);
      return hull;
    };
    const double start = touch().begin();
    fact.touched.push_back(touch().bytes());
    for (size_t d = loops_.size(); d-- > 0;) {
      Span& range = ranges[loops_[d].var];
      const Span whole = {0, static_cast<double>(loops_[d].fact.extent - 1)};
      fact.strides.push_back(stride(group, ranges, loops_[d], start));
      range = whole;
      fact.touched.push_back(touch().bytes());
    }
    std::reverse(fact.touched.begin(), fact.touched.end());
    std::reverse(fact.strides.begin(), fact.strides.end());
    return fact;
  }

  /// Elements from the first iteration of `loop` to the second, everything inside at its start.
  double stride(const std::vector<schedule::Access>& group, const Ranges& ranges, const Loop& loop,
                double start) const {
    if (loop.fact.extent < 2) return 0;
    Ranges next = ranges_;
    for (const auto& [var, range] : ranges) next[var] = {range.lo, range.lo};
    next[loop.var] = {1, 1};
    Touch hull(group[0].buffer);
    for (const schedule::Access& access : group) hull.add(access.indices, next);
    return std::abs(hull.begin() - start);
  }

  std::vector<Loop> loops_;
  Ranges ranges_;  ///< of the loops around, all at 0
};

}  // namespace

double NestFact::instances(size_t depth) const {
  double product = 1;
  for (size_t d = depth; d < loops.size(); ++d) product *= static_cast<double>(loops[d].extent);
  return product;
}

std::vector<NestFact> nest_facts(const Func& scheduled) {
  Collector collector;
  collector.visit(scheduled.body);
  return std::move(collector.facts);
}

}  // namespace tilewright::cost
