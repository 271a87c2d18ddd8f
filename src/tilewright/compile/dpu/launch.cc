// Running a DPU program for any number of images.
//
//   input [3 groups][H][W][C/16][4][16], program for one group: three rounds; with two kernels,
//   which work side by side, they take the time of two
#include "tilewright/compile/dpu/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/integers.h"

namespace tilewright::compile {
namespace {

std::string_view bytes_of(const Array& array) {
  return {static_cast<const char*>(array.data()), static_cast<size_t>(array.bytes())};
}

class DpuLaunch final : public runtime::Launch {
 public:
  DpuLaunch(std::string name, std::shared_ptr<const dpu::Program> program,
            std::unique_ptr<dpu::Device> device, LaunchSettings settings,
            std::shared_ptr<LaunchLog> log)
      : name_(std::move(name)),
        program_(std::move(program)),
        device_(std::move(device)),
        settings_(std::move(settings)),
        log_(std::move(log)) {}

  Status prepare() { return dpu::load(*device_, *program_); }

  Status run(const std::vector<Array>& inputs, std::vector<Array>& outputs) override {
    const size_t rounds = TW_TRY(rounds_of(inputs, outputs));
    dpu::LaunchReport total;
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < inputs.size(); ++i) TW_TRY_STATUS(write_input(i, inputs[i], round));
      TW_TRY_STATUS(dpu::run_format_unit(*device_, *program_));
      const bool dumps = !settings_.dump_folder.empty() && round + 1 == rounds;
      dpu::Program dumped;
      if (dumps) {
        dumped = *program_;
        TW_TRY_STATUS(device_->read(dumped.base, dumped.image.data(), dumped.image.size()));
      }
      accel::LaunchOptions options;
      options.record_times = settings_.record_times;
      Result<dpu::LaunchReport> report = accel::launch_runs(*device_, *program_, options);
      if (!report) return tl::unexpected<Error>(std::move(report.error()).at(name_));
      if (dumps) TW_TRY_STATUS(dump(dumped, *report));
      accel::add(*std::move(report), total);
      for (size_t o = 0; o < outputs.size(); ++o) TW_TRY_STATUS(read_output(o, outputs[o], round));
    }
    // Kernels take rounds in turn, each as long as the others.
    const auto kernels = static_cast<uint64_t>(program_->config.kernels);
    total.cycles = total.cycles / rounds * ceil_div(static_cast<uint64_t>(rounds), kernels);
    log_->set(name_,
              std::make_shared<DpuLaunchRecord>(device_->name(), program_, std::move(total)));
    return {};
  }

 private:
  /// Bytes of one group of images in the tensor's array, which has words whoever reads them.
  uint64_t group_bytes(dpu::DdrTensor tensor) const {
    tensor.reg = dpu::Reg::Input;
    return dpu::bytes_of(program_->config, tensor);
  }

  /// Whether it holds images and not words.
  static bool is_images(const Array& array) { return array.shape().size() == 4; }

  /// errors: Package (arrays that hold no whole groups, or not equally many).
  Result<size_t> rounds_of(const std::vector<Array>& inputs,
                           const std::vector<Array>& outputs) const {
    size_t rounds = 0;
    const auto check = [&](const char* what, const std::vector<Array>& arrays,
                           const std::vector<dpu::DdrTensor>& tensors) -> Status {
      if (arrays.size() != tensors.size())
        return fail(ErrorKind::Package, fmt::format("'{}' has {} {}s, the program passes {}", name_,
                                                    tensors.size(), what, arrays.size()));
      for (size_t i = 0; i < arrays.size(); ++i) {
        const auto bytes = static_cast<uint64_t>(arrays[i].bytes());
        const uint64_t group = group_bytes(tensors[i]);
        if (is_images(arrays[i])) continue;
        if (rounds == 0) rounds = bytes / group;
        if (rounds == 0 || bytes != rounds * group)
          return fail(ErrorKind::Package,
                      fmt::format("{} '{}' of '{}' has {} bytes for {} images, not {}", what,
                                  tensors[i].name, name_, group, program_->config.pe, bytes));
      }
      return {};
    };
    TW_TRY_STATUS(check("input", inputs, program_->input_tensors));
    TW_TRY_STATUS(check("output", outputs, program_->output_tensors));
    return rounds;
  }

  Status write_input(size_t i, const Array& array, size_t round) {
    const dpu::DdrTensor& tensor = program_->input_tensors[i];
    const uint64_t bytes = group_bytes(tensor);
    const std::string_view group = bytes_of(array).substr(round * bytes, bytes);
    const uint64_t address = program_->inputs[i].address;
    if (tensor.reg != dpu::Reg::Format) return accel::write_through(*device_, address, group);
    return accel::write_through(*device_, address, plain(tensor, group));
  }

  /// [H][W][1][pe][16] as [pe][H][W][channels].
  std::string plain(const dpu::DdrTensor& tensor, std::string_view words) const {
    const auto pe = static_cast<size_t>(program_->config.pe);
    const auto pixels = static_cast<size_t>(tensor.height * tensor.width);
    const auto channels = static_cast<size_t>(tensor.channels);
    std::string bytes(pe * pixels * channels, '\0');
    for (size_t b = 0; b < pe; ++b)
      for (size_t p = 0; p < pixels; ++p)
        words.copy(bytes.data() + (b * pixels + p) * channels, channels,
                   (p * pe + b) * dpu::kLanes);
    return bytes;
  }

  Status read_output(size_t o, Array& array, size_t round) {
    const dpu::DdrTensor& tensor = program_->output_tensors[o];
    const uint64_t bytes = group_bytes(tensor);
    auto* data = static_cast<char*>(array.data());
    const uint64_t address = program_->outputs[o].address;
    if (!is_images(array)) return device_->read(address, data + round * bytes, bytes);
    std::string words(bytes, '\0');
    TW_TRY_STATUS(device_->read(address, words.data(), bytes));
    const auto pe = static_cast<size_t>(program_->config.pe);
    const auto pixels = static_cast<size_t>(tensor.height * tensor.width);
    const auto channels = static_cast<size_t>(tensor.channels);
    const auto word_groups = static_cast<size_t>(dpu::groups(tensor.channels));
    const auto images = static_cast<size_t>(array.shape()[0]);
    for (size_t b = 0; b < pe && round * pe + b < images; ++b)
      for (size_t c = 0; c < channels; ++c)
        for (size_t p = 0; p < pixels; ++p)
          data[((round * pe + b) * channels + c) * pixels + p] =
              words[((p * word_groups + c / dpu::kLanes) * pe + b) * dpu::kLanes + c % dpu::kLanes];
    return {};
  }

  Status dump(const dpu::Program& dumped, const dpu::LaunchReport& report) const {
    dpu::DumpResults results;
    results.final_image.resize(dumped.image.size());
    TW_TRY_STATUS(
        device_->read(dumped.base, results.final_image.data(), results.final_image.size()));
    if (!report.times.empty()) results.times.push_back(report.times);
    return dpu::write_dump(settings_.dump_folder + "/" + name_, dumped, results);
  }

  std::string name_;
  std::shared_ptr<const dpu::Program> program_;
  std::unique_ptr<dpu::Device> device_;
  LaunchSettings settings_;
  std::shared_ptr<LaunchLog> log_;
};

}  // namespace

Result<std::unique_ptr<runtime::Launch>> make_dpu_launch(
    const std::string& name, std::shared_ptr<const dpu::Program> program,
    std::unique_ptr<dpu::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log) {
  auto launch = std::make_unique<DpuLaunch>(name, std::move(program), std::move(device), settings,
                                            std::move(log));
  TW_TRY_STATUS(launch->prepare());
  return launch;
}

}  // namespace tilewright::compile
