#include "tilewright/accel/vta/sim/stream.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::vta {
namespace {

struct Problem {
  std::string what;  ///< continues `instruction 3 (...) `; empty: none
  std::string why;
};

uint64_t sram_end(const Transfer& t) {
  const uint64_t rows = uint64_t{t.y_pad_top} + t.y_size + t.y_pad_bottom;
  const uint64_t width = t.store ? t.x_size : t.sram_width();
  return t.sram + rows * width;
}

Problem check_transfer(const Config& config, const Transfer& t) {
  if (!t.moves()) return {};
  if (t.mem > Mem::Acc8)
    return {"names a memory that does not exist", fmt::format("id {}", static_cast<int>(t.mem))};
  if (t.store && t.mem != Mem::Out)
    return {"stores from a memory other than out", fmt::format("memory {}", name(t.mem))};
  if (!t.store && t.mem == Mem::Out) return {"loads into out", "only stores use this memory"};
  if (t.mem == Mem::Acc8 && !config.has_acc8)
    return {"loads 8-bit accumulators, which this configuration has not", "`has_acc8` is false"};
  if (t.store && (t.y_pad_top | t.y_pad_bottom | t.x_pad_left | t.x_pad_right) != 0)
    return {"stores with padding", ""};
  const uint64_t end = sram_end(t);
  if (end > static_cast<uint64_t>(config.depth(t.mem)))
    return {fmt::format("goes beyond the end of {}", name(t.mem)),
            fmt::format("it ends at element {} of {}", end, config.depth(t.mem))};
  return {};
}

Problem check_loops(const Config& config, const Loops& loops) {
  if (loops.uop_begin > loops.uop_end)
    return {"has a micro-op range that ends before it begins",
            fmt::format("{}..{}", loops.uop_begin, loops.uop_end)};
  if (loops.uop_end > static_cast<uint64_t>(config.depth(Mem::Uop)))
    return {"goes beyond the end of uop",
            fmt::format("it ends at element {} of {}", loops.uop_end, config.depth(Mem::Uop))};
  return {};
}

Problem check_op(const Config& config, const Insn& insn) {
  if (const auto* transfer = std::get_if<Transfer>(&insn.op))
    return check_transfer(config, *transfer);
  if (const auto* gemm = std::get_if<Gemm>(&insn.op)) {
    if (gemm->replace_first && !config.extensions.fused_reset)
      return {"replaces in its first iteration, which this configuration cannot",
              "`extensions.fused_reset` is false"};
    return check_loops(config, gemm->loops);
  }
  if (const auto* alu = std::get_if<Alu>(&insn.op)) {
    if (alu->op == AluOp::Mul && !config.has_mul)
      return {"multiplies, which this configuration cannot", "`has_mul` is false"};
    if (alu->op == AluOp::Shr && alu->use_imm && alu->loops.steps() > 0 &&
        (alu->imm < -31 || alu->imm > 31))
      return {fmt::format("shifts by {}", alu->imm), "amounts lie in -31..31"};
    return check_loops(config, alu->loops);
  }
  return {};
}

Problem check_flags(const Deps& deps, size_t place, size_t modules) {
  if (place == 0 && (deps.pop_prev || deps.push_prev))
    return {"has a flag for the module before load", "there is none"};
  if (place + 1 == modules && (deps.pop_next || deps.push_next))
    return {"has a flag for the module after store", "there is none"};
  return {};
}

/// `load` of the chain for bad memory ids too, so that flags and FINISH are still looked at.
size_t place_of(const Config& config, const Insn& insn, const std::vector<Module>& modules) {
  const auto at = std::find(modules.begin(), modules.end(), module_of(config, insn));
  return at == modules.end() ? 0 : static_cast<size_t>(at - modules.begin());
}

}  // namespace

Result<Stream> split(const Config& config, const std::vector<Insn>& insns) {
  Stream stream;
  stream.modules = modules(config);
  stream.queues.resize(stream.modules.size());
  stream.place.reserve(insns.size());
  for (size_t i = 0; i < insns.size(); ++i) {
    Problem problem = check_op(config, insns[i]);
    const size_t place = problem.what.empty() ? place_of(config, insns[i], stream.modules) : 0;
    if (problem.what.empty()) problem = check_flags(insns[i].deps, place, stream.modules.size());
    const bool finish = std::holds_alternative<Finish>(insns[i].op);
    if (problem.what.empty() && finish && i + 1 != insns.size())
      problem = {"is not the last one", fmt::format("{} follow", insns.size() - i - 1)};
    if (!problem.what.empty())
      return fail(ErrorKind::Invalid,
                  fmt::format("{} {}", describe(config, insns, i), problem.what), problem.why);
    stream.place.push_back(static_cast<uint8_t>(place));
    stream.queues[place].push_back(static_cast<uint32_t>(i));
  }
  if (insns.empty() || !std::holds_alternative<Finish>(insns.back().op))
    return fail(ErrorKind::Invalid, "the stream does not end with FINISH",
                fmt::format("it has {} instructions", insns.size()));
  return stream;
}

TokenUse token_use(const Deps& deps, size_t place) {
  const int here = 2 * static_cast<int>(place);
  TokenUse use;
  if (deps.pop_prev) use.pop_prev = here - 2;
  if (deps.pop_next) use.pop_next = here + 1;
  if (deps.push_prev) use.push_prev = here - 1;
  if (deps.push_next) use.push_next = here;
  return use;
}

std::string_view name(Module module) {
  constexpr std::array<std::string_view, 4> kNames = {"load", "compute", "alu", "store"};
  return kNames.at(static_cast<size_t>(module));
}

std::string describe(const Config& config, const std::vector<Insn>& insns, size_t index) {
  const std::string text = disassemble(config, insns[index]);
  const size_t begin = text.find_first_not_of(' ');
  return fmt::format("instruction {} ({})", index,
                     begin == std::string::npos ? text : text.substr(begin));
}

std::string queue_name(const Stream& stream, int queue) {
  const std::string_view a = name(stream.modules[queue / 2]),
                         b = name(stream.modules[queue / 2 + 1]);
  return queue % 2 == 0 ? fmt::format("{} -> {}", a, b) : fmt::format("{} -> {}", b, a);
}

Error deadlock(const Config& config, const std::vector<Insn>& insns, const Stream& stream,
               const std::vector<size_t>& next, const std::vector<uint64_t>& tokens,
               const std::vector<size_t>& visible) {
  Error error;
  for (size_t m = 0; m < stream.modules.size(); ++m) {
    if (next[m] == stream.queues[m].size()) continue;
    const size_t index = stream.queues[m][next[m]];
    const TokenUse use = token_use(insns[index].deps, m);
    std::string why;
    for (const int queue : {use.pop_prev, use.pop_next})
      if (queue != kNoTokens && tokens[queue] == 0)
        why += fmt::format("{}no token in {}", why.empty() ? "" : ", ", queue_name(stream, queue));
    if (visible[m] <= next[m]) why = "it is stuck behind a full command queue";
    Error one{ErrorKind::Invalid,
              fmt::format("deadlock: {} never starts", describe(config, insns, index)),
              {},
              fmt::format("{}: {}", name(stream.modules[m]), why),
              {},
              {}};
    if (error.what.empty())
      error = std::move(one);
    else
      error.others.push_back(std::move(one));
  }
  return error;
}

Status check_leftover(const Stream& stream, const std::vector<uint64_t>& tokens) {
  for (size_t q = 0; q < tokens.size(); ++q)
    if (tokens[q] > 0)
      return fail(ErrorKind::Invalid, "tokens are left at the end of the stream",
                  fmt::format("{} in {}", tokens[q], queue_name(stream, static_cast<int>(q))));
  return {};
}

void count(const Config& config, const Insn& insn, Counters& counters) {
  ++counters.insns;
  if (const auto* t = std::get_if<Transfer>(&insn.op)) {
    if (!t->moves()) return;
    const uint64_t bytes =
        uint64_t{t->x_size} * t->y_size * static_cast<uint64_t>(config.element_bytes(t->mem));
    switch (t->mem) {
      case Mem::Uop:
        counters.uop_load_bytes += bytes;
        break;
      case Mem::Wgt:
        counters.wgt_load_bytes += bytes;
        break;
      case Mem::Inp:
        counters.inp_load_bytes += bytes;
        break;
      case Mem::Acc:
      case Mem::Acc8:
        counters.acc_load_bytes += bytes;
        break;
      case Mem::Out:
        counters.out_store_bytes += bytes;
        break;
    }
  } else if (const auto* gemm = std::get_if<Gemm>(&insn.op)) {
    (gemm->reset ? counters.reset_steps : counters.gemm_steps) += gemm->loops.steps();
  } else if (const auto* alu = std::get_if<Alu>(&insn.op)) {
    (alu->use_imm ? counters.alu_imm_steps : counters.alu_reg_steps) += alu->loops.steps();
  }
}

}  // namespace tilewright::vta
