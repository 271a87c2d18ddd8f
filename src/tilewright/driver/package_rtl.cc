#include "tilewright/driver/package_rtl.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/board_files.h"
#include "tilewright/compile/fpga/board_launch.h"
#include "tilewright/runtime/package.h"

namespace tilewright::driver {
namespace {

/// Designs of one structure, and the layers that they compute.
struct Structure {
  std::vector<const compile::FpgaNetwork::Design*> designs;
  std::vector<std::string> layers;
};

Result<GeneratedRtl> rtl_of(int number, const Structure& structure, const hw::FpgaDevice& device) {
  const compile::SharedDesigns shared = TW_TRY(compile::shared_designs(structure.designs, device));
  const fpga::Design& design = shared.designs[0];
  const std::vector<runtime::BoardKernel> kernels = TW_TRY(compile::board_kernels(shared));
  GeneratedRtl made;
  made.label =
      fmt::format("design {} for {}: {}", number, device.name, fmt::join(structure.layers, ", "));
  made.folder = fmt::format("design_{}", number);
  made.top = fpga::kTop;
  made.verilog = fpga::verilog(design, shared.numbers).text;
  if (device.family == hw::FpgaFamily::Ice40) return made;
  made.bitstream = runtime::bitstream_name(kernels[0].identity);
  made.board =
      fpga::board_files(design, shared.numbers, device.part, device.clock_mhz, made.bitstream);
  return made;
}

}  // namespace

Result<std::vector<GeneratedRtl>> package_rtl(const std::string& path) {
  runtime::OpenOptions options;
  options.load_code = false;
  const auto package = TW_TRY(runtime::Package::open(path, options));
  std::vector<compile::FpgaNetwork> networks;
  for (const auto& [name, launch] : package->program().launches)
    if (launch.device == compile::kFpgaTarget)
      networks.push_back(TW_TRY(compile::parse_fpga_network(package->launch_code(name))));
  if (networks.empty())
    return fail(ErrorKind::Usage, fmt::format("nothing in '{}' runs on an FPGA", path), {},
                "compile it with --target fpga --hw NAME");
  std::map<int, Structure> structures;
  for (const compile::FpgaNetwork& network : networks) {
    for (const auto& alike : network.by_structure())  // every launch has all of a structure's
      structures[alike[0]->structure].designs = alike;
    for (const compile::FpgaNetwork::Call& call : network.calls)
      structures[network.designs[static_cast<size_t>(call.design)].structure].layers.push_back(
          call.name);
  }
  std::vector<GeneratedRtl> all;
  for (const auto& [number, structure] : structures)
    all.push_back(TW_TRY(rtl_of(number, structure, networks[0].device)));
  return all;
}

}  // namespace tilewright::driver
