#include "tilewright/accel/dpu/sim/stream.h"

#include <fmt/format.h>

#include "tilewright/accel/dpu/sim/timing.h"

namespace tilewright::dpu {
namespace {

constexpr std::array<std::string_view, kUnits> kUnitNames = {"LOAD", "SAVE", "CONV", "MISC"};

bool has(unsigned mask, size_t unit) { return (mask >> unit & 1) != 0; }

std::string waits_for(const Tokens& tokens, const Insn& insn, size_t unit) {
  std::string text;
  for (size_t a = 0; a < kUnits; ++a)
    if (has(insn.dpon, a) && tokens[a][unit] == 0)
      text += fmt::format("{}{}", text.empty() ? "" : " and ", kUnitNames[a]);
  return text;
}

}  // namespace

Result<Stream> split(const std::vector<Insn>& insns) {
  if (insns.empty() || !std::holds_alternative<End>(insns.back().op))
    return fail(ErrorKind::Invalid, "the stream does not end with END");
  Stream stream;
  for (size_t i = 0; i + 1 < insns.size(); ++i) {
    if (std::holds_alternative<End>(insns[i].op))
      return fail(ErrorKind::Invalid,
                  fmt::format("END at instruction {}, but {} follow", i, insns.size() - 1 - i));
    const auto unit = static_cast<size_t>(unit_of(insns[i]));
    if (((insns[i].dpon | insns[i].dpby) & (0xf0u | 1u << unit)) != 0)
      return fail(ErrorKind::Invalid, fmt::format("instruction {} has a mask with its own unit", i),
                  disassemble(insns[i]));
    stream.unit.push_back(static_cast<uint8_t>(unit));
    stream.of_unit[unit].push_back(static_cast<uint32_t>(i));
  }
  return stream;
}

bool Progress::fetch(const Stream& stream, size_t queue) {
  const size_t before = next;
  for (; next < stream.unit.size(); ++next) {
    const size_t unit = stream.unit[next];
    if (fetched[unit] - begun[unit] >= queue) break;
    ++fetched[unit];
  }
  return next > before;
}

bool can_begin(const Tokens& tokens, const Insn& insn, size_t unit) {
  for (size_t a = 0; a < kUnits; ++a)
    if (has(insn.dpon, a) && tokens[a][unit] == 0) return false;
  return true;
}

void take(Tokens& tokens, const Insn& insn, size_t unit) {
  for (size_t a = 0; a < kUnits; ++a)
    if (has(insn.dpon, a)) --tokens[a][unit];
}

void give(Tokens& tokens, const Insn& insn, size_t unit) {
  for (size_t b = 0; b < kUnits; ++b)
    if (has(insn.dpby, b)) ++tokens[unit][b];
}

Status check_counters(const Tokens& tokens) {
  for (size_t a = 0; a < kUnits; ++a)
    for (size_t b = 0; b < kUnits; ++b)
      if (tokens[a][b] > kMostTokens)
        return fail(ErrorKind::Invalid, fmt::format("more than {} tokens from {} to {}",
                                                    kMostTokens, kUnitNames[a], kUnitNames[b]));
  return {};
}

Status check_end(const std::vector<Insn>& insns, const Stream& stream, const Progress& progress,
                 const Tokens& tokens) {
  for (size_t u = 0; u < kUnits; ++u) {
    if (progress.begun[u] == progress.fetched[u]) continue;
    const size_t index = stream.of_unit[u][progress.begun[u]];
    return tl::unexpected<Error>(
        at_insn(Error{ErrorKind::Invalid,
                      fmt::format("deadlock: {} waits for a token of {}", kUnitNames[u],
                                  waits_for(tokens, insns[index], u)),
                      {},
                      {},
                      {},
                      {}},
                insns, index));
  }
  for (size_t a = 0; a < kUnits; ++a)
    for (size_t b = 0; b < kUnits; ++b)
      if (tokens[a][b] != 0)
        return fail(ErrorKind::Invalid, fmt::format("{} tokens from {} to {} are left at the end",
                                                    tokens[a][b], kUnitNames[a], kUnitNames[b]));
  return {};
}

Error at_insn(Error error, const std::vector<Insn>& insns, size_t index) {
  return std::move(error).at(fmt::format("instruction {} ({})", index, disassemble(insns[index])));
}

void count(const Config& config, const Insn& insn, const Inits& inits, Counters& counters) {
  ++counters.insns;
  switch (unit_of(insn)) {
    case Unit::Load:
      ++counters.load_started, ++counters.load_finished;
      break;
    case Unit::Save:
      ++counters.save_started, ++counters.save_finished;
      break;
    case Unit::Conv:
      ++counters.conv_started, ++counters.conv_finished;
      break;
    case Unit::Misc:
      ++counters.misc_started, ++counters.misc_finished;
      break;
  }
  const uint64_t beats = ddr_beats(config, insn.op);
  if (const auto* load = std::get_if<Load>(&insn.op))
    (load->mode == 1 ? counters.weight_beats : counters.load_beats) += beats;
  if (std::holds_alternative<Save>(insn.op)) counters.save_beats += beats;
  if (const auto* conv = std::get_if<Conv>(&insn.op)) {
    const WordWindow in = operands_of(insn.op, inits).reads.front();
    counters.macs += static_cast<uint64_t>(in.y.taps_inside() * in.x.taps_inside() * in.groups *
                                           kLanes * conv->out_groups * kLanes);
  }
}

}  // namespace tilewright::dpu
