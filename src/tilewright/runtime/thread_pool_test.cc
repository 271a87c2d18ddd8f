#include "tilewright/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <set>

namespace tilewright::runtime {
namespace {

/// Calls a lambda through the C interface.
template <class F>
void loop(ThreadPool& pool, int64_t count, F&& f) {
  pool.services().parallel_for(
      pool.services().pool, count,
      [](void* env, int64_t i, int32_t worker) {
        (*static_cast<std::remove_reference_t<F>*>(env))(i, worker);
      },
      &f);
}

TEST(ThreadPool, EveryIndexRunsOnceWhateverTheCountsAre) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool({.threads = threads});
    EXPECT_EQ(pool.threads(), threads);
    EXPECT_EQ(pool.services().workers, threads);
    for (int64_t count : {0, 1, 2, 3, 7, 8, 9, 64, 1001}) {
      std::vector<int> hits(static_cast<size_t>(count), 0);
      loop(pool, count, [&](int64_t i, int32_t worker) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, threads);
        ++hits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(count), 1)) << threads << " " << count;
    }
  }
}

/// Waits until so many have come; all go on together.
class Gate {
 public:
  explicit Gate(int expected) : missing_(expected) {}
  void pass() {
    --missing_;
    while (missing_ > 0) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

TEST(ThreadPool, WorkersBeginWithRangesOfTheirOwnAndTheCallerIsWorkerZero) {
  ThreadPool pool({.threads = 3});
  const auto caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 20; ++repeat) {
    Gate all(3);
    std::array<std::atomic<bool>, 3> began{};
    std::vector<int> first(3, -1);
    loop(pool, 10, [&](int64_t i, int32_t worker) {
      EXPECT_EQ(worker == 0, std::this_thread::get_id() == caller);
      if (began[static_cast<size_t>(worker)].exchange(true)) return;
      first[static_cast<size_t>(worker)] = static_cast<int>(i);
      all.pass();
    });
    EXPECT_EQ(first, (std::vector<int>{0, 4, 7}));
  }
}

TEST(ThreadPool, WhoIsDoneTakesOverFromOthers) {
  for (const int64_t count : {2, 10, 1000}) {
    ThreadPool pool({.threads = 2});
    std::atomic<int64_t> done{0};
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    loop(pool, count, [&](int64_t i, int32_t) {
      ++hits[static_cast<size_t>(i)];
      // Only the iterations that the first worker took in one go wait for it.
      const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      if (i == 0)
        while (done < count - std::max<int64_t>(1, count / 16) &&
               std::chrono::steady_clock::now() < late)
          std::this_thread::yield();
      EXPECT_LT(std::chrono::steady_clock::now(), late) << "nobody took over";
      ++done;
    });
    EXPECT_EQ(done, count);
    for (const auto& h : hits) EXPECT_EQ(h, 1);
  }
}

TEST(ThreadPool, ManyLoopsWithSleepBetweenThemLoseNothing) {
  ThreadPool pool({.threads = 4, .spin_microseconds = 5});
  std::vector<int64_t> sums(4, 0);
  const int rounds = 3000;
  for (int round = 0; round < rounds; ++round) {
    loop(pool, 4, [&](int64_t i, int32_t) { sums[static_cast<size_t>(i)] += i + round; });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(sums[static_cast<size_t>(i)], i * rounds + int64_t{rounds} * (rounds - 1) / 2);
}

TEST(ThreadPool, NestedLoopsRunInPlaceWithTheSameWorker) {
  ThreadPool pool({.threads = 3});
  std::vector<int> counts(6, 0);
  loop(pool, 6, [&](int64_t i, int32_t outer) {
    const auto thread = std::this_thread::get_id();
    loop(pool, 5, [&](int64_t, int32_t inner) {
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), thread);
      ++counts[static_cast<size_t>(i)];
    });
  });
  EXPECT_EQ(counts, std::vector<int>(6, 5));
}

TEST(ThreadPool, TwoThreadsMayShareOnePool) {
  ThreadPool pool({.threads = 2});
  auto use = [&](std::vector<int64_t>& cells) {
    for (int round = 0; round < 500; ++round)
      loop(pool, 16, [&](int64_t i, int32_t) { cells[static_cast<size_t>(i)] += 1; });
  };
  std::vector<int64_t> a(16, 0), b(16, 0);
  std::thread other([&] { use(b); });
  use(a);
  other.join();
  EXPECT_EQ(a, std::vector<int64_t>(16, 500));
  EXPECT_EQ(b, std::vector<int64_t>(16, 500));
}

TEST(ThreadPool, WorkersOfOnePoolMayUseAnother) {
  ThreadPool outer({.threads = 2}), inner({.threads = 2});
  std::atomic<int> total{0};
  for (int round = 0; round < 50; ++round)
    loop(outer, 2, [&](int64_t, int32_t) {
      loop(inner, 4, [&](int64_t, int32_t worker) {
        EXPECT_LT(worker, 2);
        total.fetch_add(1);
      });
    });
  EXPECT_EQ(total.load(), 50 * 2 * 4);
}

TEST(ThreadPool, ManyPoolsStartAndStop) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool({.threads = 3});
    int calls = 0;
    if (i % 2 == 0) loop(pool, 1, [&](int64_t, int32_t) { ++calls; });
    EXPECT_EQ(calls, i % 2 == 0 ? 1 : 0);
  }
}

float halve(float value) {
  volatile float half = 0.5f;
  return value * half;
}

TEST(ThreadPool, DenormalsStayUnlessAsked) {
  const float denormal = std::numeric_limits<float>::min();
  for (bool flush : {false, true}) {
    ThreadPool pool({.threads = 2, .flush_denormals = flush});
    std::vector<float> got(2, -1.0f);
    Gate both(2);
    loop(pool, 2, [&](int64_t i, int32_t) {
      both.pass();
      got[static_cast<size_t>(i)] = halve(denormal);
    });
    EXPECT_GT(got[0], 0.0f) << "the caller's mode is its own";
    EXPECT_EQ(got[1] == 0.0f, flush);
  }
  {
    const FlushDenormals scope(true);
    EXPECT_EQ(halve(denormal), 0.0f);
  }
  EXPECT_GT(halve(denormal), 0.0f);
}

TEST(ThreadPool, AWorkerLeavesTheCallersCpu) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one CPU";
  const int shared = sched_getcpu();
  ThreadPool pool({.threads = 2});
  auto move_to_shared = [&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(shared, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  };
  // The scheduler may move either thread at any time, so one loop in many has to show it.
  int apart = 0;
  for (int turn = 0; turn < 50; ++turn) {
    Gate moved(2), looked(2);
    loop(pool, 2, [&](int64_t, int32_t) {
      moved.pass();
      move_to_shared();
    });
    int cpus[2] = {-1, -1};
    loop(pool, 2, [&](int64_t, int32_t worker) {
      cpus[worker] = sched_getcpu();
      looked.pass();
    });
    apart += cpus[0] != cpus[1];
  }
  EXPECT_GT(apart, 25);
}

TEST(ThreadPool, ThreadCountComesFromTheEnvironment) {
  ASSERT_EQ(setenv("TILEWRIGHT_THREADS", "3", 1), 0);
  EXPECT_EQ(default_threads(), 3);
  for (const char* nonsense : {"0", "-2", "many", ""}) {
    ASSERT_EQ(setenv("TILEWRIGHT_THREADS", nonsense, 1), 0);
    EXPECT_GE(default_threads(), 1);
    EXPECT_NE(default_threads(), -2);
  }
  ASSERT_EQ(unsetenv("TILEWRIGHT_THREADS"), 0);
}

}  // namespace
}  // namespace tilewright::runtime
