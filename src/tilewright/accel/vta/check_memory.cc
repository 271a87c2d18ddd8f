#include "tilewright/accel/vta/check_memory.h"

#include <algorithm>
#include <bit>

namespace tilewright::vta::check_detail {

std::optional<Rival> Cell::access(const Actor& actor, bool write) {
  std::optional<Rival> rival;
  const Clock& known = *actor.clock;
  if (write_seq > known[write_module] && write_module != actor.module)
    rival = Rival{write_module, write_seq, true};
  if (!write) {
    read_seq[actor.module] = actor.seq;
    return rival;
  }
  for (uint8_t m = 0; m < read_seq.size(); ++m)
    if (!rival && m != actor.module && read_seq[m] > known[m]) rival = Rival{m, read_seq[m], false};
  write_seq = actor.seq;
  write_module = actor.module;
  read_seq = {};
  return rival;
}

void ElementSet::clear(size_t depth) { words_.assign((depth + 63) / 64, 0); }

void ElementSet::add_range(uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end;) {
    const uint32_t bit = at % 64, count = std::min(64 - bit, end - at);
    const uint64_t ones = count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
    words_[at / 64] |= ones << bit;
    at += count;
  }
}

void ElementSet::or_shifted(uint64_t shift) {
  const size_t whole = shift / 64, bits = shift % 64;
  for (size_t w = words_.size(); w-- > whole;) {
    uint64_t moved = words_[w - whole] << bits;
    if (bits > 0 && w > whole) moved |= words_[w - whole - 1] >> (64 - bits);
    words_[w] |= moved;
  }
}

void ElementSet::repeat(uint32_t count, uint32_t step) {
  if (step == 0 || count < 2) return;
  // Doubling: with n copies there, one shift by n steps makes 2n, the last one whatever is left.
  for (uint32_t have = 1; have < count;) {
    const uint32_t more = std::min(have, count - have);
    or_shifted(uint64_t{more} * step);
    have += more;
  }
}

void ElementSet::remove(const ElementSet& other) {
  for (size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
}

void DramState::split(uint64_t at) {
  auto after = ranges_.upper_bound(at);
  if (after == ranges_.begin()) return;
  Range& range = std::prev(after)->second;
  if (std::prev(after)->first == at || range.end <= at) return;
  const Range rest = range;
  range.end = at;
  ranges_.emplace_hint(after, at, rest);
}

std::optional<DramState::Race> DramState::access(uint64_t begin, uint64_t end, const Actor& actor,
                                                 bool write) {
  std::optional<Race> race;
  split(begin);
  split(end);
  auto at = ranges_.lower_bound(begin);
  uint64_t covered = begin;
  const auto fill = [&](uint64_t to) {
    if (covered >= to || write) return;
    Range& range = ranges_.emplace_hint(at, covered, Range{to, {}})->second;
    range.cell.access(actor, false);
  };
  while (at != ranges_.end() && at->first < end) {
    fill(at->first);
    const std::optional<Rival> rival = at->second.cell.access(actor, write);
    if (rival && !race) race = Race{*rival, at->first};
    covered = at->second.end;
    at = write ? ranges_.erase(at) : std::next(at);
  }
  fill(end);
  if (write) {
    Range& range = ranges_.emplace_hint(at, begin, Range{end, {}})->second;
    range.cell.access(actor, true);
  }
  return race;
}

void ByteRanges::add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) {
    --at;
    begin = at->first;
  }
  while (at != ranges_.end() && at->first <= end) {
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace_hint(at, begin, end);
}

void ByteRanges::remove(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second > begin) --at;
  while (at != ranges_.end() && at->first < end) {
    const uint64_t first = at->first, last = at->second;
    at = ranges_.erase(at);
    if (first < begin) ranges_.emplace(first, begin);
    if (last > end) at = ranges_.emplace(end, last).first;
  }
}

bool ByteRanges::overlaps(uint64_t begin, uint64_t end) const {
  if (begin >= end) return false;
  const auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second > begin) return true;
  return at != ranges_.end() && at->first < end;
}

}  // namespace tilewright::vta::check_detail
