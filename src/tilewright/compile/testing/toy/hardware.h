// The accelerator "toy": two memories, two queues, one dot instruction.
//
// Queue `load` moves bytes between DRAM and the memories: into `buf`, out of `out`. Queue `compute`
// multiplies: `buf` holds operands and biases, `out` takes bytes. Both run beside each other;
// tokens keep them in order where they touch the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "tilewright/accel/common/device.h"
#include "tilewright/accel/common/queues.h"

namespace tilewright::toy {

inline constexpr const char* kName = "toy";
inline constexpr int64_t kBufBytes = 2048, kOutBytes = 64;
/// Numbers in `queues()`.
enum : int { kLoadQueue, kComputeQueue };
enum : int { kBuf, kOut, kDram };

enum class Op : int64_t { Load, Store, Dot };

/// Addresses of memories begin at 0, those of DRAM are absolute; units: bytes.
struct Insn {
  Op op = Op::Load;
  int64_t dram = 0, at = 0, bytes = 0;  ///< Load: DRAM to buf. Store: out to DRAM
  /// Dot: out[y + j] = clip((sum over k of buf[x + k] * buf[w + j*depth + k] + bias[j]) >> shift,
  /// lo, hi) for j below `count`, wrapping at 32 bits; biases are i32 at buf[bias].
  int64_t x = 0, w = 0, bias = 0, y = 0, depth = 0, count = 0, shift = 0, lo = -128, hi = 127;
  int64_t takes = 0, gives = 0;  ///< tokens, a bit per queue, as accel::Slot has them

  static constexpr auto fields() {
    using I = Insn;
    return std::tuple{
        field("dram", &I::dram),   field("at", &I::at),       field("bytes", &I::bytes),
        field("x", &I::x),         field("w", &I::w),         field("bias", &I::bias),
        field("y", &I::y),         field("depth", &I::depth), field("count", &I::count),
        field("shift", &I::shift), field("lo", &I::lo),       field("hi", &I::hi),
        field("takes", &I::takes), field("gives", &I::gives)};
  }
};
int queue_of(const Insn& insn);
std::string to_string(const Insn& insn);

const accel::Queues& queues();
accel::Footprint footprint(const Insn& insn);

using Program = accel::Program<Insn>;
std::string serialise(const Program& program);
/// errors: Parse.
Result<Program> parse_program(std::string_view bytes);

struct Counters {
  uint64_t insns = 0, loaded_bytes = 0, stored_bytes = 0, products = 0;

  static constexpr auto fields() {
    using C = Counters;
    return std::tuple{field("insns", &C::insns), field("loaded_bytes", &C::loaded_bytes),
                      field("stored_bytes", &C::stored_bytes), field("products", &C::products)};
  }
};
using LaunchReport = accel::LaunchReport<Counters>;
using Device = accel::Device<Insn, Counters>;

/// Results, no time. `load` runs as far ahead as tokens let it, so a missing one shows.
std::unique_ptr<Device> make_simulator(uint64_t dram_bytes);

}  // namespace tilewright::toy
