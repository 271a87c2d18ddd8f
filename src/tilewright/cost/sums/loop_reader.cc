#include "tilewright/cost/sums/loop_reader.h"

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"

namespace tilewright::cost {
namespace {

/// Splits an index `g * n + k` whose loop g runs through all tensors: [g][k].
void split_shared(const std::vector<SpatialLoop>& loops, const std::set<int>& shared,
                  SpatialTensor& tensor) {
  std::vector<SpatialDim> dims;
  for (const SpatialDim& dim : tensor.dims) {
    if (dim.terms.size() == 2 && dim.begin == 0) {
      const bool first = dim.terms[0].stride > dim.terms[1].stride;
      const SpatialTerm &outer = dim.terms[first ? 0 : 1], &inner = dim.terms[first ? 1 : 0];
      const int64_t groups = loops[static_cast<size_t>(outer.loop)].extent,
                    each = loops[static_cast<size_t>(inner.loop)].extent;
      if (shared.contains(outer.loop) && inner.stride == 1 && outer.stride == each &&
          dim.extent == groups * each) {
        dims.push_back({{{outer.loop, 1}}, groups, 0});
        dims.push_back({{{inner.loop, 1}}, each, 0});
        continue;
      }
    }
    dims.push_back(dim);
  }
  tensor.dims = std::move(dims);
}

std::vector<SpatialTensor*> tensors_of(Computation& c) {
  std::vector<SpatialTensor*> all;
  for (SpatialTensor& factor : c.factors) all.push_back(&factor);
  all.push_back(&c.result);
  return all;
}

uint32_t moved_by(Computation& c, int loop) {
  uint32_t mask = 0;
  for (const SpatialTensor* tensor : tensors_of(c))
    mask = mask << 1 | uint32_t{moves(*tensor, loop)};
  return mask;
}

/// The mask of a loop that runs through the result and all factors.
uint32_t every_tensor(const Computation& c) { return (uint32_t{1} << (c.factors.size() + 1)) - 1; }

bool alone_everywhere(Computation& c, int loop) {
  for (const SpatialTensor* tensor : tensors_of(c))
    for (const SpatialDim& dim : tensor->dims)
      for (const SpatialTerm& term : dim.terms)
        if (term.loop == loop && dim.terms.size() > 1) return false;
  return true;
}

void erase_loop(Computation& c, int loop) {
  c.loops.erase(c.loops.begin() + loop);
  for (SpatialTensor* tensor : tensors_of(c))
    for (SpatialDim& dim : tensor->dims) {
      std::erase_if(dim.terms, [&](const auto& term) { return term.loop == loop; });
      for (SpatialTerm& term : dim.terms) term.loop -= term.loop > loop;
    }
}

/// The loop of an index that has one only; -1: it has another number.
int only_loop(const SpatialDim& dim) { return dim.terms.size() == 1 ? dim.terms[0].loop : -1; }

/// A tap of one element moves over any axis of an image. Expressions leave it out of the index; it
/// is put back, so that a window of 1 x 1 is a window: taps of one factor, in their order, to the
/// last axes that the result has from the other factor.
void attach_taps(Computation& c) {
  if (c.factors.size() != 2) return;
  for (const size_t f : {size_t{0}, size_t{1}}) {
    SpatialTensor &weights = c.factors[f], &image = c.factors[1 - f];
    std::vector<int> taps;
    for (const SpatialDim& dim : weights.dims) {
      const int loop = only_loop(dim);
      if (loop >= 0 && c.loops[static_cast<size_t>(loop)].extent == 1 &&
          c.loops[static_cast<size_t>(loop)].reduces && !moves(image, loop))
        taps.push_back(loop);
    }
    std::vector<SpatialDim*> axes;
    for (SpatialDim& dim : image.dims)
      if (const int loop = only_loop(dim);
          loop >= 0 && moves(c.result, loop) && !moves(weights, loop))
        axes.push_back(&dim);
    if (taps.size() > axes.size()) continue;
    for (size_t i = 0; i < taps.size(); ++i)
      axes[axes.size() - taps.size() + i]->terms.push_back({taps[i], 1});
  }
}

/// A loop of the result with one iteration only wastes lanes where another loop runs through the
/// same tensors. Axes of one element are no dimensions.
void drop_single(Computation& c) {
  for (int loop = static_cast<int>(c.loops.size()); loop-- > 0;) {
    const SpatialLoop& one = c.loops[static_cast<size_t>(loop)];
    if (one.extent > 1 || one.reduces || !alone_everywhere(c, loop)) continue;
    const uint32_t mask = moved_by(c, loop);
    bool other = mask == every_tensor(c);  // no unit has it in a role
    for (int i = 0; i < static_cast<int>(c.loops.size()); ++i)
      other |= i != loop && c.loops[static_cast<size_t>(i)].extent > 1 && moved_by(c, i) == mask;
    if (other) erase_loop(c, loop);
  }
  for (SpatialTensor* tensor : tensors_of(c))
    std::erase_if(tensor->dims, [](const SpatialDim& dim) {
      return dim.extent == 1 && dim.terms.empty() && dim.begin == 0;
    });
}

}  // namespace

std::string loop_name(const std::string& wanted, std::set<std::string>& taken) {
  std::string letters;
  for (const char c : wanted)
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) letters += c;
  if (letters.empty()) letters = "l";
  std::string name = letters;
  for (char last = 'a'; !taken.insert(name).second; ++last) name = letters + last;
  return name;
}

LoopReader::LoopReader(const std::vector<SourceLoop>& nest) : nest_(nest) {
  for (const SourceLoop& loop : nest) places_[loop.var].extent = loop.extent;
}

void LoopReader::find_cuts(const Expr& e) {
  walk(e, [&](const Expr& inner) {
    const auto* binary = inner.as<Binary>();
    if (binary == nullptr || (binary->op != BinaryOp::Div && binary->op != BinaryOp::Mod)) return;
    const auto* var = binary->a.as<VarRef>();
    const std::optional<int64_t> cut = as_int(binary->b);
    if (var == nullptr || !cut || !places_.contains(var->var)) return;
    Place& place = places_.at(var->var);
    if (place.cut == 0 && place.extent % *cut == 0) place.cut = *cut;
  });
}

std::vector<SpatialLoop> LoopReader::make_loops() {
  std::vector<SpatialLoop> loops;
  std::set<std::string> taken;
  for (const SourceLoop& loop : nest_) taken.insert(loop.name);
  for (const bool reduces : {false, true})
    for (const SourceLoop& loop : nest_) {
      if (loop.reduces != reduces) continue;
      Place& place = places_.at(loop.var);
      if (place.cut > 0) {
        place.outer = static_cast<int>(loops.size());
        loops.push_back({loop_name("g", taken), loop.extent / place.cut, reduces});
      }
      place.inner = static_cast<int>(loops.size());
      loops.push_back({loop.name, place.cut > 0 ? place.cut : loop.extent, reduces});
    }
  return loops;
}

std::optional<LoopIndex> LoopReader::read(const Expr& e) const {
  const arith::Affine affine = arith::as_affine(e);
  LoopIndex index;
  index.constant = affine.constant;
  for (const auto& [term, coefficient] : affine.terms) {
    const auto* binary = term.as<Binary>();
    const auto* var = binary ? binary->a.as<VarRef>() : term.as<VarRef>();
    const auto found = var == nullptr ? places_.end() : places_.find(var->var);
    if (found == places_.end()) return std::nullopt;
    const Place& place = found->second;
    if (binary == nullptr) {
      index.terms[place.inner] += coefficient;
      if (place.cut > 0) index.terms[place.outer] += coefficient * place.cut;
    } else {
      if (place.cut == 0 || as_int(binary->b) != place.cut) return std::nullopt;
      if (binary->op != BinaryOp::Div && binary->op != BinaryOp::Mod) return std::nullopt;
      index.terms[binary->op == BinaryOp::Div ? place.outer : place.inner] += coefficient;
    }
  }
  std::erase_if(index.terms, [](const auto& term) { return term.second == 0; });
  return index;
}

std::optional<LoopIndex> not_below_zero(const LoopReader& reader, const Expr& condition) {
  const auto* c = condition.as<Binary>();
  if (c == nullptr) return std::nullopt;
  const bool less = c->op == BinaryOp::Lt || c->op == BinaryOp::Le;
  if (!less && c->op != BinaryOp::Gt && c->op != BinaryOp::Ge) return std::nullopt;
  if (is_float(c->a.dtype())) return std::nullopt;
  std::optional<LoopIndex> index = reader.read(less ? c->b - c->a : c->a - c->b);
  if (index && (c->op == BinaryOp::Lt || c->op == BinaryOp::Gt)) --index->constant;
  return index;
}

bool is_padding(const LoopIndex& index, const Computation& c) {
  int64_t least = index.constant;
  for (const auto& [loop, stride] : index.terms)
    least += std::min<int64_t>(0, stride * (c.loops[static_cast<size_t>(loop)].extent - 1));
  if (least >= 0) return true;
  for (const SpatialTensor& factor : c.factors)
    for (const SpatialDim& dim : factor.dims) {
      LoopIndex low{{}, -dim.begin}, high{{}, dim.extent - 1 + dim.begin};
      for (const SpatialTerm& term : dim.terms) {
        low.terms[term.loop] = term.stride;
        high.terms[term.loop] = -term.stride;
      }
      if (index == low || index == high) return true;
    }
  return false;
}

void tidy(Computation& c) {
  std::set<int> shared;
  for (int loop = 0; loop < static_cast<int>(c.loops.size()); ++loop)
    if (moved_by(c, loop) == every_tensor(c)) shared.insert(loop);
  for (SpatialTensor* tensor : tensors_of(c)) split_shared(c.loops, shared, *tensor);
  attach_taps(c);
  drop_single(c);
}

}  // namespace tilewright::cost
