// How records name convolutions and their algorithms: which algorithm computes one is decided
// before there are kernels, so its record has a convolution as workload and no schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tilewright/records/record.h"
#include "tilewright/tensor/conv2d_shape.h"

namespace tilewright::compile {

/// `conv 1x64->64 of 56x56, window 3x3`: what records know a convolution by.
std::string conv_text(const tensor::Conv2dShape& conv);
/// The key of its records.
std::string conv_key(const tensor::Conv2dShape& conv);
/// The tile that a record (kind `algorithm`) decides for; absent where it is about a schedule.
std::optional<int64_t> form_in(const records::Record& record);
/// `direct` or `winograd 4`.
std::string form_name(int64_t m);
/// The point of such a record: `algorithm: winograd 4`.
std::string form_point(int64_t m);

}  // namespace tilewright::compile
