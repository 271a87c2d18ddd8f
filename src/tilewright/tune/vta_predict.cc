// The pipeline of a mapping, tile by tile: when each transfer, GEMM, ALU pass and store happens.
#include <unordered_set>

#include "tilewright/base/check.h"
#include "tilewright/tune/vta_model.h"

namespace tilewright::tune {

using vta::Mem;

namespace {

constexpr uint64_t kMix = 0x9e3779b97f4a7c15;

/// A ring of copies of one buffer: when each is free again.
class Slots {
 public:
  explicit Slots(int count) : free_(static_cast<size_t>(count), 0) {}
  void next() { at_ = (at_ + 1) % free_.size(); }
  int64_t& free() { return free_[at_]; }
  int64_t at() const { return static_cast<int64_t>(at_); }

 private:
  std::vector<int64_t> free_;
  size_t at_ = 0;
};

class Pipeline {
 public:
  Pipeline(const VtaLayer& layer, const VtaMapping& mapping, const VtaClock& clock)
      : layer_(layer),
        map_(mapping),
        clock_(clock),
        regions_{layer, mapping, clock.config()},
        depth_(result_depth(layer, mapping)),
        input_depth_(layer.conv ? mapping.input_depth : depth_),
        inputs_(input_depth_ > 0 ? mapping.copies : 1),
        weights_(mapping.weight_depth > 0 ? mapping.copies : 1),
        results_(depth_ > 0 ? mapping.copies : 1),
        residuals_(mapping.copies) {
    // The epilogue of one module is a module of its own in the extended design.
    own_alu_ = clock.config().extensions.pipeline4;
    for (const TileAxis axis : map_.order) trips_.push_back(tiles(layer, mapping, axis));
    index_.assign(trips_.size(), 0);
    rows_ = spans(TileAxis::H), columns_ = spans(TileAxis::W);
  }

  int64_t run(int64_t insns) {
    load_ = compute_ = alu_ = store_ = clock_.first_fetch(insns);
    start();
    int changed = 0;
    bool more = true;
    while (more) {
      if (first_ || changed < depth_) begin_result();
      const bool input = first_ || changed < input_depth_;
      const bool weights = layer_.conv && (first_ || changed < map_.weight_depth);
      const bool weights_outside = map_.weight_depth < input_depth_;
      if (weights && weights_outside) load_weights();
      if (input) load_input();
      if (weights && !weights_outside) load_weights();
      multiply();
      first_ = false;
      changed = advance();
      more = changed >= 0;
      if (!more || changed < depth_) finish_result();
    }
    const auto& t = clock_.config().timing;
    return std::max(store_, std::max(compute_, alu_)) + t.token_latency - 1 + t.finish;
  }

 private:
  using Span = InputSpan;

  std::vector<Span> spans(TileAxis axis) const {
    return input_spans(layer_, axis, position(axis) >= 0 ? map_.tile[axis] : layer_.extent[axis]);
  }
  int position(TileAxis axis) const {
    for (size_t i = 0; i < map_.order.size(); ++i)
      if (map_.order[i] == axis) return static_cast<int>(i);
    return -1;
  }
  /// Size of the present tile, or of the whole axis if its loop is not among the first `depth`.
  int64_t size(TileAxis axis, int depth) const {
    const int p = position(axis);
    if (p < 0 || p >= depth) return layer_.extent[axis];
    const int64_t begin = index_[static_cast<size_t>(p)] * map_.tile[axis];
    return std::min(map_.tile[axis], layer_.extent[axis] - begin);
  }
  int64_t innermost(TileAxis axis) const { return size(axis, static_cast<int>(trips_.size())); }
  Span span(TileAxis axis, const std::vector<Span>& all, int depth) const {
    const int p = position(axis);
    if (p >= 0 && p < depth) return all[static_cast<size_t>(index_[static_cast<size_t>(p)])];
    return input_spans(layer_, axis, layer_.extent[axis])[0];
  }

  /// Micro-ops that are not on chip yet are loaded by compute.
  void kernel(int64_t& time, std::initializer_list<int64_t> key, int64_t uops) {
    uint64_t mixed = 0;
    for (const int64_t k : key) mixed = (mixed + static_cast<uint64_t>(k) + 1) * kMix;
    if (seen_.insert(mixed ^ mixed >> 29).second) time += clock_.load(Mem::Uop, 1, uops, 0);
  }

  void start() {
    if (layer_.vectors > 0 && regions_.vectors_stay()) {
      const int64_t count = layer_.extent[TileAxis::O];
      epilogue_time() += layer_.vectors * clock_.load(Mem::Acc, 1, count, 0);
      late_beats_ = layer_.vectors * clock_.beats(Mem::Acc, 1, count);
    }
    if (layer_.residuals > 0 || !layer_.conv) load_ += clock_.load(Mem::Wgt, 1, 1, 0);
  }
  int64_t& epilogue_time() { return own_alu_ ? alu_ : compute_; }

  void begin_result() {
    results_.next();
    if (clock_.config().extensions.fused_reset || !layer_.conv) {
      compute_ = std::max(compute_, results_.free());
      return;
    }
    const int64_t steps = size(TileAxis::N, depth_) * size(TileAxis::O, depth_) *
                          size(TileAxis::H, depth_) * size(TileAxis::W, depth_);
    kernel(compute_, {0, results_.at()}, 1);
    compute_ = std::max(compute_, results_.free()) + clock_.gemm(steps, 1);
  }

  void load_input() {
    inputs_.next();
    load_ = std::max(load_, inputs_.free());
    const int64_t images = size(TileAxis::N, input_depth_);
    const int64_t blocks =
        input_blocks(layer_, size(TileAxis::O, input_depth_), size(TileAxis::C, input_depth_));
    const VtaTransfers t =
        input_transfers(layer_, clock_, images, blocks, span(TileAxis::H, rows_, input_depth_),
                        span(TileAxis::W, columns_, input_depth_));
    input_begin_ = load_, input_each_ = t.cycles, input_count_ = t.count;
    load_ += t.count * t.cycles;
    if (late_beats_ > 0) {  // the copy of the bias waited for this one
      epilogue_time() = std::max(epilogue_time(), load_ + late_beats_);
      load_ += late_beats_;
      late_beats_ = 0;
    }
  }

  void load_weights() {
    weights_.next();
    load_ = std::max(load_, weights_.free());
    const int d = map_.weight_depth;
    load_ += weight_transfers(layer_, clock_, size(TileAxis::O, d), size(TileAxis::C, d)).cycles;
    weights_ready_ = load_;
  }

  /// When the part of the input that the present tile reads has come: one transfer per block of
  /// channels, if they are not one altogether.
  int64_t input_ready() const {
    const int p = position(TileAxis::C);
    const bool inside = layer_.conv && p >= input_depth_ && layer_.out_per_group == 0;
    int64_t needed = input_count_;
    if (inside && input_count_ >= layer_.extent[TileAxis::C]) {
      const int64_t end =
          index_[static_cast<size_t>(p)] * map_.tile[TileAxis::C] + innermost(TileAxis::C);
      needed = input_count_ - layer_.extent[TileAxis::C] + end;
    }
    return input_begin_ + needed * input_each_;
  }

  void multiply() {
    const int64_t results = innermost(TileAxis::N) * innermost(TileAxis::O) *
                            innermost(TileAxis::H) * innermost(TileAxis::W);
    int64_t steps = results * innermost(TileAxis::C) * layer_.kernel_h * layer_.kernel_w;
    if (!layer_.conv)
      steps = innermost(TileAxis::N) * innermost(TileAxis::O) *
              hull_rows(layer_, innermost(TileAxis::H)) *
              hull_columns(layer_, innermost(TileAxis::W));
    // Tiles that read other places of one copy, or add to other places of one result.
    int64_t place = 0;
    for (size_t i = 0; i < map_.order.size(); ++i) {
      const auto loop = static_cast<int>(i);
      const TileAxis a = map_.order[i];
      const bool moves = (loop >= depth_ && a != TileAxis::C) ||
                         (loop >= input_depth_ && a != TileAxis::O) ||
                         (loop >= map_.weight_depth && (a == TileAxis::O || a == TileAxis::C));
      place = place * trips_[i] + (moves ? index_[i] : 0);
    }
    const int64_t uops = layer_.conv ? std::max<int64_t>(1, uops_) : 1;
    kernel(compute_,
           {1, inputs_.at(), weights_.at(), results_.at(), innermost(TileAxis::N),
            innermost(TileAxis::O), innermost(TileAxis::H), innermost(TileAxis::W),
            innermost(TileAxis::C), place},
           uops);
    compute_ = std::max({compute_, input_ready(), layer_.conv ? weights_ready_ : 0});
    compute_ += clock_.gemm(steps, uops);
    inputs_.free() = weights_.free() = compute_;
  }

  void finish_result() {
    const TileAxis axis = regions_.piece_axis();
    const int64_t along = previous(axis);
    int64_t n = previous(TileAxis::N), o = previous(TileAxis::O), h = previous(TileAxis::H);
    const int64_t w = previous(TileAxis::W);
    for (int64_t begin = 0; begin < along; begin += map_.piece) {
      const int64_t part = std::min(map_.piece, along - begin);
      (axis == TileAxis::O ? o : h) = part;
      finish_piece(begin, store_box(layer_, n, o, h, w), n * o * h * w);
    }
    results_.free() = store_;
  }
  /// Size of the tile of the result that has just been computed.
  int64_t previous(TileAxis axis) const { return result_size_[axis]; }

  void finish_piece(int64_t begin, const VtaBox& box, int64_t steps) {
    int64_t& time = epilogue_time();
    time = std::max(time, compute_);
    for (int64_t i = 0; i < layer_.residuals; ++i) {
      residuals_.next();
      load_ = std::max(load_, residuals_.free());
      load_ += box.transfers * clock_.load(Mem::Inp, box.rows, box.elements, 0);
      kernel(compute_, {2, results_.at(), begin}, 1);
      const int64_t each = layer_.residual_steps / layer_.residuals;
      compute_ = std::max(compute_, load_) + clock_.gemm(steps * each, each);
      time = std::max(time, compute_);
      residuals_.free() = compute_;
    }
    if (layer_.reg_ops > 0) kernel(time, {3, results_.at(), begin}, 1);
    if (layer_.imm_ops > 0) kernel(time, {4, results_.at(), begin}, 1);
    const int64_t window = layer_.conv ? 1 : layer_.kernel_h * layer_.kernel_w;
    for (int64_t i = 0; i < layer_.reg_ops * window; ++i) time += clock_.alu(steps, true);
    for (int64_t i = 0; i < layer_.imm_ops; ++i) time += clock_.alu(steps, false);
    store_ = std::max(store_, time) + box.transfers * clock_.store(box.rows, box.elements);
  }

  /// The outermost loop that has gone on, or -1 at the end.
  int advance() {
    for (const TileAxis axis : {TileAxis::N, TileAxis::O, TileAxis::H, TileAxis::W})
      result_size_[axis] = size(axis, depth_);
    for (size_t i = trips_.size(); i-- > 0;) {
      if (++index_[i] < trips_[i]) return static_cast<int>(i);
      index_[i] = 0;
    }
    return -1;
  }

  const VtaLayer& layer_;
  const VtaMapping& map_;
  const VtaClock& clock_;
  VtaRegions regions_;
  int depth_, input_depth_;
  Slots inputs_, weights_, results_, residuals_;
  bool own_alu_ = false, first_ = true;
  int64_t uops_ = regions_.kernel_uops();
  std::vector<int64_t> trips_, index_;
  std::vector<Span> rows_, columns_;
  PerAxis<int64_t> result_size_{{1, 1, 1, 1, 1}};
  std::unordered_set<uint64_t> seen_;
  int64_t load_ = 0, compute_ = 0, alu_ = 0, store_ = 0;
  int64_t input_begin_ = 0, input_each_ = 0, input_count_ = 1, weights_ready_ = 0;
  int64_t late_beats_ = 0;
};

}  // namespace

VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const vta::Config& config) {
  const VtaClock clock(config);
  VtaSums sums(layer, clock, mapping.tile);
  sums.set_order(mapping.order);
  return predict(layer, mapping, clock, sums.all(mapping));
}

VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const VtaClock& clock,
                const VtaTally& sums) {
  VtaCost cost;
  cost.cycles = Pipeline(layer, mapping, clock).run(sums.insns);
  cost.load = sums.load, cost.compute = sums.compute + sums.alu, cost.store = sums.store;
  cost.read_bytes = sums.read_beats * clock.config().timing.bus_bytes;
  cost.insns = sums.insns;
  return cost;
}

}  // namespace tilewright::tune
