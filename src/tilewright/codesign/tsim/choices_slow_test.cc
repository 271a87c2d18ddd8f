// Every way in which a unit can play a computation (the tables of docs/codesign.md's choices), with
// extents that no array divides: as instructions on the functional simulator, against the
// interpreter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/accel/spatial/sim/fsim.h"
#include "tilewright/base/rng.h"
#include "tilewright/codegen/spatial/layer_code.h"
#include "tilewright/codesign/association.h"
#include "tilewright/codesign/choices.h"
#include "tilewright/interp/interp.h"
#include "tilewright/tensor/text.h"

namespace tilewright::codesign {
namespace {

using Values = std::vector<int64_t>;

/// No multiple of 2 or 3, but for small ones, which are less than the lanes.
int64_t extent_of(char loop) {
  static const std::map<char, int64_t> kExtents = {{'n', 2}, {'b', 2}, {'g', 2}, {'r', 3}, {'s', 2},
                                                   {'t', 2}, {'x', 5}, {'y', 7}, {'z', 3}, {'c', 5},
                                                   {'k', 7}, {'i', 7}, {'j', 5}, {'l', 11}};
  return kExtents.at(loop);
}

/// `C[i,j] = A[i,k] * B[k,j]` as a tensor expression: letters are loops, digits strides.
std::string expression(const std::string& spec) {
  std::string params, space, over, value, result, indices, name;
  std::set<char> known;
  int64_t scale = 1;
  for (const char c : spec) {
    if (std::isupper(c)) name = c, indices.clear();
    if (std::isdigit(c)) scale = c - '0';
    if (std::islower(c)) {
      const bool fresh = known.insert(c).second;
      const std::string range = fmt::format("{} in {}", c, extent_of(c));
      if (result.empty() || result == name) {
        result = name;
        space += (space.empty() ? "" : ", ") + range;
      } else if (fresh) {
        over += (over.empty() ? "" : ", ") + range;
      }
      indices += fmt::format("{}*{}", std::exchange(scale, 1), c);
    }
    if (c == '+') indices += " + ";
    if (c == ',') indices += ", ";
    if (c == ']' && name != result)
      value += fmt::format("{}i32({}[{}])", value.empty() ? "" : " * ", name, indices);
  }
  // Shapes: what the largest index reaches.
  bool first = true;
  for (size_t at = 0; at < spec.size(); ++at) {
    if (!std::isupper(spec[at])) continue;
    const size_t close = spec.find(']', at);
    std::string text;
    int64_t axis = 1, stride = 1;
    for (size_t i = at + 2; i <= close; ++i) {
      if (std::isdigit(spec[i])) stride = spec[i] - '0';
      if (std::islower(spec[i])) axis += std::exchange(stride, 1) * (extent_of(spec[i]) - 1);
      if (spec[i] != ',' && spec[i] != ']') continue;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", axis);
      axis = 1;
    }
    if (!first) params += fmt::format("{}{}: i8[{}]", params.empty() ? "" : ", ", spec[at], text);
    first = false;
  }
  return fmt::format("tensor w({}) {{\n  {}[{}] = sum({}) {}\n  return {}\n}}\n", params, result,
                     space, over, value, result);
}

Values drawn(int64_t count, Rng& rng) {
  Values values;
  for (int64_t i = 0; i < count; ++i) values.push_back(rng.between(-128, 127));
  return values;
}

int64_t elements(const cost::SpatialTensor& tensor) {
  int64_t count = 1;
  for (const cost::SpatialDim& dim : tensor.dims) count *= dim.extent;
  return count;
}

/// The first output, by the interpreter; inputs by name.
Values interpreted(const Func& func, const std::map<std::string, Values>& inputs) {
  interp::Arguments args;
  std::string output;
  for (const Param& param : func.params) {
    if (param.mode == ParamMode::Out) {
      output = param.buffer.name();
      continue;
    }
    Shape shape;
    for (const Expr& extent : param.buffer.shape()) shape.push_back(*as_int(extent));
    Array array(param.buffer.dtype(), shape);
    const Values& values = inputs.at(param.buffer.name());
    EXPECT_EQ(array.size(), static_cast<int64_t>(values.size())) << param.buffer.name();
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, values[static_cast<size_t>(i)]);
    args.arrays.emplace(param.buffer.name(), std::move(array));
  }
  const auto outcome = interp::run(func, args);
  EXPECT_TRUE(outcome) << to_string(outcome.error());
  Values values;
  if (!outcome) return values;
  const Array& array = outcome->outputs.at(output);
  for (int64_t i = 0; i < array.size(); ++i) values.push_back(array.get_int(i));
  return values;
}

spatial::Design small_array(spatial::Unit unit, spatial::Dataflow dataflow) {
  spatial::Design design;
  design.unit = unit;
  design.dataflow = dataflow;
  design.links = spatial::usual_links(unit);
  design.rows = 2, design.cols = 3;
  design.spad_kb = 8, design.local_kb = 2;
  return design;
}

std::vector<spatial::Design> arrays() {
  using spatial::Dataflow, spatial::Unit;
  std::vector<spatial::Design> all;
  for (const Unit unit : {Unit::Gemm, Unit::Gemv, Unit::Dot, Unit::Conv2d})
    all.push_back(small_array(unit, Dataflow::WeightStationary));
  all.push_back(small_array(Unit::Gemm, Dataflow::OutputStationary));
  return all;
}

/// A mapping of a choice, drawn until it fits.
std::optional<cost::SpatialMapping> drawn_mapping(const spatial::Design& design,
                                                  const cost::SpatialLayer& layer,
                                                  const cost::SpatialChoice& choice, Rng& rng) {
  for (int trial = 0; trial < 300; ++trial) {
    cost::SpatialMapping mapping;
    mapping.choice = choice;
    size_t place = 0;
    for (const bool reduces : {false, true}) {
      const size_t begin = place;
      for (size_t l = 0; l < layer.loops.size(); ++l) {
        if (layer.loops[l].reduces != reduces) continue;
        mapping.order[place] = static_cast<int>(l);
        std::swap(mapping.order[place],
                  mapping.order[begin + static_cast<size_t>(
                                            rng.below(static_cast<int64_t>(place - begin + 1)))]);
        ++place;
      }
    }
    for (size_t l = 0; l < layer.loops.size(); ++l)
      mapping.tile[l] = rng.between(1, layer.loops[l].extent);
    for (int& copies : mapping.copies) copies = static_cast<int>(rng.between(1, 2));
    if (cost::misfits(design, layer, mapping).empty()) return mapping;
  }
  return std::nullopt;
}

/// What STORE does with sums: all their bits, or 8 after a shift.
struct Stored {
  bool wide = true;
  int shift = 0;
  int64_t of(int64_t sum) const {
    if (wide) return sum;
    const int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
    return std::clamp<int64_t>((sum + half) >> shift, -128, 127);
  }
};

/// The layer as instructions, run. `swapped`: the factors change places in DRAM, which is wrong.
Values simulated(const spatial::Design& design, cost::SpatialLayer layer,
                 const cost::SpatialMapping& mapping, const std::array<Values, 2>& factors,
                 const Stored& stored, bool swapped = false) {
  layer.tensors[cost::kSpatialResult].element_bytes = stored.wide ? 4 : 1;
  spatial::LayerOperands operands;
  operands.wide = stored.wide, operands.shift = stored.shift;
  std::string image(64, '\x55');
  for (const size_t t : swapped ? std::array<size_t, 2>{1, 0} : std::array<size_t, 2>{0, 1}) {
    operands.address[swapped ? 1 - t : t] = image.size();
    for (const int64_t value : factors[t]) image += static_cast<char>(value);
    image.resize((image.size() + 4096 + 63) / 64 * 64, '\x55');
  }
  const int64_t count = elements(layer.tensors[cost::kSpatialResult]);
  operands.address[cost::kSpatialResult] = image.size();
  std::string bytes(static_cast<size_t>(count * (stored.wide ? 4 : 1)), '\x55');
  image += bytes;
  const auto program =
      spatial::with_tokens(design, spatial::layer_code(design, layer, mapping, operands));
  EXPECT_TRUE(program) << to_string(program.error());
  if (!program) return {};
  const auto device = spatial::make_fsim(design);
  EXPECT_TRUE(device->write(0, image));
  const auto report = device->launch(*program);
  EXPECT_TRUE(report) << to_string(report.error());
  EXPECT_TRUE(device->read(operands.address[cost::kSpatialResult], bytes.data(), bytes.size()));
  Values values;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    int32_t word = static_cast<int8_t>(bytes[i * (stored.wide ? 4 : 1)]);
    if (stored.wide) std::memcpy(&word, bytes.data() + 4 * i, 4);
    values.push_back(word);
  }
  return values;
}

int mappings_each() {
  const char* cases = std::getenv("TW_CASES");
  return cases != nullptr ? std::atoi(cases) : 3;
}

/// Choices that were run, and those that a unit cannot play.
struct Tally {
  int run = 0, wrong_noticed = 0;
  std::map<std::string, int> unusable;
};

/// Every choice of every unit gives `expected` of the factors.
void run_choices(const cost::Computation& computation, const std::array<Values, 2>& factors,
                 const Values& sums, const Stored& stored, Tally& tally) {
  const Result<cost::SpatialLayer> layer = layer_of(computation);
  ASSERT_TRUE(layer) << to_string(layer.error());
  Values expected;
  for (const int64_t sum : sums) expected.push_back(stored.of(sum));
  Rng rng(17);
  for (const spatial::Design& design : arrays())
    for (const TensorizeChoice& choice : choices_of(computation, design).choices) {
      if (!choice.mapping) {
        EXPECT_FALSE(choice.unusable.empty());
        ++tally.unusable[choice.unusable];
        continue;
      }
      for (int n = 0; n < mappings_each(); ++n) {
        const auto mapping = drawn_mapping(design, *layer, *choice.mapping, rng);
        ASSERT_TRUE(mapping) << to_string(computation);
        SCOPED_TRACE(fmt::format("{}: {} {}", to_string(computation), spatial::name(design.unit),
                                 cost::to_string(*layer, *mapping)));
        ASSERT_EQ(simulated(design, *layer, *mapping, factors, stored), expected);
        if (n == 0)
          tally.wrong_noticed +=
              simulated(design, *layer, *mapping, factors, stored, true) != expected;
      }
      ++tally.run;
    }
}

const char* const kWorkloads[] = {
    "O[k,x,y] = A[c,x+r,y+s] * B[k,c,r,s]",
    "O[n,k,x,y] = A[n,c,x+r,y+s] * B[k,c,r,s]",
    "O[k,x,y] = A[c,2x+3r,3y+2s] * B[k,c,r,s]",
    "C[i,j] = M[i,k] * N[k,j]",
    "C[i] = M[i,j] * V[j]",
    "C[i,j,k] = A[i,j,l] * B[l,k]",
    "E[i,k,j] = A[i,k,l] * B[l,j]",
    "D[i,j] = E[i,k,j] * C[k,j]",
    "C[b,i,j] = A[b,i,k] * B[b,k,j]",
    "O[c,x,y] = A[c,x+r,y+s] * B[c,r,s]",
    "O[g,k,x,y] = A[g,c,x+r,y+s] * B[g,k,c,r,s]",
    "O[k,x] = A[c,x+r] * B[k,c,r]",
    "O[k,x,y,z] = A[c,x+r,y+s,z+t] * B[k,c,r,s,t]",
};

Func parsed(const std::string& spec) {
  const Result<Func> func = tensor::parse_tensor_file(expression(spec));
  EXPECT_TRUE(func) << expression(spec) << to_string(func.error());
  return *func;
}

TEST(Choices, AllRunAndGiveWhatTheInterpreterDoes) {
  Rng rng(1);
  Tally tally;
  for (const char* spec : kWorkloads) {
    SCOPED_TRACE(spec);
    const Func func = parsed(spec);
    const cost::Computations found = cost::computations_of(func);
    ASSERT_EQ(found.sums.size(), 1u);
    const cost::Computation& sum = found.sums[0];
    std::map<std::string, Values> inputs;
    for (const cost::SpatialTensor& factor : sum.factors)
      inputs[factor.name] = drawn(elements(factor), rng);
    const Values expected = interpreted(func, inputs);
    run_choices(sum, {inputs[sum.factors[0].name], inputs[sum.factors[1].name]}, expected, {},
                tally);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  std::printf("%d choices, %d of them wrong with their factors exchanged\n", tally.run,
              tally.wrong_noticed);
  for (const auto& [why, count] : tally.unusable) std::printf("%d: %s\n", count, why.c_str());
  EXPECT_GT(tally.run, 150);
  EXPECT_EQ(tally.wrong_noticed, tally.run);
}

// MTTKRP in its three orders: sums that are a factor of the next stage are shifted to int8 by the
// STORE, and what no unit does (the product element by element) is the interpreter's.
TEST(Choices, EveryOrderOfMttkrpRuns) {
  const Func func = parsed("D[i,j] = A[i,k,l] * B[l,j] * C[k,j]");
  const std::vector<Chain> chains = chains_of(cost::computations_of(func));
  ASSERT_EQ(chains.size(), 1u);
  ASSERT_EQ(chains[0].orders.size(), 3u);
  for (const AssociationOrder& order : chains[0].orders) {
    SCOPED_TRACE(order.text);
    Rng rng(5);
    Tally tally;
    std::map<std::string, Values> values;
    for (const cost::SpatialTensor& factor : chains[0].product.factors)
      values[factor.name] = drawn(elements(factor), rng);
    for (size_t s = 0; s < order.stages.size(); ++s) {
      cost::Computation stage = order.stages[s];
      const bool last = s + 1 == order.stages.size();
      stage.sources.assign(stage.factors.size(), -1);  // given from outside
      const Values sums = interpreted(cost::func_of("stage", {stage}), values);
      const Stored stored = last ? Stored{} : Stored{false, 8};
      run_choices(stage, {values[stage.factors[0].name], values[stage.factors[1].name]}, sums,
                  stored, tally);
      if (HasFatalFailure() || HasNonfatalFailure()) return;
      Values& result = values[stage.result.name];
      result.clear();
      for (const int64_t sum : sums) result.push_back(stored.of(sum));
    }
    std::printf("%s: %d choices\n", order.text.c_str(), tally.run);
    EXPECT_GT(tally.run, 5);
    EXPECT_EQ(tally.wrong_noticed, tally.run);
  }
}

}  // namespace
}  // namespace tilewright::codesign
