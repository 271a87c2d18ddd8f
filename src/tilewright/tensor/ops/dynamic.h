// Operators whose extents the run decides, in domain `tilewright`: DynamicShape, DynamicSlice,
// DynamicTopK, DynamicGather, DynamicConcat, DynamicExpand, DynamicRange, DynamicReshape are ONNX's
// Shape, Slice, ... with their attributes and inputs, none of which need be known at compile time.
// DynamicSelect (condition, a, b) is one of two tensors, whose extents may differ. DynamicGather
// and CheckRange take one more input, a bool: where it is false, an index out of range is no error.
// PadToStatic makes a tensor of fixed extents of one that has not.
//
// The importer makes them (graph/onnx/importer_dynamic.cc), and knows their results better than a
// shape rule can: attribute `bound` is the first result's shape, an upper bound along attribute
// `dynamic_axis` (-1: none). Host functions run them (runtime/host_dynamic.cc).
#pragma once

#include <vector>

#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

void add_dynamic_ops(std::vector<OpDef>& table);

}  // namespace tilewright::tensor
