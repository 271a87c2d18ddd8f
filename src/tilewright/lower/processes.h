// Cuts a scheduled Func into processes that run side by side, connected by bounded channels: the
// form from which HLS C++, Verilog and the cycle simulator of FPGAs are made.
//
//   for t in 4 @(pipeline=dataflow) {
//     alloc T: f32[16] fpga.bram @(slots=2)
//     for i in 16 { block T.fill  T[i] = X[t*16 + i] }
//     for i in 16 { block Y       Y[t*16 + i] = T[i] * 2.0 }
//   }
//   =>  read_X:   for t in 4 { take a free T,  fill it,  hand it over }
//       write_Y:  for t in 4 { wait for a full T,  write Y,  give T back }
//
// A process is a *slice*: the program with all blocks of other processes removed, and with the
// loops that are left empty. A channel is an allocation with mark `slots`: each time its `alloc` is
// executed one block of it begins its life, which ends with the Seq that the `alloc` stands in;
// `slots` blocks exist. In every slice that uses the channel the `alloc` stays where it stood:
// there the writer waits for a free block and the reader for a full one, and at the end of the Seq
// the writer hands its block over and the reader gives it back.
//
// Program order stays the meaning. Processes connected by bounded channels compute the same values
// in whatever order they run (Kahn), and the requirements of the step `dataflow` keep them from
// waiting for one another in a circle (process_graph.cc), so every legal slice ends with the same
// values for any `slots >= 1`.
//
// Blocks that write the same channel or the same buffer in memory, or use the same buffer without
// `slots`, are one process; so are reads of the same parameters through the same `port`.
#pragma once

#include <string>
#include <vector>

#include "tilewright/ir/stmt.h"

namespace tilewright::lower {

/// What a process does with the memory outside of the chip: a read brings parameters into
/// channels, a write takes channels to a parameter, with what is computed on the way.
enum class ProcessKind { Read, Compute, Write };
/// `read`, `compute`, `write`.
std::string_view name(ProcessKind kind);

struct Channel {
  Buffer buffer;
  int slots = 1;
  int writer = 0, reader = 0;  ///< indices of DataflowRegion::processes
  /// The writer also reads what it wrote (a sum): each slot is a RAM of its own.
  bool accumulated = false;
};

struct Process {
  std::string name;  ///< `read_X`, `compute`, `write_Y`; unique in the Func
  ProcessKind kind = ProcessKind::Compute;
  Stmt body;  ///< the slice, with the Allocs of its channels and of its own buffers
  std::vector<Buffer> reads, writes;  ///< parameters, in order of their first use
};

/// Processes that run at the same time. A region without channels has one process.
struct DataflowRegion {
  std::vector<Process> processes;  ///< in the order in which channels lead forward
  std::vector<Channel> channels;   ///< in the order of their allocs
};

/// Regions run one after the other, each beginning when all processes before it have ended.
struct ProcessProgram {
  std::vector<DataflowRegion> regions;
  /// Allocated outside of all regions and used in them; in memory outside of the chip.
  std::vector<Buffer> scratch;
};

/// The processes of `func`, whose outermost loops with mark `pipeline=dataflow` are regions and
/// whose other outermost statements are regions of one process each.
/// errors: Unsupported: a channel or a process that breaks a requirement of the step `dataflow`
/// (schedule/step.h), with its number and the names.
Result<ProcessProgram> processes_of(const Func& func);

/// How often the elements of `buffer` along each axis lie in different banks.
struct Banking {
  enum class Kind { Cyclic, Block, Complete } kind = Kind::Cyclic;
  int64_t banks = 1;
  friend bool operator==(const Banking&, const Banking&) = default;
};
/// Reads the value of mark `partition`: `c16_b2_f`, one part for each axis of `buffer`; cyclic,
/// block, complete. Without the mark, one bank. errors: Invalid, with the part and what is allowed.
Result<std::vector<Banking>> banking_of(const Alloc& alloc);

}  // namespace tilewright::lower
