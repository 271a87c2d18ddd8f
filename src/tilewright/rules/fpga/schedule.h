// The steps that make a program read, compute and write at the same time, for a design of the
// model.
//
//   C[i, j] += A[i, l] * B[l, j]; D = max(C + bias, 0)      design 8x1x4 tile 16x8x1x16
//     ->  for tiles of the result, for tiles of l: A.t, B.t are read, C.t is summed up
//         (8 columns, 4 rows side by side), D is written; blocks of A.t, B.t, C.t are channels
//
// What the model decides beyond these steps is left at its least: one pipeline, one port for each
// tensor, tensors laid out as they are.
#pragma once

#include "tilewright/cost/fpga/search.h"
#include "tilewright/schedule/step.h"

namespace tilewright::rules {

struct FpgaSchedule {
  schedule::Trace trace;
  cost::FpgaDesign design;
  cost::FpgaTime time;    ///< of the sum of products, by the model
  hw::FpgaCells cells;    ///< likewise, of the path that was asked for
  hw::FpgaCells verilog;  ///< of our Verilog; none where the device says nothing of it
  Func func;              ///< with the steps applied
};

/// `design` as steps for `func`, a sum of products with perhaps copies that pad before it and one
/// element-wise block behind it. requires: no_steps() is empty.
/// errors: Unsupported (another program), those of the steps.
Result<schedule::Trace> fpga_trace(const Func& func, const cost::FpgaModel& model,
                                   const cost::FpgaDesign& design);

/// Why `design` has no steps; empty where it has: what works side by side divides its tile; tiles
/// of rows and pixels are no larger than their loops, and those of groups of channels divide them;
/// at most 4096 products are side by side. Other tiles may go over the end of their loop: channels
/// are rounded up with zeros, pixels that are too many are not written.
std::string no_steps(const cost::FpgaModel& model, const cost::FpgaDesign& design);

/// Whether channels are in groups, which are a loop around all tiles.
bool has_groups(const cost::FpgaModel& model);

/// Bytes of an element that `func` writes.
int64_t written_bytes(const Func& func);

/// Whether pixels of the result read overlapping windows: which bank a pixel of the image lies in
/// then depends on the tap, and several side by side would need all banks each.
bool reads_windows(const cost::FpgaModel& model);

/// What of the model's designs has steps for `func`: as `no_steps` says, with one pipeline, one
/// port for each tensor, tensors as they are.
cost::FpgaSearch steps_search(const Func& func, const cost::FpgaModel& model);

/// The model of the code that is generated for `func`.
/// errors: Unsupported (no single sum of products; an operator that the device lacks).
Result<cost::FpgaModel> steps_model(const Func& func, const hw::FpgaDevice& device,
                                    hw::FpgaPath path = hw::FpgaPath::Hls);

/// `func` with `design`, whose time is known, in memories of the size `buffers`. errors: those of
/// fpga_trace.
Result<FpgaSchedule> fpga_schedule(const Func& func, const cost::FpgaModel& model,
                                   const cost::FpgaBest& design, const cost::FpgaRams& buffers);

/// The model's best design of `func` that has steps, as a schedule. errors: also Capacity.
Result<FpgaSchedule> best_fpga_schedule(const Func& func, const hw::FpgaDevice& device,
                                        hw::FpgaPath path = hw::FpgaPath::Hls);

}  // namespace tilewright::rules
