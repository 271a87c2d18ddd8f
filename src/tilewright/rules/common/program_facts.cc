#include "tilewright/rules/common/program_facts.h"

#include <algorithm>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

int cost_of(const Expr& value) {
  int cost = 0;
  walk(value, [&](const Expr& e) {
    if (e.as<MathCall>() != nullptr) cost += 10;
    if (e.as<Binary>() != nullptr || e.as<Select>() != nullptr) cost += 1;
  });
  return cost;
}

BlockFacts facts_of(const Block& block, const std::vector<const For*>& loops) {
  BlockFacts facts;
  facts.name = block.name;
  facts.block = &block;
  for (const For* loop : loops) {
    facts.loops.push_back(loop->var.name());
    facts.extents.push_back(as_int(loop->extent).value_or(0));
  }
  facts.store = block.body.as<Store>();
  if (facts.store == nullptr) return facts;
  const Expr& value = facts.store->value;
  facts.cost = cost_of(value);
  walk(value, [&](const Expr& e) {
    if (const Load* load = e.as<Load>()) facts.loads.push_back(*load);
  });
  bool reduces = false, scans = false;
  for (const Iter& iter : block.iters) {
    reduces |= iter.kind == IterKind::Reduce;
    scans |= iter.kind == IterKind::Scan;
  }
  if (scans) return facts;
  if (facts.store->combine != Combine::Set) {
    facts.kind = BlockFacts::Kind::Reduce;
  } else if (!reduces) {
    facts.kind =
        block.name.ends_with(".init") ? BlockFacts::Kind::Init : BlockFacts::Kind::Injective;
  }
  return facts;
}

void collect(const Stmt& s, std::vector<const For*>& loops, std::vector<BlockFacts>& out) {
  if (const Block* block = s.as<Block>()) {
    out.push_back(facts_of(*block, loops));
    return;
  }
  const For* loop = s.as<For>();
  if (loop != nullptr) loops.push_back(loop);
  for (const Stmt& child : children(s)) collect(child, loops, out);
  if (loop != nullptr) loops.pop_back();
}

}  // namespace

std::string BlockFacts::loop_of(const Var& var) const {
  const Iter* found = iter(var);
  if (found == nullptr) return "";
  if (const VarRef* loop = found->binding.as<VarRef>()) return loop->var.name();
  // The innermost loop that the binding speaks of, if it counts by ones.
  const std::vector<Var> used = free_vars(found->binding);
  for (size_t depth = loops.size(); depth-- > 0;)
    for (const Var& v : used)
      if (v.name() == loops[depth])
        return arith::as_affine(found->binding).coefficient(v) == 1 ? v.name() : std::string();
  return "";
}

int64_t BlockFacts::extent_of(const Var& var) const {
  const std::string loop = loop_of(var);
  const auto at = std::find(loops.begin(), loops.end(), loop);
  return at == loops.end() ? 1 : extents[static_cast<size_t>(at - loops.begin())];
}

const Iter* BlockFacts::iter(const Var& var) const {
  for (const Iter& it : block->iters)
    if (it.var == var) return &it;
  return nullptr;
}

int64_t BlockFacts::work() const {
  int64_t total = 1;
  for (const Iter& it : block->iters) total *= as_int(it.extent).value_or(0);
  return total;
}

double BlockFacts::counted() const {
  constexpr int64_t kMostCounted = 4096;
  if (!block->guard) return 1;
  std::vector<std::pair<Var, int64_t>> named;  // loops and their extents
  int64_t total = 1;
  for (const Var& var : free_vars(block->guard)) {
    const auto iter = std::find_if(block->iters.begin(), block->iters.end(), [&](const Iter& i) {
      const auto* bound = i.binding.as<VarRef>();
      return bound != nullptr && bound->var == var;
    });
    const int64_t extent = iter == block->iters.end() ? 0 : as_int(iter->extent).value_or(0);
    named.emplace_back(var, extent);
    total *= std::min(extent, kMostCounted);
    if (total == 0 || total > kMostCounted) return 1;
  }
  int64_t run = 0;
  for (int64_t at = 0; at < total; ++at) {
    VarMap values;
    int64_t rest = at;
    for (const auto& [var, extent] : named) values[var] = int_imm(rest % extent), rest /= extent;
    run += is_const_int(arith::simplify(substitute(block->guard, values)), 0) ? 0 : 1;
  }
  return static_cast<double>(run) / static_cast<double>(total);
}

std::vector<BlockFacts> collect_blocks(const Func& func) {
  std::vector<BlockFacts> blocks;
  std::vector<const For*> loops;
  collect(func.body, loops, blocks);
  return blocks;
}

const BlockFacts* find_block(const std::vector<BlockFacts>& blocks, const std::string& name) {
  for (const BlockFacts& block : blocks)
    if (block.name == name) return &block;
  return nullptr;
}

std::vector<const BlockFacts*> readers(const std::vector<BlockFacts>& blocks,
                                       const Buffer& buffer) {
  std::vector<const BlockFacts*> found;
  for (const BlockFacts& block : blocks) {
    const bool reads = std::any_of(block.loads.begin(), block.loads.end(),
                                   [&](const Load& load) { return load.buffer == buffer; });
    if (reads) found.push_back(&block);
  }
  return found;
}

bool is_output(const Func& func, const Buffer& buffer) {
  return std::any_of(func.params.begin(), func.params.end(),
                     [&](const Param& param) { return param.buffer == buffer; });
}

std::optional<Product> product_of(const BlockFacts& block) {
  if (block.kind != BlockFacts::Kind::Reduce || block.store->combine != Combine::Add)
    return std::nullopt;
  auto strip = [](Expr e) {
    for (;;) {
      const Select* select = e.as<Select>();
      if (const Cast* cast = e.as<Cast>()) {
        e = cast->a;
      } else if (select != nullptr &&
                 (as_int(select->on_false) || select->on_false.as<FloatImm>())) {
        e = select->on_true;
      } else {
        return e;
      }
    }
  };
  const Expr value = strip(block.store->value);
  const Binary* product = value.as<Binary>();
  if (product == nullptr || product->op != BinaryOp::Mul) return std::nullopt;
  const Expr a = strip(product->a), b = strip(product->b);
  if (a.as<Load>() == nullptr || b.as<Load>() == nullptr) return std::nullopt;
  return Product{*a.as<Load>(), *b.as<Load>()};
}

bool mentions(const Load& load, const Var& var) {
  return std::any_of(load.indices.begin(), load.indices.end(),
                     [&](const Expr& index) { return uses(index, var); });
}

std::optional<int64_t> last_axis_stride(const Load& load, const Var& var, int64_t lanes) {
  if (load.indices.empty()) return 0;
  // Within an aligned group of lanes, var / c is constant and var % c counts up, if c holds whole
  // groups.
  auto in_lanes = [&](const Expr& index) {
    return rewrite(index, [&](const Expr& e) {
      const Binary* b = e.as<Binary>();
      if (b == nullptr || (b->op != BinaryOp::Div && b->op != BinaryOp::Mod)) return e;
      const VarRef* ref = b->a.as<VarRef>();
      const int64_t size = as_int(b->b).value_or(0);
      if (ref == nullptr || !(ref->var == var) || size <= 0 || size % lanes != 0) return e;
      return b->op == BinaryOp::Mod ? b->a : int_imm(0);
    });
  };
  for (size_t i = 0; i + 1 < load.indices.size(); ++i)
    if (uses(in_lanes(load.indices[i]), var)) return std::nullopt;
  const Expr last = in_lanes(load.indices.back());
  if (!uses(last, var)) return 0;
  const arith::Affine affine = arith::as_affine(last);
  for (const auto& term : affine.terms)
    if (term.first.as<VarRef>() == nullptr && uses(term.first, var)) return std::nullopt;
  return affine.coefficient(var);
}

}  // namespace tilewright::rules
