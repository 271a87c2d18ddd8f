// The example of docs/dpu-timing.md: a convolution of 3x3 with 64 channels and a pool of 2x2 on
// rows of 224 columns, in tiles of eight rows, from DDR and back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tilewright/accel/dpu/builder.h"

namespace tilewright::dpu::testing {

inline Config no_latencies() {
  Config config;
  config.timing.lat_ddr = config.timing.lat_conv = config.timing.lat_misc = 0;
  config.timing.lat_init = 0;
  return config;
}

struct ExampleTile {
  std::vector<Op> loads, convs, pools, saves;
};

inline constexpr int kExampleWidth = 224, kExampleGroups = 4;

/// What tile i of k does. X is in memory 0, the convolution's rows in 1, the pool's in 2.
inline ExampleTile example_tile(int i, int k) {
  constexpr int kRowWords = kExampleWidth * kExampleGroups;
  const int height = 8 * k;
  ExampleTile tile;
  const auto row_address = [](int row, int words) { return row / 8 * words; };
  const int first = i == 0 ? 0 : 8 * i + 1, last = std::min(8 * i + 9, height);
  for (int r = first; r < last; ++r) {
    Load load;
    load.bank_id = r % 8;
    load.bank_addr = row_address(r, kRowWords) % 8192;
    load.jump_read = load.channel = 64;
    load.jump_write = kExampleGroups;
    load.length = kExampleWidth;
    load.ddr_addr = r * kRowWords * 64;
    tile.loads.push_back(load);
  }
  const int top = std::max(8 * i - 1, 0);
  Conv conv;
  conv.pad_left = conv.pad_right = 1;
  conv.pad_top = i == 0;
  conv.pad_bottom = i + 1 == k;
  conv.bank_id_in = top % 8;
  conv.bank_addr_in = row_address(top, kRowWords) % 8192;
  conv.bank_id_out = 8;
  conv.bank_addr_out = i * kRowWords % 8192;
  conv.bank_addr_bias = 4 * 144;
  conv.length = kExampleWidth;
  conv.out_groups = kExampleGroups;
  conv.valid_rows = 8;
  tile.convs = {conv};
  for (int p = 0; p < 2; ++p) {
    Pool pool;
    pool.bank_id_in = 8 + 4 * p;
    pool.bank_addr_in = conv.bank_addr_out;
    const int out = 4 * i + 2 * p;
    pool.bank_id_out = 16 + out % 8;
    pool.bank_addr_out = row_address(out, kRowWords / 2) % 4096;
    pool.length = kExampleWidth / 2;
    pool.channel_group = kExampleGroups;
    pool.valid_rows = 2;
    tile.pools.push_back(pool);
    for (int r = out; r < out + 2; ++r) {
      Save save;
      save.bank_id = 16 + r % 8;
      save.bank_addr = row_address(r, kRowWords / 2) % 4096;
      save.jump_read = kExampleGroups;
      save.jump_write = save.channel = 64;
      save.length = kExampleWidth / 2;
      save.reg_id = 1;
      save.ddr_addr = r * kRowWords / 2 * 64;
      tile.saves.push_back(save);
    }
  }
  return tile;
}

inline std::vector<Op> example_inits() {
  ConvInit conv;
  conv.kernel_w = conv.kernel_h = 3;
  conv.shift_cut = 11;
  conv.act_type = kRelu;
  conv.in_groups = kExampleGroups;
  conv.jump_read = conv.jump_write = kExampleGroups;
  conv.jump_read_endl = conv.jump_write_endl = kExampleWidth * kExampleGroups;
  PoolInit pool;
  pool.kernel_w = pool.kernel_h = pool.stride_w = pool.stride_h = 2;
  pool.jump_read = pool.jump_write = kExampleGroups;
  pool.jump_read_endl = kExampleWidth * kExampleGroups;
  pool.jump_write_endl = kExampleWidth * kExampleGroups / 2;
  return {conv, pool};
}

inline void add_all(Builder& builder, const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    const Status status = builder.add(op);
    ASSERT_TRUE(status) << to_string(status.error());
  }
}

/// With regions of its size; the weights are not loaded.
inline Program example_program(int k, Run run) {
  Program program;
  program.config = no_latencies();
  const uint64_t in = uint64_t{224} * 8 * static_cast<uint64_t>(k) * 4 * 64;
  program.regions[0] = {"input", program.base, in};
  program.regions[1] = {"output", program.base + in, in / 4};
  program.regions[3] = {"params", program.base + in + in / 4, 145 * 256};
  program.image.resize(in + in / 4 + 145 * 256);
  program.runs = {std::move(run)};
  return program;
}

inline std::vector<Op> example_weights() {
  Load weights;
  weights.mode = 1;
  weights.jump_read = weights.channel = 16;
  weights.jump_write = 1;
  weights.length = 145;
  weights.reg_id = 3;
  return {weights};
}

/// By addresses: tile after tile. By groups: the loads of tile i, the convolution of the one before
/// it, its pools, its saves, each behind the other.
inline Program example_layer(int k, bool addresses, bool weights = false) {
  Builder builder(no_latencies());
  builder.begin_span("layer");
  if (weights) add_all(builder, example_weights());
  add_all(builder, example_inits());
  if (addresses) {
    for (int i = 0; i < k; ++i) {
      const ExampleTile tile = example_tile(i, k);
      for (const auto* part : {&tile.loads, &tile.convs, &tile.pools, &tile.saves})
        add_all(builder, *part);
    }
  } else {
    for (int i = 0; i < k + 3; ++i) {
      if (i > 0) builder.begin_group();
      if (i < k) add_all(builder, example_tile(i, k).loads);
      if (i >= 1 && i < k + 1) add_all(builder, example_tile(i - 1, k).convs);
      if (i >= 2 && i < k + 2) add_all(builder, example_tile(i - 2, k).pools);
      if (i >= 3) add_all(builder, example_tile(i - 3, k).saves);
    }
  }
  return example_program(k, builder.finish(addresses).value());
}

/// Every step waits for the one before.
inline Program example_layer_in_turn(int k) {
  Builder builder(no_latencies());
  add_all(builder, example_inits());
  for (int i = 0; i < k; ++i) {
    const ExampleTile tile = example_tile(i, k);
    for (const auto* part : {&tile.loads, &tile.convs, &tile.pools, &tile.saves}) {
      builder.begin_group();
      add_all(builder, *part);
    }
  }
  return example_program(k, builder.finish(false).value());
}

/// k tiles of a LOAD of four cycles, a CONV of six, a POOL of three and a SAVE of two, in groups.
inline void add_small_pipeline(Builder& builder, int k) {
  ConvInit conv_init;
  conv_init.jump_read = conv_init.jump_write = 1;
  PoolInit pool_init;
  pool_init.jump_read = pool_init.jump_write = 1;
  add_all(builder, {conv_init, pool_init});
  Load load;
  load.jump_read = load.channel = 16;
  load.jump_write = 1;
  load.length = 4;
  Conv conv;
  conv.length = 6;
  conv.out_groups = 1;
  conv.valid_rows = 1;
  conv.bank_id_out = 8;
  Pool pool;
  pool.length = 3;
  pool.channel_group = pool.valid_rows = 1;
  pool.bank_id_in = 8;
  pool.bank_id_out = 16;
  Save save;
  save.bank_id = 16;
  save.jump_read = 1;
  save.jump_write = save.channel = 16;
  save.length = 2;
  save.reg_id = 1;
  for (int i = 0; i < k + 3; ++i) {
    if (i > 0) builder.begin_group();
    if (i < k) add_all(builder, {load});
    if (i >= 1 && i < k + 1) add_all(builder, {conv});
    if (i >= 2 && i < k + 2) add_all(builder, {pool});
    if (i >= 3) add_all(builder, {save});
  }
}

}  // namespace tilewright::dpu::testing
