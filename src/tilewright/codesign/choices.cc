#include "tilewright/codesign/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tilewright/base/check.h"
#include "tilewright/cost/spatial/mapper.h"

namespace tilewright::codesign {
namespace {

using cost::SpatialChoice;
using cost::SpatialDim;
using cost::SpatialTensor;
using spatial::Unit;

/// Loops of the intrinsic, by their letters, with extents.
struct UnitText {
  std::string loops;                              ///< those of the result first
  size_t of_result;                               ///< so many
  std::vector<std::vector<std::string>> tensors;  ///< name, indices; the result is the last
};

const UnitText& text_of(Unit unit) {
  static const std::map<Unit, UnitText> kTexts = {
      {Unit::Gemm, {"ijk", 2, {{"M", "i", "k"}, {"N", "k", "j"}, {"C", "i", "j"}}}},
      {Unit::Gemv, {"ij", 1, {{"M", "i", "j"}, {"V", "j"}, {"C", "i"}}}},
      {Unit::Dot, {"i", 0, {{"A", "i"}, {"B", "i"}, {"C"}}}},
      {Unit::Conv2d,
       {"kxycrs", 3, {{"A", "c", "xr", "ys"}, {"B", "k", "c", "r", "s"}, {"O", "k", "x", "y"}}}}};
  return kTexts.at(unit);
}

std::map<char, int64_t> lanes_of(const spatial::Design& d) {
  if (d.unit == Unit::Dot || d.unit == Unit::Gemv) return {{'i', d.units()}};
  if (d.unit == Unit::Conv2d) return {{'k', d.rows}, {'c', d.cols}};
  if (d.dataflow == spatial::Dataflow::WeightStationary) return {{'j', d.cols}, {'k', d.rows}};
  return {{'i', d.rows}, {'j', d.cols}};
}

int number_of(const Var& var) { return std::stoi(var.name().substr(1)); }

/// A match in numbers: loops of the unit to loops of the computation, operands to tensors.
struct Numbers {
  std::vector<std::pair<int, int>> loops;
  std::vector<size_t> operands;  ///< of the unit's factors: which factor, or their number: none
};

Numbers numbers_of(const schedule::Match& match) {
  Numbers numbers;
  for (const auto& [unit, own] : match.indices)
    numbers.loops.emplace_back(number_of(unit), number_of(own));
  for (size_t i = 1; i < match.operands.size(); ++i)
    numbers.operands.push_back(match.operands[i] - 1);
  return numbers;
}

/// Roles as models of costs have them.
SpatialChoice mapping_of(Unit unit, const Numbers& numbers) {
  SpatialChoice choice;
  choice.first = static_cast<int>(numbers.operands[0]);
  std::map<char, int> loops;
  for (const auto& [of_unit, own] : numbers.loops)
    loops[text_of(unit).loops[static_cast<size_t>(of_unit)]] = own;
  switch (unit) {
    case Unit::Dot:
      choice.first = 0;
      choice.k = loops.at('i');
      break;
    case Unit::Gemv:
      choice.i = loops.at('i');
      choice.k = loops.at('j');
      break;
    case Unit::Gemm:
      choice.i = loops.at('i');
      choice.j = loops.at('j');
      choice.k = loops.at('k');
      break;
    case Unit::Conv2d:
      choice.j = loops.at('k');
      choice.k = loops.at('c');
      break;
  }
  return choice;
}

double idle_of(const cost::Computation& c, const cost::Computation& unit, const Numbers& numbers) {
  double share = 1;
  for (const auto& [of_unit, own] : numbers.loops) {
    const int64_t extent = c.loops[static_cast<size_t>(own)].extent,
                  lanes = unit.loops[static_cast<size_t>(of_unit)].extent;
    share *=
        static_cast<double>(extent) / static_cast<double>(cost::ceil_div(extent, lanes) * lanes);
  }
  return 1 - share;
}

int64_t elements(const SpatialTensor& tensor) {
  int64_t count = 1;
  for (const SpatialDim& dim : tensor.dims) count *= dim.extent;
  return count;
}

/// Elements between two neighbours of a loop, row by row.
int64_t stride_of(const SpatialTensor& tensor, int loop) {
  int64_t below = 1, stride = 0;
  for (size_t i = tensor.dims.size(); i-- > 0; below *= tensor.dims[i].extent)
    for (const cost::SpatialTerm& term : tensor.dims[i].terms)
      if (term.loop == loop) stride += term.stride * below;
  return stride;
}

void describe_reads(const cost::SpatialLayer& layer, const spatial::Design& design,
                    const Numbers& numbers, TensorizeChoice& choice) {
  const cost::SpatialUnit unit(design, layer, *choice.mapping);
  for (size_t f = 0; f < choice.operands.size(); ++f) {
    OperandUse& use = choice.operands[f];
    const SpatialTensor& tensor = layer.tensors[numbers.operands[f]];
    const size_t side = static_cast<int>(numbers.operands[f]) == unit.choice.first ? 0 : 1;
    const int lane = unit.lane_loop[side];
    use.lane = layer.loops[static_cast<size_t>(lane)].name;
    use.packed = tensor.packed;
    use.gathered = unit.gathers[side];
    use.stride = use.packed ? 1 : stride_of(tensor, lane);
    for (const auto& [of_unit, own] : numbers.loops)
      if (own != lane && !use.packed && use.row.empty() && moves(tensor, own)) {
        use.row = layer.loops[static_cast<size_t>(own)].name;
        use.row_stride = stride_of(tensor, own);
      }
    if (use.gathered) use.change_bytes = elements(tensor) * tensor.element_bytes;
  }
}

/// Factors of the computation that the unit does not multiply.
std::string left_over(const cost::Computation& c, const Numbers& numbers) {
  std::string names;
  for (size_t f = 0; f < c.factors.size(); ++f)
    if (std::find(numbers.operands.begin(), numbers.operands.end(), f) == numbers.operands.end())
      names += (names.empty() ? "" : ", ") + c.factors[f].name;
  return names;
}

std::vector<std::string> loops_where(const cost::Computation& c, size_t with, size_t without,
                                     bool in_result) {
  std::vector<std::string> names;
  for (int loop = 0; loop < static_cast<int>(c.loops.size()); ++loop) {
    const bool other = without < c.factors.size() && moves(c.factors[without], loop);
    if (moves(c.factors[with], loop) && !other && moves(c.result, loop) == in_result)
      names.push_back(c.loops[static_cast<size_t>(loop)].name);
  }
  return names;
}

/// Why no match was found: the first role that no loop can have.
std::string why_none(const cost::Computation& c, Unit unit) {
  const auto both = [&] {
    for (int loop = 0; loop < static_cast<int>(c.loops.size()); ++loop) {
      if (moves(c.result, loop)) continue;
      const auto factors = std::count_if(c.factors.begin(), c.factors.end(),
                                         [&](const auto& f) { return moves(f, loop); });
      if (factors == 2) return true;
    }
    return false;
  };
  if (!both()) return "no loop is summed over in two factors alone";
  if (unit == Unit::Conv2d)
    return "it has no image that two taps move over and a channel that is summed over";
  if (c.factors.size() != 2)
    return fmt::format(
        "a unit multiplies two factors, here are {}, and the others do not just scale the product",
        c.factors.size());
  for (const size_t f : {size_t{0}, size_t{1}})
    if ((unit == Unit::Gemm || loops_where(c, 1 - f, f, true).empty()) &&
        loops_where(c, f, 1 - f, true).empty())
      return fmt::format("no loop of the result runs through {} and not through {}",
                         c.factors[f].name, c.factors[1 - f].name);
  return "the loops that could have its roles share an index with one another";
}

}  // namespace

cost::Computation unit_computation(const spatial::Design& design) {
  const UnitText& text = text_of(design.unit);
  const std::map<char, int64_t> lanes = lanes_of(design);
  cost::Computation unit;
  unit.name = spatial::name(design.unit);
  for (size_t i = 0; i < text.loops.size(); ++i) {
    const auto found = lanes.find(text.loops[i]);
    unit.loops.push_back({std::string(1, text.loops[i]), found == lanes.end() ? 1 : found->second,
                          i >= text.of_result});
  }
  for (const std::vector<std::string>& words : text.tensors) {
    SpatialTensor tensor;
    tensor.name = words[0];
    for (size_t i = 1; i < words.size(); ++i) {
      SpatialDim dim;
      for (const char letter : words[i]) {
        const int loop = static_cast<int>(text.loops.find(letter));
        dim.terms.push_back({loop, 1});
        dim.extent += unit.loops[static_cast<size_t>(loop)].extent - 1;
      }
      tensor.dims.push_back(std::move(dim));
    }
    (unit.factors.size() < 2 ? unit.factors.emplace_back() : unit.result) = std::move(tensor);
  }
  unit.dtypes = {DType::I8, DType::I8, DType::I32};
  unit.sources = {-1, -1};
  return unit;
}

UnitChoices choices_of(const cost::Computation& c, const spatial::Design& design) {
  UnitChoices found;
  found.unit = spatial::name(design.unit);
  const cost::Computation unit = unit_computation(design);
  const Func own = cost::nest_for_matching(c), intrinsic = cost::nest_for_matching(unit);
  const auto counts = schedule::count_matches(own, intrinsic);
  const auto matches = schedule::find_matches(own, intrinsic);
  TW_CHECK(counts && matches, "the nest of {} is not one computation", c.name);
  found.counts = *counts;
  const Result<cost::SpatialLayer> layer = layer_of(c);
  const std::vector<SpatialChoice> known =
      layer ? cost::choices(design, *layer) : std::vector<SpatialChoice>{};
  using Key = std::tuple<int, int, int, int, std::set<int>>;
  std::map<Key, size_t> first;
  for (const schedule::Match& match : *matches) {
    const Numbers numbers = numbers_of(match);
    TensorizeChoice choice;
    std::set<int> loops;
    for (const auto& [of_unit, own_loop] : numbers.loops) {
      choice.loops.emplace_back(unit.loops[static_cast<size_t>(of_unit)].name,
                                c.loops[static_cast<size_t>(own_loop)].name);
      loops.insert(own_loop);
    }
    for (size_t f = 0; f < numbers.operands.size(); ++f) {
      choice.operands.emplace_back();
      choice.operands.back().role = unit.factors[f].name;
      choice.operands.back().tensor = c.factors[numbers.operands[f]].name;
    }
    choice.idle = idle_of(c, unit, numbers);
    const SpatialChoice mapping = mapping_of(design.unit, numbers);
    const Key key{mapping.first, mapping.i, mapping.j, mapping.k, std::move(loops)};
    const auto [same, is_new] = first.emplace(key, found.choices.size());
    if (!is_new) choice.same_as = same->second;
    if (!layer) {
      choice.unusable = layer.error().why;
      if (const std::string rest = left_over(c, numbers); !rest.empty())
        choice.unusable = "its sums would have to be scaled by " + rest + ": contract in pairs";
    } else if (std::find(known.begin(), known.end(), mapping) == known.end()) {
      choice.unusable = "the unit's window has two taps, this one has another number";
    } else {
      choice.mapping = mapping;
      describe_reads(*layer, design, numbers, choice);
    }
    found.choices.push_back(std::move(choice));
  }
  if (found.choices.empty()) found.none = why_none(c, design.unit);
  return found;
}

void predict_cycles(const cost::Computation& c, const spatial::Design& design, UnitChoices& found) {
  const Result<cost::SpatialLayer> layer = layer_of(c);
  if (!layer) return;
  for (TensorizeChoice& choice : found.choices) {
    if (!choice.mapping || choice.same_as) continue;
    cost::SpatialMapperOptions options;
    options.choices = {*choice.mapping};
    const std::optional<cost::SpatialBest> best = cost::best_mapping(design, *layer, options);
    if (best)
      choice.cycles = best->cost.cycles;
    else
      choice.unusable = "no tile of it fits the design's memories";
  }
}

std::vector<std::string> notes_on(const cost::Computation& c) {
  std::vector<std::string> notes;
  for (size_t f = 0; f < c.factors.size(); ++f)
    if (c.sources[f] >= 0)
      notes.push_back(
          fmt::format("{} is a sum of 32 bits: the STORE before shifts it to int8, so "
                      "the result is that of shifted sums",
                      c.factors[f].name));
  const bool sums = std::any_of(c.loops.begin(), c.loops.end(), [](auto& l) { return l.reduces; });
  if (!sums) notes.emplace_back("nothing is summed: the host multiplies element by element");
  return notes;
}

}  // namespace tilewright::codesign
