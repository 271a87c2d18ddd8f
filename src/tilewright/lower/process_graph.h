// What the statements of a region read and write, and which of them make a process together.
// Private to lower.
#pragma once

#include <optional>
#include <set>

#include "tilewright/lower/processes.h"

namespace tilewright::lower {

/// A statement on the way to another, and which of its children that is in.
struct Turn {
  const StmtNode* node;
  int child;
};
using Path = std::vector<Turn>;

/// A block, or a store or call outside of blocks: what a process is made of.
struct Leaf {
  const StmtNode* node;
  std::string label;  ///< for messages
  Path path;
  std::vector<Buffer> reads, writes;  ///< in order, without repetition; conditions around included
  bool combines = false;              ///< also reads what it writes
  int64_t port = -1;                  ///< of the mark; -1 without
};

/// An allocation inside of a region.
struct Home {
  const Alloc* alloc;
  Path path;
};

/// Everything in a statement, in program order.
struct Survey {
  std::vector<Leaf> leaves;
  std::vector<Home> homes;
};
Survey survey(const Stmt& s);

/// Which leaves are together, and the channels between.
struct ProcessGraph {
  std::vector<int> process_of_leaf;
  std::vector<ProcessKind> kinds;  ///< of the processes
  std::vector<Channel> channels;
};

/// The processes of a region. errors: Unsupported (requirements 2 to 7 of the step `dataflow`).
Result<ProcessGraph> process_graph(const Survey& survey);

/// The part of `s` that holds the leaves of one process, with the allocations in `kept`; empty if
/// there is none. Leaves count from `first` on, in program order.
Stmt slice_of(const Stmt& s, const std::vector<bool>& mine, const std::set<Buffer>& kept);

/// An error of the step `dataflow`: Unsupported, with the number.
tl::unexpected<Error> not_dataflow(int requirement, std::string why);

}  // namespace tilewright::lower
