#include "tilewright/accel/vta/hazards.h"

#include <algorithm>

namespace tilewright::vta {
namespace {

struct Range {
  uint64_t begin = 0, end = 0;
};

void wait_for(Waits& waits, int module, uint32_t stamp) {
  uint32_t& entry = waits[static_cast<size_t>(module)];
  entry = std::max(entry, stamp);
}

bool empty(const DramRows& rows) { return rows.rows == 0 || rows.width == 0; }

Range hull(const DramRows& rows) {
  return {rows.address, rows.address + (rows.rows - 1) * rows.pitch + rows.width};
}

/// Hulls of all DRAM accesses of one kind, merged where they touch, in order.
std::vector<Range> hulls(const std::vector<Footprint>& footprints, bool write) {
  std::vector<Range> all;
  for (const Footprint& footprint : footprints)
    for (const DramRows& rows : footprint.dram)
      if (rows.write == write && !empty(rows)) all.push_back(hull(rows));
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> merged;
  for (const Range& range : all) {
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  }
  return merged;
}

bool meets(const std::vector<Range>& ranges, const Range& range) {
  const auto after = std::partition_point(ranges.begin(), ranges.end(),
                                          [&](const Range& r) { return r.end <= range.begin; });
  return after != ranges.end() && after->begin < range.end;
}

/// Whether two modules write DRAM; in the designs there are, only Store does.
bool has_two_writers(const std::vector<int>& module, const std::vector<Footprint>& footprints) {
  int writer = -1;
  for (size_t i = 0; i < footprints.size(); ++i)
    for (const DramRows& rows : footprints[i].dram) {
      if (!rows.write) continue;
      if (writer >= 0 && writer != module[i]) return true;
      writer = module[i];
    }
  return false;
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

void AccessMap::access(uint64_t begin, uint64_t end, bool write, int module, uint32_t stamp,
                       Waits& waits) {
  if (begin >= end) return;
  auto it = split(begin);
  const auto stop = split(end);
  uint64_t at = begin;
  while (it != stop) {
    Segment& segment = it->second;
    if (segment.writer >= 0 && segment.writer != module)
      wait_for(waits, segment.writer, segment.written);
    if (write) {
      for (int m = 0; m < kMaxModules; ++m)
        if (m != module) wait_for(waits, m, segment.read[static_cast<size_t>(m)]);
      it = segments_.erase(it);
      continue;
    }
    if (at < it->first) {
      Segment gap;
      gap.end = it->first;
      gap.read[static_cast<size_t>(module)] = stamp;
      segments_.emplace_hint(it, at, gap);
    }
    segment.read[static_cast<size_t>(module)] = stamp;
    at = segment.end;
    ++it;
  }
  if (at >= end) return;
  Segment fresh;
  fresh.end = end;
  if (write) {
    fresh.writer = module;
    fresh.written = stamp;
  } else {
    fresh.read[static_cast<size_t>(module)] = stamp;
  }
  segments_.emplace_hint(stop, at, fresh);
}

std::vector<Waits> find_waits(const std::vector<int>& module,
                              const std::vector<Footprint>& footprints) {
  // Most of DRAM is only read (weights, micro-ops) or only written: there is nothing to order.
  const std::vector<Range> written = hulls(footprints, true), read = hulls(footprints, false);
  const bool two_writers = has_two_writers(module, footprints);
  std::array<AccessMap, 8> sram;
  AccessMap dram;
  std::vector<Waits> all(footprints.size());
  for (size_t i = 0; i < footprints.size(); ++i) {
    const auto stamp = static_cast<uint32_t>(i + 1);
    for (const SramRange& range : footprints[i].sram) {
      const Mem mem = range.mem == Mem::Acc8 ? Mem::Acc : range.mem;
      sram[static_cast<size_t>(mem)].access(range.begin, range.end, range.write, module[i], stamp,
                                            all[i]);
    }
    for (const DramRows& rows : footprints[i].dram) {
      if (empty(rows)) continue;
      if (!two_writers && !meets(rows.write ? read : written, hull(rows))) continue;
      const bool dense = rows.pitch == rows.width || rows.rows == 1;
      const uint64_t width = dense ? rows.width * rows.rows : rows.width;
      for (uint32_t row = 0; row < (dense ? 1 : rows.rows); ++row) {
        const uint64_t begin = rows.address + row * rows.pitch;
        dram.access(begin, begin + width, rows.write, module[i], stamp, all[i]);
      }
    }
  }
  return all;
}

}  // namespace tilewright::vta
