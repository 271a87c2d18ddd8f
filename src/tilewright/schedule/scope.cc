// The step SetScope: alloc B: f32[n]  =>  alloc B: f32[n] local
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::schedule {
namespace {

bool known_scope(const std::string& scope) {
  for (std::string_view s : {"global", "shared", "warp", "local"})
    if (scope == s) return true;
  if (scope.starts_with("fpga.")) return is_fpga_memory(fpga_memory(scope));
  const size_t dot = scope.find('.');
  return dot != std::string::npos && valid_name(scope) && dot > 0 && dot + 1 < scope.size();
}

}  // namespace

Result<Func> run(const SetScope& step, const Func& func) {
  const Tree tree(func);
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  if (!known_scope(step.scope))
    return fail(
        ErrorKind::Invalid, "requirement 2 does not hold",
        fmt::format("{} is not global, shared, warp, local or <target>.<memory>", step.scope));
  const Id alloc = tree.alloc_of(buffer);
  if (alloc == kNone) return refuse(1, fmt::format("{} is a parameter", step.buffer));
  const Id home = tree.parent(alloc);
  if (step.scope == "local" || step.scope == "warp") {
    const Uses uses(tree);
    for (Id user : uses.users(buffer))
      for (Id l : tree.loops_around(user))
        if (home != kNone && l != home && tree.inside(l, home) &&
            tree.loop(l).kind == ForKind::Parallel)
          return refuse(3,
                        fmt::format("block {} uses {} inside the parallel loop {}, the buffer "
                                    "is allocated outside",
                                    tree.block(user).name, step.buffer, tree.loop(l).var.name()));
  }
  const Buffer changed(buffer.name(), buffer.dtype(), buffer.shape(), step.scope);
  Edit edit(tree);
  const Id root = home == kNone ? alloc : home;
  edit.replace(root, replace_buffers(tree.stmt(root), {{buffer, changed}}));
  return edit.func();
}

}  // namespace tilewright::schedule
