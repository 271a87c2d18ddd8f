#include "tilewright/accel/vta/runtime/command_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tilewright/accel/vta/ranges.h"
#include "tilewright/accel/vta/tokens.h"
#include "tilewright/base/check.h"

namespace tilewright::vta {
namespace {

constexpr uint64_t kFirstPage = kPage;
// What a launch adds at its end: at most three no-ops per module.
constexpr size_t kTail = 12;
constexpr std::string_view kNames[] = {"load", "compute", "alu", "store"};

std::string_view text(Module module) { return kNames[static_cast<size_t>(module)]; }

bool is_no_op(const Insn& insn) {
  const auto* transfer = std::get_if<Transfer>(&insn.op);
  return transfer != nullptr && !transfer->moves();
}

/// The commands alone, one after the other: the slow reference of the same program.
Result<std::vector<Insn>> serialised(const Config& config, const std::vector<Insn>& insns) {
  std::vector<Insn> commands;
  for (const Insn& insn : insns)
    if (!is_no_op(insn) && !std::holds_alternative<Finish>(insn.op)) commands.push_back(insn);
  const std::vector<accel::Footprint> nothing(commands.size());
  Annotated annotated = TW_TRY(insert_tokens(config, commands, nothing, true));
  return std::move(annotated.insns);
}

}  // namespace

CommandQueue::CommandQueue(Device& device, const QueueOptions& options)
    : device_(device),
      config_(device.config()),
      options_(options),
      chain_(modules(config_)),
      pool_(kFirstPage, options.dram_bytes),
      cache_(static_cast<uint32_t>(config_.depth(Mem::Uop))),
      pops_(chain_.size()),
      to_prev_(chain_.size()),
      to_next_(chain_.size()) {}

int CommandQueue::place(Module module) const {
  return static_cast<int>(std::find(chain_.begin(), chain_.end(), module) - chain_.begin());
}
int CommandQueue::place(const Insn& insn) const { return place(module_of(config_, insn)); }

int64_t& CommandQueue::outstanding(int from, int to) {
  return (to > from ? to_next_ : to_prev_)[static_cast<size_t>(from)];
}

// --- memory -------------------------------------------------------------------------------------

Result<Buffer> CommandQueue::alloc(uint64_t bytes) { return pool_.alloc(bytes); }

Status CommandQueue::check_idle(uint64_t address, uint64_t bytes) const {
  for (const accel::Range& range : used_)
    if (accel::overlap(range, {address, address + bytes}))
      return fail(ErrorKind::Invalid, "waiting commands use this memory",
                  fmt::format("bytes [{:#x}, {:#x}) of [{:#x}, {:#x})", range.begin, range.end,
                              address, address + bytes),
                  "call synchronize first");
  return {};
}

Status CommandQueue::free(const Buffer& buffer) {
  TW_TRY_STATUS(pool_.locate(buffer, 0, 0));
  TW_TRY_STATUS(check_idle(buffer.address, buffer.bytes));
  return pool_.free(buffer);
}

/// Writes DRAM and remembers it for the dump.
Status CommandQueue::write(uint64_t address, std::string_view bytes) {
  TW_TRY_STATUS(accel::write_through(device_, address, bytes));
  if (!runs_.empty()) {
    patches_.push_back({address, std::string(bytes)});
    return {};
  }
  const size_t at = address - kFirstPage;
  if (image_.size() < at + bytes.size()) image_.resize(at + bytes.size());
  if (!bytes.empty()) std::memcpy(image_.data() + at, bytes.data(), bytes.size());
  return {};
}

Status CommandQueue::copy_in(const Buffer& to, uint64_t offset, std::string_view bytes) {
  const uint64_t address = TW_TRY(pool_.locate(to, offset, bytes.size()));
  TW_TRY_STATUS(check_idle(address, bytes.size()));
  return write(address, bytes);
}

Status CommandQueue::copy_out(const Buffer& from, uint64_t offset, char* into, uint64_t bytes) {
  const uint64_t address = TW_TRY(pool_.locate(from, offset, bytes));
  TW_TRY_STATUS(check_idle(address, bytes));
  TW_TRY_STATUS(device_.invalidate(address, bytes));
  return device_.read(address, into, bytes);
}

Status CommandQueue::copy(const Buffer& from, uint64_t from_offset, const Buffer& to,
                          uint64_t to_offset, uint64_t bytes) {
  TW_TRY_STATUS(pool_.locate(from, from_offset, bytes));
  TW_TRY_STATUS(pool_.locate(to, to_offset, bytes));
  std::string staged(bytes, '\0');
  TW_TRY_STATUS(copy_out(from, from_offset, staged.data(), bytes));
  return copy_in(to, to_offset, staged);
}

// --- commands -----------------------------------------------------------------------------------

void CommandQueue::append(const Insn& insn) {
  const int m = place(insn);
  if (insn.deps.pop_prev) --outstanding(m - 1, m);
  if (insn.deps.pop_next) --outstanding(m + 1, m);
  if (insn.deps.push_prev) ++outstanding(m, m - 1);
  if (insn.deps.push_next) ++outstanding(m, m + 1);
  insns_.push_back(insn);
}

/// A command takes the tokens its module was told to wait for.
void CommandQueue::issue(Insn insn) {
  Deps& pops = pops_[static_cast<size_t>(place(insn))];
  insn.deps = pops;
  pops = {};
  append(insn);
}

void CommandQueue::append_no_op(int m, Deps deps) {
  Insn insn = no_op(chain_[static_cast<size_t>(m)]);
  insn.deps = deps;
  append(insn);
}

void CommandQueue::flush_pops(int m) {
  if (pops_[static_cast<size_t>(m)] == Deps()) return;
  issue(no_op(chain_[static_cast<size_t>(m)]));
}

/// Instructions that a launch needs beyond those recorded, `insns` more of them included.
bool CommandQueue::has_room(size_t insns) const {
  size_t needed = insns_.size() + insns + kTail;
  for (size_t m = 0; m < chain_.size(); ++m)
    needed +=
        static_cast<size_t>(std::max<int64_t>(to_prev_[m], 0) + std::max<int64_t>(to_next_[m], 0));
  return needed <= options_.max_insns;
}

/// Launches what is recorded if `insns` more could be too many.
Status CommandQueue::make_room(size_t insns) {
  if (has_room(insns)) return {};
  // Tokens that are on their way are taken now and given again afterwards: by then whatever they
  // stand for is long complete.
  const std::vector<int64_t> to_prev = to_prev_, to_next = to_next_;
  for (int m = 0; m < std::ssize(chain_); ++m) {
    const auto at = static_cast<size_t>(m);
    if (to_prev[at] < 0 || to_next[at] < 0)
      return fail(ErrorKind::Capacity, "the instruction buffer is full",
                  "commands wait for tokens that are not recorded yet, so it cannot be launched",
                  "record dep_push before the command that takes its token");
    for (int64_t k = 0; k < to_prev[at]; ++k) append_no_op(m - 1, {.pop_next = true});
    for (int64_t k = 0; k < to_next[at]; ++k) append_no_op(m + 1, {.pop_prev = true});
  }
  append_tail();
  TW_TRY_STATUS(launch());
  for (int m = 0; m < std::ssize(chain_); ++m) {
    const auto at = static_cast<size_t>(m);
    for (int64_t k = 0; k < to_prev[at]; ++k) append_no_op(m, {.push_prev = true});
    for (int64_t k = 0; k < to_next[at]; ++k) append_no_op(m, {.push_next = true});
  }
  if (has_room(insns)) return {};
  return fail(ErrorKind::Capacity, "the instruction buffer is too small",
              fmt::format("it holds {} instructions", options_.max_insns),
              "keep fewer tokens on their way, or make it larger");
}

Status CommandQueue::transfer_2d(const Buffer& buffer, Transfer transfer) {
  if (transfer.mem == Mem::Uop)
    return fail(ErrorKind::Invalid, "micro-ops are loaded by the kernels that use them");
  TW_TRY_STATUS(pool_.locate(buffer, 0, 0));
  TW_TRY_STATUS(check_transfer(config_, transfer));
  const auto element = static_cast<uint64_t>(config_.element_bytes(transfer.mem));
  const uint64_t first = buffer.address / element + transfer.dram;
  if (first > UINT32_MAX)
    return fail(ErrorKind::Invalid, "beyond the end of a buffer",
                fmt::format("element {} of the buffer at {:#x}", transfer.dram, buffer.address));
  transfer.dram = static_cast<uint32_t>(first);
  Insn insn;
  insn.op = transfer;
  TW_TRY_STATUS(fits(config_, insn));
  if (transfer.moves())
    TW_TRY_STATUS(check_dram(config_, transfer, buffer.address, buffer.address + buffer.bytes));
  TW_TRY_STATUS(make_room(1));
  if (transfer.moves() && transfer.y_size > 0) {
    const uint64_t begin = first * element;
    const uint64_t elements = uint64_t{transfer.y_size - 1} * transfer.x_stride + transfer.x_size;
    used_.push_back({begin, begin + elements * element});
  }
  issue(insn);
  return {};
}

Status CommandQueue::load_buffer_2d(const Buffer& from, Transfer transfer) {
  transfer.store = false;
  return transfer_2d(from, transfer);
}

Status CommandQueue::store_buffer_2d(const Buffer& to, Transfer transfer) {
  transfer.store = true;
  return transfer_2d(to, transfer);
}

/// Each distinct kernel has a buffer of its own, written once.
Result<UopCache::Place> CommandQueue::place_uops(const Kernel& kernel) {
  const UopCache::Place uops = TW_TRY(cache_.use(kernel.uops));
  if (uops.kernel < kernel_buffers_.size()) return uops;
  const std::string words = encode_kernel(config_, kernel.uops);
  const Buffer buffer = TW_TRY(pool_.alloc(words.size()));
  kernel_buffers_.push_back(buffer);
  TW_TRY_STATUS(write(buffer.address, words));
  return uops;
}

/// A token of the queue's own, for what the caller cannot see: the next command of `to` comes after
/// the last one of `from`. Tokens of the caller that are on their way are taken before and given
/// again afterwards, as tokens of one queue are matched in order.
Status CommandQueue::order(int from, int to) {
  const int64_t waiting = outstanding(from, to);
  if (waiting < 0)
    return fail(
        ErrorKind::Invalid,
        fmt::format("{} waits for a token that {} has not given yet",
                    text(chain_[static_cast<size_t>(to)]), text(chain_[static_cast<size_t>(from)])),
        "a kernel with new micro-ops needs the same queue",
        "record dep_push before the command that takes its token");
  const Deps push = from < to ? Deps{.push_next = true} : Deps{.push_prev = true};
  const Deps pop = from < to ? Deps{.pop_prev = true} : Deps{.pop_next = true};
  for (int64_t k = 0; k < waiting; ++k) append_no_op(to, pop);
  append_no_op(from, push);
  append_no_op(to, pop);
  for (int64_t k = 0; k < waiting; ++k) append_no_op(from, push);
  return {};
}

/// LOAD UOP before the instruction that uses it. With an ALU module of its own, its kernels are
/// loaded by another module than the one that runs them.
Status CommandQueue::load_uops(const UopCache::Place& uops, int user) {
  Transfer transfer;
  transfer.mem = Mem::Uop;
  transfer.sram = uops.begin;
  transfer.dram = static_cast<uint32_t>(kernel_buffers_[uops.kernel].address / sizeof(uint32_t));
  transfer.y_size = 1;
  transfer.x_size = transfer.x_stride = uops.end - uops.begin;
  Insn load;
  load.op = transfer;
  const int loader = place(load);
  const auto in_use = [&](const accel::Range& range) {
    return accel::overlap(range, {uops.begin, uops.end});
  };
  if (std::any_of(alu_uops_.begin(), alu_uops_.end(), in_use)) {
    TW_TRY_STATUS(order(place(Module::Alu), loader));
    alu_uops_.clear();
  }
  issue(load);
  return user == loader ? Status() : order(loader, user);
}

Status CommandQueue::push(const Kernel& kernel) {
  const auto* gemm = std::get_if<Gemm>(&kernel.op);
  Loops loops = gemm != nullptr ? gemm->loops : std::get<Alu>(kernel.op).loops;
  TW_TRY_STATUS(check_indices(config_, kernel.uops, loops, gemm != nullptr));
  Insn insn;
  if (gemm != nullptr)
    insn.op = *gemm;
  else
    insn.op = std::get<Alu>(kernel.op);
  const int user = place(insn);
  size_t room = 2;
  if (config_.extensions.pipeline4)
    room += 4 + 2 * static_cast<size_t>(std::abs(outstanding(1, 2)) + std::abs(outstanding(2, 1)));
  TW_TRY_STATUS(make_room(room));
  const UopCache::Place uops = TW_TRY(place_uops(kernel));
  loops.uop_begin = uops.begin;
  loops.uop_end = uops.end;
  if (gemm != nullptr)
    std::get<Gemm>(insn.op).loops = loops;
  else
    std::get<Alu>(insn.op).loops = loops;
  TW_TRY_STATUS(fits(config_, insn));
  if (uops.load) TW_TRY_STATUS(load_uops(uops, user));
  issue(insn);
  if (chain_[static_cast<size_t>(user)] == Module::Alu) alu_uops_.push_back({uops.begin, uops.end});
  return {};
}

// --- dependences --------------------------------------------------------------------------------

Result<int> CommandQueue::neighbour(Module from, Module to) const {
  const int a = place(from), b = place(to), count = static_cast<int>(chain_.size());
  if (a < count && b < count && (a - b == 1 || b - a == 1)) return b;
  return fail(
      ErrorKind::Invalid, fmt::format("no token queue goes from {} to {}", text(from), text(to)),
      "queues link neighbouring modules only", "pass the token on through the module between");
}

void CommandQueue::pop_token(int from, int to) {
  Deps& pops = pops_[static_cast<size_t>(to)];
  bool& pop = from < to ? pops.pop_prev : pops.pop_next;
  if (pop) flush_pops(to);
  pop = true;
}

void CommandQueue::push_token(int from, int to) {
  flush_pops(from);
  if (!insns_.empty()) {
    Insn& last = insns_.back();
    bool& push = to < from ? last.deps.push_prev : last.deps.push_next;
    const auto* transfer = std::get_if<Transfer>(&last.op);
    const bool empty_load = transfer != nullptr && !transfer->store && !transfer->moves();
    if (place(last) == from && !empty_load && !push) {
      push = true;
      ++outstanding(from, to);
      return;
    }
  }
  append_no_op(from, to < from ? Deps{.push_prev = true} : Deps{.push_next = true});
}

Status CommandQueue::dep_push(Module from, Module to) {
  const int b = TW_TRY(neighbour(from, to));
  TW_TRY_STATUS(make_room(2));
  push_token(place(from), b);
  return {};
}

Status CommandQueue::dep_pop(Module from, Module to) {
  const int b = TW_TRY(neighbour(from, to));
  TW_TRY_STATUS(make_room(1));
  pop_token(place(from), b);
  return {};
}

// --- launches -----------------------------------------------------------------------------------

/// What is pushed is popped, counting the pops that no command carries yet.
Status CommandQueue::check_balance() {
  for (int m = 0; m < std::ssize(chain_); ++m) {
    for (const int other : {m - 1, m + 1}) {
      if (other < 0 || other >= std::ssize(chain_)) continue;
      const Deps& pops = pops_[static_cast<size_t>(other)];
      const bool waiting = m < other ? pops.pop_prev : pops.pop_next;
      const int64_t left = outstanding(m, other) - (waiting ? 1 : 0);
      if (left == 0) continue;
      const auto from = text(chain_[static_cast<size_t>(m)]);
      const auto to = text(chain_[static_cast<size_t>(other)]);
      return left > 0 ? Status(fail(
                            ErrorKind::Invalid,
                            fmt::format("{} tokens from {} to {} are never taken", left, from, to),
                            {}, "match every dep_push with a dep_pop"))
                      : Status(fail(ErrorKind::Invalid,
                                    fmt::format("{} waits for {} tokens that {} never gives", to,
                                                -left, from),
                                    {}, "match every dep_pop with a dep_push"));
    }
  }
  return {};
}

/// FINISH after the last command of every module: tokens run along the chain towards its module,
/// and no-ops take them.
void CommandQueue::append_tail() {
  const std::vector<Deps> waiting = pops_;
  pops_.assign(chain_.size(), Deps());
  Insn finish;
  finish.op = Finish{};
  const int last = place(finish), count = static_cast<int>(chain_.size());
  for (int m = count - 1; m > last; --m) {
    push_token(m, m - 1);
    pop_token(m, m - 1);
  }
  for (int m = 0; m < last; ++m) {
    push_token(m, m + 1);
    pop_token(m, m + 1);
  }
  flush_pops(last);
  insns_.push_back(finish);
  pops_ = waiting;
}

/// Runs what is recorded, FINISH included; afterwards nothing is recorded and no micro-op on chip.
Status CommandQueue::launch() {
  std::vector<Insn> insns = std::move(insns_);
  insns_.clear();
  used_.clear();
  alu_uops_.clear();
  cache_.forget_resident();
  to_prev_.assign(chain_.size(), 0);
  to_next_.assign(chain_.size(), 0);
  if (options_.serial) insns = TW_TRY(serialised(config_, insns));
  Run run;
  run.patches = std::move(patches_);
  patches_.clear();
  run.insns = insns;
  runs_.push_back(std::move(run));
  accel::add(TW_TRY(device_.launch(insns, options_.launch)), report_);
  return cache_.dram_uops() * sizeof(uint32_t) > options_.max_uop_bytes ? drop_kernels() : Status();
}

Status CommandQueue::drop_kernels() {
  for (const Buffer& buffer : kernel_buffers_) TW_TRY_STATUS(pool_.free(buffer));
  kernel_buffers_.clear();
  cache_ = UopCache(static_cast<uint32_t>(config_.depth(Mem::Uop)));
  return {};
}

Result<LaunchReport> CommandQueue::synchronize() {
  TW_TRY_STATUS(check_balance());
  for (int m = 0; m < std::ssize(chain_); ++m) flush_pops(m);
  append_tail();
  Status status = launch();
  LaunchReport report = std::move(report_);
  report_ = {};
  if (!status) return tl::unexpected<Error>(std::move(status.error()));
  return report;
}

Program CommandQueue::program(std::vector<Region> outputs) const {
  Program program;
  program.config = config_;
  program.base = kFirstPage;
  program.image = image_;
  if (pool_.high_water() > program.end()) program.image.resize(pool_.high_water() - kFirstPage);
  program.runs = runs_;
  program.outputs = std::move(outputs);
  program.producer = "tilewright";
  return program;
}

}  // namespace tilewright::vta
