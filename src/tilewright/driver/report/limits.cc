#include "tilewright/driver/report/limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tilewright::driver {
namespace {

using Place = runtime::ValueSpec::Place;

/// Where bytes last used some time ago lie now: a stack of places, the latest in front.
class Reuse {
 public:
  /// Bytes touched since the last use of this place, itself included; -1 if there was none.
  int64_t touch(std::pair<Place, int64_t> place, int64_t bytes) {
    int64_t distance = 0;
    for (size_t i = 0; i < stack_.size(); ++i) {
      distance += stack_[i].bytes;
      if (stack_[i].place != place) continue;
      const Entry entry{place, std::max(bytes, stack_[i].bytes)};
      stack_.erase(stack_.begin() + static_cast<std::ptrdiff_t>(i));
      stack_.insert(stack_.begin(), entry);
      return distance;
    }
    stack_.insert(stack_.begin(), {place, bytes});
    return -1;
  }

 private:
  struct Entry {
    std::pair<Place, int64_t> place;
    int64_t bytes;
  };
  std::vector<Entry> stack_;
};

void set_memory_limit(StepLimit& limit, const hw::CpuRates& rates, int threads) {
  const hw::Bandwidth* levels[] = {&rates.l1, &rates.l2, &rates.l3, &rates.dram};
  int64_t through = 0;  // bytes from farther away pass this level too
  for (int i = 3; i >= 0; --i) {
    through += limit.from[i];
    const double ns = static_cast<double>(through) / levels[i]->of(threads);
    if (limit.from[i] == 0 || ns <= limit.memory_ns) continue;
    limit.memory_ns = ns;
    limit.bound = kMemoryLevels[i];
  }
}

}  // namespace

std::vector<StepLimit> step_limits(const runtime::Program& program, const hw::CpuTarget& machine,
                                   int threads) {
  const hw::CpuRates& rates = machine.rates;
  const int64_t holds[] = {machine.l1_bytes * threads, machine.l2_bytes * threads,
                           machine.l3_bytes};
  std::vector<StepLimit> limits(program.steps.size());
  Reuse reuse;
  // The first pass over the program only fills the caches.
  for (size_t visit = 0; visit < 2 * limits.size(); ++visit) {
    const size_t s = visit % limits.size();
    StepLimit& limit = limits[s] = {};
    std::vector<int> args = program.steps[s].args;
    std::sort(args.begin(), args.end());
    args.erase(std::unique(args.begin(), args.end()), args.end());
    for (const int id : args) {
      if (id < 0) continue;
      const runtime::ValueSpec& value = program.values[static_cast<size_t>(id)];
      const bool own = value.place == Place::Arena || value.place == Place::Weights;
      const bool view = value.place == Place::View;
      const Place place = view ? program.values[static_cast<size_t>(value.of)].place : value.place;
      const int64_t bytes = storage_bytes(value.dtype, element_count(value.shape));
      const int64_t where = own ? value.offset : view ? value.of : id;
      const int64_t distance = reuse.touch({place, where}, bytes);
      int level = 0;
      while (level < 3 && distance > holds[level]) ++level;
      limit.bytes += bytes;
      limit.from[level] += bytes;
    }
    set_memory_limit(limit, rates, threads);
    const auto work = program.works.find(program.steps[s].kernel);
    if (work == program.works.end()) continue;
    limit.operations = static_cast<double>(work->second.operations);
    limit.algorithm = work->second.algorithm;
    limit.dtype = work->second.dtype;
    limit.compute_ns = limit.operations / (rates.peak(limit.dtype) * threads);
    if (limit.compute_ns > limit.memory_ns) limit.bound = name(limit.dtype);
  }
  return limits;
}

}  // namespace tilewright::driver
