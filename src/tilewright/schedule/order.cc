// The step Order: sibling statements in another order, if none of those that change places touch
// the same element while one of them writes it.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/dependence.h"

namespace tilewright::schedule {

Result<Func> run(const Order& step, const Func& func) {
  const Tree tree(func);
  std::vector<Id> blocks;
  for (const Name& name : step.blocks) blocks.push_back(TW_TRY(tree.find_block(name)));
  if (blocks.size() < 2)
    return fail(ErrorKind::Invalid, "requirement 1 does not hold", "fewer than two blocks listed");
  const Id home = tree.common(blocks);
  if (tree.as<Seq>(home) == nullptr)
    return refuse(1, "the blocks are not in different statements of one sequence");
  std::vector<Id> wanted;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Id child = tree.child_towards(home, blocks[i]);
    if (std::find(wanted.begin(), wanted.end(), child) != wanted.end())
      return refuse(
          1, fmt::format("block {} shares its statement with another one listed", step.blocks[i]));
    wanted.push_back(child);
  }
  const std::vector<Id> before = tree.children(home);
  std::vector<Id> after = before;
  size_t next = 0;
  for (Id& child : after)
    if (std::find(wanted.begin(), wanted.end(), child) != wanted.end()) child = wanted[next++];
  for (size_t i = 0; i < after.size(); ++i)
    for (size_t j = i + 1; j < after.size(); ++j) {
      if (after[i] < after[j] || tree.as<Alloc>(after[i]) || tree.as<Alloc>(after[j])) continue;
      if (may_conflict(tree, after[j], after[i]))
        return refuse(2, fmt::format("block {} and block {} use the same elements",
                                     tree.block(tree.blocks_in(after[j]).front()).name,
                                     tree.block(tree.blocks_in(after[i]).front()).name));
    }
  // Allocations come first so that every buffer is alive wherever its users went.
  std::vector<Stmt> stmts;
  for (Id child : before)
    if (tree.as<Alloc>(child)) stmts.push_back(tree.stmt(child));
  for (Id child : after)
    if (!tree.as<Alloc>(child)) stmts.push_back(tree.stmt(child));
  if (after == before) return func;
  Edit edit(tree);
  edit.replace(home, make(Seq{std::move(stmts)}));
  return edit.func();
}

}  // namespace tilewright::schedule
