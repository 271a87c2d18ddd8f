// Multiply-accumulates per second of fsim and simulated cycles per second of tsim, without data,
// for a program dump: processor time of one thread, the best of several runs.
//
//   bench_dpu_sim DUMP      prints one JSON object
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>

#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"

namespace tilewright::dpu {
namespace {

constexpr double kSeconds = 2;  ///< of each measurement, at least

/// Of this process, which has one thread: others on the machine do not count.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The shortest run among those that fit kSeconds, three at least. units: seconds.
template <class Work>
double best(Work work) {
  double least = std::numeric_limits<double>::infinity(), total = 0;
  for (int run = 0; run < 3 || total < kSeconds; ++run) {
    const double begin = processor_seconds();
    work();
    const double taken = processor_seconds() - begin;
    least = std::min(least, taken), total += taken;
  }
  return least;
}

template <class T>
T must(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}\n", to_string(result.error()));
  std::exit(1);
}
void must(const Status& status) {
  if (status) return;
  fmt::print(stderr, "{}\n", to_string(status.error()));
  std::exit(1);
}

int measure(const char* folder) {
  const Program program = must(read_dump(folder)).program;
  const auto fsim = make_fsim(program.config, program.base + program.image.size());
  must(load(*fsim, program));
  must(run_format_unit(*fsim, program));
  LaunchReport report;
  const double functional = best([&] { report = must(accel::launch_runs(*fsim, program)); });
  const double macs = static_cast<double>(report.counters.macs) * program.config.pe;
  uint64_t cycles = 0;
  const double timed = best([&] {
    cycles = 0;
    for (const Run& run : program.runs)
      cycles += must(simulate_time(program.config, run.insns)).cycles;
  });
  fmt::print(
      "{{\"macs\": {:.0f}, \"fsim_seconds\": {:.6f}, \"fsim_gmacs\": {:.3f}, \"cycles\": {}, "
      "\"tsim_seconds\": {:.9f}, \"tsim_gcycles\": {:.3f}}}\n",
      macs, functional, macs / functional * 1e-9, cycles, timed,
      static_cast<double>(cycles) / timed * 1e-9);
  return 0;
}

}  // namespace
}  // namespace tilewright::dpu

int main(int count, char** words) {
  if (count != 2) {
    fmt::print(stderr, "bench_dpu_sim DUMP\n");
    return 2;
  }
  return tilewright::dpu::measure(words[1]);
}
