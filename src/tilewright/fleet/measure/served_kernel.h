// What a worker makes of the texts and numbers of a job, none of which it believes.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/fleet/jobs.h"
#include "tilewright/fleet/measure/measure_job.h"
#include "tilewright/measure/evaluator.h"
#include "tilewright/measure/task.h"

namespace tilewright::fleet {

/// What runs a kernel.
enum class ServedBy { Processor, Gpu, Runner };

/// The kernel as a task of this machine's processor, of a GPU, or of the processor behind a runner.
/// `triple`: of that one. errors: Parse; Device (its target is none that this device runs, with
/// what is missing).
Result<measure::Task> served_task(const MeasuredKernel& kernel, ServedBy by,
                                  const std::string& triple = {});

/// Bytes of all its parameters. errors: Unsupported (sizes known only at run time), Limit (more
/// than a worker has for a kernel).
Result<int64_t> operand_bytes(const Func& func);

/// A reading as an item's result: numbers that no measurement gives are `lost`.
ItemResult item_of(int item, const measure::Reading& reading);

/// Text of strangers, of a length and of characters that a store takes.
std::string shown(const std::string& text);

}  // namespace tilewright::fleet
