// What a program, that is a mapping, is worth: the HASCO paper's Figures 2 and 7 (c).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/accel/spatial/design.h"

namespace tilewright::bench {

/// `count` programs of a product of 512x512 matrices, drawn at random for each of `seeds` seeds, on
/// the paper's two accelerators. Prints how each one's best program does on the other.
/// source: HASCO, Figure 2.
nlohmann::ordered_json programs_on_two_designs(int count, int seeds);

/// The best mapping of each choice of loops, operators of a suite on 8x8 GEMM units with 256 KiB
/// and 4 banks. source: HASCO, Figure 7 (c).
nlohmann::ordered_json choices_of_operators(const std::string& workload_file,
                                            const std::string& suites, spatial::Dataflow dataflow);

}  // namespace tilewright::bench
