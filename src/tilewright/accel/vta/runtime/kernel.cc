#include "tilewright/accel/vta/runtime/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tilewright/accel/vta/ranges.h"

namespace tilewright::vta {
namespace {

constexpr uint32_t kMostIterations = (1u << 14) - 1;

Uop plus(const Uop& a, const Uop& b, uint32_t times = 1) {
  return {a.dst + times * b.dst, a.src + times * b.src, a.wgt + times * b.wgt};
}
/// requires: every index of `a` is at least that of `b`.
Uop minus(const Uop& a, const Uop& b) { return {a.dst - b.dst, a.src - b.src, a.wgt - b.wgt}; }
bool at_least(const Uop& a, const Uop& b) {
  return a.dst >= b.dst && a.src >= b.src && a.wgt >= b.wgt;
}

struct HardwareLoop {
  uint32_t extent = 1;
  Uop step;
};

/// Whether `uops` are repetitions of their first `period` at a constant distance.
bool repeats(const std::vector<Uop>& uops, size_t period) {
  if (!at_least(uops[period], uops[0])) return false;
  const Uop step = minus(uops[period], uops[0]);
  for (size_t i = period; i < uops.size(); ++i)
    if (uops[i] != plus(uops[i - period], step)) return false;
  return true;
}

/// Cuts `uops` down to its shortest period.
std::optional<HardwareLoop> fold(std::vector<Uop>& uops) {
  for (size_t period = 1; period <= uops.size() / 2; ++period) {
    if (uops.size() % period != 0 || uops.size() / period > kMostIterations) continue;
    if (!repeats(uops, period)) continue;
    HardwareLoop loop{static_cast<uint32_t>(uops.size() / period), minus(uops[period], uops[0])};
    uops.resize(period);
    return loop;
  }
  return std::nullopt;
}

/// Whether equal destinations come less than three steps apart. Only the steps around each kind of
/// border between iterations are looked at: all others are like them.
bool repeats_destination(const Loops& loops, const std::vector<Uop>& uops) {
  std::array<uint32_t, 2> last{~0u, ~0u};
  bool found = false;
  const auto iteration = [&](uint32_t o, uint32_t i) {
    for (const Uop& uop : uops) {
      const uint32_t dst = uop.dst + o * loops.dst_outer + i * loops.dst_inner;
      found = found || dst == last[0] || dst == last[1];
      last = {last[1], dst};
    }
  };
  if (loops.inner <= 6) {
    for (uint32_t o = 0; o < std::min(loops.outer, 3u); ++o)
      for (uint32_t i = 0; i < loops.inner; ++i) iteration(o, i);
    return found;
  }
  for (uint32_t i = 0; i < 3; ++i) iteration(0, i);
  last = {~0u, ~0u};
  for (uint32_t i = loops.inner - 3; i < loops.inner; ++i) iteration(0, i);
  for (uint32_t i = 0; i < 3 && loops.outer > 1; ++i) iteration(1, i);
  return found;
}

Loops hardware_loops(const std::vector<HardwareLoop>& nest, bool gemm) {
  HardwareLoop outer, inner;
  if (nest.size() == 1) (gemm ? outer : inner) = nest[0];
  if (nest.size() == 2) {
    outer = nest[0];
    inner = nest[1];
  }
  Loops loops;
  loops.outer = outer.extent;
  loops.inner = inner.extent;
  loops.dst_outer = outer.step.dst;
  loops.dst_inner = inner.step.dst;
  loops.src_outer = outer.step.src;
  loops.src_inner = inner.step.src;
  loops.wgt_outer = outer.step.wgt;
  loops.wgt_inner = inner.step.wgt;
  return loops;
}

}  // namespace

Status KernelRecorder::loop_begin(uint32_t extent, uint32_t dst, uint32_t src, uint32_t wgt) {
  if (extent == 0) return fail(ErrorKind::Invalid, "a loop of a kernel has no iterations");
  Node node;
  node.loop.extent = extent;
  node.loop.step = {dst, src, wgt};
  nodes_[open_.back()].loop.body.push_back(nodes_.size());
  open_.push_back(nodes_.size());
  nodes_.push_back(std::move(node));
  return {};
}

void KernelRecorder::push(const Uop& uop) {
  nodes_[open_.back()].loop.body.push_back(nodes_.size());
  Node node;
  node.uop = uop;
  nodes_.push_back(std::move(node));
}

Status KernelRecorder::loop_end() {
  if (open_.size() == 1) return fail(ErrorKind::Invalid, "a loop ends that never began");
  if (nodes_[open_.back()].loop.body.empty())
    return fail(ErrorKind::Invalid, "a loop of a kernel has no micro-op inside");
  open_.pop_back();
  return {};
}

Status KernelRecorder::unroll(size_t node, Uop base, size_t most, std::vector<Uop>& uops) const {
  if (nodes_[node].uop) {
    uops.push_back(plus(*nodes_[node].uop, base));
    if (uops.size() <= most) return {};
    return fail(ErrorKind::Capacity, "a kernel is too long to be recorded",
                fmt::format("more than {} micro-ops after unrolling the inner loops", most),
                "move loops out of the kernel");
  }
  const Loop& loop = nodes_[node].loop;
  for (uint32_t i = 0; i < loop.extent; ++i)
    for (size_t child : loop.body)
      TW_TRY_STATUS(unroll(child, plus(base, loop.step, i), most, uops));
  return {};
}

Result<Kernel> KernelRecorder::finish(const Config& config, bool portable) const {
  if (open_.size() > 1)
    return fail(ErrorKind::Invalid, fmt::format("{} loops are still open", open_.size() - 1));
  if (nodes_[0].loop.body.empty()) return fail(ErrorKind::Invalid, "a kernel has no micro-op");
  std::vector<HardwareLoop> nest;
  const std::vector<size_t>* body = &nodes_[0].loop.body;
  while (nest.size() < 2 && body->size() == 1 && !nodes_[body->front()].uop) {
    const Loop& loop = nodes_[body->front()].loop;
    if (loop.extent > 1) nest.push_back({loop.extent, loop.step});
    body = &loop.body;
  }
  Kernel kernel{op_, {}};
  // Folding can shorten what is recorded, but nothing sensible is far longer than the memory.
  const auto depth = static_cast<size_t>(config.depth(Mem::Uop));
  for (size_t node : *body) TW_TRY_STATUS(unroll(node, {}, 256 * depth, kernel.uops));
  while (nest.size() < 2) {
    const std::optional<HardwareLoop> loop = fold(kernel.uops);
    if (!loop) break;
    nest.push_back(*loop);
  }
  if (kernel.uops.size() > depth)
    return fail(
        ErrorKind::Capacity, "a kernel is larger than the micro-op memory",
        fmt::format("{} micro-ops after folding, the memory has {}", kernel.uops.size(), depth),
        "move loops out of the kernel");
  const bool gemm = std::holds_alternative<Gemm>(kernel.op);
  const Loops loops = hardware_loops(nest, gemm);
  TW_TRY_STATUS(check_indices(config, kernel.uops, loops, gemm));
  if (portable && repeats_destination(loops, kernel.uops))
    return fail(ErrorKind::Invalid, "equal destinations less than three steps apart in a kernel",
                "pipelined hardware reads the accumulator before the step before has written it",
                "put another loop inside");
  Insn insn;
  if (gemm) {
    std::get<Gemm>(kernel.op).loops = loops;
    insn.op = std::get<Gemm>(kernel.op);
  } else {
    std::get<Alu>(kernel.op).loops = loops;
    insn.op = std::get<Alu>(kernel.op);
  }
  TW_TRY_STATUS(fits(config, insn));
  return kernel;
}

}  // namespace tilewright::vta
