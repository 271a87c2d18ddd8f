// The schedule of a contraction in register tiles on a GPU; rules/gpu/tile_choice.cc chooses sizes.
//
//   C[m, n] += A[m, k] * B[k, n], 16x16 threads with 4x4 results each, 16 steps of k at a time
//   =>
//   for m.o, n.o  blocks: 64x64 results each
//     for k.o     64x16 of A and 16x64 of B copied to shared memory, by all threads together
//       for threads y, x { for k.i in 16 { for each of 4x4 results, in registers { C += A * B } } }
//
// The functions of Tiler are in the order of its steps: loops are split and reordered, initial
// values and readers move into the block, operands get copies in shared memory, the work on them is
// divided among threads, loops are bound, and copies run ahead (`pipeline`).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tilewright/arith/bounds.h"
#include "tilewright/ir/walk.h"
#include "tilewright/rules/gpu/byte_dot.h"
#include "tilewright/rules/gpu/rule.h"
#include "tilewright/rules/gpu/shared_layout.h"

namespace tilewright::rules {
namespace {

constexpr const char* kThreadAxes[] = {"thread.x", "thread.y", "thread.z"};
constexpr const char* kBlockAxes[] = {"block.x", "block.y", "block.z"};
/// The widest access of a thread.
constexpr int64_t kVectorBytes = 16;
/// Updates of one thread that are written out between two tests of a loop, at most.
constexpr int64_t kUnrolled = 576;

/// Whether threads have been given the loops around `block`: a rule has taken it.
bool has_threads(const Func& func, const std::string& block) {
  bool found = false;
  walk(func.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (loop == nullptr || loop->kind != ForKind::Bind) return;
    walk(loop->body, [&](const Stmt& inner) {
      const auto* inside = inner.as<Block>();
      found |= inside != nullptr && inside->name == block;
    });
  });
  return found;
}

/// Schedules one reduction; the steps are in the order of the functions.
class Tiler {
 public:
  Tiler(Draft& draft, std::string name, const GpuTile& tile, std::string inside)
      : draft_(draft), name_(std::move(name)), tile_(tile), inside_loop_(std::move(inside)) {}

  bool run() {
    return split_loops() && place_results() && stage_factors() && share_out_results() && bind() &&
           pipeline();
  }

 private:
  bool attempt(schedule::Step step) { return draft_.attempt(std::move(step)); }

  bool split_loops() {
    if (tile_.group > 0) {
      if (!attempt(schedule::Split{tile_.groups, tile_.group})) return false;
      blocks_.push_back(tile_.groups + ".o");
    }
    for (const GpuAxis& axis : tile_.axes) {
      std::string inner = axis.loop;
      if (inner.empty()) continue;
      if (axis.tile() < axis.extent) {
        if (!attempt(schedule::Split{axis.loop, axis.tile()})) return false;
        blocks_.push_back(axis.loop + ".o");
        inner = axis.loop + ".i";
      } else if (axis.tile() == 1) {
        blocks_.push_back(axis.loop);
        continue;
      }
      Parts parts{&threads_, &each_};
      if (!split_axis(axis, inner, parts)) return false;
      if (!parts.vector.empty()) vectors_.push_back(parts.vector);
    }
    for (size_t i = 0; i < tile_.reduces.size(); ++i) {
      const std::string& loop = tile_.reduces[i];
      if (tile_.steps[i] >= tile_.extents[i]) {
        inside_.push_back(loop);
      } else if (tile_.steps[i] == 1) {
        rounds_.push_back(loop);
      } else {
        if (!attempt(schedule::Split{loop, tile_.steps[i]})) return false;
        rounds_.push_back(loop + ".o");
        inside_.push_back(loop + ".i");
      }
    }
    schedule::Names order;
    for (const auto* part : {&blocks_, &rounds_, &threads_, &inside_, &each_})
      order.insert(order.end(), part->begin(), part->end());
    if (!tile_.word.empty()) order.push_back(tile_.word);
    return !place().empty() && (order.size() < 2 || attempt(schedule::Reorder{order}));
  }

  /// The innermost loop around a tile; empty if there is none.
  std::string place() const { return blocks_.empty() ? inside_loop_ : blocks_.back(); }

  /// What a loop over a tile's elements becomes: where to put the loop over threads and those over
  /// a thread's elements; the innermost of these, if its elements lie side by side.
  struct Parts {
    schedule::Names *threads, *each;
    std::string vector;
  };

  bool split_axis(const GpuAxis& axis, std::string loop, Parts& parts) {
    if (axis.threads == 1 || axis.each == 1) {
      (axis.threads > 1 ? parts.threads : parts.each)->push_back(loop);
      return true;
    }
    const int64_t group = axis.threads * axis.vector;
    if (axis.each > axis.vector) {
      if (!attempt(schedule::Split{loop, group})) return false;
      parts.each->push_back(loop + ".o");
      loop += ".i";
    }
    if (axis.vector > 1) {
      if (!attempt(schedule::Split{loop, axis.vector})) return false;
      parts.vector = loop + ".i";
      parts.each->push_back(parts.vector);
      loop += ".o";
    }
    parts.threads->push_back(loop);
    return true;
  }

  /// The result lives in registers: its initial values and its readers come into the block's loops.
  /// Where a reader cannot (it reads several results for one of its own), a copy of the result goes
  /// to memory.
  bool place_results() {
    const Draft::Mark before = draft_.mark();
    if (readers_come_in()) return true;
    draft_.revert(before);
    return inside_loop_.empty() && is_alone() &&
           attempt(schedule::CacheWrite{name_, name_ + ".acc", ""}) && readers_come_in();
  }

  /// Whether all loops around the sum are its own: the host goes through none of them.
  bool is_alone() const {
    const size_t own = blocks_.size() + rounds_.size() + threads_.size() + inside_.size() +
                       each_.size() + (tile_.word.empty() ? 0 : 1);
    return draft_.nest_of(name_).names.size() == own;
  }

  bool readers_come_in() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    const Buffer result = sum->store->buffer;
    readers_.clear();
    for (const BlockFacts* reader : readers(blocks, result)) readers_.push_back(reader->name);
    if (!attempt(schedule::ComputeAt{name_ + ".init", place()})) return false;
    for (const std::string& reader : readers_)
      if (!attempt(schedule::ReverseComputeAt{reader, place()})) return false;
    return attempt(schedule::SetScope{result.name(), "local"});
  }

  /// What a round reads of each factor, in shared memory: a block that pads is computed there,
  /// anything else is copied.
  bool stage_factors() {
    std::vector<Buffer> factors;
    const std::vector<BlockFacts> before = draft_.blocks();
    for (const Load& load : find_block(before, name_)->loads)
      if (std::find(factors.begin(), factors.end(), load.buffer) == factors.end())
        factors.push_back(load.buffer);
    for (const Buffer& factor : factors) {
      if (factor.scope() == "shared") continue;
      const std::string round = round_of(factor);
      std::string staged;
      const std::vector<BlockFacts> blocks = draft_.blocks();
      for (const BlockFacts& b : blocks)
        if (b.kind == BlockFacts::Kind::Injective && b.store->buffer == factor &&
            readers(blocks, factor).size() == 1 &&
            !(inside_loop_.empty() && has_threads(draft_.func(), b.name)))
          staged = b.name;
      if (!staged.empty()) {
        if (!attempt(schedule::ComputeAt{staged, round}) ||
            !attempt(schedule::SetScope{factor.name(), "shared"}))
          return false;
      } else {
        staged = factor.name() + ".shared";
        if (!attempt(schedule::CacheRead{name_, factor.name(), staged, round}) ||
            !attempt(schedule::SetScope{staged, "shared"}))
          return false;
      }
      if (!side_by_side(staged, round)) return false;
      if (tile_.depth > 1) attempt(schedule::SetMark{staged, "async", "1"});
      copies_.emplace_back(staged, round);
    }
    return true;
  }

  /// The loop in which `factor` is copied: inside a larger kernel, what all tiles read is copied
  /// once.
  std::string round_of(const Buffer& factor) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    schedule::Names loops = blocks_;
    loops.insert(loops.end(), rounds_.begin(), rounds_.end());
    const auto moves = [&](const std::string& loop) {
      for (const Load& load : sum->loads)
        for (const Iter& iter : sum->block->iters)
          if (load.buffer == factor && mentions(load, iter.var))
            for (const Var& var : free_vars(iter.binding))
              if (var.name() == loop) return true;
      return false;
    };
    if (!inside_loop_.empty() && std::none_of(loops.begin(), loops.end(), moves))
      return inside_loop_;
    return rounds_.empty() ? place() : rounds_.back();
  }

  /// Elements that a thread uses together get to lie side by side in the copy.
  bool side_by_side(const std::string& copy, const std::string& round) {
    const Buffer buffer = find_block(draft_.blocks(), copy)->store->buffer;
    const schedule::Names threads(threads_.rbegin(), threads_.rend());
    const std::optional<size_t> words = words_of(buffer);
    if (!tile_.word.empty() && (!words || buffer.rank() < 2)) return false;
    StagedRows rows = rows_of(
        draft_, {name_, copy, round, threads, thread_counts(), vectors_, kVectorBytes, words});
    if (words && !rows.along) rows.along = buffer.rank() - (*words + 1 == buffer.rank() ? 2 : 1);
    if (!rows.along) return rows.pad == 0 || pad(buffer, rows.pad);
    schedule::Names from, to;
    for (size_t axis = 0; axis < buffer.rank(); ++axis) {
      from.push_back(fmt::format("a{}", axis));
      if (axis != *rows.along)
        to.push_back(words == axis ? fmt::format("a{}/{}", axis, kWordTerms) : from.back());
    }
    to.push_back(
        words ? fmt::format("{} * {} + a{} % {}", from[*rows.along], kWordTerms, *words, kWordTerms)
              : from[*rows.along]);
    const std::string map = fmt::format("[{}] -> [{}]", fmt::join(from, ", "), fmt::join(to, ", "));
    if (from != to && !attempt(schedule::Layout{buffer.name(), map})) return false;
    return rows.pad == 0 || pad(buffer, rows.pad * (words ? kWordTerms : 1));
  }

  bool pad(const Buffer& buffer, int64_t elements) {
    return attempt(schedule::SetMark{buffer.name(), "pad", fmt::format("{}", elements)});
  }

  /// The axis of a copy along which the sum reads words.
  std::optional<size_t> words_of(const Buffer& copy) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* sum = find_block(blocks, name_);
    for (const Load& load : sum->loads)
      for (const Iter& iter : sum->block->iters)
        if (load.buffer == copy && !tile_.word.empty() && sum->loop_of(iter.var) == tile_.word)
          return word_axis(load, iter.var);
    return std::nullopt;
  }

  /// Threads of the axes with any, innermost axis first: x, y, z.
  std::vector<int64_t> thread_counts() const {
    std::vector<int64_t> counts;
    for (size_t i = tile_.axes.size(); i-- > 0;)
      if (tile_.axes[i].threads > 1) counts.push_back(tile_.axes[i].threads);
    return counts;
  }

  /// Initial values and readers are shared out as the sum is: a thread finds its own elements.
  bool share_out_results() {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* init = find_block(blocks, name_ + ".init");
    std::vector<std::pair<const BlockFacts*, std::vector<Expr>>> users = {
        {init, init->store->indices}};
    for (const std::string& reader : readers_) {
      const BlockFacts* facts = find_block(blocks, reader);
      for (const Load& load : facts->loads)
        if (load.buffer == init->store->buffer) users.emplace_back(facts, load.indices);
      if (users.back().first != facts) return false;
    }
    // Facts are stale after the first step.
    std::vector<std::vector<std::string>> loops;
    for (const auto& [facts, indices] : users) {
      loops.emplace_back();
      for (const Expr& index : indices) {
        const auto* iter = index.as<VarRef>();
        loops.back().push_back(iter ? facts->loop_of(iter->var) : std::string());
      }
    }
    std::set<std::string> shared;
    for (size_t i = 0; i < users.size(); ++i)
      if (shared.insert(users[i].first->name).second && !share_out(loops[i])) return false;
    for (const auto& [copy, round] : copies_)
      if (!share_out_copy(copy, round)) return false;
    return true;
  }

  /// `loops`: of a nest inside the block's loops, by axis of the result.
  bool share_out(const std::vector<std::string>& loops) {
    schedule::Names inner, threads, vectors;
    for (size_t a = 0; a < tile_.axes.size() && a < loops.size(); ++a) {
      if (tile_.axes[a].tile() == 1) continue;
      Parts parts{&threads, &inner};
      if (loops[a].empty() || !split_axis(tile_.axes[a], loops[a], parts)) return false;
      if (!parts.vector.empty()) vectors.push_back(parts.vector);
    }
    // Elements side by side are written together: those of the last axis with any.
    if (!vectors.empty() && inner.back() == vectors.back()) {
      inner.pop_back();
      vectors = {vectors.back()};
    } else {
      vectors.clear();
    }
    schedule::Names order = threads;
    order.insert(order.end(), inner.begin(), inner.end());
    order.insert(order.end(), vectors.begin(), vectors.end());
    if (order.size() > 1 && !attempt(schedule::Reorder{order})) return false;
    if (!bind_threads(draft_, threads) || !unroll(inner)) return false;
    return vectors.empty() || attempt(schedule::Vectorize{vectors[0]}) || unroll(vectors);
  }

  bool unroll(const schedule::Names& loops) {
    for (const std::string& loop : loops) attempt(schedule::Unroll{loop});
    return true;
  }

  /// All threads copy neighbouring elements, in as many turns as it takes.
  bool share_out_copy(const std::string& block, const std::string& round) {
    const LoopNest loops = draft_.nest_inside(block, round);
    schedule::Names nest = loops.names;
    if (nest.empty()) return false;
    std::string vector;
    if (!tile_.word.empty()) {
      if (!bytes_inside(block, loops, nest, vector)) return false;
    } else if (const int64_t lanes = copied_at_once(block, round); lanes > 1) {
      if (!attempt(schedule::Split{nest.back(), lanes})) return false;
      vector = nest.back() + ".i";
      nest.back() += ".o";
    }
    std::string all = nest[0];
    for (size_t i = 1; i < nest.size(); ++i) {
      if (!attempt(schedule::Fuse{all, nest[i]})) return false;
      all += "*" + nest[i];
    }
    schedule::Spread spread{all, {}, {}};
    const std::vector<int64_t> counts = thread_counts();
    for (size_t i = counts.size(); i-- > 0;) {
      spread.axes.push_back(kThreadAxes[i]);
      spread.extents.push_back(counts[i]);
    }
    return attempt(spread) && (vector.empty() || attempt(schedule::Vectorize{vector}));
  }

  /// Takes the loop over the bytes of a word out of `nest` and puts it inside, as `vector`: bytes
  /// of a word are written together.
  bool bytes_inside(const std::string& block, const LoopNest& loops, schedule::Names& nest,
                    std::string& vector) {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* copy = find_block(blocks, block);
    for (const auto& [term, step] : arith::as_affine(copy->store->indices.back()).terms) {
      const auto* mod = term.as<Binary>();
      const auto* iter = (mod && mod->op == BinaryOp::Mod ? mod->a : term).as<VarRef>();
      if (step == 1 && iter != nullptr) vector = copy->loop_of(iter->var);
    }
    const auto at = std::find(nest.begin(), nest.end(), vector);
    if (at == nest.end()) return false;
    const auto place = static_cast<size_t>(at - nest.begin());
    nest.erase(at);
    if (loops.extents[place] != kWordTerms) {
      if (!attempt(schedule::Split{vector, kWordTerms})) return false;
      nest.insert(nest.begin() + static_cast<int64_t>(place), vector + ".o");
      vector += ".i";
    }
    schedule::Names order = nest;
    order.push_back(vector);
    return !nest.empty() && attempt(schedule::Reorder{order});
  }

  /// Elements next to each other that a thread can copy by one access: rows of the source and of
  /// the copy are whole vectors, and nothing is tested along them.
  int64_t copied_at_once(const std::string& block, const std::string& round) const {
    const std::vector<BlockFacts> blocks = draft_.blocks();
    const BlockFacts* facts = find_block(blocks, block);
    const auto* from = facts->store->value.as<Load>();
    const LoopNest nest = draft_.nest_inside(block, round);
    if (from == nullptr || from->indices.empty()) return 1;
    const auto* last = from->indices.back().as<VarRef>();
    const auto row = as_int(from->buffer.shape().back());
    const auto* to = facts->store->indices.back().as<VarRef>();
    if (last == nullptr || !row || facts->loop_of(last->var) != nest.names.back()) return 1;
    if (to == nullptr || !(to->var == last->var)) return 1;
    const Expr& guard = facts->block->guard;
    for (const Var& var : guard ? free_vars(guard) : std::vector<Var>())
      if (var.name() == nest.names.back()) return 1;
    const int64_t lanes = kVectorBytes / std::max<int64_t>(1, bit_width(from->buffer.dtype()) / 8);
    const arith::Affine place = arith::as_affine(facts->iter(last->var)->binding);
    bool whole = place.constant % lanes == 0 && *row % lanes == 0;
    for (const auto& [term, step] : place.terms) whole = whole && (step % lanes == 0 || step == 1);
    return whole && nest.extents.back() % lanes == 0 ? lanes : 1;
  }

  bool bind() {
    return bind_threads(draft_, threads_) && unroll(each_) && unroll_terms() &&
           (!inside_loop_.empty() || bind_blocks(draft_, blocks_));
  }

  /// Writes out so many terms that loads of later ones hide behind updates of earlier ones.
  bool unroll_terms() {
    int64_t updates = 1;
    for (const GpuAxis& axis : tile_.axes) updates *= axis.each;
    const LoopNest nest = draft_.nest_of(name_);
    for (size_t i = inside_.size(); i-- > 0;) {
      const auto at = std::find(nest.names.begin(), nest.names.end(), inside_[i]);
      if (at == nest.names.end()) return true;
      const int64_t extent =
          std::max<int64_t>(1, nest.extents[static_cast<size_t>(at - nest.names.begin())]);
      if (updates * extent > kUnrolled) {
        int64_t some = kUnrolled / updates;
        while (some > 1 && extent % some != 0) --some;
        if (some > 1 && attempt(schedule::Split{inside_[i], some}))
          attempt(schedule::Unroll{inside_[i] + ".i"});
        return true;
      }
      updates *= extent;
      attempt(schedule::Unroll{inside_[i]});
    }
    return true;
  }

  /// Copies run ahead where what they fill moves along the innermost loop over rounds, or over
  /// tiles that follow each other.
  bool pipeline() {
    schedule::Names loops;
    if (!inside_loop_.empty()) loops = blocks_;
    loops.insert(loops.end(), rounds_.begin(), rounds_.end());
    if (tile_.depth < 2 || loops.empty()) return true;
    const std::string& loop = loops.back();
    schedule::Pipeline step{loop, {}, tile_.depth};
    for (const auto& [copy, round] : copies_)
      if (round == loop) step.copies.push_back(copy);
    const LoopNest nest = draft_.nest_of(name_);
    const auto at = std::find(nest.names.begin(), nest.names.end(), loop);
    if (at == nest.names.end()) return true;
    step.depth = std::min(step.depth, nest.extents[static_cast<size_t>(at - nest.names.begin())]);
    if (step.depth > 1) attempt(step);
    return true;
  }

  Draft& draft_;
  std::string name_;
  const GpuTile& tile_;
  std::string inside_loop_;
  schedule::Names blocks_, rounds_, threads_, inside_, each_, readers_;
  schedule::Names vectors_;  ///< loops over elements that lie side by side
  std::vector<std::pair<std::string, std::string>> copies_;
};

}  // namespace

bool bind_threads(Draft& draft, const schedule::Names& loops) {
  for (size_t i = 0; i < loops.size(); ++i)
    if (!draft.attempt(schedule::Bind{loops[loops.size() - 1 - i], kThreadAxes[i]})) return false;
  return true;
}

bool bind_blocks(Draft& draft, schedule::Names loops) {
  while (loops.size() > std::size(kBlockAxes)) {
    if (!draft.attempt(schedule::Fuse{loops[0], loops[1]})) return false;
    loops[1] = loops[0] + "*" + loops[1];
    loops.erase(loops.begin());
  }
  for (size_t i = 0; i < loops.size(); ++i)
    if (!draft.attempt(schedule::Bind{loops[loops.size() - 1 - i], kBlockAxes[i]})) return false;
  return true;
}

bool apply_gpu_tile(Draft& draft, const std::string& name, const GpuTile& tile,
                    const std::string& inside) {
  return Tiler(draft, name, tile, inside).run();
}

}  // namespace tilewright::rules
