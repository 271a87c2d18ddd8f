#include "tilewright/lower/gpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_passes.h"
#include "tilewright/lower/gpu_shared.h"
#include "tilewright/lower/gpu_split.h"

namespace tilewright::lower {
namespace {

Status check(const GpuKernel& kernel, const hw::GpuTarget& target) {
  const int64_t threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  if (threads > target.max_threads)
    return fail(ErrorKind::Capacity,
                fmt::format("kernel '{}' has blocks of {} threads", kernel.func.name, threads),
                fmt::format("{} allows {}", target.name, target.max_threads));
  std::optional<std::string> unknown;
  walk(kernel.func.body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr) return;
    for (const Expr& extent : alloc->buffer.shape())
      if (!as_int(extent)) unknown = alloc->buffer.name();
    if (alloc->buffer.scope() == "global") unknown = alloc->buffer.name();
  });
  if (unknown)
    return fail(
        ErrorKind::Unsupported,
        fmt::format("kernel '{}' allocates '{}', which is global memory or of no constant size",
                    kernel.func.name, *unknown));
  const int64_t shared =
      plan_shared(kernel.func.body, kernel.bulk.groups, target.shared_bytes).bytes;
  if (shared > target.shared_bytes)
    return fail(
        ErrorKind::Capacity,
        fmt::format("kernel '{}' needs {} bytes of shared memory", kernel.func.name, shared),
        fmt::format("a block on {} has {}", target.name, target.shared_bytes));
  return {};
}

/// Finds out what a finished kernel needs, and whether the device has it.
Status finish(GpuKernel& kernel, const hw::GpuTarget& target) {
  const bool cuda = target.language == hw::GpuLanguage::Cuda;
  if (cuda) kernel.bulk = TW_TRY(bulk_use(kernel.func));
  TW_TRY_STATUS(check(kernel, target));
  if (const int64_t bytes =
          plan_shared(kernel.func.body, kernel.bulk.groups, target.shared_bytes).bytes;
      cuda && bytes > kStaticSharedBytes)
    kernel.shared_bytes = bytes;
  return {};
}

/// A block whose updates threads may make at the same time; empty if there is none.
std::string atomic_block(const Stmt& body) {
  std::string name;
  walk(body, [&](const Stmt& s) {
    const auto* block = s.as<Block>();
    if (block == nullptr) return;
    for (const Mark& mark : block->marks)
      if (mark.kind == MarkKind::Atomic) name = block->name;
  });
  return name;
}

}  // namespace

bool is_block_loop(const For& loop) {
  return loop.kind == ForKind::Bind && loop.axis.starts_with("block.");
}
bool is_thread_loop(const For& loop) {
  return loop.kind == ForKind::Bind && loop.axis.starts_with("thread.");
}

bool is_sync(const Stmt& s) {
  const auto* call = s.as<Call>();
  return call != nullptr && call->callee->name == kSyncBlock;
}

Stmt make_sync() {
  static const auto callee = [] {
    auto func = std::make_shared<Func>();
    func->name = kSyncBlock;
    func->body = seq({});
    return std::shared_ptr<const Func>(std::move(func));
  }();
  return make(Call{callee, {}});
}

bool contains(const Stmt& s, bool (*predicate)(const Stmt&)) {
  if (predicate(s)) return true;
  const std::vector<Stmt> parts = children(s);
  return std::any_of(parts.begin(), parts.end(),
                     [&](const Stmt& part) { return contains(part, predicate); });
}

Result<GpuLaunches> lower_for_gpu(const Func& scheduled, const hw::GpuTarget& target,
                                  const PassOptions& options) {
  if (!scheduled.scalars.empty())
    return fail(ErrorKind::Unsupported, fmt::format("'{}' has scalar parameters", scheduled.name),
                {}, "give its sizes as numbers");
  if (const std::string block = atomic_block(scheduled.body); !block.empty())
    return fail(ErrorKind::Unsupported, fmt::format("block '{}' is marked atomic", block),
                "kernels of GPUs have no atomic updates");
  GpuLaunches plan = TW_TRY(split_kernels(TW_TRY(run_pipeline(scheduled, "gpu", options))));
  for (GpuKernel& kernel : plan.kernels) {
    kernel.func = TW_TRY(run_pipeline(kernel.func, "gpu-kernel", options));
    TW_TRY_STATUS(finish(kernel, target));
  }
  return plan;
}

}  // namespace tilewright::lower
