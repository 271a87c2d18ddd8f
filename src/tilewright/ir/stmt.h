// Statements and functions: the other half of the grammar. docs/ir.md is the meaning.
//
//   Stmt = For | Block | Store | Alloc | If | Seq | Call
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tilewright/base/array.h"
#include "tilewright/ir/expr.h"

namespace tilewright {

struct StmtNode;
struct Func;

/// A handle to an immutable statement; copying shares it. The empty handle means "absent".
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  template <class T>
  const T* as() const;
  const StmtNode* get() const { return node_.get(); }

 private:
  std::shared_ptr<const StmtNode> node_;
};

/// Annotations from a closed table (docs/ir.md). Ignoring a mark never changes a result.
enum class MarkKind {
  Async,
  Atomic,
  Pipeline,
  InitiationInterval,
  Partition,
  Prefetch,
  FetchNext,
  Copies,
  Align,
  Pad,
  Slots,
  Port
};
struct Mark {
  MarkKind kind;
  std::variant<int64_t, std::string> value = int64_t{1};
  friend bool operator==(const Mark&, const Mark&) = default;
};
using Marks = std::vector<Mark>;
/// The first mark of `kind`; null without one.
const Mark* find_mark(const Marks& marks, MarkKind kind);
/// The value of the first mark of `kind`; absent without one, or if it is no integer.
std::optional<int64_t> int_mark(const Marks& marks, MarkKind kind);

enum class ForKind { Serial, Parallel, Vector, Unroll, Bind };
/// for var in extent: 0 <= var < extent. `axis` is used by Bind only (`block.x`, `thread.y`,
/// `warp`).
struct For {
  Var var;
  Expr extent;
  ForKind kind = ForKind::Serial;
  std::string axis;
  Marks marks;
  Stmt body;
};

enum class IterKind { Space, Reduce, Scan };
struct Iter {
  Var var;  ///< seen only inside the block
  IterKind kind;
  Expr extent;
  Expr binding;  ///< of the loops around; under the guard provably in [0, extent)
};

/// A named computation: body is one Store, a Seq of Stores, or one Call, over the iterations'
/// variables.
struct Block {
  std::string name;
  std::vector<Iter> iters;
  Expr guard;  ///< of the loops around (not the iterations); absent means always
  Marks marks;
  Stmt body;
};

enum class Combine { Set, Add, Mul, Max, Min };
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Combine combine = Combine::Set;
};

/// Declares `buffer` for the rest of the enclosing Seq; its elements start undefined.
struct Alloc {
  Buffer buffer;
  Marks marks;
};

struct If {
  Expr condition;
  Stmt then_body;
  Stmt else_body;  ///< may be absent
};

/// Statements in order. Never nested directly in another Seq, never of length one (use `seq`).
struct Seq {
  std::vector<Stmt> stmts;
};

/// begin .. begin+size on every axis of `buffer`.
struct Region {
  Buffer buffer;
  std::vector<std::pair<Expr, Expr>> dims;
};
/// Applies an intrinsic; its meaning is the callee's body with the parameters bound to the regions.
struct Call {
  std::shared_ptr<const Func> callee;
  std::vector<std::variant<Expr, Region>>
      args;  ///< scalars first, then params, in the callee's order
};

using StmtOp = std::variant<For, Block, Store, Alloc, If, Seq, Call>;
struct StmtNode {
  StmtOp op;
};
template <class T>
const T* Stmt::as() const {
  return std::get_if<T>(&node_->op);
}
template <class... F>
decltype(auto) match(const Stmt& s, F&&... f) {
  return std::visit(Overloaded{std::forward<F>(f)...}, s.get()->op);
}

/// Wraps a payload in a node.
Stmt make(StmtOp op);
/// A Seq, flattened; one statement stays itself; none gives an empty Seq.
Stmt seq(std::vector<Stmt> stmts);

enum class ParamMode { In, Out, InOut, Const };  ///< Const: known at compile time (weights, tables)
struct Param {
  Buffer buffer;
  ParamMode mode = ParamMode::In;
  std::vector<Expr> strides;    ///< in elements; empty means dense row-major
  std::optional<Array> values;  ///< of a constant table; only with Const
};
/// An integer argument with its range, both ends included.
struct Scalar {
  Var var;
  int64_t lo = 0, hi = 0;
};
/// Fast: additions of one reduction may be regrouped and a*b+c contracted. Exact: source order.
enum class MathMode { Fast, Exact };

/// A program. Loops, blocks and buffers have names unique in it.
struct Func {
  std::string name;
  std::vector<Scalar> scalars;
  std::vector<Param> params;
  MathMode math = MathMode::Fast;
  Stmt body;
};

/// Structural equality: variables and buffers match by position, all names must agree too.
bool equal(const Func& a, const Func& b);
bool equal(const Stmt& a, const Stmt& b);

std::string_view name(ForKind kind);
std::string_view name(IterKind kind);
std::string_view name(MarkKind kind);
std::string_view name(Combine combine);  ///< `=`, `+=`, `*=`, `max=`, `min=`
std::string_view name(ParamMode mode);
std::optional<MarkKind> parse_mark_kind(std::string_view text);
/// The names of all marks with spaces between, for messages.
std::string mark_kinds();

/// Memories on the chip of an FPGA: a buffer lies in one of them if its scope is `fpga.<memory>`.
inline constexpr std::string_view kFpgaMemories[] = {"bram", "uram", "lutram", "reg"};
/// `bram` of the scope `fpga.bram`, known or not; empty for scopes that do not begin with `fpga.`.
std::string_view fpga_memory(std::string_view scope);
bool is_fpga_memory(std::string_view memory);

}  // namespace tilewright
