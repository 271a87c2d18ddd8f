// What quantisation costs, for people and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/driver/verify/quantization_loss.h"

namespace tilewright::driver {

/// Samples; outputs with SQNR and top-1 agreement; layers with SQNR.
nlohmann::ordered_json loss_json(const QuantizationLoss& loss);
/// A table of the outputs, then one of the layers.
std::string loss_text(const QuantizationLoss& loss);

}  // namespace tilewright::driver
