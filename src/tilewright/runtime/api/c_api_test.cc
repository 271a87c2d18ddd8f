// The C interface and the C++ wrapper on it, through a package on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tilewright/runtime.hpp"
#include "tilewright/runtime/package.h"

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// y = x * w + 2 for eight floats; where = NonZero(mask) with mask [2, 3].
std::string write_sample(const std::string& folder) {
  Program program;
  program.name = "sample";
  program.target.name = "cpu";
  program.values = {{Place::Input, "x", DType::F32, {8}, 0, -1},
                    {Place::Weights, "w", DType::F32, {8}, 0, -1},
                    {Place::Output, "y", DType::F32, {8}, 0, -1},
                    {Place::Input, "mask", DType::Bool, {2, 3}, 0, -1},
                    {Place::Output, "where", DType::I64, {2, 6}, 0, 1}};
  program.inputs = {0, 3};
  program.outputs = {2, 4};
  program.kernels["scale_and_shift"] = {"scale_and_shift", 0, 0};
  program.steps = {{"scale", "scale_and_shift", "", "", {0, 1, 2}, 1},
                   {"find", "", "NonZero", "", {3, 4}, 1}};
  program.weights_bytes = 32;
  const float weights[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::string code = *read_file(KERNELS_2);
  const std::string path = folder + "/sample.twm";
  const Status status = write_package(
      path, {program, "graph", code, {{0, {reinterpret_cast<const char*>(weights), 32}}}, ""});
  EXPECT_TRUE(status) << to_string(status.error());
  return path;
}

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "twc-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = write_sample(folder_);
    ASSERT_EQ(tw_module_open(path_.c_str(), nullptr, &module_, &error_), 0) << text();
    const tw_session_options options = {sizeof options, 2, 0};
    ASSERT_EQ(tw_session_create(module_, &options, &session_, &error_), 0) << text();
  }
  void TearDown() override {
    tw_session_close(session_);
    tw_module_close(module_);
    tw_error_free(error_);
    std::filesystem::remove_all(folder_);
  }
  /// The text of the last error, freed with the next one.
  std::string text() {
    const std::string result = tw_error_text(error_);
    tw_error_free(error_);
    error_ = nullptr;
    return result;
  }
  DLTensor x_tensor() {
    return {x_.data(), {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, x_shape_, nullptr, 0};
  }
  DLTensor mask_tensor() {
    return {mask_, {kDLCPU, 0}, 2, {kDLUInt, 8, 1}, mask_shape_, nullptr, 0};
  }
  DLTensor where_tensor() {
    return {where_, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, where_shape_, nullptr, 0};
  }

  std::string folder_, path_;
  tw_module* module_ = nullptr;
  tw_session* session_ = nullptr;
  tw_error* error_ = nullptr;
  std::vector<float> x_ = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t x_shape_[1] = {8}, mask_shape_[2] = {2, 3}, where_shape_[2] = {2, 6};
  uint8_t mask_[6] = {0, 1, 0, 1, 0, 1};
  int64_t where_[12] = {};
};

TEST_F(CApi, DescribesInputsAndOutputs) {
  EXPECT_STREQ(tw_version(), "0.1.0");
  EXPECT_EQ(tw_session_input_count(session_), 2u);
  EXPECT_EQ(tw_session_output_count(session_), 2u);
  EXPECT_STREQ(tw_session_input_name(session_, 1), "mask");
  EXPECT_STREQ(tw_session_output_name(session_, 0), "y");
  EXPECT_EQ(tw_session_output_name(session_, 2), nullptr);
  tw_tensor_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(tw_session_output_info(session_, 1, &info, nullptr), 0);
  EXPECT_STREQ(info.name, "where");
  EXPECT_EQ(info.ndim, 2);
  EXPECT_EQ(info.shape[1], 6);
  EXPECT_EQ(info.dynamic_axis, 1);
  EXPECT_EQ(info.dtype.code, kDLInt);
  EXPECT_EQ(info.dtype.bits, 64);
  ASSERT_EQ(tw_session_input_info(session_, 1, &info, nullptr), 0);
  EXPECT_EQ(info.dtype.code, TW_DL_BOOL);
  EXPECT_EQ(tw_session_input_info(session_, 2, &info, &error_), TW_INVALID);
  EXPECT_THAT(text(), HasSubstr("there is no tensor 2"));
}

TEST_F(CApi, ShorterStructsOfOlderCallersAreRespected) {
  tw_tensor_info info;
  std::memset(&info, 0x7f, sizeof info);
  info.struct_size = offsetof(tw_tensor_info, shape);
  ASSERT_EQ(tw_session_input_info(session_, 0, &info, nullptr), 0);
  EXPECT_STREQ(info.name, "x");
  EXPECT_EQ(info.ndim, 0x7f7f7f7f);
  info.struct_size = 0;
  EXPECT_EQ(tw_session_input_info(session_, 0, &info, nullptr), TW_INVALID);
}

TEST_F(CApi, RunsOnGivenTensors) {
  const char* input_names[] = {"mask", "x"};
  const char* output_names[] = {"where", "y"};
  const DLTensor inputs[] = {mask_tensor(), x_tensor()};
  DLTensor outputs[] = {where_tensor(), {}};
  ASSERT_EQ(tw_session_run(session_, input_names, inputs, 2, output_names, outputs, 2, &error_), 0)
      << text();
  EXPECT_THAT(where_shape_, ElementsAre(2, 3));
  EXPECT_THAT(std::vector<int64_t>(where_, where_ + 6), ElementsAre(0, 1, 1, 1, 0, 2));
  ASSERT_EQ(outputs[1].ndim, 1);
  EXPECT_EQ(outputs[1].shape[0], 8);
  EXPECT_EQ(outputs[1].dtype.code, kDLFloat);
  const auto* y = static_cast<const float*>(outputs[1].data);
  EXPECT_THAT(std::vector<float>(y, y + 8), ElementsAre(2, 4, 8, 14, 22, 32, 44, 58));
  DLTensor view = {};
  ASSERT_EQ(tw_session_get_output(session_, "y", &view, &error_), 0);
  EXPECT_EQ(view.data, outputs[1].data);
  EXPECT_EQ(tw_session_step_count(session_), 2u);
  tw_step_info step = {};
  step.struct_size = sizeof step;
  ASSERT_EQ(tw_session_step_info(session_, 1, &step, nullptr), 0);
  EXPECT_STREQ(step.callee, "NonZero");
  EXPECT_EQ(step.calls, 1);
}

TEST_F(CApi, GivenInputsAreForgottenAfterTheRun) {
  const DLTensor inputs[] = {x_tensor(), mask_tensor()};
  ASSERT_EQ(tw_session_run(session_, nullptr, inputs, 2, nullptr, nullptr, 0, &error_), 0)
      << text();
  EXPECT_EQ(tw_session_run(session_, nullptr, nullptr, 0, nullptr, nullptr, 0, &error_),
            TW_INVALID);
  EXPECT_THAT(text(), HasSubstr("input 'x' was not set"));
  const DLTensor x = x_tensor(), mask = mask_tensor();
  ASSERT_EQ(tw_session_set_input(session_, "x", &x, &error_), 0) << text();
  ASSERT_EQ(tw_session_set_input(session_, "mask", &mask, &error_), 0) << text();
  x_[7] = 0;  // was copied
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(tw_session_run(session_, nullptr, nullptr, 0, nullptr, nullptr, 0, &error_), 0);
  DLTensor y = {};
  ASSERT_EQ(tw_session_get_output(session_, "y", &y, &error_), 0);
  EXPECT_EQ(static_cast<const float*>(y.data)[7], 58);
}

TEST_F(CApi, OutputGivenToTheCallerIsNotKept) {
  const DLTensor inputs[] = {x_tensor(), mask_tensor()};
  alignas(64) float y[8] = {};
  DLTensor out = {y, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, x_shape_, nullptr, 0};
  ASSERT_EQ(tw_session_run(session_, nullptr, inputs, 2, nullptr, &out, 1, &error_), 0) << text();
  EXPECT_EQ(y[7], 58);
  DLTensor view = {};
  EXPECT_EQ(tw_session_get_output(session_, "y", &view, &error_), TW_INVALID);
  EXPECT_THAT(text(), HasSubstr("written to the caller's memory"));
  ASSERT_EQ(tw_session_run(session_, nullptr, inputs, 2, nullptr, nullptr, 0, &error_), 0);
  ASSERT_EQ(tw_session_get_output(session_, "y", &view, &error_), 0) << text();
  EXPECT_NE(view.data, y);
  EXPECT_EQ(static_cast<const float*>(view.data)[7], 58);
}

TEST_F(CApi, BadTensorsAreExplained) {
  auto refused = [&](DLTensor tensor, const char* name = "x") {
    EXPECT_EQ(tw_session_set_input(session_, name, &tensor, &error_), TW_INVALID);
    return text();
  };
  DLTensor tensor = x_tensor();
  EXPECT_THAT(refused(tensor, "xx"), HasSubstr("did you mean 'x'"));
  tensor.ndim = 0;
  EXPECT_THAT(refused(tensor), HasSubstr("[8] is expected, [] was given"));
  tensor = x_tensor();
  int64_t huge[2] = {int64_t{1} << 62, 8};
  tensor.ndim = 2;
  tensor.shape = huge;
  EXPECT_THAT(refused(tensor), HasSubstr("wrong shape"));
  tensor = x_tensor();
  tensor.dtype.bits = 64;
  EXPECT_THAT(refused(tensor), HasSubstr("code 2 with 32 bits"));
  tensor = x_tensor();
  tensor.dtype.lanes = 4;
  EXPECT_THAT(refused(tensor), HasSubstr("4 was given"));
  tensor = x_tensor();
  tensor.data = nullptr;
  EXPECT_THAT(refused(tensor), HasSubstr("data pointer is null"));
  tensor = x_tensor();
  tensor.device.device_type = kDLCUDA;
  EXPECT_THAT(refused(tensor), HasSubstr("CPU's memory"));
  tensor = x_tensor();
  int64_t strides[1] = {2};
  tensor.strides = strides;
  EXPECT_THAT(refused(tensor), HasSubstr("strides"));
  strides[0] = 1;
  EXPECT_EQ(tw_session_set_input(session_, "x", &tensor, &error_), 0) << text();
  tensor = x_tensor();
  tensor.data = x_.data() - 1;
  tensor.byte_offset = 4;
  EXPECT_EQ(tw_session_set_input(session_, "x", &tensor, &error_), 0) << text();
}

TEST_F(CApi, NullArgumentsAreErrors) {
  tw_module* module = nullptr;
  EXPECT_EQ(tw_module_open(nullptr, nullptr, &module, nullptr), TW_INVALID);
  EXPECT_EQ(tw_module_open(path_.c_str(), nullptr, nullptr, nullptr), TW_INVALID);
  EXPECT_EQ(tw_session_create(nullptr, nullptr, nullptr, nullptr), TW_INVALID);
  EXPECT_EQ(tw_session_run(nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, nullptr), TW_INVALID);
  EXPECT_EQ(tw_session_run(session_, nullptr, nullptr, 1, nullptr, nullptr, 0, nullptr),
            TW_INVALID);
  const char* no_name[] = {nullptr};
  const DLTensor x = x_tensor();
  EXPECT_EQ(tw_session_run(session_, no_name, &x, 1, nullptr, nullptr, 0, nullptr), TW_INVALID);
  const DLTensor three[] = {x_tensor(), mask_tensor(), x_tensor()};
  EXPECT_EQ(tw_session_run(session_, nullptr, three, 3, nullptr, nullptr, 0, &error_), TW_INVALID);
  EXPECT_THAT(text(), HasSubstr("more tensors are given"));
  EXPECT_EQ(tw_session_input_count(nullptr), 0u);
  EXPECT_EQ(tw_session_input_name(nullptr, 0), nullptr);
  EXPECT_EQ(tw_session_step_count(nullptr), 0u);
  EXPECT_STREQ(tw_error_text(nullptr), "");
  EXPECT_EQ(tw_error_code(nullptr), 0);
  tw_error_free(nullptr);
  tw_module_close(nullptr);
  tw_session_close(nullptr);
}

TEST_F(CApi, ErrorsOfPackagesHaveCodes) {
  tw_module* module = nullptr;
  EXPECT_EQ(tw_module_open((folder_ + "/none.twm").c_str(), nullptr, &module, &error_), TW_IO);
  EXPECT_EQ(tw_error_code(error_), TW_IO);
  EXPECT_THAT(text(), HasSubstr("No such file"));
  EXPECT_EQ(module, nullptr);
  const tw_open_options options = {sizeof options, 1};
  std::string bytes = *read_file(path_);
  bytes[bytes.rfind("graph")] ^= 1;
  ASSERT_TRUE(write_file(path_, bytes));
  EXPECT_EQ(tw_module_open(path_.c_str(), &options, &module, &error_), TW_PACKAGE);
  EXPECT_THAT(text(), HasSubstr("damaged"));
}

TEST_F(CApi, APackageForTheCpuHasNoOtherDevice) {
  tw_session* other = nullptr;
  tw_session_options options = {sizeof options, 1, 0, "opencl"};
  EXPECT_EQ(tw_session_create(module_, &options, &other, &error_), TW_INVALID);
  EXPECT_THAT(text(), HasSubstr("its code is for the CPU"));
  // Callers from before there were devices do not give one.
  options.struct_size = offsetof(tw_session_options, device);
  EXPECT_EQ(tw_session_create(module_, &options, &other, &error_), 0) << text();
  tw_session_close(other);
}

TEST_F(CApi, CppWrapper) {
  tw_module_close(module_);  // the session does not need it
  module_ = nullptr;
  tw::Session session(tw::Module(path_, true), 2);
  ASSERT_EQ(session.inputs().size(), 2u);
  EXPECT_EQ(session.inputs()[1].name, "mask");
  EXPECT_EQ(session.outputs()[1].dynamic_axis, 1);
  session.set_input("x", x_, {8});
  const bool mask[6] = {false, false, true, false, false, false};
  session.set_input("mask", mask, {2, 3});
  session.run();
  EXPECT_THAT(session.output<float>("y").values, ElementsAre(2, 4, 8, 14, 22, 32, 44, 58));
  const tw::Tensor<int64_t> where = session.output<int64_t>("where");
  EXPECT_THAT(where.shape, ElementsAre(2, 1));
  EXPECT_THAT(where.values, ElementsAre(0, 2));
  EXPECT_THROW(session.output<double>("y"), tw::Error);
  EXPECT_THROW(session.set_input("x", x_, {7}), tw::Error);
  try {
    const tw::Module none("/none.twm");
    FAIL();
  } catch (const tw::Error& error) {
    EXPECT_EQ(error.code(), TW_IO);
    EXPECT_THAT(error.what(), HasSubstr("/none.twm"));
  }
}

}  // namespace
}  // namespace tilewright::runtime
