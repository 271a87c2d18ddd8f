#include "tilewright/schedule/tensorize_intrinsic.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/arith/region.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/schedule/access.h"

namespace tilewright::schedule {
namespace {

/// Range of each axis of `buffer` over all accesses of the nest is the axis, so that a region has
/// no element which the nest does not reach for.
Status check_reach(const IntrinsicMeaning& in, const Buffer& buffer) {
  const size_t rank = buffer.rank();
  std::vector<std::pair<int64_t, int64_t>> reach(rank, {1, -1});
  bool known = true, used = false;
  auto add = [&](const std::vector<Expr>& indices) {
    for (size_t d = 0; d < rank; ++d) {
      const auto range = arith::const_range(indices[d], in.bounds);
      if (!range) {
        known = false;
      } else if (!used) {
        reach[d] = *range;
      } else {
        reach[d] = {std::min(reach[d].first, range->first),
                    std::max(reach[d].second, range->second)};
      }
    }
    used = true;
  };
  if (in.nest.store.buffer == buffer) add(in.nest.store.indices);
  walk(in.nest.store.value, [&](const Expr& e) {
    if (const Load* l = e.as<Load>(); l && l->buffer == buffer) add(l->indices);
  });
  if (!used)
    return refuse(3, fmt::format("the intrinsic {} does not use {}", in.func.name, buffer.name()));
  for (size_t d = 0; d < rank; ++d)
    if (!known || reach[d].first != 0 || !is_const_int(buffer.shape()[d], reach[d].second + 1))
      return refuse(3, fmt::format("the intrinsic {} does not use all of axis {} of {}",
                                   in.func.name, d, buffer.name()));
  return {};
}

/// An intrinsic that reads its result elsewhere depends on the order of its loops.
Status check_own_reads(const IntrinsicMeaning& in) {
  const Store& store = in.nest.store;
  bool elsewhere = false;
  walk(store.value, [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l == nullptr || l->buffer != store.buffer) return;
    for (size_t d = 0; d < l->indices.size(); ++d)
      elsewhere |= !arith::prove(eq(l->indices[d], store.indices[d]), in.bounds);
  });
  if (!elsewhere) return {};
  return refuse(3, fmt::format("the intrinsic {} reads {} elsewhere than it writes", in.func.name,
                               store.buffer.name()));
}

}  // namespace

bool is_plain(const For& loop) {
  return loop.kind == ForKind::Serial || loop.kind == ForKind::Unroll;
}

void drop_unit_loops(StoreNest& nest) {
  VarMap zero;
  for (const For& loop : nest.loops)
    if (is_const_int(loop.extent, 1)) zero[loop.var] = int_imm(0);
  std::erase_if(nest.loops, [&](const For& loop) { return zero.contains(loop.var); });
  nest.store = *substitute(make(nest.store), zero).as<Store>();
}

Result<IntrinsicMeaning> read_intrinsic(const std::string& text, const Func& caller) {
  Result<Func> func = parse_func(text);
  if (!func) return tl::unexpected<Error>(std::move(func).error().at("the intrinsic"));
  TW_TRY_STATUS(verify(*func, Stage::Scheduled));
  IntrinsicMeaning in;
  in.func = *std::move(func);
  const Func& f = in.func;
  const Tree tree(f);
  auto bad = [&](const std::string& why) {
    return refuse(3, fmt::format("the intrinsic {} {}", f.name, why));
  };
  if (!f.scalars.empty()) return bad("has scalar arguments");
  if (tree.blocks().size() != 1) return bad(fmt::format("has {} blocks", tree.blocks().size()));
  const Id id = tree.blocks()[0];
  const std::vector<Id> loops = tree.loops_around(id);
  if (tree.size() != static_cast<int>(loops.size()) + 1) return bad("is not a single nest");
  if (single_store(tree.block(id)) == nullptr) return bad("is not a single store");
  if (tree.block(id).guard) return bad("has a guard");
  in.nest = TW_TRY(nest_of(f));
  for (const For& loop : in.nest.loops)
    if (!is_plain(loop) || !as_int(loop.extent))
      return bad(
          fmt::format("has a loop {} that is not serial with a constant extent", loop.var.name()));
  drop_unit_loops(in.nest);
  for (const For& loop : in.nest.loops) in.bounds.bind(loop.var, loop.extent);
  for (const Param& p : f.params) {
    if (p.values) return bad(fmt::format("has a table {}", p.buffer.name()));
    TW_TRY_STATUS(check_reach(in, p.buffer));
    if (p.buffer != in.nest.store.buffer) continue;
    if (p.mode == ParamMode::Out && in.nest.store.combine != Combine::Set)
      return bad(fmt::format("updates {}, which must be inout", p.buffer.name()));
    std::vector<Var> vars;
    for (const For& loop : in.nest.loops) vars.push_back(loop.var);
    if (!arith::touched(in.nest.store.indices, p.buffer.shape(), vars, in.bounds).exact)
      return bad(fmt::format("leaves out elements of {}", p.buffer.name()));
  }
  TW_TRY_STATUS(check_own_reads(in));
  // One function of a name per program, and one object for equal ones.
  if (f.name == caller.name) return bad("is named like the program");
  std::shared_ptr<const Func> known;
  walk(caller.body, [&](const Stmt& s) {
    const Call* call = s.as<Call>();
    if (call != nullptr && call->callee->name == f.name) known = call->callee;
  });
  if (known && !equal(*known, f)) return bad("is not the function of that name called already");
  in.callee = known ? known : std::make_shared<const Func>(f);
  return in;
}

}  // namespace tilewright::schedule
