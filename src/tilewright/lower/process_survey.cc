// A region's leaves with what they read and write, and slices of it.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/process_graph.h"

namespace tilewright::lower {
namespace {

void add_once(std::vector<Buffer>& all, const Buffer& buffer) {
  if (std::find(all.begin(), all.end(), buffer) == all.end()) all.push_back(buffer);
}

void add_loads(const Expr& e, std::vector<Buffer>& reads) {
  walk(e, [&](const Expr& x) {
    if (const auto* l = x.as<Load>()) add_once(reads, l->buffer);
  });
}

/// Walks a region; `path_` and `conditions_` are those of the current place.
class Surveyor {
 public:
  void stmt(const Stmt& s) {
    if (!s) return;
    if (const auto* loop = s.as<For>()) return inside(s, 0, loop->body);
    if (const auto* list = s.as<Seq>()) {
      for (size_t i = 0; i < list->stmts.size(); ++i)
        inside(s, static_cast<int>(i), list->stmts[i]);
    } else if (const auto* branch = s.as<If>()) {
      conditions_.push_back(branch->condition);
      inside(s, 0, branch->then_body);
      inside(s, 1, branch->else_body);
      conditions_.pop_back();
    } else if (const auto* alloc = s.as<Alloc>()) {
      all_.homes.push_back({alloc, path_});
    } else {
      leaf(s);
    }
  }
  Survey take() { return std::move(all_); }

 private:
  void inside(const Stmt& s, int child, const Stmt& body) {
    const auto* loop = s.as<For>();
    if (loop != nullptr) ports_.push_back(int_mark(loop->marks, MarkKind::Port).value_or(-1));
    path_.push_back({s.get(), child});
    stmt(body);
    path_.pop_back();
    if (loop != nullptr) ports_.pop_back();
  }

  void leaf(const Stmt& s) {
    Leaf leaf{s.get(), "", path_, {}, {}, false, -1};
    for (const int64_t port : ports_)
      if (port >= 0) leaf.port = port;
    for (const Expr& condition : conditions_) add_loads(condition, leaf.reads);
    if (const auto* block = s.as<Block>()) {
      leaf.label = "block " + block->name;
      leaf.port = int_mark(block->marks, MarkKind::Port).value_or(leaf.port);
    }
    walk(s, [&](const Stmt& x) { use(x, leaf); }, [&](const Expr& e) { add_loads(e, leaf.reads); });
    all_.leaves.push_back(std::move(leaf));
  }

  static void use(const Stmt& s, Leaf& leaf) {
    if (const auto* store = s.as<Store>()) {
      add_once(leaf.writes, store->buffer);
      leaf.combines |= store->combine != Combine::Set;
      if (leaf.label.empty()) leaf.label = "the store to " + store->buffer.name();
    }
    const auto* call = s.as<Call>();
    if (call == nullptr) return;
    if (leaf.label.empty()) leaf.label = "the call of " + call->callee->name;
    for (size_t i = 0; i < call->callee->params.size(); ++i) {
      const ParamMode mode = call->callee->params[i].mode;
      const auto& buffer = std::get<Region>(call->args.at(call->callee->scalars.size() + i)).buffer;
      if (mode != ParamMode::Out) add_once(leaf.reads, buffer);
      if (mode == ParamMode::Out || mode == ParamMode::InOut) add_once(leaf.writes, buffer);
    }
  }

  Survey all_;
  Path path_;
  std::vector<Expr> conditions_;
  std::vector<int64_t> ports_;
};

class Slicer {
 public:
  Slicer(const std::vector<bool>& mine, const std::set<Buffer>& kept) : mine_(mine), kept_(kept) {}

  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const auto* loop = s.as<For>()) {
      For out = *loop;
      out.body = stmt(loop->body);
      if (!out.body || out.body.get() == loop->body.get()) return out.body ? s : Stmt();
      return make(std::move(out));
    }
    if (const auto* list = s.as<Seq>()) {
      std::vector<Stmt> rest;
      for (const Stmt& child : list->stmts)
        if (Stmt part = stmt(child)) rest.push_back(std::move(part));
      if (rest.size() == list->stmts.size()) return s_or(s, list->stmts, rest);
      return rest.empty() ? Stmt() : seq(std::move(rest));
    }
    if (const auto* branch = s.as<If>()) {
      If out{branch->condition, stmt(branch->then_body), stmt(branch->else_body)};
      if (!out.then_body && !out.else_body) return Stmt();
      if (!out.then_body) out.then_body = seq({});
      return make(std::move(out));
    }
    if (const auto* alloc = s.as<Alloc>()) return kept_.contains(alloc->buffer) ? s : Stmt();
    return mine_[next_++] ? s : Stmt();
  }

 private:
  static Stmt s_or(const Stmt& s, const std::vector<Stmt>& before, const std::vector<Stmt>& now) {
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i].get() != before[i].get()) return seq(now);
    return now.empty() ? Stmt() : s;
  }

  const std::vector<bool>& mine_;
  const std::set<Buffer>& kept_;
  size_t next_ = 0;
};

}  // namespace

Survey survey(const Stmt& s) {
  Surveyor surveyor;
  surveyor.stmt(s);
  return surveyor.take();
}

Stmt slice_of(const Stmt& s, const std::vector<bool>& mine, const std::set<Buffer>& kept) {
  return Slicer(mine, kept).stmt(s);
}

}  // namespace tilewright::lower
