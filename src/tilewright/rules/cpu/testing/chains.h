// Groups of nodes as one kernel: scheduling by rule, and checks of what comes of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tilewright/base/rng.h"
#include "tilewright/graph/partition/fuse.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {

/// Vectors of four lanes: small shapes have tiles, blocks and tails.
inline hw::CpuTarget small_target() {
  hw::CpuTarget target;
  target.vector_bytes = 16;
  target.vector_registers = 16;
  target.rates = hw::assumed_rates(16, 2);
  return target;
}

inline Array small_integers(Rng& rng, const Shape& shape) {
  Array array(DType::F32, shape);
  for (int64_t i = 0; i < array.size(); ++i) array.set(i, static_cast<double>(rng.between(-2, 2)));
  return array;
}

inline Array scalar(double value) {
  Array array(DType::F32, {});
  array.set(0, value);
  return array;
}

/// The only kernel, joined whatever a model says.
inline Func joined(const graph::Graph& graph) {
  graph::FuseOptions options;
  options.join = [](const graph::Group&) { return true; };
  const std::vector<graph::Group> groups = graph::fuse(graph, options);
  EXPECT_EQ(groups.size(), 1u) << graph::print(graph::summarise(graph, groups));
  auto made = graph::group_func(graph, groups[0]);
  EXPECT_TRUE(made) << to_string(made.error());
  return made->func;
}

inline interp::Arguments small_arguments(const Func& func) {
  Rng rng(9);
  return arguments_of(func, [&](Array& array) { array = small_integers(rng, array.shape()); });
}

/// Schedules `func`; checks the scheduled and the lowered program against the tensor form. `error`:
/// allowed, for functions that lowering writes out as arithmetic.
inline Func scheduled_and_checked(const Func& func, double error = 0,
                                  const hw::CpuTarget& target = small_target()) {
  auto scheduled = schedule::replay(func, default_trace(func, target, 2));
  EXPECT_TRUE(scheduled) << to_string(scheduled.error());
  auto lowered = lower::run_pipeline(*scheduled, "cpu");
  EXPECT_TRUE(lowered) << to_string(lowered.error());
  const interp::Arguments arguments = small_arguments(func);
  const auto plain = interp::run(func, arguments);
  EXPECT_TRUE(plain) << to_string(plain.error());
  for (const Func& form : {*scheduled, *lowered}) {
    const auto made = interp::run(form, arguments);
    EXPECT_TRUE(made) << to_string(made.error()) << print(form);
    if (!made || !plain) continue;
    const std::vector<double> want = plain->outputs.at("y0").to_doubles();
    const std::vector<double> got = made->outputs.at("y0").to_doubles();
    double worst = 0;
    for (size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(want[i] - got[i]));
    EXPECT_LE(worst, error);
  }
  return *scheduled;
}

/// Whether some block that begins with `inner` is computed inside a loop of block `outer`.
inline bool is_inside(const Func& func, const std::string& inner, const std::string& outer) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  return std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& block) {
    return block.name.starts_with(inner) &&
           std::any_of(block.loops.begin(), block.loops.end(), [&](const std::string& loop) {
             return loop.find(outer + ".") != std::string::npos;
           });
  });
}

/// Loop nests that follow each other.
inline int nests(const Func& func) {
  int count = 0;
  for (const Stmt& child : children(func.body)) count += child.as<For>() != nullptr;
  return func.body.as<For>() != nullptr ? 1 : count;
}

}  // namespace tilewright::rules
