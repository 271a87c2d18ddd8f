// Walking and rewriting programs: a few functions instead of visitor classes.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright {

/// Calls f on every expression in `e`, parents before children.
void walk(const Expr& e, const std::function<void(const Expr&)>& f);
/// Calls on_stmt on every statement, parents first, and on_expr on every expression inside
/// (extents, bindings, guards, indices, region bounds, values). Does not enter callees of Call.
void walk(const Stmt& s, const std::function<void(const Stmt&)>& on_stmt,
          const std::function<void(const Expr&)>& on_expr = {});

/// Rebuilds `e` bottom-up; f may replace each node (return its argument to keep). Returns the same
/// handle where nothing changed.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f);
/// Rebuilds `s` bottom-up. f_expr (may be null) is applied to whole top-level expressions, not to
/// every sub-expression: call rewrite(Expr) inside it for that. f_stmt may be null. A f_stmt result
/// that is an empty handle or an empty Seq deletes the statement.
Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& f_stmt,
             const std::function<Expr(const Expr&)>& f_expr = {});

using VarMap = std::map<Var, Expr>;
Expr substitute(const Expr& e, const VarMap& values);
/// Replaces free occurrences; bound variables of `s` are distinct nodes, so capture cannot happen.
Stmt substitute(const Stmt& s, const VarMap& values);

using BufferMap = std::map<Buffer, Buffer>;
/// Replaces buffers everywhere they are named: loads, stores, allocs, regions.
Expr replace_buffers(const Expr& e, const BufferMap& map);
Stmt replace_buffers(const Stmt& s, const BufferMap& map);

/// Fresh copies of every bound variable and allocated buffer in `s` (for duplicating a statement).
Stmt clone(const Stmt& s, const std::function<std::string(const std::string&)>& rename);

/// The statement with its children replaced: for For, Block, If, Seq. Order as written.
std::vector<Stmt> children(const Stmt& s);

/// Variables referenced and not bound inside.
std::vector<Var> free_vars(const Expr& e);
bool uses(const Expr& e, const Var& var);
/// Whether `e` has a free variable that is one of `vars`.
bool uses_any(const Expr& e, const std::vector<Var>& vars);

}  // namespace tilewright
