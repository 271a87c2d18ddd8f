#include "tilewright/accel/spatial/isa.h"

#include <fmt/format.h>

#include <type_traits>

#include "tilewright/accel/spatial/fields.h"

namespace tilewright::spatial {
namespace {

constexpr std::array<std::string_view, kQueues> kQueueNames = {"load", "compute", "store"};
constexpr unsigned kTokenBits = (1u << kQueues) - 1;

template <class T>
void put(T number, size_t at, std::string& bytes) {
  const auto bits = static_cast<uint64_t>(number);
  for (size_t b = 0; b < sizeof(T); ++b) bytes[at + b] = static_cast<char>(bits >> 8 * b & 0xff);
}

template <class T>
void take(std::string_view bytes, size_t at, T& number) {
  uint64_t bits = 0;
  for (size_t b = 0; b < sizeof(T); ++b)
    bits |= uint64_t{static_cast<uint8_t>(bytes[at + b])} << 8 * b;
  number = static_cast<T>(bits);
}

/// Encoding is one to one, so bits that no field has show up as a difference.
template <class Work>
Work read_work(std::string_view bytes) {
  Work work;
  each_field(work, [&](std::string_view, int at, auto& number) {
    take(bytes, static_cast<size_t>(at), number);
  });
  return work;
}

}  // namespace

std::string_view name(Queue queue) { return kQueueNames.at(static_cast<size_t>(queue)); }

std::string encode(const Insn& insn) {
  std::string bytes(kInsnBytes, '\0');
  bytes[0] = static_cast<char>(insn.work.index());
  bytes[1] = static_cast<char>(insn.takes);
  bytes[2] = static_cast<char>(insn.gives);
  std::visit(
      [&](const auto& work) {
        each_field(work, [&](std::string_view, int at, const auto& number) {
          put(number, static_cast<size_t>(at), bytes);
        });
      },
      insn.work);
  return bytes;
}

Result<Insn> decode(std::string_view bytes) {
  if (bytes.size() != kInsnBytes)
    return fail(ErrorKind::Parse,
                fmt::format("an instruction has {} bytes, not {}", kInsnBytes, bytes.size()));
  Insn insn;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(bytes[at]); };
  insn.takes = byte(1);
  insn.gives = byte(2);
  switch (byte(0)) {
    case 0:
      insn.work = read_work<Load>(bytes);
      break;
    case 1:
      insn.work = read_work<Compute>(bytes);
      break;
    case 2:
      insn.work = read_work<Store>(bytes);
      break;
    default:
      return fail(ErrorKind::Parse, fmt::format("no instruction has operation {}", byte(0)));
  }
  const std::string again = encode(insn);
  for (size_t at = 0; at < kInsnBytes; ++at)
    if (again[at] != bytes[at])
      return fail(ErrorKind::Parse,
                  fmt::format("byte {} is {:#x}, but those bits must be zero", at, byte(at)));
  if (((insn.takes | insn.gives) & ~kTokenBits) != 0)
    return fail(ErrorKind::Parse, "tokens of a queue that is not there");
  return insn;
}

Result<std::vector<Insn>> decode_all(std::string_view bytes) {
  std::vector<Insn> insns;
  insns.reserve(bytes.size() / kInsnBytes + 1);
  for (size_t at = 0; at < bytes.size(); at += kInsnBytes) {
    Result<Insn> insn = decode(bytes.substr(at, kInsnBytes));
    if (!insn)
      return tl::unexpected<Error>(
          std::move(insn.error()).at(fmt::format("instruction {}", insns.size())));
    insns.push_back(*std::move(insn));
  }
  return insns;
}

}  // namespace tilewright::spatial
