#include "tilewright/schedule/tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "tilewright/base/check.h"

namespace tilewright::schedule {
namespace {

constexpr size_t kNamesShown = 12;

template <class F>
std::string name_list(const std::vector<Id>& ids, F&& name_of) {
  std::vector<std::string> names;
  for (Id id : ids) {
    if (names.size() == kNamesShown) {
      names.push_back("...");
      break;
    }
    names.push_back(name_of(id));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

Tree::Tree(const Func& func) : func_(func) {
  nodes_.reserve(64);
  add(func.body, kNone);
}

void Tree::add(const Stmt& s, Id parent) {
  const Id id = size();
  nodes_.push_back({&s, parent, id + 1});
  match(
      s,
      [&](const For& x) {
        loops_.push_back(id);
        add(x.body, id);
      },
      [&](const Block&) { blocks_.push_back(id); }, [&](const Alloc&) { allocs_.push_back(id); },
      [&](const If& x) {
        add(x.then_body, id);
        if (x.else_body) add(x.else_body, id);
      },
      [&](const Seq& x) {
        for (const Stmt& child : x.stmts) add(child, id);
      },
      [](const auto&) {});
  nodes_[id].end = size();
}

std::vector<Id> Tree::blocks_in(Id id) const {
  const auto first = std::lower_bound(blocks_.begin(), blocks_.end(), id);
  const auto last = std::lower_bound(first, blocks_.end(), end(id));
  return {first, last};
}

std::vector<Id> Tree::loops_around(Id id) const {
  std::vector<Id> loops;
  for (Id p = parent(id); p != kNone; p = parent(p))
    if (as<For>(p)) loops.push_back(p);
  std::reverse(loops.begin(), loops.end());
  return loops;
}

std::vector<Id> Tree::children(Id id) const {
  std::vector<Id> ids;
  for (Id child = id + 1; child < end(id); child = end(child)) ids.push_back(child);
  return ids;
}

std::vector<Id> Tree::body_of(Id loop) const {
  const Id body = loop + 1;
  if (as<Seq>(body)) return children(body);
  return {body};
}

Id Tree::common(const std::vector<Id>& ids) const {
  Id node = ids.front();
  for (Id id : ids)
    while (!inside(id, node)) node = parent(node);
  return node;
}

Id Tree::child_towards(Id ancestor, Id id) const {
  TW_CHECK(id != ancestor && inside(id, ancestor));
  while (parent(id) != ancestor) id = parent(id);
  return id;
}

Id Tree::alloc_of(const Buffer& buffer) const {
  for (Id id : allocs_)
    if (as<Alloc>(id)->buffer == buffer) return id;
  return kNone;
}

const Param* Tree::param_of(const Buffer& buffer) const {
  for (const Param& p : func_.params)
    if (p.buffer == buffer) return &p;
  return nullptr;
}

Result<Id> Tree::find_loop(std::string_view name) const {
  for (Id id : loops_)
    if (loop(id).var.name() == name) return id;
  return fail(ErrorKind::Invalid, fmt::format("no loop is named {}", name),
              "loops: " + name_list(loops_, [&](Id id) { return loop(id).var.name(); }));
}

Result<Id> Tree::find_block(std::string_view name) const {
  for (Id id : blocks_)
    if (block(id).name == name) return id;
  return fail(ErrorKind::Invalid, fmt::format("no block is named {}", name),
              "blocks: " + name_list(blocks_, [&](Id id) { return block(id).name; }));
}

Result<Buffer> Tree::find_buffer(std::string_view name) const {
  for (Id id : allocs_)
    if (as<Alloc>(id)->buffer.name() == name) return as<Alloc>(id)->buffer;
  for (const Param& p : func_.params)
    if (p.buffer.name() == name) return p.buffer;
  return fail(
      ErrorKind::Invalid, fmt::format("no buffer is named {}", name),
      "allocated: " + name_list(allocs_, [&](Id id) { return as<Alloc>(id)->buffer.name(); }));
}

arith::Bounds Tree::bounds_at(Id id) const {
  arith::Bounds bounds(func_);
  for (Id l : loops_around(id)) bounds.bind(loop(l).var, loop(l).extent);
  return bounds;
}

void Edit::replace(Id id, Stmt stmt) {
  Change& c = changes_[id];
  c.replaced = true;
  c.stmt = std::move(stmt);
}

void Edit::before(Id id, std::vector<Stmt> stmts) {
  std::vector<Stmt>& list = changes_[id].before;
  list.insert(list.end(), stmts.begin(), stmts.end());
}

void Edit::after(Id id, std::vector<Stmt> stmts) {
  std::vector<Stmt>& list = changes_[id].after;
  list.insert(list.end(), stmts.begin(), stmts.end());
}

bool Edit::touched(Id id) const {
  const auto it = changes_.lower_bound(id);
  return it != changes_.end() && it->first < tree_.end(id);
}

std::vector<Stmt> Edit::rebuild_list(Id id) const {
  if (!touched(id)) return {tree_.stmt(id)};
  const auto it = changes_.find(id);
  if (it == changes_.end()) return {rebuild(id)};
  const Change& c = it->second;
  std::vector<Stmt> list = c.before;
  list.push_back(c.replaced ? c.stmt : rebuild(id));
  list.insert(list.end(), c.after.begin(), c.after.end());
  return list;
}

Stmt Edit::rebuild_branch(Id id) const {
  std::vector<Stmt> list;
  bool works = false;  // something else than allocations is left
  for (Stmt& s : rebuild_list(id)) {
    if (!s) continue;
    works |= s.as<Alloc>() == nullptr;
    list.push_back(std::move(s));
  }
  return works ? seq(std::move(list)) : Stmt();
}

Stmt Edit::rebuild(Id id) const {
  if (const If* x = tree_.as<If>(id)) {
    const Id then_id = id + 1;
    const Stmt yes = rebuild_branch(then_id);
    const Stmt no = x->else_body ? rebuild_branch(tree_.end(then_id)) : Stmt();
    if (!yes && !no) return Stmt();
    return yes ? make(If{x->condition, yes, no}) : make(If{logical_not(x->condition), no, Stmt()});
  }
  std::vector<Stmt> list;
  bool works = false;
  for (Id child : tree_.children(id))
    for (Stmt& s : rebuild_list(child)) {
      if (!s) continue;
      works |= s.as<Alloc>() == nullptr;
      list.push_back(std::move(s));
    }
  if (!tree_.children(id).empty() && !works) return Stmt();
  return match(
      tree_.stmt(id),
      [&](const For& x) {
        return make(For{x.var, x.extent, x.kind, x.axis, x.marks, seq(std::move(list))});
      },
      [&](const Seq&) { return seq(std::move(list)); },
      [&](const auto&) { return tree_.stmt(id); });
}

Stmt Edit::body() const {
  Stmt s = seq(rebuild_list(0));
  return s ? s : seq({});
}

Func Edit::func() const {
  Func out = tree_.func();
  out.body = body();
  return out;
}

NamePool::NamePool(const Tree& tree, const std::set<Id>& gone) {
  for (Id id : tree.loops()) {
    const std::vector<Id> blocks = tree.blocks_in(id);
    if (!gone.empty() &&
        std::all_of(blocks.begin(), blocks.end(), [&](Id b) { return gone.contains(b); }))
      continue;
    loops_.insert(tree.loop(id).var.name());
  }
  for (Id id : tree.blocks())
    if (!gone.contains(id)) blocks_.insert(tree.block(id).name);
  for (Id id = 0; id < tree.size(); ++id)
    if (const Alloc* a = tree.as<Alloc>(id)) buffers_.insert(a->buffer.name());
  for (const Param& p : tree.func().params) buffers_.insert(p.buffer.name());
  for (const Scalar& s : tree.func().scalars) loops_.insert(s.var.name());
}

std::string NamePool::fresh(std::unordered_set<std::string>& used, const std::string& name) {
  if (used.insert(name).second) return name;
  for (int n = 1;; ++n) {
    std::string candidate = fmt::format("{}.{}", name, n);
    if (used.insert(candidate).second) return candidate;
  }
}

tl::unexpected<Error> refuse(int requirement, std::string why) {
  return fail(ErrorKind::NotApplicable, fmt::format("requirement {} does not hold", requirement),
              std::move(why));
}

Expr loop_value(const Var& var, const Expr& extent) {
  return is_const_int(extent, 1) ? int_imm(0) : ref(var);
}

std::vector<Expr> conjuncts(const Expr& guard) {
  if (!guard) return {};
  const auto* both = guard.as<Binary>();
  if (both == nullptr || both->op != BinaryOp::And) {
    if (guard.dtype() == DType::Bool && is_const_int(guard, 1)) return {};
    return {guard};
  }
  std::vector<Expr> terms = conjuncts(both->a);
  for (Expr& e : conjuncts(both->b)) terms.push_back(std::move(e));
  return terms;
}

Expr conjunction(const std::vector<Expr>& terms) {
  Expr all;
  for (const Expr& e : terms) {
    if (is_const_int(e, 1)) continue;
    all = all ? logical_and(all, e) : e;
  }
  return all;
}

bool valid_name(std::string_view name) {
  if (name.empty()) return false;
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  if (!letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || std::isdigit(static_cast<unsigned char>(c)) || c == '.' || c == '@';
  });
}

}  // namespace tilewright::schedule
