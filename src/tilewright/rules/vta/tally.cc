// Sums over all tiles of a mapping: what each module does in total, and the bound that follows.
//
// Tiles along an axis have at most two sizes, the full one and the rest: 56 rows in tiles of 10 are
// five of 10 and one of 6. So sums go over classes of tiles, not over tiles. The bound is the
// busiest module with what must come before its first and after its last instruction.
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {

using vta::Mem;

namespace {
constexpr std::array<TileAxis, 4> kResultAxes = {TileAxis::N, TileAxis::O, TileAxis::H,
                                                 TileAxis::W};
}  // namespace

VtaTally& VtaTally::operator+=(const VtaTally& o) {
  load += o.load, compute += o.compute, store += o.store, alu += o.alu;
  read_beats += o.read_beats, insns += o.insns;
  first_load += o.first_load, first_reset += o.first_reset, first_vectors += o.first_vectors;
  epilogue_uops += o.epilogue_uops, serial += o.serial;
  alternating += o.alternating, one_copy |= o.one_copy;
  last_store += o.last_store, last_tail += o.last_tail;
  return *this;
}

int64_t VtaTally::bound(const VtaClock& clock) const {
  const int64_t begin = clock.first_fetch(insns), end = clock.config().timing.finish;
  const int64_t computing = begin + std::max(first_load - first_reset, first_vectors) + compute +
                            (one_copy ? serial : 0) + epilogue_uops + last_store;
  const int64_t loading = begin + load + last_tail + last_store;
  const int64_t storing = begin + first_load + store;
  // Loads into the only copy and GEMMs that read it take turns.
  if (one_copy) return std::max(computing, begin + alternating + last_store) + end;
  return std::max({computing, begin + alu + last_store, loading, storing}) + end;
}

VtaSums::VtaSums(const VtaLayer& layer, const VtaClock& clock, const PerAxis<int64_t>& tile)
    : layer_(layer), clock_(clock), tile_(tile) {
  position_.fill(-1);
  const InputForms rows = input_forms(layer, TileAxis::H, tile);
  const InputForms columns = input_forms(layer, TileAxis::W, tile);
  std::transform(rows.begin(), rows.end(), rows_.begin(), span_classes);
  std::transform(columns.begin(), columns.end(), columns_.begin(), span_classes);
}

void VtaSums::set_order(const std::vector<TileAxis>& order) {
  position_.fill(-1);
  depth_ = static_cast<int>(order.size());
  for (size_t i = order.size(); i-- > 0;) {
    position_[order[i]] = static_cast<int>(i);
    if (reduces(order[i])) depth_ = static_cast<int>(i);
  }
}

VtaSums::SizeClasses VtaSums::classes(TileAxis axis, int depth) const {
  SizeClasses c;
  const int64_t extent = layer_.extent[axis], tile = extent_at(axis, depth);
  const int64_t full = extent / tile;
  if (full > 0) c.items[c.used++] = {tile, full};
  if (extent % tile > 0) c.items[c.used++] = {extent % tile, 1};
  return c;
}

VtaSums::SpanClasses VtaSums::span_classes(const std::vector<InputSpan>& spans) {
  SpanClasses found;
  for (const InputSpan& s : spans) {
    if (!found.empty() && found.back().span == s)
      ++found.back().count;
    else
      found.push_back({s, 1});
  }
  return found;
}

const VtaSums::SpanClasses& VtaSums::spans(TileAxis axis, int depth) const {
  const bool h = axis == TileAxis::H;
  const size_t form = input_form(looped(axis, depth), looped(h ? TileAxis::R : TileAxis::S, depth));
  return (h ? rows_ : columns_)[form];
}

VtaTally VtaSums::input(int d) const {
  const bool by_group = layer_.out_per_group > 0 || !layer_.conv;
  const int64_t repeats = !by_group && looped(TileAxis::O, d) ? trips(TileAxis::O) : 1;
  SizeClasses out;
  out.items[out.used++] = {layer_.extent[TileAxis::O], 1};
  if (by_group) out = classes(TileAxis::O, d);
  VtaTally sums;
  int64_t longest = 0;
  for (const SizeClass& n : classes(TileAxis::N, d)) {
    for (const SizeClass& o : out) {
      for (const SizeClass& c : classes(TileAxis::C, d)) {
        for (const SpanClass& h : spans(TileAxis::H, d)) {
          for (const SpanClass& w : spans(TileAxis::W, d)) {
            const VtaTransfers t = input_transfers(
                layer_, clock_, n.size, input_blocks(layer_, o.size, c.size), h.span, w.span);
            const int64_t count = n.count * o.count * c.count * h.count * w.count * repeats;
            if (sums.insns == 0) sums.first_load = t.count * t.cycles;
            longest = std::max(longest, t.count * t.cycles);
            sums.load += count * t.count * t.cycles;
            sums.read_beats += count * t.beats;
            sums.insns += count * t.count;
          }
        }
      }
    }
  }
  sums.serial = serial(sums.load, longest, d);
  // One transfer per channel block: GEMMs start when the first has come.
  const bool in_parts = layer_.conv && position_[TileAxis::C] >= d;
  if (d > 0 && !in_parts) sums.alternating = sums.load;
  return sums;
}

int64_t VtaSums::first_input_rest(int d) const {
  if (layer_.out_per_group > 0 || position_[TileAxis::C] < d) return 0;
  const int64_t blocks = layer_.extent[TileAxis::C];
  const VtaTransfers t =
      input_transfers(layer_, clock_, extent_at(TileAxis::N, d), blocks,
                      spans(TileAxis::H, d)[0].span, spans(TileAxis::W, d)[0].span);
  return t.count < blocks ? 0 : (blocks - tile_[TileAxis::C]) * t.cycles;
}

/// Inside a tile of the result, a load into the only copy starts after the GEMMs before it, and
/// those after it wait. The first load of a tile may hide under the end of the tile before.
int64_t VtaSums::serial(int64_t load, int64_t longest, int d) const {
  if (d <= depth_) return 0;
  int64_t firsts = 1;
  for (const TileAxis axis : kResultAxes)
    if (looped(axis, depth_)) firsts *= trips(axis);
  return std::max<int64_t>(0, load - firsts * longest);
}

VtaTally VtaSums::weights(int d) const {
  VtaTally sums;
  if (!layer_.conv) return sums;
  int64_t repeats = 1;
  for (const TileAxis axis : {TileAxis::N, TileAxis::H, TileAxis::W})
    if (looped(axis, d)) repeats *= trips(axis);
  for (const SizeClass& o : classes(TileAxis::O, d)) {
    for (const SizeClass& c : classes(TileAxis::C, d)) {
      for (const SizeClass& r : classes(TileAxis::R, d)) {
        for (const SizeClass& s : classes(TileAxis::S, d)) {
          const VtaTransfers t = weight_transfers(layer_, clock_, o.size, c.size, r.size, s.size);
          const int64_t count = o.count * c.count * r.count * s.count * repeats;
          if (sums.insns == 0) sums.first_load = t.count * t.cycles;
          sums.load += count * t.count * t.cycles;
          sums.read_beats += count * t.beats;
          sums.insns += count * t.count;
        }
      }
    }
  }
  sums.serial = serial(sums.load, sums.first_load, d);
  if (d > 0) sums.alternating = sums.load;
  return sums;
}

VtaTally VtaSums::products() const {
  int64_t count = 1, least = 1, steps = 1;
  for (size_t i = 0; i < kTileAxes; ++i) {
    const auto axis = static_cast<TileAxis>(i);
    const int64_t rest = layer_.extent[axis] % tile_[axis];
    count *= trips(axis);
    steps *= layer_.extent[axis];
    if (layer_.conv || !reduces(axis)) least *= rest > 0 ? rest : tile_[axis];
  }
  if (!layer_.conv) {  // inputs are set to zero, then added
    int64_t rows = 0, columns = 0;
    for (const SpanClass& h : rows_[input_form(true, false)]) rows += h.count * h.span.all();
    for (const SpanClass& w : columns_[input_form(true, false)]) columns += w.count * w.span.all();
    steps = 2 * layer_.extent[TileAxis::N] * layer_.extent[TileAxis::O] * rows * columns;
  }
  const auto& t = clock_.config().timing;
  VtaTally sums;
  sums.compute = sums.alternating = steps * t.gemm_ii + count * t.gemm_overhead;
  sums.insns = count;
  if (layer_.residuals == 0) sums.last_tail = least * t.gemm_ii;
  return sums;
}

VtaTally VtaSums::results(const std::vector<int64_t>& tail, bool split_reset) const {
  const auto& t = clock_.config().timing;
  VtaTally sums;
  int64_t tiles_made = 1, elements = 1, tile_elements = 1;
  for (const TileAxis axis : kResultAxes) {
    if (looped(axis, depth_)) tiles_made *= trips(axis);
    elements *= layer_.extent[axis];
    tile_elements *= extent_at(axis, depth_);
  }
  const int64_t reg_ops = layer_.reg_ops * epilogue_window(layer_);
  const TileAxis along = extent_at(TileAxis::O, depth_) > 1 ? TileAxis::O : TileAxis::H;
  int64_t pieces = 0;
  for (const SizeClass& n : classes(TileAxis::N, depth_)) {
    for (const SizeClass& o : classes(TileAxis::O, depth_)) {
      for (const SizeClass& h : classes(TileAxis::H, depth_)) {
        for (const SizeClass& w : classes(TileAxis::W, depth_)) {
          const int64_t count = n.count * o.count * h.count * w.count;
          PerAxis<int64_t> size{{n.size, o.size, h.size, w.size, 1}};
          int64_t left = size[along];
          for (size_t i = tail.size() + 1; i-- > 0 && left > 0; ++pieces) {
            size[along] = i > 0 && tail[i - 1] < left ? tail[i - 1] : left;
            left -= size[along];
            pieces += count - 1;
            add_store(sums, size, count);
          }
        }
      }
    }
  }
  if (!layer_.conv || !clock_.config().extensions.fused_reset) {
    const int64_t resets = split_reset ? pieces : tiles_made;
    sums.compute = elements * t.gemm_ii + resets * t.gemm_overhead;
    sums.first_reset = tile_elements * t.gemm_ii +
                       (split_reset ? static_cast<int64_t>(tail.size()) + 1 : 1) * t.gemm_overhead;
    sums.insns += resets;
  }
  int64_t& alu = clock_.config().extensions.pipeline4 ? sums.alu : sums.compute;
  if (!layer_.conv) {  // and set to the lowest value
    alu += elements * t.alu_imm_ii + tiles_made * t.alu_overhead;
    sums.first_reset += tile_elements * t.alu_imm_ii + t.alu_overhead;
  }
  alu += elements * (layer_.imm_ops * t.alu_imm_ii + reg_ops * clock_.reg_ii()) +
         pieces * (layer_.imm_ops + reg_ops) * t.alu_overhead;
  sums.compute +=
      layer_.residual_steps * elements * t.gemm_ii + layer_.residuals * pieces * t.gemm_overhead;
  sums.insns += pieces * (layer_.imm_ops + reg_ops + layer_.residuals);
  if (!clock_.config().extensions.pipeline4) {
    const auto kernels = static_cast<int64_t>(piece_sizes(extent_at(along, depth_), tail).size());
    sums.epilogue_uops = kernels * clock_.beats(Mem::Uop, 1, 1) *
                         ((layer_.imm_ops > 0 ? 1 : 0) + (reg_ops > 0 ? 1 : 0));
  }
  return sums;
}

void VtaSums::add_store(VtaTally& sums, const PerAxis<int64_t>& size, int64_t count) const {
  const VtaBox box =
      store_box(layer_, size[TileAxis::N], size[TileAxis::O], size[TileAxis::H], size[TileAxis::W]);
  const int64_t cycles = box.transfers * clock_.store(box.rows, box.elements);
  sums.store += count * cycles;
  sums.insns += count * box.transfers;
  sums.last_store = sums.last_store == 0 ? cycles : std::min(sums.last_store, cycles);
  const int64_t residual = count * layer_.residuals * box.transfers;
  sums.load += residual * clock_.load(Mem::Inp, box.rows, box.elements, 0);
  sums.read_beats += residual * clock_.beats(Mem::Inp, box.rows, box.elements);
  sums.insns += residual;
}

VtaTally VtaSums::vectors(bool stay) const {
  VtaTally sums;
  if (layer_.vectors == 0) return sums;
  int64_t count = 1;
  for (const TileAxis axis : kResultAxes)
    if (!stay && looped(axis, depth_)) count *= trips(axis);
  const int depth = stay ? 0 : depth_;
  const int64_t blocks =
      vector_elements(layer_, extent_at(TileAxis::N, depth), extent_at(TileAxis::O, depth)) /
      layer_.vectors;
  sums.insns = count * layer_.vectors;
  sums.read_beats = sums.insns * clock_.beats(Mem::Acc, 1, blocks);
  if (stay && !clock_.config().extensions.pipeline4)
    sums.first_vectors = layer_.vectors * clock_.load(Mem::Acc, 1, blocks, 0);
  return sums;
}

VtaTally VtaSums::all(const VtaMapping& m) const {
  const VtaRegions regions{layer_, m, clock_.config()};
  const int input_depth = layer_.conv ? m.input_depth : depth_;
  VtaTally sums = input(input_depth);
  sums += weights(m.weight_depth);
  if (m.weight_depth < input_depth) sums.first_load -= first_input_rest(input_depth);
  sums += products();
  const bool split_reset = m.result_copies == 1 && depth_ > 0;
  sums += results(m.tail, split_reset);
  sums += vectors(regions.vectors_stay());
  sums.one_copy = m.copies == 1;
  return sums;
}

}  // namespace tilewright::rules
