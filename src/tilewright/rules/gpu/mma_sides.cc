// Rows, columns and terms of a product of matrices as one iteration each: in a convolution
//
//   C[n, h, w, f] += X[n, h + r, w + s, c] * W[r, s, c, f]
//
// n, h, w become one iteration of rows and r, s, c one of terms. The result's buffer is laid out as
// a matrix first, [n, h, w, f] -> [(n*H + h)*W + w, f]; then loops are fused and iterations merged
// in the product, in its initial values and in what reads it, so that all three agree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "tilewright/rules/gpu/mma.h"

namespace tilewright::rules {
namespace {

using schedule::Names;

/// Iterations of one block: of the product itself, of its initial values or of a reader.
struct Part {
  std::string block;
  /// By axis of the result, names; empty where the axis has one element.
  Names axes;
};

class Sides {
 public:
  Sides(Draft& draft, std::string name, GpuMma mma)
      : draft_(draft), name_(std::move(name)), mma_(std::move(mma)) {}

  std::optional<GpuMma> run() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    result_ = sum->store->buffer.name();
    for (const BlockFacts* reader : readers(blocks, sum->store->buffer))
      users_.push_back(reader->name);
    users_.push_back(name_ + ".init");
    users_.push_back(name_);
    if (!divide() || !lay_out()) return std::nullopt;
    for (const std::string& user : users_)
      if (!merge(user)) return std::nullopt;
    for (Names* side : {&mma_.m, &mma_.n, &mma_.k}) *side = {joined(*side)};
    return std::move(mma_);
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  static std::string joined(const Names& names) { return fmt::format("{}", fmt::join(names, "*")); }

  /// How the block indexes the result; empty if it is not by iterations.
  std::optional<Part> part_of(const std::string& block) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    std::vector<Expr> indices;
    if (facts == nullptr || facts->store == nullptr) return std::nullopt;
    if (facts->store->buffer.name() == result_) indices = facts->store->indices;
    for (const Load& load : facts->loads)
      if (load.buffer.name() == result_) indices = load.indices;
    Part part{block, {}};
    for (const Expr& index : indices) {
      const auto* var = index.as<VarRef>();
      if (var == nullptr && !as_int(index)) return std::nullopt;
      part.axes.push_back(var == nullptr ? "" : var->var.name());
    }
    return part;
  }

  std::string loop_of(const std::string& block, const std::string& iter) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    for (const Iter& i : facts->block->iters)
      if (i.var.name() == iter) return facts->loop_of(i.var);
    return {};
  }

  /// Groups get an iteration and an axis of their own.
  bool divide() {
    if (mma_.grouped.empty()) return true;
    const auto sum = part_of(name_);
    if (!sum) return false;
    const auto at = std::find(sum->axes.begin(), sum->axes.end(), mma_.grouped);
    if (at == sum->axes.end()) return false;
    const size_t axis = static_cast<size_t>(at - sum->axes.begin());
    for (const std::string& user : users_) {
      const auto part = part_of(user);
      if (!part || part->axes[axis].empty() ||
          !attempt(schedule::Split{loop_of(user, part->axes[axis]), mma_.per_group}) ||
          !attempt(schedule::Divide{user, part->axes[axis], mma_.per_group}))
        return false;
    }
    Names from, to;
    for (size_t d = 0; d < sum->axes.size(); ++d) {
      from.push_back(fmt::format("x{}", d));
      if (d == axis) to.push_back(fmt::format("x{}/{}", d, mma_.per_group));
      to.push_back(d == axis ? fmt::format("x{}%{}", d, mma_.per_group) : from.back());
    }
    return map_result(from, to);
  }

  bool map_result(const Names& from, const Names& to) {
    return from == to ||
           attempt(schedule::Layout{
               result_, fmt::format("[{}] -> [{}]", fmt::join(from, ", "), fmt::join(to, ", "))});
  }

  /// The result becomes matrices: axes of batches, then rows, then columns. `places_` tells which
  /// of the axes that blocks know now each side takes.
  bool lay_out() {
    const auto sum = part_of(name_);
    if (!sum) return false;
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const std::vector<Expr> shape = find_block(blocks, name_)->store->buffer.shape();
    Names from, to;
    for (size_t d = 0; d < sum->axes.size(); ++d) from.push_back(fmt::format("x{}", d));
    for (const std::string& iter : mma_.batch)
      if (const auto axis = find(sum->axes, iter)) to.push_back(from[*axis]);
    for (const Names* side : {&mma_.m, &mma_.n}) {
      std::string index;
      for (const std::string& iter : *side) {
        const auto axis = find(sum->axes, iter);
        if (!axis) return false;
        const int64_t extent = as_int(shape[*axis]).value_or(0);
        index =
            index.empty() ? from[*axis] : fmt::format("({})*{} + {}", index, extent, from[*axis]);
      }
      to.push_back(index);
    }
    for (const std::string& user : users_) {
      auto part = part_of(user);
      if (!part || part->axes.size() != sum->axes.size()) return false;
      parts_[user] = *std::move(part);
    }
    axes_ = sum->axes;
    return map_result(from, to);
  }

  static std::optional<size_t> find(const Names& axes, const std::string& iter) {
    const auto at = std::find(axes.begin(), axes.end(), iter);
    if (at == axes.end()) return std::nullopt;
    return static_cast<size_t>(at - axes.begin());
  }

  /// The iterations of `user` that go along those of the product; the same for its terms.
  Names translated(const std::string& user, const Names& iters) const {
    if (user == name_) return iters;
    Names out;
    for (const std::string& iter : iters)
      if (const auto axis = find(axes_, iter)) out.push_back(parts_.at(user).axes[*axis]);
    std::erase(out, "");
    return out;
  }

  bool merge(const std::string& user) {
    const bool product = user == name_;
    std::vector<Names> sides = {translated(user, mma_.m), translated(user, mma_.n)};
    if (product) sides.push_back(mma_.k);
    Names order, batch = translated(user, mma_.batch);
    for (const std::string& iter : batch) order.push_back(loop_of(user, iter));
    std::vector<Names> loops;
    for (const Names& side : sides) {
      loops.emplace_back();
      for (const std::string& iter : side)
        if (const std::string loop = loop_of(user, iter); !loop.empty())
          loops.back().push_back(loop);
      order.insert(order.end(), loops.back().begin(), loops.back().end());
    }
    std::erase(order, "");
    const bool several =
        std::any_of(sides.begin(), sides.end(), [](const Names& side) { return side.size() > 1; });
    if (!several) return true;
    if (order.size() > 1 && !attempt(schedule::Reorder{order})) return false;
    for (size_t i = 0; i < sides.size(); ++i) {
      if (sides[i].size() < 2) continue;
      std::string fused = loops[i].empty() ? "" : loops[i][0];
      for (size_t l = 1; l < loops[i].size(); ++l) {
        if (!attempt(schedule::Fuse{fused, loops[i][l]})) return false;
        fused += "*" + loops[i][l];
      }
      if (!attempt(schedule::Merge{user, sides[i]})) return false;
    }
    return true;
  }

  Draft& draft_;
  const std::string name_;
  GpuMma mma_;
  std::string result_;
  Names users_;  ///< blocks that use the result
  Names axes_;   ///< iterations of the product, by axis of the result before it was laid out
  std::map<std::string, Part> parts_;
};

}  // namespace

std::optional<GpuMma> as_matrices(Draft& draft, const std::string& name, GpuMma mma) {
  return Sides(draft, name, std::move(mma)).run();
}

}  // namespace tilewright::rules
