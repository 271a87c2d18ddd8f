// Random small networks, random hardware, and programs run on the functional simulator.
#pragma once

#include <string>
#include <vector>

#include "tilewright/accel/dpu/config.h"
#include "tilewright/accel/dpu/device.h"
#include "tilewright/accel/dpu/program.h"
#include "tilewright/base/rng.h"
#include "tilewright/codegen/dpu/network.h"

namespace tilewright::dpu {

/// Seeded weights, biases and activations, with shifts that use the range of int8.
void fill(Network& network, Rng& rng);
/// Up to `layers` layers of all kinds on maps of up to `size` rows and columns. `all`: false for
/// seeds that were found before there were slices and averages without padding.
Network random_network(Rng& rng, int layers, int64_t size, bool all = true);
/// Both modes of the compiler, 1 to 8 images, memories of 1 to 1/`shrink` of the default.
Config random_config(Rng& rng, int64_t shrink);

/// Images of all inputs, of all results: [image][input or output] as [channels][height][width].
using Images = std::vector<std::vector<std::vector<int8_t>>>;
Images random_images(const Network& network, const Config& config, Rng& rng);
/// What the functional simulator makes of them.
Result<Images> run_program(const Program& program, const Images& images);
/// Or another device, which has room for the program.
Result<Images> run_program(Device& device, const Program& program, const Images& images);
/// What `interpret` says. Empty, or where the two differ first.
std::string difference(const Network& network, const Images& images, const Images& results);
/// A network as text, for messages of tests.
std::string describe(const Network& network);

}  // namespace tilewright::dpu
