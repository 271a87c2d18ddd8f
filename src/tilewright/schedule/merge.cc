// Other ways to count the iterations of a block.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::schedule {
namespace {

/// Where the iteration `name` of `block` is. errors: Invalid.
Result<size_t> find_iter(const Block& block, const Name& name) {
  for (size_t i = 0; i < block.iters.size(); ++i)
    if (block.iters[i].var.name() == name) return i;
  return fail(ErrorKind::Invalid, fmt::format("block {} has no iteration {}", block.name, name));
}

Status check_name(const Block& block, const Name& name) {
  const bool taken = std::any_of(block.iters.begin(), block.iters.end(),
                                 [&](const Iter& iter) { return iter.var.name() == name; });
  if (!taken) return {};
  return fail(ErrorKind::Invalid,
              fmt::format("block {} has an iteration {} already", block.name, name));
}

/// `block` with `iters` and its body in terms of these.
Func recounted(const Tree& tree, Id id, std::vector<Iter> iters, const VarMap& values) {
  arith::Bounds bounds(tree.func());
  for (const Iter& iter : iters) bounds.bind(iter.var, iter.extent);
  const auto places = [&](std::vector<Expr> indices) {
    for (Expr& index : indices) index = arith::simplify(index, bounds);
    return indices;
  };
  Block out = tree.block(id);
  out.iters = std::move(iters);
  out.body = rewrite(
      substitute(out.body, values),
      [&](const Stmt& s) {
        const Store* store = s.as<Store>();
        if (store == nullptr) return s;
        return make(Store{store->buffer, places(store->indices), store->value, store->combine});
      },
      [&](const Expr& e) {
        return rewrite(e, [&](const Expr& x) {
          if (const Load* l = x.as<Load>()) return load(l->buffer, places(l->indices));
          return x.dtype() == DType::Bool ? arith::simplify(x, bounds) : x;
        });
      });
  Edit edit(tree);
  edit.replace(id, make(std::move(out)));
  return edit.func();
}

}  // namespace

Result<Func> run(const Merge& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Block& block = tree.block(id);
  if (step.iters.size() < 2)
    return refuse(1, fmt::format("{} iterations are named", step.iters.size()));
  std::vector<size_t> merged;
  std::string name;
  int64_t extent = 1;
  for (const Name& iter_name : step.iters) {
    const size_t i = TW_TRY(find_iter(block, iter_name));
    const Iter& iter = block.iters[i];
    if (std::find(merged.begin(), merged.end(), i) != merged.end())
      return refuse(1, fmt::format("iteration {} is named twice", iter_name));
    merged.push_back(i);
    const int64_t own = as_int(iter.extent).value_or(0);
    if (iter.kind == IterKind::Scan || iter.kind != block.iters[merged[0]].kind || own < 1 ||
        own > kLargestExtent / extent)
      return refuse(
          2, fmt::format("iteration {} is of another kind, or of no such extent", iter_name));
    extent *= own;
    name += (name.empty() ? "" : "*") + iter_name;
  }
  if (block.body.as<Call>()) return refuse(3, fmt::format("block {} is an intrinsic", block.name));
  TW_TRY_STATUS(check_name(block, name));
  const Var var(name);
  const arith::Bounds around = tree.bounds_at(id);
  Expr binding = int_imm(0);
  VarMap values;
  int64_t below = extent;
  for (const size_t i : merged) {
    const int64_t own = *as_int(block.iters[i].extent);
    binding = binding * own + block.iters[i].binding;
    below /= own;
    values[block.iters[i].var] = ref(var) / below % own;
  }
  std::vector<Iter> iters;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const bool gone = std::find(merged.begin(), merged.end(), i) != merged.end();
    if (i == merged[0])
      iters.push_back(
          {var, block.iters[i].kind, int_imm(extent), arith::simplify(binding, around)});
    else if (!gone)
      iters.push_back(block.iters[i]);
  }
  return recounted(tree, id, std::move(iters), values);
}

Result<Func> run(const Divide& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_block(step.block));
  const Block& block = tree.block(id);
  const size_t at = TW_TRY(find_iter(block, step.iter));
  const Iter& iter = block.iters[at];
  const int64_t extent = as_int(iter.extent).value_or(0);
  if (iter.kind == IterKind::Scan || extent < 1)
    return refuse(1, fmt::format("iteration {} is a scan, or of no constant extent", step.iter));
  if (step.factor < 1 || extent % step.factor != 0)
    return refuse(2, fmt::format("{} does not divide {}", step.factor, extent));
  if (block.body.as<Call>()) return refuse(3, fmt::format("block {} is an intrinsic", block.name));
  const Var outer(step.iter + ".o"), inner(step.iter + ".i");
  TW_TRY_STATUS(check_name(block, outer.name()));
  TW_TRY_STATUS(check_name(block, inner.name()));
  const arith::Bounds around = tree.bounds_at(id);
  std::vector<Iter> iters = block.iters;
  iters[at] = {outer, iter.kind, int_imm(extent / step.factor),
               arith::simplify(iter.binding / step.factor, around)};
  iters.insert(iters.begin() + static_cast<long>(at) + 1,
               {inner, iter.kind, int_imm(step.factor),
                arith::simplify(iter.binding % step.factor, around)});
  return recounted(tree, id, std::move(iters), {{iter.var, ref(outer) * step.factor + ref(inner)}});
}

}  // namespace tilewright::schedule
