// CONV, POOL and ELEW: a tile of eight rows is one CONV for each block of weights and four POOLs of
// two rows.
#include <algorithm>

#include "tilewright/codegen/dpu/emitter.h"

namespace tilewright::dpu {

void GroupEmitter::conv(size_t j, Range rows) {
  const Node& n = node(j);
  const View &in = n.in[0], &view = n.out;
  const Window& w = n.window;
  const Operand from = read_operand(in.root);
  const Output to = write_operand(j);
  const Range cols = columns(j), range = channels(j);
  const Pads sides = pads(cols, w.kernel_w, w.stride_w, w.dilation_w, w.pad_left, in.width);
  const int64_t first_col = input_columns(n, 0, cols).begin;
  for (int64_t row = rows.begin; row < rows.end; row += kBanks) {
    const Range part{row, std::min(rows.end, row + kBanks)};
    const Pads ends = pads(part, w.kernel_h, w.stride_h, w.dilation_h, w.pad_top, in.height);
    const int64_t first_row = input_rows(n, 0, part).begin;
    for (size_t b = 0; b < n.blocks.size(); ++b) {
      const Block& block = n.blocks[b];
      const Range out{std::max(block.out.begin, range.begin), std::min(block.out.end, range.end)};
      if (out.size() == 0) continue;
      ConvInit init = n.conv;
      init.in_groups = narrow(block.in.size());
      init.jump_read = narrow(from.jump() * in.col_step);
      init.jump_read_endl = narrow(from.endl());
      init.jump_write = narrow(to.operand.jump() * column_step(to, view));
      init.jump_write_endl = narrow(to.operand.endl());
      const RowAt x = read_at(from, in, first_row, first_col, block.in.begin);
      const RowAt y = write_at(to, view, row, cols.begin, out.begin);
      Conv op;
      op.mode = n.formatted ? 1 : 0;
      op.pad_left = sides.before;
      op.pad_right = sides.after;
      op.pad_top = ends.before;
      op.pad_bottom = ends.after;
      op.bank_id_in = x.bank_id;
      op.bank_addr_in = x.bank_addr;
      op.bank_id_out = y.bank_id;
      op.bank_addr_out = y.bank_addr;
      op.bank_addr_weights = narrow(block_at_[j][b]);
      op.bank_addr_bias = narrow(4 * bias_at_[j] + out.begin - range.begin);
      op.length = narrow(cols.size());
      op.out_groups = narrow(out.size());
      op.valid_rows = narrow(part.size());
      add(group_.depth[j], op, init);
    }
  }
}

void GroupEmitter::pool(size_t j, Range rows) {
  const Node& n = node(j);
  const View &in = n.in[0], &view = n.out;
  const Window& w = n.window;
  const Operand from = read_operand(in.root);
  const Output to = write_operand(j);
  const Range cols = columns(j), range = channels(j);
  const bool moves = n.pool.type == kCopy || n.pool.type == kUpsample;
  Pads sides, ends;
  if (!moves) sides = pads(cols, w.kernel_w, w.stride_w, 1, w.pad_left, in.width);
  PoolInit init = n.pool;
  init.jump_read = narrow(from.jump() * in.col_step);
  init.jump_read_endl = narrow(from.endl());
  init.jump_write = narrow(to.operand.jump() * column_step(to, view));
  init.jump_write_endl = narrow(to.operand.endl());
  for (int64_t row = rows.begin, count = 0; row < rows.end; row += count) {
    count = pool_rows(n, row, rows.end);
    const Range part{row, row + count};
    if (!moves) ends = pads(part, w.kernel_h, w.stride_h, 1, w.pad_top, in.height);
    for (int64_t g = range.begin; g < range.end; g += kMaxGroups) {
      const RowAt x =
          read_at(from, in, input_rows(n, 0, part).begin, input_columns(n, 0, cols).begin, g);
      const RowAt y = write_at(to, view, row, cols.begin, g);
      const Pool op{sides.before,        ends.before,
                    sides.after,         ends.after,
                    x.bank_id,           x.bank_addr,
                    y.bank_id,           y.bank_addr,
                    narrow(cols.size()), narrow(std::min(kMaxGroups, range.end - g)),
                    narrow(count)};
      add(group_.depth[j], op, init);
    }
  }
}

void GroupEmitter::elew(size_t j, Range rows) {
  const Node& n = node(j);
  const View& a = n.in[0];
  const View& b = n.in.back();
  const Operand from_a = read_operand(a.root), from_b = read_operand(b.root);
  const Output to = write_operand(j);
  const Range cols = columns(j), range = channels(j);
  ElewInit init = n.elew;
  init.jump_read_a = narrow(from_a.jump() * a.col_step);
  init.jump_read_a_endl = narrow(from_a.endl());
  init.jump_read_b = init.num == 2 ? narrow(from_b.jump() * b.col_step) : 0;
  init.jump_read_b_endl = init.num == 2 ? narrow(from_b.endl()) : 0;
  init.jump_write = narrow(to.operand.jump() * column_step(to, n.out));
  init.jump_write_endl = narrow(to.operand.endl());
  for (int64_t row = rows.begin; row < rows.end; row += 2)
    for (int64_t g = range.begin; g < range.end; g += kMaxGroups) {
      const RowAt x = read_at(from_a, a, row, cols.begin, g);
      RowAt z = read_at(from_b, b, row, cols.begin, g);
      if (init.num == 1) z = {};
      const RowAt y = write_at(to, n.out, row, cols.begin, g);
      const Elew op{x.bank_id,
                    x.bank_addr,
                    z.bank_id,
                    z.bank_addr,
                    y.bank_id,
                    y.bank_addr,
                    narrow(cols.size()),
                    narrow(std::min(kMaxGroups, range.end - g)),
                    narrow(std::min<int64_t>(2, rows.end - row))};
      add(group_.depth[j], op, init);
    }
}

}  // namespace tilewright::dpu
