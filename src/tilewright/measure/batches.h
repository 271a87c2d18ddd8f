// Judging batches of several tasks at the same time: where there are many devices.
//
// Example, with two devices: batches 1 and 2 are begun, of one task or of two. `wait` tells of 2 as
// soon as it is done, 3 is begun, `wait` tells of 1.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/measure/evaluator.h"
#include "tilewright/measure/task.h"

namespace tilewright::measure {

/// What became of a batch.
struct JudgedBatch {
  int64_t id = 0;
  std::vector<Reading> readings;  ///< one per candidate, in order
  double seconds = 0;             ///< that a device worked on it
};

/// For one thread at a time.
class BatchEvaluator {
 public:
  virtual ~BatchEvaluator() = default;
  /// How many batches are judged at the same time, as far as known.
  virtual int devices() const = 0;
  /// Begins to judge candidates of a task; its first batch is best the rules' schedule alone.
  /// Returns the number of the batch. What goes wrong is an outcome of its candidates.
  virtual int64_t begin(const Task& task, const std::vector<Candidate>& candidates) = 0;
  /// A batch that is done; absent if none is within `seconds`, or if the user interrupts.
  /// errors: those after which no batch will ever be done.
  virtual Result<std::optional<JudgedBatch>> wait(double seconds) = 0;
  /// Gives up what is begun: nobody will be told of it.
  virtual void cancel() = 0;
};

}  // namespace tilewright::measure
