// The schedule of Winograd convolutions (tensor/ops/winograd.cc): transforms, products and the
// inverse transform of a strip of tiles follow each other while the strip is in cache.
#pragma once

#include <optional>

#include "tilewright/cost/decision.h"
#include "tilewright/cost/winograd.h"
#include "tilewright/hw/target.h"
#include "tilewright/rules/common/rule_table.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

/// The block of the operator that reads the image: once per tile that covers a pixel.
inline constexpr const char* kWinogradPixels = "wino_pixels";

/// Declines if `func` is no Winograd convolution with an elementwise rest. `why`, if given,
/// receives the plan beside the fastest other form of the same convolution. `plan`: instead of the
/// model's.
Answer<schedule::Trace> winograd_trace(const Func& func, const hw::CpuTarget& target, int threads,
                                       cost::RuleDecision* why = nullptr,
                                       const cost::WinogradPlan* plan = nullptr);

/// What plans of `func` are made for; absent if it is no Winograd convolution.
std::optional<cost::WinogradShape> winograd_shape(const Func& func, const hw::CpuTarget& target);

}  // namespace tilewright::rules
