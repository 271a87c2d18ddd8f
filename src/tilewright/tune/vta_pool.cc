#include "tilewright/tune/vta_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/tune/program_facts.h"

namespace tilewright::tune {
namespace {

using schedule::Step;
using schedule::Trace;

/// The blocks of a pooling, in program order.
struct PoolBlocks {
  const BlockFacts* pad = nullptr;  ///< zeros around the input, if there are any
  const BlockFacts* wide = nullptr;
  const BlockFacts* max = nullptr;
  const BlockFacts* last = nullptr;
};

PoolBlocks find_pool(const Func& func, const std::vector<BlockFacts>& blocks) {
  PoolBlocks pool;
  for (const BlockFacts& block : blocks) {
    if (block.kind == BlockFacts::Kind::Reduce && block.store->combine == Combine::Max)
      pool.max = &block;
    if (block.kind == BlockFacts::Kind::Injective && is_output(func, block.store->buffer))
      pool.last = &block;
  }
  const auto producer_of = [&](const BlockFacts* reader) -> const BlockFacts* {
    if (reader == nullptr || reader->loads.size() != 1) return nullptr;
    for (const BlockFacts& block : blocks)
      if (block.kind == BlockFacts::Kind::Injective &&
          block.store->buffer == reader->loads[0].buffer)
        return &block;
    return nullptr;
  };
  pool.wide = producer_of(pool.max);
  pool.pad = producer_of(pool.wide);
  return pool;
}

int64_t extent(const Buffer& buffer, size_t axis) {
  return as_int(buffer.shape()[axis]).value_or(0);
}

/// Steps applied one after the other; the first error stops.
class Steps {
 public:
  explicit Steps(Func func) : func_(std::move(func)) {}
  Steps& add(Step step) {
    if (!result_) return *this;
    Result<Func> next = schedule::apply(step, func_);
    if (next) {
      func_ = *std::move(next);
      result_->push_back(std::move(step));
    } else {
      result_ = tl::unexpected<Error>(std::move(next.error()));
    }
    return *this;
  }
  Result<Trace> take() { return std::move(result_); }

 private:
  Func func_;
  Result<Trace> result_ = Trace();
};

}  // namespace

bool is_vta_pool(const Func& func) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const PoolBlocks pool = find_pool(func, blocks);
  return pool.max != nullptr && pool.wide != nullptr && pool.last != nullptr &&
         pool.last->loops.size() == 6;
}

Result<Trace> vta_pool_trace(const Func& func, const vta::Config& config, int copies) {
  const std::vector<BlockFacts> blocks = collect_blocks(func);
  const PoolBlocks pool = find_pool(func, blocks);
  const Buffer &in = pool.wide->store->buffer, &out = pool.max->store->buffer;
  const int64_t height = extent(out, 2), width = extent(out, 3);
  const int64_t in_height = extent(in, 2), in_width = extent(in, 3);
  const int64_t stride = height > 1 ? std::max<int64_t>(1, (in_height - 1) / height) : 1;
  // An upper bound of the rows that `rows` of the result read.
  const auto fits = [&](int64_t rows, int64_t times) {
    const int64_t read = std::min(in_height, rows * (stride + 1) + stride + 2) * in_width;
    return times * (read + rows * width) <= config.depth(vta::Mem::Acc) &&
           times * read <= config.depth(vta::Mem::Inp);
  };
  int64_t rows = 0;
  for (int64_t r = 1; r <= height; ++r)
    if (fits(r, copies) && (height % r == 0 || rows == 0 || r < height / 4)) rows = r;
  if (rows == 0)
    return fail(ErrorKind::Capacity, fmt::format("`{}` does not fit VTA's memories", func.name),
                fmt::format("a row has {} elements, the accumulator holds {}", in_width,
                            config.depth(vta::Mem::Acc)));
  const std::string& h = pool.last->loops[2];
  const std::string strip = h + ".o";
  Steps steps(func);
  steps.add(schedule::Split{h, rows})
      .add(schedule::ComputeAt{pool.max->name, strip})
      .add(schedule::ComputeAt{pool.wide->name, strip})
      .add(schedule::SetScope{out.name(), "vta.acc"})
      .add(schedule::SetScope{in.name(), "vta.acc"});
  if (pool.pad != nullptr) {
    steps.add(schedule::ComputeAt{pool.pad->name, strip})
        .add(schedule::SetScope{pool.pad->store->buffer.name(), "vta.inp"});
  } else {
    const std::string source = pool.wide->loads[0].buffer.name(), copy = source + ".inp";
    steps.add(schedule::CacheRead{pool.wide->name, source, copy, strip})
        .add(schedule::SetScope{copy, "vta.inp"});
  }
  // Maxima over the window outside: neighbouring steps then write different elements.
  const std::string& max = pool.max->name;
  const std::vector<std::string>& loops = pool.max->loops;
  schedule::Names order = {max + ".r", max + ".s"};
  for (const std::string& loop : loops)
    if (loop != order[0] && loop != order[1]) order.push_back(loop);
  steps.add(schedule::Reorder{order});
  if (height % rows != 0) steps.add(schedule::Cut{strip, {height / rows, 1}});
  return steps.take();
}

}  // namespace tilewright::tune
