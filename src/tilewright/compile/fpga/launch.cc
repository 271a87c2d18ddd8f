#include "tilewright/compile/fpga/launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "tilewright/base/parallel.h"
#include "tilewright/codegen/hls/csim.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/compile/fpga/board_launch.h"
#include "tilewright/compile/fpga/cpp_kernels.h"
#include "tilewright/compile/fpga/design_launch.h"
#include "tilewright/runtime/thread_pool.h"

namespace tilewright::compile {
namespace {

/// The C++ of a design, with its row of the table.
class CsimKernel final : public FpgaKernel {
 public:
  /// The kernels of designs of one structure, compiled together, in their order.
  static Result<std::vector<std::unique_ptr<FpgaKernel>>> load(
      const std::vector<const FpgaNetwork::Design*>& alike, const hw::FpgaDevice& device) {
    CppKernels cpp = TW_TRY(cpp_kernels(alike, device));
    std::vector<codegen::HlsKernel> texts;
    for (CppKernel& one : cpp.kernels) texts.push_back(std::move(one.kernel));
    const auto library =
        std::make_shared<const codegen::CsimLibrary>(TW_TRY(codegen::CsimLibrary::build(texts)));
    std::vector<std::unique_ptr<FpgaKernel>> out;
    for (CppUse& use : cpp.uses) {
      const codegen::HlsKernel& text = texts[use.kernel];
      const tw_kernel found = library->find(text);
      if (found == nullptr)
        return fail(ErrorKind::Package, fmt::format("no kernel {} was made", text.symbol));
      out.emplace_back(new CsimKernel(library, found, std::move(use.row)));
    }
    return out;
  }

  Status run(const std::vector<void*>& buffers, DesignRun&) override {
    std::vector<void*> mine = buffers;
    kernel_(mine.data(), row_.data(), nullptr, nullptr);
    return library_->finished();
  }

 private:
  CsimKernel(std::shared_ptr<const codegen::CsimLibrary> library, tw_kernel kernel,
             std::vector<int64_t> row)
      : library_(std::move(library)), kernel_(kernel), row_(std::move(row)) {}

  std::shared_ptr<const codegen::CsimLibrary> library_;
  tw_kernel kernel_;
  std::vector<int64_t> row_;
};

/// The layers, one after the other; values between them have memory of their own.
class FpgaLaunch final : public runtime::Launch {
 public:
  FpgaLaunch(std::string name, FpgaNetwork network,
             std::vector<std::unique_ptr<FpgaKernel>> kernels, LaunchSettings settings,
             std::shared_ptr<LaunchLog> log)
      : name_(std::move(name)),
        network_(std::move(network)),
        kernels_(std::move(kernels)),
        settings_(std::move(settings)),
        log_(std::move(log)) {
    for (const FpgaNetwork::Value& value : network_.values)
      memory_.emplace_back(value.constant < 0 ? static_cast<size_t>(value.bytes) : 0, '\0');
  }

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    TW_TRY_STATUS(check_sizes("inputs", network_.inputs, inputs));
    TW_TRY_STATUS(check_sizes("outputs", network_.outputs, outputs));
    for (size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(place_of(network_.inputs[i]), inputs[i].data(),
                  static_cast<size_t>(inputs[i].bytes()));
    std::vector<std::pair<std::string, DesignRun>> did;
    for (size_t i = 0; i < network_.calls.size(); ++i) {
      const FpgaNetwork::Call& call = network_.calls[i];
      TW_TRY_STATUS(settings_.observer.check());
      settings_.observer.step("simulating", static_cast<int64_t>(i),
                              static_cast<int64_t>(network_.calls.size()), call.name);
      Status done = run(call, did.emplace_back(call.name, DesignRun()).second);
      if (!done) return tl::unexpected<Error>(std::move(done.error()).at(call.name));
    }
    settings_.observer.end("simulating");
    for (size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i].data(), place_of(network_.outputs[i]),
                  static_cast<size_t>(outputs[i].bytes()));
    if (log_ && !did.empty() && did.front().second.design != nullptr)
      log_->set(name_, design_record(settings_.device, network_.device.clock_mhz, std::move(did)));
    return {};
  }

 private:
  Status check_sizes(const char* what, const std::vector<int>& values,
                     const std::vector<Array>& arrays) const {
    bool fit = values.size() == arrays.size();
    for (size_t i = 0; fit && i < values.size(); ++i)
      fit = arrays[i].bytes() == network_.values[static_cast<size_t>(values[i])].bytes;
    if (fit) return {};
    return fail(ErrorKind::Package,
                fmt::format("the {} of '{}' have other sizes than its code", what, name_));
  }

  char* place_of(int index) {
    const FpgaNetwork::Value& value = network_.values[static_cast<size_t>(index)];
    return value.constant >= 0 ? network_.constants.data() + value.constant
                               : memory_[static_cast<size_t>(index)].data();
  }

  Status run(const FpgaNetwork::Call& call, DesignRun& did) {
    const auto design = static_cast<size_t>(call.design);
    std::vector<void*> buffers;
    size_t next = 0;
    for (const Param& p : network_.designs[design].func.params)
      buffers.push_back(p.values ? const_cast<void*>(p.values->data())
                                 : place_of(call.values[next++]));
    return kernels_[design]->run(buffers, did);
  }

  std::string name_;
  FpgaNetwork network_;
  std::vector<std::unique_ptr<FpgaKernel>> kernels_;
  LaunchSettings settings_;
  std::shared_ptr<LaunchLog> log_;
  std::vector<std::string> memory_;  ///< of values that are no constants
};

using Kernels = std::vector<std::unique_ptr<FpgaKernel>>;
/// What is compiled at once: designs of one structure.
using Build = std::vector<const FpgaNetwork::Design*>;

Result<Kernels> load_build(const hw::FpgaDevice& device, const Build& members,
                           const LaunchSettings& settings) {
  if (settings.device == kFpgaCsim) return CsimKernel::load(members, device);
  if (settings.device == kFpgaXrt) return load_xrt(members, device);
  if (settings.device == kFpgaUio) return load_uio(members, device);
  return load_designs(members, device, settings);
}

/// Every design on the device, several compilers at a time.
Result<Kernels> load_kernels(const FpgaNetwork& network, const LaunchSettings& settings) {
  const std::vector<Build> builds = network.by_structure();
  Kernels kernels(network.designs.size());
  std::mutex lock;
  std::optional<Error> problem;
  int64_t done = 0;
  for_each_part(builds.size(), runtime::default_threads(), [&](size_t b, size_t) {
    const Build& members = builds[b];
    {
      const std::lock_guard<std::mutex> guard(lock);
      if (problem || settings.observer.stop()) return;
      settings.observer.step("compiling designs", done, static_cast<int64_t>(builds.size()),
                             members[0]->func.name);
    }
    Result<Kernels> made = load_build(network.device, members, settings);
    const std::lock_guard<std::mutex> guard(lock);
    ++done;
    if (made)
      for (size_t m = 0; m < members.size(); ++m)
        kernels[static_cast<size_t>(members[m] - network.designs.data())] = std::move((*made)[m]);
    else if (!problem)
      problem = std::move(made.error());
  });
  settings.observer.end("compiling designs");
  if (problem) return tl::unexpected<Error>(std::move(*problem));
  TW_TRY_STATUS(settings.observer.check());
  return kernels;
}

}  // namespace

Result<std::unique_ptr<runtime::Launch>> load_fpga_launch(const std::string& name,
                                                          std::string_view code,
                                                          const LaunchSettings& settings,
                                                          std::shared_ptr<LaunchLog> log) {
  LaunchSettings mine = settings;
  if (mine.device.empty() || mine.device == kFpgaTarget) mine.device = kFpgaCsim;
  std::vector<std::string> ids;
  for (const DeviceRow& row : fpga_runtime().devices()) ids.push_back(row.id);
  if (std::find(ids.begin(), ids.end(), mine.device) == ids.end())
    return fail(ErrorKind::Device, fmt::format("'{}' cannot run code for fpga", mine.device),
                fmt::format("devices for it: {}", fmt::join(ids, ", ")));
  FpgaNetwork network = TW_TRY(parse_fpga_network(code));
  auto kernels = TW_TRY(load_kernels(network, mine));
  return std::unique_ptr<runtime::Launch>(std::make_unique<FpgaLaunch>(
      name, std::move(network), std::move(kernels), std::move(mine), std::move(log)));
}

}  // namespace tilewright::compile
