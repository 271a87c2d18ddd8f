#include "tilewright/schedule/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/text.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {
namespace {

using Leaf = SyntaxTree::Leaf;

/// Grows an injective map from the leaves of an intrinsic to those of a computation, leaf by leaf.
class Matcher {
 public:
  /// `structure`: leaves must meet in the same operations; `stored`: map those of the stored
  /// element too, and a variable in all its occurrences or in none.
  Matcher(const SyntaxTree& workload, const SyntaxTree& intrinsic, bool structure, bool stored)
      : p_(workload), q_(intrinsic), structure_(structure), stored_(stored) {
    for (const Leaf& leaf : q_.leaves())
      if (stored || leaf.access > 0) from_.push_back(&leaf);
    for (const Leaf& leaf : p_.leaves())
      if (stored || leaf.access > 0) to_.push_back(&leaf);
  }

  using Found = std::function<void(const std::vector<const Leaf*>& from,
                                   const std::vector<const Leaf*>& image)>;
  void run(const Found& found) {
    if (image_.size() == from_.size()) {
      if (!stored_ || closed()) found(from_, image_);
      return;
    }
    const Leaf& leaf = *from_[image_.size()];
    for (const Leaf* candidate : to_) {
      if (!fits(leaf, *candidate)) continue;
      image_.push_back(candidate);
      run(found);
      image_.pop_back();
    }
  }

 private:
  bool fits(const Leaf& leaf, const Leaf& candidate) const {
    if (!leaf.plain || !candidate.plain) return false;
    if (stored_ && (leaf.access == 0) != (candidate.access == 0)) return false;
    for (size_t i = 0; i < image_.size(); ++i) {
      if (image_[i] == &candidate) return false;
      if ((from_[i]->var == leaf.var) != (image_[i]->var == candidate.var)) return false;
      if (structure_ && q_.meeting(*from_[i], leaf) != p_.meeting(*image_[i], candidate))
        return false;
    }
    return true;
  }

  bool closed() const {
    std::set<Var> matched;
    for (const Leaf* leaf : image_) matched.insert(leaf->var);
    return std::all_of(to_.begin(), to_.end(), [&](const Leaf* leaf) {
      return !matched.contains(leaf->var) ||
             std::find(image_.begin(), image_.end(), leaf) != image_.end();
    });
  }

  const SyntaxTree &p_, &q_;
  const bool structure_, stored_;
  std::vector<const Leaf*> from_, to_, image_;
};

bool commutes(const std::string& operation) {
  for (std::string_view op : {"+", "*", "min", "max", "&", "|", "^", "==", "!="})
    if (operation == op) return true;
  return false;
}

std::set<Var> looping(const StoreNest& nest) {
  std::set<Var> vars;
  for (const For& loop : nest.loops) vars.insert(loop.var);
  return vars;
}

/// A nest with its syntax tree.
struct Subject {
  explicit Subject(StoreNest n) : nest(std::move(n)), vars(looping(nest)), tree(nest.store, vars) {}
  Subject(const Subject&) = delete;
  std::vector<Var> order() const {
    std::vector<Var> out;
    for (const For& loop : nest.loops) out.push_back(loop.var);
    return out;
  }
  StoreNest nest;
  std::set<Var> vars;
  SyntaxTree tree;
};

std::vector<Match> sound_matches(const Subject& workload, const Subject& intrinsic) {
  if (workload.nest.store.combine != intrinsic.nest.store.combine) return {};
  std::vector<Match> matches = structural_matches(workload.tree, intrinsic.tree, intrinsic.order());
  const bool sum = workload.nest.store.combine == Combine::Add;
  std::erase_if(matches, [&](const Match& m) {
    return !workload.tree.holds(intrinsic.tree, m.operands, sum);
  });
  return matches;
}

}  // namespace

Result<StoreNest> nest_of(const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  std::vector<Id> ids = tree.blocks();
  std::erase_if(ids, [&](Id id) {
    const Store* s = single_store(tree.block(id));
    if (s == nullptr || s->combine != Combine::Set) return false;
    const auto producer = producer_of(tree, uses, s->buffer);
    return producer && producer->init == id;
  });
  if (ids.size() != 1)
    return fail(ErrorKind::Invalid, fmt::format("{} is not one computation", func.name),
                fmt::format("it has {} blocks beside inits", ids.size()));
  const Block& block = tree.block(ids[0]);
  const Store* store = single_store(block);
  if (store == nullptr)
    return fail(ErrorKind::Invalid, fmt::format("{} is not one computation", func.name),
                fmt::format("block {} is not a single store", block.name));
  StoreNest nest;
  nest.block = block.name;
  nest.guard = block.guard;
  for (Id id : tree.loops_around(ids[0])) nest.loops.push_back(tree.loop(id));
  VarMap bindings;
  for (const Iter& iter : block.iters) bindings[iter.var] = iter.binding;
  nest.store = *substitute(block.body, bindings).as<Store>();
  return nest;
}

SyntaxTree::SyntaxTree(const Store& store, const std::set<Var>& active) : active_(active) {
  const int root = add_node("=", -1);
  add_access(store.indices, root);
  add_value(store.value, root);
}

int SyntaxTree::add_node(std::string operation, int parent) {
  const int id = static_cast<int>(nodes_.size());
  nodes_.push_back({std::move(operation), parent, parent < 0 ? 0 : nodes_[parent].depth + 1, {}});
  if (parent >= 0) nodes_[parent].children.push_back(id);
  return id;
}

void SyntaxTree::add_leaf(const Var& var, int node, size_t access, bool plain) {
  if (active_.contains(var)) leaves_.push_back({var, access, node, plain});
}

void SyntaxTree::add_index(const Expr& index, int node, size_t access) {
  for (const auto& [term, coefficient] : arith::as_affine(index).terms) {
    const VarRef* v = term.as<VarRef>();
    if (v != nullptr) {
      add_leaf(v->var, node, access, true);
    } else {
      for (const Var& var : free_vars(term)) add_leaf(var, node, access, false);
    }
  }
}

void SyntaxTree::add_access(const std::vector<Expr>& indices, int parent) {
  const int node = add_node("[]", parent);
  const size_t access = accesses_++;
  nodes_[node].access = access;
  for (const Expr& index : indices) add_index(index, add_node("+", node), access);
}

void SyntaxTree::add_value(const Expr& e, int parent) {
  auto inner = [&](std::string operation, const std::vector<Expr>& args) {
    const int node = add_node(std::move(operation), parent);
    for (const Expr& arg : args) add_value(arg, node);
  };
  match(
      e, [&](const IntImm&) { add_node(tilewright::print(e), parent); },
      [&](const FloatImm&) { add_node(tilewright::print(e), parent); },
      // Outside of an access: never part of a match, and so the variable is not either.
      [&](const VarRef& x) { add_leaf(x.var, add_node("index", parent), accesses_, false); },
      [&](const Unary& x) { inner(x.op == UnaryOp::Neg ? "negate" : "not", {x.a}); },
      [&](const Binary& x) { inner(std::string(symbol(x.op)), {x.a, x.b}); },
      [&](const Select& x) { inner("select", {x.condition, x.on_true, x.on_false}); },
      [&](const Cast& x) { add_value(x.a, parent); },
      [&](const Load& x) { add_access(x.indices, parent); },
      [&](const MathCall& x) { inner(std::string(name(x.fn)), x.args); });
}

const std::string& SyntaxTree::meeting(const Leaf& a, const Leaf& b) const {
  int x = a.node, y = b.node;
  while (x != y) {
    int& deeper = nodes_[x].depth >= nodes_[y].depth ? x : y;
    deeper = nodes_[deeper].parent;
  }
  return nodes_[x].operation;
}

std::vector<int> SyntaxTree::factors(int node) const {
  if (nodes_[node].operation != "*") return {node};
  std::vector<int> out;
  for (int child : nodes_[node].children)
    for (int factor : factors(child)) out.push_back(factor);
  return out;
}

bool SyntaxTree::same_value(int node, const SyntaxTree& intrinsic, int other,
                            const std::vector<size_t>& operands) const {
  const Node &p = nodes_[node], &q = intrinsic.nodes_[other];
  if (p.operation != q.operation) return false;
  if (q.operation == "[]") return operands[q.access] == p.access || operands[q.access] == accesses_;
  if (p.children.size() != q.children.size()) return false;
  auto all = [&](bool swapped) {
    for (size_t i = 0; i < p.children.size(); ++i)
      if (!same_value(p.children[i], intrinsic, q.children[swapped ? 1 - i : i], operands))
        return false;
    return true;
  };
  return all(false) || (p.children.size() == 2 && commutes(p.operation) && all(true));
}

bool SyntaxTree::holds(const SyntaxTree& intrinsic, const std::vector<size_t>& operands,
                       bool with_factors) const {
  if (same_value(value_node(), intrinsic, intrinsic.value_node(), operands)) return true;
  std::vector<int> mine = factors(value_node());
  const std::vector<int> wanted = intrinsic.factors(intrinsic.value_node());
  if (mine.size() < wanted.size() || (mine.size() > wanted.size() && !with_factors)) return false;
  std::function<bool(size_t)> assign = [&](size_t i) {
    if (i == wanted.size()) return true;
    for (int& factor : mine) {
      if (factor < 0 || !same_value(factor, intrinsic, wanted[i], operands)) continue;
      const int taken = std::exchange(factor, -1);
      if (assign(i + 1)) return true;
      factor = taken;
    }
    return false;
  };
  return assign(0);
}

std::vector<Match> structural_matches(const SyntaxTree& workload, const SyntaxTree& intrinsic,
                                      const std::vector<Var>& intrinsic_loops) {
  std::vector<Match> matches;
  Matcher(workload, intrinsic, true, true).run([&](const auto& from, const auto& image) {
    Match m;
    m.operands.assign(intrinsic.accesses(), workload.accesses());
    m.operands[0] = 0;
    std::map<Var, Var> vars;
    for (size_t i = 0; i < from.size(); ++i) {
      vars.emplace(from[i]->var, image[i]->var);
      m.operands[from[i]->access] = image[i]->access;
    }
    for (const Var& var : intrinsic_loops)
      if (vars.contains(var)) m.indices.emplace_back(var, vars.at(var));
    matches.push_back(std::move(m));
  });
  return matches;
}

Result<std::vector<Match>> find_matches(const Func& workload, const Func& intrinsic) {
  const Subject p(TW_TRY(nest_of(workload))), q(TW_TRY(nest_of(intrinsic)));
  return sound_matches(p, q);
}

Result<MatchCounts> count_matches(const Func& workload, const Func& intrinsic) {
  const Subject p(TW_TRY(nest_of(workload))), q(TW_TRY(nest_of(intrinsic)));
  MatchCounts counts;
  auto in_value = [](const SyntaxTree& tree) {
    return static_cast<int>(std::count_if(tree.leaves().begin(), tree.leaves().end(),
                                          [](const Leaf& leaf) { return leaf.access > 0; }));
  };
  counts.workload_leaves = in_value(p.tree);
  counts.intrinsic_leaves = in_value(q.tree);
  std::set<std::set<const Leaf*>> subsets;
  Matcher(p.tree, q.tree, false, false).run([&](const auto&, const auto& image) {
    ++counts.consistent;
    subsets.insert(std::set<const Leaf*>(image.begin(), image.end()));
  });
  counts.subsets = static_cast<int64_t>(subsets.size());
  Matcher(p.tree, q.tree, true, false).run([&](const auto&, const auto&) { ++counts.literal; });
  std::set<std::set<Var>> loop_sets;
  for (const Match& m : sound_matches(p, q)) {
    ++counts.sound;
    std::set<Var> loops;
    for (const auto& [from, to] : m.indices) loops.insert(to);
    loop_sets.insert(loops);
  }
  counts.loop_sets = static_cast<int64_t>(loop_sets.size());
  return counts;
}

}  // namespace tilewright::schedule
