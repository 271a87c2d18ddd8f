// The step Layout: another order of an allocated buffer's elements.
//
//   alloc B: f32[64, 8]  .. B[k, c] ..                (map = "[k, c] -> [k/16, c, k%16]")
//   =>
//   alloc B: f32[4, 8, 16]  .. B[k/16, c, k%16] ..
//
// The map's expressions are evaluated over the ranges of the old axes, which gives the new shape;
// schedule/meet.cc proves that no two elements get the same place.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"
#include "tilewright/schedule/dependence.h"

namespace tilewright::schedule {
namespace {

/// More elements than this in one buffer are a mistake.
constexpr int64_t kMostElements = int64_t{1} << 40;

/// `[k, c] -> [k/16, c, k%16]`: new indices in terms of one variable per old axis.
struct IndexMap {
  std::vector<Var> from;
  std::vector<Expr> to;
};

/// Pieces between commas outside brackets.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '(') ++depth;
    if (i < text.size() && text[i] == ')') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    out.push_back(text.substr(start, i - start));
    start = i + 1;
  }
  return out;
}

Result<IndexMap> parse_map(const std::string& text) {
  IndexMap map;
  Scanner in(text);
  TW_TRY_STATUS(in.expect_symbol("[", "before the axes"));
  while (!in.at_symbol("]")) {
    if (!map.from.empty()) TW_TRY_STATUS(in.expect_symbol(",", "between axes"));
    const std::string name = TW_TRY(in.expect_name("an axis"));
    for (const Var& v : map.from)
      if (v.name() == name) return in.error(fmt::format("axis {} is named twice", name));
    map.from.emplace_back(name);
  }
  TW_TRY_STATUS(in.expect_symbol("]", "after the axes"));
  TW_TRY_STATUS(in.expect_symbol("->", "between old and new axes"));
  if (!in.at_symbol("[")) return in.error("the new axes stand in brackets");
  std::string_view rest = std::string_view(text).substr(in.offset());
  const size_t close = rest.rfind(']');
  if (close == std::string_view::npos || rest.find_first_not_of(" \t\n", close + 1) != rest.npos)
    return in.error("the list of new axes does not end with a bracket");
  rest = rest.substr(1, close - 1);
  for (std::string_view piece : pieces(rest)) {
    Expr e = TW_TRY(parse_expr(piece, map.from));
    if (e.dtype() != DType::I64) return in.error("a new axis is not an integer");
    map.to.push_back(std::move(e));
  }
  return map;
}

/// Sizes of the new axes. errors: NotApplicable (3) if an index can be negative or two elements
/// would share a place.
Result<std::vector<Expr>> new_shape(const IndexMap& map, const Buffer& buffer) {
  arith::Bounds bounds;
  for (size_t d = 0; d < map.from.size(); ++d) {
    if (!as_int(buffer.shape()[d]))
      return refuse(3, fmt::format("axis {} of {} has no constant size", d, buffer.name()));
    bounds.bind(map.from[d], buffer.shape()[d]);
  }
  std::vector<Expr> shape;
  int64_t elements = 1;
  for (const Expr& e : map.to) {
    const auto range = arith::const_range(e, bounds);
    if (!range || range->first < 0 || range->second < 0 || range->second >= kMostElements)
      return refuse(3,
                    fmt::format("{} has no range that starts at 0 or more", tilewright::print(e)));
    shape.push_back(int_imm(range->second + 1));
    if (elements > kMostElements / (range->second + 1))
      return refuse(3, fmt::format("{} would have too many elements", buffer.name()));
    elements *= range->second + 1;
  }
  const Meeting m = meet(map.to, map.to, {map.from.begin(), map.from.end()}, bounds);
  for (const Var& v : map.from)
    if (!m.equal.contains(v))
      return refuse(3, fmt::format("elements that differ in {} might share a place", v.name()));
  return shape;
}

std::vector<Expr> mapped(const std::vector<Expr>& indices, const IndexMap& map,
                         const arith::Bounds& bounds) {
  VarMap values;
  for (size_t d = 0; d < indices.size(); ++d) values[map.from[d]] = indices[d];
  std::vector<Expr> out;
  for (const Expr& e : map.to) out.push_back(arith::simplify(substitute(e, values), bounds));
  return out;
}

Stmt relaid(const Tree& tree, Id root, const Buffer& buffer, const Buffer& changed,
            const IndexMap& map) {
  arith::Bounds iters(tree.func());
  walk(tree.stmt(root), [&](const Stmt& s) {
    if (const Block* b = s.as<Block>())
      for (const Iter& iter : b->iters) iters.bind(iter.var, iter.extent);
    if (const For* f = s.as<For>()) iters.bind(f->var, f->extent);
  });
  return rewrite(
      tree.stmt(root),
      [&](const Stmt& s) {
        if (const Store* store = s.as<Store>(); store && store->buffer == buffer)
          return make(
              Store{changed, mapped(store->indices, map, iters), store->value, store->combine});
        if (const Alloc* a = s.as<Alloc>(); a && a->buffer == buffer)
          return make(Alloc{changed, a->marks});
        return s;
      },
      [&](const Expr& e) {
        return rewrite(e, [&](const Expr& x) {
          const Load* l = x.as<Load>();
          return l && l->buffer == buffer ? load(changed, mapped(l->indices, map, iters)) : x;
        });
      });
}

}  // namespace

Result<Func> run(const Layout& step, const Func& func) {
  const Tree tree(func);
  const Uses uses(tree);
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  const IndexMap map = TW_TRY(parse_map(step.map));
  const Id alloc = tree.alloc_of(buffer);
  if (alloc == kNone) return refuse(1, fmt::format("{} is a parameter", step.buffer));
  if (map.from.size() != buffer.rank())
    return fail(
        ErrorKind::Invalid, "requirement 2 does not hold",
        fmt::format("the map has {} axes, {} has {}", map.from.size(), step.buffer, buffer.rank()));
  for (Id user : uses.users(buffer))
    if (tree.block(user).body.as<Call>())
      return refuse(
          4, fmt::format("block {} hands {} to an intrinsic", tree.block(user).name, step.buffer));
  std::vector<Expr> shape = TW_TRY(new_shape(map, buffer));
  const Buffer changed(buffer.name(), buffer.dtype(), std::move(shape), buffer.scope());
  const Id root = tree.parent(alloc) == kNone ? alloc : tree.parent(alloc);
  Edit edit(tree);
  edit.replace(root, relaid(tree, root, buffer, changed, map));
  return edit.func();
}

}  // namespace tilewright::schedule
