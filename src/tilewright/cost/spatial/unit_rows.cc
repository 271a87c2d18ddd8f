// The rows of a tile in the order in which the array reads them (docs/spatial-timing.md, 2 and 4).
#include "tilewright/cost/spatial/unit.h"

namespace tilewright::cost {

int SpatialUnit::row_loop_of_blocks() const {
  return design.unit == spatial::Unit::Conv2d ? choice.j : choice.k;
}

RowWalk SpatialUnit::rows(const SpatialSizes& size) const {
  RowWalk walk;
  walk.word = design.bank_bytes;
  walk.banks = design.banks;
  const size_t streams = stationary ? 1 : 2;
  std::array<SpatialSizes, 2> steps;
  for (size_t f = 0; f < streams; ++f) {
    const int factor = static_cast<int>(f);
    const int64_t bytes = row_bytes(factor, size);
    walk.streams[f] = {bytes, bytes, fetches(factor)};
    steps[f] = strides(factor, size);
  }
  for (int place = 0; place < loops; ++place) {
    const int loop = inner[place];
    const int64_t count = ceil_div(size[loop], lanes[loop]);
    if (count == 1) continue;
    RowLoop into{count, count, {}, 0};
    for (size_t f = 0; f < streams; ++f) {
      into.step[f] = steps[f][loop];
      const int64_t last = size[loop] - (count - 1) * lanes[loop];
      if (loop != lane_loop[f] || last == lanes[loop]) continue;
      walk.streams[f].last = last;
      into.last_sets |= uint8_t(1 << f);
    }
    walk.add(into);
  }
  return walk;
}

RowWalk SpatialUnit::block_rows(const SpatialSizes& size) const {
  const SpatialSizes steps = strides(1, size);
  const int64_t bytes = row_bytes(1, size);
  const int row = row_loop_of_blocks();
  const auto blocks = [&](int loop) { return ceil_div(size[loop], lanes[loop]); };
  const auto last = [&](int loop) { return size[loop] - (blocks(loop) - 1) * lanes[loop]; };
  RowWalk walk;
  walk.word = design.bank_bytes;
  walk.banks = design.banks;
  walk.streams[0] = {bytes, last(lane_loop[1]), 1};
  walk.add({std::min(lanes[row], size[row]), last(row), {steps[row] / lanes[row], 0}, 0});
  for (int place = 0; place < loops; ++place) {
    const int loop = inner[place];
    if (!in(tap_loops | block_loops, loop) || blocks(loop) == 1) continue;
    uint8_t sets = 0;
    if (loop == lane_loop[1] && last(loop) < lanes[loop]) sets |= 1;
    if (loop == row && last(loop) < lanes[loop]) sets |= RowWalk::kShort;
    walk.add({blocks(loop), blocks(loop), {steps[loop], 0}, sets});
  }
  return walk;
}

ArrayWalk SpatialUnit::array_walk(const SpatialSizes& size) const {
  ArrayWalk array;
  array.rows = rows(size);
  for (int loop = 0; loop < loops; ++loop) array.steps *= ceil_div(size[loop], lanes[loop]);
  if (!stationary) return array;
  array.block_rows = block_rows(size);
  array.blocks = 1;
  const int row = row_loop_of_blocks();
  int64_t taps = 1;
  for (int place = 0; place < loops; ++place) {  // innermost first
    const int loop = inner[place];
    const int64_t count = ceil_div(size[loop], lanes[loop]);
    if (in(tap_loops, loop)) taps *= count;
    if (!in(block_loops, loop)) continue;
    if (loop == row) {
      array.ragged_inside = array.blocks;
      array.ragged_count = count;
    }
    array.blocks *= count;
  }
  const int64_t before = (ceil_div(size[row], lanes[row]) - 1) * lanes[row];
  array.block_height = taps * std::min(lanes[row], size[row]);
  array.ragged_height = taps * (size[row] - before);
  return array;
}

}  // namespace tilewright::cost
