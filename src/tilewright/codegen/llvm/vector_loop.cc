// Vector loops: the loop variable becomes a vector of lanes, strip by strip.
#include <algorithm>
#include <bit>
#include <optional>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {

using llvm::Value;

namespace {

/// Strips of one loop written out one after the other; beyond it they become a loop.
constexpr int64_t kMaxWrittenStrips = 8;

bool uses_any(const std::vector<Expr>& list, const Var& var) {
  return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return uses(e, var); });
}

/// Widest element an expression computes with, index arithmetic left out; each node once.
int widest(const Expr& e, std::set<const ExprNode*>& seen) {
  if (!e || !seen.insert(e.get()).second) return 8;
  int bits = e.dtype() == DType::Bool ? 8 : bit_width(e.dtype());
  if (e.dtype() == DType::F16 || e.dtype() == DType::BF16) bits = 32;
  auto child = [&](const Expr& x) { bits = std::max(bits, widest(x, seen)); };
  match(
      e, [&](const Unary& x) { child(x.a); },
      [&](const Binary& x) {
        // Comparisons of indices only make masks.
        if (is_comparison(x.op) && x.a.dtype() == DType::I64) return;
        child(x.a), child(x.b);
      },
      [&](const Select& x) { child(x.condition), child(x.on_true), child(x.on_false); },
      [&](const Cast& x) { child(x.a); },
      [&](const MathCall& x) {
        for (const Expr& arg : x.args) child(arg);
      },
      [](const auto&) {});
  return bits;
}

unsigned lanes_for(int64_t active) { return std::bit_ceil(static_cast<unsigned>(active)); }

}  // namespace

/// Every store must go to its own place per lane: to an element that depends on the lane, or to a
/// buffer that lives inside the loop (of a few elements, addressed alike by all lanes).
bool KernelEmitter::can_use_lanes(const For& x) const {
  constexpr int64_t kMaxPerLane = 16;
  std::set<Buffer> inner;
  bool good = true;
  walk(x.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr) return;
    inner.insert(alloc->buffer);
    good &= const_elements(alloc->buffer).value_or(kMaxPerLane + 1) <= kMaxPerLane &&
            plan_.places.at(alloc->buffer).where == AllocPlacement::Where::Stack;
  });
  walk(
      x.body,
      [&](const Stmt& s) {
        if (const auto* loop = s.as<For>())
          good &= !uses(loop->extent, x.var) && !is_outlined(*loop, inside_parallel_);
        if (const auto* store = s.as<Store>())
          good &= uses_any(store->indices, x.var) != inner.contains(store->buffer);
      },
      [&](const Expr& e) {
        if (const auto* l = e.as<Load>(); l && inner.contains(l->buffer))
          good &= !uses_any(l->indices, x.var);
      });
  return good;
}

unsigned KernelEmitter::native_lanes(const For& x) const {
  int bits = 8;
  walk(x.body, [&](const Stmt& s) {
    const auto* store = s.as<Store>();
    if (store == nullptr) return;
    std::set<const ExprNode*> seen;
    bits = std::max({bits, bit_width(store->buffer.dtype()), widest(store->value, seen)});
  });
  return static_cast<unsigned>(std::max(2, target_.lanes(bits)));
}

void KernelEmitter::strip(const For& x, unsigned lanes, unsigned active, Value* base,
                          std::optional<int64_t> const_base) {
  if (lanes == 1) {  // numbers, no vectors of one
    const bool scalar_loops = has_scalar_loops_;
    vars_[x.var] = base;
    stmt(x.body);
    vars_.erase(x.var);
    has_scalar_loops_ = scalar_loops;
    return;
  }
  Lanes now;
  now.var = x.var;
  now.count = lanes;
  now.base = base;
  now.const_base = const_base;
  if (active < lanes) {
    std::vector<llvm::Constant*> bits;
    for (unsigned l = 0; l < lanes; ++l) bits.push_back(b_.getInt1(l < active));
    now.mask = llvm::ConstantVector::get(bits);
  }
  lanes_ = now;
  stmt(x.body);
  lanes_.reset();
  per_lane_.clear();
}

/// False if the loop has to run one iteration at a time.
bool KernelEmitter::vector_loop(const For& x) {
  if (lanes_ || !can_use_lanes(x)) return false;
  has_vectors_ = true;
  const unsigned n = native_lanes(x);
  const auto extent = as_int(x.extent);
  if (extent) {
    const int64_t full = *extent / n, rest = *extent % n;
    if (full <= kMaxWrittenStrips) {
      for (int64_t i = 0; i < full; ++i) strip(x, n, n, index(i * n), i * n);
    } else {
      counted_loop(index(full), x.var.name(), full, [&](Value* i) {
        strip(x, n, n, b_.CreateMul(i, index(n), "", true, true), std::nullopt);
      });
    }
    if (rest > 0) strip(x, lanes_for(rest), static_cast<unsigned>(rest), index(full * n), full * n);
    return true;
  }
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  Value* total = emit(x.extent);
  Value* full = b_.CreateSDiv(total, index(n));
  counted_loop(full, x.var.name(), std::nullopt, [&](Value* i) {
    strip(x, n, n, b_.CreateMul(i, index(n), "", true, true), std::nullopt);
  });
  Value* start = b_.CreateMul(full, index(n), "", false, true);
  Value* rest = b_.CreateSub(total, start, "", false, true);
  counted_loop(b_.CreateZExt(b_.CreateICmpSGT(rest, index(0)), b_.getInt64Ty()), "rest",
               std::nullopt, [&](Value*) {
                 Lanes now;
                 now.var = x.var;
                 now.count = n;
                 now.base = start;
                 std::vector<llvm::Constant*> steps;
                 for (unsigned l = 0; l < n; ++l) steps.push_back(b_.getInt64(l));
                 now.mask = b_.CreateICmpSLT(llvm::ConstantVector::get(steps), splat(rest, n));
                 lanes_ = now;
                 stmt(x.body);
                 lanes_.reset();
                 per_lane_.clear();
               });
  return true;
}

namespace {

/// Where in a row the vectors of `lane` begin, if they are its elements side by side.
std::optional<int64_t> row_begin(const Expr& index, const Var& lane) {
  const arith::Affine affine = arith::as_affine(index);
  if (affine.terms.size() != 1 || affine.coefficient(lane) != 1) return std::nullopt;
  return affine.constant;
}

int64_t row_end(const Buffer& buffer) { return as_int(buffer.shape().back()).value_or(0); }

/// Calls `f` on every load in `e`, once where expressions share it.
void each_load(const Expr& e, const std::function<void(const Load&)>& f) {
  std::set<const ExprNode*> seen;
  std::function<void(const Expr&)> go = [&](const Expr& y) {
    if (!y || !seen.insert(y.get()).second) return;
    match(
        y, [&](const Unary& z) { go(z.a); }, [&](const Binary& z) { go(z.a), go(z.b); },
        [&](const Select& z) { go(z.condition), go(z.on_true), go(z.on_false); },
        [&](const Cast& z) { go(z.a); },
        [&](const Load& z) {
          f(z);
          for (const Expr& i : z.indices) go(i);
        },
        [&](const MathCall& z) {
          for (const Expr& arg : z.args) go(arg);
        },
        [](const auto&) {});
  };
  go(e);
}

/// How lanes use the rows of a stack buffer.
struct RowUse {
  bool fits = true;          ///< only as whole vectors, side by side
  bool moves = false;        ///< some vectors begin inside of a row
  bool ends_inside = false;  ///< lanes reach beyond what they compute inside of a row
  int64_t row = 0;           ///< elements that vectors reach

  /// What lanes write beyond their own must be nobody else's.
  bool pads() const { return fits && row != 0 && !(moves && ends_inside); }
};

}  // namespace

/// Finds the stack buffers that lanes only ever touch as whole vectors of their rows and pads their
/// last axis, so that no access needs a mask and every vector can become a register.
void KernelEmitter::plan_registers() {
  std::map<Buffer, RowUse> uses_of;
  for (const auto& [buffer, place] : plan_.places)
    if (place.where == AllocPlacement::Where::Stack && const_elements(buffer) && buffer.rank() > 0)
      uses_of[buffer] = RowUse{};
  auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices, const For* vector) {
    const auto it = uses_of.find(buffer);
    if (it == uses_of.end() || vector == nullptr || !uses_any(indices, vector->var)) return;
    const std::vector<Expr> others(indices.begin(), indices.end() - 1);
    const auto extent = as_int(vector->extent);
    const std::optional<int64_t> begin = row_begin(indices.back(), vector->var);
    if (!extent || !begin || uses_any(others, vector->var)) {
      it->second.fits = false;
      return;
    }
    const int64_t n = native_lanes(*vector), rest = *extent % n;
    it->second.fits &= *begin % n == 0;
    it->second.moves |= *begin != 0;
    it->second.ends_inside |= rest != 0 && *begin + *extent != row_end(buffer);
    const int64_t padded = *begin + *extent - rest + (rest ? lanes_for(rest) : 0);
    it->second.row = std::max(it->second.row, padded);
  };
  std::function<void(const Stmt&, const For*)> visit = [&](const Stmt& s, const For* vector) {
    const auto* loop = s.as<For>();
    if (loop && loop->kind == ForKind::Vector && vector == nullptr && can_use_lanes(*loop))
      vector = loop;
    auto expr = [&](const Expr& e) {
      each_load(e, [&](const Load& load) { access(load.buffer, load.indices, vector); });
    };
    if (const auto* store = s.as<Store>()) {
      access(store->buffer, store->indices, vector);
      expr(store->value);
      for (const Expr& i : store->indices) expr(i);
    }
    if (const auto* block = s.as<Block>()) expr(block->guard);
    if (const auto* branch = s.as<If>()) expr(branch->condition);
    for (const Stmt& child : children(s)) visit(child, vector);
  };
  visit(func_.body, nullptr);
  for (const auto& [buffer, use] : uses_of) {
    if (!use.pads()) continue;
    std::vector<Expr> shape = buffer.shape();
    shape.back() = int_imm(std::max(use.row, *as_int(shape.back())));
    const Buffer wide(buffer.name(), buffer.dtype(), shape, buffer.scope());
    padded_[buffer] = *const_elements(wide);
    strides_[buffer] = strides_of(wide, {});
  }
}

}  // namespace tilewright::codegen
