// Compares one random instruction on the functional simulator with its meaning as a loop program
// (hw/intrinsics/dpu.tw), run by the reference interpreter.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tilewright/accel/dpu/builder.h"
#include "tilewright/accel/dpu/operands.h"
#include "tilewright/accel/dpu/sim/testing/run_device.h"
#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"
#include "tilewright/interp/interp.h"
#include "tilewright/ir/text.h"

namespace tilewright::dpu::testing {

/// By name.
inline const std::map<std::string, Func>& meanings() {
  static const std::map<std::string, Func> kAll = [] {
    std::map<std::string, Func> all;
    const Result<std::string> text = read_file(TILEWRIGHT_ROOT_DIR "/hw/intrinsics/dpu.tw");
    Result<std::vector<Func>> funcs = parse_funcs(text ? *text : "");
    EXPECT_TRUE(funcs) << (funcs ? "" : to_string(funcs.error()));
    if (funcs)
      for (Func& func : *funcs) all.emplace(func.name, func);
    return all;
  }();
  return kAll;
}

/// One instruction behind its INIT, on memories full of random words.
class MeaningCase {
 public:
  explicit MeaningCase(uint64_t seed) : rng_(seed) {
    config_.pe = 2;
    config_.fm_depth = {kDepth, kDepth, kDepth};
    config_.pm_depth = kDepth;
    const uint64_t input = uint64_t{24} * kDepth * 32, params = kDepth * 256;
    program_.config = config_;
    program_.image.resize(input + params + 65536);
    for (uint64_t i = 0; i < input + params; ++i)
      program_.image[i] = static_cast<char>(rng_.next());
    program_.regions[0] = {"input", program_.base, input};
    program_.regions[1] = {"output", program_.base + input, 65536};
    program_.regions[3] = {"params", program_.base + input + 65536, params};
  }

  void run() {
    do {
      draw();
      inits_ = {};
      inits_.update(init_);
    } while (!check_fields({0, 0, init_}, "") || !check_fields({0, 0, op_}, "") ||
             !check_ranges(config_, {0, 0, op_}, inits_));
    const std::string text = disassemble({0, 0, init_}) + "\n" + disassemble({0, 0, op_});
    const Operands operands = operands_of(op_, inits_);
    const std::vector<int8_t> device = run_device(operands);
    if (::testing::Test::HasFailure()) return;
    const int image = between(0, 1);
    interp::Arguments arguments = scalars(operands);
    const std::string name = add_arrays(operands, image, arguments);
    const Result<interp::Outcome> outcome = interp::run(meanings().at(name), arguments);
    ASSERT_TRUE(outcome) << to_string(outcome.error()) << "\n" << text;
    const Array& y = outcome->outputs.at("Y");
    const auto words = static_cast<size_t>(y.size()) / 16;
    for (size_t w = 0; w < words; ++w)
      for (size_t c = 0; c < 16; ++c)
        ASSERT_EQ(device[(w * 2 + static_cast<size_t>(image)) * 16 + c],
                  y.get_int(static_cast<int64_t>(w * 16 + c)))
            << text << "\nword " << w << " channel " << c;
  }

 private:
  static constexpr int kDepth = 256;

  int between(int64_t low, int64_t high) { return static_cast<int>(rng_.between(low, high)); }
  int activation() {
    const int acts[] = {kNone, kRelu, kLeaky, kRelu6};
    return acts[rng_.below(4)];
  }
  template <class T>
  void draw_places(T& op) {
    op.pad_left = between(0, 2);
    op.pad_top = between(0, 2);
    op.pad_right = between(0, 2);
    op.pad_bottom = between(0, 2);
    op.bank_id_in = between(0, 23);
    op.bank_addr_in = between(0, kDepth - 1);
    op.bank_id_out = between(0, 23);
    op.bank_addr_out = between(0, kDepth - 1);
    op.length = between(1, 5);
  }
  template <class T>
  void draw_jumps(T& init) {
    init.jump_read = between(0, 6);
    init.jump_read_endl = between(0, 60);
    init.jump_write = between(1, 6);
    init.jump_write_endl = between(0, 60);
  }

  void draw() {
    const int64_t kind = rng_.below(3);
    if (kind == 0) draw_conv();
    if (kind == 1) draw_pool();
    if (kind == 2) draw_elew();
  }
  void draw_conv() {
    const bool large = rng_.chance(0.1);
    ConvInit init;
    init.kernel_w = between(1, large ? 16 : 3);
    init.kernel_h = between(1, large ? 4 : 3);
    init.stride_w = between(1, large ? 8 : 3);
    init.stride_h = between(1, large ? 8 : 3);
    init.dilation_w = between(1, large ? 4 : 2);
    init.dilation_h = between(1, 2);
    init.shift_cut = rng_.chance(0.8) ? between(6, 14) : between(-8, 31);
    init.shift_bias = rng_.chance(0.8) ? between(-26, -10) : between(-32, 14);
    init.act_type = activation();
    init.fp_out =
        rng_.chance(0.8) ? between(0, 6) : between(std::max(-32, -9 - init.shift_cut), 31);
    init.in_groups = between(1, large ? 1 : 2);
    draw_jumps(init);
    Conv op;
    op.mode = between(0, 1);
    draw_places(op);
    if (large) op.length = between(1, 2);
    op.bank_addr_weights = between(0, kDepth - 1);
    op.bank_addr_bias = between(0, 4 * kDepth - 1);
    op.out_groups = large ? 1 : between(1, 2);
    op.valid_rows = between(1, large ? 2 : 8);
    init_ = init;
    op_ = op;
  }
  void draw_pool() {
    PoolInit init;
    init.type = between(0, 3);
    init.kernel_w = between(1, 5);
    init.kernel_h = between(1, 5);
    init.stride_w = between(1, 4);
    init.stride_h = between(1, 4);
    init.factor = between(0, 1023);
    init.shift_avg = rng_.chance(0.8) ? between(6, 14) : between(0, 31);
    draw_jumps(init);
    Pool op;
    draw_places(op);
    if (init.type >= kCopy) op.pad_left = op.pad_right = op.pad_top = op.pad_bottom = 0;
    op.channel_group = between(1, 3);
    op.valid_rows = between(1, 2);
    init_ = init;
    op_ = op;
  }
  void draw_elew() {
    ElewInit init;
    init.num = between(1, 2);
    init.act_type = activation();
    init.shift_read_a = rng_.chance(0.9) ? between(0, 4) : between(0, 31);
    init.shift_read_b = rng_.chance(0.9) ? between(0, 4) : between(0, 31);
    init.shift_write = rng_.chance(0.9) ? between(-3, 2) : between(-32, 10);
    init.fp_out =
        rng_.chance(0.8) ? between(0, 6) : between(std::max(-32, init.shift_write - 12), 31);
    init.jump_read_a = between(0, 6);
    init.jump_read_a_endl = between(0, 60);
    init.jump_read_b = between(0, 6);
    init.jump_read_b_endl = between(0, 60);
    init.jump_write = between(1, 6);
    init.jump_write_endl = between(0, 60);
    Elew op;
    op.bank_id_a = between(0, 23);
    op.bank_addr_a = between(0, kDepth - 1);
    op.bank_id_b = between(0, 23);
    op.bank_addr_b = between(0, kDepth - 1);
    op.bank_id_out = between(0, 23);
    op.bank_addr_out = between(0, kDepth - 1);
    op.length = between(1, 8);
    op.channel_group = between(1, 3);
    op.valid_rows = between(1, 2);
    init_ = init;
    op_ = op;
  }

  /// The results, in the order row, column, group, image, channel.
  std::vector<int8_t> run_device(const Operands& operands) {
    Builder builder(config_);
    const auto add = [&](const Op& op) {
      const Status status = builder.add(op);
      EXPECT_TRUE(status) << to_string(status.error());
    };
    Load load;
    load.jump_read = load.channel = 16;
    load.jump_write = 1;
    load.length = kDepth;
    for (load.bank_id = 0; load.bank_id < 24; ++load.bank_id) {
      load.ddr_addr = load.bank_id * kDepth * 32;
      add(load);
    }
    load.mode = 1;
    load.bank_id = load.ddr_addr = 0;
    load.reg_id = 3;
    add(load);
    add(init_);
    add(op_);
    const WordWindow& out = operands.write;
    for (int i = 0; i < out.y.outputs; ++i) {
      Save save;
      save.bank_id = out.rows.memory * 8 + out.rows.bank_of(i);
      save.bank_addr = static_cast<int>(out.rows.address_of(i, 0) % kDepth);
      save.jump_read = out.rows.jump;
      save.length = out.x.outputs;
      save.jump_write = save.channel = 16 * out.groups;
      save.reg_id = 1;
      save.ddr_addr = i * out.x.outputs * out.groups * 32;
      add(save);
    }
    program_.runs = {builder.finish(true).value()};
    const Result<std::string> image = fsim_image(program_);
    EXPECT_TRUE(image) << to_string(image.error());
    if (!image) return {};
    const size_t at = program_.regions[1].address - program_.base;
    return {image->begin() + static_cast<ptrdiff_t>(at),
            image->begin() + static_cast<ptrdiff_t>(at) + 65536};
  }

  int8_t fm(const Rows& rows, int row, int column, int channel, int image) const {
    const int64_t word = int64_t{8 * rows.memory + (rows.bank + row) % 8} * kDepth +
                         (rows.address_of(row, column) + channel / 16) % kDepth;
    return static_cast<int8_t>(
        program_.image[static_cast<size_t>((word * 2 + image) * 16 + channel % 16)]);
  }
  Array feature(const WordWindow& window, int image) const {
    Array array(DType::I8, {window.y.exist, window.x.exist, window.groups, 16});
    int64_t at = 0;
    for (int y = 0; y < window.y.exist; ++y)
      for (int x = 0; x < window.x.exist; ++x)
        for (int c = 0; c < 16 * window.groups; ++c)
          array.set_int(at++, fm(window.rows, y, x, c, image));
    return array;
  }
  char pm(int64_t byte) const {
    return program_.image[program_.regions[3].address - program_.base +
                          static_cast<size_t>(byte % (int64_t{kDepth} * 256))];
  }

  interp::Arguments scalars(const Operands&) const {
    interp::Arguments arguments;
    const auto add = [&](const auto& op) {
      for (const auto& field : op.fields())
        arguments.scalars[std::string(field.name)] = op.*field.member;
    };
    std::visit(add, init_);
    std::visit(add, op_);
    return arguments;
  }
  /// Which function it is.
  std::string add_arrays(const Operands& operands, int image, interp::Arguments& arguments) {
    std::string name;
    if (const auto* conv = std::get_if<Conv>(&op_)) {
      const ConvInit& init = std::get<ConvInit>(init_);
      name = "dpu.conv";
      Array w(DType::I8, {conv->out_groups, init.kernel_h, init.kernel_w, init.in_groups, 16, 16});
      for (int64_t i = 0; i < w.size(); ++i)
        w.set_int(i, static_cast<int8_t>(pm(int64_t{conv->bank_addr_weights} * 256 + i)));
      Array b(DType::I32, {conv->out_groups, 16});
      for (int64_t i = 0; i < b.size(); ++i) {
        uint32_t value = 0;
        for (int64_t k = 3; k >= 0; --k)
          value =
              value << 8 | static_cast<uint8_t>(pm(int64_t{conv->bank_addr_bias} * 64 + 4 * i + k));
        b.set_int(i, static_cast<int32_t>(value));
      }
      arguments.arrays["W"] = w;
      arguments.arrays["B"] = b;
    } else if (std::holds_alternative<Pool>(op_)) {
      const char* names[] = {"dpu.max_pool", "dpu.average_pool", "dpu.copy", "dpu.upsample"};
      name = names[std::get<PoolInit>(init_).type];
    } else {
      name = "dpu.elew";
      arguments.arrays["A"] = feature(operands.reads[0], image);
      arguments.arrays["B"] = feature(operands.reads.back(), image);
    }
    if (name != "dpu.elew") arguments.arrays["X"] = feature(operands.reads[0], image);
    std::map<std::string, int64_t> wanted;
    for (const auto& scalar : meanings().at(name).scalars)
      wanted[scalar.var.name()] = arguments.scalars.at(scalar.var.name());
    arguments.scalars = wanted;
    return name;
  }

  Rng rng_;
  Config config_;
  Program program_;
  Op init_, op_;
  Inits inits_;
};

}  // namespace tilewright::dpu::testing
