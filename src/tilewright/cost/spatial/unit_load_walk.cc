// Cycles of a LOAD with zeros around what is there (docs/spatial-timing.md, 3), run after run:
// zeros before the first beat, or as long as the latency of short bursts, cost nothing; many of
// them in one place keep the port waiting, and nothing is asked for meanwhile.
#include <cmath>
#include <utility>

#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {
namespace {

/// Puts a LOAD together, piece by piece in the mean.
class LoadParts {
 public:
  LoadParts(const spatial::Design& design, double zeros_at_once, double bytes_at_once,
            LoadWalk& load)
      : burst_(design.burst_bytes),
        zeros_at_once_(zeros_at_once),
        bytes_at_once_(bytes_at_once),
        load_(load) {
    load.latency = design.timing.read_latency;
    load.gap = design.timing.burst_gap;
  }

  void zeros(int64_t count) { zeros_ += int64_t(std::ceil(double(count) / zeros_at_once_)); }
  /// `among`: zeros between its bytes.
  void run(int64_t bytes, int64_t among) {
    const double of_zeros = double(among) / zeros_at_once_ / double(bytes);
    for (int64_t at = 0; at < bytes; at += burst_) {
      const auto burst = double(std::min<int64_t>(bytes - at, burst_));
      load_.parts.push_back(
          {zeros_, int64_t(std::ceil(burst / bytes_at_once_ + burst * of_zeros))});
      zeros_ = 0;
    }
  }
  void end() {
    if (zeros_ > 0) load_.parts.push_back({zeros_, 0});
  }

 private:
  const int64_t burst_;
  const double zeros_at_once_, bytes_at_once_;
  int64_t zeros_ = 0;
  LoadWalk& load_;
};

LoadWalk finished(LoadWalk& walked, LoadParts& load, double accesses) {
  load.end();
  int64_t pieces = 0;
  for (const LoadWalk::Part& part : walked.parts) pieces += part.zeros + part.burst;
  walked.accesses = accesses / double(std::max<int64_t>(1, pieces));
  return std::move(walked);
}

/// Cycles until the last piece, from the first request on.
int64_t cycles_of(const LoadWalk& load) {
  int64_t next = 0, offered = load.latency;
  for (const LoadWalk::Part& part : load.parts) {
    next += part.zeros;
    if (part.burst == 0) continue;
    next = std::max(next, offered) + part.burst;
    // The next burst is asked for when this one is offered.
    offered = std::max(offered + load.latency, next + load.gap);
  }
  return next;
}

}  // namespace

int64_t SpatialUnit::zeros_before(int tensor, size_t dim, const SpatialBox& box) const {
  const SpatialDim& d = layer.tensors[tensor].dims[dim];
  int64_t low = -d.begin;
  for (const SpatialTerm& term : d.terms) low += term.stride * box.start[term.loop];
  return low < 0 ? ceil_div(-low, skips(tensor, dim, box.size)) : 0;
}

double SpatialUnit::load_cycles_followed(int factor, const SpatialTransfer& t,
                                         const SpatialBox& box) const {
  if (t.rows == 0 || t.padding == 0 || t.biases > 0) return load_cycles(factor, t, box.size);
  return double(design.timing.load_overhead + cycles_of(load_walk(factor, t, box)));
}

LoadWalk SpatialUnit::load_walk(int factor, const SpatialTransfer& t, const SpatialBox& box) const {
  LoadWalk walked;
  LoadParts load(design, zeros_at_once(factor, box.size), bytes_at_once(factor, t, box.size),
                 walked);
  if (t.rows == 0 || t.padding == 0) {
    if (t.biases > 0) walked.parts.push_back({0, t.biases});
    for (int64_t row = 0; row < t.rows; ++row) load.run(t.run - kBiasBytes * t.biases, 0);
    if (t.rows == 0) load.zeros(t.padding);
    return finished(walked, load, write_accesses(factor, t, box.size));
  }
  const int tensor = factor ? choice.second() : choice.first;
  const SpatialTensor& of = layer.tensors[tensor];
  // Elements of all dimensions behind each; those from `in_run` on are a run.
  std::array<int64_t, kSpatialDims + 1> behind{};
  std::array<SpatialSpan, kSpatialDims> spans;
  behind[of.dims.size()] = 1;
  size_t in_run = of.dims.size();
  int64_t lead = 0, run = 1;
  for (size_t i = of.dims.size(); i-- > 0;) {
    spans[i] = span(tensor, i, box);
    behind[i] = behind[i + 1] * spans[i].all;
    if (run == t.run || in_run != i + 1) continue;
    in_run = i;
    run *= spans[i].there;
    lead += zeros_before(tensor, i, box) * behind[i + 1];
  }
  const bool inside = t.stretch > 0 && !gathers_in(factor, box.size) && !piece(factor, box.size);
  const int64_t among = inside ? 0 : behind[in_run] - t.run - lead;
  const auto walk = [&](const auto& self, size_t dim) -> void {
    if (dim == in_run) {
      if (!inside) load.zeros(lead);
      return load.run(t.run, among);
    }
    const int64_t before = zeros_before(tensor, dim, box);
    if (before > 0) load.zeros(before * behind[dim + 1]);
    for (int64_t i = 0; i < spans[dim].there; ++i) self(self, dim + 1);
    const int64_t after = spans[dim].all - spans[dim].there - before;
    if (after > 0) load.zeros(after * behind[dim + 1]);
  };
  walk(walk, 0);
  return finished(walked, load, write_accesses(factor, t, box.size));
}

}  // namespace tilewright::cost
