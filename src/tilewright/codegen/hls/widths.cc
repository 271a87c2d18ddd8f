#include "tilewright/codegen/hls/widths.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

using Wide = __int128;
struct Range {
  Wide lo, hi;
};
using Ranges = std::map<Buffer, Range>;

bool is_integer(DType d) { return !is_float(d) && d != DType::Bool; }

/// All values of the type; u64 as wide as it is.
Range all_of(DType d) {
  if (d == DType::Bool) return {0, 1};
  const int bits = bit_width(d);
  if (is_unsigned_int(d)) return {0, (Wide{1} << bits) - 1};
  return {-(Wide{1} << (bits - 1)), (Wide{1} << (bits - 1)) - 1};
}

Range hull(const Range& a, const Range& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

/// What wraps may be anything.
Range in_type(const Range& r, DType d) {
  const Range all = all_of(d);
  return r.lo >= all.lo && r.hi <= all.hi ? r : all;
}

Range product(const Range& a, const Range& b) {
  // Factors of at most 65 bits each could leave 128 bits: then nothing is known.
  const Wide limit = Wide{1} << 62;
  if (std::max(-a.lo, a.hi) > limit || std::max(-b.lo, b.hi) > limit)
    return {-(Wide{1} << 126), Wide{1} << 126};
  const Wide all[] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
  return {*std::min_element(all, all + 4), *std::max_element(all, all + 4)};
}

Range range_of(const Expr& e, const Ranges& known, const arith::Bounds& bounds) {
  const DType type = e.dtype();
  if (is_float(type) || type == DType::Bool) return all_of(DType::Bool);
  auto of = [&](const Expr& x) { return range_of(x, known, bounds); };
  if (const auto* imm = e.as<IntImm>()) return in_type({imm->value, imm->value}, type);
  if (const auto* l = e.as<Load>()) {
    const auto it = known.find(l->buffer);
    return it == known.end() ? all_of(type) : it->second;
  }
  if (e.as<VarRef>() != nullptr) {
    const auto range = arith::const_range(e, bounds);
    return range ? Range{range->first, range->second} : all_of(type);
  }
  if (const auto* c = e.as<Cast>()) {
    if (c->bits || is_float(c->a.dtype())) return all_of(type);
    return in_type(of(c->a), type);
  }
  if (const auto* s = e.as<Select>()) return hull(of(s->on_true), of(s->on_false));
  if (const auto* u = e.as<Unary>(); u != nullptr && u->op == UnaryOp::Neg) {
    const Range a = of(u->a);
    return in_type({-a.hi, -a.lo}, type);
  }
  const auto* b = e.as<Binary>();
  if (b == nullptr) return all_of(type);
  const Range x = of(b->a), y = of(b->b);
  switch (b->op) {
    case BinaryOp::Add:
      return in_type({x.lo + y.lo, x.hi + y.hi}, type);
    case BinaryOp::Sub:
      return in_type({x.lo - y.hi, x.hi - y.lo}, type);
    case BinaryOp::Mul:
      return in_type(product(x, y), type);
    case BinaryOp::Min:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case BinaryOp::Max:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default:
      return all_of(type);
  }
}

/// Gathers, in program order, what is stored in each allocated buffer.
class Widths {
 public:
  explicit Widths(const Func& func) : bounds_(func) {
    walk(func.body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc != nullptr && is_integer(alloc->buffer.dtype())) allocated_.insert(alloc->buffer);
    });
    for (const Param& p : func.params)
      if (p.values && is_integer(p.buffer.dtype()) && p.values->size() > 0) table(p);
    find_feedback(func.body);
    collect(func.body, nullptr, bounds_);
  }

  std::map<Buffer, int> take() const {
    std::map<Buffer, int> out;
    for (const Buffer& buffer : allocated_) {
      const auto it = ranges_.find(buffer);
      if (it == ranges_.end()) continue;
      const int bits = bits_of(it->second, is_unsigned_int(buffer.dtype()));
      if (bits < bit_width(buffer.dtype())) out[buffer] = bits;
    }
    return out;
  }

 private:
  static int bits_of(const Range& r, bool is_unsigned) {
    int bits = 1;
    if (is_unsigned) {
      while (r.hi >> bits != 0) ++bits;
      return bits;
    }
    while (r.lo < -(Wide{1} << (bits - 1)) || r.hi >= Wide{1} << (bits - 1)) ++bits;
    return bits;
  }

  void table(const Param& p) {
    if (p.buffer.dtype() == DType::U64) return;
    Range r{p.values->get_int(0), p.values->get_int(0)};
    for (int64_t i = 1; i < p.values->size(); ++i)
      r = hull(r, {p.values->get_int(i), p.values->get_int(i)});
    ranges_.emplace(p.buffer, r);
  }

  /// Buffers that are read before, or by, their last store: values may go round, so nothing but
  /// the type bounds them.
  void find_feedback(const Stmt& body) {
    std::map<Buffer, int> first_load, last_store;
    int at = 0;
    walk(
        body,
        [&](const Stmt& s) {
          ++at;
          if (const auto* store = s.as<Store>()) last_store[store->buffer] = at;
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) first_load.emplace(l->buffer, at);
        });
    for (const auto& [buffer, load] : first_load)
      if (const auto it = last_store.find(buffer); it != last_store.end() && load <= it->second)
        feedback_.insert(buffer);
  }

  void collect(const Stmt& s, const Block* block, arith::Bounds bounds) {
    if (const auto* loop = s.as<For>()) bounds.bind(loop->var, loop->extent);
    if (const auto* b = s.as<Block>()) {
      block = b;
      for (const Iter& iter : b->iters) bounds.bind(iter.var, iter.extent);
    }
    if (const auto* store = s.as<Store>()) add(*store, block, bounds);
    for (const Stmt& child : children(s)) collect(child, block, bounds);
  }

  void add(const Store& x, const Block* block, const arith::Bounds& bounds) {
    if (!allocated_.contains(x.buffer)) return;
    const DType type = x.buffer.dtype();
    Range r = range_of(x.value, ranges_, bounds);
    const auto before = ranges_.find(x.buffer);
    if (x.combine == Combine::Set) {
      r = before == ranges_.end() ? r : hull(before->second, r);
    } else if (x.combine == Combine::Mul || before == ranges_.end()) {
      r = all_of(type);
    } else if (x.combine == Combine::Add) {
      r = sum(before->second, r, terms(x, block, bounds), type);
    } else {
      r = hull(before->second, r);
    }
    if (feedback_.contains(x.buffer)) r = all_of(type);
    ranges_[x.buffer] = in_type(r, type);
  }

  /// How many terms one element may get from this store.
  static std::optional<int64_t> terms(const Store&, const Block* block,
                                      const arith::Bounds& bounds) {
    if (block == nullptr) return std::nullopt;
    int64_t count = 1;
    for (const Iter& iter : block->iters) {
      if (iter.kind == IterKind::Space) continue;
      const auto extent = arith::const_range(iter.extent, bounds);
      if (!extent || extent->second > (int64_t{1} << 40) || count > (int64_t{1} << 40))
        return std::nullopt;
      count *= std::max<int64_t>(extent->second, 1);
    }
    return count;
  }

  static Range sum(const Range& start, const Range& term, std::optional<int64_t> count,
                   DType type) {
    if (!count || *count > (int64_t{1} << 40)) return all_of(type);
    const Wide limit = Wide{1} << 80;
    if (term.lo < -limit || term.hi > limit) return all_of(type);
    const Wide lo = std::min<Wide>(term.lo, 0) * *count, hi = std::max<Wide>(term.hi, 0) * *count;
    return {start.lo + lo, start.hi + hi};
  }

  arith::Bounds bounds_;
  std::set<Buffer> allocated_, feedback_;
  Ranges ranges_;
};

}  // namespace

std::map<Buffer, int> proven_widths(const Func& func) { return Widths(func).take(); }

}  // namespace tilewright::codegen
