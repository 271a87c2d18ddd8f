// Gemmini a second time, for tests: straight from the bits that a processor sends, element by
// element, without the structs and the rules of the product.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tilewright/accel/gemmini/program.h"

namespace tilewright::gemmini::testing {

class RawMachine {
 public:
  RawMachine(const Config& config, std::string dram)
      : dim_(config.dim),
        dram_(std::move(dram)),
        spad_(static_cast<size_t>(config.spad_kb) * 1024),
        acc_(static_cast<size_t>(config.acc_kb) * 256),
        array_(static_cast<size_t>(dim_) * static_cast<size_t>(dim_)) {}

  const std::string& dram() const { return dram_; }

  void execute(const RawCommand& c) {
    switch (c.funct) {
      case 0:
        return configure(c.rs1, c.rs2);
      case 2:
        return move_in(0, c.rs1, c.rs2);
      case 1:
        return move_in(1, c.rs1, c.rs2);
      case 14:
        return move_in(2, c.rs1, c.rs2);
      case 3:
        return move_out(c.rs1, c.rs2);
      case 6:
        held_at_ = c.rs1, result_at_ = c.rs2;
        return;
      case 4:
        load_array();
        [[fallthrough]];
      case 5:
        return multiply(c.rs1, c.rs2);
      default:
        return;
    }
  }

 private:
  static uint64_t low(uint64_t word, int from, int count) {
    return (word >> from) % (uint64_t{1} << count);
  }
  static float real(uint64_t word) {
    return std::bit_cast<float>(static_cast<uint32_t>(word >> 32));
  }
  static bool none(uint64_t word) { return low(word, 0, 32) == 0xFFFFFFFF; }
  static uint64_t columns(uint64_t word) { return low(word, 32, 16); }
  static uint64_t rows(uint64_t word) { return low(word, 48, 16); }
  static int64_t nearest(float value) { return std::llrint(value); }

  void configure(uint64_t a, uint64_t b) {
    if (a % 4 == 1) {
      const auto w = low(a, 3, 2);
      in_stride_[w] = b, in_block_[w] = low(a, 16, 16), in_scale_[w] = real(a);
      in_narrow_[w] = low(a, 2, 1) != 0;
    } else if (a % 4 == 2) {
      out_stride_ = low(b, 0, 32), out_scale_ = real(b), out_relu_ = low(a, 2, 2) == 1;
    } else {
      a_stride_ = low(a, 16, 16), c_stride_ = low(b, 48, 16);
      if (low(a, 7, 1) != 0) return;
      ws_ = low(a, 2, 1) != 0, relu_ = low(a, 3, 2) == 1;
      a_transposed_ = low(a, 8, 1) != 0, b_transposed_ = low(a, 9, 1) != 0;
      shift_ = low(b, 0, 32);
    }
  }

  int8_t& spad(uint64_t row, uint64_t column) {
    return spad_.at(row * static_cast<uint64_t>(dim_) + column);
  }
  int32_t& acc(uint64_t row, uint64_t column) {
    return acc_.at(row * static_cast<uint64_t>(dim_) + column);
  }

  void move_in(size_t w, uint64_t dram, uint64_t to) {
    const bool in_acc = low(to, 31, 1) != 0;
    const uint64_t size = in_acc && !in_narrow_[w] ? 4 : 1, dim = static_cast<uint64_t>(dim_);
    for (uint64_t r = 0; r < rows(to); ++r)
      for (uint64_t c = 0; c < columns(to); ++c) {
        int32_t value = 0;
        if (dram != 0) {
          const uint64_t at = dram + r * in_stride_[w] + c * size;
          if (size == 4)
            std::memcpy(&value, &dram_.at(at), 4);
          else
            value = static_cast<int8_t>(dram_.at(at));
        }
        if (in_scale_[w] != 1) {
          const int64_t most = in_acc ? INT32_MAX : 127;
          value = static_cast<int32_t>(std::clamp<int64_t>(
              nearest(static_cast<float>(value) * in_scale_[w]), -most - 1, most));
        }
        const uint64_t row = low(to, 0, 29) + r + c / dim * in_block_[w];
        if (!in_acc)
          spad(row, c % dim) = static_cast<int8_t>(value);
        else if (low(to, 30, 1) != 0)
          acc(row, c % dim) = static_cast<int32_t>(static_cast<int64_t>(acc(row, c % dim)) + value);
        else
          acc(row, c % dim) = value;
      }
  }

  void move_out(uint64_t dram, uint64_t from) {
    const bool in_acc = low(from, 31, 1) != 0, whole = low(from, 29, 1) != 0;
    for (uint64_t r = 0; r < rows(from); ++r)
      for (uint64_t c = 0; c < columns(from); ++c) {
        const uint64_t row = low(from, 0, 29) + r, at = dram + r * out_stride_;
        if (in_acc && whole) {
          std::memcpy(&dram_.at(at + 4 * c), &acc(row, c), 4);
        } else if (!in_acc) {
          dram_.at(at + c) = static_cast<char>(spad(row, c));
        } else {
          int64_t byte = nearest(static_cast<float>(acc(row, c)) * out_scale_);
          byte = std::min<int64_t>(std::max<int64_t>(byte, out_relu_ ? 0 : -128), 127);
          dram_.at(at + c) = static_cast<char>(byte);
        }
      }
  }

  void load_array() {
    for (uint64_t r = 0; r < static_cast<uint64_t>(dim_); ++r)
      for (uint64_t c = 0; c < static_cast<uint64_t>(dim_); ++c) {
        const bool there = !none(held_at_) && r < rows(held_at_) && c < columns(held_at_);
        array_[r * static_cast<uint64_t>(dim_) + c] = there ? spad(low(held_at_, 0, 29) + r, c) : 0;
      }
  }

  void multiply(uint64_t a_at, uint64_t other_at) {
    const auto dim = static_cast<uint64_t>(dim_);
    std::vector<int64_t> sums(dim * dim);
    for (uint64_t i = 0; i < dim; ++i)
      for (uint64_t j = 0; j < dim; ++j) {
        int64_t sum = 0;
        if (!ws_)
          sum = array_[i * dim + j];
        else if (!none(other_at) && i < rows(other_at) && j < columns(other_at))
          sum = spad(low(other_at, 0, 29) + i, j);
        for (uint64_t k = 0; k < dim; ++k) {
          int64_t a = 0, b = 0;
          if (i < rows(a_at) && k < columns(a_at))
            a = a_transposed_ ? spad(low(a_at, 0, 29) + k * a_stride_, i)
                              : spad(low(a_at, 0, 29) + i * a_stride_, k);
          if (ws_)
            b = b_transposed_ ? array_[j * dim + k] : array_[k * dim + j];
          else if (!none(other_at) && k < rows(other_at) && j < columns(other_at))
            b = b_transposed_ ? spad(low(other_at, 0, 29) + j, k)
                              : spad(low(other_at, 0, 29) + k, j);
          sum += a * b;
        }
        sums[i * dim + j] = sum;
      }
    if (!ws_)
      for (size_t e = 0; e < sums.size(); ++e) array_[e] = static_cast<int32_t>(sums[e]);
    if (none(result_at_)) return;
    const uint64_t base = low(result_at_, 0, 29);
    for (uint64_t i = 0; i < rows(result_at_); ++i)
      for (uint64_t j = 0; j < columns(result_at_); ++j) {
        int64_t sum = static_cast<int32_t>(sums[i * dim + j]);
        // Double has room for all sums, so that its division is exact and rint breaks ties to even.
        if (!ws_) sum = std::llrint(static_cast<double>(sum) / static_cast<double>(1ull << shift_));
        const uint64_t row = base + i * c_stride_;
        if (low(result_at_, 31, 1) == 0)
          spad(row, j) = static_cast<int8_t>(std::clamp<int64_t>(sum, relu_ ? 0 : -128, 127));
        else
          acc(row, j) =
              static_cast<int32_t>(sum + (low(result_at_, 30, 1) != 0 ? int64_t{acc(row, j)} : 0));
      }
  }

  int dim_;
  std::string dram_;
  std::vector<int8_t> spad_;
  std::vector<int32_t> acc_;
  std::vector<int32_t> array_;
  uint64_t in_stride_[3] = {}, in_block_[3] = {}, out_stride_ = 0;
  float in_scale_[3] = {}, out_scale_ = 1;
  bool in_narrow_[3] = {}, out_relu_ = false;
  bool ws_ = false, relu_ = false, a_transposed_ = false, b_transposed_ = false;
  uint64_t a_stride_ = 1, c_stride_ = 1, shift_ = 0, held_at_ = ~uint64_t{0},
           result_at_ = ~uint64_t{0};
};

}  // namespace tilewright::gemmini::testing
