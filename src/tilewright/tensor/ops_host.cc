#include "tilewright/tensor/op.h"

namespace tilewright::tensor {

void add_host_ops(std::vector<OpDef>&) {}

}  // namespace tilewright::tensor
