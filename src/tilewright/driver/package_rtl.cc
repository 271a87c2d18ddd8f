#include "tilewright/driver/package_rtl.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/accel/fpga/rtl/board_files.h"
#include "tilewright/compile/fpga/board_launch.h"
#include "tilewright/driver/package_designs.h"

namespace tilewright::driver {
namespace {

Result<GeneratedRtl> rtl_of(int number, const PackageStructure& structure,
                            const hw::FpgaDevice& device) {
  const compile::SharedDesigns shared =
      TW_TRY(compile::shared_designs(pointers(structure), device));
  const fpga::Design& design = shared.designs[0];
  const std::vector<runtime::BoardKernel> kernels = TW_TRY(compile::board_kernels(shared));
  std::vector<std::string> layers;
  for (const auto& [layer, at] : structure.layers) layers.push_back(layer);
  GeneratedRtl made;
  made.label = fmt::format("design {} for {}: {}", number, device.name, fmt::join(layers, ", "));
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
  const PackageDesigns designs = TW_TRY(package_designs(path));
  std::vector<GeneratedRtl> all;
  for (const auto& [number, structure] : designs.structures)
    all.push_back(TW_TRY(rtl_of(number, structure, designs.device)));
  return all;
}

}  // namespace tilewright::driver
