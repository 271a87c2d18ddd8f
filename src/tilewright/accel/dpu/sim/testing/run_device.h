// Runs programs on devices, for tests.
#pragma once

#include <string>

#include "tilewright/accel/dpu/sim/fsim.h"
#include "tilewright/accel/dpu/sim/tsim.h"

namespace tilewright::dpu::testing {

/// DDR after the program, or the error.
inline Result<std::string> image_after(Device& device, const Program& program,
                                       LaunchReport* report = nullptr) {
  LaunchReport all = TW_TRY(execute(device, program, {.record_times = true}));
  if (report != nullptr) *report = std::move(all);
  std::string image(program.image.size(), '\0');
  TW_TRY_STATUS(device.read(program.base, image.data(), image.size()));
  return image;
}
inline Result<std::string> fsim_image(const Program& program) {
  return image_after(*make_fsim(program.config, program.end()), program);
}
inline Result<std::string> tsim_image(const Program& program, const Jitter& jitter = {},
                                      LaunchReport* report = nullptr) {
  return image_after(*make_tsim(program.config, program.end(), jitter), program, report);
}

}  // namespace tilewright::dpu::testing
