// Instructions of a plan: for each tile its LOADs, CONVs, POOLs and ELEWs, and SAVEs, by stages.
//
// A 3x3 convolution on 56x56x64 whose maps stay on the chip is seven tiles of one CONV each. With
// its input in DDR each tile has eight LOADs before it, one for each row that is not there yet.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/dpu/emitter.h"

namespace tilewright::dpu {

void GroupEmitter::run() {
  const int64_t width = node(0).out.width;
  const int64_t strip = group_.columns == 0 ? width : group_.columns;
  bool first = true;
  for (const Range& pass : group_.channels) {
    pass_ = pass;
    const int weights = add_weights();
    for (int64_t c = 0; c < width; c += strip) {
      strip_ = {c, std::min(width, c + strip)};
      PassCode out;
      out.group = index_;
      out.weights = weights;
      reload_ = first;
      loaded_.clear();
      for (tile_ = 0; tile_ < tiles_.size(); ++tile_) out.tiles.push_back(one_tile());
      code_.passes.push_back(std::move(out));
      first = false;
    }
  }
}

int GroupEmitter::add_weights() {
  WeightPass pass;
  pass.addr = static_cast<int64_t>(code_.params.size());
  pass.group = index_;
  pass.single = true;
  block_at_.assign(group_.nodes.size(), {});
  bias_at_.assign(group_.nodes.size(), 0);
  for (size_t j = 0; j < group_.nodes.size(); ++j) {
    const Node& n = node(j);
    if (n.kind != NodeKind::Conv) continue;
    const Range range = channels(j);
    pass.single = pass.single && n.out.height == 1 && n.out.width == 1;
    for (const Block& block : n.blocks) {
      const Range part{std::max(block.out.begin, range.begin), std::min(block.out.end, range.end)};
      block_at_[j].push_back(pass.words);
      if (part.size() == 0) continue;
      const int64_t each = block.words_per_group;
      code_.params.append(block.words,
                          static_cast<size_t>((part.begin - block.out.begin) * each * kPmWordBytes),
                          static_cast<size_t>(part.size() * each * kPmWordBytes));
      pass.words += part.size() * each;
    }
    bias_at_[j] = pass.words;
    add_biases(n, range);
    pass.words += (range.size() + 3) / 4;
  }
  if (pass.words == 0) return -1;
  code_.weights.push_back(pass);
  return static_cast<int>(code_.weights.size()) - 1;
}

void GroupEmitter::add_biases(const Node& n, Range range) {
  for (int64_t lane = range.begin * kLanes; lane < range.end * kLanes; ++lane) {
    const uint32_t bits = static_cast<uint32_t>(n.bias[static_cast<size_t>(lane)]);
    for (int byte = 0; byte < 4; ++byte)
      code_.params.push_back(static_cast<char>(bits >> (8 * byte) & 0xff));
  }
  code_.params.resize((code_.params.size() + kPmWordBytes - 1) / kPmWordBytes * kPmWordBytes);
}

std::vector<std::vector<Step>> GroupEmitter::one_tile() {
  stages_.assign(
      static_cast<size_t>(*std::max_element(group_.depth.begin(), group_.depth.end())) + 2, {});
  for (const auto& [key, place] : group_.staged)
    if (!key.second) load(key.first, place);
  for (size_t j = 0; j < group_.nodes.size(); ++j) {
    const Range rows = tiles_[tile_].rows[j];
    if (rows.size() == 0) continue;
    switch (node(j).kind) {
      case NodeKind::Conv:
        conv(j, rows);
        break;
      case NodeKind::Pool:
        pool(j, rows);
        break;
      case NodeKind::Elew:
        elew(j, rows);
        break;
      case NodeKind::Zero:
        zero(j, rows);
        break;
      case NodeKind::Fetch:
        fetch(j, rows);
        break;
    }
    drain(j, rows);
  }
  return std::move(stages_);
}

std::pair<Range, Range> GroupEmitter::needed(int r) const {
  Range rows, cols;
  const auto join = [](Range& a, Range b, int64_t from, int64_t step) {
    if (b.size() == 0) return;
    b = {b.begin * step + from, (b.end - 1) * step + from + 1};
    a = a.size() == 0 ? b : Range{std::min(a.begin, b.begin), std::max(a.end, b.end)};
  };
  for (size_t j = 0; j < group_.nodes.size(); ++j)
    for (size_t k = 0; k < node(j).in.size(); ++k) {
      const View& in = node(j).in[k];
      if (in.root != r) continue;
      join(rows, input_rows(node(j), k, tiles_[tile_].rows[j]), in.row, in.row_step);
      join(cols, input_columns(node(j), k, columns(j)), in.col, in.col_step);
    }
  return {rows, cols};
}

Operand GroupEmitter::read_operand(int r) const {
  Operand operand;
  const Place* place = staged(r, false);
  if (place == nullptr && plan_.home[static_cast<size_t>(r)].memory < 0) place = staged(r, true);
  if (place == nullptr) place = &plan_.home[static_cast<size_t>(r)];
  operand.place = place;
  operand.addr = place->addr;
  operand.first_group = place->groups.begin;
  if (place->slots > 0) {
    const auto [rows, cols] = needed(r);
    operand.first_row = rows.begin;
    operand.first_column = cols.begin;
    operand.addr +=
        static_cast<int64_t>(tile_ % static_cast<size_t>(place->slots)) * place->slot_words;
  }
  return operand;
}

GroupEmitter::Output GroupEmitter::write_operand(size_t j) const {
  const View& view = node(j).out;
  Output out;
  const Place* place = staged(view.root, true);
  const bool home = plan_.home[static_cast<size_t>(view.root)].memory >= 0;
  // Without slots a staged map is one that is read in this group: in rows of the root.
  out.local = place != nullptr && place->slots > 0;
  if (place == nullptr || (home && !out.local)) place = &plan_.home[static_cast<size_t>(view.root)];
  out.operand.place = place;
  out.operand.addr = place->addr;
  if (!out.local) return out;
  out.operand.addr +=
      static_cast<int64_t>(tile_ % static_cast<size_t>(place->slots)) * place->slot_words;
  out.operand.first_row = tiles_[tile_].rows[j].begin;
  out.operand.first_column = columns(j).begin;
  out.operand.first_group = channels(j).begin;
  return out;
}

Result<EmittedCode> emit(const Lowered& lowered, const Config& config, const Plan& plan) {
  EmittedCode code;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    GroupEmitter(lowered, config, plan, g, code).run();
  if (code.params.size() >> 29 != 0 || plan.swap_bytes >> 29 != 0)
    return fail(ErrorKind::Capacity, "the network does not fit the DDR that instructions reach",
                fmt::format("{} bytes of weights and {} of feature maps; {} each",
                            code.params.size(), plan.swap_bytes, 1 << 29));
  return code;
}

}  // namespace tilewright::dpu
