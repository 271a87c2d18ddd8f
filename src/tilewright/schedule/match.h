// Matching a computation with an intrinsic: which of its loops and operands can play which part.
// source: HASCO (ISCA 2021), section IV; the conditions below make it sound.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/ir/walk.h"

namespace tilewright::schedule {

/// A block of one store in a perfect nest, in terms of the loops around it.
struct StoreNest {
  std::string block;
  std::vector<For> loops;  ///< outermost first
  Store store;             ///< iterations are replaced by their bindings
  Expr guard;              ///< absent means always
};

/// The nest of the one block of `func` that is no init (a block that sets what another one combines
/// into). errors: Invalid if there are several blocks, or it is no single store.
Result<StoreNest> nest_of(const Func& func);

/// One way to let an intrinsic do part of a computation.
struct Match {
  /// Loop of the intrinsic and the loop of the computation it runs over, in the intrinsic's order.
  std::vector<std::pair<Var, Var>> indices;
  /// For each access of the intrinsic (0: the stored element, then the loads of the value from left
  /// to right) the access of the computation that it becomes; their number where it has no index.
  std::vector<size_t> operands;
};

/// Every sound match, each once per assignment of index occurrences: equal indices stay equal,
/// different ones different; two occurrences meet in the same operation in both computations, the
/// stored element included; an index is matched in all its occurrences or in none; what is left
/// over only multiplies the result. Sizes, scales of indices and the order of axes are free.
/// errors: as nest_of.
Result<std::vector<Match>> find_matches(const Func& workload, const Func& intrinsic);

/// How many assignments pass which test.
struct MatchCounts {
  int workload_leaves = 0, intrinsic_leaves = 0;  ///< index occurrences in the values
  int64_t consistent = 0;  ///< injective maps of occurrences under which indices map one to one
  int64_t subsets = 0;     ///< distinct sets of occurrences they use
  int64_t literal = 0;     ///< those that also keep the operation where two occurrences meet
  int64_t sound = 0;       ///< find_matches
  int64_t loop_sets = 0;   ///< distinct sets of loops these tensorize
};
Result<MatchCounts> count_matches(const Func& workload, const Func& intrinsic);

/// The syntax tree of a store: where index variables occur, and under which operations.
class SyntaxTree {
 public:
  /// Looks at occurrences of `active` only; everything else is constant.
  SyntaxTree(const Store& store, const std::set<Var>& active);

  struct Leaf {
    Var var;
    size_t access;  ///< 0: the stored element, then the loads from left to right
    int node;
    bool plain;  ///< a summand of an index, perhaps scaled; others never match
  };
  const std::vector<Leaf>& leaves() const { return leaves_; }
  size_t accesses() const { return accesses_; }
  /// The operation in which two occurrences meet: `[]` (axes of one access), `+`, `*`, `=`, ...
  const std::string& meeting(const Leaf& a, const Leaf& b) const;
  /// True if the value of `intrinsic`, its accesses replaced as `operands` says, is this value (up
  /// to casts and the order of operands), or all of its factors but some.
  bool holds(const SyntaxTree& intrinsic, const std::vector<size_t>& operands,
             bool with_factors) const;

 private:
  struct Node {
    std::string operation;
    int parent, depth;
    std::vector<int> children;
    size_t access = 0;  ///< of a `[]`
  };
  bool same_value(int node, const SyntaxTree& intrinsic, int other,
                  const std::vector<size_t>& operands) const;
  /// The factors of a product, or the node itself.
  std::vector<int> factors(int node) const;
  int value_node() const { return nodes_[0].children.back(); }
  int add_node(std::string operation, int parent);
  void add_index(const Expr& index, int node, size_t access);
  void add_access(const std::vector<Expr>& indices, int parent);
  void add_value(const Expr& e, int parent);
  void add_leaf(const Var& var, int node, size_t access, bool plain);

  const std::set<Var>& active_;
  std::vector<Node> nodes_;
  size_t accesses_ = 0;
  std::vector<Leaf> leaves_;
};

/// The assignments find_matches is made of, without the condition on what is left over.
std::vector<Match> structural_matches(const SyntaxTree& workload, const SyntaxTree& intrinsic,
                                      const std::vector<Var>& intrinsic_loops);

}  // namespace tilewright::schedule
