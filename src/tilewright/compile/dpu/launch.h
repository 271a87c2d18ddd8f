// A DPU program as a launch of the runtime.
#pragma once

#include <memory>
#include <string>

#include "tilewright/compile/dpu/device.h"

namespace tilewright::compile {

/// `program` on `device`, whose memory then has the program's image. Inputs and outputs hold whole
/// groups of `pe` images, each as in DDR: a program runs once for each group, and the kernels of
/// the configuration take groups in turn. An input of the format unit is taken out of its words. An
/// output with four axes, [n, c, h, w], is given as images.
/// errors: Invalid (the program is for other hardware), those of the device.
Result<std::unique_ptr<runtime::Launch>> make_dpu_launch(
    const std::string& name, std::shared_ptr<const dpu::Program> program,
    std::unique_ptr<dpu::Device> device, const LaunchSettings& settings,
    std::shared_ptr<LaunchLog> log);

}  // namespace tilewright::compile
