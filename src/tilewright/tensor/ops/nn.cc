#include "tilewright/tensor/fixed_point.h"
#include "tilewright/tensor/window.h"

namespace tilewright::tensor {

void add_nn_ops(std::vector<OpDef>& table) {
  add_conv_ops(table);
  add_phase_ops(table);
  add_window_move_ops(table);
  add_col2im_op(table);
  add_pool_ops(table);
  add_matmul_ops(table);
  add_integer_ops(table);
  add_fixed_point_ops(table);
}

}  // namespace tilewright::tensor
