// The steps of FPGAs: FpgaBuffer puts channels between memory and what is computed, Dataflow lets
// what fills and what empties them run at the same time, Partition gives them banks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/lower/lower.h"
#include "tilewright/lower/processes.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/apply.h"

namespace tilewright::schedule {
namespace {

bool writes_buffer(const Block& block, const Buffer& buffer) {
  const Store* store = single_store(block);
  return store != nullptr && store->buffer == buffer;
}

/// The block that copies between `copy` and the buffer: the one that reads or writes both.
Status check_constant_size(const Func& func, const Name& copy, const Name& copying) {
  const Tree tree(func);
  const Id block = TW_TRY(tree.find_block(copying));
  const Id home = tree.parent(tree.alloc_of(TW_TRY(tree.find_buffer(copy))));
  for (const Id loop : loops_below(tree, block, home))
    if (!as_int(tree.loop(loop).extent))
      return refuse(
          4, fmt::format("loop {} of the copy has no constant extent", tree.loop(loop).var.name()));
  return {};
}

/// Marks set by a step whose value SetMark would not check.
void put_word(Marks& marks, MarkKind kind, const std::string& value) {
  std::erase_if(marks, [&](const Mark& m) { return m.kind == kind; });
  marks.push_back({kind, value});
}

/// The allocation called `name` as it will be on the chip: of the size that is used at a time.
Alloc as_held(const Func& func, const Alloc& alloc) {
  const Result<Func> held = lower::run_pipeline(func, "fpga");
  if (!held) return alloc;
  const Tree tree(*held);
  const auto buffer = tree.find_buffer(alloc.buffer.name());
  if (!buffer || tree.alloc_of(*buffer) == kNone) return alloc;
  return *tree.as<Alloc>(tree.alloc_of(*buffer));
}

}  // namespace

Result<Func> run(const FpgaBuffer& step, const Func& func) {
  if (!is_fpga_memory(step.memory))
    return refuse(2, fmt::format("{} is none of the memories {}", step.memory,
                                 fmt::join(kFpgaMemories, ", ")));
  if (step.slots < 1 || step.slots > 8)
    return refuse(3, fmt::format("{} slots are not 1 to 8", step.slots));
  const Tree tree(func);
  const Block& block = tree.block(TW_TRY(tree.find_block(step.block)));
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  const bool writes = writes_buffer(block, buffer);
  Result<Func> copied = writes
                            ? run(CacheWrite{step.block, step.copy, step.loop}, func)
                            : run(CacheRead{step.block, step.buffer, step.copy, step.loop}, func);
  if (!copied) {
    Error error = std::move(copied).error();
    if (error.kind != ErrorKind::NotApplicable) return tl::unexpected<Error>(std::move(error));
    return refuse(1, fmt::format("{}, of which {}: {}", writes ? "as cache_write" : "as cache_read",
                                 error.what, error.why));
  }
  TW_TRY_STATUS(check_constant_size(*copied, step.copy, writes ? step.block + ".wb" : step.copy));
  const Func placed = TW_TRY(run(SetScope{step.copy, "fpga." + step.memory}, *copied));
  return run(SetMark{step.copy, "slots", fmt::to_string(step.slots)}, placed);
}

Result<Func> run(const Dataflow& step, const Func& func) {
  const Tree tree(func);
  const Id id = TW_TRY(tree.find_loop(step.loop));
  For changed = tree.loop(id);
  put_word(changed.marks, MarkKind::Pipeline, "dataflow");
  Edit edit(tree);
  edit.replace(id, make(std::move(changed)));
  Func out = edit.func();
  const Result<lower::ProcessProgram> processes = lower::processes_of(out);
  if (processes) return out;
  Error error = processes.error();
  if (!error.what.starts_with("requirement"))
    return refuse(8, fmt::format("{}: {}", error.what, error.why));
  error.kind = ErrorKind::NotApplicable;
  return tl::unexpected<Error>(std::move(error));
}

Result<Func> run(const Partition& step, const Func& func) {
  const Tree tree(func);
  const Buffer buffer = TW_TRY(tree.find_buffer(step.buffer));
  const Id id = tree.alloc_of(buffer);
  if (id == kNone || fpga_memory(buffer.scope()).empty())
    return refuse(1, fmt::format("{} is not allocated in a memory of an FPGA", step.buffer));
  if (!valid_name(step.factors))
    return refuse(2, fmt::format("\"{}\" is no partition", step.factors));
  Alloc changed = *tree.as<Alloc>(id);
  put_word(changed.marks, MarkKind::Partition, step.factors);
  Edit edit(tree);
  edit.replace(id, make(Alloc(changed)));
  Func out = edit.func();
  const auto banks = lower::banking_of(as_held(out, changed));
  if (banks) return out;
  Error error = banks.error();
  error.kind = ErrorKind::NotApplicable;
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace tilewright::schedule
