// The step Reorder: loops of a perfect nest in another order.
//
//   for i, j, k { S }  =>  for k, j, i { S }                                   (loops = [k, i])
//
// reorder_conflict (schedule/dependence.h) looks for a dependence that would be turned round.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/dependence.h"
#include "tilewright/schedule/loops.h"

namespace tilewright::schedule {

Result<Func> run(const Reorder& step, const Func& func) {
  const Tree tree(func);
  std::vector<Id> wanted;
  for (const Name& name : step.loops) {
    const Id id = TW_TRY(tree.find_loop(name));
    if (std::find(wanted.begin(), wanted.end(), id) != wanted.end())
      return fail(ErrorKind::Invalid, fmt::format("loop {} is listed twice", name));
    wanted.push_back(id);
  }
  if (wanted.empty()) return fail(ErrorKind::Invalid, "no loops are listed");
  const Id first = *std::min_element(wanted.begin(), wanted.end());
  const Id last = *std::max_element(wanted.begin(), wanted.end());
  std::vector<Id> before = perfect_nest(tree, first);
  for (Id id : wanted)
    if (std::find(before.begin(), before.end(), id) == before.end())
      return refuse(1, fmt::format("loop {} is not in one perfect nest with {}",
                                   tree.loop(id).var.name(), tree.loop(first).var.name()));
  before.resize(static_cast<size_t>(last - first + 1));
  std::vector<Id> after = before;
  size_t next = 0;
  for (Id& id : after)
    if (std::find(wanted.begin(), wanted.end(), id) != wanted.end()) id = wanted[next++];
  if (after == before) return func;
  for (Id id : before) {
    const For& loop = tree.loop(id);
    if (loop.kind != ForKind::Serial && loop.kind != ForKind::Unroll)
      return refuse(2, fmt::format("loop {} is {}", loop.var.name(), name(loop.kind)));
    for (Id other : before)
      if (uses(loop.extent, tree.loop(other).var))
        return refuse(3, fmt::format("the extent of {} depends on {}", loop.var.name(),
                                     tree.loop(other).var.name()));
  }
  if (auto conflict = reorder_conflict(tree, before, after)) return refuse(4, *conflict);
  Stmt body = tree.loop(last).body;
  for (size_t i = after.size(); i-- > 0;) {
    For loop = tree.loop(after[i]);
    loop.body = body;
    body = make(std::move(loop));
  }
  Edit edit(tree);
  edit.replace(first, body);
  return edit.func();
}

}  // namespace tilewright::schedule
