// The tile of a sum of products on a GPU: what is possible, and which the model takes first.
//
// A tile has threads x elements per thread along both sides of the product. All pairs are first
// looked at with the usual 16 steps of the reduction between two barriers. The 32 fastest by the
// model are then refined: steps, rounds of copies in flight and parts of the sum are chosen in
// turn, twice, since each depends on the others.
#include "tilewright/rules/gpu/tile_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewright/arith/bounds.h"
#include "tilewright/base/integers.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/cpu/register_tile.h"
#include "tilewright/rules/gpu/byte_dot.h"

namespace tilewright::rules {
namespace {

constexpr int64_t kMostThreads = 64, kMostEach = 8;  ///< along one side
constexpr int64_t kMostBlockThreads = 256;
/// Iterations of the reduction between two barriers.
constexpr int64_t kSteps[] = {4, 8, 16, 32, 64};
constexpr int64_t kUsualSteps = 16;
/// Tiles that are looked at more closely, of those with the usual steps.
constexpr size_t kRefined = 32;
constexpr int64_t kVector = 4;

/// The least power of two that is not below `wanted`, or not below `extent`.
int64_t up_to(int64_t wanted, int64_t extent) {
  int64_t size = 1;
  while (size < wanted && size < extent) size *= 2;
  return size;
}

/// c if `load` depends on `var` only through var / c: that many iterations share what they read.
int64_t group_size(const Load& load, const Var& var) {
  int64_t size = 0;
  for (const Expr& index : load.indices) {
    const arith::Affine sum = arith::as_affine(index);
    if (sum.coefficient(var) != 0) return 0;
    for (const auto& [term, coefficient] : sum.terms) {
      if (!uses(term, var)) continue;
      const auto* quotient = term.as<Binary>();
      const bool plain = quotient && quotient->op == BinaryOp::Div && quotient->a.as<VarRef>();
      const int64_t by = plain ? as_int(quotient->b).value_or(0) : 0;
      if (by < 2 || (size != 0 && size != by)) return 0;
      size = by;
    }
  }
  return size;
}

/// Replaces `axis` by two: the iterations of a group, and the groups, which are a new last axis.
void split_groups(cost::Contraction& c, size_t axis, int64_t group) {
  const int inner = static_cast<int>(axis), outer = static_cast<int>(c.axes.size());
  c.axes.push_back({c.axes[axis].name + ".o", c.axes[axis].extent / group, false});
  c.axes[axis].extent = group;
  for (cost::Operand& operand : c.operands)
    for (cost::Index& index : operand.indices) {
      std::vector<cost::IndexTerm> groups;
      for (cost::IndexTerm& term : index.terms) {
        if (term.axis != inner) continue;
        if (term.divide == group)
          term = {outer, term.coefficient, 1, 0};
        else
          groups.push_back({outer, term.coefficient * group, 1, 0});
      }
      index.terms.insert(index.terms.end(), groups.begin(), groups.end());
    }
}

/// Counts words of the factors as elements: `axis`, which is not among those of `c`, counts what is
/// in one.
void count_words(cost::Contraction& c, size_t axis) {
  for (size_t op = 0; op < 2; ++op) {
    cost::Operand& operand = c.operands[op];
    operand.element_bytes *= kWordTerms;
    for (cost::Index& index : operand.indices) {
      const auto inside = std::find_if(
          index.terms.begin(), index.terms.end(),
          [&](const cost::IndexTerm& term) { return term.axis == static_cast<int>(axis); });
      if (inside == index.terms.end()) continue;
      index.terms.erase(inside);
      index.extent = ceil_div(index.extent, kWordTerms);
      for (cost::IndexTerm& term : index.terms) term.coefficient /= kWordTerms;
    }
  }
}

}  // namespace

std::optional<GpuTileTable> GpuTileTable::create(const BlockFacts& block,
                                                 const hw::GpuTarget& target) {
  Answer<GpuTileTable> table = find(block, target);
  return table ? std::optional(*std::move(table)) : std::nullopt;
}

Answer<GpuTileTable> GpuTileTable::find(const BlockFacts& block, const hw::GpuTarget& target) {
  const std::optional<Product> product = product_of(block);
  if (!product) return decline("`{}` is no sum of products", block.name);
  GpuTile loops;
  cost::Contraction c;
  std::vector<Var> vars;
  size_t grouped_axis = 0;
  const auto words = word_terms(block, target);
  for (const Iter& iter : block.block->iters) {
    const std::string loop = block.loop_of(iter.var);
    const int64_t extent = block.extent_of(iter.var);
    if (loop.empty() || extent < 1)
      return decline("no loop of constant length runs along `{}` of `{}`", iter.var.name(),
                     block.name);
    if (words && iter.var == words->iter) continue;
    vars.push_back(iter.var);
    c.axes.push_back({loop, extent, iter.kind == IterKind::Reduce});
    if (iter.kind == IterKind::Reduce) {
      loops.reduces.push_back(loop);
      loops.extents.push_back(extent);
      loops.steps.push_back(1);
      continue;
    }
    const int64_t group =
        std::max(group_size(product->a, iter.var), group_size(product->b, iter.var));
    const bool grouped = group > 1 && extent % group == 0 && loops.group == 0;
    if (grouped) loops.groups = loop, loops.group = group, grouped_axis = vars.size() - 1;
    loops.axes.push_back({grouped ? loop + ".i" : loop, grouped ? group : extent});
  }
  if (words) vars.push_back(words->iter);
  for (const Load* load : {&product->a, &product->b})
    c.operands.push_back(operand_of(load->buffer, load->indices, vars));
  c.operands.push_back(operand_of(block.store->buffer, block.store->indices, vars));
  c.dtype = block.store->buffer.dtype();
  if (words) loops.word = words->loop, count_words(c, vars.size() - 1);
  if (loops.group > 0) split_groups(c, grouped_axis, loops.group);
  GpuTileTable table(target, std::move(loops), std::move(c));
  if (Answer<Done> sides = table.find_sides(); !sides) return decline("{}", sides.error());
  return table;
}

GpuTileTable::GpuTileTable(const hw::GpuTarget& target, GpuTile loops,
                           cost::Contraction contraction)
    : target_(target),
      loops_(std::move(loops)),
      contraction_(std::move(contraction)),
      model_(contraction_, target_),
      depths_{1},
      splits_{1} {
  const size_t own = contraction_.axes.size() - (loops_.group > 0 ? 1 : 0);
  for (size_t i = 0; i < own; ++i)
    (contraction_.axes[i].reduces ? reduce_axis_of_ : axis_of_).push_back(i);
  find_contiguous();
  find_steps();
  // Copies that go on beside arithmetic need the instructions for it.
  if (hw::copies_asynchronously(target_))
    for (const int64_t rounds : {2, 3, 4}) depths_.push_back(rounds);
  // A sum whose parts are to meet again must have several rounds; groups have blocks enough.
  if (loops_.group == 0)
    for (const int64_t parts : {2, 4, 8, 16, 32}) splits_.push_back(parts);
}

/// Which axes only one factor has. Declines if one of the factors would not be shared by threads.
Answer<Done> GpuTileTable::find_sides() {
  int64_t sizes[2] = {1, 1};
  for (size_t i = 0; i < axis_of_.size(); ++i) {
    const int axis = static_cast<int>(axis_of_[i]);
    const bool in_a = contraction_.moves(0, axis), in_b = contraction_.moves(1, axis);
    if (in_a == in_b) continue;
    (in_a ? side_a_ : side_b_).push_back(i);
    sizes[in_a ? 0 : 1] *= loops_.axes[i].extent;
  }
  if (sizes[0] < 2 || sizes[1] < 2)
    return decline("results of different threads share no element of a factor");
  return Done{};
}

/// An axis along which a factor goes in steps of one element can be made to lie side by side.
void GpuTileTable::find_contiguous() {
  contiguous_.assign(axis_of_.size(), false);
  for (size_t i = 0; i < axis_of_.size(); ++i)
    for (size_t op = 0; op < 2; ++op)
      for (const cost::Index& index : contraction_.operands[op].indices)
        for (const cost::IndexTerm& term : index.terms)
          if (term.axis == static_cast<int>(axis_of_[i]))
            contiguous_[i] = term.coefficient == 1 && term.divide <= 1 && term.modulo == 0;
}

/// The outermost reduction loop (channels) goes on in steps around the whole others (a window), or
/// around one place of the window; windows of many places in parts.
void GpuTileTable::find_steps() {
  const std::vector<int64_t>& extents = loops_.extents;
  const auto add = [&](const std::vector<int64_t>& steps) {
    const auto at =
        static_cast<size_t>(std::find(steps_.begin(), steps_.end(), steps) - steps_.begin());
    if (at == steps_.size()) steps_.push_back(steps);
    return at;
  };
  for (const int64_t wanted : kSteps) {
    std::vector<int64_t> steps = extents;
    for (size_t i = 0; i < steps.size(); ++i) {
      int64_t inner = 1;
      for (size_t j = i + 1; j < steps.size(); ++j) inner *= extents[j];
      const int64_t most = std::max<int64_t>(1, wanted / inner);
      steps[i] = std::min(extents[i], most);
      while (i > 0 && extents[i] % steps[i] != 0) --steps[i];
      if (inner <= wanted) break;
    }
    const size_t at = add(steps);
    if (wanted == kUsualSteps) usual_ = at;
    std::vector<int64_t> places(extents.size(), 1);
    if (!places.empty()) places[0] = std::min(extents[0], wanted);
    add(places);
  }
  for (size_t i = 0; i < steps_.size(); ++i)
    if (product(steps_[i]) < product(steps_[least_])) least_ = i;
}

std::vector<int64_t> GpuTileTable::threads() const {
  std::vector<int64_t> values;
  for (int64_t t = 1; t <= kMostThreads; t *= 2) values.push_back(t);
  return values;
}

std::vector<int64_t> GpuTileTable::each() const {
  std::vector<int64_t> values;
  for (int64_t e = 1; e <= kMostEach; ++e) values.push_back(e);
  return values;
}

void GpuTileTable::share_out(const std::vector<size_t>& side, int64_t threads, int64_t each,
                             GpuTile& tile) const {
  bool vectors = false;  // one of the axes lies side by side
  for (auto at = side.rbegin(); at != side.rend(); ++at) {
    GpuAxis& axis = tile.axes[*at];
    axis.threads = up_to(threads, axis.extent);
    threads /= axis.threads;
    axis.each = std::min(each, ceil_div(axis.extent, axis.threads));
    each /= axis.each;
    if (contiguous_[*at] && axis.threads > 1 && axis.each % kVector == 0 && !vectors)
      axis.vector = kVector;
    vectors |= axis.vector > 1;
  }
}

GpuTile GpuTileTable::tile(const GpuTilePoint& point) const {
  GpuTile tile = loops_;
  share_out(side_a_, point.threads_a, point.each_a, tile);
  share_out(side_b_, point.threads_b, point.each_b, tile);
  if (point.steps < steps_.size()) tile.steps = steps_[point.steps];
  tile.depth = point.depth;
  tile.splits = point.splits;
  return tile;
}

bool GpuTileTable::legal(const GpuTile& tile) const {
  int64_t threads = 1;
  int thread_axes = 0;
  bool blocks = tile.group > 0;
  for (const GpuAxis& axis : tile.axes) {
    threads *= axis.threads;
    thread_axes += axis.threads > 1;
    blocks |= axis.tile() < axis.extent || axis.tile() == 1;
  }
  const auto shared = [&](const std::vector<size_t>& side) {
    return std::any_of(side.begin(), side.end(), [&](size_t i) { return tile.axes[i].tile() > 1; });
  };
  if (tile.splits > 1) {
    int64_t rounds = 1;
    for (size_t i = 0; i < tile.steps.size(); ++i)
      rounds = std::max(rounds, ceil_div(tile.extents[i], tile.steps[i]));
    if (rounds < 2 * tile.splits) return false;
  }
  return blocks && thread_axes >= 1 && thread_axes <= 3 && threads <= kMostBlockThreads &&
         shared(side_a_) && shared(side_b_);
}

std::optional<cost::GpuPrediction> GpuTileTable::predict(const GpuTile& tile) const {
  if (!legal(tile)) return std::nullopt;
  cost::GpuBlocking blocking;
  blocking.axes.resize(contraction_.axes.size());
  for (size_t i = 0; i < axis_of_.size(); ++i)
    blocking.axes[axis_of_[i]] = {tile.axes[i].threads, tile.axes[i].each, tile.axes[i].vector};
  for (size_t i = 0; i < reduce_axis_of_.size(); ++i)
    blocking.axes[reduce_axis_of_[i]].each = tile.steps[i];
  blocking.depth = tile.depth;
  blocking.splits = tile.splits;
  return model_.predict(blocking);
}

double GpuTileTable::time_of(const GpuTilePoint& point, int64_t& looked_at) const {
  ++looked_at;
  const std::optional<cost::GpuPrediction> time = predict(tile(point));
  return time ? time->total : std::numeric_limits<double>::infinity();
}

/// The best steps of a tile, then how many rounds it keeps in flight, then in how many parts; and
/// once more, since each depends on the others.
void GpuTileTable::refine(GpuTilePoint& point, double& time, int64_t& looked_at) const {
  const auto take = [&](const GpuTilePoint& other) {
    if (const double t = time_of(other, looked_at); t < time) time = t, point = other;
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (GpuTilePoint other = point; const int64_t depth : depths_)
      other.depth = depth, take(other);
    for (GpuTilePoint other = point; const int64_t parts : splits_)
      other.splits = parts, take(other);
    GpuTilePoint other = point;
    for (other.steps = 0; other.steps < steps_.size(); ++other.steps) take(other);
  }
}

/// The usual steps, or the fewest where they do not fit; rounds one by one or some in flight; parts
/// where there are too few blocks. The time of the best, infinite where there is none.
double GpuTileTable::first_look(GpuTilePoint& point, int64_t& looked_at) const {
  const double never = std::numeric_limits<double>::infinity();
  double least = never;
  GpuTilePoint best = point;
  for (const size_t steps : {usual_, least_}) {
    for (const int64_t depth : {depths_.front(), depths_.back()}) {
      GpuTilePoint other = point;
      other.steps = steps;
      other.depth = depth;
      const std::optional<cost::GpuPrediction> time = predict(tile(other));
      ++looked_at;
      if (!time) continue;
      if (time->total < least) least = time->total, best = other;
      const int64_t lacking = 2 * target_.units / time->blocks;
      const auto parts = std::upper_bound(splits_.begin(), splits_.end(), lacking);
      if (lacking < 2 || parts == splits_.begin()) continue;
      other.splits = *std::prev(parts);
      if (const double split = time_of(other, looked_at); split < least)
        least = split, best = other;
    }
    if (least < never) break;
  }
  point = best;
  return least;
}

std::vector<GpuTileTable::Choice> GpuTileTable::best(size_t count, int64_t* looked_at) const {
  struct Ranked {
    double time;
    GpuTilePoint point;
  };
  std::vector<Ranked> ranked;
  int64_t seen = 0;
  const auto exact = [&](const std::vector<size_t>& side, int64_t t, int64_t e) {
    if ((e & (e - 1)) == 0) return true;
    return !side.empty() && loops_.axes[side.back()].extent % (t * e) == 0;
  };
  const auto consider = [&](GpuTilePoint point) {
    const double time = first_look(point, seen);
    if (std::isfinite(time)) ranked.push_back({time, point});
  };
  const std::vector<int64_t> threads = this->threads(), each = this->each();
  for (const int64_t ta : threads)
    for (const int64_t tb : threads) {
      if (ta * tb > std::min(kMostBlockThreads, target_.max_threads)) continue;
      for (const int64_t ea : each)
        for (const int64_t eb : each)
          if (ta * ea > 1 && tb * eb > 1 && exact(side_a_, ta, ea) && exact(side_b_, tb, eb))
            consider({ta, ea, tb, eb});
    }
  const auto faster = [](const Ranked& x, const Ranked& y) { return x.time < y.time; };
  std::stable_sort(ranked.begin(), ranked.end(), faster);
  if (ranked.size() > std::max(count, kRefined)) ranked.resize(std::max(count, kRefined));
  for (Ranked& one : ranked) refine(one.point, one.time, seen);
  std::stable_sort(ranked.begin(), ranked.end(), faster);
  std::vector<Choice> choices;
  for (size_t i = 0; i < ranked.size() && choices.size() < count; ++i) {
    GpuTile made = tile(ranked[i].point);
    choices.push_back({made, *predict(made)});
  }
  if (looked_at != nullptr) *looked_at = seen;
  return choices;
}

std::string to_string(const GpuTile& tile) {
  std::vector<int64_t> threads, each;
  for (const GpuAxis& axis : tile.axes) {
    if (axis.tile() == 1) continue;
    threads.push_back(axis.threads);
    each.push_back(axis.each);
  }
  std::string text = fmt::format("{} threads, {} each, {} steps", fmt::join(threads, "x"),
                                 fmt::join(each, "x"), fmt::join(tile.steps, "x"));
  if (tile.depth > 1) text += fmt::format(", {} rounds in flight", tile.depth);
  if (tile.splits > 1) text += fmt::format(", {} parts", tile.splits);
  return text;
}

std::optional<GpuTile> choose_gpu_tile(const BlockFacts& block, const hw::GpuTarget& target) {
  const std::optional<GpuTileTable> table = GpuTileTable::create(block, target);
  if (!table) return std::nullopt;
  std::vector<GpuTileTable::Choice> best = table->best(1);
  return best.empty() ? std::nullopt : std::optional(std::move(best[0].tile));
}

}  // namespace tilewright::rules
