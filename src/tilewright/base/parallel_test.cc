#include "tilewright/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tilewright {
namespace {

TEST(Parallel, EveryPartOnce) {
  for (const int threads : {0, 1, 2, 7}) {
    std::vector<std::atomic<int>> calls(100);
    std::atomic<size_t> highest = 0;
    for_each_part(calls.size(), threads, [&](size_t i, size_t thread) {
      ++calls[i];
      size_t seen = highest;
      while (thread > seen && !highest.compare_exchange_weak(seen, thread)) {
      }
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_LT(highest, static_cast<size_t>(std::max(1, threads)));
  }
  for_each_part(0, 3, [](size_t, size_t) { FAIL(); });
}

TEST(Parallel, WhatIsThrownArrives) {
  for (const int threads : {1, 3}) {
    std::atomic<int> calls = 0;
    const auto work = [&](size_t i, size_t) {
      ++calls;
      if (i == 5) throw std::runtime_error("five");
    };
    EXPECT_THROW(for_each_part(1 << 20, threads, work), std::runtime_error);
    EXPECT_LT(calls, 1 << 20);
  }
}

}  // namespace
}  // namespace tilewright
