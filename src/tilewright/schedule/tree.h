// A program laid out for steps: statements in preorder with their places, and edits of them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::schedule {

/// Position of a statement in preorder; the root is 0. Statements inside a Block have none.
using Id = int;
inline constexpr Id kNone = -1;

/// Index of the statements of one program. requires: the Func outlives the Tree.
class Tree {
 public:
  explicit Tree(const Func& func);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  const Func& func() const { return func_; }
  const Stmt& stmt(Id id) const { return *nodes_[id].stmt; }
  template <class T>
  const T* as(Id id) const {
    return stmt(id).as<T>();
  }
  Id parent(Id id) const { return nodes_[id].parent; }
  /// One past the last statement inside `id`.
  Id end(Id id) const { return nodes_[id].end; }
  int size() const { return static_cast<int>(nodes_.size()); }
  /// True for `id == ancestor` too.
  bool inside(Id id, Id ancestor) const { return ancestor <= id && id < nodes_[ancestor].end; }

  const std::vector<Id>& blocks() const { return blocks_; }
  const std::vector<Id>& loops() const { return loops_; }
  std::vector<Id> blocks_in(Id id) const;
  /// Loops around `id`, outermost first, `id` itself excluded.
  std::vector<Id> loops_around(Id id) const;
  /// Statements in the body of loop `id` (one, or those of its Seq).
  std::vector<Id> body_of(Id loop) const;
  std::vector<Id> children(Id id) const;
  /// Innermost statement holding all `ids`.
  Id common(const std::vector<Id>& ids) const;
  /// The child of `ancestor` that holds `id`. requires: id is strictly inside.
  Id child_towards(Id ancestor, Id id) const;

  /// The Alloc of a buffer, or kNone (a parameter).
  Id alloc_of(const Buffer& buffer) const;
  const Param* param_of(const Buffer& buffer) const;

  const Block& block(Id id) const { return *as<Block>(id); }
  const For& loop(Id id) const { return *as<For>(id); }

  /// errors: Invalid with the names there are.
  Result<Id> find_loop(std::string_view name) const;
  Result<Id> find_block(std::string_view name) const;
  /// A parameter or an allocated buffer.
  Result<Buffer> find_buffer(std::string_view name) const;

  /// Ranges of scalars and of the loops around `id`.
  arith::Bounds bounds_at(Id id) const;

 private:
  struct Node {
    const Stmt* stmt;
    Id parent, end;
  };
  void add(const Stmt& s, Id parent);

  const Func& func_;
  std::vector<Node> nodes_;
  std::vector<Id> blocks_, loops_, allocs_;
};

/// Changes to a program, applied together; untouched subtrees are shared.
class Edit {
 public:
  explicit Edit(const Tree& tree) : tree_(tree) {}
  /// Loops and sequences left without blocks go away too, with their allocations.
  void erase(Id id) { replace(id, Stmt()); }
  void replace(Id id, Stmt stmt);
  void before(Id id, std::vector<Stmt> stmts);
  void after(Id id, std::vector<Stmt> stmts);
  Stmt body() const;
  /// The Func with the new body.
  Func func() const;

 private:
  struct Change {
    bool replaced = false;
    Stmt stmt;
    std::vector<Stmt> before, after;
  };
  bool touched(Id id) const;
  Stmt rebuild(Id id) const;
  Stmt rebuild_branch(Id id) const;
  std::vector<Stmt> rebuild_list(Id id) const;

  const Tree& tree_;
  std::map<Id, Change> changes_;
};

/// Names in use, to find free ones.
class NamePool {
 public:
  /// `gone`: blocks about to be removed; their names and those of loops around only them are free.
  explicit NamePool(const Tree& tree, const std::set<Id>& gone = {});
  /// `name`, or `name.1`, `name.2`, ... ; the answer is taken from then on.
  std::string loop(const std::string& name) { return fresh(loops_, name); }
  std::string block(const std::string& name) { return fresh(blocks_, name); }
  std::string buffer(const std::string& name) { return fresh(buffers_, name); }
  bool has_loop(const std::string& name) const { return loops_.contains(name); }
  bool has_block(const std::string& name) const { return blocks_.contains(name); }
  bool has_buffer(const std::string& name) const { return buffers_.contains(name); }

 private:
  static std::string fresh(std::unordered_set<std::string>& used, const std::string& name);
  std::unordered_set<std::string> loops_, blocks_, buffers_;
};

/// NotApplicable, with the number of the requirement that does not hold.
tl::unexpected<Error> refuse(int requirement, std::string why);
/// The value of a loop variable in bindings: 0 for a loop of one iteration, else the variable.
Expr loop_value(const Var& var, const Expr& extent);
/// Conjuncts of a guard; none for an absent one.
std::vector<Expr> conjuncts(const Expr& guard);
/// Their conjunction; absent for none.
Expr conjunction(const std::vector<Expr>& terms);
/// Factors, parts and multiples beyond this are refused: sums and products of a few must fit.
inline constexpr int64_t kLargestExtent = int64_t{1} << 31;
/// True if the name can be written in IR text and traces.
bool valid_name(std::string_view name);

}  // namespace tilewright::schedule
