#include "tilewright/rules/gpu/byte_dot.h"

#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/base/dtype.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/walk.h"

namespace tilewright::rules {
namespace {

/// Fewer terms leave most of a word empty.
constexpr int64_t kFewestTerms = 3;

/// `i32(load)` of a byte.
const Load* byte_of(const Expr& e) {
  const auto* wide = e.as<Cast>();
  const auto* load = wide != nullptr && !wide->bits ? wide->a.as<Load>() : nullptr;
  const bool byte = load != nullptr && bit_width(load->buffer.dtype()) == 8;
  return byte && e.dtype() == DType::I32 ? load : nullptr;
}

/// A sum of products of bytes and what multiplies words of them.
struct ByteProduct {
  const Load *a, *b;
  const hw::Intrinsic* by;
};

std::optional<ByteProduct> byte_product(const BlockFacts& block, const hw::GpuTarget& target) {
  if (block.kind != BlockFacts::Kind::Reduce || block.store->combine != Combine::Add ||
      block.store->buffer.dtype() != DType::I32)
    return std::nullopt;
  const auto* product = block.store->value.as<Binary>();
  if (product == nullptr || product->op != BinaryOp::Mul) return std::nullopt;
  const Load *a = byte_of(product->a), *b = byte_of(product->b);
  if (a == nullptr || b == nullptr || a->buffer == b->buffer) return std::nullopt;
  const hw::Intrinsic* by = hw::find_dot_of_bytes(target, a->buffer.dtype(), b->buffer.dtype());
  return by != nullptr ? std::optional(ByteProduct{a, b, by}) : std::nullopt;
}

/// Whether words along the last axis of `load` that has several elements begin at multiples of four
/// bytes in memory, and `iter` goes along it.
bool side_by_side(const Load& load, const Var& iter) {
  size_t last = load.indices.size();
  while (last > 1 && is_const_int(load.buffer.shape()[last - 1], 1)) --last;
  const auto row = last > 0 ? as_int(load.buffer.shape()[last - 1]) : std::nullopt;
  return row && *row % kWordTerms == 0 && word_axis(load, iter) == last - 1;
}

bool is_bare(const Load& load, const Var& iter) {
  return std::all_of(load.indices.begin(), load.indices.end(), [&](const Expr& index) {
    return !uses(index, iter) || index.as<VarRef>() != nullptr;
  });
}

/// Whether the buffer holds the same in all runs.
bool is_known(const Func& func, const Buffer& buffer) {
  return std::any_of(func.params.begin(), func.params.end(), [&](const Param& param) {
    return param.buffer == buffer && param.mode == ParamMode::Const;
  });
}

/// The iteration with the most terms that can be counted in words.
const Iter* longest_terms(const Func& func, const BlockFacts& block, const ByteProduct& product,
                          WordsFrom from) {
  const Iter* longest = nullptr;
  for (const Iter& iter : block.block->iters) {
    const int64_t extent = block.extent_of(iter.var);
    const bool whole = extent % kWordTerms == 0;
    bool fits = iter.kind == IterKind::Reduce && extent >= kFewestTerms &&
                !block.loop_of(iter.var).empty() && (whole || from == WordsFrom::Copies);
    for (const Load* load : {product.a, product.b})
      fits = fits && word_axis(*load, iter.var) && (whole || is_bare(*load, iter.var)) &&
             (from == WordsFrom::Copies || side_by_side(*load, iter.var) ||
              is_known(func, load->buffer));
    if (fits && (longest == nullptr || extent > block.extent_of(longest->var))) longest = &iter;
  }
  return longest;
}

/// Lays out what is known with words side by side, in a kernel of its own.
bool pack_factors(Draft& draft, const std::string& name, const std::string& terms) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* sum = find_block(blocks, name);
  const auto has_name = [&](const Iter& iter) { return iter.var.name() == terms; };
  const Iter& last = *std::find_if(sum->block->iters.begin(), sum->block->iters.end(), has_name);
  std::vector<schedule::Reindex> steps;
  for (const Load& load : sum->loads) {
    if (side_by_side(load, last.var)) continue;
    const std::string buffer = load.buffer.name();
    steps.push_back({name, buffer, buffer + ".packed", {}});
    for (const Iter& iter : sum->block->iters)
      if (!has_name(iter) && mentions(load, iter.var))
        steps.back().iters.push_back(iter.var.name());
    steps.back().iters.push_back(terms);
  }
  return std::all_of(steps.begin(), steps.end(),
                     [&](const schedule::Reindex& step) { return draft.attempt(step); });
}

/// Copies of the factors, for which what pads them will do.
bool copy_factors(Draft& draft, const std::string& name, const schedule::Names& factors) {
  for (const std::string& factor : factors) {
    const std::vector<BlockFacts> blocks = draft.blocks();
    const bool made = std::any_of(blocks.begin(), blocks.end(), [&](const BlockFacts& b) {
      return b.kind == BlockFacts::Kind::Injective && b.store->buffer.name() == factor &&
             readers(blocks, b.store->buffer).size() == 1;
    });
    if (!made && !draft.attempt(schedule::CacheRead{name, factor, factor + ".shared", ""}))
      return false;
  }
  return true;
}

}  // namespace

std::optional<size_t> word_axis(const Load& load, const Var& iter) {
  std::optional<size_t> axis;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!uses(load.indices[d], iter)) continue;
    const arith::Affine sum = arith::as_affine(load.indices[d]);
    if (axis || sum.coefficient(iter) != 1 || sum.constant % kWordTerms != 0) return std::nullopt;
    for (const auto& [term, step] : sum.terms) {
      const auto* var = term.as<VarRef>();
      if (!(var != nullptr && var->var == iter) && (uses(term, iter) || step % kWordTerms != 0))
        return std::nullopt;
    }
    axis = d;
  }
  return axis;
}

std::optional<WordTerms> word_terms(const BlockFacts& block, const hw::GpuTarget& target) {
  const auto product = byte_product(block, target);
  if (!product) return std::nullopt;
  for (const Iter& iter : block.block->iters)
    if (iter.kind == IterKind::Reduce && block.extent_of(iter.var) == kWordTerms &&
        !block.loop_of(iter.var).empty() && word_axis(*product->a, iter.var) &&
        word_axis(*product->b, iter.var))
      return WordTerms{iter.var, block.loop_of(iter.var), product->by};
  return std::nullopt;
}

bool in_words(Draft& draft, const std::string& name, const hw::GpuTarget& target, WordsFrom from) {
  const std::vector<BlockFacts> blocks = draft.blocks();
  const BlockFacts* sum = find_block(blocks, name);
  const auto product = byte_product(*sum, target);
  const Iter* terms = product ? longest_terms(draft.func(), *sum, *product, from) : nullptr;
  if (terms == nullptr) return false;
  const std::string iter = terms->var.name(), loop = sum->loop_of(terms->var);
  const int64_t extent = sum->extent_of(terms->var);
  if (from == WordsFrom::Copies &&
      !copy_factors(draft, name, {product->a->buffer.name(), product->b->buffer.name()}))
    return false;
  if (from == WordsFrom::Memory && !pack_factors(draft, name, iter)) return false;
  if (extent % kWordTerms != 0 && !draft.attempt(schedule::Pad{name, iter, kWordTerms}))
    return false;
  return extent <= kWordTerms || (draft.attempt(schedule::Divide{name, iter, kWordTerms}) &&
                                  draft.attempt(schedule::Split{loop, kWordTerms}));
}

void multiply_words(Draft& draft, const hw::GpuTarget& target) {
  schedule::Names sums;
  for (const BlockFacts& block : draft.blocks())
    if (block.kind == BlockFacts::Kind::Reduce) sums.push_back(block.name);
  for (const std::string& name : sums) {
    const std::vector<BlockFacts> blocks = draft.blocks();
    const BlockFacts* sum = find_block(blocks, name);
    const auto words = word_terms(*sum, target);
    const auto product = words ? byte_product(*sum, target) : std::nullopt;
    if (!product || !side_by_side(*product->a, words->iter) ||
        !side_by_side(*product->b, words->iter))
      continue;
    const std::string loop = words->loop;
    draft.attempt(schedule::Tensorize{loop, print(words->by->meaning)});
  }
}

}  // namespace tilewright::rules
