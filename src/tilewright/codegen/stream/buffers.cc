#include "tilewright/codegen/stream/buffers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/arith/affine.h"
#include "tilewright/base/check.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen::stream {

using arith::floor_div;

const ChipMemory* memory_of(const Memories& memories, const Buffer& buffer) {
  for (const ChipMemory& memory : memories.list)
    if (memory.scope == buffer.scope()) return &memory;
  return nullptr;
}

namespace {

/// `name` without the parts that cutting loops adds: `x@0` and `x@1` were one.
std::string uncut(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '@') {
      out += name[i];
      continue;
    }
    while (i + 1 < name.size() && name[i + 1] >= '0' && name[i + 1] <= '9') ++i;
  }
  return out;
}

/// Walks a body and gives each access to the allocations it passed.
class Finder {
 public:
  explicit Finder(const Memories& memories) : memories_(memories) {}

  Status run(const Stmt& s) {
    ++position_;
    if (const auto* f = s.as<For>()) {
      loops_.push_back(f);
      auto done = run(f->body);
      loops_.pop_back();
      return done;
    }
    if (const auto* a = s.as<Alloc>()) return add(*a);
    if (s.as<Block>() || s.as<Store>() || s.as<Call>()) {
      leaf(s);
      return {};
    }
    const size_t around = alive_.size();
    for (const Stmt& child : children(s)) TW_TRY_STATUS(run(child));
    for (size_t i = around; i < alive_.size(); ++i) out_.allocations[alive_[i]].end = position_;
    alive_.resize(around);
    return {};
  }

  OnChip finish() {
    std::vector<Allocation*> order;
    for (auto& [id, a] : out_.allocations) order.push_back(&a);
    std::sort(order.begin(), order.end(),
              [](const Allocation* a, const Allocation* b) { return a->begin < b->begin; });
    for (size_t i = 0; i < order.size(); ++i) choose_ring(order, i);
    return std::move(out_);
  }

 private:
  static bool may_share(const Allocation& earlier, const Allocation& later) {
    return earlier.memory == later.memory && earlier.end < later.begin &&
           uncut(earlier.buffer.name()) == uncut(later.buffer.name());
  }

  void choose_ring(const std::vector<Allocation*>& order, size_t i) {
    Allocation& a = *order[i];
    a.ring = out_.rings.size();
    for (size_t r = 0; r < out_.rings.size(); ++r) {
      bool free = true;
      for (size_t j = 0; j < i; ++j) free &= order[j]->ring != r || may_share(*order[j], a);
      if (free) a.ring = std::min(a.ring, r);
    }
    if (a.ring == out_.rings.size()) out_.rings.push_back({a.memory});
    Ring& ring = out_.rings[a.ring];
    ring.wanted = std::max(ring.wanted, a.copies);
    std::string& names = ring.names;
    names += (names.empty() ? "`" : ", `") + a.buffer.name() + "`";
  }

  static int64_t wanted_copies(const Marks& marks) {
    for (const Mark& m : marks)
      if (const auto* n = std::get_if<int64_t>(&m.value); n && m.kind == MarkKind::Copies)
        return *n;
    return 0;
  }

  /// `a, b or c`.
  std::string scopes() const {
    std::string out;
    for (size_t i = 0; i < memories_.list.size(); ++i) {
      if (i > 0) out += i + 1 < memories_.list.size() ? ", " : " or ";
      out += memories_.list[i].scope;
    }
    return out;
  }

  Status add(const Alloc& statement) {
    const Buffer& buffer = statement.buffer;
    if (buffer.scope() == "global") return {};
    const ChipMemory* memory = memory_of(memories_, buffer);
    if (memory == nullptr)
      return fail(ErrorKind::Unsupported,
                  "`" + buffer.name() + "` is in no memory of " + memories_.device,
                  "scope " + buffer.scope(), "use " + scopes());
    if (!is_signed_int(buffer.dtype()) || bit_width(buffer.dtype()) != memory->bits)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("`{}` has elements of type {}, {} holds {}-bit integers", buffer.name(),
                      tilewright::name(buffer.dtype()), buffer.scope(), memory->bits));
    Allocation& a = out_.allocations[buffer.id()];
    a.buffer = buffer;
    a.memory = memory->number;
    a.copies = wanted_copies(statement.marks);
    a.begin = position_;
    a.end = INT64_MAX;  // unless a sequence ends before
    alive_.push_back(buffer.id());
    depth_[buffer.id()] = loops_.size();
    return {};
  }

  void leaf(const Stmt& s) {
    copies_ = 0;
    if (const auto* block = s.as<Block>()) copies_ = wanted_copies(block->marks);
    walk(
        s,
        [&](const Stmt& x) {
          if (const auto* store = x.as<Store>()) {
            want(store->buffer);
            note(s, store->buffer, &store->indices, nullptr);
          }
          if (const auto* call = x.as<Call>())
            for (const auto& arg : call->args)
              if (const auto* region = std::get_if<Region>(&arg)) {
                if (call->args.size() == 1) want(region->buffer);  // a fill
                note(s, region->buffer, nullptr, region);
              }
        },
        [&](const Expr& e) {
          if (const auto* l = e.as<Load>()) note(s, l->buffer, &l->indices, nullptr);
        });
  }

  /// The mark of a block speaks for what it stores to.
  void want(const Buffer& buffer) {
    const auto it = out_.allocations.find(buffer.id());
    if (it == out_.allocations.end()) return;
    it->second.copies = std::max(it->second.copies, copies_);
  }

  void note(const Stmt& s, const Buffer& buffer, const std::vector<Expr>* indices,
            const Region* region) {
    const auto it = out_.allocations.find(buffer.id());
    if (it == out_.allocations.end()) return;
    AllocAccess a;
    a.loops.assign(loops_.begin() + static_cast<std::ptrdiff_t>(depth_[buffer.id()]), loops_.end());
    a.block = s.as<Block>();
    a.indices = indices;
    a.region = region;
    it->second.accesses.push_back(std::move(a));
  }

  const Memories& memories_;
  OnChip out_;
  int64_t position_ = 0;
  int64_t copies_ = 0;  // wanted by the block that is being read
  std::vector<const void*> alive_;
  std::map<const void*, size_t> depth_;
  std::vector<const For*> loops_;
};

/// Opens the loops of an access, clipped by its guard. False if nothing is
/// accessed.
Result<bool> open_loops(const Allocation& slot, const AllocAccess& access, Env& env) {
  env.clear_loops();
  std::vector<const For*> open;
  for (const For* loop : access.loops) {
    const auto extent = env.range(loop->extent);
    if (!extent || env.extents().size() == kMaxLoops)
      return fail(ErrorKind::Unsupported,
                  "the size of `" + slot.buffer.name() + "` depends on data or on too many loops",
                  "loop `" + loop->var.name() + "`");
    if (extent->hi <= 0) return false;
    env.add_loop(loop->var, extent->hi);
    open.push_back(loop);
  }
  if (access.block == nullptr || !access.block->guard) return true;
  std::vector<Form> conditions;
  if (env.collect(access.block->guard, true, conditions) == Env::Truth::Never) return false;
  std::vector<Range> inside;
  for (const int64_t n : env.extents()) inside.push_back({0, n - 1});
  for (const Form& f : conditions) {
    const auto used = std::count_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; });
    const size_t i = static_cast<size_t>(
        std::find_if(f.k.begin(), f.k.end(), [](int64_t k) { return k != 0; }) - f.k.begin());
    if (used != 1) continue;
    if (f.k[i] > 0)
      inside[i].lo = std::max(inside[i].lo, -floor_div(f.c, f.k[i]));
    else
      inside[i].hi = std::min(inside[i].hi, floor_div(f.c, -f.k[i]));
  }
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i].hi < inside[i].lo) return false;
    env.clip_loop(i, open[i]->var, inside[i].lo, inside[i].hi - inside[i].lo + 1);
  }
  return true;
}

/// Values of iterations: forms, or a loop of their own over their range.
void bind_iterations(const Block& block, Env& env) {
  for (const Iter& iter : block.iters) {
    if (const auto f = env.form(iter.binding)) {
      env.set(iter.var, *f);
      continue;
    }
    auto r = env.range(iter.binding);
    const auto extent = env.value(iter.extent);
    if (!r && extent) r = Range{0, *extent - 1};
    if (r && r->hi >= r->lo && env.extents().size() < kMaxLoops)
      env.clip_loop(env.add_loop(iter.var, r->hi - r->lo + 1), iter.var, r->lo, r->hi - r->lo + 1);
  }
}

Range axis_range(const AllocAccess& access, size_t axis, int64_t extent, const Env& env) {
  const Expr& begin = access.region ? access.region->dims[axis].first : (*access.indices)[axis];
  auto r = env.range(begin);
  if (!r) return {0, extent - 1};
  if (access.region) {
    const auto size = env.range(access.region->dims[axis].second);
    if (!size) return {0, extent - 1};
    r->hi += size->hi - 1;
  }
  return {std::clamp<int64_t>(r->lo, 0, extent - 1), std::clamp<int64_t>(r->hi, 0, extent - 1)};
}

Result<std::vector<int64_t>> constant_shape(const Buffer& buffer, const Env& env) {
  std::vector<int64_t> out;
  for (const Expr& e : buffer.shape()) {
    const auto n = env.value(e);
    if (!n)
      return fail(ErrorKind::Unsupported, "the shape of `" + buffer.name() + "` is not constant");
    out.push_back(*n);
  }
  return out;
}

std::vector<int64_t> dense_strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) out[i] = stride;
  return out;
}

}  // namespace

Result<OnChip> find_allocations(const Func& func, const Memories& memories) {
  Finder finder(memories);
  TW_TRY_STATUS(finder.run(func.body));
  return finder.finish();
}

std::map<int, int64_t> lay_out(std::vector<Ring>& rings) {
  std::map<int, int64_t> next;
  for (Ring& ring : rings) {
    ring.first = next[ring.memory];
    next[ring.memory] += ring.copies * ring.size;
  }
  return next;
}

std::string describe(const std::vector<Ring>& rings, int memory) {
  std::string out;
  for (const Ring& ring : rings)
    if (ring.memory == memory)
      out +=
          fmt::format("{}{} {} x {}", out.empty() ? "" : "; ", ring.names, ring.copies, ring.size);
  return out;
}

Result<PlacedBox> place_instance(const Allocation& slot, int64_t first, const Memories& memories,
                                 Env& env) {
  const std::vector<int64_t> shape = TW_TRY(constant_shape(slot.buffer, env));
  std::vector<Range> hull;
  for (const AllocAccess& access : slot.accesses) {
    if (!TW_TRY(open_loops(slot, access, env))) continue;
    if (access.block != nullptr) bind_iterations(*access.block, env);
    const bool fresh = hull.empty();
    hull.resize(shape.size(), Range{INT64_MAX, INT64_MIN});
    for (size_t i = 0; i < shape.size(); ++i) {
      const Range r = axis_range(access, i, shape[i], env);
      hull[i] = fresh ? r : Range{std::min(hull[i].lo, r.lo), std::max(hull[i].hi, r.hi)};
    }
  }
  env.clear_loops();
  PlacedBox out;
  const ChipMemory* memory = memory_of(memories, slot.buffer);
  TW_CHECK(memory != nullptr, "scope {}", slot.buffer.scope());
  out.memory = memory->number;
  out.first = first;
  std::vector<int64_t> sizes;
  for (const Range& r : hull) {
    out.begin.push_back(r.lo);
    sizes.push_back(r.hi - r.lo + 1);
  }
  out.stride = dense_strides(sizes);
  const int64_t lanes = memory->lanes;
  int64_t scalars = hull.empty() && !shape.empty() ? 0 : 1;
  for (const int64_t n : sizes) scalars *= n;
  if (scalars % lanes != 0)
    return fail(ErrorKind::Unsupported,
                fmt::format("`{}` has {} scalars at a time, no multiple of the "
                            "{} of an element of "
                            "{}",
                            slot.buffer.name(), scalars, lanes, slot.buffer.scope()),
                "shape " + fmt::format("{}", fmt::join(sizes, "x")));
  out.elements = scalars / lanes;
  out.base = first * lanes;
  return out;
}

Result<PlacedBox> place_in_dram(const Buffer& buffer, const std::vector<Expr>& strides,
                                uint64_t address, const Env& env) {
  PlacedBox out;
  const std::vector<int64_t> shape = TW_TRY(constant_shape(buffer, env));
  out.begin.assign(shape.size(), 0);
  out.stride = dense_strides(shape);
  for (size_t i = 0; i < strides.size(); ++i) {
    const auto stride = env.value(strides[i]);
    if (!stride)
      return fail(ErrorKind::Unsupported,
                  "the strides of `" + buffer.name() + "` are not constant");
    out.stride[i] = *stride;
  }
  const auto bytes = static_cast<uint64_t>(storage_bytes(buffer.dtype(), 1));
  if (address % bytes != 0)
    return fail(ErrorKind::Invalid, fmt::format("`{}` is at address {:#x}, no multiple of {} bytes",
                                                buffer.name(), address, bytes));
  out.base = static_cast<int64_t>(address / bytes);
  return out;
}

}  // namespace tilewright::codegen::stream
