// A device of a fleet that computes nothing: its costs are those of the machine's model, changed in
// a way that can be searched. Tests and benchmarks of a fleet use many of them on one machine.
//
// The cost of a candidate is its `prior` times a factor for each decision of its point, between 0.7
// and 1.4 and the same on all devices of one seed: `a: i=4 j=8` costs prior x f(i=4) x f(j=8). The
// rules' schedule has no decisions, so it costs its prior. What is posted differs from that by
// noise of 1 % (one standard deviation).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tilewright/fleet/job_server.h"

namespace tilewright::fleet {

struct ModelDevice {
  uint64_t seed = 0;
  uint64_t other = 0;    ///< not 0: another machine than it says, with other factors
  uint64_t id = 0;       ///< tells devices of several workers on one machine apart
  double seconds = .25;  ///< that a candidate takes
};
/// `model`, `model:seed=3,seconds=0.1,other=7,id=2`. errors: Usage.
Result<ModelDevice> parse_model_device(std::string_view text);

/// Cost without noise. requires: prior > 0. units: ns.
double model_cost(const ModelDevice& device, double prior, std::string_view point);

/// Does jobs of the kinds `measure` and `race`. `key`: of the device, for its noise.
std::unique_ptr<JobServer> model_server(const ModelDevice& device, std::string key);

}  // namespace tilewright::fleet
