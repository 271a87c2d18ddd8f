#include "tilewright/driver/tuning/runner_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tilewright/base/file.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/fleet/measure/runner_door.h"

namespace tilewright::driver {
namespace {

constexpr int64_t kMostRunsAtOnce = 4000;  ///< that a runner lists
constexpr double kForEver = 1e9;           ///< who waits for this process knows how long

tl::unexpected<Error> no_answer() {
  return fail(ErrorKind::Device, "the runner's answer is none", {},
              "a tilewright-runner of this program's version");
}

Shape shape_of(const Param& param) {
  Shape shape;
  for (const Expr& extent : param.buffer.shape()) shape.push_back(as_int(extent).value_or(0));
  return shape;
}

class RunnerKernel final : public measure::DeviceKernel {
 public:
  RunnerKernel(const Func& func, fleet::DoorRunner runner) : runner_(std::move(runner)) {
    for (size_t i = 0; i < func.params.size(); ++i) {
      const Param& param = func.params[i];
      if (param.values) continue;
      (param.mode == ParamMode::Out ? results_ : inputs_).push_back({i, shape_of(param)});
    }
  }

  Status write(const std::vector<Array>& operands) override {
    sent_.clear();
    for (const Operand& input : inputs_)
      sent_.push_back(TW_TRY(npy_bytes(operands[input.index].reshaped(input.shape))));
    return {};
  }

  Result<double> run(int64_t calls) override {
    const nlohmann::json request = {
        {"warmup", 0}, {"runs", std::min(calls, kMostRunsAtOnce)}, {"seconds", 0}};
    auto answer = runner_.link.ask(request, sent_, kForEver, {});
    if (!answer) return silence(answer.error());
    const nlohmann::json& reply = answer->reply;
    answered_ = std::move(answer->outputs);
    try {
      if (!reply.at("ok").get<bool>())
        return fail(ErrorKind::Device, "the runner does not run it",
                    reply.at("error").get<std::string>());
      if (answered_.size() != results_.size()) return no_answer();
      const auto times = reply.at("run_ns").get<std::vector<double>>();
      if (times.empty()) return no_answer();
      return std::accumulate(times.begin(), times.end(), 0.) / static_cast<double>(times.size());
    } catch (const nlohmann::json::exception&) {
      return no_answer();
    }
  }

  Status read(std::vector<Array>& operands) override {
    for (size_t i = 0; i < results_.size(); ++i) {
      Array& into = operands[results_[i].index];
      const Array value = TW_TRY(parse_npy(answered_.at(i), "a result"));
      if (value.dtype() != into.dtype() || value.bytes() != into.bytes()) return no_answer();
      std::memcpy(into.data(), value.data(), static_cast<size_t>(value.bytes()));
    }
    return {};
  }

 private:
  struct Operand {
    size_t index;  ///< of the parameter
    Shape shape;
  };

  tl::unexpected<Error> silence(fleet::Silence why) const {
    const std::string end =
        why == fleet::Silence::Gone ? fleet::ask_how_it_ended(fleet::kDoorFile, runner_.id) : "";
    if (!runner_.link.received()) return fleet::refused_by_runner(why, end);
    if (why == fleet::Silence::Nonsense) return no_answer();
    return fail(ErrorKind::Device, "the runner ended", end);
  }

  fleet::DoorRunner runner_;
  std::vector<Operand> inputs_, results_;
  std::vector<std::string> sent_, answered_;  ///< .npy files
};

Status check_parameters(const Func& func) {
  for (const Param& param : func.params) {
    const std::string what = fmt::format("'{}' is not measured behind a runner", func.name);
    const auto refused = [&](const char* why) {
      return fail(ErrorKind::Unsupported, what, fmt::format("'{}' {}", param.buffer.name(), why));
    };
    if (!param.strides.empty()) return refused("is part of a larger buffer");
    if (param.mode == ParamMode::InOut) return refused("is changed in place");
    if (!param.values && param.buffer.dtype() == DType::BF16)
      return refused("is bf16, which no .npy file holds");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<measure::DeviceKernel>> load_runner_kernel(const Func& scheduled,
                                                                  const hw::Target& target,
                                                                  int threads,
                                                                  const std::string& /*device*/) {
  TW_TRY_STATUS(check_parameters(scheduled));
  compile::CompileOptions options;
  options.target = target;
  options.threads = threads;
  options.jobs = 1;
  options.math = scheduled.math;
  options.use_c = !compile::has_llvm();
  const schedule::Trace as_it_is;
  const compile::CompiledModel model = TW_TRY(compile::compile_func(scheduled, options, &as_it_is));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(compile::save_package(folder.file("kernel.twm"), model));
  const std::string package = TW_TRY(read_file(folder.file("kernel.twm")));
  fleet::DoorRunner runner = TW_TRY(fleet::ask_for_runner(fleet::kDoorFile));
  runner.link.give({{"device", "cpu"}, {"threads", threads}}, package);
  return std::make_unique<RunnerKernel>(scheduled, std::move(runner));
}

}  // namespace tilewright::driver
