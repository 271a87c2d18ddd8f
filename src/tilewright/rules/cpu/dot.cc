#include "tilewright/rules/cpu/dot.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/hw/cpu_intrinsics.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {
namespace {

/// A contraction as dot products.
struct DotBlock {
  std::string block;
  std::string group_loop;
  Var group;       ///< the iteration inside groups
  Buffer weights;  ///< the operand that varies with the lanes
  hw::Dot dot;
  bool taps = false;  ///< each lane has a window of its own, whose taps make the groups
};

/// Whether `load` runs through neighbours in axis `axis` with `group`, and nowhere else.
bool groups_along(const Load& load, const Var& group, size_t axis) {
  if (load.indices.size() <= axis) return false;
  for (size_t i = 0; i < load.indices.size(); ++i)
    if (i != axis && uses(load.indices[i], group)) return false;
  const arith::Affine index = arith::as_affine(load.indices[axis]);
  for (const auto& [term, coefficient] : index.terms)
    if (uses(term, group) && term.as<VarRef>() == nullptr) return false;
  return index.coefficient(group) == 1;
}

bool groups_last(const Load& load, const Var& group) {
  return !load.indices.empty() && groups_along(load, group, load.indices.size() - 1);
}

/// Whether the last two indices of `load` are `outer` and `inner`.
bool ends_with(const Load& load, const Var& outer, const Var& inner) {
  const size_t rank = load.indices.size();
  const VarRef* a = rank < 2 ? nullptr : load.indices[rank - 2].as<VarRef>();
  const VarRef* b = rank < 2 ? nullptr : load.indices[rank - 1].as<VarRef>();
  return a != nullptr && b != nullptr && a->var == outer && b->var == inner;
}

bool read_only_here(const Func& func, const Buffer& buffer, const std::string& block) {
  if (!is_output(func, buffer)) return false;  // no parameter
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const auto users = readers(blocks, buffer);
  return users.size() == 1 && users[0]->name == block;
}

/// Windows of one channel each: w[.., lane, tap] and pixels whose last axis are the lanes.
std::optional<DotBlock> match_taps(const BlockFacts& block, const Product& product, const Iter& tap,
                                   const Var& lane, int64_t lanes, const hw::CpuTarget& target) {
  const bool b_is_weight = ends_with(product.b, lane, tap.var);
  const Load& weights = b_is_weight ? product.b : product.a;
  const Load& pixels = b_is_weight ? product.a : product.b;
  const size_t rank = pixels.indices.size();
  const VarRef* last = rank < 2 ? nullptr : pixels.indices.back().as<VarRef>();
  if (!ends_with(weights, lane, tap.var) || last == nullptr || !(last->var == lane) ||
      as_int(pixels.buffer.shape().back()) != lanes || !groups_along(pixels, tap.var, rank - 2))
    return std::nullopt;
  const auto dot =
      hw::find_dot(target, pixels.buffer.dtype(), weights.buffer.dtype(), lanes, hw::DotKind::Taps);
  if (!dot || dot->lanes != lanes || dot->acc != block.store->buffer.dtype() ||
      as_int(tap.extent) != dot->depth)
    return std::nullopt;
  return DotBlock{block.name, block.loop_of(tap.var), tap.var, weights.buffer, *dot, true};
}

/// requires: `block` is a sum of products.
Answer<DotBlock> match_dot(const Func& func, const BlockFacts& block, const hw::CpuTarget& target) {
  const std::optional<Product> product = product_of(block);
  const VarRef* lane =
      block.store->indices.empty() ? nullptr : block.store->indices.back().as<VarRef>();
  if (lane == nullptr)
    return decline("the last index of what `{}` writes is no iteration, so there are no lanes",
                   block.name);
  const int64_t lanes = as_int(block.iter(lane->var)->extent).value_or(0);
  for (const Iter& iter : block.block->iters) {
    if (iter.kind != IterKind::Reduce || block.loop_of(iter.var).empty()) continue;
    if (auto taps = match_taps(block, *product, iter, lane->var, lanes, target)) return *taps;
    if (!groups_last(product->a, iter.var) || !groups_last(product->b, iter.var)) continue;
    const bool b_has_lanes = mentions(product->b, lane->var);
    if (b_has_lanes == mentions(product->a, lane->var))
      return decline("{} of the factors of `{}` move with the vector lanes, not one",
                     b_has_lanes ? "both" : "none", block.name);
    const Load& weights = b_has_lanes ? product->b : product->a;
    const Load& rows = b_has_lanes ? product->a : product->b;
    const auto dot = hw::find_dot(target, rows.buffer.dtype(), weights.buffer.dtype(), lanes);
    if (!dot || dot->acc != block.store->buffer.dtype() || as_int(iter.extent) != dot->depth)
      return decline("no instruction sums groups of {} products of {} and {} to {} for {} lanes",
                     as_int(iter.extent).value_or(0), tilewright::name(rows.buffer.dtype()),
                     tilewright::name(weights.buffer.dtype()),
                     tilewright::name(block.store->buffer.dtype()), lanes);
    if (!weights.indices.back().as<VarRef>() || weights.indices.size() < 2 ||
        !read_only_here(func, weights.buffer, block.name))
      return decline("the weights `{}` are no parameter that `{}` alone reads",
                     weights.buffer.name(), block.name);
    return DotBlock{block.name, block.loop_of(iter.var), iter.var, weights.buffer, *dot};
  }
  const DType factors = product->a.buffer.dtype();
  if (bit_width(factors) > 16)
    return decline("the factors of `{}` are {}, wider than those of dot products", block.name,
                   name(factors));
  return decline("no terms of `{}` lie side by side in both of its factors", block.name);
}

/// `func` with one element in place of each group.
Func without_groups(const Func& func, const DotBlock& at) {
  const DType word = at.dot.acc;
  std::vector<Expr> shape = at.weights.shape();
  shape.pop_back();
  const Buffer words(at.weights.name(), word, shape, at.weights.scope());
  Func out = func;
  for (Param& p : out.params)
    if (p.buffer == at.weights) p = Param{words, p.mode, {}, {}};
  const auto expr = [&](const Expr& e) {
    const auto* cast_of = e.as<Cast>();
    const Load* l = cast_of ? cast_of->a.as<Load>() : nullptr;
    if (l == nullptr || !(l->buffer == at.weights)) return e;
    return load(words, {l->indices.begin(), l->indices.end() - 1});
  };
  out.body = rewrite(func.body, [&](const Stmt& s) -> Stmt {
    if (const auto* loop = s.as<For>(); loop && loop->var.name() == at.group_loop)
      return loop->body;
    const auto* block = s.as<Block>();
    if (block == nullptr || block->name != at.block) return s;
    Block copy = *block;
    std::erase_if(copy.iters, [&](const Iter& iter) { return iter.var == at.group; });
    copy.body = rewrite(
        substitute(block->body, {{at.group, int_imm(0)}}), [](const Stmt& x) { return x; },
        [&](const Expr& e) { return arith::simplify(rewrite(e, expr)); });
    return make(std::move(copy));
  });
  return out;
}

/// `func` with lanes as the last axis of the weights, so that lanes lie side by side everywhere.
Func with_turned_weights(const Func& func, const DotBlock& at) {
  std::vector<Expr> shape = at.weights.shape();
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  const Buffer turned(at.weights.name(), at.weights.dtype(), shape, at.weights.scope());
  Func out = func;
  for (Param& p : out.params)
    if (p.buffer == at.weights) p = Param{turned, p.mode, {}, {}};
  const auto expr = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l == nullptr || !(l->buffer == at.weights)) return e;
    std::vector<Expr> indices = l->indices;
    std::swap(indices[indices.size() - 1], indices[indices.size() - 2]);
    return load(turned, std::move(indices));
  };
  out.body = rewrite(func.body, {}, [&](const Expr& e) { return rewrite(e, expr); });
  return out;
}

/// The piece of `block` that is still one store inside `loop`, if any.
std::string piece_inside(const Draft& draft, const std::string& block, const std::string& loop) {
  for (const BlockFacts& facts : draft.blocks())
    if (is_piece(facts.name, block) && facts.store != nullptr &&
        std::find(facts.loops.begin(), facts.loops.end(), loop) != facts.loops.end())
      return facts.name;
  return "";
}

/// In place of the vector loop: the loop inside groups goes innermost, both become the instruction.
bool tensorize(Draft& draft, const std::string& piece, const std::string& lane_loop,
               const DotBlock& at) {
  const LoopNest nest = draft.nest_of(piece);
  std::vector<std::string> order;
  std::string group;
  bool inside = false;
  for (const std::string& loop : nest.names) {
    if (is_piece(loop, at.group_loop)) {
      group = loop;
    } else if (inside || !group.empty() || loop == lane_loop) {
      order.push_back(loop);
    }
    inside |= loop == lane_loop;
  }
  if (group.empty() || order.empty() || order.back() != lane_loop) return false;
  order.push_back(group);
  if (nest.names.back() != group && !draft.attempt(schedule::Reorder{order})) return false;
  return draft.attempt(schedule::Tensorize{lane_loop, print(at.dot.intrinsic->meaning)});
}

Answer<DotBlock> find_dot(const Func& func, const hw::CpuTarget& target) {
  if (hw::dots_of(target).empty()) return decline("the target has no dot-product instructions");
  Answer<DotBlock> found = decline("the kernel has no sum of products");
  for (const BlockFacts& block : collect_blocks(func)) {
    if (!product_of(block)) continue;
    found = match_dot(func, block, target);
    if (found) break;
  }
  return found;
}

/// The schedule to replay: with one element in place of each group; windows keep theirs, since what
/// pads the image must reach all their taps.
std::optional<schedule::Trace> steps_of(const Func& func, const DotBlock& at,
                                        const hw::CpuTarget& target, int threads,
                                        const cost::TilePoint* point) {
  const Func plain = at.taps ? with_turned_weights(func, at) : without_groups(func, at);
  if (point != nullptr) {
    Result<schedule::Trace> chosen = trace_at(plain, *point, target, threads);
    return chosen ? std::optional(*std::move(chosen)) : std::nullopt;
  }
  return at.taps ? trace_with(plain, {}, target, threads) : default_trace(plain, target, threads);
}

}  // namespace

std::optional<Func> dot_groups(const Func& func, const hw::CpuTarget& target) {
  const Answer<DotBlock> at = find_dot(func, target);
  if (!at || at->taps) return std::nullopt;
  return without_groups(func, *at);
}

Answer<schedule::Trace> dot_trace(const Func& func, const hw::CpuTarget& target, int threads,
                                  const cost::TilePoint* point) {
  const Answer<DotBlock> at = find_dot(func, target);
  if (!at) return decline("{}", at.error());
  const std::optional<schedule::Trace> steps = steps_of(func, *at, target, threads, point);
  if (!steps) return decline("the tile that was asked for does not fit `{}`", at->block);
  const auto refused = [&] {
    return decline("a step of the schedule for `{}` does not apply with its groups as instructions",
                   at->block);
  };
  Draft draft(func);
  bool done = false;
  for (const schedule::Step& step : *steps) {
    if (const auto* vectorize = std::get_if<schedule::Vectorize>(&step)) {
      const std::string piece = piece_inside(draft, at->block, vectorize->loop);
      if (!piece.empty()) {
        if (!tensorize(draft, piece, vectorize->loop, *at)) return refused();
        done = true;
        continue;
      }
    }
    // What was a loop inside the groups is one instruction now.
    const auto* unroll = std::get_if<schedule::Unroll>(&step);
    if (unroll != nullptr && is_piece(unroll->loop, at->group_loop)) continue;
    if (!draft.attempt(step)) return refused();
  }
  if (!done) return decline("the lanes of `{}` do not become a vector", at->block);
  return draft.take();
}

}  // namespace tilewright::rules
