// What a worker of a fleet does with jobs of the kinds `measure` and `race`: measures candidates on
// a device of its machine, in processes of its own.
//
// The processes and a few kernels stay loaded from job to job of one login. A candidate that
// crashes, hangs or takes all memory is an outcome; the process is started anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tilewright/fleet/job_server.h"
#include "tilewright/measure/running_worker.h"

namespace tilewright::fleet {

struct ServedDevice {
  std::string id;                    ///< `cpu`, `opencl:0`, `runner:CMD`
  std::string triple;                ///< of the processor behind a runner
  std::string name;                  ///< of a GPU, as its driver calls it
  measure::StartWorker start;        ///< of the processes; empty: unconfined
  std::vector<std::string> worker;   ///< their program; empty: this one, as measure-child
  int64_t memory_bytes = 2LL << 30;  ///< per candidate, beyond what the kernels' operands need
};
std::unique_ptr<JobServer> measure_server(ServedDevice device);

}  // namespace tilewright::fleet
