#include "tilewright/rules/gpu/split_last_wave.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/gpu/mma.h"

namespace tilewright::rules {
namespace {

/// The only index that uses `var`, if it is `var`.
std::optional<size_t> axis_of(const std::vector<Expr>& indices, const Var& var) {
  std::optional<size_t> axis;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!uses(indices[d], var)) continue;
    if (axis || indices[d].as<VarRef>() == nullptr) return std::nullopt;
    axis = d;
  }
  return axis;
}

/// Blocks that go through the rows of a product: their iterations over rows, and which axis of what
/// they write counts rows.
struct RowBlocks {
  int64_t extent = 0;
  std::map<std::string, Var> iters;  ///< by block
  std::map<Buffer, size_t> axes;
};

/// Absent where something mixes rows.
std::optional<RowBlocks> row_blocks(const std::vector<BlockFacts>& blocks, const BlockFacts& sum,
                                    const std::string& iter) {
  RowBlocks rows;
  for (const Iter& i : sum.block->iters)
    if (i.var.name() == iter) {
      const auto axis = axis_of(sum.store->indices, i.var);
      if (!axis) return std::nullopt;
      rows.axes[sum.store->buffer] = *axis;
      rows.extent = sum.extent_of(i.var);
    }
  for (const BlockFacts& block : blocks) {
    if (block.store == nullptr) return std::nullopt;
    std::vector<Expr> at;  // indices that count rows
    if (const auto own = rows.axes.find(block.store->buffer); own != rows.axes.end())
      at.push_back(block.store->indices[own->second]);
    for (const Load& load : block.loads)
      if (const auto from = rows.axes.find(load.buffer); from != rows.axes.end())
        at.push_back(load.indices[from->second]);
    if (at.empty()) continue;
    const auto* row = at[0].as<VarRef>();
    if (row == nullptr || block.block->guard || block.extent_of(row->var) != rows.extent ||
        block.loop_of(row->var).empty() ||
        !std::all_of(at.begin(), at.end(), [&](const Expr& e) { return equal(e, at[0]); }))
      return std::nullopt;
    const auto to = axis_of(block.store->indices, row->var);
    if (!to || as_int(block.store->buffer.shape()[*to]) != rows.extent) return std::nullopt;
    rows.axes[block.store->buffer] = *to;
    rows.iters.emplace(block.name, row->var);
  }
  return rows;
}

/// Writes the two products.
class RowParts {
 public:
  RowParts(const Func& func, const std::vector<BlockFacts>& blocks, const BlockFacts& sum,
           const RowBlocks& rows)
      : func_(func), blocks_(blocks), sum_(sum), rows_(rows) {}

  Func run(int64_t first) const {
    std::vector<Stmt> out, nests;
    for (const Stmt& s : func_.body.as<Seq>()->stmts) {
      const auto* alloc = s.as<Alloc>();
      if (alloc != nullptr && rows_.axes.contains(alloc->buffer)) continue;
      (block_of(s) != nullptr ? nests : out).push_back(s);
    }
    int64_t begin = 0;
    for (const int64_t size : {first, rows_.extent - first}) {
      const std::string suffix = begin == 0 ? "@0" : "@1";
      BufferMap own;
      for (const auto& [buffer, axis] : rows_.axes)
        if (!is_output(func_, buffer) || buffer == sum_.store->buffer)
          own.emplace(buffer, part_of(buffer, axis, size, suffix));
      for (const auto& [buffer, part] : own) out.push_back(make(Alloc{part, {}}));
      for (const Stmt& nest : nests) out.push_back(part(nest, own, begin, size, suffix));
      const Buffer& result = sum_.store->buffer;
      if (is_output(func_, result)) out.push_back(copy(own.at(result), result, begin));
      begin += size;
    }
    Func changed = func_;
    changed.body = seq(std::move(out));
    return changed;
  }

 private:
  static Buffer part_of(const Buffer& buffer, size_t axis, int64_t size,
                        const std::string& suffix) {
    std::vector<Expr> shape = buffer.shape();
    shape[axis] = int_imm(size);
    return Buffer(buffer.name() + suffix, buffer.dtype(), std::move(shape), "global");
  }

  /// The block over rows in `nest`; null if it has none.
  const BlockFacts* block_of(const Stmt& nest) const {
    const BlockFacts* found = nullptr;
    walk(nest, [&](const Stmt& s) {
      const auto* block = s.as<Block>();
      if (block != nullptr && rows_.iters.contains(block->name))
        found = find_block(blocks_, block->name);
    });
    return found;
  }

  Stmt part(const Stmt& nest, const BufferMap& own, int64_t begin, int64_t size,
            const std::string& suffix) const {
    const BlockFacts& block = *block_of(nest);
    const Var row = rows_.iters.at(block.name);
    const std::string loop = block.loop_of(row);
    const auto moved = [&](const Buffer& buffer, std::vector<Expr> indices) {
      if (own.contains(buffer)) indices[rows_.axes.at(buffer)] = ref(row);
      return indices;
    };
    const Stmt here = rewrite(nest, [&](const Stmt& s) {
      if (const auto* x = s.as<For>(); x != nullptr && x->var.name() == loop) {
        For out = *x;
        out.extent = int_imm(size);
        return make(std::move(out));
      }
      if (const auto* x = s.as<Block>()) {
        Block out = *x;
        for (Iter& iter : out.iters)
          if (iter.var == row) iter.extent = int_imm(size);
        return make(std::move(out));
      }
      const auto* x = s.as<Store>();
      if (x == nullptr) return s;
      const VarMap there = {{row, ref(row) + begin}};
      Store out = *substitute(s, begin == 0 ? VarMap() : there).as<Store>();
      out.indices = moved(out.buffer, std::move(out.indices));
      out.value = rewrite(out.value, [&](const Expr& e) {
        const auto* l = e.as<Load>();
        return l == nullptr ? e : load(l->buffer, moved(l->buffer, l->indices));
      });
      return make(std::move(out));
    });
    return clone(replace_buffers(here, own), [&](const std::string& name) {
      // What belongs to the sum is named after it.
      const bool of_sum = name.starts_with(sum_.name + ".");
      return of_sum ? sum_.name + suffix + name.substr(sum_.name.size()) : name + suffix;
    });
  }

  /// `to[.., m + begin, ..] = from[.., m, ..]`.
  Stmt copy(const Buffer& from, const Buffer& to, int64_t begin) const {
    const std::string name = from.name() + ".out";
    Block block;
    block.name = name;
    std::vector<Var> loops;
    std::vector<Expr> at;
    for (size_t axis = 0; axis < from.rank(); ++axis) {
      const Var iter(fmt::format("a{}", axis));
      loops.emplace_back(name + "." + iter.name());
      block.iters.push_back({iter, IterKind::Space, from.shape()[axis], ref(loops.back())});
      at.push_back(ref(iter));
    }
    std::vector<Expr> there = at;
    if (begin > 0) there[rows_.axes.at(to)] = there[rows_.axes.at(to)] + begin;
    block.body = make(Store{to, there, load(from, at), Combine::Set});
    Stmt nest = make(std::move(block));
    for (size_t axis = from.rank(); axis-- > 0;)
      nest = make(For{loops[axis], from.shape()[axis], ForKind::Serial, "", {}, nest});
    return nest;
  }

  const Func& func_;
  const std::vector<BlockFacts>& blocks_;
  const BlockFacts& sum_;
  const RowBlocks& rows_;
};

/// The product of `func` whose rows may be parted; absent where there is none or another sum.
std::optional<GpuMma> only_product(const Func& func, const std::vector<BlockFacts>& blocks,
                                   const hw::GpuTarget& target, const BlockFacts*& sum) {
  for (const BlockFacts& block : blocks)
    if (block.kind == BlockFacts::Kind::Reduce) {
      if (sum != nullptr) return std::nullopt;
      sum = &block;
    }
  auto mma = sum != nullptr ? find_gpu_mma(*sum, target) : std::nullopt;
  if (!mma || mma->types == kTf32 || mma->m.size() != 1 || !mma->grouped.empty())
    return std::nullopt;
  for (const GpuMma::Factor* factor : {&mma->a, &mma->b}) {
    const auto param = std::find_if(func.params.begin(), func.params.end(), [&](const Param& p) {
      return p.buffer.name() == factor->buffer;
    });
    const bool laid_out = factor->packed || (!factor->in_order && param != func.params.end() &&
                                             param->mode == ParamMode::Const);
    if (param == func.params.end() || laid_out) return std::nullopt;
  }
  return mma;
}

Func parted(const Func& func, const hw::GpuTarget& target,
            const std::function<int64_t(const GpuMma&)>& rows_of_first) {
  if (func.math == MathMode::Exact || func.body.as<Seq>() == nullptr) return func;
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const BlockFacts* sum = nullptr;
  const auto mma = only_product(func, blocks, target, sum);
  const int64_t first = mma ? rows_of_first(*mma) : 0;
  if (first < 1 || first >= mma->extent_m) return func;
  const auto rows = row_blocks(blocks, *sum, mma->m[0]);
  return rows ? RowParts(func, blocks, *sum, *rows).run(first) : func;
}

}  // namespace

Func with_row_parts(const Func& func, const hw::GpuTarget& target) {
  return parted(func, target, [&](const GpuMma& mma) {
    // A part of a matrix is no matrix to the copy engine, which groups of warps need.
    const std::optional<GpuMma> whole = in_best_tiles(mma, target);
    return whole && whole->groups ? 0 : rows_of_whole_waves(mma, target);
  });
}

Func in_row_parts(const Func& func, const hw::GpuTarget& target, int64_t first) {
  return parted(func, target, [&](const GpuMma&) { return first; });
}

}  // namespace tilewright::rules
