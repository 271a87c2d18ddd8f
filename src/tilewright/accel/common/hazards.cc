#include "tilewright/accel/common/hazards.h"

#include <algorithm>

namespace tilewright::accel {
namespace {

void wait_for(Waits& waits, int queue, uint32_t stamp) {
  uint32_t& entry = waits[static_cast<size_t>(queue)];
  entry = std::max(entry, stamp);
}

/// Ranges merged where they touch, in order.
std::vector<Range> merged(std::vector<Range> all) {
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> out;
  for (const Range& range : all) {
    if (!out.empty() && range.begin <= out.back().end)
      out.back().end = std::max(out.back().end, range.end);
    else
      out.push_back(range);
  }
  return out;
}

bool meets(const std::vector<Range>& ranges, const Range& range) {
  const auto after = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const Range& r) { return r.end <= range.begin; });
  return after != ranges.end() && after->begin < range.end;
}

/// What happens to a memory as a whole. Most of DRAM is only read (weights) or only written: there
/// is nothing to order.
struct Overview {
  bool is_shared = false, two_writers = false;
  int writer = -1;
  std::vector<Range> read, written;
  AccessMap map;

  void add(const Access& access, int queue) {
    if (access.write) {
      two_writers = two_writers || (writer >= 0 && writer != queue);
      writer = queue;
    }
    (access.write ? written : read).push_back(hull(access));
  }
  bool matters(const Access& access) const {
    return two_writers || meets(access.write ? read : written, hull(access));
  }
};

std::vector<Overview> survey(const Queues& queues, const std::vector<int>& queue,
                             const std::vector<Footprint>& footprints) {
  std::vector<Overview> out(queues.memories.size());
  for (size_t m = 0; m < out.size(); ++m) out[m].is_shared = shared(queues, static_cast<int>(m));
  for (size_t i = 0; i < footprints.size(); ++i)
    for (const Access& access : footprints[i]) {
      Overview& memory = out[static_cast<size_t>(access.memory)];
      if (memory.is_shared && !empty(access)) memory.add(access, queue[i]);
    }
  for (Overview& memory : out) {
    memory.read = merged(std::move(memory.read));
    memory.written = merged(std::move(memory.written));
  }
  return out;
}

}  // namespace

/// The first segment that begins at or after `at`; one that spans `at` is cut in two there.
AccessMap::Segments::iterator AccessMap::split(uint64_t at) {
  const auto after = segments_.lower_bound(at);
  if (after == segments_.begin() || (after != segments_.end() && after->first == at)) return after;
  const auto before = std::prev(after);
  if (before->second.end <= at) return after;
  Segment tail = before->second;
  before->second.end = at;
  return segments_.emplace_hint(after, at, tail);
}

void AccessMap::access(const Range& range, bool write, int queue, uint32_t stamp, Waits& waits) {
  if (range.begin >= range.end) return;
  auto it = split(range.begin);
  const auto stop = split(range.end);
  uint64_t at = range.begin;
  while (it != stop) {
    Segment& segment = it->second;
    if (segment.writer >= 0 && segment.writer != queue)
      wait_for(waits, segment.writer, segment.written);
    if (write) {
      for (int q = 0; q < kMaxQueues; ++q)
        if (q != queue) wait_for(waits, q, segment.read[static_cast<size_t>(q)]);
      it = segments_.erase(it);
      continue;
    }
    if (at < it->first) {
      Segment gap;
      gap.end = it->first;
      gap.read[static_cast<size_t>(queue)] = stamp;
      segments_.emplace_hint(it, at, gap);
    }
    segment.read[static_cast<size_t>(queue)] = stamp;
    at = segment.end;
    ++it;
  }
  if (at >= range.end) return;
  Segment fresh;
  fresh.end = range.end;
  if (write) {
    fresh.writer = queue;
    fresh.written = stamp;
  } else {
    fresh.read[static_cast<size_t>(queue)] = stamp;
  }
  segments_.emplace_hint(stop, at, fresh);
}

std::vector<Waits> find_waits(const Queues& queues, const std::vector<int>& queue,
                              const std::vector<Footprint>& footprints) {
  std::vector<Overview> memories = survey(queues, queue, footprints);
  std::vector<Waits> all(footprints.size());
  for (size_t i = 0; i < footprints.size(); ++i) {
    const auto stamp = static_cast<uint32_t>(i + 1);
    for (const Access& access : footprints[i]) {
      Overview& memory = memories[static_cast<size_t>(access.memory)];
      if (!memory.is_shared || empty(access) || !memory.matters(access)) continue;
      const bool dense = access.pitch == access.width || access.rows == 1;
      const uint64_t width = dense ? access.width * access.rows : access.width;
      for (uint32_t row = 0; row < (dense ? 1 : access.rows); ++row) {
        const uint64_t begin = access.address + row * access.pitch;
        memory.map.access({begin, begin + width}, access.write, queue[i], stamp, all[i]);
      }
    }
  }
  return all;
}

}  // namespace tilewright::accel
