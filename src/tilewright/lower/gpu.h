// From a scheduled Func to kernels of a GPU. Loops bound to `block.x|y|z` and `thread.x|y|z` stay
// loops in the IR: outermost block loops make a grid, siblings in a Seq stay ordered, so a Func may
// give several kernels, called one after the other.
#pragma once

#include <array>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/ir/stmt.h"
#include "tilewright/lower/gpu_bulk.h"
#include "tilewright/lower/lower.h"

namespace tilewright::lower {

/// One kernel. `func`: parameters are the buffers it uses, scalars the variables of the loops
/// around its grid; the body is a nest of block loops (perhaps none), inside it statements for all
/// threads of a block, each in a nest of thread loops (none: one thread does it), serial loops
/// around them, allocations in `shared` and `local`, and calls of
/// `sync.block` and of what is in lower/gpu_async.h.
struct GpuKernel {
  Func func;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t shared_bytes = 0;  ///< CUDA: of a block, asked for at launch; 0: declared
  BulkUse bulk;              ///< CUDA: what copies marked `async=bulk` need
};

struct GpuCallSite {
  size_t kernel = 0;
  std::vector<Buffer> args;      ///< parameters of the whole Func, or temporaries
  std::vector<int64_t> scalars;  ///< values of the loops around
};

/// A Func as launches. A temporary is an allocation that outlives a kernel.
struct GpuLaunches {
  std::vector<GpuKernel> kernels;
  std::vector<GpuCallSite> calls;
  std::vector<Buffer> temporaries;
};

/// Name of the intrinsic that makes all threads of a block wait for each other.
inline constexpr const char* kSyncBlock = "sync.block";

bool is_block_loop(const For& loop);
bool is_thread_loop(const For& loop);
/// A call of `sync.block`.
bool is_sync(const Stmt& s);

/// How many leading axes of `buffer` (scope `local`) every access in `body` indexes by the variable
/// of a thread loop around it, of the same axis everywhere: each thread has an array over the other
/// axes only.
size_t thread_axes(const Buffer& buffer, const Stmt& body);

/// When asynchronous copies happen: where they stand, or just before they are waited for.
enum class Copies { Early, Late };

/// The kernel as its threads run it: between two barriers each thread does all it has to do, so a
/// race that a missing barrier allows is a race of two iterations of one concurrent loop, which the
/// interpreter's checking mode finds. Loops around barriers are written out: for small sizes.
/// errors: Unsupported (a barrier that not all threads reach).
Result<Func> as_threads(const GpuKernel& kernel, Copies copies = Copies::Early);

/// The pipeline `gpu`, the split into kernels, the pipeline `gpu-kernel` on each; `target` says
/// whether they fit. errors: Unsupported (a construct that has no place on a GPU: sizes that are
/// not constant, a local buffer that threads share), Capacity (threads or shared memory of a
/// block).
Result<GpuLaunches> lower_for_gpu(const Func& scheduled, const hw::GpuTarget& target,
                                  const PassOptions& options = {});

}  // namespace tilewright::lower
