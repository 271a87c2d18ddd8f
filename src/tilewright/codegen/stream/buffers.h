// Where buffers are: DRAM addresses of parameters, on-chip slots of
// allocations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/codegen/stream/concrete.h"
#include "tilewright/ir/stmt.h"

namespace tilewright::codegen::stream {

/// A memory on chip. Addresses in it count elements.
struct ChipMemory {
  int number = 0;     ///< as the device counts its memories
  std::string scope;  ///< of buffers in it: `vta.inp`
  int bits = 8;       ///< of a scalar, a signed integer
  int64_t lanes = 1;  ///< scalars of one element
};

/// What a device has.
struct Memories {
  std::string device;  ///< its name, for messages
  std::vector<ChipMemory> list;
};

/// A buffer, or the present instance of an allocation: a dense box of it in
/// some memory.
struct PlacedBox {
  std::optional<int> memory;  ///< number; absent: DRAM
  int64_t base = 0;           ///< of the box's first scalar; units: scalars
  std::vector<int64_t> begin, stride;
  int64_t first = 0, elements = 0;  ///< on chip; units: elements
};

/// An access to an allocation, with the loops between them.
struct AllocAccess {
  std::vector<const For*> loops;
  const Block* block = nullptr;
  const std::vector<Expr>* indices = nullptr;  ///< of a load or store
  const Region* region = nullptr;              ///< of a call
};

/// An allocation on chip.
struct Allocation {
  Buffer buffer;
  int memory = 0;  ///< number
  std::vector<AllocAccess> accesses;
  int64_t begin = 0, end = 0;  ///< its scope, in order of the program's text
  size_t ring = 0;
  int64_t copies = 0;  ///< wanted by its mark `copies`; 0: no mark
};

/// Room for allocations that are never alive together: parts of one that was cut.
struct Ring {
  int memory = 0;  ///< number
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

/// The memory that the scope of a buffer names; null: none.
const ChipMemory* memory_of(const Memories& memories, const Buffer& buffer);

/// All on-chip allocations of `func` with their accesses. errors: Unsupported (scope, type).
Result<OnChip> find_allocations(const Func& func, const Memories& memories);

/// Gives the rings their places, one after the other in each memory, in the order of the program's
/// text. Elements used, by memory.
std::map<int, int64_t> lay_out(std::vector<Ring>& rings);
/// The rings of a memory with copies and sizes: `` `X` 2 x 9; `Y` 1 x 4``.
std::string describe(const std::vector<Ring>& rings, int memory);

/// The part of the buffer that the accesses touch, for the outer loops' values in `env` (whose
/// nest is replaced), as a place at element `first`. errors: Unsupported.
Result<PlacedBox> place_instance(const Allocation& a, int64_t first, const Memories& memories,
                                 Env& env);
/// A dense or strided buffer in DRAM. errors: Unsupported (shape or strides not constant), Invalid
/// (address not a multiple of the scalar).
Result<PlacedBox> place_in_dram(const Buffer& buffer, const std::vector<Expr>& strides,
                                uint64_t address, const Env& env);

}  // namespace tilewright::codegen::stream
