#include "tilewright/compile/fpga/launch.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tilewright/codegen/hls/csim.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/text.h"

namespace tilewright::compile {
namespace {

Result<codegen::HlsKernel> hls_kernel_of(const Func& func, const hw::FpgaDevice& device) {
  const Func prepared = TW_TRY(codegen::prepare_hls(func));
  return codegen::emit_hls(prepared, TW_TRY(lower::processes_of(prepared)), device);
}

/// The C++ as a launch: no memory of the runtime is touched but inputs and outputs.
class CsimLaunch final : public runtime::Launch {
 public:
  CsimLaunch(Func func, codegen::CsimLibrary library, tw_kernel kernel)
      : func_(std::move(func)), library_(std::move(library)), kernel_(kernel) {}

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    std::vector<void*> buffers;
    size_t input = 0, output = 0;
    for (const Param& p : func_.params) {
      if (p.mode == ParamMode::Out)
        buffers.push_back(outputs.at(output++).data());
      else
        buffers.push_back(
            const_cast<void*>(p.values ? p.values->data() : inputs.at(input++).data()));
    }
    kernel_(buffers.data(), nullptr, nullptr, nullptr);
    return library_.finished();
  }

 private:
  Func func_;
  codegen::CsimLibrary library_;
  tw_kernel kernel_;
};

}  // namespace

Result<std::string> fpga_code(const Func& func, const hw::FpgaDevice& device) {
  for (const Param& p : func.params) {
    const char* what = p.mode == ParamMode::InOut ? "is read and written"
                       : !p.strides.empty()       ? "has strides"
                                                  : nullptr;
    if (what != nullptr)
      return fail(ErrorKind::Unsupported,
                  fmt::format("parameter {} of '{}' {}", p.buffer.name(), func.name, what),
                  "programs for FPGAs take whole arrays in and give whole arrays out",
                  "`tilewright hls` writes its C++");
  }
  TW_TRY(hls_kernel_of(func, device));
  const nlohmann::json json = {{"device", hw::to_toml(device)}, {"program", print(func)}};
  return json.dump();
}

Result<FpgaCode> parse_fpga_code(std::string_view code) {
  const nlohmann::json json = nlohmann::json::parse(code, nullptr, false);
  if (!json.is_object() || !json.contains("device") || !json["device"].is_string() ||
      !json.contains("program") || !json["program"].is_string())
    return fail(ErrorKind::Package, "the code for an FPGA is damaged");
  return FpgaCode{TW_TRY(hw::parse_fpga_device(json["device"].get<std::string>(), "package")),
                  TW_TRY(parse_func(json["program"].get<std::string>()))};
}

Result<std::unique_ptr<runtime::Launch>> load_fpga_launch(std::string_view code,
                                                          const std::string& id) {
  if (!id.empty() && id != kFpgaTarget && id != kFpgaCsim)
    return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for fpga", id),
                fmt::format("devices for it: {}, {}, {}", kFpgaCsim, kFpgaTsim, kFpgaRtl));
  FpgaCode parsed = TW_TRY(parse_fpga_code(code));
  const codegen::HlsKernel kernel = TW_TRY(hls_kernel_of(parsed.func, parsed.device));
  codegen::CsimLibrary library = TW_TRY(codegen::CsimLibrary::build({kernel}));
  const tw_kernel found = library.find(kernel);
  if (found == nullptr)
    return fail(ErrorKind::Package, fmt::format("no kernel {} was made", kernel.symbol));
  return std::unique_ptr<runtime::Launch>(
      new CsimLaunch(std::move(parsed.func), std::move(library), found));
}

}  // namespace tilewright::compile
