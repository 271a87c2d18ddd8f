// Products of bytes that no matrix instruction takes, for tests.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tilewright/rules/gpu/testing/mma_cases.h"

namespace tilewright::rules {

/// A GPU that has instructions for words of bytes, but none for matrices.
inline hw::GpuTarget word_target() {
  hw::GpuTarget target = *hw::find_gpu_target("cuda-sm_80");
  target.name = "cuda-sm_61", target.arch = "sm_61";
  target.shared_bytes = 48 << 10;
  return target;
}

/// All signs, sizes with and without a rest, terms that lie side by side in memory and others.
inline std::vector<MmaCase> word_cases() {
  const auto conv = [](int64_t group, int64_t pad) {
    return std::map<std::string, tensor::AttrValue>{
        {"group", group}, {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
  };
  const std::string product = "MatMulInteger", window = "ConvInteger";
  const DType i8 = DType::I8, u8 = DType::U8;
  return {
      {"signed_bytes", product, {{24, 32}, {32, 40}}, {}, i8},
      {"unsigned_bytes", product, {{17, 64}, {64, 35}}, {}, u8},
      {"unsigned_by_signed", product, {{33, 27}, {27, 18}}, {}, u8, true, i8},
      {"signed_by_unsigned", product, {{5, 45}, {45, 70}}, {}, i8, true, u8},
      {"batched", product, {{3, 10, 22}, {3, 22, 13}}, {}, i8},
      {"few_rows", product, {{2, 100}, {100, 30}}, {}, u8, true, i8},
      {"window", window, {{1, 12, 9, 7}, {10, 12, 3, 3}}, conv(1, 1), u8, true, i8},
      {"window_odd", window, {{2, 6, 7, 9}, {11, 6, 3, 2}}, conv(1, 0), i8},
      {"window_of_few_channels", window, {{1, 3, 9, 9}, {8, 3, 3, 3}}, conv(1, 1), u8, true, u8},
      {"groups", window, {{1, 16, 7, 7}, {24, 4, 3, 3}}, conv(4, 1), u8, true, i8},
      {"groups_of_eight", window, {{2, 16, 5, 6}, {16, 8, 3, 3}}, conv(2, 1), i8},
      {"groups_of_six", window, {{1, 12, 5, 6}, {12, 6, 3, 3}}, conv(2, 1), i8, false},
      {"column", product, {{40, 256}, {256, 1}}, {}, i8},
      {"row", product, {{1, 192}, {192, 40}}, {}, u8, false, i8},
      {"two_terms", product, {{12, 2}, {2, 9}}, {}, i8, false},
      {"depthwise", window, {{1, 8, 6, 6}, {8, 1, 3, 3}}, conv(8, 1), u8, false, i8},
  };
}

}  // namespace tilewright::rules
