// measure-child: compiles, runs and times what a tuning process tells it to. Not for people.
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/tuning/gpu_kernel.h"
#include "tilewright/driver/tuning/runner_kernel.h"
#include "tilewright/measure/worker.h"

namespace tilewright::driver {

void add_measure_child(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("measure-child", "Measures schedules for another process");
  verb.hide();
  verb.callback([&context] {
    context.action = []() -> Result<int> {
      return measure::serve_worker(
          compile::compile_kernel, [](const Func& scheduled, const hw::Target& target, int threads,
                                      const std::string& device) {
            const auto load = target.gpu() != nullptr ? load_gpu_kernel : load_runner_kernel;
            return load(scheduled, target, threads, device);
          });
    };
  });
}

}  // namespace tilewright::driver
