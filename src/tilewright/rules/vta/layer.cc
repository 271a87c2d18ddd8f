// Reading a layer's facts from its Func. The blocks have roles (blocks.h): perhaps one that stages
// the input with padding, the sum or maximum, and one last block. Strides, dilation and padding are
// found by evaluating index expressions at points: what `h * 2 + r - 1` is at h = 1, less what it
// is at 0, is the stride of the rows. The last block is walked to count ALU steps and to find
// residuals and i32 operands. Two rules take layers, convolutions and poolings; else it is said
// what is in the way.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/arith/simplifier.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/common/program_facts.h"
#include "tilewright/rules/vta/blocks.h"
#include "tilewright/rules/vta/model.h"

namespace tilewright::rules {
namespace {

tl::unexpected<Error> unsupported(const Func& func, const std::string& why) {
  return fail(ErrorKind::Unsupported, fmt::format("`{}` has no mapping onto VTA", func.name), why,
              "leave the operator to the CPU");
}

int64_t extent_of(const Iter& iter) { return as_int(iter.extent).value_or(0); }

const Iter* iter_named(const Block& block, const std::string& name) {
  for (const Iter& iter : block.iters)
    if (iter.var.name() == name) return &iter;
  return nullptr;
}

/// Values of an index expression at points of its block's iterations, all others 0.
class Index {
 public:
  Index(const Expr& e, const Block& block) : e_(e), block_(block) {}
  std::optional<int64_t> at(const std::string& iter, int64_t value) const {
    VarMap point;
    for (const Iter& i : block_.iters) point[i.var] = int_imm(i.var.name() == iter ? value : 0);
    return as_int(arith::simplify(substitute(e_, point)));
  }
  int64_t origin() const { return at("", 0).value_or(0); }
  /// What one more of `iter` adds.
  int64_t step(const std::string& iter) const { return at(iter, 1).value_or(0) - origin(); }

 private:
  const Expr& e_;
  const Block& block_;
};

int64_t dim(const Buffer& buffer, size_t axis) { return as_int(buffer.shape()[axis]).value_or(0); }

/// The load of rank 6 in `value` from a buffer that is not the block's own.
const Load* tile_load(const Expr& value, const Buffer& own) {
  const Load* found = nullptr;
  walk(value, [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l != nullptr && l->buffer.rank() == 6 && l->buffer != own && found == nullptr) found = l;
  });
  return found;
}

/// Where the input is in DRAM, and what stands around it.
void read_source(const std::vector<BlockFacts>& blocks, const Buffer& input, VtaLayer& layer) {
  layer.in_h = dim(input, 2), layer.in_w = dim(input, 3);
  const VtaBlocks roles = find_vta_blocks(blocks);
  if (roles.staged == nullptr || roles.staged->store->buffer != input) return;
  const BlockFacts& staged = *roles.staged;
  const Load* source = tile_load(staged.store->value, input);
  if (source == nullptr) return;
  layer.in_h = dim(source->buffer, 2), layer.in_w = dim(source->buffer, 3);
  const Index rows(source->indices[2], *staged.block), columns(source->indices[3], *staged.block);
  layer.row_step = rows.step("h");
  if (layer.row_step > 1) layer.in_h = dim(input, 2);
  layer.pad_top = -rows.origin(), layer.pad_left = -columns.origin();
  layer.padded = true;
}

/// Steps of the ALU, and of GEMMs with a diagonal, that the last block takes per element.
class Epilogue {
 public:
  Epilogue(const Buffer& accumulator, VtaLayer& layer) : accumulator_(accumulator), layer_(layer) {}

  void count(const BlockFacts& block) {
    layer_.vector_by_block = false;
    visit(block.store->value);
    if (layer_.imm_ops + layer_.reg_ops + layer_.residual_steps == 0) layer_.imm_ops = 1;
  }

 private:
  void visit(const Expr& e) {
    if (const Cast* c = e.as<Cast>()) {
      if (const auto k = input_coefficient(e)) return add_residual(*k);
      return visit(c->a);
    }
    if (const Load* l = e.as<Load>()) {
      if (l->buffer == accumulator_) return;
      ++layer_.vectors, ++layer_.reg_ops;
      layer_.vector_by_image |= dim(l->buffer, 0) > 1;
      layer_.vector_by_block |= dim(l->buffer, 1) > 1;
      return;
    }
    const Binary* b = e.as<Binary>();
    if (b == nullptr) return;
    if (const auto k = input_coefficient(e)) return add_residual(*k);
    const auto constant = as_int(b->b);
    visit(b->a);
    if (!constant) return visit(b->b);
    const bool shift = b->op == BinaryOp::Shr || b->op == BinaryOp::Shl;
    layer_.imm_ops += shift ? ceil_div(std::abs(*constant), 15) : 1;
  }
  /// i8 values times a constant.
  std::optional<int64_t> input_coefficient(const Expr& e) const {
    if (const Cast* c = e.as<Cast>()) {
      const Load* l = c->a.as<Load>();
      if (l != nullptr && l->buffer != accumulator_ && l->buffer.dtype() != DType::I32) return 1;
      return std::nullopt;
    }
    const Binary* b = e.as<Binary>();
    if (b == nullptr) return std::nullopt;
    const auto inner = input_coefficient(b->a);
    const auto constant = as_int(b->b);
    if (!inner || !constant) return std::nullopt;
    if (b->op == BinaryOp::Shl && *constant < 24) return *inner << *constant;
    if (b->op == BinaryOp::Mul) return *inner * *constant;
    return std::nullopt;
  }
  void add_residual(int64_t coefficient) {
    ++layer_.residuals;
    layer_.residual_steps += std::max<int64_t>(1, ceil_div(std::abs(coefficient), 127));
  }

  Buffer accumulator_;
  VtaLayer& layer_;
};

Answer<Done> read_extents(const Block& block, bool pool, VtaLayer& layer) {
  const char* names[kTileAxes] = {"n", "o", "h", "w", "ci", "r", "s"};
  for (size_t i = 0; i < kTileAxes; ++i) {
    if (pool && static_cast<TileAxis>(i) == TileAxis::C) continue;
    const Iter* iter = iter_named(block, names[i]);
    if (iter == nullptr || extent_of(*iter) < 1)
      return decline("block `{}` has no constant axis {}", block.name, names[i]);
    layer.extent[i] = extent_of(*iter);
  }
  return Done{};
}

/// Strides and dilations of the input, as `load` in `block` reads it.
void read_window(const Load& load, const Block& block, VtaLayer& layer) {
  const Index rows(load.indices[2], block), columns(load.indices[3], block);
  layer.stride_h = std::max<int64_t>(1, rows.step("h"));
  layer.stride_w = std::max<int64_t>(1, columns.step("w"));
  layer.dilation_h = std::max<int64_t>(1, rows.step("r"));
  layer.dilation_w = std::max<int64_t>(1, columns.step("s"));
}

/// A Func with a last block that is element-wise, and a block that combines.
struct VtaKernel {
  const Func& func;
  const std::vector<BlockFacts>& blocks;
  const VtaBlocks& roles;
};

tl::unexpected<std::string> combines_otherwise(const BlockFacts& block) {
  return decline("block `{}` combines with `{}`", block.name, name(block.store->combine));
}

Answer<VtaLayer> pooling(VtaKernel& kernel) {
  const BlockFacts& pool = *kernel.roles.reduce;
  if (pool.store->combine != Combine::Max) return combines_otherwise(pool);
  if (kernel.roles.staged == nullptr)
    return decline("no block of the kernel makes what the window of `{}` reads", pool.name);
  VtaLayer layer;
  layer.name = kernel.func.name;
  layer.conv = false;
  if (Answer<Done> read = read_extents(*pool.block, true, layer); !read)
    return decline("{}", read.error());
  const Load* window = tile_load(pool.store->value, pool.store->buffer);
  if (window == nullptr) return decline("block `{}` has no window over tiles", pool.name);
  read_window(*window, *pool.block, layer);
  read_source(kernel.blocks, window->buffer, layer);
  layer.reg_ops = 1, layer.imm_ops = 1;
  return layer;
}

Answer<VtaLayer> convolution(VtaKernel& kernel) {
  const BlockFacts& conv = *kernel.roles.reduce;
  if (conv.store->combine != Combine::Add) return combines_otherwise(conv);
  VtaLayer layer;
  layer.name = kernel.func.name;
  if (Answer<Done> read = read_extents(*conv.block, false, layer); !read)
    return decline("{}", read.error());
  const auto product = product_of(conv);
  if (!product || product->a.indices.size() != 6 || product->b.indices.size() != 6)
    return decline("block `{}` is no product of tiles", conv.name);
  const Load& x = product->a;
  read_window(x, *conv.block, layer);
  const Index channels(x.indices[1], *conv.block);
  for (int64_t o = 1; o < layer.extent[TileAxis::O] && layer.out_per_group == 0; ++o)
    if (channels.at("o", o) != channels.origin()) layer.out_per_group = o;
  read_source(kernel.blocks, x.buffer, layer);
  Epilogue(conv.store->buffer, layer).count(*kernel.roles.last);
  return layer;
}

constexpr Rule<VtaKernel, VtaLayer> kVtaRules[] = {
    {"pooling", "maxima over windows: the input widened to i32, then vector instructions", pooling},
    {"convolution", "convolutions and dense layers, with what follows element by element: GEMM",
     convolution},
};

}  // namespace

VtaBlocks find_vta_blocks(const std::vector<BlockFacts>& blocks) {
  VtaBlocks roles;
  for (const BlockFacts& b : blocks) {
    if (b.kind == BlockFacts::Kind::Reduce && roles.reduce == nullptr) roles.reduce = &b;
    if (b.kind == BlockFacts::Kind::Init && roles.init == nullptr) roles.init = &b;
  }
  if (!blocks.empty()) roles.last = &blocks.back();
  if (roles.reduce == nullptr) return roles;
  for (const BlockFacts& b : blocks) {
    if (b.kind != BlockFacts::Kind::Injective) continue;
    for (const Load& l : roles.reduce->loads)
      if (l.buffer == b.store->buffer) roles.staged = &b;
  }
  return roles;
}

Result<VtaLayer> vta_layer(const Func& func, RuleChoice* choice) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const VtaBlocks roles = find_vta_blocks(blocks);
  if (roles.last == nullptr || roles.last->kind != BlockFacts::Kind::Injective ||
      !is_output(func, roles.last->store->buffer))
    return unsupported(func, "its last block is not element-wise");
  if (roles.reduce == nullptr || roles.init == nullptr)
    return unsupported(func, "it has no sum of products and no maximum over a window");
  VtaKernel kernel{func, blocks, roles};
  RuleChoice asked;
  std::optional<VtaLayer> layer = ask(kVtaRules, kernel, asked);
  if (choice != nullptr) *choice = asked;
  if (layer) return *std::move(layer);
  // The one that the operation is for says what is wrong.
  const bool window = roles.reduce->store->combine == Combine::Max && roles.staged != nullptr;
  return unsupported(func, (window ? asked.declined.front() : asked.declined.back()).reason);
}

std::vector<RuleInfo> vta_rules() {
  std::vector<RuleInfo> all;
  list_rules(kVtaRules, all);
  return all;
}

}  // namespace tilewright::rules
