// Addresses, loads and stores. An index is split into a part that varies with the lane, parts per
// loop depth (so that LLVM hoists them) and a constant.
#include <algorithm>
#include <functional>

#include "tilewright/base/check.h"
#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/codegen/llvm/lane_steps.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {

using llvm::Value;

namespace {

constexpr int64_t kLineBits = 64 * 8;  // of a cache line

llvm::Align element_align(llvm::Type* type) {
  return llvm::Align(std::max<uint64_t>(1, type->getPrimitiveSizeInBits().getFixedValue() / 8));
}

void add_term(std::vector<SharedTerm>& terms, const Expr& e, int64_t coefficient, int depth) {
  for (SharedTerm& t : terms) {
    if (!equal(t.e, e)) continue;
    t.coefficient += coefficient;
    return;
  }
  terms.push_back(SharedTerm{e, coefficient, depth});
}

/// Null stands for no sum yet.
Value* plus(llvm::IRBuilder<>& b, Value* sum, Value* v) {
  return sum == nullptr ? v : b.CreateAdd(sum, v, "", false, true);
}

Value* constants(llvm::IRBuilder<>& b, const std::vector<int64_t>& values) {
  std::vector<llvm::Constant*> all;
  for (const int64_t v : values) all.push_back(b.getInt64(static_cast<uint64_t>(v)));
  return llvm::ConstantVector::get(all);
}

/// The distance between one value and the next, if it is always the same.
std::optional<int64_t> even_step(const std::vector<int64_t>& values) {
  for (size_t i = 2; i < values.size(); ++i)
    if (values[i] - values[i - 1] != values[1] - values[0]) return std::nullopt;
  return values.size() > 1 ? values[1] - values[0] : 0;
}

/// The pointer moved by the terms of one loop depth after the other; they are sorted by it.
Value* moved_by_depth(llvm::IRBuilder<>& b, llvm::Type* element, Value* pointer,
                      const std::vector<SharedTerm>& terms,
                      const std::function<Value*(const SharedTerm&)>& value) {
  for (size_t i = 0; i < terms.size();) {
    Value* sum = nullptr;
    const int depth = terms[i].depth;
    for (; i < terms.size() && terms[i].depth == depth; ++i) sum = plus(b, sum, value(terms[i]));
    pointer = b.CreateGEP(element, pointer, sum);
  }
  return pointer;
}

}  // namespace

Value* KernelEmitter::tagged_load(const Buffer& buffer, Type* type, Value* pointer,
                                  llvm::Align align) {
  return tagged(buffer, b_.CreateAlignedLoad(type, pointer, align));
}

void KernelEmitter::tagged_store(const Buffer& buffer, Value* value, Value* pointer,
                                 llvm::Align align) {
  tagged(buffer, b_.CreateAlignedStore(value, pointer, align));
}

/// What an index adds up to, in elements.
struct KernelEmitter::Place {
  std::vector<SharedTerm> terms;  ///< the same for all lanes
  int64_t constant = 0;           ///< the same, known
  Value* dynamic = nullptr;       ///< the same, computed
  std::vector<int64_t> steps;     ///< of each lane, known
  int64_t lane = 0;               ///< per iteration of the lanes' loop, if their first is not known
  Value* offsets = nullptr;       ///< of each lane, computed
};

Value* KernelEmitter::scaled(Value* v, Value* by) {
  match_lanes(v, by);
  return b_.CreateMul(v, by, "", false, true);
}

/// A value that differs between lanes is a vector.
void KernelEmitter::add_to(Place& place, Value* v) {
  Value*& sum = v->getType()->isVectorTy() ? place.offsets : place.dynamic;
  sum = plus(b_, sum, v);
}

/// Adds `step` * `e`: known where the lanes' distances are, as far as they share it, else computed.
void KernelEmitter::add_to(Place& place, const Expr& e, int64_t step) {
  const auto add_shared = [&](const Expr& shared) {
    int depth = 0;
    for (const Var& v : free_vars(shared))
      if (const auto it = depth_.find(v); it != depth_.end()) depth = std::max(depth, it->second);
    add_term(place.terms, shared, step, depth);
  };
  // Under a mask, what is loaded for all lanes may be a vector: no lane may read outside.
  const auto is_vector = [&] {
    bool loads = false;
    walk(e, [&](const Expr& part) { loads |= part.as<Load>() != nullptr; });
    return lanes_ && lanes_->mask != nullptr && loads && emit(e)->getType()->isVectorTy();
  };
  if (!varies(e) && !is_vector()) return add_shared(e);
  const auto* var = e.as<VarRef>();
  std::optional<LaneSteps> known;
  if (varies(e) && lanes_->const_base)
    known = lane_steps(e, lanes_->var, *lanes_->const_base, lanes_->count);
  if (known) {
    if (as_int(known->shared) != int64_t{0}) add_shared(known->shared);
    for (size_t l = 0; l < place.steps.size(); ++l) place.steps[l] += step * known->steps[l];
  } else if (var != nullptr && var->var == lanes_->var) {
    place.lane += step;
  } else {
    add_to(place, scaled(emit(e), index(step)));
  }
}

KernelEmitter::Address KernelEmitter::address(const Buffer& buffer,
                                              const std::vector<Expr>& indices) {
  const std::vector<Expr>& strides = strides_.at(buffer);
  Place place;
  place.steps.resize(lanes_ ? lanes_->count : 1);
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const auto stride = as_int(strides[axis]);
    if (!stride) {
      add_to(place, scaled(emit(indices[axis]), emit(strides[axis])));
      continue;
    }
    const arith::Affine affine = arith::as_affine(indices[axis]);
    place.constant += affine.constant * *stride;
    for (const auto& [e, coefficient] : affine.terms) add_to(place, e, coefficient * *stride);
  }
  if (place.lane != 0) add_to(place, scaled(lanes_->base, index(place.lane)));
  const int64_t first = place.steps[0];
  for (size_t l = 0; l < place.steps.size(); ++l)
    place.steps[l] += place.lane * static_cast<int64_t>(l) - first;
  Address at;
  at.inside = provably_inside(buffer, indices);
  at.stride = even_step(place.steps);
  if (place.offsets != nullptr || !at.stride) {
    Value* steps = constants(b_, place.steps);
    at.offsets = place.offsets == nullptr ? steps : b_.CreateAdd(place.offsets, steps);
    if (place.offsets == nullptr) at.steps = place.steps;
    at.stride.reset();
  }
  Type* element = element_type(buffer);
  std::stable_sort(place.terms.begin(), place.terms.end(),
                   [](const SharedTerm& x, const SharedTerm& y) { return x.depth < y.depth; });
  at.pointer = moved_by_depth(
      b_, element, pointers_.at(buffer), place.terms,
      [&](const SharedTerm& term) { return scaled(emit(term.e), index(term.coefficient)); });
  if (place.dynamic != nullptr) at.pointer = b_.CreateGEP(element, at.pointer, place.dynamic);
  const int64_t constant = place.constant + first;
  if (constant != 0)
    at.pointer = b_.CreateConstGEP1_64(element, at.pointer, static_cast<uint64_t>(constant));
  return at;
}

/// What one index step moves over: a vector for buffers that every lane has its own copy of.
llvm::Type* KernelEmitter::element_type(const Buffer& buffer) {
  Type* element = memory_type(buffer.dtype());
  return per_lane_.contains(buffer) ? llvm::FixedVectorType::get(element, lanes_->count) : element;
}

bool KernelEmitter::provably_inside(const Buffer& buffer, const std::vector<Expr>& indices) const {
  for (size_t axis = 0; axis < indices.size(); ++axis) {
    const auto range = arith::const_range(indices[axis], bounds_);
    const auto extent = arith::const_range(buffer.shape()[axis], bounds_);
    if (!range || !extent || range->first < 0 || range->second >= extent->first) return false;
  }
  return true;
}

Value* KernelEmitter::lane_mask() {
  if (lanes_->mask) return lanes_->mask;
  return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_->count));
}

Value* KernelEmitter::lane_pointers(const Address& at, Type* element) {
  if (at.offsets) return b_.CreateGEP(element, at.pointer, at.offsets);
  std::vector<llvm::Constant*> steps;
  for (unsigned l = 0; l < lanes_->count; ++l)
    steps.push_back(b_.getInt64(static_cast<uint64_t>(l * *at.stride)));
  return b_.CreateGEP(element, at.pointer, llvm::ConstantVector::get(steps));
}

/// True while lanes may touch a whole padded register row whatever the mask says.
bool KernelEmitter::in_register_row(const Buffer& buffer) const { return padded_.contains(buffer); }

/// Lanes that run if the mask is known and only cuts off the last ones; absent otherwise.
std::optional<unsigned> KernelEmitter::known_lanes() const {
  if (lanes_->mask == nullptr) return lanes_->count;
  const auto* mask = llvm::dyn_cast<llvm::Constant>(lanes_->mask);
  if (mask == nullptr) return std::nullopt;
  unsigned active = 0;
  for (unsigned l = 0; l < lanes_->count; ++l) {
    const llvm::Constant* bit = mask->getAggregateElement(l);
    if (bit == nullptr || (!bit->isZeroValue() && active != l)) return std::nullopt;
    if (!bit->isZeroValue()) ++active;
  }
  return active == 0 ? std::nullopt : std::optional(active);
}

/// The elements that `active` lanes read at constant places, from the one or two vectors that hold
/// all between the first and the last of them; null where these are more.
Value* KernelEmitter::picked(const Buffer& buffer, const Address& at, Type* element,
                             unsigned active) {
  const auto n = static_cast<int64_t>(lanes_->count);
  const auto [least, most] =
      std::minmax_element(at.steps.begin(), at.steps.begin() + static_cast<int64_t>(active));
  const int64_t first = *least, length = *most - *least + 1;
  if (length > 2 * n) return nullptr;
  const int64_t width = std::min(n, length), second = length - width;
  const auto part = [&](int64_t from) {
    Value* pointer =
        b_.CreateConstGEP1_64(element, at.pointer, static_cast<uint64_t>(first + from));
    return tagged_load(buffer, llvm::FixedVectorType::get(element, static_cast<unsigned>(width)),
                       pointer, element_align(element));
  };
  Value* low = part(0);
  Value* high = second > 0 ? part(second) : low;
  std::vector<int> pick;
  for (int64_t l = 0; l < n; ++l) {
    const int64_t place = l < active ? at.steps[static_cast<size_t>(l)] - first : 0;
    pick.push_back(static_cast<int>(place < width ? place : width + place - second));
  }
  return b_.CreateShuffleVector(low, high, pick);
}

/// Elements 0, 2, 4, ... of `active` lanes from two overlapping vectors that stay inside the
/// elements needed.
Value* KernelEmitter::every_other(const Buffer& buffer, const Address& at, Type* element,
                                  unsigned active) {
  const unsigned n = lanes_->count;
  auto* type = llvm::FixedVectorType::get(element, n);
  const llvm::Align align = element_align(element);
  const auto part = [&](Value* pointer, unsigned first) -> Value* {
    if (active == n) return tagged(buffer, b_.CreateAlignedLoad(type, pointer, align));
    std::vector<llvm::Constant*> needed;
    for (unsigned l = 0; l < n; ++l) needed.push_back(b_.getInt1(first + l <= 2 * (active - 1)));
    Value* mask = llvm::ConstantVector::get(needed);
    if (llvm::cast<llvm::Constant>(mask)->isZeroValue()) return llvm::Constant::getNullValue(type);
    return tagged(buffer, b_.CreateMaskedLoad(type, pointer, align, mask,
                                              llvm::Constant::getNullValue(type)));
  };
  Value* low = part(at.pointer, 0);
  Value* high = part(b_.CreateConstGEP1_64(element, at.pointer, n - 1), n - 1);
  std::vector<int> pick;
  for (unsigned l = 0; l < n; ++l) {
    const unsigned position = 2 * l;  // `high` starts at element n - 1
    pick.push_back(static_cast<int>(position < n ? position : n + position - (n - 1)));
  }
  return b_.CreateShuffleVector(low, high, pick);
}

Value* KernelEmitter::load_memory(const Buffer& buffer, const Address& at) {
  Type* element = memory_type(buffer.dtype());
  const llvm::Align align = element_align(element);
  if (per_lane_.contains(buffer))
    return tagged(buffer, b_.CreateAlignedLoad(element_type(buffer), at.pointer, align));
  if (!lanes_ || (at.stride == 0 && (!lanes_->mask || lanes_->some_run || at.inside)))
    return tagged(buffer, b_.CreateAlignedLoad(element, at.pointer, align));
  auto* type = llvm::FixedVectorType::get(element, lanes_->count);
  const bool everywhere = lanes_->mask == nullptr || in_register_row(buffer);
  if (at.stride == 1 && everywhere)
    return tagged(buffer, b_.CreateAlignedLoad(type, at.pointer, align));
  Value* nothing = llvm::Constant::getNullValue(type);
  if (at.stride == 1)
    return tagged(buffer, b_.CreateMaskedLoad(type, at.pointer, align, lanes_->mask, nothing));
  if (const auto active = at.stride == 2 ? known_lanes() : std::nullopt)
    return every_other(buffer, at, element, *active);
  if (const auto active = at.steps.empty() ? std::nullopt : known_lanes())
    if (Value* all = picked(buffer, at, element, *active)) return all;
  return tagged(
      buffer, b_.CreateMaskedGather(type, lane_pointers(at, element), align, lane_mask(), nothing));
}

void KernelEmitter::store_memory(const Buffer& buffer, const Address& at, Value* value) {
  Type* element = memory_type(buffer.dtype());
  const llvm::Align align = element_align(element);
  if (!lanes_) {
    tagged(buffer, b_.CreateAlignedStore(value, at.pointer, align));
    return;
  }
  value = splat(value, lanes_->count);
  if (per_lane_.contains(buffer)) {
    tagged(buffer, b_.CreateAlignedStore(value, at.pointer, align));
    return;
  }
  if (at.stride == 1 && lanes_->mask && in_register_row(buffer) && !lanes_->only_tail) {
    // Keeps the register promotable: a masked store would pin it to memory.
    Value* old = tagged(buffer, b_.CreateAlignedLoad(value->getType(), at.pointer, align));
    value = b_.CreateSelect(lanes_->mask, value, old);
  }
  if (at.stride == 1 && (lanes_->mask == nullptr || in_register_row(buffer))) {
    tagged(buffer, b_.CreateAlignedStore(value, at.pointer, align));
  } else if (at.stride == 1) {
    tagged(buffer, b_.CreateMaskedStore(value, at.pointer, align, lanes_->mask));
  } else {
    tagged(buffer, b_.CreateMaskedScatter(value, lane_pointers(at, element), align, lane_mask()));
  }
}

/// Asks for what a contiguous load of a read-only parameter will need some iterations of the marked
/// loop later; an address behind the buffer does no harm. Of addresses less than a cache line apart
/// only the first is asked for: if the line ends between them, the next one asked for is in the
/// rest.
void KernelEmitter::prefetch(const Load& x, const Address& at) {
  const auto is_read = [&](const Param& p) {
    return p.buffer == x.buffer && (p.mode == ParamMode::In || p.mode == ParamMode::Const);
  };
  if (!lanes_ || at.stride != 1 || lanes_->mask != nullptr ||
      std::none_of(func_.params.begin(), func_.params.end(), is_read))
    return;
  const std::optional<Expr> place = place_of(x);
  if (!place) return;
  int64_t step = 0;
  for (const auto& [e, coefficient] : arith::as_affine(*place).terms)
    if (const auto* r = e.as<VarRef>(); r && r->var == prefetch_->var) step += coefficient;
  const int64_t line = kLineBits / bit_width(x.buffer.dtype());  // elements
  const auto in_its_line = [&](const Prefetch::Place& asked) {
    if (asked.buffer != x.buffer) return false;
    const arith::Affine apart = arith::as_affine(*place - asked.element);
    return apart.terms.empty() && std::abs(apart.constant) < line;
  };
  if (step == 0 || std::any_of(prefetched_.begin(), prefetched_.end(), in_its_line)) return;
  prefetched_.push_back({x.buffer, *place});
  Value* ahead = b_.CreateConstGEP1_64(element_type(x.buffer), at.pointer,
                                       static_cast<uint64_t>(step * prefetch_->distance));
  constexpr unsigned kRead = 0, kIntoL2 = 2, kData = 1;
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {ahead->getType()},
                     {ahead, b_.getInt32(kRead), b_.getInt32(kIntoL2), b_.getInt32(kData)});
}

Value* KernelEmitter::load_element(const Load& x, DType dtype) {
  if (const auto it = turned_.find(&x); it != turned_.end()) return from_memory(dtype, it->second);
  const Address at = address(x.buffer, x.indices);
  if (prefetch_) prefetch(x, at);
  if (fetch_next_) fetch_next(x, at);
  return from_memory(dtype, load_memory(x.buffer, at));
}

/// max or min in the form that LLVM's vectoriser knows as a reduction; NaN wins in it too.
Value* KernelEmitter::extreme_of(const Expr& e, Combine combine) {
  const auto* both = e.as<Binary>();
  const auto id = combine == Combine::Max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum;
  Value *a = emit(both->a), *b = emit(both->b);
  llvm::CallInst* out = b_.CreateIntrinsic(id, {a->getType()}, {a, b});
  out->setHasNoSignedZeros(true);
  return out;
}

void KernelEmitter::store(const Store& x) {
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  has_scalar_loops_ |= !lanes_ && !depth_.empty();
  Expr e = x.value;
  constexpr BinaryOp kOps[] = {BinaryOp::Add, BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max,
                               BinaryOp::Min};
  if (x.combine != Combine::Set)
    e = binary(kOps[static_cast<int>(x.combine)], load(x.buffer, x.indices), e);
  const bool extreme = x.combine == Combine::Max || x.combine == Combine::Min;
  Value* v = extreme && !lanes_ && is_float(e.dtype()) ? extreme_of(e, x.combine) : emit(e);
  if (fast_ && !lanes_ && (x.combine == Combine::Add || x.combine == Combine::Mul) &&
      is_float(e.dtype())) {
    // One reduction may be regrouped: what LLVM's vectoriser needs to know.
    if (auto* i = llvm::dyn_cast<llvm::Instruction>(v); i && llvm::isa<llvm::FPMathOperator>(i))
      i->setHasAllowReassoc(true);
  }
  const Address at = address(x.buffer, x.indices);
  store_memory(x.buffer, at, to_memory(x.buffer.dtype(), v));
}

}  // namespace tilewright::codegen
