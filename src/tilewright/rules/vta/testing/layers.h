// Layers as the graph makes them, for tests: convolution on tiles, then requantisation.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tilewright/accel/vta/config.h"
#include "tilewright/accel/vta/sim/tsim.h"
#include "tilewright/base/check.h"
#include "tilewright/codegen/vta/vta.h"
#include "tilewright/interp/interp.h"
#include "tilewright/rules/common/testing/kernels.h"
#include "tilewright/rules/vta/schedule.h"
#include "tilewright/tensor/op.h"

namespace tilewright::rules {

struct TestLayer {
  int64_t n = 1, in = 1, out = 1;  ///< images, blocks of input and output channels
  int64_t h = 4, w = 4, kernel = 1, stride = 1, pad = 0, groups = 1, dilation = 1;
  bool residual = false;
};

inline tensor::Tensor apply_op(const std::string& op, tensor::Attrs attrs,
                               const std::vector<tensor::Tensor>& inputs) {
  tensor::OpCall call;
  call.domain = "tilewright", call.op = op, call.attrs = std::move(attrs);
  for (const tensor::Tensor& t : inputs)
    call.inputs.push_back(t ? tensor::InputInfo{true, t.dtype(), t.shape(), {}}
                            : tensor::InputInfo{false, DType::I32, {}, {}});
  const auto types = tensor::infer(call);
  TW_CHECK(types, "{}", to_string(types.error()));
  return tensor::find_op(call.domain, op)->define(call, inputs)[0];
}

inline Func make_layer(const TestLayer& l, const vta::Config& c) {
  using tensor::placeholder;
  const auto x = placeholder("x", DType::I8, {l.n, l.in, l.h, l.w, c.batch(), c.block_in()});
  const auto w = placeholder(
      "w", DType::I8, {l.out, l.in / l.groups, l.kernel, l.kernel, c.block_out(), c.block_in()},
      ParamMode::Const);
  tensor::Attrs conv, quantise;
  conv.values["strides"] = std::vector<int64_t>{l.stride, l.stride};
  conv.values["pads"] = std::vector<int64_t>{l.pad, l.pad, l.pad, l.pad};
  conv.values["dilations"] = std::vector<int64_t>{l.dilation, l.dilation};
  conv.values["groups"] = l.groups;
  quantise.values["shift"] = int64_t{5};
  quantise.values["lo"] = int64_t{0};
  const auto sum = apply_op("TileConv", conv, {x, w});
  const auto bias =
      placeholder("bias", DType::I32, {1, l.out, 1, 1, c.batch(), c.block_out()}, ParamMode::Const);
  std::vector<tensor::Tensor> inputs = {sum, bias}, params = {x, w, bias};
  if (l.residual) {
    quantise.values["residual_shift"] = int64_t{2};
    params.push_back(placeholder("r", DType::I8, sum.shape()));
    inputs.push_back(params.back());
  }
  const auto y = apply_op("Requantize", quantise, inputs);
  return tensor::make_func("layer", params, {y}, MathMode::Fast, {"y"});
}

inline Func make_pool(int64_t blocks, int64_t h, int64_t w, int64_t kernel, int64_t stride,
                      int64_t pad, const vta::Config& c) {
  const auto x = tensor::placeholder("x", DType::I8, {1, blocks, h, w, c.batch(), c.block_in()});
  tensor::Attrs pool;
  pool.values["kernel_shape"] = std::vector<int64_t>{kernel, kernel};
  pool.values["strides"] = std::vector<int64_t>{stride, stride};
  pool.values["pads"] = std::vector<int64_t>{pad, pad, pad, pad};
  const auto y = apply_op("TileMaxPool", pool, {x});
  return tensor::make_func("pool", {x}, {y}, MathMode::Fast, {"y"});
}

inline VtaLayer facts_of(const Func& func) {
  const auto prologue = vta_prologue(func);
  TW_CHECK(prologue, "{}", to_string(prologue.error()));
  const auto layer = vta_layer(*schedule::replay(func, *prologue));
  TW_CHECK(layer, "{}", to_string(layer.error()));
  return *layer;
}

/// Memories that hold so many elements each; blocks of 4 channels.
inline vta::Config tiny_config(int log_uop, int log_inp, int log_wgt, int log_acc) {
  vta::Config c;
  c.log_block_in = c.log_block_out = 2;
  c.log_uop_buff = log_uop + 2, c.log_inp_buff = log_inp + 2;
  c.log_wgt_buff = log_wgt + 4, c.log_acc_buff = log_acc + 4;
  return c;
}

/// Layers whose windows do not fit these memories as a whole.
struct CutWindow {
  const char* name;
  TestLayer layer;
  vta::Config config;
};
inline std::vector<CutWindow> cut_windows() {
  return {
      {"weights hold a row of taps",
       {.in = 2, .out = 2, .h = 6, .w = 5, .kernel = 3, .pad = 1},
       tiny_config(8, 7, 2, 7)},
      {"weights hold two taps",
       {.in = 2, .out = 3, .h = 7, .w = 6, .kernel = 5, .stride = 2, .pad = 2},
       tiny_config(8, 7, 1, 6)},
      {"weights hold half a row of taps",
       {.in = 2, .out = 2, .h = 7, .w = 7, .kernel = 4, .pad = 1},
       tiny_config(8, 7, 1, 6)},
      {"weights hold one tap beside the identity",
       {.in = 2, .out = 2, .h = 5, .w = 5, .kernel = 3, .pad = 1, .residual = true},
       tiny_config(8, 7, 1, 7)},
      {"groups",
       {.in = 3, .out = 3, .h = 6, .w = 6, .kernel = 3, .pad = 1, .groups = 3},
       tiny_config(8, 6, 2, 6)},
      {"channels of another group between",
       {.in = 4, .out = 2, .h = 7, .w = 3, .kernel = 5, .stride = 2, .pad = 2, .groups = 2},
       tiny_config(6, 5, 2, 6)},
      {"inputs hold no whole window",
       {.in = 2, .out = 2, .h = 12, .w = 12, .kernel = 7, .stride = 2, .pad = 3},
       tiny_config(9, 4, 8, 7)},
      {"inputs hold three places",
       {.in = 2, .out = 2, .h = 6, .w = 6, .kernel = 3, .pad = 1},
       tiny_config(8, 2, 6, 6)},
      {"micro-ops for no whole window",
       {.in = 2, .out = 2, .h = 6, .w = 6, .kernel = 7, .pad = 3},
       tiny_config(1, 8, 8, 6)},
      {"images",
       {.n = 3, .in = 2, .out = 2, .h = 5, .w = 4, .kernel = 3, .pad = 1},
       tiny_config(8, 5, 2, 5)},
      {"no zeros around",
       {.in = 3, .out = 2, .h = 8, .w = 8, .kernel = 5},
       tiny_config(8, 6, 3, 6)},
  };
}

/// Random values of every parameter that is read.
inline interp::Arguments random_arguments(const Func& func, uint64_t seed) {
  std::mt19937_64 random(seed);
  return arguments_of(func, [&](Array& array) {
    const bool wide = array.dtype() == DType::I32;
    std::uniform_int_distribution<int> any(wide ? -3000 : -128, wide ? 3000 : 127);
    for (int64_t i = 0; i < array.size(); ++i) array.set_int(i, any(random));
  });
}

/// Cycles on the cycle simulator of `func` after `trace`.
inline Result<uint64_t> vta_cycles(const Func& func, const schedule::Trace& trace,
                                   const vta::Config& config) {
  const Func scheduled = TW_TRY(schedule::replay(func, trace));
  const vta::Program program = TW_TRY(codegen::vta_program(scheduled, config));
  uint64_t cycles = 0;
  for (const vta::Run& run : program.runs)
    cycles += TW_TRY(vta::simulate_time(config, run.insns)).cycles;
  return cycles;
}

}  // namespace tilewright::rules
