#include "tilewright/accel/gemmini/fsim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewright/accel/gemmini/work.h"

namespace tilewright::gemmini {
namespace {

int32_t wrapping_add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

/// `value` times `scale` in f32, rounded half to even and saturated.
template <class To>
To scaled(int32_t value, float scale) {
  const double rounded = std::nearbyint(static_cast<float>(value) * scale);
  constexpr auto kLow = static_cast<double>(std::numeric_limits<To>::min());
  constexpr auto kHigh = static_cast<double>(std::numeric_limits<To>::max());
  return static_cast<To>(std::clamp(rounded, kLow, kHigh));
}

int8_t activated(int32_t value, Activation activation) {
  const int32_t byte = std::clamp(value, -128, 127);
  return static_cast<int8_t>(activation == Activation::Relu ? std::max(byte, 0) : byte);
}

class Fsim final : public Device {
 public:
  Fsim(const Config& config, uint64_t dram_bytes) : config_(config), dram_(dram_bytes, '\0') {
    clear();
  }

  std::string name() const override { return "gemmini:fsim"; }
  const Config& config() const override { return config_; }

  Status write(uint64_t address, std::string_view bytes) override {
    TW_TRY_STATUS(check_dram({address, address + bytes.size()}));
    dram_.replace(address, bytes.size(), bytes);
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    TW_TRY_STATUS(check_dram({address, address + bytes}));
    dram_.copy(into, bytes, address);
    return {};
  }

  Result<LaunchReport> launch(const std::vector<Insn>& insns, const LaunchOptions&) override {
    clear();
    Context context(config_);
    LaunchReport report;
    counters_ = {};
    for (size_t i = 0; i < insns.size(); ++i) {
      Result<Work> work = context.next(insns[i]);
      Status status = work ? std::visit([&](const auto& w) { return run(w); }, *work)
                           : Status(tl::unexpected<Error>(std::move(work.error())));
      if (!status)
        return tl::unexpected<Error>(
            std::move(status.error()).at(fmt::format("{}: {}", i, to_string(insns[i]))));
      ++counters_.commands;
      counters_.preloads += std::holds_alternative<Preload>(insns[i].op) ? 1 : 0;
    }
    report.counters = counters_;
    return report;
  }

 private:
  void clear() {
    const auto dim = static_cast<size_t>(config_.dim);
    spad_.assign(static_cast<size_t>(config_.spad_rows()) * dim, 0);
    acc_.assign(static_cast<size_t>(config_.acc_rows()) * dim, 0);
    held_.assign(dim * dim, 0);
    sums_.assign(dim * dim, 0);
  }

  Status check_dram(DramSpan span) const {
    if (span.begin <= span.end && span.end <= dram_.size()) return {};
    return fail(ErrorKind::Invalid, fmt::format("[{}, {}) is outside of {} bytes of DRAM",
                                                span.begin, span.end, dram_.size()));
  }

  /// The element in row `r`, column `c` of a block as stored.
  size_t index(const LocalRows& rows, int64_t r, int64_t c) const {
    const int64_t dim = config_.dim;
    return static_cast<size_t>((rows.row + r * rows.stride + c / dim * rows.block_stride) * dim +
                               c % dim);
  }

  Status run(const Nothing&) { return {}; }

  Status run(const MoveIn& move) {
    const int64_t row_bytes = move.to.cols * move.element_bytes;
    const bool zeros = move.dram == 0;
    if (!zeros)
      TW_TRY_STATUS(check_dram(dram_span(move.dram, move.stride, move.to.rows, row_bytes)));
    for (int64_t r = 0; r < move.to.rows; ++r)
      for (int64_t c = 0; c < move.to.cols; ++c)
        put(move, r, c, zeros ? 0 : dram_element(move, r, c));
    ++counters_.loads;
    (zeros ? counters_.zero_bytes : counters_.load_bytes) +=
        static_cast<uint64_t>(row_bytes * move.to.rows);
    return {};
  }
  int32_t dram_element(const MoveIn& move, int64_t r, int64_t c) const {
    const uint64_t at = move.dram + static_cast<uint64_t>(r) * move.stride +
                        static_cast<uint64_t>(c * move.element_bytes);
    if (move.element_bytes == 1) return static_cast<int8_t>(dram_[at]);
    int32_t value = 0;
    std::memcpy(&value, dram_.data() + at, 4);
    return value;
  }
  void put(const MoveIn& move, int64_t r, int64_t c, int32_t value) {
    const size_t at = index(move.to, r, c);
    if (!move.to.acc) {
      spad_[at] = move.scale == 1 ? static_cast<int8_t>(value) : scaled<int8_t>(value, move.scale);
      return;
    }
    if (move.scale != 1) value = scaled<int32_t>(value, move.scale);
    acc_[at] = move.adds ? wrapping_add(acc_[at], value) : value;
  }

  Status run(const MoveOut& move) {
    const int64_t row_bytes = move.from.cols * move.element_bytes;
    TW_TRY_STATUS(check_dram(dram_span(move.dram, move.stride, move.from.rows, row_bytes)));
    for (int64_t r = 0; r < move.from.rows; ++r)
      for (int64_t c = 0; c < move.from.cols; ++c) {
        char* const at = dram_.data() + move.dram + static_cast<uint64_t>(r) * move.stride +
                         static_cast<uint64_t>(c * move.element_bytes);
        const size_t from = index(move.from, r, c);
        if (move.element_bytes == 4)
          std::memcpy(at, &acc_[from], 4);
        else
          *at = static_cast<char>(move.from.acc
                                      ? scaled_to_byte(acc_[from], move.scale, move.activation)
                                      : spad_[from]);
      }
    ++counters_.stores;
    counters_.store_bytes += static_cast<uint64_t>(row_bytes * move.from.rows);
    return {};
  }

  /// Operands as DIM x DIM numbers, zeros beyond their rows and columns.
  std::vector<int32_t> matrix(const LocalRows& rows, bool transposed) const {
    const int64_t dim = config_.dim;
    std::vector<int32_t> values(static_cast<size_t>(dim * dim), 0);
    for (int64_t r = 0; r < rows.rows; ++r)
      for (int64_t c = 0; c < rows.cols; ++c)
        values[static_cast<size_t>(transposed ? c * dim + r : r * dim + c)] =
            spad_[index(rows, r, c)];
    return values;
  }

  Status run(const Multiply& m) {
    const auto dim = static_cast<size_t>(config_.dim);
    const std::vector<int32_t> zeros(dim * dim, 0);
    if (m.loads) held_ = m.held ? matrix(*m.held, m.held_transposed) : zeros;
    const std::vector<int32_t> a = matrix(m.a, m.a_transposed);
    const std::vector<int32_t> other = m.other ? matrix(*m.other, m.other_transposed) : zeros;
    const std::vector<int32_t>& b = m.weights_stay ? held_ : other;
    sums_ = m.weights_stay ? other : held_;
    for (size_t i = 0; i < dim; ++i)
      for (size_t k = 0; k < dim; ++k) {
        const auto factor = static_cast<uint32_t>(a[i * dim + k]);
        if (factor == 0) continue;
        for (size_t j = 0; j < dim; ++j)
          sums_[i * dim + j] = static_cast<int32_t>(static_cast<uint32_t>(sums_[i * dim + j]) +
                                                    factor * static_cast<uint32_t>(b[k * dim + j]));
      }
    if (!m.weights_stay) held_ = sums_;
    if (m.result) write_result(m, *m.result);
    ++counters_.computes;
    const LocalRows* wide =
        m.weights_stay ? (m.result ? &*m.result : nullptr) : (m.other ? &*m.other : nullptr);
    const int64_t columns = wide == nullptr      ? config_.dim
                            : m.other_transposed ? wide->rows
                                                 : wide->cols;
    counters_.macs += static_cast<uint64_t>(m.a.rows * m.a.cols * columns);
    return {};
  }
  void write_result(const Multiply& m, const LocalRows& to) {
    for (int64_t r = 0; r < to.rows; ++r)
      for (int64_t c = 0; c < to.cols; ++c) {
        const int32_t sum =
            shifted_half_even(sums_[static_cast<size_t>(r * config_.dim + c)], m.shift);
        const size_t at = index(to, r, c);
        if (to.acc)
          acc_[at] = m.adds ? wrapping_add(acc_[at], sum) : sum;
        else
          spad_[at] = activated(sum, m.activation);
      }
  }

  Config config_;
  std::string dram_;
  std::vector<int8_t> spad_;
  std::vector<int32_t> acc_;
  std::vector<int32_t> held_;  ///< in the array: weights (ws) or sums (os)
  std::vector<int32_t> sums_;  ///< of the last product
  Counters counters_;
};

}  // namespace

std::unique_ptr<Device> make_fsim(const Config& config, uint64_t dram_bytes) {
  return std::make_unique<Fsim>(config, dram_bytes);
}

int8_t scaled_to_byte(int32_t sum, float scale, Activation activation) {
  return activated(scaled<int8_t>(sum, scale), activation);
}

int32_t shifted_half_even(int32_t sum, uint32_t shift) {
  if (shift == 0) return sum;
  const int64_t wide = sum, below = (int64_t{1} << (shift - 1)) - 1;
  return static_cast<int32_t>((wide + below + (wide >> shift & 1)) >> shift);
}

Result<LaunchReport> execute(Device& device, const Program& program, const LaunchOptions& options,
                             const accel::AfterRun& after_run) {
  if (!same_hardware(device.config(), program.config))
    return fail(ErrorKind::Invalid, "the program is for another configuration than the device has",
                fmt::format("the program is for '{}', the device is '{}'", program.config.name,
                            device.config().name));
  TW_TRY_STATUS(accel::write_image(device, program));
  return accel::launch_runs(device, program, options, after_run);
}

}  // namespace tilewright::gemmini
