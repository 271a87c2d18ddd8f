#include "tilewright/compile/fpga/board_launch.h"

#include <fmt/format.h>

#include <filesystem>

#include "tilewright/accel/fpga/rtl/axi_top.h"
#include "tilewright/base/environment.h"
#include "tilewright/compile/fpga/cpp_kernels.h"
#include "tilewright/runtime/fpga/xrt.h"

namespace tilewright::compile {
namespace {

class UioKernel final : public FpgaKernel {
 public:
  UioKernel(const Func& func, fpga::Design design, runtime::BoardKernel kernel,
            std::shared_ptr<runtime::Board> board)
      : params_(func.params),
        kernel_(std::move(kernel)),
        design_(std::make_shared<const fpga::Design>(std::move(design))),
        board_(std::move(board)) {}

  Status run(const std::vector<void*>& buffers, DesignRun& did) override {
    std::vector<runtime::KernelArgument> arguments;
    for (size_t i = 0; i < params_.size(); ++i) {
      const auto bytes = static_cast<uint64_t>(TW_TRY(param_bytes(params_[i])));
      const bool writes = params_[i].mode == ParamMode::Out;
      arguments.push_back({buffers[i], bytes, !writes, writes});
    }
    did.design = design_;
    did.report.cycles =
        static_cast<int64_t>(TW_TRY(runtime::run_kernel(*board_, kernel_, arguments)));
    return {};
  }

 private:
  std::vector<Param> params_;
  runtime::BoardKernel kernel_;
  std::shared_ptr<const fpga::Design> design_;
  std::shared_ptr<runtime::Board> board_;
};

/// An argument of a kernel in C++, without its memory.
struct XrtPort {
  int param = -1;  ///< -1: memory of the kernel's own
  runtime::KernelArgument argument;
};

class XrtFpgaKernel final : public FpgaKernel {
 public:
  XrtFpgaKernel(std::vector<XrtPort> ports, std::vector<int64_t> row,
                std::shared_ptr<runtime::XrtKernel> kernel)
      : ports_(std::move(ports)), row_(std::move(row)), kernel_(std::move(kernel)) {}

  Status run(const std::vector<void*>& buffers, DesignRun&) override {
    std::vector<runtime::KernelArgument> arguments;
    for (const XrtPort& port : ports_) {
      arguments.push_back(port.argument);
      if (port.param >= 0 && port.argument.same_as < 0)
        arguments.back().data = buffers[static_cast<size_t>(port.param)];
    }
    return kernel_->run(arguments, row_);
  }

 private:
  std::vector<XrtPort> ports_;
  std::vector<int64_t> row_;
  std::shared_ptr<runtime::XrtKernel> kernel_;
};

/// `func`: the design's own program, with the kernel's parameters.
Result<std::vector<XrtPort>> xrt_ports(const Func& func, const codegen::HlsKernel& kernel) {
  std::vector<XrtPort> ports;
  std::map<Buffer, int> first;
  for (const codegen::HlsPort& port : kernel.ports) {
    XrtPort& made = ports.emplace_back();
    const auto [it, is_new] = first.emplace(port.buffer, static_cast<int>(ports.size()) - 1);
    if (!is_new) {  // what one port of a buffer does, all do
      XrtPort& shared = ports[static_cast<size_t>(it->second)];
      shared.argument.writes |= port.writes;
      made.argument.same_as = it->second;
      made.param = port.param;
      continue;
    }
    Param param;
    param.buffer = port.buffer;
    if (port.param >= 0) param = func.params[static_cast<size_t>(port.param)];
    made.param = port.param;
    made.argument.bytes = static_cast<uint64_t>(TW_TRY(param_bytes(param)));
    made.argument.reads = port.param >= 0 && param.mode != ParamMode::Out;
    made.argument.writes = port.param >= 0 && port.writes;
  }
  return ports;
}

}  // namespace

runtime::BoardNames board_names(const hw::FpgaDevice& device) {
  if (device.board.registers.empty()) return {};
  return {device.board.registers, device.board.memory};
}

Result<std::vector<runtime::BoardKernel>> board_kernels(const SharedDesigns& shared) {
  std::vector<runtime::BoardKernel> kernels;
  for (const fpga::Design& design : shared.designs) {
    TW_TRY_STATUS(fpga::rtl_supports(design));
    runtime::BoardKernel& kernel = kernels.emplace_back();
    kernel.identity = fpga::identity(design, shared.numbers);
    kernel.table = fpga::verilog(design, shared.numbers).table;
    constexpr size_t kMost = (runtime::kTableEnd - runtime::kTableRegister) / 4;
    if (kernel.table.size() > kMost)
      return fail(ErrorKind::Capacity, "the layers' numbers do not fit into the registers",
                  fmt::format("numbers: needs {} of {}", kernel.table.size(), kMost),
                  "compile with --designs own");
  }
  return kernels;
}

Result<std::vector<std::unique_ptr<FpgaKernel>>> load_uio(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device) {
  SharedDesigns shared = TW_TRY(shared_designs(alike, device));
  std::vector<runtime::BoardKernel> kernels = TW_TRY(board_kernels(shared));
  const std::shared_ptr<runtime::Board> board = TW_TRY(runtime::open_uio(board_names(device)));
  TW_TRY_STATUS(runtime::check_identity(*board, kernels[0].identity));
  std::vector<std::unique_ptr<FpgaKernel>> loaded;
  for (size_t i = 0; i < alike.size(); ++i)
    loaded.push_back(std::make_unique<UioKernel>(alike[i]->func, std::move(shared.designs[i]),
                                                 std::move(kernels[i]), board));
  return loaded;
}

Result<std::vector<std::unique_ptr<FpgaKernel>>> load_xrt(
    const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device) {
  CppKernels cpp = TW_TRY(cpp_kernels(alike, device));
  TW_TRY(runtime::xrt_card());
  std::vector<std::shared_ptr<runtime::XrtKernel>> opened;
  for (const CppKernel& one : cpp.kernels) {
    const std::string file = fmt::format(
        "{}/{}.xclbin", environment("TILEWRIGHT_XCLBIN").value_or("."), one.kernel.symbol);
    if (!std::filesystem::exists(file))
      return fail(ErrorKind::Package, fmt::format("there is no '{}'", file), {},
                  "build it: `tilewright hls` of the program or package, then build.sh PLATFORM; "
                  "TILEWRIGHT_XCLBIN names its folder");
    opened.push_back(TW_TRY(runtime::open_xrt(file, one.kernel.symbol)));
  }
  std::vector<std::unique_ptr<FpgaKernel>> loaded;
  for (size_t i = 0; i < alike.size(); ++i) {
    CppUse& use = cpp.uses[i];
    loaded.push_back(std::make_unique<XrtFpgaKernel>(
        TW_TRY(xrt_ports(alike[i]->func, cpp.kernels[use.kernel].kernel)), std::move(use.row),
        opened[use.kernel]));
  }
  return loaded;
}

}  // namespace tilewright::compile
