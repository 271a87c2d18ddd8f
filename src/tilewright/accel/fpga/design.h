// An FPGA design as plain data: memories, ports, and processes that run side by side. The cycle
// simulator (sim/tsim.h) and the Verilog (rtl/rtl.h) are made from it; docs/fpga-timing.md says in
// which cycle what happens.
//
//   memory X: i8[2 banks x 32 words] slots 2          a channel: one process fills blocks of it,
//   port in: reads argument 0                         another one empties them
//   process read_X:
//     loop 4 {
//       acquire X                                     waits for a free block
//       nest [8, 4] II 1  in -> X                     32 iterations, one in each cycle
//       release X                                     hands the block over
//     }
//
// A process is a list of items, its loops given by their ends as brackets are. A *nest* is a set of
// counters that run as one, and one graph of operators: in each iteration elements are read at
// affine addresses, and results stored.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tilewright/base/dtype.h"
#include "tilewright/base/result.h"

namespace tilewright::fpga {

/// How bits stand for a number. Integers have any width up to 64.
struct Number {
  enum class Kind { Signed, Unsigned, Float };
  Kind kind = Kind::Signed;
  int bits = 8;
  int exponent = 0;  ///< bits of it; floats only
  friend bool operator==(const Number&, const Number&) = default;
  bool is_float() const { return kind == Kind::Float; }
  bool is_signed() const { return kind == Kind::Signed; }
  /// Bytes of an element in memory outside of the chip.
  int bytes() const { return bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8; }
};
Number number_of(DType dtype);
/// `i8`, `u29`, `f32`, `bf16`.
std::string name(const Number& number);

/// constant + sum of loops[i] * (i-th loop around the nest) + sum of counters[i] * (i-th counter of
/// the nest), both outermost first; what is missing counts as 0.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> loops, counters;
  bool is_constant() const { return loops.empty() && counters.empty(); }
  friend bool operator==(const Affine&, const Affine&) = default;
};
/// Holds where 0 <= value < extent.
struct Range {
  Affine value;
  int64_t extent = 1;
  friend bool operator==(const Range&, const Range&) = default;
};

/// Memory on the chip: `banks` RAMs with one port to write and one to read. A channel has blocks
/// (`slots`), which one process fills and another one empties; without slots it belongs to the
/// one process that uses it.
struct Memory {
  std::string name;
  Number element;
  int banks = 1;
  int64_t words = 1;  ///< of one block, in each bank
  int slots = 0;      ///< 0: not a channel
  /// The process that fills it reads it too (sums): each slot is a RAM of its own.
  bool accumulated = false;
  int read_latency = 2;  ///< 1 or 2: with a register behind the RAM
};

/// A port to memory outside of the chip: one argument, one direction.
struct Port {
  std::string name;
  bool writes = false;
  int argument = 0;  ///< its base address is given at start
  int channel = 0;   ///< of the memory outside
};

enum class Op {
  Const,   ///< `bits`
  Flag,    ///< 1 where all `ranges` hold
  Stream,  ///< element `lane` of what the nest's port brings; 0 outside of its ranges
  Read,    ///< of `place`
  Add,
  Sub,
  Mul,
  Min,
  Max,
  Eq,
  Lt,
  Le,
  Select,  ///< inputs: flag, if 1, if 0
  Shl,
  Shr,
  Cast
};
std::string_view name(Op op);

/// An element of a memory. A bank that is not constant is chosen in each iteration.
struct Place {
  int memory = 0;
  Affine bank, word;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Integers: operands are extended to the type of the result, which wraps; those of comparisons
/// have one type. Floats: operands have the type of the result.
struct Node {
  Op op = Op::Const;
  Number type;
  std::vector<int> inputs;  ///< nodes before this one
  int latency = 0;          ///< cycles; of Read it is the memory's
  uint64_t bits = 0;
  int lane = 0;
  Place place;
  std::vector<Range> ranges;
  bool varies = false;  ///< Const: others of the same structure have another one (merge.h)
};

/// Writes the value of a node, where all ranges hold.
struct Store {
  Place place;
  int node = 0;
  std::vector<Range> ranges;
};

/// What a nest moves through a port: in each iteration one *group* of `lanes` elements that lie
/// side by side. The innermost counter runs along a *row* of groups without gaps.
struct Stream {
  int port = -1;  ///< -1: none
  Number element;
  int lanes = 1;
  Affine address;             ///< of the group, in bytes behind the argument's base
  std::vector<Range> ranges;  ///< outside of these nothing is moved
  /// The first range is the one along the row: its value grows by one with each group. The others
  /// do not depend on the innermost counter.
  bool clipped = false;
  std::vector<int> nodes;  ///< what a writing port gets, one node for each lane
  int group_bytes() const { return lanes * element.bytes(); }
};

struct Nest {
  std::string name;
  std::vector<int64_t> extents;  ///< of the counters, outermost first; at least one, none is 0
  int ii = 1;                    ///< cycles between two iterations, at least
  std::vector<Node> nodes;
  std::vector<Store> stores;
  Stream stream;
};

struct LoopBegin {
  int64_t extent = 1;
};
struct LoopEnd {};
struct Acquire {
  int memory = 0;
};
struct Release {
  int memory = 0;
};
using Item = std::variant<LoopBegin, LoopEnd, Acquire, Release, Nest>;

struct Process {
  std::string name;
  std::vector<Item> items;
};

/// AXI4 ports of the design.
struct Bus {
  int beat_bytes = 8;
  int burst_beats = 32;
  int outstanding = 32;  ///< bursts that a port has under way
  int write_fifo = 64;   ///< beats that wait to be written
};
constexpr int64_t kBurstBoundary = 4096;  ///< no burst crosses a multiple of it (AXI4)

struct Design {
  std::string name;
  Bus bus;
  /// Of the wider factor of a multiplier (DSP48E1: 25): products that fit share one (pairs.h).
  int multiplier_bits = 0;
  int arguments = 0;
  std::vector<Memory> memories;
  std::vector<Port> ports;
  std::vector<Process> processes;
};

/// When the operators of a nest work, in cycles from the iteration's begin.
struct NestTimes {
  std::vector<int> issue;  ///< of each node: when its inputs are used
  std::vector<int> ready;  ///< of each node: when its value is there
  std::vector<int> store;  ///< of each store: the cycle that writes
  int stream = 0;          ///< when a group leaves for the port
  int last = 0;            ///< the last of all these
  int depth() const { return last + 2; }
};
/// Reads of a memory that the nest stores to, and what depends on them, are as late as they can be,
/// all else as soon.
NestTimes times_of(const Design& design, const Nest& nest);
/// Cycles from reading an element of `memory` to the first one in which it can be read anew after
/// the nest stored it: what an interval times the distance in iterations must reach.
int recurrence(const Nest& nest, const NestTimes& times, int memory);

/// The processes that fill and empty a channel; -1: none.
struct Ends {
  int writer = -1, reader = -1;
};
Ends ends_of(const Design& design, int memory);

/// Whether the process has a nest with a port; then its requests run ahead in a copy of its own.
bool has_port(const Process& process);

/// What asks for the bursts of a process with ports: its items without the nests that have none.
Process requests_of(const Process& process);

/// What is wrong, with names; empty if the design is legal.
std::vector<std::string> problems(const Design& design);
/// errors: Invalid, with all problems.
Status check_legal(const Design& design);

/// For people and for tests.
std::string to_text(const Design& design);

}  // namespace tilewright::fpga
