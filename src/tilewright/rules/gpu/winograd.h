// Convolutions by Winograd on GPUs: when, and as which kernels.
#pragma once

#include <string>
#include <vector>

#include "tilewright/hw/gpu_target.h"
#include "tilewright/rules/common/draft.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/tensor/conv2d_shape.h"

namespace tilewright::rules {

/// The tile m of the fastest form on `target`, 0 for the direct one: products at the device's peak
/// against those that are left, the transforms' traffic and two more launches.
int64_t gpu_winograd_tile(const tensor::Conv2dShape& conv, const hw::GpuTarget& target);

/// Schedules the transforms of a WinogradConv, recognised by the names of its tensors
/// (tensor/ops/winograd_plain.cc): a thread for each tile of a channel, the tile in its registers.
/// Returns the blocks it has scheduled; the products in between are left to other rules. Declines,
/// with nothing changed, for other programs.
Answer<std::vector<std::string>> schedule_gpu_winograd(Draft& draft, const hw::GpuTarget& target);

}  // namespace tilewright::rules
