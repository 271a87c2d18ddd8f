// Where buffers are: DRAM addresses of parameters, on-chip slots of
// allocations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/accel/vta/config.h"
#include "tilewright/codegen/vta/concrete.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen::stream {

/// A buffer, or the present instance of an allocation: a dense box of it in
/// some memory.
struct Place {
  std::optional<vta::Mem> mem;  ///< absent: DRAM
  int64_t base = 0;             ///< of the box's first scalar; units: scalars
  std::vector<int64_t> begin, stride;
  int64_t first = 0, elements = 0;  ///< on chip; units: elements
  /// Accumulators, per element: overwritten in place by the block that stores its final value
  /// (empty: none), and last written by an instruction that also writes what a STORE reads.
  std::vector<bool> consumed, storable;
};

/// An access to an allocation, with the loops between them.
struct Access {
  std::vector<const For*> loops;
  const Block* block = nullptr;
  const std::vector<Expr>* indices = nullptr;  ///< of a load or store
  const Region* region = nullptr;              ///< of a call
};

/// An allocation on chip.
struct Allocation {
  Buffer buffer;
  vta::Mem mem = vta::Mem::Inp;
  std::vector<Access> accesses;
  int64_t begin = 0, end = 0;  ///< its scope, in order of the program's text
  size_t ring = 0;
  int64_t copies = 0;  ///< wanted by its mark `copies`; 0: no mark
};

/// Room for allocations that are never alive together: parts of one that was cut.
struct Ring {
  vta::Mem mem = vta::Mem::Inp;
  std::string names;
  int64_t size = 0;       ///< of the largest instance; units: elements
  int64_t instances = 0;  ///< executions of their Allocs
  int64_t wanted = 0;     ///< copies by a mark; 0: none
  int64_t first = 0, copies = 1, next = 0;
};

struct OnChip {
  std::map<const void*, Allocation> allocations;
  std::vector<Ring> rings;  ///< in order of the program's text
};

/// The memory a scope names: `vta.inp`, `vta.wgt`, `vta.acc`.
std::optional<vta::Mem> memory_of(const Buffer& buffer);
/// Width of one scalar of a memory; units: bits.
int scalar_bits(const vta::Config& config, vta::Mem mem);

/// All on-chip allocations of `func` with their accesses. errors: Unsupported (scope, type).
Result<OnChip> find_allocations(const Func& func, const vta::Config& config);

/// The part of the buffer that the accesses touch, for the outer loops' values in `env` (whose
/// nest is replaced), as a place at element `first`. errors: Unsupported.
Result<Place> place_instance(const Allocation& a, int64_t first, const vta::Config& config,
                             Env& env);
/// A dense or strided buffer in DRAM. errors: Unsupported (shape or strides not constant), Invalid
/// (address not a multiple of the scalar).
Result<Place> place_in_dram(const Buffer& buffer, const std::vector<Expr>& strides,
                            uint64_t address, const Env& env);

}  // namespace tilewright::codegen::stream
