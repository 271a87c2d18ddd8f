#include "tilewright/rules/cpu/skip_padding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/rules/cpu/borders.h"

namespace tilewright::rules {
namespace {

/// Of a tap and the rows of a tile: none of them has it inside, some, or all.
enum class Taken { None, Some, All };

Taken taken(const RowTiles& rows, int64_t tile, int64_t tap) {
  const WindowTerm& term = rows.term;
  const int64_t first = tile * rows.tile, last = std::min(first + rows.tile, rows.extent) - 1;
  const int64_t shift = term.dilation * tap - term.begin;
  const int64_t from = term.stride * first + shift, to = term.stride * last + shift;
  if (to < 0 || from >= term.extent) return Taken::None;
  return from >= 0 && to < term.extent ? Taken::All : Taken::Some;
}

/// Lengths of runs of equal `states`; each of those for which `alone` holds is a run of its own.
template <class State, class Alone>
schedule::Ints runs_of(const std::vector<State>& states, const Alone& alone) {
  schedule::Ints runs;
  for (size_t i = 0; i < states.size(); ++i) {
    const bool joins = i > 0 && states[i] == states[i - 1] && !alone(i) && !alone(i - 1);
    if (joins) ++runs.back();
    if (!joins) runs.push_back(1);
  }
  return runs;
}

/// Cuts `loop` into `runs`; the names of the parts.
std::vector<std::string> cut_into(Draft& draft, const std::string& loop,
                                  const schedule::Ints& runs) {
  if (runs.size() < 2 || !draft.attempt(schedule::Cut{loop, runs})) return {loop};
  std::vector<std::string> parts;
  for (size_t i = 0; i < runs.size(); ++i) parts.push_back(loop + "@" + std::to_string(i));
  return parts;
}

}  // namespace

std::vector<WindowTerm> window_terms(const BlockFacts& block) {
  std::vector<WindowTerm> terms;
  if (!skips_padding(block)) return terms;
  for (const Expr& margin : margins_of(block.store->value.as<Select>()->condition)) {
    const arith::Affine affine = arith::as_affine(margin);
    WindowTerm term;
    int64_t place = 0, tap = 0;
    for (const Iter& iter : block.block->iters) {
      const int64_t factor = affine.coefficient(iter.var);
      if (factor == 0) continue;
      if (iter.kind == IterKind::Space) term.place = iter.var, place = factor;
      if (iter.kind == IterKind::Reduce) term.tap = iter.var, tap = factor;
    }
    if (place == 0 || tap == 0 || (place > 0) != (tap > 0) || affine.terms.size() != 2) continue;
    auto known = std::find_if(terms.begin(), terms.end(), [&](const WindowTerm& t) {
      return t.place == term.place && t.tap == term.tap;
    });
    if (known == terms.end()) {
      term.extent = std::numeric_limits<int64_t>::max();
      known = terms.insert(terms.end(), term);
    }
    known->stride = std::abs(place), known->dilation = std::abs(tap);
    if (place > 0) known->begin = -affine.constant;
    if (place < 0) known->extent = affine.constant + 1;
  }
  // The upper margin is extent - 1 + begin - place - tap.
  for (WindowTerm& term : terms)
    if (term.extent != std::numeric_limits<int64_t>::max()) term.extent -= term.begin;
  return terms;
}

bool skips_padding(const BlockFacts& block) {
  if (block.kind != BlockFacts::Kind::Reduce || block.store->combine != Combine::Add) return false;
  const Select* select = block.store->value.as<Select>();
  const FloatImm* none = select == nullptr ? nullptr : select->on_false.as<FloatImm>();
  return none != nullptr && none->value == 0 && std::signbit(none->value);
}

std::optional<RowTiles> row_tiles(const BlockFacts& block, const TiledLoop& row) {
  for (const WindowTerm& term : window_terms(block))
    if (block.loop_of(term.place) == row.loop && !row.loop.empty())
      return RowTiles{term, block.loop_of(term.tap), block.extent_of(term.tap), row.tile,
                      row.extent};
  return std::nullopt;
}

void cut_taps(Draft& draft, const RowTiles& rows, const std::string& tiles) {
  const int64_t count = ceil_div(rows.extent, rows.tile);
  std::vector<std::vector<Taken>> states;
  for (int64_t tile = 0; tile < count; ++tile) {
    states.emplace_back();
    for (int64_t tap = 0; tap < rows.taps; ++tap) states.back().push_back(taken(rows, tile, tap));
  }
  const schedule::Ints parts = runs_of(states, [&](size_t tile) {
    const bool rest = rows.extent % rows.tile != 0 && tile + 1 == states.size();
    return rest || std::count(states[tile].begin(), states[tile].end(), Taken::Some) > 0;
  });
  // The loop over tiles may have been cut already, and that over the taps with it.
  const std::string& outer = tiles.empty() ? rows.tap_loop : tiles;
  for (const std::string& part : draft.parts_of(outer)) {
    const std::string suffix = part.substr(outer.size());
    size_t tile = 0;
    const std::vector<std::string> pieces =
        tiles.empty() ? std::vector<std::string>{part} : cut_into(draft, part, parts);
    if (pieces.size() != parts.size()) continue;
    for (size_t i = 0; i < pieces.size(); tile += static_cast<size_t>(parts[i]), ++i) {
      const std::vector<Taken>& taps = states[tile];
      const std::string loop = rows.tap_loop + pieces[i].substr(outer.size());
      cut_into(draft, loop, runs_of(taps, [&](size_t tap) { return taps[tap] == Taken::Some; }));
    }
  }
}

}  // namespace tilewright::rules
