#include "tilewright/driver/generated_rtl.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/accel/spatial/rtl/rtl.h"
#include "tilewright/accel/vta/rtl/rtl.h"
#include "tilewright/base/file.h"

namespace tilewright::driver {
namespace {

constexpr std::pair<vta::Bench, const char*> kBenches[] = {{vta::Bench::Queue, "queue"},
                                                           {vta::Bench::Tokens, "tokens"},
                                                           {vta::Bench::Gemm, "gemm"},
                                                           {vta::Bench::Alu, "alu"},
                                                           {vta::Bench::Dma, "dma"}};

Result<GeneratedRtl> generate(const vta::Config& config) {
  TW_TRY_STATUS(vta::check(config));
  TW_TRY_STATUS(vta::rtl_supports(config));
  GeneratedRtl made{vta::label(config), vta::kTop, vta::verilog(config), vta::to_toml(config), {}};
  for (const auto& [bench, name] : kBenches)
    made.benches.emplace_back(name, vta::testbench(config, bench, 1));
  return made;
}

Result<GeneratedRtl> generate(const spatial::Design& design) {
  TW_TRY_STATUS(spatial::rtl_supports(design));
  return GeneratedRtl{
      design.name, spatial::kTop, spatial::verilog(design), spatial::to_toml(design), {}};
}

}  // namespace

Result<GeneratedRtl> generated_rtl(const codesign::Hardware& hardware) {
  return std::visit([](const auto& design) { return generate(design); }, hardware);
}

Status write_rtl(const GeneratedRtl& made, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TW_TRY_STATUS(write_file(fmt::format("{}/{}.v", folder, made.top), made.verilog));
  TW_TRY_STATUS(write_file(fmt::format("{}/{}.toml", folder, made.top), made.toml));
  for (const auto& [name, text] : made.benches)
    TW_TRY_STATUS(write_file(fmt::format("{}/{}_bench.v", folder, name), text));
  return {};
}

}  // namespace tilewright::driver
