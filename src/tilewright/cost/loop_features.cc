#include "tilewright/cost/loop_features.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cost {
namespace {

constexpr size_t kSlots = 4;  ///< accesses of the main block that get features of their own
/// Sizes between registers and memory. units: bytes.
constexpr double kCapacities[] = {512, 4096, 16384, 32768, 131072, 524288, 2097152, 16777216};
/// Iterations inside a loop at which accesses are looked at.
constexpr double kIterations[] = {1, 8, 64, 512, 4096, 32768, 262144};
constexpr ForKind kKinds[] = {ForKind::Serial, ForKind::Parallel, ForKind::Vector, ForKind::Unroll};

double log2_of(double x) { return std::log2(1 + std::abs(x)); }

double touched(const NestFact& nest, size_t depth) {
  double sum = 0;
  for (const AccessFact& a : nest.accesses) sum += a.in_registers ? 0 : a.touched[depth];
  return sum;
}

/// The outermost depth whose one run touches at most `capacity` bytes; the innermost if none does.
size_t fitting_depth(const NestFact& nest, double capacity) {
  size_t depth = 0;
  while (depth < nest.loops.size() && touched(nest, depth) > capacity) ++depth;
  return depth;
}

/// Bytes fetched across a cache that keeps what is inside `depth`: once per run of the loops around
/// that move the access or have one inside them that does.
double moved(const NestFact& nest, const AccessFact& access, size_t depth) {
  double runs = 1;
  bool moves = false;
  for (size_t d = depth; d-- > 0;) {
    moves |= access.strides[d] != 0;
    if (moves) runs *= static_cast<double>(nest.loops[d].extent);
  }
  return runs * access.touched[depth];
}

void add_capacities(const NestFact& nest, std::vector<double>& out) {
  for (const double capacity : kCapacities) {
    const size_t depth = fitting_depth(nest, capacity);
    double traffic = 0;
    for (const AccessFact& a : nest.accesses)
      if (!a.in_registers) traffic += moved(nest, a, depth);
    out.push_back(log2_of(nest.instances(depth)));
    out.push_back(log2_of(traffic));
  }
}

void add_slot(const NestFact& nest, const AccessFact& access, std::vector<double>& out) {
  const size_t loops = nest.loops.size();
  size_t depth = loops;
  for (const double iterations : kIterations) {
    while (depth > 0 && nest.instances(depth - 1) <= iterations) --depth;
    out.push_back(log2_of(access.touched[depth]));
    out.push_back(log2_of(nest.instances(depth) * access.count / access.touched[depth]));
    out.push_back(log2_of(moved(nest, access, depth)));
  }
  double vector_stride = 0, inner_stride = loops > 0 ? access.strides[loops - 1] : 0;
  double unrolled = 1, lanes = 1;  // distinct elements an unrolled, vectorised body touches
  for (size_t d = 0; d < loops; ++d) {
    const LoopFact& loop = nest.loops[d];
    if (loop.kind == ForKind::Vector) vector_stride = access.strides[d];
    if (access.strides[d] == 0) continue;
    if (loop.kind == ForKind::Vector) lanes *= static_cast<double>(loop.extent);
    if (loop.kind == ForKind::Unroll) unrolled *= static_cast<double>(loop.extent);
  }
  for (const double v : {vector_stride, inner_stride, unrolled, lanes}) out.push_back(log2_of(v));
  out.push_back(access.in_registers ? 1 : 0);
  out.push_back(access.writes ? 1 : 0);
}
constexpr size_t kPerSlot = 3 * std::size(kIterations) + 6;

void add_annotations(const NestFact& nest, std::vector<double>& out) {
  for (const ForKind kind : kKinds) {
    double extent = 1;
    for (const LoopFact& loop : nest.loops)
      if (loop.kind == kind) extent *= static_cast<double>(loop.extent);
    out.push_back(log2_of(extent));
  }
  double forks = 1, around = 1, innermost = 1, steps = 1;
  bool parallel = false, serial = false;
  for (const LoopFact& loop : nest.loops) {
    if (loop.kind == ForKind::Parallel && !parallel) parallel = true, forks = around;
    around *= static_cast<double>(loop.extent);
    if (loop.kind == ForKind::Serial || loop.kind == ForKind::Parallel)
      steps *= static_cast<double>(loop.extent);
    serial |= loop.kind == ForKind::Serial;
    if (loop.kind == ForKind::Serial && loop.extent > 1)
      innermost = static_cast<double>(loop.extent);
  }
  out.push_back(parallel ? log2_of(forks) : 0);
  out.push_back(serial ? log2_of(innermost) : 0);
  out.push_back(log2_of(steps));
  const LoopFact last = nest.loops.empty() ? LoopFact{} : nest.loops.back();
  out.push_back(log2_of(static_cast<double>(last.extent)));
  out.push_back(last.kind == ForKind::Vector ? 1 : 0);
  out.push_back(static_cast<double>(nest.loops.size()));
  out.push_back(log2_of(nest.operations));
}
constexpr size_t kAnnotations = std::size(kKinds) + 7;

double work(const NestFact& nest) { return nest.instances() * nest.operations; }

/// Loop steps that execute something: iterations of all loops but vectors.
double steps_of(const NestFact& nest) {
  double steps = 1;
  for (const LoopFact& loop : nest.loops)
    if (loop.kind != ForKind::Vector) steps *= static_cast<double>(loop.extent);
  return steps;
}

void add_rest(const std::vector<NestFact>& nests, const NestFact* main, std::vector<double>& out) {
  double operations = 0, steps = 0, bytes = 0;
  for (const NestFact& nest : nests) {
    if (&nest == main) continue;
    operations += work(nest), steps += steps_of(nest);
    for (const AccessFact& a : nest.accesses)
      bytes += a.in_registers ? 0 : moved(nest, a, nest.loops.size());
  }
  out.push_back(static_cast<double>(nests.size()));
  for (const double v : {operations, steps, bytes}) out.push_back(log2_of(v));
}
constexpr size_t kRest = 4;

}  // namespace

size_t loop_feature_count() {
  return 2 * std::size(kCapacities) + kSlots * kPerSlot + kAnnotations + kRest;
}

std::vector<double> loop_features(const std::vector<NestFact>& nests) {
  std::vector<double> out;
  out.reserve(loop_feature_count());
  const auto most =
      std::max_element(nests.begin(), nests.end(),
                       [](const NestFact& a, const NestFact& b) { return work(a) < work(b); });
  const NestFact none;
  const NestFact& main = most == nests.end() ? none : *most;
  add_annotations(main, out);
  add_capacities(main, out);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (slot < main.accesses.size())
      add_slot(main, main.accesses[slot], out);
    else
      out.resize(out.size() + kPerSlot, 0.0);
  }
  add_rest(nests, &main, out);
  return out;
}

std::vector<double> loop_features(const Func& scheduled) {
  return loop_features(nest_facts(scheduled));
}

}  // namespace tilewright::cost
