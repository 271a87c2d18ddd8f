#include "tilewright/driver/package_designs.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/compile/fpga/backend.h"
#include "tilewright/ir/text.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {
namespace {

/// Every launch has all designs of a structure, in an order of its own.
void add_network(const compile::FpgaNetwork& network, PackageDesigns& all) {
  for (const auto& alike : network.by_structure()) {
    PackageStructure& structure = all.structures[alike[0]->structure];
    if (structure.designs.empty())
      for (const compile::FpgaNetwork::Design* design : alike) structure.designs.push_back(*design);
  }
  for (const compile::FpgaNetwork::Call& call : network.calls) {
    const compile::FpgaNetwork::Design& design = network.designs[static_cast<size_t>(call.design)];
    PackageStructure& structure = all.structures[design.structure];
    const auto at = std::find_if(
        structure.designs.begin(), structure.designs.end(),
        [&](const compile::FpgaNetwork::Design& d) { return equal(d.func, design.func); });
    structure.layers.emplace_back(call.name, at - structure.designs.begin());
  }
}

}  // namespace

Result<PackageDesigns> package_designs(const std::string& path) {
  runtime::OpenOptions options;
  options.load_code = false;
  const auto package = TW_TRY(runtime::Package::open(path, options));
  PackageDesigns all;
  for (const auto& [name, launch] : package->program().launches) {
    if (launch.device != compile::kFpgaTarget) continue;
    const compile::FpgaNetwork network =
        TW_TRY(compile::parse_fpga_network(package->launch_code(name)));
    all.device = network.device;
    add_network(network, all);
  }
  if (all.structures.empty())
    return fail(ErrorKind::Usage, fmt::format("nothing in '{}' runs on an FPGA", path), {},
                "compile it with --target fpga --hw NAME");
  return all;
}

std::vector<const compile::FpgaNetwork::Design*> pointers(const PackageStructure& structure) {
  std::vector<const compile::FpgaNetwork::Design*> out;
  for (const compile::FpgaNetwork::Design& design : structure.designs) out.push_back(&design);
  return out;
}

}  // namespace tilewright::driver
