#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewright/compile/testing/toy/hardware.h"

namespace tilewright::toy {
namespace {

/// Whether [begin, begin + bytes) lies in a memory of that size.
bool inside(int64_t begin, int64_t bytes, size_t size) {
  return begin >= 0 && bytes >= 0 && begin <= static_cast<int64_t>(size) - bytes;
}

class Simulator final : public Device {
 public:
  explicit Simulator(uint64_t dram_bytes)
      : dram_(dram_bytes, '\0'), buf_(kBufBytes, '\0'), out_(kOutBytes, '\0') {}

  std::string name() const override { return "toy:sim"; }

  Status write(uint64_t address, std::string_view bytes) override {
    TW_TRY_STATUS(check_dram(static_cast<int64_t>(address), static_cast<int64_t>(bytes.size())));
    dram_.replace(address, bytes.size(), bytes);
    return {};
  }

  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    TW_TRY_STATUS(check_dram(static_cast<int64_t>(address), static_cast<int64_t>(bytes)));
    dram_.copy(into, bytes, address);
    return {};
  }

  Result<LaunchReport> launch(const std::vector<Insn>& insns,
                              const accel::LaunchOptions&) override {
    std::array<std::vector<size_t>, 2> streams;
    for (size_t i = 0; i < insns.size(); ++i)
      streams[static_cast<size_t>(queue_of(insns[i]))].push_back(i);
    std::array<size_t, 2> next{};
    std::array<int64_t, 2> waiting{};  // tokens given to each queue by the other one
    LaunchReport report;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t q = 0; q < streams.size(); ++q)
        for (; next[q] < streams[q].size(); ++next[q], moved = true) {
          const size_t index = streams[q][next[q]];
          const Insn& insn = insns[index];
          if (insn.takes != 0 && waiting[q] == 0) break;
          if (insn.takes != 0) --waiting[q];
          if (Status status = execute(insn, report.counters); !status)
            return tl::unexpected<Error>(
                std::move(status.error()).at(fmt::format("{}: {}", index, to_string(insn))));
          if (insn.gives != 0) ++waiting[1 - q];
        }
    }
    for (size_t q = 0; q < streams.size(); ++q) {
      if (next[q] < streams[q].size())
        return fail(ErrorKind::Invalid,
                    fmt::format("instruction {} waits for ever", streams[q][next[q]]));
      if (waiting[q] != 0)
        return fail(ErrorKind::Invalid, fmt::format("{} tokens are left", waiting[q]));
    }
    return report;
  }

 private:
  Status check_dram(int64_t address, int64_t bytes) const {
    if (inside(address, bytes, dram_.size())) return {};
    return fail(ErrorKind::Invalid, fmt::format("[{}, +{}) is outside of {} bytes of DRAM", address,
                                                bytes, dram_.size()));
  }

  Status execute(const Insn& insn, Counters& counters) {
    ++counters.insns;
    if (insn.op == Op::Dot) return dot(insn, counters);
    std::string& memory = insn.op == Op::Load ? buf_ : out_;
    TW_TRY_STATUS(check_dram(insn.dram, insn.bytes));
    if (!inside(insn.at, insn.bytes, memory.size()))
      return fail(ErrorKind::Invalid, "it moves bytes outside of the memory");
    char* const inner = memory.data() + insn.at;
    char* const outer = dram_.data() + insn.dram;
    const auto bytes = static_cast<size_t>(insn.bytes);
    if (insn.op == Op::Load)
      std::memcpy(inner, outer, bytes), counters.loaded_bytes += bytes;
    else
      std::memcpy(outer, inner, bytes), counters.stored_bytes += bytes;
    return {};
  }

  Status dot(const Insn& insn, Counters& counters) {
    const bool good =
        insn.depth > 0 && insn.depth <= kBufBytes && insn.count >= 0 && insn.count <= kOutBytes &&
        insn.shift >= 0 && insn.shift < 32 && inside(insn.x, insn.depth, buf_.size()) &&
        inside(insn.w, insn.depth * insn.count, buf_.size()) &&
        inside(insn.bias, 4 * insn.count, buf_.size()) && inside(insn.y, insn.count, out_.size());
    if (!good) return fail(ErrorKind::Invalid, "it has operands outside of their memories");
    for (int64_t j = 0; j < insn.count; ++j) {
      uint32_t sum = 0;  // wraps
      std::memcpy(&sum, buf_.data() + insn.bias + 4 * j, 4);
      for (int64_t k = 0; k < insn.depth; ++k)
        sum += static_cast<uint32_t>(byte(insn.x + k) * byte(insn.w + j * insn.depth + k));
      const int64_t value = static_cast<int32_t>(sum) >> insn.shift;
      out_[static_cast<size_t>(insn.y + j)] =
          static_cast<char>(std::clamp(value, insn.lo, insn.hi));
    }
    counters.products += static_cast<uint64_t>(insn.depth * insn.count);
    return {};
  }

  int32_t byte(int64_t at) const { return static_cast<int8_t>(buf_[static_cast<size_t>(at)]); }

  std::string dram_, buf_, out_;
};

}  // namespace

std::unique_ptr<Device> make_simulator(uint64_t dram_bytes) {
  return std::make_unique<Simulator>(dram_bytes);
}

}  // namespace tilewright::toy
