// The figures that `bench_fpga NAME` prints, as tables for bench/results/fpga.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::bench {

// By the cost model alone.
void alexnet();
void fig6c();
void overlap();
/// C1 to C15; no devices: all four, no types: f32, bf16, i16, i8.
void widths(const std::vector<std::string>& devices, const std::vector<std::string>& types);
void split();
void network();
void searchers(int trials, int seeds);

/// What the figures below are about; empty lists mean all.
struct Selection {
  std::vector<std::string> layers;  ///< `C1` to `C15`
  std::string device = "vu9p";
  int count = 0;      ///< points of each layer, or designs; 0: the figure's own number
  uint64_t seed = 1;  ///< of what is drawn
  double limit = 0;   ///< the figure's own unit; 0: its own number
  /// A file with what was found so far, which is not looked at again (record.h); empty: none.
  std::string record;
  bool details = false;  ///< also who waits for what
};

// These run what is generated. The status of the program: 0 if nothing differs.

/// C1 to C15 at full size, f32 and i8: the C++ against the code for processors.
int layers_check(const Selection& selection);
/// The Verilog under Verilator against the cycle simulator: designs drawn at random, unless layers
/// are given, and layers scaled down.
int rtl(const Selection& selection);
/// Layers scaled down as one design: one build of the Verilog serves them all, with a table of
/// numbers for each; against the cycle simulator and the interpreter.
int shared(const Selection& selection);
/// Random points of the space of designs: the model against the cycle simulator. `limit`: points
/// that take more cycles by the model are not simulated.
int model_accuracy(const Selection& selection);
/// The model's best design of each layer in each type: the model against the cycle simulator.
int model_of_best(const Selection& selection, const std::vector<std::string>& types);
/// Designs drawn at random: the model's cells against Yosys.
int cells(const Selection& selection);

}  // namespace tilewright::bench
