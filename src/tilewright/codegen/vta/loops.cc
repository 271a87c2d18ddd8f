#include "tilewright/codegen/vta/loops.h"

#include <algorithm>

#include "tilewright/codegen/vta/vta.h"

namespace tilewright::codegen::vta_code {
namespace {

constexpr int64_t kMaxIterations = 16383;  // 14-bit fields
constexpr int kSpacing = 3;                // steps between equal destinations

/// Values that micro-ops add to one form, in their order.
std::vector<int64_t> offsets(const ConcreteNest& nest, size_t form,
                             const std::vector<size_t>& loops) {
  std::vector<int64_t> out{0};
  for (const size_t loop : loops) {
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(nest.extents[loop]));
    for (const int64_t base : out)
      for (int64_t i = 0; i < nest.extents[loop]; ++i)
        next.push_back(base + i * nest.forms[form].k[loop]);
    out = std::move(next);
  }
  return out;
}

int64_t extent(const ConcreteNest& nest, int loop) {
  return loop < 0 ? 1 : nest.extents[static_cast<size_t>(loop)];
}
int64_t step(const ConcreteNest& nest, size_t form, int loop) {
  return loop < 0 ? 0 : nest.forms[form].k[static_cast<size_t>(loop)];
}

std::vector<int64_t> shape_of(const StepNest& steps) {
  std::vector<int64_t> key{steps.gemm, steps.replace, steps.first_of};
  for (size_t i = 0; i < steps.nest.size(); ++i) {
    key.push_back(steps.nest.extents[i]);
    for (const Form& f : steps.nest.forms) key.push_back(f.k[i]);
  }
  return key;
}

}  // namespace

bool StepLoops::fits_hardware(const StepNest& steps, size_t loop) const {
  const ConcreteNest& n = steps.nest;
  if (n.extents[loop] > kMaxIterations) return false;
  const int64_t acc = config_.depth(vta::Mem::Acc);
  const int64_t limits[] = {acc, steps.gemm ? config_.depth(vta::Mem::Inp) : acc,
                            config_.depth(vta::Mem::Wgt)};
  for (size_t f = 0; f < n.forms.size(); ++f)
    if (n.forms[f].k[loop] < 0 || n.forms[f].k[loop] >= limits[f]) return false;
  return true;
}

/// Checks each step against the next two. What follows a step depends on its
/// micro-op and on whether the loops have two more iterations, so a few
/// iterations stand for all.
bool StepLoops::spaced(const ConcreteNest& nest, const Choice& choice) const {
  const std::vector<int64_t> uops = offsets(nest, 0, choice.unrolled);
  const int64_t u = static_cast<int64_t>(uops.size());
  const int64_t outer = extent(nest, choice.outer), inner = extent(nest, choice.inner);
  const int64_t total = outer * inner * u;
  auto destination = [&](int64_t t) {
    return uops[static_cast<size_t>(t % u)] + t / u % inner * step(nest, 0, choice.inner) +
           t / u / inner * step(nest, 0, choice.outer);
  };
  for (int64_t o = 0; o < std::min<int64_t>(outer, kSpacing); ++o)
    for (int64_t i = 0; i < inner; i = i == 2 ? std::max<int64_t>(3, inner - 3) : i + 1)
      for (int64_t k = 0; k < u; ++k) {
        const int64_t t = (o * inner + i) * u + k;
        for (int64_t d = 1; d < kSpacing && t + d < total; ++d)
          if (destination(t) == destination(t + d)) return false;
      }
  return true;
}

bool StepLoops::try_pair(const StepNest& steps, int outer, int inner, Choice& out) const {
  out = Choice{outer, inner, {}, -1};
  for (int i = 0; i < static_cast<int>(steps.nest.size()); ++i)
    if (i != outer && i != inner) out.unrolled.push_back(static_cast<size_t>(i));
  // Loops that leave the destination alone first: then equal ones are far
  // apart.
  std::stable_sort(out.unrolled.begin(), out.unrolled.end(), [&](size_t a, size_t b) {
    return (steps.nest.forms[0].k[a] == 0) > (steps.nest.forms[0].k[b] == 0);
  });
  return spaced(steps.nest, out);
}

/// The pair of hardware loops of least cost: micro-ops to load, and the fill of
/// pipelines that drain at each iteration of the inner loop.
StepLoops::Choice StepLoops::search(const StepNest& steps) const {
  const ConcreteNest& nest = steps.nest;
  const int n = static_cast<int>(nest.size());
  struct Candidate {
    double cost;
    int outer, inner;
  };
  std::vector<Candidate> candidates;
  for (int outer = -1; outer < n; ++outer)
    for (int inner = -1; inner < n; ++inner) {
      if (outer == inner && outer >= 0) continue;
      if (steps.replace && outer != steps.first_of) continue;
      if (outer >= 0 && !fits_hardware(steps, static_cast<size_t>(outer))) continue;
      if (inner >= 0 && !fits_hardware(steps, static_cast<size_t>(inner))) continue;
      const int64_t drains = extent(nest, outer) * extent(nest, inner);
      const int64_t uops = nest.iterations() / drains;
      if (uops > config_.most_uops()) continue;
      candidates.push_back(
          {static_cast<double>(uops) + static_cast<double>(drains) * config_.timing.loop_fill,
           outer, inner});
    }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.cost < b.cost; });
  Choice out;
  for (const Candidate& c : candidates)
    if (try_pair(steps, c.outer, c.inner, out)) return out;
  // Nothing fits. Steps of equal destinations go to different instructions
  // first.
  out = Choice{};
  for (int i = 0; i < n; ++i) {
    const bool better =
        out.split < 0 || std::pair(step(nest, 0, i) != 0, extent(nest, i)) <
                             std::pair(step(nest, 0, out.split) != 0, extent(nest, out.split));
    if (better && i != steps.first_of) out.split = i;
  }
  if (out.split < 0) out.split = 0;
  return out;
}

const StepLoops::Choice& StepLoops::choose(const StepNest& steps) {
  std::vector<int64_t> key = shape_of(steps);
  const auto it = known_.find(key);
  if (it != known_.end()) return it->second;
  return known_.emplace(std::move(key), search(steps)).first->second;
}

Status StepLoops::issue(const StepNest& steps, const Choice& choice, const Issue& sink) const {
  const ConcreteNest& nest = steps.nest;
  std::vector<std::vector<int64_t>> values;
  for (size_t f = 0; f < nest.forms.size(); ++f)
    values.push_back(offsets(nest, f, choice.unrolled));
  std::vector<vta::Uop> uops(values[0].size());
  for (size_t k = 0; k < uops.size(); ++k) {
    auto at = [&](size_t f) {
      return f < values.size() ? static_cast<uint32_t>(nest.forms[f].c + values[f][k]) : 0;
    };
    uops[k] = {at(0), at(1), at(2)};
  }
  auto factor = [&](size_t f, int loop) {
    return f < nest.forms.size() ? static_cast<uint32_t>(step(nest, f, loop)) : 0;
  };
  vta::Loops loops;
  loops.outer = static_cast<uint32_t>(extent(nest, choice.outer));
  loops.inner = static_cast<uint32_t>(extent(nest, choice.inner));
  loops.dst_outer = factor(0, choice.outer);
  loops.dst_inner = factor(0, choice.inner);
  loops.src_outer = factor(1, choice.outer);
  loops.src_inner = factor(1, choice.inner);
  loops.wgt_outer = factor(2, choice.outer);
  loops.wgt_inner = factor(2, choice.inner);
  return sink(std::move(uops), loops, steps.replace);
}

Status StepLoops::run(StepNest steps, const Issue& sink) {
  if (!steps.replace) merge_loops(steps.nest);
  point_forwards(steps.nest);
  const Choice choice = choose(steps);
  if (choice.split < 0) return issue(steps, choice, sink);
  const size_t split = static_cast<size_t>(choice.split);
  for (int64_t i = 0; i < steps.nest.extents[split]; ++i) {
    StepNest part = steps;
    part.nest.fix(split, i);
    if (part.first_of == choice.split) {
      part.first_of = -1;
      part.replace = i == 0;
    } else if (part.first_of > choice.split) {
      --part.first_of;
    }
    TW_TRY_STATUS(run(std::move(part), sink));
  }
  return {};
}

}  // namespace tilewright::codegen::vta_code
