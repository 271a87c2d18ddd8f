// What comes from DDR and goes there: one LOAD or SAVE for each row.
#include <algorithm>

#include "tilewright/codegen/dpu/emitter.h"

namespace tilewright::dpu {

void GroupEmitter::load(int r, const Place& place) {
  const bool whole = place.slots == 0 && !place.whole_memory;
  if (whole && !reload_) return;
  auto [rows, cols] = needed(r);
  if (place.slots == 0) cols = {0, root(r).width};
  if (place.slots == 0 && rows.size() > 0) {
    const auto [at, fresh] = loaded_.insert({r, rows.begin});
    rows.begin = std::max(rows.begin, at->second);
    at->second = std::max(at->second, rows.end);
    (void)fresh;
  }
  int depth = 1000;
  for (size_t j = 0; j < group_.nodes.size(); ++j)
    for (const View& in : node(j).in)
      if (in.root == r) depth = std::min(depth, group_.depth[j] - 1);
  const Root& m = root(r);
  for (int64_t row = rows.begin; row < rows.end; ++row)
    for (int64_t c = cols.begin; c < cols.end; c += kMaxSteps) {
      const Range part{c, std::min(cols.end, c + kMaxSteps)};
      if (m.rows_of < 0) load_row(depth, r, row, part, place.groups, r, row, 0);
      // Rows side by side: each brings its share of the groups.
      const int64_t each = m.groups / m.folded;
      for (int64_t q = 0; m.rows_of >= 0 && q < m.folded; ++q)
        load_row(depth, r, row, part, {q * each, (q + 1) * each}, m.rows_of, row * m.folded + q,
                 m.rows_group - q * each);
    }
}

void GroupEmitter::load_row(int depth, int r, int64_t row, Range cols, Range groups, int source,
                            int64_t source_row, int64_t shift) {
  const Operand to = read_operand(r);
  const Root& m = root(source);
  const RowAt at = to.at(config_, row, cols.begin, groups.begin);
  const int64_t pixel = source_row * m.width + cols.begin;
  Load op;
  op.bank_id = at.bank_id;
  op.bank_addr = at.bank_addr;
  op.jump_read = narrow(m.groups * kLanes);
  op.jump_write = narrow(to.jump());
  op.length = narrow(cols.size());
  op.channel = narrow(groups.size() * kLanes);
  op.reg_id = static_cast<int>(plan_.ddr_reg[static_cast<size_t>(source)]);
  op.ddr_addr = narrow(plan_.ddr_addr[static_cast<size_t>(source)] +
                       (pixel * m.groups + groups.begin + shift) * config_.word_bytes());
  add(depth, op);
}

void GroupEmitter::zero(size_t j, Range rows) {
  const View& view = node(j).out;
  const Output to = write_operand(j);
  const Range cols = columns(j), range = channels(j);
  const size_t bytes =
      static_cast<size_t>(cols.size() * range.size() * config_.word_bytes() + kPmWordBytes - 1) /
      kPmWordBytes * kPmWordBytes;
  const size_t align = static_cast<size_t>(kPmWordBytes * config_.pe);
  if (code_.zeros < 0 || code_.zero_bytes < bytes) {
    code_.params.resize((code_.params.size() + align - 1) / align * align);
    code_.zeros = static_cast<int64_t>(code_.params.size());
    code_.zero_bytes = bytes;
    code_.params.resize(code_.params.size() + bytes);
  }
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const RowAt at = write_at(to, view, row, cols.begin, range.begin);
    Load op;
    op.bank_id = at.bank_id;
    op.bank_addr = at.bank_addr;
    op.jump_read = op.channel = narrow(range.size() * kLanes);
    op.jump_write = narrow(to.operand.jump() * column_step(to, view));
    op.length = narrow(cols.size());
    op.reg_id = static_cast<int>(Reg::Params);
    op.ddr_addr = narrow(code_.zeros);
    add(group_.depth[j], op);
  }
}

void GroupEmitter::fetch(size_t j, Range rows) {
  const View& view = node(j).out;
  const Root& m = root(node(j).in[0].root);
  const Output to = write_operand(j);
  const Range cols = columns(j), range = channels(j);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const RowAt at = write_at(to, view, row, cols.begin, range.begin);
    Load op;
    op.bank_id = at.bank_id;
    op.bank_addr = at.bank_addr;
    op.jump_read = narrow(m.groups * kLanes);
    op.jump_write = narrow(to.operand.jump());
    op.length = narrow(cols.size());
    op.channel = narrow(range.size() * kLanes);
    op.reg_id = static_cast<int>(Reg::Input);
    op.ddr_addr = narrow(m.input_addr + ((row * m.width + cols.begin) * m.groups + range.begin) *
                                            config_.word_bytes());
    add(group_.depth[j], op);
  }
}

void GroupEmitter::drain(size_t j, Range rows) {
  const View& view = node(j).out;
  const size_t r = static_cast<size_t>(view.root);
  const Output from = write_operand(j);
  const Range mine{view.group + channels(j).begin, view.group + channels(j).end};
  const bool has_home = plan_.home[r].memory >= 0;
  if (in_ddr(view.root) && plan_.ddr_addr[r] >= 0)
    save(j, rows, from, mine, plan_.ddr_reg[r], plan_.ddr_addr[r], 0, root(view.root).groups);
  for (const Store& store : lowered_.stores) {
    const bool is_home =
        in_ddr(view.root) && plan_.ddr_reg[r] == Reg::Output && plan_.ddr_addr[r] == store.addr;
    if (store.view.root != view.root || is_home) continue;
    const Range part{std::max(mine.begin, store.view.group),
                     std::min(mine.end, store.view.group + store.view.groups)};
    if (part.size() > 0)
      save(j, rows, from, part, Reg::Output, store.addr, store.view.group, store.view.groups);
  }
  if (has_home && from.local) copy_home(j, rows, from);
}

void GroupEmitter::save(size_t j, Range rows, const Output& from, Range part, Reg reg, int64_t base,
                        int64_t first, int64_t pitch) {
  const View& view = node(j).out;
  const Range cols = columns(j);
  const Root& m = root(view.root);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const RowAt at = write_at(from, view, row, cols.begin, part.begin - view.group);
    const int64_t pixel =
        (row * view.row_step + view.row) * m.width + cols.begin * view.col_step + view.col;
    Save op;
    op.bank_id = at.bank_id;
    op.bank_addr = at.bank_addr;
    op.jump_read = narrow(from.operand.jump() * column_step(from, view));
    op.jump_write = narrow(pitch * kLanes * view.col_step);
    op.length = narrow(cols.size());
    op.channel = narrow(part.size() * kLanes);
    op.reg_id = static_cast<int>(reg);
    op.ddr_addr = narrow(base + (pixel * pitch + part.begin - first) * config_.word_bytes());
    add(group_.depth[j] + 1, op);
  }
}

void GroupEmitter::copy_home(size_t j, Range rows, const Output& from) {
  const View& view = node(j).out;
  const Range cols = columns(j), range = channels(j);
  Output home;
  home.operand.place = &plan_.home[static_cast<size_t>(view.root)];
  home.operand.addr = home.operand.place->addr;
  PoolInit init;
  init.type = kCopy;
  init.jump_read = narrow(from.operand.jump());
  init.jump_read_endl = narrow(from.operand.endl());
  init.jump_write = narrow(home.operand.jump() * view.col_step);
  init.jump_write_endl = narrow(home.operand.endl());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const RowAt x = write_at(from, view, row, cols.begin, range.begin);
    const RowAt y = write_at(home, view, row, cols.begin, range.begin);
    const Pool op{0,
                  0,
                  0,
                  0,
                  x.bank_id,
                  x.bank_addr,
                  y.bank_id,
                  y.bank_addr,
                  narrow(cols.size()),
                  narrow(range.size()),
                  1};
    add(group_.depth[j] + 1, op, init);
  }
}

}  // namespace tilewright::dpu
