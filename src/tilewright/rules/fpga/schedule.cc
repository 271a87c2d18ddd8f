#include "tilewright/rules/fpga/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "tilewright/cost/sums/computation.h"
#include "tilewright/ir/walk.h"
#include "tilewright/schedule/access.h"
#include "tilewright/schedule/tree.h"

namespace tilewright::rules {
namespace {

using schedule::Names;
using schedule::Tree;

tl::unexpected<Error> no_schedule(const std::string& why) {
  return fail(ErrorKind::Unsupported, "no schedule for an FPGA is known for this program", why,
              "steps of your own: hls --trace FILE");
}

/// A program without the blocks that stand between the sum and what is computed of it, and the
/// steps that removed them.
struct Joined {
  Func func;
  schedule::Trace steps;
};

/// Whether a block that adds reads what block `id` makes: that is a copy, which stays.
bool feeds_sum(const Tree& tree, const schedule::Uses& uses, const Buffer& made) {
  const auto& readers = uses.readers(made);
  return std::any_of(readers.begin(), readers.end(), [&](schedule::Id reader) {
    const Store* store = schedule::single_store(tree.block(reader));
    return store != nullptr && store->combine == Combine::Add;
  });
}

/// The first block that can go; empty: there is none.
std::string block_between(const Func& func) {
  const Tree tree(func);
  const schedule::Uses uses(tree);
  for (const schedule::Id id : tree.blocks()) {
    const Store* store = schedule::single_store(tree.block(id));
    if (store == nullptr || store->combine != Combine::Set) continue;
    if (tree.param_of(store->buffer) != nullptr || uses.writers(store->buffer).size() != 1)
      continue;
    if (!feeds_sum(tree, uses, store->buffer)) return tree.block(id).name;
  }
  return "";
}

/// `c = a + b; y = max(c, 0)` becomes `y = max(a + b, 0)`.
Result<Joined> joined(const Func& func) {
  Joined out{func, {}};
  for (std::string block; !(block = block_between(out.func)).empty();) {
    const schedule::Trace step = {schedule::Inline{block}};
    out.func = TW_TRY(schedule::replay(out.func, step));
    out.steps.push_back(step[0]);
  }
  return out;
}

/// The program in parts.
struct Parts {
  struct {
    std::string name;
    Buffer result;
    std::vector<std::string> loops;  ///< outermost first
  } sum;
  std::string init;      ///< empty: the sum sets its result itself
  std::string consumer;  ///< reads the result; empty: the result is a parameter
  struct Operand {
    Buffer buffer;
    std::string copy;  ///< the block that makes it; empty: a parameter
  } image, weights;
};

/// The schedule of one program for one design.
class Writer {
 public:
  Writer(const Func& func, const cost::FpgaModel& model, const cost::FpgaDesign& design)
      : tree_(func), model_(model), design_(design) {}

  Result<schedule::Trace> run() {
    TW_TRY_STATUS(find_parts());
    TW_TRY_STATUS(round_up_channels());
    TW_TRY_STATUS(order_loops());
    place_result();
    place(parts_.image, design_.image_slots, stays(cost::FpgaStays::Image) ? image_at_ : tc_o_,
          image_banks());
    place(parts_.weights, design_.weight_slots,
          stays(cost::FpgaStays::Weights) ? weights_at_ : tc_o_, weight_banks());
    for (const std::string& loop : side_) trace_.push_back(schedule::Unroll{loop});
    trace_.push_back(schedule::SetMark{counted_, "ii", "1"});
    for (const auto& [buffer, banks] : banks_) trace_.push_back(schedule::Partition{buffer, banks});
    trace_.push_back(schedule::Dataflow{tiles_.front()});
    return std::move(trace_);
  }

 private:
  /// As in the model: with several tiles of input channels nothing does.
  bool stays(cost::FpgaStays what) const {
    return design_.stays == what && design_.tc >= model_.extent(model_.roles().inputs);
  }

  Status find_parts() {
    const cost::SpatialLayer& layer = model_.layer();
    const std::string& result = layer.tensors[cost::kSpatialResult].name;
    for (const auto id : tree_.blocks()) {
      const Block& block = tree_.block(id);
      const auto* store = block.body.as<Store>();
      if (store == nullptr)
        return no_schedule(fmt::format("block {} stores several values", block.name));
      if (store->buffer.name() != result) continue;
      if (store->combine == Combine::Add) {
        block_ = &block;
        parts_.sum = {block.name, store->buffer, {}};
        for (const auto loop : tree_.loops_around(id))
          parts_.sum.loops.push_back(tree_.loop(loop).var.name());
      } else {
        parts_.init = block.name;
      }
    }
    if (block_ == nullptr) return no_schedule("there is no block that adds to " + result);
    TW_TRY_STATUS(
        find_operand(layer.tensors[static_cast<size_t>(model_.roles().image)].name, parts_.image));
    TW_TRY_STATUS(find_operand(layer.tensors[static_cast<size_t>(model_.roles().weights)].name,
                               parts_.weights));
    return find_consumer();
  }

  /// The buffer that the sum reads for a tensor of the layer: its own, or that of a copy.
  Status find_operand(const std::string& tensor, Parts::Operand& operand) {
    std::vector<Buffer> read;
    walk(block_->body, {}, [&](const Expr& e) {
      walk(e, [&](const Expr& part) {
        if (const auto* load = part.as<Load>()) read.push_back(load->buffer);
      });
    });
    for (const Buffer& buffer : read) {
      if (buffer == parts_.sum.result) continue;
      std::string copy;
      bool copies = buffer.name() == tensor;
      for (const auto id : tree_.blocks()) {
        const auto* store = tree_.block(id).body.as<Store>();
        if (store == nullptr || !(store->buffer == buffer)) continue;
        if (!copy.empty())
          return no_schedule(fmt::format("{} is written by two blocks", buffer.name()));
        copy = tree_.block(id).name;
        walk(store->value, [&](const Expr& part) {
          const auto* load = part.as<Load>();
          copies |= load != nullptr && load->buffer.name() == tensor;
        });
      }
      if (copies) {
        operand = {buffer, copy};
        return {};
      }
    }
    return no_schedule("the sum does not read " + tensor + " directly");
  }

  Status find_consumer() {
    if (tree_.param_of(parts_.sum.result) != nullptr) return {};
    for (const auto id : tree_.blocks()) {
      const Block& block = tree_.block(id);
      if (&block == block_) continue;
      bool reads = false;
      walk(block.body.as<Store>()->value, [&](const Expr& part) {
        const auto* load = part.as<Load>();
        reads |= load != nullptr && load->buffer == parts_.sum.result;
      });
      if (!reads) continue;
      if (!parts_.consumer.empty()) return no_schedule("several blocks read the sum");
      parts_.consumer = block.name;
    }
    if (parts_.consumer.empty()) return no_schedule("nothing reads the sum");
    return {};
  }

  /// The loop around the sum that runs through a loop of the layer; empty for -1. Groups of
  /// channels are a loop of the layer, not of the program: it is split for them.
  Result<std::string> loop_of(int role) {
    if (role < 0) return std::string();
    const cost::SpatialLoop& wanted = model_.layer().loops[static_cast<size_t>(role)];
    for (const Iter& iter : block_->iters) {
      const auto* var = iter.binding.as<VarRef>();
      if (iter.var.name() != wanted.name || var == nullptr) continue;
      const std::string& loop = var->var.name();
      if (as_int(iter.extent) == wanted.extent) return loop;
      trace_.push_back(schedule::Split{loop, wanted.extent});
      std::replace(parts_.sum.loops.begin(), parts_.sum.loops.end(), loop, loop + ".o");
      return loop + ".i";
    }
    return no_schedule(fmt::format("the loop {} was split already", wanted.name));
  }

  /// Channels that their tiles do not divide go on with zeros up to a whole tile. For that, copies
  /// on the chip are made of whole tensors first; later they move to the tiles that use them.
  Status round_up_channels() {
    const cost::FpgaRoles& roles = model_.roles();
    std::vector<schedule::Pad> pads;
    for (const auto& [role, tile] :
         {std::pair(roles.outputs, design_.to), {roles.inputs, design_.tc}})
      if (role >= 0 && model_.extent(role) % tile != 0)
        pads.push_back(
            {parts_.sum.name, model_.layer().loops[static_cast<size_t>(role)].name, tile});
    rounded_up_ = !pads.empty();
    if (!rounded_up_) return {};
    if (parts_.consumer.empty()) hold_copy(parts_.sum.result.name(), "", design_.result_slots);
    for (const auto& [operand, slots] :
         {std::pair(&parts_.image, design_.image_slots), {&parts_.weights, design_.weight_slots}})
      if (operand->copy.empty()) hold_copy(operand->buffer.name(), "", slots);
    trace_.insert(trace_.end(), pads.begin(), pads.end());
    return {};
  }

  /// A copy of `buffer` on the chip: of what is used inside of `loop`, of all of it without one.
  void hold_copy(const std::string& buffer, const std::string& loop, int slots) {
    trace_.push_back(
        schedule::FpgaBuffer{parts_.sum.name, buffer, buffer + ".t", loop, "bram", slots});
  }

  /// Splits a loop into tiles, and a tile into what works side by side (0: nothing does).
  struct Levels {
    std::string tiles, inside, side;
  };
  Levels split(const std::string& loop, int64_t tile, int64_t side) {
    if (loop.empty()) return {};
    trace_.push_back(schedule::Split{loop, tile});
    if (side == 0) return {loop + ".o", loop + ".i", ""};
    trace_.push_back(schedule::Split{loop + ".i", side});
    return {loop + ".o", loop + ".i.o", loop + ".i.i"};
  }

  Status order_loops() {
    const cost::FpgaRoles& roles = model_.roles();
    const std::string o = TW_TRY(loop_of(roles.outputs)), c = TW_TRY(loop_of(roles.inputs));
    const std::string h = TW_TRY(loop_of(roles.rows)), w = TW_TRY(loop_of(roles.pixels));
    if (o.empty() || c.empty() || w.empty())
      return no_schedule("it has no loops of output channels, input channels and pixels");
    const Levels os = split(o, design_.to, design_.uo), cs = split(c, design_.tc, design_.ui);
    const Levels hs = split(h, design_.th, 0), ws = split(w, design_.tw, design_.us);
    Names taps, pixels;
    for (const std::string& loop : parts_.sum.loops)
      if (loop != o && loop != c && loop != h && loop != w)
        (reduces(loop) ? taps : tiles_).push_back(loop);
    if (!hs.tiles.empty()) pixels.push_back(hs.tiles);
    pixels.push_back(ws.tiles);
    const bool image_stays = stays(cost::FpgaStays::Image);
    // What stays is read outside of the loop that it does not depend on.
    if (image_stays) {
      tiles_.insert(tiles_.end(), pixels.begin(), pixels.end());
      image_at_ = tiles_.back();
      tiles_.push_back(os.tiles);
    } else {
      tiles_.push_back(os.tiles);
      weights_at_ = tiles_.back();
      tiles_.insert(tiles_.end(), pixels.begin(), pixels.end());
    }
    tc_o_ = cs.tiles;
    side_ = {os.side, cs.side, ws.side};
    Names all = tiles_;
    all.insert(all.end(), {cs.tiles, os.inside, cs.inside});
    all.insert(all.end(), taps.begin(), taps.end());
    // An addition waits for the one before to the same sum: few pixels need other sums between.
    if (design_.th * (design_.tw / design_.us) < model_.recurrence()) {
      std::erase(all, os.inside);
      all.push_back(os.inside);
    }
    if (!hs.inside.empty()) all.push_back(hs.inside);
    all.push_back(ws.inside);
    counted_ = ws.inside;
    all.insert(all.end(), side_.begin(), side_.end());
    trace_.push_back(schedule::Reorder{all});
    return {};
  }

  bool reduces(const std::string& loop) const {
    return std::any_of(block_->iters.begin(), block_->iters.end(), [&](const Iter& iter) {
      const auto* var = iter.binding.as<VarRef>();
      return var != nullptr && var->var.name() == loop && iter.kind == IterKind::Reduce;
    });
  }

  void place_result() {
    const std::string& last = tiles_.back();
    const std::string name = parts_.sum.result.name();
    std::string held = name;
    if (parts_.consumer.empty()) {
      held = name + ".t";
      if (rounded_up_)
        trace_.push_back(schedule::ReverseComputeAt{parts_.sum.name + ".wb", last});
      else
        hold_copy(name, last, design_.result_slots);
    }
    if (!parts_.init.empty()) trace_.push_back(schedule::ComputeAt{parts_.init, last});
    if (!parts_.consumer.empty()) {
      trace_.push_back(schedule::ReverseComputeAt{parts_.consumer, last});
      hold(name, design_.result_slots);
    }
    const cost::FpgaRoles& roles = model_.roles();
    banks_.push_back({held, banks_of(block_->body.as<Store>()->indices,
                                     {{roles.outputs, design_.uo}, {roles.pixels, design_.us}})});
  }

  void hold(const std::string& buffer, int slots) {
    trace_.push_back(schedule::SetScope{buffer, "fpga.bram"});
    trace_.push_back(schedule::SetMark{buffer, "slots", std::to_string(slots)});
  }

  void place(const Parts::Operand& operand, int slots, const std::string& loop,
             const std::string& banks) {
    std::string held = operand.buffer.name();
    if (operand.copy.empty()) {
      held += ".t";
      if (rounded_up_)
        trace_.push_back(schedule::ComputeAt{held, loop});
      else
        hold_copy(operand.buffer.name(), loop, slots);
    } else {
      trace_.push_back(schedule::ComputeAt{operand.copy, loop});
      hold(operand.buffer.name(), slots);
    }
    banks_.push_back({held, banks});
  }

  /// `c4_c1`: an axis has as many banks as elements along it are used side by side.
  std::string banks_of(const std::vector<Expr>& indices,
                       const std::vector<std::pair<int, int64_t>>& sides) const {
    std::vector<std::string> parts;
    for (const Expr& index : indices) {
      int64_t banks = 1;
      for (const auto& [role, side] : sides)
        for (const Iter& iter : block_->iters)
          if (iter.var.name() == model_.layer().loops[static_cast<size_t>(role)].name &&
              uses(index, iter.var))
            banks = std::max(banks, side);
      parts.push_back(fmt::format("c{}", banks));
    }
    return fmt::format("{}", fmt::join(parts, "_"));
  }
  std::vector<Expr> indices_of(const Buffer& buffer) const {
    std::vector<Expr> indices;
    walk(block_->body.as<Store>()->value, [&](const Expr& part) {
      const auto* load = part.as<Load>();
      if (load != nullptr && load->buffer == buffer) indices = load->indices;
    });
    return indices;
  }
  std::string image_banks() const {
    const cost::FpgaRoles& roles = model_.roles();
    return banks_of(indices_of(parts_.image.buffer),
                    {{roles.inputs, design_.ui}, {roles.pixels, design_.us}});
  }
  std::string weight_banks() const {
    const cost::FpgaRoles& roles = model_.roles();
    return banks_of(indices_of(parts_.weights.buffer),
                    {{roles.outputs, design_.uo}, {roles.inputs, design_.ui}});
  }

  const Tree tree_;
  const cost::FpgaModel& model_;
  const cost::FpgaDesign& design_;
  const Block* block_ = nullptr;
  Parts parts_;
  schedule::Trace trace_;
  Names tiles_, side_;
  bool rounded_up_ = false;  ///< channels are
  std::string tc_o_, image_at_, weights_at_, counted_;
  std::vector<std::pair<std::string, std::string>> banks_;  ///< of buffers, once they are there
};

}  // namespace

Result<schedule::Trace> fpga_trace(const Func& func, const cost::FpgaModel& model,
                                   const cost::FpgaDesign& design) {
  Joined whole = TW_TRY(joined(func));
  const schedule::Trace steps = TW_TRY(Writer(whole.func, model, design).run());
  whole.steps.insert(whole.steps.end(), steps.begin(), steps.end());
  return std::move(whole.steps);
}

Result<cost::FpgaModel> steps_model(const Func& func, const hw::FpgaDevice& device,
                                    hw::FpgaPath path) {
  const cost::Computations found = cost::computations_of(func);
  if (found.sums.size() != 1)
    return no_schedule(fmt::format("it has {} sums of products, not one", found.sums.size()));
  cost::FpgaOptions options;
  options.dtype = found.sums[0].dtypes.front();
  options.path = path;
  options.as_written = true;
  options.result_bytes = written_bytes(func);
  return cost::FpgaModel::create(device, TW_TRY(cost::layer_of(found.sums[0])), options);
}

}  // namespace tilewright::rules
