#include "tilewright/lower/gpu_bulk.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tilewright/hw/gpu_intrinsics.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/gpu_async.h"
#include "tilewright/lower/gpu_fragments.h"

namespace tilewright::lower {
namespace {

/// What copy engines take. source: CUDA Driver API, cuTensorMapEncodeTiled.
constexpr int64_t kMostAxes = 5, kMostBox = 256, kRowAlign = 16;
constexpr int64_t kMostExtent = int64_t{1} << 32, kMostStride = int64_t{1} << 40;

/// The iterations of two loops of constant extents around one store, and conditions on the way.
struct BulkNest {
  Var row, column;
  int64_t rows = 0, columns = 0;
  std::vector<Expr> guards;
  const Store* store = nullptr;
};

std::optional<BulkNest> nest_of(const For& outer) {
  BulkNest nest;
  const For* inner = nullptr;
  for (const Stmt* next = &outer.body; nest.store == nullptr;) {
    if (const auto* loop = next->as<For>(); loop && inner == nullptr) {
      inner = loop, next = &loop->body;
    } else if (const auto* branch = next->as<If>(); branch && !branch->else_body) {
      nest.guards.push_back(branch->condition), next = &branch->then_body;
    } else if ((nest.store = next->as<Store>()) == nullptr) {
      return std::nullopt;
    }
  }
  if (inner == nullptr || outer.kind == ForKind::Bind || inner->kind == ForKind::Bind)
    return std::nullopt;
  nest.row = outer.var, nest.column = inner->var;
  nest.rows = as_int(outer.extent).value_or(0), nest.columns = as_int(inner->extent).value_or(0);
  return nest;
}

/// The map that serves the copy of tiles of `rows` along axis `row` by `columns` along the last;
/// absent where the engine takes none such.
std::optional<TensorMap> map_of(const arith::Fetch& fetch, size_t row, int64_t rows,
                                int64_t columns) {
  TensorMap map{fetch.from, {}, {}, {}};
  const int64_t bytes = bit_width(fetch.from.dtype()) / 8;
  int64_t stride = bytes;
  for (size_t axis = fetch.at.size(); axis-- > 0;) {
    const auto extent = as_int(fetch.from.shape()[axis]);
    const int64_t limit = fetch.limits[axis].value_or(extent.value_or(0));
    if (!extent || limit < 1 || limit > *extent || limit > kMostExtent) return std::nullopt;
    map.dims.push_back(limit);
    map.box.push_back(axis + 1 == fetch.at.size() ? columns : axis == row ? rows : 1);
    if (axis + 1 < fetch.at.size()) {
      if (stride % kRowAlign != 0 || stride >= kMostStride) return std::nullopt;
      map.strides.push_back(stride);
    }
    stride *= *extent;
  }
  const bool fits = static_cast<int64_t>(map.dims.size()) <= kMostAxes && rows <= kMostBox &&
                    columns * bytes == hw::kPanelBytes;
  return fits ? std::optional(map) : std::nullopt;
}

}  // namespace

std::optional<BulkCopy> bulk_copy_of(const For& nest, const arith::Bounds& bounds) {
  const auto loops = nest_of(nest);
  if (!loops) return std::nullopt;
  const Store& store = *loops->store;
  arith::Bounds inside = bounds;
  inside.bind(loops->row, int_imm(loops->rows));
  inside.bind(loops->column, int_imm(loops->columns));
  const auto fetch = arith::fetch_of(store, loops->guards, inside);
  const size_t rank = store.indices.size();
  if (!fetch || rank < 2 || fetch->at.size() < 2) return std::nullopt;
  std::vector<Expr> to;
  for (const Expr& index : store.indices) to.push_back(arith::simplify(index, inside));
  const auto row = arith::moved_axis(loops->row, fetch->at);
  const bool in_order = arith::moved_axis(loops->column, fetch->at) == fetch->at.size() - 1 &&
                        row && *row + 1 < fetch->at.size() &&
                        arith::moved_axis(loops->column, to) == rank - 1 &&
                        arith::moved_axis(loops->row, to) == rank - 2;
  const auto panel = as_int(store.buffer.shape().back());
  if (!in_order || panel != loops->columns) return std::nullopt;
  auto map = map_of(*fetch, *row, loops->rows, loops->columns);
  if (!map) return std::nullopt;
  const VarMap first = {{loops->row, int_imm(0)}, {loops->column, int_imm(0)}};
  BulkCopy copy{*std::move(map), {}, store.buffer, {}, loops->rows * hw::kPanelBytes};
  for (size_t axis = fetch->at.size(); axis-- > 0;)
    copy.at.push_back(arith::simplify(substitute(fetch->at[axis], first), bounds));
  for (const Expr& index : to)
    copy.to_at.push_back(arith::simplify(substitute(index, first), bounds));
  // Panels repeat every 1024 bytes, eight rows.
  const Expr aligned = eq(copy.to_at[rank - 2] % (hw::kPanelAlign / hw::kPanelBytes), int_imm(0));
  const bool whole = is_const_int(copy.to_at.back(), 0) && arith::prove(aligned, bounds);
  return whole ? std::optional(copy) : std::nullopt;
}

namespace {

/// Goes through a kernel's stores into bulk buffers.
class BulkFinder {
 public:
  explicit BulkFinder(const Func& kernel) : kernel_(kernel) {
    walk(kernel.body, [&](const Stmt& s) {
      if (const auto* alloc = s.as<Alloc>(); alloc && is_bulk(*alloc)) bulk_.insert(alloc->buffer);
    });
  }

  Result<BulkUse> run() {
    if (!bulk_.empty()) TW_TRY_STATUS(stmt(kernel_.body, arith::Bounds(kernel_), 0));
    // The first round of two has no loop of its own.
    if (static_cast<int64_t>(outside_.size()) > use_.groups)
      return refuse(outside_[0], "filled outside of a pipelined loop",
                    "groups of copies are counted by the rounds of one");
    return std::move(use_);
  }

 private:
  /// `depth`: iterations of the pipelined loop around whose copies are under way; 0: none is.
  Status stmt(const Stmt& s, const arith::Bounds& bounds, int64_t depth) {
    if (const auto* store = s.as<Store>(); store && bulk_.contains(store->buffer))
      return refuse(store->buffer, "not filled by copies of whole tiles",
                    "a copy engine takes rows of 128 bytes of a dense buffer whose rows begin on "
                    "multiples of 16 bytes");
    if (const auto* store = s.as<Store>()) TW_TRY_STATUS(check_loads(*store));
    if (const auto* call = s.as<Call>()) TW_TRY_STATUS(check_call(*call));
    if (const auto* branch = s.as<If>()) {
      arith::Bounds inside = bounds;
      inside.assume(branch->condition);
      TW_TRY_STATUS(stmt(branch->then_body, inside, depth));
      return branch->else_body ? stmt(branch->else_body, bounds, depth) : Status();
    }
    if (const auto* list = s.as<Seq>())
      for (const Stmt& child : list->stmts) TW_TRY_STATUS(stmt(child, bounds, depth));
    const auto* loop = s.as<For>();
    if (loop == nullptr) return {};
    if (const auto copy = bulk_copy_of(*loop, bounds); copy && bulk_.contains(copy->to))
      return add(*copy, depth);
    arith::Bounds inside = bounds;
    inside.bind(loop->var, loop->extent);
    return stmt(loop->body, inside, pipeline_depth(*loop).value_or(depth));
  }

  tl::unexpected<Error> refuse(const Buffer& buffer, const std::string& what,
                               const std::string& why) const {
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' of kernel '{}' is marked async=bulk, but {}", buffer.name(),
                            kernel_.name, what),
                why, "mark the block that fills it async=1");
  }

  /// Elements are not where strides say: only instructions that know panels find them.
  Status check_loads(const Store& store) const {
    std::optional<Buffer> read;
    walk(store.value, [&](const Expr& e) {
      if (const auto* l = e.as<Load>(); l && bulk_.contains(l->buffer)) read = l->buffer;
    });
    if (read) return refuse(*read, "threads read its elements", "rows of panels are rearranged");
    return {};
  }

  Status check_call(const Call& call) const {
    const hw::Intrinsic* in = find_lanes_form(*call.callee);
    if (in == nullptr) return {};
    const auto how = TW_TRY(hw::gpu_instruction(*in));
    for (const auto& operand : how.operands) {
      const Buffer& buffer = std::get<Region>(call.args[operand.param]).buffer;
      if (bulk_.contains(buffer) && !operand.panels)
        return refuse(buffer, fmt::format("{} uses it", in->name()), "it does not read panels");
    }
    return {};
  }

  Status add(const BulkCopy& copy, int64_t depth) {
    if (depth == 0) outside_.push_back(copy.to);
    use_.groups = std::max(use_.groups, depth);
    const auto param = std::find_if(kernel_.params.begin(), kernel_.params.end(),
                                    [&](const Param& p) { return p.buffer == copy.map.buffer; });
    if (param == kernel_.params.end() || !param->strides.empty())
      return refuse(copy.to, fmt::format("'{}' is part of a larger buffer", copy.map.buffer.name()),
                    "maps are made of whole parameters");
    if (std::find(use_.maps.begin(), use_.maps.end(), copy.map) == use_.maps.end())
      use_.maps.push_back(copy.map);
    return {};
  }

  const Func& kernel_;
  std::set<Buffer> bulk_;
  std::vector<Buffer> outside_;  ///< filled so, once for each copy
  BulkUse use_;
};

}  // namespace

Result<BulkUse> bulk_use(const Func& kernel) { return BulkFinder(kernel).run(); }

}  // namespace tilewright::lower
