// The step Cut: a loop becomes consecutive loops of given lengths, each with a copy of the body.
//
//   for i in 55 { S }  =>  for i@0 in 48 { S@0 }  for i@1 in 7 { S@1 }       (parts = [48, 0])
//
// Names inside get the suffix of their part. Inner loops shrink to the iterations that the guards
// of all their blocks leave: under `v < c` to c, and the guard goes; under `6 * v + w < 64` to 11.
#include <fmt/format.h>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {
namespace {

/// The parts as expressions, the rest filled in. errors: Invalid if they do not sum to the extent.
Result<std::vector<Expr>> part_sizes(const Cut& step, const Expr& extent,
                                     const arith::Bounds& bounds) {
  if (step.parts.size() < 2)
    return fail(ErrorKind::Invalid, "requirement 2 does not hold",
                fmt::format("{} parts are given, at least 2 are needed", step.parts.size()));
  std::vector<Expr> sizes;
  int64_t total = 0;
  for (size_t i = 0; i < step.parts.size(); ++i) {
    const int64_t n = step.parts[i];
    const bool rest = n == 0 && i + 1 == step.parts.size();
    if ((n <= 0 && !rest) || n > kLargestExtent)
      return fail(ErrorKind::Invalid, "requirement 2 does not hold",
                  fmt::format("part {} is {}", i, n));
    total += n;
    sizes.push_back(int_imm(n));
  }
  if (step.parts.back() == 0) {
    sizes.back() = arith::simplify(extent - total, bounds);
    const int64_t least = as_int(sizes.back()) ? 1 : 0;
    if (!arith::prove(sizes.back() >= least, bounds))
      return fail(
          ErrorKind::Invalid, "requirement 2 does not hold",
          fmt::format("the parts before the rest take {} iterations and leave too few", total));
  } else if (!arith::prove(eq(extent, int_imm(total)), bounds)) {
    return fail(ErrorKind::Invalid, "requirement 2 does not hold",
                fmt::format("the parts sum to {}, the loop has {} iterations", total,
                            as_int(extent) ? fmt::format("{}", *as_int(extent)) : "n"));
  }
  return sizes;
}

/// errors: Invalid if a name with a part's suffix is in use already.
Status names_free(const Tree& tree, Id id, size_t parts, const NamePool& names) {
  for (size_t i = 0; i < parts; ++i)
    for (Id n = id; n < tree.end(id); ++n) {
      auto taken = [&](bool yes, const std::string& name) -> Status {
        if (!yes) return {};
        return fail(ErrorKind::Invalid, "requirement 3 does not hold",
                    fmt::format("the name {}@{} is in use", name, i));
      };
      auto with = [&](const std::string& name) { return fmt::format("{}@{}", name, i); };
      if (const For* f = tree.as<For>(n))
        TW_TRY_STATUS(taken(names.has_loop(with(f->var.name())), f->var.name()));
      if (const Block* b = tree.as<Block>(n))
        TW_TRY_STATUS(taken(names.has_block(with(b->name)), b->name));
      if (const Alloc* a = tree.as<Alloc>(n))
        TW_TRY_STATUS(taken(names.has_buffer(with(a->buffer.name())), a->buffer.name()));
    }
  return {};
}

}  // namespace

Result<Func> run(const Cut& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  const For& loop = tree.loop(id);
  if (loop.kind != ForKind::Serial)
    return refuse(1, fmt::format("loop {} is {}", step.loop, name(loop.kind)));
  const arith::Bounds bounds = tree.bounds_at(id);
  const std::vector<Expr> sizes = TW_TRY(part_sizes(step, loop.extent, bounds));
  NamePool names(tree);
  TW_TRY_STATUS(names_free(tree, id, sizes.size(), names));
  std::vector<Stmt> parts;
  Expr offset = int_imm(0);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const std::string suffix = fmt::format("@{}", i);
    const Stmt copy = clone(loop.body, [&](const std::string& name) { return name + suffix; });
    const Var var(names.loop(step.loop + suffix));
    arith::Bounds inner = bounds;
    inner.bind(var, sizes[i]);
    const Expr value = arith::simplify(offset + loop_value(var, sizes[i]), inner);
    const Stmt body = replace_loop_var(copy, loop.var, value, Expr(), inner);
    parts.push_back(
        make(For{var, sizes[i], ForKind::Serial, "", loop.marks, shrink_guarded(body, inner)}));
    offset = arith::simplify(offset + sizes[i], bounds);
  }
  Edit edit(tree);
  edit.replace(id, seq(std::move(parts)));
  return edit.func();
}

}  // namespace tilewright::schedule
