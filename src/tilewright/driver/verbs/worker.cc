// worker: compiles, runs and times what a tuning process tells it to. Not for people.
#include "tilewright/measure/worker.h"

#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/driver/cli.h"
#include "tilewright/driver/tuning/gpu_kernel.h"

namespace tilewright::driver {

void add_worker(CLI::App& app, VerbContext& context) {
  CLI::App* verb = app.add_subcommand("worker", "Measures schedules for another process");
  verb->group("");  // not in the list of verbs
  verb->callback([&context] {
    context.action = []() -> Result<int> {
      return measure::serve_worker(compile::compile_kernel, load_gpu_kernel);
    };
  });
}

}  // namespace tilewright::driver
