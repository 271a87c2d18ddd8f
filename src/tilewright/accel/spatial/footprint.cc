#include "tilewright/accel/spatial/footprint.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/common/tokens.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/operands.h"

namespace tilewright::spatial {
namespace {

/// Most rows of one box: each is an entry of a map when tokens are worked out.
constexpr uint64_t kMostRows = 64;

struct Cover {
  uint64_t begin = 0, width = 0;
  std::vector<Dim> dims;  ///< with gaps between their rows; steps ascend
};

/// Joins what touches: into rows without gaps, and dimensions that go on where others end.
void join(Cover& cover) {
  std::vector<Dim> apart;
  for (const Dim& dim : cover.dims) {
    const auto step = static_cast<uint64_t>(dim.step);
    if (apart.empty() && step <= cover.width)
      cover.width += (dim.count - 1) * step;
    else if (!apart.empty() &&
             step == apart.back().count * static_cast<uint64_t>(apart.back().step))
      apart.back().count *= dim.count;
    else
      apart.push_back(dim);
  }
  cover.dims = std::move(apart);
}

uint64_t rows(const Cover& cover) {
  uint64_t count = 1;
  for (const Dim& dim : cover.dims) count *= dim.count;
  return count;
}

/// `width` places from each place of a box on, with as few gaps closed as `kMostRows` allows.
Cover cover_of(const Box& box, uint64_t width) {
  Cover cover{static_cast<uint64_t>(box.first()), width, {}};
  for (const Dim& dim : box.dims)
    if (dim.count > 1 && dim.step != 0) cover.dims.push_back({dim.count, std::abs(dim.step)});
  std::sort(cover.dims.begin(), cover.dims.end(),
            [](const Dim& a, const Dim& b) { return a.step < b.step; });
  join(cover);
  while (rows(cover) > kMostRows) {
    const Dim closed = cover.dims.front();
    cover.dims.erase(cover.dims.begin());
    cover.width += (closed.count - 1) * static_cast<uint64_t>(closed.step);
    join(cover);
  }
  return cover;
}

/// One access for each position of the dimensions but the one with most rows.
void add(ChipMemory memory, const Box& box, uint64_t width, bool write, accel::Footprint& into) {
  if (box.empty() || width == 0) return;
  Cover cover = cover_of(box, width);
  const auto longest =
      std::max_element(cover.dims.begin(), cover.dims.end(),
                       [](const Dim& a, const Dim& b) { return a.count < b.count; });
  accel::Access access{static_cast<int>(memory), cover.begin, cover.width, cover.width, 1, write};
  if (longest != cover.dims.end()) {
    access.pitch = static_cast<uint64_t>(longest->step);
    access.rows = static_cast<uint32_t>(longest->count);
    cover.dims.erase(longest);
  }
  std::vector<uint64_t> begins = {cover.begin};
  for (const Dim& dim : cover.dims) {
    const size_t before = begins.size();
    for (uint64_t p = 1; p < dim.count; ++p)
      for (size_t b = 0; b < before; ++b)
        begins.push_back(begins[b] + p * static_cast<uint64_t>(dim.step));
  }
  for (const uint64_t begin : begins) {
    access.address = begin;
    into.push_back(access);
  }
}

void add_work(const Design&, const Load& load, accel::Footprint& into) {
  const Runs all = runs(load);
  add(ChipMemory::Dram, all.begins, all.bytes, false, into);
  for (const Box& box : loaded(load)) add(ChipMemory::Spad, box, 1, true, into);
  add(ChipMemory::Bias, {load.bias, {}}, load.bias_words, true, into);
}

void add_work(const Design& design, const Compute& compute, accel::Footprint& into) {
  for (const Share& share : shares(design, compute)) {
    for (const int factor : {0, 1})
      add(ChipMemory::Spad, read_of(design, compute, share, factor), 1, false, into);
    add(ChipMemory::Sums, sums_of(design, compute, share), 1, true, into);
  }
  const int64_t parts = sum_parts(design), begin = sum_limit(design, compute);
  add(ChipMemory::Sums, {begin * parts, {}},
      static_cast<uint64_t>((sum_words(design) - begin) * parts), true, into);
}

void add_work(const Design& design, const Store& store, accel::Footprint& into) {
  const Runs all = runs(store);
  add(ChipMemory::Dram, all.begins, all.bytes, true, into);
  for (const Box& box : sums_of(design, store)) add(ChipMemory::Sums, box, 1, false, into);
  if (store.bias_axis >= 0)
    add(ChipMemory::Bias, {store.bias, {}}, store.axes[static_cast<size_t>(store.bias_axis)].count,
        false, into);
}

}  // namespace

accel::Queues queues() {
  const auto numbers = [](std::initializer_list<ChipMemory> memories) {
    std::vector<int> out;
    for (const ChipMemory memory : memories) out.push_back(static_cast<int>(memory));
    return out;
  };
  using enum ChipMemory;
  accel::Queues out;
  out.memories = {"DRAM", "scratchpad", "sums", "bias"};
  out.list = {{std::string(name(Queue::Load)), numbers({Dram}), numbers({Spad, Bias})},
              {std::string(name(Queue::Compute)), numbers({Spad, Sums}), numbers({Sums})},
              {std::string(name(Queue::Store)), numbers({Sums, Bias}), numbers({Dram})}};
  return out;
}

accel::Footprint footprint(const Design& design, const Insn& insn) {
  accel::Footprint out;
  std::visit([&](const auto& work) { add_work(design, work, out); }, insn.work);
  return out;
}

Result<std::vector<Insn>> with_tokens(const Design& design, std::vector<Insn> insns) {
  std::vector<int> queue;
  std::vector<accel::Footprint> footprints;
  for (size_t i = 0; i < insns.size(); ++i) {
    insns[i].takes = insns[i].gives = 0;
    if (Status status = check_fields(design, insns[i]); !status)
      return tl::unexpected<Error>(std::move(status.error()).at(fmt::format("instruction {}", i)));
    queue.push_back(static_cast<int>(insns[i].queue()));
    footprints.push_back(footprint(design, insns[i]));
  }
  for (const accel::Slot& slot : TW_TRY(accel::insert_tokens(queues(), queue, footprints))) {
    // Tokens go between any two queues, so nothing has to pass them on.
    Insn& insn = insns.at(slot.given);
    insn.takes = static_cast<uint8_t>(slot.takes);
    insn.gives = static_cast<uint8_t>(slot.gives);
  }
  return insns;
}

}  // namespace tilewright::spatial
