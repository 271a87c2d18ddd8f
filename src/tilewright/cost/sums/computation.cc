#include "tilewright/cost/sums/computation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tilewright/base/check.h"
#include "tilewright/ir/text.h"
#include "tilewright/tensor/tensor.h"

namespace tilewright::cost {
namespace {

std::string index_text(const std::vector<SpatialLoop>& loops, const SpatialDim& dim) {
  std::string text;
  for (const SpatialTerm& term : dim.terms) {
    if (!text.empty()) text += " + ";
    if (term.stride != 1) text += std::to_string(term.stride) + "*";
    text += loops[static_cast<size_t>(term.loop)].name;
  }
  if (text.empty()) return std::to_string(-dim.begin);
  if (dim.begin > 0) text += " - " + std::to_string(dim.begin);
  if (dim.begin < 0) text += " + " + std::to_string(-dim.begin);
  return text;
}

std::string access_text(const std::vector<SpatialLoop>& loops, const SpatialTensor& tensor) {
  std::string text;
  for (const SpatialDim& dim : tensor.dims)
    text += (text.empty() ? "" : ", ") + index_text(loops, dim);
  return tensor.name + "[" + text + "]";
}

tl::unexpected<Error> unsupported(const Computation& computation, std::string why) {
  return fail(ErrorKind::Unsupported, computation.name + " cannot run on a unit", std::move(why));
}

/// Why the indices of a tensor are not those of a model of costs; empty: they are.
std::string bad_indices(const Computation& computation, const SpatialTensor& tensor) {
  std::vector<int> seen;
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms) {
      const std::string& loop = computation.loops[static_cast<size_t>(term.loop)].name;
      if (term.stride < 1)
        return fmt::format("loop {} runs backwards through {}", loop, tensor.name);
      if (std::count(seen.begin(), seen.end(), term.loop) > 0)
        return fmt::format("loop {} runs along a diagonal of {}", loop, tensor.name);
      seen.push_back(term.loop);
    }
  if (tensor.dims.size() > kSpatialDims)
    return fmt::format("{} has {} dimensions, there is room for {}", tensor.name,
                       tensor.dims.size(), kSpatialDims);
  return {};
}

// --- Computations as a Func

using Tensors = std::map<std::string, tensor::Tensor>;

/// The element of a factor that a computation reads, zero outside of it.
Expr element_of(const Computation& c, size_t factor, const std::vector<Expr>& at,
                const tensor::Tensor& tensor) {
  tensor::Indices indices;
  Expr inside;
  const auto require = [&](const Expr& condition) {
    inside = inside ? logical_and(inside, condition) : condition;
  };
  for (const SpatialDim& dim : c.factors[factor].dims) {
    Expr index;
    int64_t low = -dim.begin, high = -dim.begin;
    for (const SpatialTerm& term : dim.terms) {
      const Expr& loop = at[static_cast<size_t>(term.loop)];
      const Expr scaled = term.stride == 1 ? loop : loop * term.stride;
      index = index ? index + scaled : scaled;
      const int64_t reach = term.stride * (c.loops[static_cast<size_t>(term.loop)].extent - 1);
      (reach < 0 ? low : high) += reach;
    }
    index = !index ? int_imm(-dim.begin) : dim.begin == 0 ? index : index + -dim.begin;
    if (low < 0) require(index >= 0);
    if (high >= dim.extent) require(index < dim.extent);
    indices.push_back(index);
  }
  const Expr value = tensor(indices);
  return inside ? select(inside, value, const_of(value.dtype(), 0)) : value;
}

tensor::Tensor stage_of(const Computation& c, DType type, const Tensors& tensors) {
  std::vector<tensor::Dim> space, over;
  std::vector<int> in_result;
  for (const SpatialDim& dim : c.result.dims) {
    TW_CHECK(dim.terms.size() == 1 && dim.terms[0].stride == 1 && dim.begin == 0,
             "an index of {} is no loop", c.result.name);
    in_result.push_back(dim.terms[0].loop);
    space.push_back({c.loops[static_cast<size_t>(in_result.back())].name, dim.extent});
  }
  std::vector<int> summed;
  for (size_t loop = 0; loop < c.loops.size(); ++loop)
    if (c.loops[loop].reduces) {
      summed.push_back(static_cast<int>(loop));
      over.push_back({c.loops[loop].name, c.loops[loop].extent});
    }
  const auto product = [&](const tensor::Indices& at, const tensor::Indices& r) {
    std::vector<Expr> loops(c.loops.size());
    for (size_t i = 0; i < at.size(); ++i) loops[static_cast<size_t>(in_result[i])] = at[i];
    for (size_t i = 0; i < r.size(); ++i) loops[static_cast<size_t>(summed[i])] = r[i];
    Expr value;
    for (size_t f = 0; f < c.factors.size(); ++f) {
      const Expr one = cast(type, element_of(c, f, loops, tensors.at(c.factors[f].name)));
      value = value ? value * one : one;
    }
    return value;
  };
  if (over.empty())
    return tensor::compute(c.result.name, space, [&](const auto& at) { return product(at, {}); });
  return tensor::reduce(c.result.name, space, over, Combine::Add, product);
}

// --- Computations as text for the matcher

std::string plain_access(char name, const SpatialTensor& tensor) {
  std::string text;
  for (const SpatialDim& dim : tensor.dims) {
    if (!text.empty()) text += ", ";
    std::string index;
    for (const SpatialTerm& term : dim.terms)
      index += fmt::format("{}v{} * {}", index.empty() ? "" : " + ", term.loop, term.stride);
    text += index.empty() ? "0" : index;
  }
  return fmt::format("{}[{}]", name, text);
}

std::string plain_parameter(char name, const SpatialTensor& tensor) {
  std::string shape;
  for (const SpatialDim& dim : tensor.dims)
    shape += fmt::format("{}{}", shape.empty() ? "" : ",", dim.extent);
  return fmt::format("{}: i32[{}]", name, shape);
}

}  // namespace

bool moves(const SpatialTensor& tensor, int loop) {
  for (const SpatialDim& dim : tensor.dims)
    for (const SpatialTerm& term : dim.terms)
      if (term.loop == loop) return true;
  return false;
}

int64_t Computation::macs() const {
  int64_t product = 1;
  for (const SpatialLoop& loop : loops) product *= loop.extent;
  return product;
}

std::string to_string(const Computation& c) {
  std::string text = access_text(c.loops, c.result);
  const bool sums = std::any_of(c.loops.begin(), c.loops.end(), [](auto& l) { return l.reduces; });
  for (size_t f = 0; f < c.factors.size(); ++f)
    text += (f == 0 ? (sums ? " += " : " = ") : " * ") + access_text(c.loops, c.factors[f]);
  return text;
}

Result<SpatialLayer> layer_of(const Computation& c) {
  if (c.factors.size() != 2)
    return unsupported(c, fmt::format("it multiplies {} factors, a unit two", c.factors.size()));
  if (c.loops.size() > kSpatialLoops)
    return unsupported(
        c, fmt::format("it has {} loops, there is room for {}", c.loops.size(), kSpatialLoops));
  for (const SpatialTensor* tensor : {&c.factors[0], &c.factors[1], &c.result})
    if (std::string why = bad_indices(c, *tensor); !why.empty()) return unsupported(c, why);
  SpatialLayer layer;
  layer.name = c.name;
  layer.loops = c.loops;
  layer.tensors = {c.factors[0], c.factors[1], c.result};
  return layer;
}

Computation computation_of(const SpatialLayer& layer) {
  return {layer.name,
          layer.loops,
          {layer.tensors[0], layer.tensors[1]},
          layer.tensors[kSpatialResult],
          {DType::I8, DType::I8, DType::I32},
          {-1, -1}};
}

Func func_of(const std::string& name, const std::vector<Computation>& stages) {
  const DType type = stages.back().dtypes.back();
  Tensors tensors;
  std::vector<tensor::Tensor> inputs;
  for (const Computation& stage : stages) {
    for (size_t f = 0; f < stage.factors.size(); ++f) {
      const SpatialTensor& factor = stage.factors[f];
      if (tensors.contains(factor.name)) continue;
      Shape shape;
      for (const SpatialDim& dim : factor.dims) shape.push_back(dim.extent);
      inputs.push_back(tensor::placeholder(factor.name, stage.dtypes[f], shape));
      tensors.emplace(factor.name, inputs.back());
    }
    tensors.emplace(stage.result.name, stage_of(stage, type, tensors));
  }
  return tensor::make_func(name, inputs, {tensors.at(stages.back().result.name)});
}

Func nest_for_matching(const Computation& c) {
  std::string params = "inout " + plain_parameter('R', c.result), loops, iters, value;
  for (size_t i = 0; i < c.loops.size(); ++i) {
    const SpatialLoop& loop = c.loops[i];
    const char* comma = i == 0 ? "" : ", ";
    loops += fmt::format("{}l{} in {}", comma, i, loop.extent);
    iters += fmt::format("{}v{}: {} {} = l{}", comma, i, loop.reduces ? "reduce" : "space",
                         loop.extent, i);
  }
  for (size_t f = 0; f < c.factors.size(); ++f) {
    const char name = static_cast<char>('A' + f);
    params += ", " + plain_parameter(name, c.factors[f]);
    value += (f == 0 ? "" : " * ") + plain_access(name, c.factors[f]);
  }
  const std::string text =
      fmt::format("func f({}) {{\nfor {} {{\nblock B({}) {{\n{} += {}\n}}\n}}\n}}\n", params, loops,
                  iters, plain_access('R', c.result), value);
  const Result<Func> func = parse_func(text);
  TW_CHECK(func.has_value(), "{}: {}", to_string(func.error()), text);
  return *func;
}

}  // namespace tilewright::cost
