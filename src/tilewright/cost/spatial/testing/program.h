// The program of a mapping, tile by tile, for the cycle simulator: rows are found by walking them,
// tokens from who used which copy of a buffer last.
#pragma once

#include "tilewright/accel/spatial/sim/machine.h"
#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {
namespace program_detail {

using spatial::Queue;
using spatial::SimInstruction;
using spatial::SimLoop;

struct Range {
  int64_t low = 0, high = 0, step = 1;
};

inline Range range_of(const SpatialDim& dim, const SpatialBox& box) {
  Range range{-dim.begin, 1 - dim.begin};
  for (const SpatialTerm& term : dim.terms) {
    range.low += term.stride * box.start[term.loop];
    range.high += term.stride * (box.start[term.loop] + box.size[term.loop] - 1);
  }
  return range;
}

/// Walks every innermost row of the box; rows whose addresses touch are one run.
inline void find_runs(const SpatialTensor& tensor, const SpatialBox& box, int lane_dim,
                      SimInstruction& out) {
  std::vector<Range> ranges;
  int64_t total = tensor.element_bytes, moved = 0;
  for (const SpatialDim& dim : tensor.dims) {
    Range range = range_of(dim, box);
    // With one tap, rows between those that a strided loop reads stay in DRAM.
    int moving = 0;
    int64_t stride = 1;
    for (const SpatialTerm& term : dim.terms)
      if (box.size[term.loop] > 1) {
        ++moving;
        stride = term.stride;
      }
    const int place = int(ranges.size());
    if (moving == 1 && place != lane_dim && place + 1 < int(tensor.dims.size()))
      range.step = stride;
    ranges.push_back(range);
    int64_t count = 0;
    for (int64_t i = range.low; i < range.high; i += range.step) ++count;
    total *= count;
  }
  if (tensor.packed) {
    out.runs = {total};
    return;
  }
  int64_t end_of_last = -1;
  auto descend = [&](auto& self, size_t at, int64_t address) -> void {
    const SpatialDim& dim = tensor.dims[at];
    const int64_t low = std::max<int64_t>(ranges[at].low, 0),
                  high = std::min(ranges[at].high, dim.extent);
    if (at + 1 < tensor.dims.size()) {
      for (int64_t i = ranges[at].low; i < high; i += ranges[at].step)
        if (i >= low) {
          if (ranges[at].step > 1) end_of_last = -1;
          self(self, at + 1, (address + i) * tensor.dims[at + 1].extent);
        }
      return;
    }
    if (high <= low) return;
    const int64_t begin = (address + low) * tensor.element_bytes,
                  bytes = (high - low) * tensor.element_bytes;
    if (begin == end_of_last)
      out.runs.back() += bytes;
    else
      out.runs.push_back(bytes);
    end_of_last = begin + bytes;
    moved += bytes;
  };
  descend(descend, 0, 0);
  out.padding = total - moved;
}

class Builder {
 public:
  Builder(const spatial::Design& design, const SpatialLayer& layer, const SpatialMapping& mapping)
      : unit_(design, layer, mapping.choice), mapping_(mapping) {
    tensor_ = {mapping.choice.first, mapping.choice.second()};
    box_.size = mapping.tile;
    int64_t address = 0;
    for (int f : {0, 1}) {
      base_[f] = address;
      const int64_t word = design.bank_bytes;
      address += mapping.copies[tensor_[f]] *
                 ceil_div(unit_.buffer_bytes(tensor_[f], mapping.tile), word) * word;
    }
  }

  std::vector<SimInstruction> build() {
    if (depth_of(0) < depth_of(1)) load_first_ = 0;
    visit(0);
    return std::move(program_);
  }

 private:
  int depth_of(int factor) const {
    int depth = -1;
    for (int place = 0; place < unit_.loops; ++place) {
      const int loop = mapping_.order[place];
      if (unit_.layer.moves(tensor_[factor], loop) && mapping_.tile[loop] < extent(loop))
        depth = place;
    }
    return depth;
  }
  int64_t extent(int loop) const { return unit_.layer.loops[loop].extent; }

  void visit(int place) {
    if (place == unit_.loops) return tile();
    const int loop = mapping_.order[place];
    for (int64_t start = 0; start < extent(loop); start += mapping_.tile[loop]) {
      box_.start[loop] = start;
      box_.size[loop] = std::min(mapping_.tile[loop], extent(loop) - start);
      visit(place + 1);
    }
    box_.start[loop] = 0;
    box_.size[loop] = std::min(mapping_.tile[loop], extent(loop));
  }

  bool same_tile(int tensor, const SpatialBox& other) const {
    for (int loop = 0; loop < unit_.loops; ++loop)
      if (unit_.layer.moves(tensor, loop) && box_.start[loop] != other.start[loop]) return false;
    return true;
  }

  void load(int f) {
    const int tensor = tensor_[f];
    SimInstruction out;
    out.queue = Queue::Load;
    find_runs(unit_.layer.tensors[tensor], box_, unit_.lane_dim[f], out);
    out.gathers = unit_.gathers[f];
    out.pitch = unit_.gather_pitch(f, box_.size);
    out.piece = unit_.piece(f, box_.size);
    const int lane = unit_.lane_loop[f];
    out.pieces = ceil_div(box_.size[lane], unit_.lanes[lane]);
    out.piece_pitch = unit_.strides(f, box_.size)[lane];
    auto& last = last_use_[f];
    const int64_t copies = mapping_.copies[tensor], use = int64_t(last.size());
    out.address = base_[f] + (use % copies) * unit_.buffer_bytes(tensor, mapping_.tile);
    if (use >= copies) out.after[int(Queue::Compute)] = last[use - copies] + 1;
    buffer_[f] = out.address;
    last.push_back(0);
    program_.push_back(out);
    loaded_[f] = ++loads_;
  }

  void compute(bool first) {
    SimInstruction out;
    out.queue = Queue::Compute;
    out.stationary = unit_.stationary;
    out.block_rows = unit_.rows_of_block(box_.size);
    out.fill = unit_.fill;
    const SpatialSizes steps[] = {unit_.strides(0, box_.size), unit_.strides(1, box_.size)};
    for (int group = 0; group < 2; ++group)
      for (int loop = 0; loop < unit_.loops; ++loop) {
        const bool outer =
            unit_.stationary ? unit_.in(unit_.block_loops, loop) : !unit_.layer.loops[loop].reduces;
        if (outer != (group == 0)) continue;
        const int64_t count = ceil_div(box_.size[loop], unit_.lanes[loop]);
        out.loops.push_back({count, {steps[0][loop], steps[1][loop]}});
        if (unit_.stationary && outer) ++out.block_loops;
      }
    for (int f : {0, 1}) {
      out.base[f] = buffer_[f];
      out.row_bytes[f] = unit_.row_bytes(f, box_.size);
      out.fetches[f] = f == 1 && unit_.stationary ? 1 : unit_.fetches(f);
      last_use_[f].back() = computes_;
      out.after[int(Queue::Load)] = std::max(out.after[int(Queue::Load)], loaded_[f]);
    }
    const int64_t copies = mapping_.copies[kSpatialResult];
    if (first && stores_ >= copies) out.after[int(Queue::Store)] = stores_ - copies + 1;
    program_.push_back(out);
    ++computes_;
  }

  void tile() {
    for (int f : {load_first_, 1 - load_first_})
      if (loads_ == 0 || loaded_[f] == 0 || !same_tile(tensor_[f], before_)) load(f);
    bool first = true, last = true;
    for (int loop = 0; loop < unit_.loops; ++loop)
      if (unit_.layer.loops[loop].reduces) {
        first &= box_.start[loop] == 0;
        last &= box_.start[loop] + box_.size[loop] == extent(loop);
      }
    compute(first);
    before_ = box_;
    if (!last) return;
    SimInstruction out;
    out.queue = Queue::Store;
    find_runs(unit_.layer.tensors[kSpatialResult], box_, -1, out);
    out.after[int(Queue::Compute)] = computes_;
    program_.push_back(out);
    ++stores_;
  }

  SpatialUnit unit_;
  const SpatialMapping& mapping_;
  std::array<int, 2> tensor_{};
  int load_first_ = 1;
  SpatialBox box_, before_;
  std::array<int64_t, 2> base_{}, buffer_{}, loaded_{};
  std::array<std::vector<int64_t>, 2> last_use_;
  int64_t loads_ = 0, computes_ = 0, stores_ = 0;
  std::vector<SimInstruction> program_;
};

}  // namespace program_detail

inline std::vector<spatial::SimInstruction> program_of(const spatial::Design& design,
                                                       const SpatialLayer& layer,
                                                       const SpatialMapping& mapping) {
  return program_detail::Builder(design, layer, mapping).build();
}

}  // namespace tilewright::cost
