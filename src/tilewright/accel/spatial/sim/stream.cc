#include "tilewright/accel/spatial/sim/stream.h"

#include <fmt/format.h>

namespace tilewright::spatial {
namespace {

bool has_queue(unsigned mask, size_t queue) { return (mask >> queue & 1) != 0; }
size_t queue_of(const Insn& insn) { return static_cast<size_t>(insn.queue()); }
std::string_view queue_name(size_t queue) { return name(static_cast<Queue>(queue)); }

std::string missing(const Tokens& tokens, const Insn& insn) {
  std::string text;
  for (size_t a = 0; a < kQueues; ++a)
    if (has_queue(insn.takes, a) && tokens[a][queue_of(insn)] == 0)
      text += fmt::format("{}{}", text.empty() ? "" : " and ", queue_name(a));
  return text;
}

}  // namespace

Stream split(const std::vector<Insn>& insns) {
  Stream stream;
  for (size_t i = 0; i < insns.size(); ++i)
    stream[queue_of(insns[i])].push_back(static_cast<uint32_t>(i));
  return stream;
}

bool Progress::fetch(const std::vector<Insn>& insns, size_t queue) {
  const size_t before = next;
  for (; next < insns.size(); ++next) {
    const size_t q = queue_of(insns[next]);
    if (fetched[q] - begun[q] >= queue) break;
    ++fetched[q];
  }
  return next > before;
}

bool can_begin(const Tokens& tokens, const Insn& insn) {
  for (size_t a = 0; a < kQueues; ++a)
    if (has_queue(insn.takes, a) && tokens[a][queue_of(insn)] == 0) return false;
  return true;
}

void take(Tokens& tokens, const Insn& insn) {
  for (size_t a = 0; a < kQueues; ++a)
    if (has_queue(insn.takes, a)) --tokens[a][queue_of(insn)];
}

void give(Tokens& tokens, const Insn& insn) {
  for (size_t b = 0; b < kQueues; ++b)
    if (has_queue(insn.gives, b)) ++tokens[queue_of(insn)][b];
}

Status check_end(const std::vector<Insn>& insns, const Stream& stream, const Progress& progress,
                 const Tokens& tokens) {
  for (size_t q = 0; q < kQueues; ++q) {
    if (progress.begun[q] == progress.fetched[q]) continue;
    const size_t index = stream[q][progress.begun[q]];
    Error error{ErrorKind::Invalid,
                fmt::format("deadlock: queue {} waits for a token of {}", queue_name(q),
                            missing(tokens, insns[index])),
                {},
                {},
                {},
                {}};
    return tl::unexpected<Error>(at_insn(std::move(error), insns, index));
  }
  for (size_t a = 0; a < kQueues; ++a)
    for (size_t b = 0; b < kQueues; ++b)
      if (tokens[a][b] != 0)
        return fail(ErrorKind::Invalid, fmt::format("{} tokens from {} to {} are left at the end",
                                                    tokens[a][b], queue_name(a), queue_name(b)));
  return {};
}

Error at_insn(Error error, const std::vector<Insn>& insns, size_t index) {
  return std::move(error).at(fmt::format("instruction {} ({})", index, to_string(insns[index])));
}

}  // namespace tilewright::spatial
