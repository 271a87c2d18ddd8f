// The explicit runtime: buffers, transfers, micro-op kernels and dependences as the program says,
// launched on any Device. source: the upstream runtime, without its micro-op cache.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/ranges.h"
#include "tilewright/accel/vta/device.h"
#include "tilewright/accel/vta/runtime/buffer.h"
#include "tilewright/accel/vta/runtime/kernel.h"
#include "tilewright/accel/vta/uop_cache.h"

namespace tilewright::vta {

struct QueueOptions {
  uint64_t dram_bytes = uint64_t{256} << 20;   ///< of the device; the first page stays unused
  size_t max_insns = (size_t{32} << 20) / 16;  ///< room in the instruction buffer
  uint64_t max_uop_bytes = uint64_t{4} << 20;  ///< kernels kept in DRAM between launches
  bool serial = false;  ///< one instruction at a time, whatever the dependences say
  LaunchOptions launch;
};

/// Records commands and launches them. Not thread-safe; the device must outlive it. On-chip
/// memories and tokens keep their contents over the launches that a full instruction buffer causes.
class CommandQueue {
 public:
  explicit CommandQueue(Device& device, const QueueOptions& options = {});
  CommandQueue(const CommandQueue&) = delete;
  CommandQueue& operator=(const CommandQueue&) = delete;

  /// Device memory. errors: Capacity, Invalid (misuse: not a live buffer, beyond its end, memory
  /// that waiting commands use: synchronize first).
  Result<Buffer> alloc(uint64_t bytes);
  Status free(const Buffer& buffer);
  Status copy_in(const Buffer& to, uint64_t offset, std::string_view bytes);
  Status copy_out(const Buffer& from, uint64_t offset, char* into, uint64_t bytes);
  Status copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset,
              uint64_t bytes);

  /// A 2D transfer; `transfer.dram` counts elements from the begin of the buffer.
  /// errors: Invalid (rows beyond the buffer, a memory that cannot be loaded), Capacity.
  Status load_buffer_2d(const Buffer& from, Transfer transfer);
  Status store_buffer_2d(const Buffer& to, Transfer transfer);

  /// A recorded GEMM or ALU instruction, after a LOAD of its micro-ops if they are not on chip.
  Status push(const Kernel& kernel);

  /// A token from `from` to `to`, which are neighbours: given by the last command of `from`, taken
  /// by the next command of `to`. errors: Invalid (not neighbours).
  Status dep_push(Module from, Module to);
  Status dep_pop(Module from, Module to);

  /// Runs everything recorded. The report includes the launches that a full instruction buffer
  /// caused since the last call.
  /// errors: Invalid (a queue would not be empty; nothing is run then), as Device::launch.
  Result<LaunchReport> synchronize();

  /// Everything launched so far, for dumping. Outputs are named by the caller.
  Program program(std::vector<Region> outputs = {}) const;

  const std::vector<Insn>& pending() const { return insns_; }  ///< recorded, not launched

 private:
  int place(Module module) const;
  int place(const Insn& insn) const;
  Result<int> neighbour(Module from, Module to) const;
  int64_t& outstanding(int from, int to);
  bool has_room(size_t insns) const;
  Status make_room(size_t insns);
  Status check_idle(uint64_t address, uint64_t bytes) const;
  Status write(uint64_t address, std::string_view bytes);
  Status transfer_2d(const Buffer& buffer, Transfer transfer);
  Result<UopCache::Place> place_uops(const Kernel& kernel);
  Status order(int from, int to);
  Status load_uops(const UopCache::Place& uops, int user);
  void append(const Insn& insn);
  void issue(Insn insn);
  void append_no_op(int m, Deps deps);
  void flush_pops(int m);
  void push_token(int from, int to);
  void pop_token(int from, int to);
  Status check_balance();
  void append_tail();
  Status launch();
  Status drop_kernels();

  Device& device_;
  Config config_;
  QueueOptions options_;
  std::vector<Module> chain_;
  DramPool pool_;
  UopCache cache_;
  std::vector<Buffer> kernel_buffers_;  ///< by UopCache's kernel
  std::vector<Insn> insns_;
  std::vector<Deps> pops_;                  ///< per module, not yet carried by a command
  std::vector<int64_t> to_prev_, to_next_;  ///< tokens pushed minus popped, by who pushes
  std::vector<accel::Range> used_;          ///< DRAM of waiting commands
  std::vector<accel::Range> alu_uops_;      ///< micro-ops that an ALU module may still be reading
  LaunchReport report_;                     ///< of launches since the last synchronize
  std::string image_;                       ///< DRAM before the first launch
  std::vector<Patch> patches_;              ///< since the last launch
  std::vector<Run> runs_;
};

}  // namespace tilewright::vta
