// The pipeline of a mapping, tile by tile: when each transfer, GEMM, ALU pass and store happens.
//
// Four clocks stand for the modules: load, compute, alu (its own module in the extended design) and
// store. The loops of the mapping are walked as the program would; a module begins when it is free,
// what it reads is there and what it overwrites was used. With two copies of the input, the load of
// tile 3 waits for the GEMM of tile 1. The walk ends early once the result is certain to be above
// `limit`: the search asks for mappings that are better than the best so far.
#include <algorithm>
#include <array>
#include <utility>

#include "tilewright/base/check.h"
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {

using vta::Mem;

namespace {

/// A key that says what `key` does, and a number more.
uint64_t mixed(uint64_t key, int64_t number) {
  return (key + static_cast<uint64_t>(number) + 1) * 0x9e3779b97f4a7c15;
}

/// A ring of copies of one buffer: when each is free again.
class Slots {
 public:
  explicit Slots(int count) : count_(std::clamp<size_t>(static_cast<size_t>(count), 1, kMost)) {}
  void next() { at_ = (at_ + 1) % count_; }
  int64_t& free() { return free_[at_]; }
  int64_t at() const { return static_cast<int64_t>(at_); }

 private:
  static constexpr size_t kMost = 8;
  std::array<int64_t, kMost> free_{};
  size_t count_, at_ = 0;
};

/// A set of keys that are not 0; a few need no memory.
class Keys {
 public:
  /// False if it was there.
  bool insert(uint64_t key) {
    if (2 * (count_ + 1) > size()) grow();
    uint64_t& place = find(key);
    if (place == key) return false;
    place = key;
    ++count_;
    return true;
  }
  void clear() {
    few_.fill(0);
    more_.clear();
    count_ = 0;
  }

 private:
  size_t size() const { return more_.empty() ? few_.size() : more_.size(); }
  uint64_t* data() { return more_.empty() ? few_.data() : more_.data(); }
  uint64_t& find(uint64_t key) {
    uint64_t* table = data();
    size_t at = key & (size() - 1);
    while (table[at] != 0 && table[at] != key) at = (at + 1) & (size() - 1);
    return table[at];
  }
  void grow() {
    const std::vector<uint64_t> old(data(), data() + size());
    more_.assign(4 * old.size(), 0);
    for (const uint64_t key : old)
      if (key != 0) find(key) = key;
  }
  std::array<uint64_t, 32> few_{};
  std::vector<uint64_t> more_;
  size_t count_ = 0;
};

class Pipeline {
 public:
  Pipeline(const VtaLayer& layer, const VtaMapping& mapping, const VtaClock& clock,
           const VtaTally& sums, const VtaTiles& shapes)
      : layer_(layer),
        map_(mapping),
        clock_(clock),
        sums_(sums),
        shapes_(shapes),
        regions_{layer, mapping, clock.config()},
        depth_(result_depth(layer, mapping)),
        input_depth_(layer.conv ? mapping.input_depth : depth_),
        inputs_(input_depth_ > 0 ? mapping.copies : 1),
        weights_(mapping.weight_depth > 0 ? mapping.copies : 1),
        results_(depth_ > 0 ? mapping.result_copies : 1),
        residuals_(mapping.copies) {
    // The epilogue of one module is a module of its own in the extended design.
    own_alu_ = clock.config().extensions.pipeline4;
    loops_ = map_.order.size();
    position_.fill(-1);
    for (size_t i = 0; i < loops_; ++i) {
      trips_[i] = tiles(layer, mapping, map_.order[i]);
      position_[map_.order[i]] = static_cast<int>(i);
      const auto loop = static_cast<int>(i);
      if (loop < depth_) results_made_ *= trips_[i];
      const TileAxis a = map_.order[i];
      moves_[i] = (loop >= depth_ && !reduces(a)) || (loop >= input_depth_ && a != TileAxis::O) ||
                  (loop >= map_.weight_depth && (a == TileAxis::O || reduces(a)));
    }
    innermost_ = layer_.extent;
    for (size_t i = 0; i < loops_; ++i) resize(i);
    key_sizes();
    row_form_ = input_form(in_input(TileAxis::H), in_input(TileAxis::R));
    column_form_ = input_form(in_input(TileAxis::W), in_input(TileAxis::S));
    uops_ = shapes.uops[column_form_];
  }

  int64_t steps() const { return steps_; }
  /// More than `limit` stands for anything more than it.
  int64_t run(int64_t limit) {
    load_ = compute_ = alu_ = store_ = clock_.first_fetch(sums_.insns);
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
      ++steps_;
      // What compute has left to do follows without a gap at best.
      const int64_t least = compute_ + sums_.compute - done_ +
                            std::max<int64_t>(0, sums_.epilogue_uops - uops_done_) +
                            sums_.last_store;
      if (least > limit) return least;
      first_ = false;
      changed = advance();
      more = changed >= 0;
      if (!more || changed < depth_) finish_result();
    }
    const auto& t = clock_.config().timing;
    return std::max(store_, std::max(compute_, alu_)) + t.token_latency - 1 + t.finish;
  }

 private:
  /// Whether the loop over `axis` is outside of the copy of the input.
  bool in_input(TileAxis axis) const {
    return position(axis) >= 0 && position(axis) < input_depth_;
  }
  /// Number of the present tile of that copy along `axis`.
  int64_t input_index(TileAxis axis) const {
    return in_input(axis) ? index_[static_cast<size_t>(position(axis))] : 0;
  }
  int position(TileAxis axis) const { return position_[axis]; }
  /// Size of the present tile, or of the whole axis if its loop is not among the first `depth`.
  int64_t size(TileAxis axis, int depth) const {
    return position(axis) < depth ? innermost_[axis] : layer_.extent[axis];
  }
  int64_t innermost(TileAxis axis) const { return innermost_[axis]; }
  /// Follows the index of a loop. Returns whether the size of its tile is another.
  bool resize(size_t loop) {
    const TileAxis axis = map_.order[loop];
    const int64_t size =
        std::min(map_.tile[axis], layer_.extent[axis] - index_[loop] * map_.tile[axis]);
    return std::exchange(innermost_[axis], size) != size;
  }
  void key_sizes() {
    sizes_ = 0;
    for (const TileAxis axis : {TileAxis::N, TileAxis::O, TileAxis::H, TileAxis::W, TileAxis::C,
                                TileAxis::R, TileAxis::S})
      sizes_ = mixed(sizes_, innermost_[axis]);
  }
  /// What the present copy of the input holds along H or W, with the taps of R or S.
  const InputSpan& span(TileAxis axis, TileAxis taps) const {
    const auto& spans =
        axis == TileAxis::H ? shapes_.rows[row_form_] : shapes_.columns[column_form_];
    const int64_t groups = in_input(taps) ? trips_[static_cast<size_t>(position(taps))] : 1;
    return spans[static_cast<size_t>(input_index(axis) * groups + input_index(taps))];
  }

  /// Micro-ops are loaded by compute, all that fit at once before the first instruction: here,
  /// where they are first used, only their beats count.
  void kernel(int64_t& time, std::initializer_list<int64_t> key, int64_t uops) {
    uint64_t all = 0;
    for (const int64_t k : key) all = mixed(all, k);
    all = (all ^ all >> 29) | 1;
    if (!seen_.insert(all)) return;
    uops_there_ += uops;
    if (uops_there_ > clock_.config().depth(Mem::Uop)) {
      // What the memory cannot hold together is loaded in parts (accel/vta/uop_plan.h).
      seen_.clear();
      seen_.insert(all);
      uops_there_ = uops;
      time += clock_.load(Mem::Uop, 1, 0, 0);
    }
    time += clock_.beats(Mem::Uop, 1, uops);
  }

  void start() {
    stay_ = regions_.vectors_stay();
    compute_ += clock_.load(Mem::Uop, 1, 0, 0);
    if (layer_.vectors > 0 && stay_) {
      // The first instruction of all: its beats come before those of the first loads.
      const int64_t count =
          vector_elements(layer_, layer_.extent[TileAxis::N], layer_.extent[TileAxis::O]) /
          layer_.vectors;
      epilogue_time() += layer_.vectors * clock_.load(Mem::Acc, 1, count, 0);
      load_ += layer_.vectors * clock_.beats(Mem::Acc, 1, count);
    }
    if (layer_.residuals > 0 || !layer_.conv) load_ += clock_.load(Mem::Wgt, 1, 1, 0);
  }
  void spend(int64_t cycles) { compute_ += cycles, done_ += cycles; }
  int64_t& epilogue_time() { return own_alu_ ? alu_ : compute_; }

  void begin_result() {
    results_.next();
    const std::vector<int64_t> pieces = regions_.reset_pieces(size(regions_.piece_axis(), depth_));
    const bool resets = !clock_.config().extensions.fused_reset || !layer_.conv;
    int64_t all = 0, steps = size(TileAxis::N, depth_) * size(TileAxis::O, depth_) *
                             size(TileAxis::H, depth_) * size(TileAxis::W, depth_);
    for (const int64_t piece : pieces) all += piece;
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (resets) kernel(compute_, {0, results_.at(), static_cast<int64_t>(i)}, 1);
      const bool piecewise = pieces.size() > 1 && pieces.size() == stored_.size();
      compute_ = std::max(compute_, piecewise ? stored_[i] : results_.free());
      if (resets) spend(clock_.gemm(steps / all * pieces[i], 1));
    }
    if (!layer_.conv) start_window(steps);
  }

  /// A pooling starts from the lowest value.
  void start_window(int64_t steps) {
    int64_t& time = epilogue_time();
    time = std::max(time, compute_) + clock_.alu(steps, false);
    if (!own_alu_) done_ += clock_.alu(steps, false);
    compute_ = std::max(compute_, time);
  }

  /// Instructions after the first batch come over the same port as what they load.
  int64_t beside_fetch(int64_t cycles) const {
    const int64_t later = sums_.insns - clock_.config().timing.fetch_batch;
    if (later <= 0) return cycles;
    return cycles + cycles * later * clock_.fetch_beats() / sums_.load;
  }

  void load_input() {
    inputs_.next();
    load_ = std::max(load_, inputs_.free());
    const int64_t images = size(TileAxis::N, input_depth_);
    const int64_t blocks =
        input_blocks(layer_, size(TileAxis::O, input_depth_), size(TileAxis::C, input_depth_));
    const VtaTransfers t =
        input_transfers(layer_, clock_, images, blocks, span(TileAxis::H, TileAxis::R),
                        span(TileAxis::W, TileAxis::S));
    input_begin_ = load_, input_each_ = beside_fetch(t.cycles), input_count_ = t.count;
    load_ += t.count * input_each_;
  }

  void load_weights() {
    weights_.next();
    load_ = std::max(load_, weights_.free());
    const int d = map_.weight_depth;
    const VtaTransfers t =
        weight_transfers(layer_, clock_, size(TileAxis::O, d), size(TileAxis::C, d),
                         size(TileAxis::R, d), size(TileAxis::S, d));
    load_ += t.count * beside_fetch(t.cycles);
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
    const int64_t rows = innermost(TileAxis::R), columns = innermost(TileAxis::S);
    int64_t steps = results * innermost(TileAxis::C) * rows * columns;
    if (!layer_.conv)  // inputs are widened: set to zero, then added
      steps = 2 * innermost(TileAxis::N) * innermost(TileAxis::O) *
              hull_rows(layer_, innermost(TileAxis::H), rows) *
              hull_columns(layer_, innermost(TileAxis::W), columns);
    // Tiles that read other places of one copy, or add to other places of one result.
    int64_t place = 0;
    for (size_t i = 0; i < loops_; ++i) place = place * trips_[i] + (moves_[i] ? index_[i] : 0);
    const int64_t uops = layer_.conv ? std::max<int64_t>(1, uops_) : 1;
    kernel(compute_,
           {1, inputs_.at(), weights_.at(), results_.at(), static_cast<int64_t>(sizes_), place},
           uops);
    compute_ = std::max({compute_, input_ready(), layer_.conv ? weights_ready_ : 0});
    spend(clock_.gemm(steps, uops));
    inputs_.free() = weights_.free() = compute_;
  }

  /// A GEMM that uses a buffer again waits for its store, two modules on: the ALU passes that on by
  /// a no-op, before it begins the next result (accel/vta/tokens.h).
  void relay() {
    if (!own_alu_ || ++finished_ == 1) return;
    const bool reused = finished_ - 1 + (depth_ > 0 ? map_.result_copies : 1) <= results_made_;
    if (reused) alu_ = std::max(alu_, store_) + clock_.config().timing.empty;
  }

  void finish_result() {
    relay();
    const TileAxis axis = regions_.piece_axis();
    int64_t n = previous(TileAxis::N), o = previous(TileAxis::O), h = previous(TileAxis::H);
    const int64_t w = previous(TileAxis::W);
    if (!stay_ && layer_.vectors > 0)
      epilogue_time() +=
          layer_.vectors *
          clock_.load(Mem::Acc, 1, vector_elements(layer_, n, o) / layer_.vectors, 0);
    int64_t begin = 0;
    stored_.clear();
    for (const int64_t part : piece_sizes(previous(axis), map_.tail)) {
      (axis == TileAxis::O ? o : h) = part;
      finish_piece(begin, store_box(layer_, n, o, h, w), n * o * h * w);
      begin += part;
      stored_.push_back(store_);
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
      compute_ = std::max(compute_, load_);
      spend(clock_.gemm(steps * each, each));
      time = std::max(time, compute_);
      residuals_.free() = compute_;
    }
    const int64_t before = time;
    if (layer_.reg_ops > 0) kernel(time, {3, results_.at(), begin}, 1);
    if (layer_.imm_ops > 0) kernel(time, {4, results_.at(), begin}, 1);
    uops_done_ += time - before;
    const int64_t cycles = layer_.reg_ops * epilogue_window(layer_) * clock_.alu(steps, true) +
                           layer_.imm_ops * clock_.alu(steps, false);
    time += cycles;
    if (!own_alu_) done_ += cycles;
    store_ = std::max(store_, time) + box.transfers * clock_.store(box.rows, box.elements);
  }

  /// The outermost loop that has gone on, or -1 at the end.
  int advance() {
    for (const TileAxis axis : {TileAxis::N, TileAxis::O, TileAxis::H, TileAxis::W})
      result_size_[axis] = size(axis, depth_);
    bool resized = false;
    int changed = -1;
    for (size_t i = loops_; changed < 0 && i-- > 0;) {
      if (++index_[i] < trips_[i])
        changed = static_cast<int>(i);
      else
        index_[i] = 0;
      resized |= resize(i);
    }
    if (resized) key_sizes();
    return changed;
  }

  const VtaLayer& layer_;
  const VtaMapping& map_;
  const VtaClock& clock_;
  const VtaTally& sums_;
  const VtaTiles& shapes_;
  VtaRegions regions_;
  int depth_, input_depth_;
  Slots inputs_, weights_, results_, residuals_;
  bool own_alu_ = false, first_ = true;
  int64_t results_made_ = 1, finished_ = 0;  ///< tiles of the result: all, and those begun to store
  size_t row_form_ = 0, column_form_ = 0;    ///< of the copy of the input
  int64_t uops_ = 1;
  size_t loops_ = 0;
  std::array<int64_t, kTileAxes> trips_{}, index_{};
  std::array<bool, kTileAxes> moves_{};  ///< loops whose tiles read or add to other places
  PerAxis<int> position_;
  PerAxis<int64_t> innermost_{};  ///< sizes of the present tile
  uint64_t sizes_ = 0;            ///< a key that says them all
  PerAxis<int64_t> result_size_{};
  int64_t steps_ = 0;
  Keys seen_;               ///< kernels in the memory
  int64_t uops_there_ = 0;  ///< their micro-ops
  int64_t uops_done_ = 0;
  int64_t done_ = 0;  ///< of sums_.compute
  int64_t load_ = 0, compute_ = 0, alu_ = 0, store_ = 0;
  int64_t input_begin_ = 0, input_each_ = 0, input_count_ = 1, weights_ready_ = 0;
  bool stay_ = true;
  std::vector<int64_t> stored_;  ///< when the pieces of the last tile are in DRAM
};

}  // namespace

VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const vta::Config& config) {
  const VtaClock clock(config);
  VtaSums sums(layer, clock, mapping.tile);
  sums.set_order(mapping.order);
  return predict(layer, mapping, clock, sums.all(mapping), VtaTiles(layer, mapping.tile),
                 INT64_MAX);
}

VtaCost predict(const VtaLayer& layer, const VtaMapping& mapping, const VtaClock& clock,
                const VtaTally& sums, const VtaTiles& shapes, int64_t limit) {
  VtaCost cost;
  Pipeline pipeline(layer, mapping, clock, sums, shapes);
  cost.cycles = pipeline.run(limit);
  cost.steps = pipeline.steps();
  cost.load = sums.load, cost.compute = sums.compute + sums.alu, cost.store = sums.store;
  cost.read_bytes = sums.read_beats * clock.config().timing.bus_bytes;
  cost.insns = sums.insns;
  return cost;
}

}  // namespace tilewright::rules
