// What quantisation costs: the integer graph against the f32 graph it was made from.
#pragma once

#include <string>
#include <vector>

#include "tilewright/compile/options.h"
#include "tilewright/compile/quantized_model.h"

namespace tilewright::driver {

/// One value over all samples.
struct ValueLoss {
  std::string name;        ///< of the f32 graph
  double signal = 0;       ///< sum of squares of the f32 values
  double noise = 0;        ///< sum of squares of the differences
  double least_db = 0;     ///< of the worst sample; units: dB
  double sqnr_db() const;  ///< signal to quantisation noise; units: dB, at most 200
};

/// An output whose largest element along the last axis names a class.
struct ClassLoss {
  int64_t rows = 0, agree = 0;  ///< rows of scores, and those where both have the same class first
  /// Rows whose first class leads the second by more than three standard deviations of the error of
  /// a score, in f32; and those of them that agree.
  int64_t clear = 0, clear_agree = 0;
};

struct OutputLoss {
  ValueLoss value;
  ClassLoss classes;  ///< rows = 0: the last axis has one element
};

struct QuantizationLoss {
  size_t samples = 0;
  std::vector<OutputLoss> outputs;
  std::vector<ValueLoss> layers;  ///< in the order of the graph
};

/// Runs both graphs on this CPU; the integer graph gives the accelerator's bits.
/// requires: `model.prepared`. errors: of the compiler, Interrupted.
Result<QuantizationLoss> quantization_loss(const compile::QuantizedModel& model,
                                           const compile::Samples& samples,
                                           const compile::CompileOptions& options);

}  // namespace tilewright::driver
