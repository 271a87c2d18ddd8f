// One function per step kind; `apply` in step.h chooses among them.
#pragma once

#include "tilewright/schedule/step.h"

namespace tilewright::schedule {

Result<Func> run(const Split& step, const Func& func);
Result<Func> run(const Fuse& step, const Func& func);
Result<Func> run(const Reorder& step, const Func& func);
Result<Func> run(const Cut& step, const Func& func);
Result<Func> run(const ComputeAt& step, const Func& func);
Result<Func> run(const ReverseComputeAt& step, const Func& func);
Result<Func> run(const Inline& step, const Func& func);
Result<Func> run(const CacheRead& step, const Func& func);
Result<Func> run(const CacheWrite& step, const Func& func);
Result<Func> run(const Reindex& step, const Func& func);
Result<Func> run(const Merge& step, const Func& func);
Result<Func> run(const Divide& step, const Func& func);
Result<Func> run(const Slide& step, const Func& func);
Result<Func> run(const RFactor& step, const Func& func);
Result<Func> run(const SetScope& step, const Func& func);
Result<Func> run(const Layout& step, const Func& func);
Result<Func> run(const Pad& step, const Func& func);
Result<Func> run(const Inplace& step, const Func& func);
Result<Func> run(const Order& step, const Func& func);
Result<Func> run(const Parallel& step, const Func& func);
Result<Func> run(const Vectorize& step, const Func& func);
Result<Func> run(const Unroll& step, const Func& func);
Result<Func> run(const SetMark& step, const Func& func);
Result<Func> run(const Bind& step, const Func& func);
Result<Func> run(const Spread& step, const Func& func);
Result<Func> run(const Pipeline& step, const Func& func);
Result<Func> run(const Tensorize& step, const Func& func);
Result<Func> run(const FpgaBuffer& step, const Func& func);
Result<Func> run(const Dataflow& step, const Func& func);
Result<Func> run(const Partition& step, const Func& func);

}  // namespace tilewright::schedule
