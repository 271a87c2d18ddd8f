// A VTA program as a launch of the runtime, on a device with a cache.
#include "tilewright/compile/vta/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tilewright/accel/vta/builder.h"
#include "tilewright/accel/vta/sim/tsim.h"

namespace tilewright::compile {
namespace {

/// The cycle simulator behind a cache: it sees what is flushed, the host what is invalidated.
class CachedDevice : public vta::Device {
 public:
  CachedDevice(const vta::Config& config, uint64_t bytes)
      : inner_(vta::make_tsim(config, bytes)), cache_(bytes, '\0') {}

  std::string name() const override { return "cached"; }
  const vta::Config& config() const override { return inner_->config(); }
  Status write(uint64_t address, std::string_view bytes) override {
    cache_.replace(address, bytes.size(), bytes);
    return {};
  }
  Status read(uint64_t address, char* into, uint64_t bytes) const override {
    cache_.copy(into, bytes, address);
    return {};
  }
  Status flush(uint64_t address, uint64_t bytes) override {
    return inner_->write(address, std::string_view(cache_).substr(address, bytes));
  }
  Status invalidate(uint64_t address, uint64_t bytes) override {
    return inner_->read(address, cache_.data() + address, bytes);
  }
  Result<vta::LaunchReport> launch(const std::vector<vta::Insn>& insns,
                                   const vta::LaunchOptions& options) override {
    return inner_->launch(insns, options);
  }

 private:
  std::unique_ptr<vta::Device> inner_;
  std::string cache_;
};

std::string words(int32_t value) {
  std::string out(64, '\0');
  for (size_t i = 0; i < 16; ++i) std::memcpy(out.data() + 4 * i, &value, 4);
  return out;
}

/// y = x + w, twice: before the second run w becomes 7.
Result<vta::Program> sum_program() {
  vta::Builder builder{vta::Config()};
  const uint64_t x = TW_TRY(builder.allocate("x", 64)), w = TW_TRY(builder.allocate("w", 64));
  const uint64_t y = TW_TRY(builder.allocate("y", 16));
  builder.write(w, words(5));
  builder.add_input({"x", x, 64});
  builder.add_output({"y", y, 16});
  vta::Transfer move;
  move.mem = vta::Mem::Acc;
  move.y_size = move.x_size = move.x_stride = 1;
  move.dram = static_cast<uint32_t>(x / 64);
  TW_TRY_STATUS(builder.transfer(move));
  move.sram = 1;
  move.dram = static_cast<uint32_t>(w / 64);
  TW_TRY_STATUS(builder.transfer(move));
  TW_TRY_STATUS(builder.alu(vta::AluOp::Add, {{0, 1, 0}}, {}, std::nullopt));
  move.store = true;
  move.mem = vta::Mem::Out;
  move.sram = 0;
  move.dram = static_cast<uint32_t>(y / 16);
  TW_TRY_STATUS(builder.transfer(move));
  vta::Program program = TW_TRY(builder.finish());
  program.runs.push_back(program.runs[0]);
  program.runs[1].patches = {{w, words(7)}};
  return program;
}

class VtaLaunchTest : public ::testing::Test {
 protected:
  /// The first value of y for an x of so much everywhere.
  int run(runtime::Launch& launch, int x) {
    std::vector<Array> inputs = {Array(DType::I32, {16})};
    for (int64_t i = 0; i < 16; ++i) inputs[0].set_int(i, x);
    std::vector<Array> outputs = {Array(DType::I8, {16})};
    const Status status = launch.run(inputs, outputs);
    EXPECT_TRUE(status) << to_string(status.error());
    return static_cast<int>(outputs[0].get_int(0));
  }
};

TEST_F(VtaLaunchTest, DeviceSeesImageInputsAndPatchesAndAllRunsCount) {
  const Result<vta::Program> made = sum_program();
  ASSERT_TRUE(made) << to_string(made.error());
  const auto program = std::make_shared<const vta::Program>(*made);
  const auto log = std::make_shared<LaunchLog>();
  auto launch = make_vta_launch(
      "sum", program, std::make_unique<CachedDevice>(program->config, program->end()), {}, log);
  ASSERT_TRUE(launch) << to_string(launch.error());
  EXPECT_EQ(run(**launch, 10), 17) << "10 + 7";
  EXPECT_EQ(run(**launch, 20), 27);
  ASSERT_EQ(log->entries.size(), 1u) << "the second run replaces the first";
  const auto* record = dynamic_cast<const VtaLaunchRecord*>(log->entries[0].record.get());
  ASSERT_NE(record, nullptr);
  EXPECT_EQ(record->device(), "cached");
  const vta::LaunchReport& report = record->report();
  EXPECT_EQ(report.counters.insns, 2 * program->runs[0].insns.size());
  EXPECT_EQ(report.counters.alu_reg_steps, 2u);
  EXPECT_EQ(report.counters.out_store_bytes, 32u);
  const auto one = vta::simulate_time(program->config, program->runs[0].insns);
  ASSERT_TRUE(one);
  EXPECT_EQ(report.cycles, 2 * one->cycles);
}

TEST_F(VtaLaunchTest, DeviceSeesTheImage) {
  Result<vta::Program> made = sum_program();
  ASSERT_TRUE(made) << to_string(made.error());
  made->runs.pop_back();
  const auto program = std::make_shared<const vta::Program>(*std::move(made));
  auto launch = make_vta_launch("sum", program,
                                std::make_unique<CachedDevice>(program->config, program->end()), {},
                                std::make_shared<LaunchLog>());
  ASSERT_TRUE(launch) << to_string(launch.error());
  EXPECT_EQ(run(**launch, 10), 15) << "10 + 5";
}

TEST_F(VtaLaunchTest, AnotherDesignIsRefused) {
  const Result<vta::Program> made = sum_program();
  ASSERT_TRUE(made);
  const auto program = std::make_shared<const vta::Program>(*made);
  vta::Config other = program->config;
  ++other.log_inp_buff;
  const auto launch =
      make_vta_launch("sum", program, std::make_unique<CachedDevice>(other, program->end()), {},
                      std::make_shared<LaunchLog>());
  ASSERT_FALSE(launch);
  EXPECT_NE(launch.error().what.find("another design"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::compile
