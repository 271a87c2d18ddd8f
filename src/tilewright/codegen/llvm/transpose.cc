// Tiles read across: neighbouring vector loops whose lanes each read the next element of a row of
// memory load these rows as vectors and turn the tile in registers, instead of gathering.
#include <algorithm>
#include <bit>

#include "tilewright/codegen/llvm/kernel_emitter.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {

using llvm::Value;

namespace {

/// Fewer rows than these are gathered: turning a tile costs the same for one row as for all.
constexpr size_t kFewest = 4;

/// The store that is all a loop does, whatever else happens; null if there is more to it.
const Store* only_store(const For& loop) {
  const Stmt* s = &loop.body;
  while (const auto* block = s->as<Block>()) {
    if (block->guard) return nullptr;
    s = &block->body;
  }
  const auto* store = s->as<Store>();
  return store != nullptr && store->combine == Combine::Set ? store : nullptr;
}

/// Whether every load in `value` happens each time it is computed.
bool is_eager(const Expr& value) {
  bool eager = true;
  walk(value, [&](const Expr& e) {
    const auto* b = e.as<Binary>();
    eager &= e.as<Select>() == nullptr &&
             (b == nullptr || (b->op != BinaryOp::And && b->op != BinaryOp::Or));
  });
  return eager;
}

}  // namespace

/// Where a load finds its elements: a place for lane 0, and the step between lanes.
struct KernelEmitter::Across {
  const For* loop = nullptr;
  const Load* load = nullptr;
  Expr place;  ///< elements from the start of the buffer, lane 0
  int64_t step = 0;
};

/// The one load of a vector loop whose lanes lie far apart.
std::optional<KernelEmitter::Across> KernelEmitter::read_across(const Stmt& s) const {
  constexpr int64_t kFar = 3;  // closer lanes come with fewer loads than a tile needs
  const auto* loop = s.as<For>();
  if (loop == nullptr || loop->kind != ForKind::Vector) return std::nullopt;
  const auto extent = as_int(loop->extent);
  const Store* store = only_store(*loop);
  if (!extent || store == nullptr || *extent < 2 || *extent > native_lanes(*loop) ||
      !is_eager(store->value) || !can_use_lanes(*loop))
    return std::nullopt;
  std::vector<Across> found;
  walk(store->value, [&](const Expr& e) {
    const auto* load = e.as<Load>();
    if (load == nullptr || load->buffer == store->buffer) return;
    Expr place = int_imm(0);
    for (size_t axis = 0; axis < load->indices.size(); ++axis)
      place = place + load->indices[axis] * strides_.at(load->buffer)[axis];
    const int64_t step = arith::as_affine(place).coefficient(loop->var);
    place = substitute(place, {{loop->var, int_imm(0)}});
    if (step >= kFar) found.push_back({loop, load, place, step});
  });
  if (found.size() != 1 || per_lane_.contains(found[0].load->buffer)) return std::nullopt;
  // The step must be all that lanes differ by.
  const Across& a = found[0];
  for (const Expr& index : a.load->indices)
    for (const auto& [term, coefficient] : arith::as_affine(index).terms)
      if (uses(term, loop->var) && term.as<VarRef>() == nullptr) return std::nullopt;
  return a;
}

/// The loops from `first` on that together read a tile across.
std::vector<KernelEmitter::Across> KernelEmitter::tile_across(const std::vector<Stmt>& stmts,
                                                              size_t first) const {
  std::vector<Across> tile;
  for (size_t i = first; i < stmts.size(); ++i) {
    const std::optional<Across> next = read_across(stmts[i]);
    if (!next) break;
    if (!tile.empty()) {
      const Across& start = tile[0];
      const auto extent = as_int(start.loop->extent);
      const arith::Affine apart = arith::as_affine(next->place - start.place);
      if (next->load->buffer != start.load->buffer || next->step != start.step ||
          as_int(next->loop->extent) != extent || !apart.terms.empty() ||
          apart.constant != static_cast<int64_t>(tile.size()) ||
          tile.size() == std::bit_ceil(static_cast<uint64_t>(*extent)))
        break;
    }
    tile.push_back(*next);
  }
  if (tile.size() < kFewest) tile.clear();
  return tile;
}

/// Loads the rows of a tile and turns it: loop j finds its vector in `turned_`.
void KernelEmitter::turn(const std::vector<Across>& tile) {
  const Across& first = tile[0];
  const Buffer& buffer = first.load->buffer;
  const auto active = static_cast<unsigned>(*as_int(first.loop->extent));
  const unsigned n = std::bit_ceil(active), wanted = static_cast<unsigned>(tile.size());
  Type* element = memory_type(buffer.dtype());
  auto* type = llvm::FixedVectorType::get(element, n);
  memo_.clear(), memo_order_.clear(), lazy_.clear();
  lanes_ = Lanes{.var = first.loop->var, .count = n, .base = index(0), .const_base = 0};
  const Address at = address(buffer, first.load->indices);
  lanes_.reset();
  std::vector<llvm::Constant*> bits;
  for (unsigned e = 0; e < n; ++e) bits.push_back(b_.getInt1(e < wanted));
  const llvm::Align align(std::max<uint64_t>(1, element->getPrimitiveSizeInBits() / 8));
  std::vector<Value*> rows(n, llvm::PoisonValue::get(type));
  for (unsigned l = 0; l < active; ++l) {
    Value* row = b_.CreateConstGEP1_64(element, at.pointer, l * static_cast<uint64_t>(first.step));
    rows[l] = wanted == n ? tagged_load(buffer, type, row, align)
                          : tagged(buffer, b_.CreateMaskedLoad(type, row, align,
                                                               llvm::ConstantVector::get(bits)));
  }
  // Exchanges bit after bit of the number of a row with that of an element.
  for (unsigned bit = 1; bit < n; bit *= 2) {
    std::vector<int> low, high;
    for (unsigned e = 0; e < n; ++e) {
      low.push_back(static_cast<int>(e & bit ? n + (e ^ bit) : e));
      high.push_back(static_cast<int>(e & bit ? n + e : e | bit));
    }
    for (unsigned i = 0; i < n; ++i) {
      if (i & bit) continue;
      Value *a = rows[i], *b = rows[i | bit];
      rows[i] = b_.CreateShuffleVector(a, b, low);
      rows[i | bit] = b_.CreateShuffleVector(a, b, high);
    }
  }
  for (unsigned j = 0; j < wanted; ++j) turned_[tile[j].load] = rows[j];
}

void KernelEmitter::sequence(const std::vector<Stmt>& stmts) {
  for (size_t i = 0; i < stmts.size();) {
    const std::vector<Across> tile = lanes_ ? std::vector<Across>() : tile_across(stmts, i);
    if (!tile.empty()) turn(tile);
    const size_t count = std::max<size_t>(1, tile.size());
    for (size_t end = i + count; i < end; ++i) stmt(stmts[i]);
    turned_.clear();
  }
}

}  // namespace tilewright::codegen
