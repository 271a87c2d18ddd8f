#include "tilewright/codegen/spatial/product.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/accel/spatial/footprint.h"
#include "tilewright/codegen/spatial/layer_code.h"

namespace tilewright::spatial {
namespace {

constexpr uint64_t kAlignTensors = 64;  // as long as the longest beat

uint64_t bytes_of(const cost::SpatialTensor& tensor) {
  int64_t bytes = tensor.element_bytes;
  for (const cost::SpatialDim& dim : tensor.dims) bytes *= dim.extent;
  return static_cast<uint64_t>(bytes);
}

}  // namespace

bool can_pack(const cost::SpatialTensor& factor) {
  return std::all_of(factor.dims.begin(), factor.dims.end(), [](const cost::SpatialDim& dim) {
    return dim.begin == 0 && dim.terms.size() == 1 && dim.terms[0].stride == 1;
  });
}

Result<Compiled> compile_product(const cost::SpatialLayer& layer, const KnownFactors& known,
                                 Mappings& mappings) {
  const Design& design = mappings.design();
  const auto& best = mappings.best(layer);
  if (!best) return tl::unexpected<Error>(misfit(layer, design));
  accel::ImageBuilder memory(accel::kPage, kDramBytes);
  LayerOperands operands;
  operands.wide = true;
  for (int t = 0; t < cost::kSpatialTensors; ++t) {
    const cost::SpatialTensor& tensor = layer.tensors[static_cast<size_t>(t)];
    const uint64_t bytes = bytes_of(tensor);
    const uint64_t address = TW_TRY(memory.allocate(tensor.name, bytes, kAlignTensors));
    operands.address[static_cast<size_t>(t)] = address;
    const bool factor = t != cost::kSpatialResult;
    if (factor && known[static_cast<size_t>(t)]) {
      const std::span<const int8_t> data = *known[static_cast<size_t>(t)];
      memory.write(address, tensor.packed ? pack(design, layer, best->mapping, data, {})
                                          : std::string(reinterpret_cast<const char*>(data.data()),
                                                        data.size()));
    } else if (factor) {
      memory.add_input({tensor.name, address, bytes});
    } else {
      memory.add_output({tensor.name, address, bytes});
    }
  }
  Run run;
  run.insns = TW_TRY(with_tokens(design, layer_code(design, layer, best->mapping, operands)));
  run.spans.push_back({layer.name, 0, run.insns.size()});
  Compiled compiled;
  static_cast<accel::Image&>(compiled.program) = memory.take();
  compiled.program.design = design;
  compiled.program.runs.push_back(std::move(run));
  LayerPlan plan;
  plan.name = layer.name;
  plan.mapping = cost::to_string(layer, best->mapping);
  plan.cycles = best->cost.cycles;
  plan.bound = cost::lower_bound(design, layer);
  plan.binds = best->cost.binds;
  compiled.layers.push_back(std::move(plan));
  return compiled;
}

}  // namespace tilewright::spatial
