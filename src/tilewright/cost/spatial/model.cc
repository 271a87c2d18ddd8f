#include "tilewright/cost/spatial/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/cost/spatial/score.h"

namespace tilewright::cost {
namespace {

/// By which sums may be off that are added up in another order than those of a timeline.
constexpr double kRounding = 1e-9;

std::string kib(int64_t bytes) {
  const int64_t tenths = ceil_div(bytes * 10, 1024);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " KiB";
}

std::string role(const SpatialUnit& unit, int tensor) { return unit.layer.tensors[tensor].name; }

SpatialBinds what_binds(const SpatialCost& cost, double fetch) {
  const double most = std::max({cost.compute, cost.load, cost.store, fetch});
  if (most == cost.load) return SpatialBinds::Load;
  if (most == cost.store) return SpatialBinds::Store;
  if (most == fetch) return SpatialBinds::Fetch;
  return cost.compute > 1.1 * cost.fed ? SpatialBinds::Scratchpad : SpatialBinds::Steps;
}

/// Positions of a dimension that some iteration reads: strides may leave some out.
int64_t needed(const SpatialLayer& layer, const SpatialDim& dim) {
  std::vector<bool> read(size_t(dim.extent));
  auto descend = [&](auto& self, size_t at, int64_t index) -> void {
    if (at == dim.terms.size()) {
      if (index >= 0 && index < dim.extent) read[size_t(index)] = true;
      return;
    }
    const SpatialTerm& term = dim.terms[at];
    for (int64_t i = 0; i < layer.loops[term.loop].extent; ++i)
      self(self, at + 1, index + i * term.stride);
  };
  descend(descend, 0, -dim.begin);
  return std::count(read.begin(), read.end(), true);
}

/// Bytes of a tensor that some iteration reads or writes.
double needed_bytes(const SpatialLayer& layer, int tensor) {
  double bytes = double(layer.tensors[tensor].element_bytes);
  for (const SpatialDim& dim : layer.tensors[tensor].dims) bytes *= double(needed(layer, dim));
  return bytes;
}

}  // namespace

std::string_view name(SpatialBinds binds) {
  static constexpr std::string_view kNames[] = {"steps", "scratchpad", "load", "store", "fetch"};
  return kNames[static_cast<int>(binds)];
}

std::vector<std::string> misfits(const spatial::Design& design, const SpatialLayer& layer,
                                 const SpatialMapping& mapping) {
  const SpatialUnit unit(design, layer, mapping.choice);
  std::vector<std::string> reasons;
  int64_t spad = 0;
  std::string each;
  for (int tensor : {0, 1}) {
    const int64_t bytes = mapping.copies[tensor] * unit.buffer_bytes(tensor, mapping.tile);
    spad += bytes;
    each += (each.empty() ? "" : ", ") + role(unit, tensor) + " " +
            std::to_string(mapping.copies[tensor]) + " x " + kib(bytes / mapping.copies[tensor]);
  }
  if (spad > design.spad_bytes())
    reasons.push_back("scratchpad: " + kib(spad) + " of " + std::to_string(design.spad_kb) +
                      " KiB (" + each + ")");
  const int64_t sums = 4 * mapping.copies[kSpatialResult] * unit.sums_per_part(mapping.tile);
  const int64_t stay = unit.stationary_per_part(mapping.tile);
  if ((sums + stay) * unit.parts > design.local_bytes())
    reasons.push_back("private memory: " + kib((sums + stay) * unit.parts) + " of " +
                      std::to_string(design.local_kb) + " KiB (result " + kib(sums * unit.parts) +
                      ", " + role(unit, mapping.choice.second()) + " " + kib(stay * unit.parts) +
                      ")");
  int inner = 0;
  for (int loop = 0; loop < unit.loops; ++loop)
    inner += ceil_div(mapping.tile[loop], unit.lanes[loop]) > 1;
  if (inner > 6)
    reasons.push_back("a COMPUTE has six loops, the tile has " + std::to_string(inner));
  if (const char* why = unit.refuses(mapping.tile)) reasons.emplace_back(why);
  return reasons;
}

SpatialEvaluator::SpatialEvaluator(const spatial::Design& design, const SpatialLayer& layer,
                                   const SpatialChoice& choice)
    : unit_(design, layer, choice) {}

size_t SpatialEvaluator::Hash::operator()(const SpatialSizes& sizes) const {
  uint64_t hash = 1469598103934665603u;
  for (int64_t size : sizes)
    hash = (hash ^ uint64_t(size)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
  return hash;
}

bool SpatialEvaluator::fits(const SpatialMapping& mapping) const {
  std::array<int64_t, kSpatialTensors> places;
  for (int factor : {0, 1})
    places[factor] = mapping.copies[factor] * unit_.buffer_bytes(factor, mapping.tile);
  places[kSpatialResult] = mapping.copies[kSpatialResult] * unit_.sums_per_part(mapping.tile);
  return fits_in(mapping.tile, places);
}

bool SpatialEvaluator::fits_in(const SpatialSizes& tile,
                               const std::array<int64_t, kSpatialTensors>& places) const {
  const spatial::Design& d = unit_.design;
  if (places[0] + places[1] > d.spad_bytes()) return false;
  const int64_t sums = 4 * places[kSpatialResult];
  if ((sums + unit_.stationary_per_part(tile)) * unit_.parts > d.local_bytes()) return false;
  int inner = 0;
  for (int loop = 0; loop < unit_.loops; ++loop) inner += tile[loop] > unit_.lanes[loop];
  return inner <= 6 && unit_.refuses(tile) == nullptr;
}

const SpatialEvaluator::Spans& SpatialEvaluator::spans(int tensor, size_t dim,
                                                       const SpatialSizes& tile) {
  const SpatialDim& d = unit_.layer.tensors[tensor].dims[dim];
  int64_t key = 0;
  for (const SpatialTerm& term : d.terms) key = key << 31 | tile[term.loop];
  Spans& found = spans_[tensor][dim][key];
  if (!found.empty()) return found;
  SpatialBox box;
  auto descend = [&](auto& self, size_t at) -> void {
    if (at < d.terms.size()) {
      const int loop = d.terms[at].loop;
      const int64_t extent = unit_.layer.loops[loop].extent;
      for (int64_t start = 0; start < extent; start += tile[loop]) {
        box.start[loop] = start;
        box.size[loop] = std::min(tile[loop], extent - start);
        self(self, at + 1);
      }
      return;
    }
    const SpatialSpan span = unit_.span(tensor, dim, box);
    for (auto& [other, count] : found)
      if (other == span) return void(++count);
    found.emplace_back(span, 1);
  };
  descend(descend, 0);
  return found;
}

SpatialMoved SpatialEvaluator::count(int tensor, const SpatialSizes& tile) {
  const size_t dims = unit_.layer.tensors[tensor].dims.size();
  const int factor = tensor == unit_.choice.first ? 0 : 1;
  // Only the lanes of the tile matter to its cycles: those of the last one may take fewer.
  SpatialSizes last = tile;
  if (tensor != kSpatialResult) {
    const int loop = unit_.lane_loop[factor];
    last[loop] = SpatialTrips(unit_.layer.loops[loop].extent, tile[loop]).last;
  }
  std::array<const Spans*, kSpatialDims> by_dim{};
  for (size_t dim = 0; dim < dims; ++dim) by_dim[dim] = &spans(tensor, dim, tile);
  std::array<SpatialSpan, kSpatialDims> box;
  SpatialMoved all;
  auto descend = [&](auto& self, size_t dim, int64_t times) -> void {
    if (dim < dims) {
      for (const auto& [span, count] : *by_dim[dim]) {
        box[dim] = span;
        self(self, dim + 1, times * count);
      }
      return;
    }
    const SpatialTransfer moved = unit_.transfer(tensor, box.data());
    all.traffic.transfers += times;
    all.traffic.bytes += times * moved.bytes();
    all.traffic.bursts += moved.rows ? times * unit_.bursts(moved) : 0;
    all.traffic.padding += times * moved.padding;
    all.cycles +=
        double(times) * (tensor == kSpatialResult ? double(unit_.store_cycles(moved))
                                                  : unit_.load_cycles(factor, moved, last));
  };
  descend(descend, 0, 1);
  if (tensor == kSpatialResult) return all;
  if (unit_.layer.biased && unit_.layer.tensors[tensor].packed) add_biases(tensor, tile, all);
  SpatialBox first;
  first.size = tile;
  all.first = unit_.load_cycles(factor, unit_.transfer(tensor, first), tile);
  return all;
}

/// Tiles at the beginning of the loops summed over have biases in front.
void SpatialEvaluator::add_biases(int tensor, const SpatialSizes& tile, SpatialMoved& all) {
  const SpatialUnit& u = unit_;
  const int factor = tensor == u.choice.first ? 0 : 1;
  SpatialBox box;
  box.size = tile;
  auto descend = [&](auto& self, int loop, int64_t times) -> void {
    if (loop < u.loops) {
      const SpatialTrips trips(u.layer.loops[loop].extent, tile[loop]);
      if (!u.in(u.moves[tensor], loop) || u.layer.loops[loop].reduces || trips.count == 1)
        return self(self, loop + 1, times);
      self(self, loop + 1, times * (trips.count - 1));
      box.size[loop] = trips.last;
      self(self, loop + 1, times);
      box.size[loop] = tile[loop];
      return;
    }
    const SpatialTransfer with = u.transfer(tensor, box);
    SpatialTransfer without = with;
    without.run -= SpatialUnit::kBiasBytes * with.biases;
    without.biases = 0;
    all.traffic.bytes += times * (with.bytes() - without.bytes());
    all.traffic.bursts += times * (u.bursts(with) - u.bursts(without));
    all.cycles += double(times) * (u.load_cycles(factor, with, box.size) -
                                   u.load_cycles(factor, without, box.size));
  };
  descend(descend, 0, 1);
}

const SpatialMoved& SpatialEvaluator::moved(int tensor, const SpatialSizes& tile) {
  SpatialSizes key{};
  for (int loop = 0; loop < unit_.loops; ++loop)
    if (unit_.in(unit_.moves[tensor], loop)) key[loop] = tile[loop];
  auto*& latest = latest_[tensor];
  if (latest && latest->first == key) return latest->second;
  auto found = memo_[tensor].find(key);
  if (found == memo_[tensor].end()) found = memo_[tensor].emplace(key, count(tensor, tile)).first;
  latest = &*found;
  return latest->second;
}

int64_t SpatialEvaluator::repeats(int tensor, const SpatialMapping& mapping) const {
  SpatialSizes trips{};
  for (int loop = 0; loop < unit_.loops; ++loop)
    trips[loop] = ceil_div(unit_.layer.loops[loop].extent, mapping.tile[loop]);
  return cost::repeats(unit_, tensor, mapping.order.data(), trips);
}

SpatialTileCosts& SpatialEvaluator::costs_of(const SpatialSizes& tile) {
  if (!costs_ || costs_->tile() != tile) costs_.emplace(unit_, tile, SpatialRows::Mean);
  return *costs_;
}

SpatialTimeline SpatialEvaluator::mean_times(const SpatialMapping& mapping) {
  return timeline(unit_, mapping, costs_of(mapping.tile));
}

SpatialWork SpatialEvaluator::work(const SpatialSizes& tile) const {
  const SpatialUnit& u = unit_;
  SpatialWork work;
  std::array<int64_t, 2> reads{1, 1};
  for (int loop = 0; loop < u.loops; ++loop) {
    const SpatialTrips trips(u.layer.loops[loop].extent, tile[loop]);
    const int64_t blocks = trips.blocks(u.lanes[loop]);
    work.steps *= blocks;
    work.computes *= trips.count;
    for (int f : {0, 1}) {
      const bool by_block = f == 1 && u.stationary;
      const bool counts = !by_block || u.in(u.block_loops | u.tap_loops, loop);
      reads[f] *= loop == u.lane_loop[f] ? trips.lane_bytes(u.lanes[loop])
                                         : (counts ? blocks : trips.count);
    }
  }
  if (u.stationary) reads[1] *= u.design.rows;
  for (int f : {0, 1}) {
    const int tensor = f ? u.choice.second() : u.choice.first;
    work.spad_reads[tensor] = reads[f] * (f == 1 && u.stationary ? 1 : u.fetches(f));
  }
  return work;
}

SpatialEnergy SpatialEvaluator::energy(const SpatialSizes& tile) {
  const SpatialWork work = this->work(tile);
  SpatialEnergy energy;
  energy.all =
      rough_energy(unit_, double(work.steps), double(work.spad_reads[0] + work.spad_reads[1]), 0);
  for (int tensor : {0, 1}) {
    const SpatialTraffic& once = moved(tensor, tile).traffic;
    energy.loads[tensor] =
        rough_energy(unit_, 0, double(once.bytes + once.padding), double(once.bytes));
  }
  return energy;
}

double SpatialEvaluator::energy(const SpatialMapping& mapping) {
  return energy(mapping.tile).of({repeats(0, mapping), repeats(1, mapping)});
}

/// Steps with as many lanes as there are, and all that is needed loaded once.
double SpatialEvaluator::least_energy() const {
  const SpatialUnit& u = unit_;
  double steps = 1, dram = 0;
  std::array<double, 2> reads{1, 1};
  for (int loop = 0; loop < u.loops; ++loop) {
    const int64_t extent = u.layer.loops[loop].extent;
    const auto blocks = double(ceil_div(extent, u.lanes[loop]));
    steps *= blocks;
    for (int f : {0, 1}) {
      const bool by_block = f == 1 && u.stationary;
      if (loop == u.lane_loop[f])
        reads[f] *= double(extent);
      else if (!by_block || u.in(u.block_loops | u.tap_loops, loop))
        reads[f] *= blocks;
    }
  }
  for (int tensor : {0, 1}) dram += needed_bytes(u.layer, tensor);
  return rough_energy(u, steps, reads[0] * double(u.fetches(0)) + reads[1] + dram, dram);
}

SpatialCost SpatialEvaluator::cost(const SpatialMapping& mapping) {
  const SpatialUnit& u = unit_;
  SpatialCost cost;
  const SpatialWork work = this->work(mapping.tile);
  cost.steps = work.steps;
  cost.computes = work.computes;
  cost.spad_reads = work.spad_reads;
  for (int tensor = 0; tensor < kSpatialTensors; ++tensor) {
    const SpatialMoved& once = moved(tensor, mapping.tile);
    const int64_t times = repeats(tensor, mapping);
    const SpatialTraffic& t = once.traffic;
    cost.dram[tensor] = {t.transfers * times, t.bytes * times, t.bursts * times, t.padding * times};
    cost.instructions += cost.dram[tensor].transfers;
  }
  cost.instructions += cost.computes;
  SpatialTileCosts costs(u, mapping.tile, SpatialRows::Followed);
  const SpatialTimeline time = timeline(u, mapping, costs);
  cost.cycles = time.end;
  cost.load = time.load;
  cost.compute = time.compute;
  cost.store = time.store;
  cost.fed =
      double(cost.steps) + double(cost.computes * (u.design.timing.compute_overhead + 1 + u.fill));
  cost.binds = what_binds(cost, double(cost.instructions * u.fetch_cycles()));
  return cost;
}

/// Cycles before the first LOAD begins to work.
double SpatialEvaluator::before_loads() const {
  return unit_.design.timing.read_latency + double(unit_.fetch_cycles());
}

bool SpatialEvaluator::computes_take(const SpatialSizes& tile, double cycles) {
  SpatialTileCosts& costs = costs_of(tile);
  const double wanted = cycles * (1 + kRounding);
  if (costs.least_computes(unit_) >= wanted) return true;
  return costs.all_computes(unit_) + costs.last_store(unit_) >= wanted;
}

double SpatialEvaluator::cycles_below(const SpatialMapping& mapping, double limit) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  SpatialTileCosts& costs = costs_of(mapping.tile);
  const double computes = costs.all_computes(unit_) + costs.last_store(unit_);
  // A buffer without a copy is loaded or stored while no COMPUTE works.
  double loads = 0, apart = before_loads(), stores = 0;
  for (int f : {0, 1}) {
    const int tensor = f ? unit_.choice.second() : unit_.choice.first;
    const double all = costs.all_loads(unit_, f) * double(repeats(tensor, mapping));
    const double first = costs.first_load(unit_, f);
    loads += all;
    apart += mapping.copies[tensor] == 1 ? all : first;
    stores += first;
  }
  if (mapping.copies[kSpatialResult] == 1)
    stores += before_loads() + costs.all_stores(unit_) + costs.all_computes(unit_);
  const SpatialPatience patience{limit * (1 + kRounding), loads, computes};
  if (std::max({before_loads() + loads, apart + computes, stores}) >= patience.limit) return kNever;
  return timeline(unit_, mapping, costs, patience).end;
}

double SpatialEvaluator::least_overhead() const {
  const spatial::Design& d = unit_.design;
  return double(d.timing.compute_overhead + unit_.fill + (unit_.stationary ? d.rows : 0));
}

double SpatialEvaluator::least(
    double steps, double computes,
    const std::array<const SpatialMoved*, kSpatialTensors>& moved) const {
  const double before = before_computes(*moved[0], *moved[1]);
  return std::max({before + steps + computes * least_overhead(),
                   moved[0]->cycles + moved[1]->cycles, before + moved[kSpatialResult]->cycles});
}

double SpatialEvaluator::least(const SpatialSizes& tile, const int* order) {
  double steps = 1, computes = 1;
  for (int loop = 0; loop < unit_.loops; ++loop) {
    const SpatialTrips trips(unit_.layer.loops[loop].extent, tile[loop]);
    steps *= double(trips.blocks(unit_.lanes[loop]));
    computes *= double(trips.count);
  }
  std::array<const SpatialMoved*, kSpatialTensors> once;
  for (int tensor = 0; tensor < kSpatialTensors; ++tensor) once[tensor] = &moved(tensor, tile);
  const double least = this->least(steps, computes, once);
  if (order == nullptr) return least;
  SpatialMapping mapping;
  mapping.tile = tile;
  std::copy(order, order + unit_.loops, mapping.order.begin());
  double loads = 0;
  for (int tensor : {0, 1}) loads += once[tensor]->cycles * double(repeats(tensor, mapping));
  return std::max(least, loads);
}

SpatialCost evaluate(const spatial::Design& design, const SpatialLayer& layer,
                     const SpatialMapping& mapping) {
  return SpatialEvaluator(design, layer, mapping.choice).cost(mapping);
}

double lower_bound(const spatial::Design& design, const SpatialLayer& layer) {
  double steps = std::numeric_limits<double>::infinity();
  for (const SpatialChoice& choice : choices(design, layer)) {
    const SpatialUnit unit(design, layer, choice);
    double product = 1;
    SpatialSizes whole{};
    for (int loop = 0; loop < unit.loops; ++loop) {
      whole[loop] = layer.loops[loop].extent;
      product *= double(ceil_div(whole[loop], unit.lanes[loop]));
    }
    // Rows that each unit fetches for itself cannot be kept from step to step.
    double accesses = 0;
    for (int f = 0; f < (unit.stationary ? 1 : 2); ++f) {
      const int lane = unit.lane_loop[f];
      const double blocks = double(ceil_div(whole[lane], unit.lanes[lane]));
      if (unit.fetches(f) > 1)
        accesses +=
            product / blocks * double(whole[lane] * unit.fetches(f)) / double(unit.line_bytes());
    }
    steps = std::min(steps, std::max(product, accesses));
  }
  double most = steps;
  for (int tensor = 0; tensor < kSpatialTensors; ++tensor)
    most = std::max(most, needed_bytes(layer, tensor) / design.bus_bytes);
  return most;
}

}  // namespace tilewright::cost
