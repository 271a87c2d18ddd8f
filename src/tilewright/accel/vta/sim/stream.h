// A stream as the modules see it: a queue of instructions each, with token queues between them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/accel/vta/device.h"

namespace tilewright::vta {

struct Stream {
  std::vector<Module> modules;                ///< of the design, in the order of the chain
  std::vector<std::vector<uint32_t>> queues;  ///< per module: its instructions in stream order
  std::vector<uint8_t> place;                 ///< per instruction: index into `modules`
};

/// errors: Invalid (what is wrong with an instruction alone: flags, memories, ranges, operations
/// this design lacks; FINISH not exactly once at the end).
Result<Stream> split(const Config& config, const std::vector<Insn>& insns);

/// Token queues are numbered along the chain: 2i leads from module i to module i + 1, 2i + 1 back.
constexpr int kNoTokens = -1;
struct TokenUse {
  int pop_prev = kNoTokens, pop_next = kNoTokens, push_prev = kNoTokens, push_next = kNoTokens;
};
TokenUse token_use(const Deps& deps, size_t place);
/// requires: a chain of `modules` modules. 2 (modules - 1) queues.
inline size_t token_queues(const Stream& stream) { return 2 * (stream.modules.size() - 1); }

/// `instruction 12 (load.inp ...)`.
std::string describe(const Config& config, const std::vector<Insn>& insns, size_t index);
/// `load -> compute`.
std::string queue_name(const Stream& stream, int queue);
std::string_view name(Module module);

/// Why nothing can go on: per module the instruction at which it waits. `next`: per module, how
/// many instructions are done; `tokens`: tokens per queue; `visible`: instructions that reached
/// each module.
Error deadlock(const Config& config, const std::vector<Insn>& insns, const Stream& stream,
               const std::vector<size_t>& next, const std::vector<uint64_t>& tokens,
               const std::vector<size_t>& visible);
/// errors: Invalid, if a queue holds tokens.
Status check_leftover(const Stream& stream, const std::vector<uint64_t>& tokens);

/// Adds what one execution of `insn` moves and does.
void count(const Config& config, const Insn& insn, Counters& counters);

}  // namespace tilewright::vta
