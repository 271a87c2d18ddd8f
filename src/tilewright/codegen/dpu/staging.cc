// A 3x3 convolution on a map in DDR: whole if there is room; else its rows walk through a memory of
// their own, 18 of them at once; else each tile has its ten rows in a slot, two of them loaded
// again.
#include "tilewright/codegen/dpu/staging.h"

#include <algorithm>

#include "tilewright/codegen/dpu/lifetimes.h"

namespace tilewright::dpu {
namespace {

/// Octets of rows that must be there at once, if what writes is `ahead` tiles ahead.
int64_t octets(const StagedMap& w, size_t ahead) {
  int64_t most = 1;
  for (size_t i = 0; i < w.rows.size(); ++i) {
    size_t next = i;
    while (next < w.rows.size() && w.rows[next].size() == 0) ++next;
    if (next == w.rows.size()) break;
    const int64_t newest = w.newest[std::min(i + ahead, w.newest.size() - 1)];
    if (newest <= w.rows[next].begin) continue;
    most = std::max(most, (newest - 1) / kBanks - w.rows[next].begin / kBanks + 1);
  }
  return most;
}

}  // namespace

int64_t strip_of(const Lowered& lowered, const GroupPlan& group) {
  const int64_t width = lowered.nodes[static_cast<size_t>(group.nodes[0])].out.width;
  return group.columns == 0 ? width : std::min(width, group.columns);
}

StagedMap staged_map(const Lowered& lowered, const GroupPlan& group,
                     const std::vector<RowTile>& tiles, int r, bool written, bool internal) {
  StagedMap w;
  w.root = r;
  w.written = written;
  w.internal = internal;
  w.rows.resize(tiles.size());
  w.newest.resize(tiles.size());
  int first = 1000, last = 0;
  const auto join = [](Range& a, Range b) {
    if (b.size() == 0) return;
    a = a.size() == 0 ? b : Range{std::min(a.begin, b.begin), std::max(a.end, b.end)};
  };
  std::vector<Range> reads(tiles.size()), writes(tiles.size());
  for (size_t j = 0; j < group.nodes.size(); ++j) {
    const Node& n = lowered.nodes[static_cast<size_t>(group.nodes[j])];
    const int64_t part = j == 0 ? strip_of(lowered, group) : n.out.width;
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (n.in[k].root != r || (written && !internal)) continue;
      for (size_t i = 0; i < tiles.size(); ++i) {
        Range rows = input_rows(n, k, tiles[i].rows[j]);
        if (rows.size() > 0) rows = {rows.begin + n.in[k].row, rows.end + n.in[k].row};
        join(reads[i], rows);
      }
      first = std::min(first, group.depth[j] - 1);
      last = std::max(last, group.depth[j]);
      for (int64_t c = 0; c < n.out.width; c += part) {
        const Range columns = input_columns(n, k, {c, std::min(n.out.width, c + part)});
        w.columns = std::max(w.columns, (columns.size() - 1) * n.in[k].col_step + 1);
      }
      join(w.read_groups, {n.in[k].group, n.in[k].group + n.in[k].groups});
    }
    if (written && n.out.root == r) {
      for (size_t i = 0; i < tiles.size(); ++i) join(writes[i], tiles[i].rows[j]);
      first = group.depth[j];
      last = std::max(last, group.depth[j] + 1);
      w.columns = std::max(w.columns, std::min(n.out.width, part));
      int64_t most = 0;
      for (const Range& pass : group.channels) most = std::max(most, pass.size());
      const bool all = j > 0 && group.channels.size() == 1;
      w.groups = std::max(w.groups, all ? n.out.groups : most);
    }
  }
  w.all_columns = w.internal || !written ? lowered.roots[static_cast<size_t>(r)].width : w.columns;
  if (internal) w.read_groups = {0, lowered.roots[static_cast<size_t>(r)].groups};
  if (!written || internal) w.groups = w.read_groups.size();
  w.all_groups = w.groups;
  w.skew = last - first;
  int64_t newest = 0;
  for (size_t i = 0; i < tiles.size(); ++i) {
    newest = std::max(newest, written ? writes[i].end : reads[i].end);
    w.newest[i] = newest;
    w.rows[i] = written && !w.internal ? writes[i] : reads[i];
  }
  return w;
}

std::optional<Place> stage(const Lowered& lowered, const StagedMap& w, const GroupPlan& group,
                           int g, Occupancy& memory, bool compact, bool& skewed) {
  const Root& m = lowered.roots[static_cast<size_t>(w.root)];
  const bool strips =
      strip_of(lowered, group) < lowered.nodes[static_cast<size_t>(group.nodes[0])].out.width;
  const auto with = [&](std::optional<Place> place, int64_t columns) {
    place->columns = {0, columns};
    place->groups = w.written && !w.internal ? Range{0, w.groups} : w.read_groups;
    return place;
  };
  const bool rows_stay = w.internal || (!w.written && !compact);
  const int64_t endl = w.all_columns * w.all_groups;
  const bool encodable = endl <= kMaxEndl && w.all_groups <= kMaxJump;
  if (rows_stay && encodable) {
    const int64_t words = row_words(m.height, m.width, w.all_groups);
    if (auto place = memory.take(words, g, g)) return with(place, m.width);
  }
  if (rows_stay && !strips && encodable) {
    const int64_t skew_words = octets(w, static_cast<size_t>(w.skew)) * endl;
    if (auto place = memory.take_memory(skew_words, g)) return with(place, m.width);
    if (auto place = memory.take_memory(octets(w, 0) * endl, g)) {
      skewed = false;
      return with(place, m.width);
    }
  }
  if (w.internal || w.columns * w.groups > kMaxEndl || w.groups > kMaxJump) return {};
  int64_t rows = 1;
  for (const Range& r : w.rows) rows = std::max(rows, r.size());
  const int64_t slot = row_words(rows, w.columns, w.groups);
  for (int slots = 4; slots >= 1; --slots) {
    std::optional<Place> place = memory.take(slot * slots, g, g);
    if (!place) continue;
    place->slots = slots;
    place->slot_words = slot;
    if (slots <= w.skew) skewed = false;
    return with(place, w.columns);
  }
  return {};
}

}  // namespace tilewright::dpu
