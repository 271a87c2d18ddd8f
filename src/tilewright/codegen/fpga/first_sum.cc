// A tile of 16x7x7 sums takes 784 cycles to be set to zero, one element a cycle, and a 3x3
// convolution with 16 x 8 products side by side adds 441 times to it: without the first nest it is
// done in a third of the time.
//
//   items   C.init | loop l  C | end        ->        loop l  C' | end
//
// In C' each read of a sum goes through a choice between the constant and the memory, by a flag
// that is 1 in the first iteration of every loop that the sum does not depend on. The choice takes
// no cycle, so intervals stay as they are.
#include "tilewright/codegen/fpga/first_sum.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace tilewright::codegen::fpga_design {
namespace {

using fpga::Nest;
using fpga::Node;
using fpga::Op;

constexpr int64_t kMostElements = int64_t{1} << 20;  ///< of a tile that is looked at

using Elements = std::set<std::pair<int64_t, int64_t>>;  ///< bank, word

int64_t factor(const fpga::Affine& a, size_t counter) {
  return counter < a.counters.size() ? a.counters[counter] : 0;
}
bool depends(const fpga::Place& place, size_t counter) {
  return factor(place.bank, counter) != 0 || factor(place.word, counter) != 0;
}
bool moves_with_loops(const fpga::Place& place) {
  const auto moves = [](const fpga::Affine& a) {
    return std::any_of(a.loops.begin(), a.loops.end(), [](int64_t f) { return f != 0; });
  };
  return moves(place.bank) || moves(place.word);
}

/// The elements that the stores of `nest` go over, each of them once; absent if one comes twice
/// while the counters that its place depends on run.
std::optional<Elements> elements_of(const Nest& nest) {
  Elements found;
  for (const fpga::Store& store : nest.stores) {
    std::vector<int64_t> extents;
    int64_t count = 1;
    for (size_t i = 0; i < nest.extents.size(); ++i) {
      extents.push_back(depends(store.place, i) ? nest.extents[i] : 1);
      count *= extents.back();
    }
    if (count > kMostElements) return std::nullopt;
    std::vector<int64_t> at(extents.size(), 0);
    for (int64_t n = 0; n < count; ++n) {
      int64_t rest = n;
      for (size_t i = extents.size(); i-- > 0; rest /= extents[i]) at[i] = rest % extents[i];
      const auto value = [&](const fpga::Affine& a) {
        int64_t sum = a.constant;
        for (size_t i = 0; i < at.size(); ++i) sum += factor(a, i) * at[i];
        return sum;
      };
      if (!found.insert({value(store.place.bank), value(store.place.word)}).second)
        return std::nullopt;
    }
  }
  return found;
}

/// Whether all stores are plain ones to one memory.
bool stores_to_one(const Nest& nest) {
  if (nest.stores.empty() || nest.stream.port >= 0) return false;
  return std::all_of(nest.stores.begin(), nest.stores.end(), [&](const fpga::Store& store) {
    return store.place.memory == nest.stores[0].place.memory && store.ranges.empty() &&
           !moves_with_loops(store.place);
  });
}

/// The constant that `nest` sets a memory to, if that is all it does.
std::optional<Node> constant_of(const Nest& nest) {
  if (!stores_to_one(nest)) return std::nullopt;
  const Node& value = nest.nodes[static_cast<size_t>(nest.stores[0].node)];
  if (value.op != Op::Const) return std::nullopt;
  for (const fpga::Store& store : nest.stores)
    if (store.node != nest.stores[0].node) return std::nullopt;
  return value;
}

/// Whether `nest` only adds to the memory: every read of it is of the element that is stored, and
/// is used once, by the operator whose result is stored.
bool only_adds(const Nest& nest) {
  if (!stores_to_one(nest)) return false;
  const int memory = nest.stores[0].place.memory;
  size_t reads = 0;
  for (size_t n = 0; n < nest.nodes.size(); ++n) {
    const Node& read = nest.nodes[n];
    if (read.op != Op::Read || read.place.memory != memory) continue;
    ++reads;
    const auto store = std::find_if(nest.stores.begin(), nest.stores.end(),
                                    [&](const auto& s) { return s.place == read.place; });
    if (store == nest.stores.end()) return false;
    for (size_t user = n + 1; user < nest.nodes.size(); ++user) {
      const auto& inputs = nest.nodes[user].inputs;
      const auto uses = std::count(inputs.begin(), inputs.end(), static_cast<int>(n));
      if (uses > 1 || (uses == 1 && store->node != static_cast<int>(user))) return false;
    }
  }
  return reads == nest.stores.size();
}

/// 1 in the first iteration of each loop that the sums do not depend on. `first`, `open`: the loops
/// around `nest` that began behind the constant.
Node first_flag(const Nest& nest, size_t first, const std::vector<int64_t>& open) {
  Node flag{Op::Flag, {fpga::Number::Kind::Unsigned, 1}};
  const auto add = [&](bool loop, size_t index) {
    fpga::Affine value;
    auto& factors = loop ? value.loops : value.counters;
    factors.resize(index + 1, 0);
    factors[index] = 1;
    flag.ranges.push_back({value, 1});
  };
  for (size_t i = first; i < open.size(); ++i)
    if (open[i] > 1) add(true, i);
  for (size_t i = 0; i < nest.extents.size(); ++i)
    if (nest.extents[i] > 1 && !depends(nest.stores[0].place, i)) add(false, i);
  return flag;
}

/// `nest` with a choice behind each read of its sums.
void choose(Nest& nest, const Node& constant, Node flag) {
  std::vector<Node> nodes = {constant, std::move(flag)};
  std::vector<int> now;
  const int memory = nest.stores[0].place.memory;
  for (Node& node : nest.nodes) {
    for (int& input : node.inputs) input = now[static_cast<size_t>(input)];
    const bool sum = node.op == Op::Read && node.place.memory == memory;
    const fpga::Number type = node.type;
    nodes.push_back(std::move(node));
    const int at = static_cast<int>(nodes.size()) - 1;
    if (sum) nodes.push_back({Op::Select, type, {1, 0, at}});
    now.push_back(static_cast<int>(nodes.size()) - 1);
  }
  nest.nodes = std::move(nodes);
  for (fpga::Store& store : nest.stores) store.node = now[static_cast<size_t>(store.node)];
}

/// All stores depend on the same counters: one flag serves them.
bool alike(const Nest& nest) {
  for (const fpga::Store& store : nest.stores)
    for (size_t i = 0; i < nest.extents.size(); ++i)
      if (depends(store.place, i) != depends(nest.stores[0].place, i)) return false;
  return true;
}

}  // namespace

void start_sums_with_first(fpga::Process& process) {
  std::vector<int64_t> open;  // loops around the item
  for (size_t i = 0; i < process.items.size(); ++i) {
    const fpga::Item& item = process.items[i];
    if (const auto* begin = std::get_if<fpga::LoopBegin>(&item)) open.push_back(begin->extent);
    if (std::get_if<fpga::LoopEnd>(&item) != nullptr) open.pop_back();
    const auto* set = std::get_if<Nest>(&item);
    const auto constant = set == nullptr ? std::nullopt : constant_of(*set);
    if (!constant) continue;
    std::vector<int64_t> inner = open;
    size_t next = i + 1;
    for (; next < process.items.size(); ++next) {
      if (const auto* begin = std::get_if<fpga::LoopBegin>(&process.items[next]))
        inner.push_back(begin->extent);
      else if (std::get_if<fpga::Acquire>(&process.items[next]) == nullptr)
        break;
    }
    auto* sums = next < process.items.size() ? std::get_if<Nest>(&process.items[next]) : nullptr;
    if (sums == nullptr || !only_adds(*sums) || !alike(*sums) ||
        sums->stores[0].place.memory != set->stores[0].place.memory)
      continue;
    const auto before = elements_of(*set), after = elements_of(*sums);
    if (!before || !after || *before != *after) continue;
    choose(*sums, *constant, first_flag(*sums, open.size(), inner));
    process.items.erase(process.items.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
}

}  // namespace tilewright::codegen::fpga_design
