#include "tilewright/accel/gemmini/work.h"

#include <fmt/format.h>

#include <cmath>

namespace tilewright::gemmini {
namespace {

tl::unexpected<Error> not_allowed(std::string what, std::string why = {}) {
  return fail(ErrorKind::Invalid, std::move(what), std::move(why));
}

Status check_scale(float scale) {
  if (std::isfinite(scale)) return {};
  return not_allowed(fmt::format("the scale is {}", scale));
}

}  // namespace

DramSpan dram_span(uint64_t dram, uint64_t stride, int64_t rows, int64_t row_bytes) {
  // 2^40 bytes are all there is: more would only wrap around.
  constexpr uint64_t kFar = uint64_t{1} << 56;
  const uint64_t last = static_cast<uint64_t>(rows - 1);
  if (dram > kFar || (last > 0 && stride > kFar / last)) return {dram, kFar << 1};
  return {dram, dram + last * stride + static_cast<uint64_t>(row_bytes)};
}

Result<LocalRows> Context::rows_of(const Block& block, int64_t stride, int64_t most_cols,
                                   std::string_view what) const {
  const int64_t dim = config_.dim, row = block.at.row();
  if (block.rows < 1 || block.rows > dim || block.cols < 1 || block.cols > most_cols)
    return not_allowed(fmt::format("{} has {} rows of {} columns, but must have 1 to {} of 1 to {}",
                                   what, block.rows, block.cols, dim, most_cols));
  // Bits 29 and 30 are flags of both memories.
  if (!block.at.in_acc() && row != block.at.bits)
    return not_allowed(fmt::format("{} has flags, but is in the scratchpad", what));
  return LocalRows{block.at.in_acc(), row, stride, 0, block.rows, block.cols};
}

Result<std::optional<LocalRows>> Context::operand(const Block& block, int64_t stride,
                                                  std::string_view what) const {
  if (block.at.none()) return std::optional<LocalRows>();
  if (block.at.in_acc())
    return not_allowed(fmt::format("{} is in the accumulator", what),
                       "operands of a product come from the scratchpad");
  const LocalRows rows = TW_TRY(rows_of(block, stride, config_.dim, what));
  const int64_t last = rows.row + (rows.rows - 1) * stride;
  if (last >= config_.spad_rows())
    return not_allowed(
        fmt::format("{} reads row {} of a scratchpad of {}", what, last, config_.spad_rows()));
  return std::optional(rows);
}

Result<Work> Context::configure(const ConfigEx& c) {
  if (c.only_strides) {
    if (!ex_) return not_allowed("config_ex changes only strides, but nothing is configured");
    ex_->a_stride = c.a_stride, ex_->c_stride = c.c_stride;
    return Work{Nothing{}};
  }
  if (c.weights_stay && c.a_transposed && c.b_transposed)
    return not_allowed("both factors are transposed with weights that stay");
  if (!c.weights_stay && c.b_transposed && !c.a_transposed)
    return not_allowed("only B is transposed with sums that stay");
  if (c.shift > 31) return not_allowed(fmt::format("results are shifted by {}", c.shift));
  // What is held belongs to the dataflow, and weights were transposed as configured then.
  if (ex_ && (ex_->weights_stay != c.weights_stay || ex_->b_transposed != c.b_transposed))
    holds_ = false, preload_.reset();
  ex_ = c;
  return Work{Nothing{}};
}

Result<Work> Context::move_in(const Mvin& c) const {
  const auto& config = in_[c.which];
  if (!config) return not_allowed(fmt::format("mvin {} before its config_mvin", c.which));
  if (config->pixels > 1) return not_allowed("several pixels per row are not supported");
  TW_TRY_STATUS(check_scale(config->scale));
  const bool acc = c.to.at.in_acc();
  if (c.to.at.none()) return not_allowed("mvin goes nowhere");
  if (acc && c.to.at.whole()) return not_allowed("bit 29 is for what is read, not for mvin");
  MoveIn move;
  move.dram = c.dram;
  move.stride = config->stride;
  move.element_bytes = acc && !config->narrow ? 4 : 1;
  move.adds = acc && c.to.at.adds();
  move.scale = config->scale;
  move.to = TW_TRY(rows_of(c.to, 1, config_.most_columns(move.element_bytes), "mvin"));
  move.to.block_stride = config->block_stride;
  const int64_t blocks = (move.to.cols + config_.dim - 1) / config_.dim;
  if (blocks > 1 && move.to.block_stride < move.to.rows)
    return not_allowed(
        fmt::format("blocks of {} rows are {} rows apart", move.to.rows, move.to.block_stride));
  const int64_t last = move.to.row + (blocks - 1) * move.to.block_stride + move.to.rows - 1;
  const int64_t all = acc ? config_.acc_rows() : config_.spad_rows();
  if (last >= all)
    return not_allowed(fmt::format("mvin writes row {} of {} of the {}", last, all,
                                   acc ? "accumulator" : "scratchpad"));
  return Work{move};
}

Result<Work> Context::move_out(const Mvout& c) const {
  if (!out_) return not_allowed("mvout before its config_mvout");
  TW_TRY_STATUS(check_scale(out_->scale));
  if (c.from.at.none()) return not_allowed("mvout reads nothing");
  const bool acc = c.from.at.in_acc();
  if (acc && c.from.at.adds()) return not_allowed("bit 30 is for what is written, not for mvout");
  MoveOut move;
  move.dram = c.dram;
  move.stride = out_->stride;
  move.element_bytes = acc && c.from.at.whole() ? 4 : 1;
  move.activation = out_->activation;
  move.scale = out_->scale;
  move.from = TW_TRY(rows_of(c.from, 1, config_.dim, "mvout"));
  const int64_t last = move.from.row + move.from.rows - 1;
  const int64_t all = acc ? config_.acc_rows() : config_.spad_rows();
  if (last >= all)
    return not_allowed(fmt::format("mvout reads row {} of {} of the {}", last, all,
                                   acc ? "accumulator" : "scratchpad"));
  return Work{move};
}

Result<Work> Context::multiply(const Compute& c) {
  if (!ex_) return not_allowed("compute before config_ex");
  if (!preload_) return not_allowed("compute before preload");
  if (!c.preloaded && !holds_) return not_allowed("nothing is held yet");
  if (c.a.at.none()) return not_allowed("A is undefined without an address");
  Multiply product;
  product.weights_stay = ex_->weights_stay;
  product.loads = c.preloaded;
  const char *const held = ex_->weights_stay ? "B" : "D", *const other = held[0] == 'B' ? "D" : "B";
  if (c.preloaded) product.held = TW_TRY(operand(preload_->held, 1, held));
  // The rows and columns of a transposed operand are those of the matrix, not of what is stored.
  const auto stored = [](Block block, bool transposed) {
    if (transposed) std::swap(block.rows, block.cols);
    return block;
  };
  const bool b_transposed = !ex_->weights_stay && ex_->b_transposed;
  if (ex_->a_transposed && ex_->a_stride != 1)
    return not_allowed(fmt::format("A is transposed, but its rows are {} apart", ex_->a_stride));
  product.a = *TW_TRY(operand(stored(c.a, ex_->a_transposed), ex_->a_stride, "A"));
  product.other = TW_TRY(operand(stored(c.other, b_transposed), 1, other));
  product.a_transposed = ex_->a_transposed;
  product.held_transposed = ex_->weights_stay && ex_->b_transposed;
  product.other_transposed = b_transposed;
  product.activation = ex_->activation;
  product.shift = ex_->weights_stay ? 0 : ex_->shift;
  const Block& result = preload_->result;
  if (!result.at.none()) {
    const LocalRows rows = TW_TRY(rows_of(result, ex_->c_stride, config_.dim, "C"));
    const int64_t last = rows.row + (rows.rows - 1) * rows.stride;
    const int64_t all = rows.acc ? config_.acc_rows() : config_.spad_rows();
    if (rows.acc && result.at.whole())
      return not_allowed("bit 29 is for what is read, not for results");
    if (rows.rows > 1 && rows.stride == 0) return not_allowed("rows of C lie on each other");
    if (last >= all)
      return not_allowed(fmt::format("C is written to row {} of {} of the {}", last, all,
                                     rows.acc ? "accumulator" : "scratchpad"));
    product.result = rows;
    product.adds = rows.acc && result.at.adds();
  }
  holds_ = true;
  return Work{product};
}

Result<Work> Context::next(const Insn& insn) {
  if (const auto* c = std::get_if<ConfigEx>(&insn.op)) return configure(*c);
  if (const auto* c = std::get_if<ConfigMvin>(&insn.op)) in_[c->which] = *c;
  if (const auto* c = std::get_if<ConfigMvout>(&insn.op)) out_ = *c;
  if (const auto* c = std::get_if<Mvin>(&insn.op)) return move_in(*c);
  if (const auto* c = std::get_if<Mvout>(&insn.op)) return move_out(*c);
  if (const auto* c = std::get_if<Preload>(&insn.op)) preload_ = *c;
  if (const auto* c = std::get_if<Compute>(&insn.op)) return multiply(*c);
  return Work{Nothing{}};
}

}  // namespace tilewright::gemmini
