// First fit: the lowest address of the smallest memory that is free long enough.
#include "tilewright/codegen/dpu/occupancy.h"

#include <algorithm>

namespace tilewright::dpu {

Occupancy::Occupancy(const Config& config, bool largest_first) : config_(config) {
  for (int m = 0; m < kMemories; ++m) order_.push_back(m);
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) {
    return largest_first ? depth(a) > depth(b) : depth(a) < depth(b);
  });
}

std::optional<Place> Occupancy::take(int64_t words, int first, int last, int wanted) {
  std::vector<int> order = order_;
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return (a == wanted) > (b == wanted); });
  for (const int m : order)
    if (const std::optional<int64_t> addr = find(m, words, first, last)) {
      used_.push_back({m, *addr, words, first, last});
      Place place;
      place.memory = m;
      place.addr = *addr;
      return place;
    }
  return {};
}

std::optional<Place> Occupancy::take_memory(int64_t words, int g) {
  for (const int m : order_) {
    if (depth(m) < words || !find(m, depth(m), g, g)) continue;
    used_.push_back({m, 0, depth(m), g, g});
    Place place;
    place.memory = m;
    place.whole_memory = true;
    return place;
  }
  return {};
}

std::optional<int64_t> Occupancy::find(int m, int64_t words, int first, int last) const {
  std::vector<const Used*> rivals;
  for (const Used& used : used_)
    if (used.memory == m && used.first <= last && first <= used.last) rivals.push_back(&used);
  std::sort(rivals.begin(), rivals.end(),
            [](const Used* a, const Used* b) { return a->addr < b->addr; });
  int64_t addr = 0;
  for (const Used* rival : rivals) {
    if (rival->addr - addr >= words) return addr;
    addr = std::max(addr, rival->addr + rival->words);
  }
  if (depth(m) - addr >= words) return addr;
  return {};
}

}  // namespace tilewright::dpu
