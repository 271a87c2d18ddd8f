#include "tilewright/rules/cpu/transpose.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/cpu/default_schedule.h"

namespace tilewright::rules {
namespace {

/// Unrolled loops of which each iteration is not one loop of vectors.
int64_t torn_tiles(const Func& func) {
  int64_t torn = 0;
  walk(func.body, [&](const Stmt& s) {
    const auto* rows = s.as<For>();
    if (rows == nullptr || rows->kind != ForKind::Unroll) return;
    const auto* lanes = rows->body.as<For>();
    torn += lanes == nullptr || lanes->kind != ForKind::Vector ? 1 : 0;
  });
  return torn;
}

/// The rows of a tile lie beside its lanes, whichever axis of an image they are, and however many
/// threads share rows out: only so is the tile transposed in registers.
TEST(Transpose, RowsOfATileStayInIt) {
  hw::CpuTarget target;
  target.vector_bytes = 64;
  for (const std::vector<int64_t>& order :
       {std::vector<int64_t>{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 1, 3, 2}, {3, 0, 1, 2}})
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{1, 96, 16, 16}, {2, 21, 9, 33}, {1, 40, 7, 12}, {3, 17, 18, 5}})
      for (const int threads : {1, 2}) {
        const OpCase transpose{"", "Transpose", {shape}, {{"perm", order}}};
        const std::string what = fmt::format("{} by {}, {} threads", shape, order, threads);
        const Func func = func_of(transpose);
        const auto scheduled = schedule::replay(func, default_trace(func, target, threads));
        ASSERT_TRUE(scheduled) << what << to_string(scheduled.error());
        EXPECT_EQ(torn_tiles(*scheduled), 0) << what << print(*scheduled);
        const auto want = interp::run(func, quarters(func)),
                   got = interp::run(*scheduled, quarters(func));
        ASSERT_TRUE(want && got) << what;
        const Array &a = want->outputs.begin()->second, &b = got->outputs.begin()->second;
        for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(a.get(i), b.get(i)) << what << " " << i;
      }
}

}  // namespace
}  // namespace tilewright::rules
