#include "tilewright/rules/common/draft.h"

#include <algorithm>

#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

bool find_nest(const Stmt& s, const std::string& block, LoopNest& nest) {
  if (const Block* b = s.as<Block>()) return b->name == block;
  const For* loop = s.as<For>();
  if (loop != nullptr) {
    nest.names.push_back(loop->var.name());
    nest.extents.push_back(as_int(loop->extent).value_or(0));
  }
  for (const Stmt& child : children(s))
    if (find_nest(child, block, nest)) return true;
  if (loop != nullptr) nest.names.pop_back(), nest.extents.pop_back();
  return false;
}

}  // namespace

bool is_piece(const std::string& name, const std::string& whole) {
  return name == whole || name.starts_with(whole + "@");
}

std::string init_of(const std::string& name) {
  std::string init = name;
  return init.insert(std::min(name.find('@'), name.size()), ".init");
}

bool Draft::attempt(schedule::Step step) {
  Result<Func> next = schedule::apply(step, func_);
  if (!next) return false;
  func_ = *std::move(next);
  trace_.push_back(std::move(step));
  return true;
}

void Draft::revert(const Mark& to) {
  func_ = to.func;
  trace_.resize(to.steps);
}

LoopNest Draft::nest_of(const std::string& block) const {
  LoopNest nest;
  find_nest(func_.body, block, nest);
  return nest;
}

LoopNest Draft::nest_inside(const std::string& block, const std::string& outer) const {
  LoopNest nest = nest_of(block);
  const auto it = std::find(nest.names.begin(), nest.names.end(), outer);
  if (it == nest.names.end()) return nest;
  const auto skip = it - nest.names.begin() + 1;
  nest.names.erase(nest.names.begin(), nest.names.begin() + skip);
  nest.extents.erase(nest.extents.begin(), nest.extents.begin() + skip);
  return nest;
}

bool Draft::move_outward(const std::string& block, const std::string& loop) {
  const LoopNest nest = nest_of(block);
  const auto at = std::find(nest.names.begin(), nest.names.end(), loop);
  if (at - nest.names.begin() < 2) return true;
  schedule::Names order = {loop};
  order.insert(order.end(), nest.names.begin() + 1, at);
  return attempt(schedule::Reorder{order});
}

std::vector<std::string> Draft::pieces_of(const std::string& block) const {
  std::vector<std::string> pieces;
  for (const BlockFacts& facts : blocks())
    if (is_piece(facts.name, block)) pieces.push_back(facts.name);
  return pieces;
}

std::vector<std::string> Draft::parts_of(const std::string& loop) const {
  std::vector<std::string> parts;
  walk(func_.body, [&](const Stmt& s) {
    const For* f = s.as<For>();
    if (f != nullptr && is_piece(f->var.name(), loop)) parts.push_back(f->var.name());
  });
  return parts;
}

}  // namespace tilewright::rules
