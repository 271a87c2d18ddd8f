// For tests: intrinsics that fit a nest of a program, most of the time.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule::testing {

/// Writes down what the nest at a loop computes as a function of its own.
class RandomIntrinsic {
 public:
  RandomIntrinsic(Rng& rng, const Tree& tree, std::string name) : rng_(rng), tree_(tree) {
    func_.name = std::move(name);
    func_.math = rng.chance(0.8) ? MathMode::Exact : MathMode::Fast;
  }

  /// The text; of an empty function where the nest is not around one store.
  std::string text(Id root) {
    const std::vector<Id> ids = perfect_nest(tree_, root);
    const std::vector<Id> last = tree_.body_of(ids.back());
    const Block* block = last.size() == 1 ? tree_.as<Block>(last[0]) : nullptr;
    const Store* store = block ? single_store(*block) : nullptr;
    if (store == nullptr) return "func nothing() {\n}\n";
    VarMap bindings;
    for (const Iter& iter : block->iters) bindings[iter.var] = iter.binding;
    const Stmt body = substitute(block->body, bindings);
    for (Id id : ids) add_loop(tree_.loop(id));
    const Store& s = *body.as<Store>();
    Store out;
    const Expr stored = access(load(s.buffer, s.indices));
    out.buffer = stored.as<Load>()->buffer;
    out.indices = stored.as<Load>()->indices;
    out.combine = s.combine;
    result_ = s.buffer;
    result_param_ = out.buffer;
    out.value = rewrite(s.value, [&](const Expr& e) { return node(e); });
    func_.params[0].mode = s.combine == Combine::Set ? ParamMode::Out : ParamMode::InOut;
    func_.body = nest(out);
    return tilewright::print(func_);
  }

 private:
  void add_loop(const For& loop) {
    const Var var(loop.var.name());
    loops_.push_back({var, loop.extent, ForKind::Serial, "", {}, Stmt()});
    old_.push_back(loop.var);
    rename_[loop.var] = ref(var);
    bounds_.bind(var, loop.extent);
  }

  Expr node(const Expr& e) {
    if (e.as<Load>()) return access(e);
    const Binary* b = e.as<Binary>();
    if (b && (b->op == BinaryOp::Mul || b->op == BinaryOp::Add) && rng_.chance(0.5))
      return binary(b->op, b->b, b->a);
    return e;
  }

  /// The load as one of a new parameter that holds just what the nest reaches.
  Expr access(const Expr& e) {
    const Load& l = *e.as<Load>();
    std::vector<Expr> shape, indices;
    for (const Expr& index : l.indices) {
      const arith::Affine all = arith::as_affine(index);
      arith::Affine inner;
      for (const auto& term : all.terms)
        if (std::any_of(old_.begin(), old_.end(),
                        [&](const Var& v) { return uses(term.first, v); }))
          inner.terms.push_back(term);
      if (inner.terms.empty()) continue;
      const Expr moved = substitute(arith::to_expr(inner), rename_);
      const auto range = arith::const_range(moved, bounds_).value_or(std::pair<int64_t, int64_t>());
      shape.push_back(int_imm(range.second - range.first + 1));
      indices.push_back(arith::simplify(moved - range.first, bounds_));
    }
    if (result_ && l.buffer == result_ && shape.size() == result_param_.rank())
      return load(result_param_, indices);
    const Buffer param("p" + std::to_string(func_.params.size()), l.buffer.dtype(), shape);
    func_.params.push_back({param, ParamMode::In, {}, {}});
    return load(param, indices);
  }

  Stmt nest(const Store& store) {
    Block block{"b", {}, Expr(), {}, Stmt()};
    VarMap iters;
    for (const For& loop : loops_) {
      const bool space = std::any_of(store.indices.begin(), store.indices.end(),
                                     [&](const Expr& e) { return uses(e, loop.var); });
      const Var v("i" + std::to_string(block.iters.size()));
      block.iters.push_back(
          {v, space ? IterKind::Space : IterKind::Reduce, loop.extent, ref(loop.var)});
      iters[loop.var] = ref(v);
    }
    block.body = substitute(make(store), iters);
    if (rng_.chance(0.3)) std::reverse(loops_.begin(), loops_.end());
    Stmt s = make(std::move(block));
    for (size_t i = loops_.size(); i-- > 0;) {
      loops_[i].body = s;
      s = make(loops_[i]);
    }
    return s;
  }

  Rng& rng_;
  const Tree& tree_;
  Func func_;
  std::vector<For> loops_;
  std::vector<Var> old_;
  VarMap rename_;
  arith::Bounds bounds_;
  Buffer result_, result_param_;
};

}  // namespace tilewright::schedule::testing
