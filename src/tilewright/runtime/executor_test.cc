#include "tilewright/runtime/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace tilewright::runtime {
namespace {

using Place = ValueSpec::Place;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Kernels as compiled code would be: plain C functions on the buffers of the step.

/// y[i] = x[i] * w[i], eight elements, one loop iteration each.
void multiply(void* const* buffers, const int64_t*, void*, const tw_kernel_services* services) {
  services->parallel_for(
      services->pool, 8,
      [](void* env, int64_t i, int32_t) {
        auto* const* b = static_cast<void* const*>(env);
        static_cast<float*>(b[2])[i] =
            static_cast<const float*>(b[0])[i] * static_cast<const float*>(b[1])[i];
      },
      const_cast<void**>(buffers));
}

/// y = x + 1 for eight floats; refuses unaligned buffers by a wrong result.
void add_one(void* const* buffers, const int64_t*, void*, const tw_kernel_services*) {
  const bool aligned = reinterpret_cast<uintptr_t>(buffers[0]) % 64 == 0 &&
                       reinterpret_cast<uintptr_t>(buffers[1]) % 64 == 0;
  for (int i = 0; i < 8; ++i)
    static_cast<float*>(buffers[1])[i] =
        aligned ? static_cast<const float*>(buffers[0])[i] + 1 : -1000.0f;
}

/// Writes every byte of its workspace (100 shared, 128 per worker), then the worker count.
void fill_workspace(void* const* buffers, const int64_t*, void* workspace,
                    const tw_kernel_services* services) {
  const int64_t bytes = 128 + 128 * services->workers;
  std::memset(workspace, 0x5a, static_cast<size_t>(bytes));
  const bool ok = reinterpret_cast<uintptr_t>(workspace) % 64 == 0;
  for (int i = 0; i < 8; ++i)
    static_cast<float*>(buffers[1])[i] = ok ? static_cast<float>(services->workers) : -1.0f;
}

/// [2, 6] i64 to [6, 2] i64: a transposition of the whole bound.
void transpose_2x6(void* const* buffers, const int64_t*, void*, const tw_kernel_services*) {
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 6; ++j)
      static_cast<int64_t*>(buffers[1])[j * 2 + i] =
          static_cast<const int64_t*>(buffers[0])[i * 6 + j];
}

tw_kernel lookup(const std::string& symbol) {
  if (symbol == "multiply") return multiply;
  if (symbol == "add_one") return add_one;
  if (symbol == "fill_workspace") return fill_workspace;
  if (symbol == "transpose_2x6") return transpose_2x6;
  return nullptr;
}

MappedFile weight_bytes(const std::vector<float>& values) {
  auto owner = std::make_shared<std::vector<float>>(values);
  const auto* data = reinterpret_cast<const char*>(owner->data());
  const size_t size = owner->size() * sizeof(float);
  return {std::move(owner), {data, size}};
}

Array floats(std::vector<double> values) { return Array::of(DType::F32, values); }

/// y = x * w + 1, t in the arena.
Program affine() {
  Program program;
  program.name = "affine";
  program.values = {{Place::Input, "x", DType::F32, {8}, 0, -1},
                    {Place::Weights, "w", DType::F32, {8}, 64, -1},
                    {Place::Arena, "t", DType::F32, {8}, 64, -1},
                    {Place::Output, "y", DType::F32, {8}, 0, -1}};
  program.inputs = {0};
  program.outputs = {3};
  program.kernels["multiply"] = {"multiply", 0, 0};
  program.kernels["add_one"] = {"add_one", 0, 0};
  program.steps = {{"mul", "multiply", "", "", {0, 1, 2}, 1},
                   {"add", "add_one", "", "", {2, 3}, 1}};
  program.arena_bytes = 128;
  program.weights_bytes = 96;
  return program;
}

MappedFile affine_weights() {
  std::vector<float> values(24, 99.0f);
  for (int i = 0; i < 8; ++i) values[static_cast<size_t>(16 + i)] = static_cast<float>(i);
  return weight_bytes(values);
}

std::unique_ptr<Session> make(const Program& program, MappedFile weights = {},
                              const SessionOptions& options = {.threads = 2}) {
  auto session =
      Session::create(std::make_shared<Program>(program), lookup, std::move(weights), options);
  EXPECT_TRUE(session) << to_string(session.error());
  return session ? std::move(*session) : nullptr;
}

const Array kX = floats({1, 2, 3, 4, 5, 6, 7, 8});
const std::vector<double> kY = {1, 3, 7, 13, 21, 31, 43, 57};  // i * (i + 1) + 1

TEST(Executor, RunsStepsInOrderOnCopiedInputs) {
  for (int threads : {1, 2, 3}) {
    auto session = make(affine(), affine_weights(), {.threads = threads});
    EXPECT_EQ(session->threads(), threads);
    for (int repeat = 0; repeat < 3; ++repeat) {
      Array x = kX.clone();
      ASSERT_TRUE(session->set_input("x", x));
      x.set(0, -50);  // a copy was taken
      ASSERT_TRUE(session->run());
      EXPECT_EQ(session->get_output("y")->to_doubles(), kY);
    }
  }
}

TEST(Executor, BoundInputIsReadAtEveryRun) {
  auto session = make(affine(), affine_weights());
  Array x = kX.clone();
  ASSERT_TRUE(session->bind_input("x", x));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("y")->get(7), 57);
  x.set(7, 2);
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("y")->get(7), 15);
  ASSERT_TRUE(session->set_input("x", kX));  // back to a copy
  x.set(7, 1000);
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("y")->get(7), 57);
}

TEST(Executor, BoundOutputIsWrittenInPlace) {
  auto session = make(affine(), affine_weights());
  Array y(DType::F32, {8});
  ASSERT_TRUE(session->set_input("x", kX));
  ASSERT_TRUE(session->bind_output("y", y));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(y.to_doubles(), kY);
  EXPECT_EQ(session->get_output("y")->data(), y.data());
}

/// A view that starts `offset` bytes into a fresh array.
Array unaligned(size_t offset) {
  auto storage = std::make_shared<Array>(DType::U8, Shape{256});
  return Array(DType::F32, {8}, storage, static_cast<char*>(storage->data()) + offset);
}

TEST(Executor, UnalignedCallersMemoryIsCopied) {
  auto session = make(affine(), affine_weights());
  Array x = unaligned(4), y = unaligned(12);
  std::memcpy(x.data(), kX.data(), 32);
  ASSERT_TRUE(session->bind_input("x", x));
  ASSERT_TRUE(session->bind_output("y", y));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(y.to_doubles(), kY);
  EXPECT_EQ(session->get_output("y")->to_doubles(), kY);
  x.set(7, 2);
  ASSERT_TRUE(session->run());
  EXPECT_EQ(y.get(7), 15);
}

TEST(Executor, OutputMayBeBoundToTheInputsMemory) {
  auto session = make(affine(), affine_weights());
  Array both = kX.clone();
  ASSERT_TRUE(session->bind_output("y", both));
  ASSERT_TRUE(session->bind_input("x", both));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(both.to_doubles(), kY);
}

TEST(Executor, InputsConstantsAndArenaValuesMayBeOutputs) {
  Program program = affine();
  program.outputs = {3, 0, 1, 2};
  auto session = make(program, affine_weights());
  ASSERT_TRUE(session->set_input("x", kX));
  Array w(DType::F32, {8}), t(DType::F32, {8});
  ASSERT_TRUE(session->bind_output("w", w));
  ASSERT_TRUE(session->bind_output("t", t));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("x")->to_doubles(), kX.to_doubles());
  EXPECT_THAT(session->get_output("w")->to_doubles(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(w.to_doubles(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(t.to_doubles(), ElementsAre(0, 2, 6, 12, 20, 30, 42, 56));
  EXPECT_THAT(session->get_output("t")->to_doubles(), ElementsAre(0, 2, 6, 12, 20, 30, 42, 56));
}

TEST(Executor, OutputOutlivesTheSession) {
  auto session = make(affine(), affine_weights());
  ASSERT_TRUE(session->set_input("x", kX));
  ASSERT_TRUE(session->run());
  const Array y = *session->get_output("y");
  session.reset();
  EXPECT_EQ(y.to_doubles(), kY);
}

TEST(Executor, WorkspaceIsTheLargestOfAllKernelsTimesWorkers) {
  Program program = affine();
  program.steps = {{"w", "fill_workspace", "", "", {0, 3}, 1}};
  program.kernels = {{"fill_workspace", {"fill_workspace", 100, 128}}};
  auto session = make(program, affine_weights(), {.threads = 5});
  ASSERT_TRUE(session->set_input("x", kX));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("y")->get(3), 5);
}

/// x [2, 3] -> NonZero -> indices [2, n <= 6] -> kernel -> pairs [n <= 6, 2].
Program non_zero_program() {
  Program program;
  program.name = "hits";
  program.values = {{Place::Input, "x", DType::F32, {2, 3}, 0, -1},
                    {Place::Arena, "indices", DType::I64, {2, 6}, 0, 1},
                    {Place::Output, "pairs", DType::I64, {6, 2}, 0, 0}};
  program.inputs = {0};
  program.outputs = {2, 1};
  program.kernels["transpose_2x6"] = {"transpose_2x6", 0, 0};
  program.steps = {{"find", "", "NonZero", "", {0, 1}, 1},
                   {"turn", "transpose_2x6", "", "", {1, 2}, 1}};
  program.arena_bytes = 128;
  return program;
}

TEST(Executor, HostStepsHaveRealShapes) {
  auto session = make(non_zero_program());
  const Array x = floats({0, 5, 0, 7, 0, 9}).reshaped({2, 3});
  ASSERT_TRUE(session->set_input("x", x));
  Array room(DType::I64, {2, 6});
  ASSERT_TRUE(session->bind_output("indices", room));
  ASSERT_TRUE(session->run());
  const Array indices = *session->get_output("indices");
  EXPECT_EQ(indices.shape(), (Shape{2, 3}));
  EXPECT_THAT(indices.to_ints(), ElementsAre(0, 1, 1, 1, 0, 2));
  const Array pairs = *session->get_output("pairs");
  EXPECT_EQ(pairs.shape(), (Shape{3, 2}));
  EXPECT_THAT(pairs.to_ints(), ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_THAT(std::vector<int64_t>(room.as<int64_t>().begin(), room.as<int64_t>().begin() + 6),
              ElementsAre(0, 1, 1, 1, 0, 2));
  // Another run, another shape, down to nothing.
  ASSERT_TRUE(session->set_input("x", Array(DType::F32, {2, 3})));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("pairs")->shape(), (Shape{0, 2}));
  EXPECT_EQ(session->get_output("indices")->shape(), (Shape{2, 0}));
}

TEST(Executor, CopyStepsReshape) {
  Program program = non_zero_program();
  program.values.push_back({Place::Output, "flat", DType::F32, {6}, 0, -1});
  program.values.push_back({Place::Output, "column", DType::I64, {6, 1, 2}, 0, 0});
  program.outputs = {1, 2, 3, 4};
  program.steps.push_back({"flatten", "", "Copy", "{}", {0, 3}, 1});
  program.steps.push_back({"stand", "", "Copy", "{}", {2, 4}, 1});
  auto session = make(program);
  ASSERT_TRUE(session->set_input("x", floats({0, 5, 0, 7, 0, 9}).reshaped({2, 3})));
  ASSERT_TRUE(session->run());
  EXPECT_THAT(session->get_output("flat")->to_doubles(), ElementsAre(0, 5, 0, 7, 0, 9));
  EXPECT_EQ(session->get_output("column")->shape(), (Shape{3, 1, 2}));
  EXPECT_THAT(session->get_output("column")->to_ints(), ElementsAre(0, 1, 1, 0, 1, 2));
  program.values[3].shape = {5};
  session = make(program);
  ASSERT_TRUE(session->set_input("x", Array(DType::F32, {2, 3})));
  const Status status = session->run();
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("[2, 3] cannot become [5]"));
}

TEST(Executor, AliasesInTheArenaFollowTheValueBehindThem) {
  // NonZero writes [2, n <= 6]; [2, 1, n <= 6] is the same memory under another shape.
  Program program = non_zero_program();
  program.values.push_back({Place::Arena, "view", DType::I64, {2, 1, 6}, 0, 2});
  program.values.push_back({Place::Output, "out", DType::I64, {2, 1, 6}, 0, 2});
  program.outputs = {2, 4};
  program.steps.push_back({"out", "", "Copy", "{}", {3, 4}, 1});
  auto session = make(program);
  for (double third : {9.0, 0.0}) {
    ASSERT_TRUE(session->set_input("x", floats({0, 5, 0, 7, 0, third}).reshaped({2, 3})));
    ASSERT_TRUE(session->run());
    const Array out = *session->get_output("out");
    EXPECT_EQ(out.shape(), (Shape{2, 1, third == 0 ? 2 : 3}));
    if (third == 0)
      EXPECT_THAT(out.to_ints(), ElementsAre(0, 1, 1, 0));
    else
      EXPECT_THAT(out.to_ints(), ElementsAre(0, 1, 1, 1, 0, 2));
  }
}

TEST(Executor, ViewsOfTheInterfaceHaveTheirOwnShapes) {
  // NonZero of x [2, 3] seen as [3, 2]; its result is written through a view of the output.
  Program program = non_zero_program();
  program.values = {{Place::Input, "x", DType::F32, {2, 3}, 0, -1},
                    {Place::View, "turned", DType::F32, {3, 2}, 0, -1, 0},
                    {Place::View, "indices", DType::I64, {2, 6}, 0, 1, 3},
                    {Place::Output, "lines", DType::I64, {2, 1, 6}, 0, 2}};
  program.outputs = {3};
  program.steps = {{"find", "", "NonZero", "", {1, 2}, 1}};
  const std::string text = to_json(program);
  ASSERT_TRUE(program_from_json(text)) << to_string(program_from_json(text).error());
  auto session = make(program);
  const Array x = floats({0, 5, 0, 7, 0, 9}).reshaped({2, 3});
  for (bool bind : {false, true}) {  // the view follows its input to the caller's memory
    ASSERT_TRUE(bind ? session->bind_input("x", x.clone()) : session->set_input("x", x));
    ASSERT_TRUE(session->run());
    EXPECT_EQ(session->get_output("lines")->shape(), (Shape{2, 1, 3}));
    EXPECT_THAT(session->get_output("lines")->to_ints(), ElementsAre(0, 1, 2, 1, 1, 1));
  }
}

TEST(Executor, BeyondTheRealExtentThereAreZeros) {
  Program program = non_zero_program();
  program.values[2].dynamic_axis = -1;  // the bound itself becomes visible
  auto session = make(program);
  ASSERT_TRUE(session->set_input("x", floats({1, 1, 1, 1, 1, 1}).reshaped({2, 3})));
  ASSERT_TRUE(session->run());
  ASSERT_TRUE(session->set_input("x", floats({0, 0, 0, 0, 1, 0}).reshaped({2, 3})));
  ASSERT_TRUE(session->run());
  EXPECT_THAT(session->get_output("pairs")->to_ints(),
              ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Executor, DynamicInputMayBeSmallerThanItsBound) {
  Program program = non_zero_program();
  program.values[0].dynamic_axis = 1;
  auto session = make(program);
  for (bool bind : {false, true}) {
    const Array x = floats({0, 5, 6, 7}).reshaped({2, 2});
    ASSERT_TRUE(bind ? session->bind_input("x", x) : session->set_input("x", x));
    ASSERT_TRUE(session->run());
    EXPECT_EQ(session->get_output("indices")->shape(), (Shape{2, 3}));
    EXPECT_THAT(session->get_output("indices")->to_ints(), ElementsAre(0, 1, 1, 1, 0, 1));
  }
  EXPECT_FALSE(session->set_input("x", Array(DType::F32, {2, 4})));
  EXPECT_FALSE(session->set_input("x", Array(DType::F32, {1, 3})));
}

TEST(Executor, HostResultThatDoesNotFitNamesTheStep) {
  Program program = non_zero_program();
  program.values[1].shape = {2, 2};
  program.steps.pop_back();
  program.outputs = {1};
  program.values.pop_back();
  auto session = make(program);
  ASSERT_TRUE(session->set_input("x", floats({1, 1, 1, 1, 1, 1}).reshaped({2, 3})));
  const Status status = session->run();
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("find"));
  EXPECT_THAT(to_string(status.error()), HasSubstr("[2, 6]"));
}

TEST(Executor, WrongNamesShapesAndTypesAreExplained) {
  auto session = make(affine(), affine_weights());
  const Status name = session->set_input("X1", kX);
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().kind, ErrorKind::Invalid);
  EXPECT_THAT(to_string(name.error()), HasSubstr("there is no input 'X1'"));
  EXPECT_THAT(to_string(name.error()), HasSubstr("did you mean 'x'?"));
  const Status dtype = session->set_input("x", Array(DType::F64, {8}));
  ASSERT_FALSE(dtype);
  EXPECT_THAT(to_string(dtype.error()), HasSubstr("f32 is expected, f64 was given"));
  const Status shape = session->bind_input("x", Array(DType::F32, {2, 4}));
  ASSERT_FALSE(shape);
  EXPECT_THAT(to_string(shape.error()), HasSubstr("[8] is expected, [2, 4] was given"));
  EXPECT_FALSE(session->bind_input("x", Array()));
  EXPECT_FALSE(session->bind_output("y", Array(DType::F32, {7})));
  EXPECT_FALSE(session->get_output("z"));
}

TEST(Executor, MissingInputsAndEarlyOutputsAreRefused) {
  Program program = affine();
  program.values.push_back({Place::Input, "mask", DType::Bool, {2}, 0, -1});
  program.inputs.push_back(4);
  auto session = make(program, affine_weights());
  EXPECT_FALSE(session->get_output("y"));
  const Status status = session->run();
  ASSERT_FALSE(status);
  EXPECT_THAT(to_string(status.error()), HasSubstr("input 'x' was not set"));
  EXPECT_THAT(to_string(status.error()), HasSubstr("input 'mask' was not set"));
}

TEST(Executor, MissingKernelsHostFunctionsAndWeightsAreRefused) {
  Program program = affine();
  program.kernels["absent"] = {"absent", 0, 0};
  program.steps[0].kernel = "absent";
  program.steps[1] = {"odd", "", "Transmogrify", "", {2, 3}, 1};
  const auto session =
      Session::create(std::make_shared<Program>(program), lookup, affine_weights());
  ASSERT_FALSE(session);
  EXPECT_THAT(to_string(session.error()), HasSubstr("no kernel 'absent'"));
  EXPECT_THAT(to_string(session.error()), HasSubstr("no host function 'Transmogrify'"));
  const auto cut =
      Session::create(std::make_shared<Program>(affine()), lookup, weight_bytes({1, 2, 3}));
  ASSERT_FALSE(cut);
  EXPECT_THAT(to_string(cut.error()), HasSubstr("96 bytes are needed, 12 are there"));
}

TEST(Executor, ImpossibleArenaIsAnErrorNotACrash) {
  Program program = affine();
  program.arena_bytes = int64_t{1} << 46;
  const auto session =
      Session::create(std::make_shared<Program>(program), lookup, affine_weights());
  if (!session) {
    EXPECT_EQ(session.error().kind, ErrorKind::Capacity);
    EXPECT_THAT(to_string(session.error()), HasSubstr("the arena of 'affine'"));
  }
}

TEST(Executor, LargeArenaStartsAtAHugePage) {
  Program program = affine();
  program.arena_bytes = 9 << 20;
  program.outputs.push_back(2);
  program.values[2].offset = 8 << 20;
  auto session = make(program, affine_weights());
  ASSERT_TRUE(session->set_input("x", kX));
  ASSERT_TRUE(session->run());
  const Array t = *session->get_output("t");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % (2 << 20), 0u);
  EXPECT_EQ(t.get(7), 56);
}

TEST(Executor, EmptyTensorsAreNotAbsent) {
  Program program = non_zero_program();
  program.values[0].shape = {2, 0};
  auto session = make(program);
  ASSERT_TRUE(session->set_input("x", Array(DType::F32, {2, 0})));
  ASSERT_TRUE(session->run());
  EXPECT_EQ(session->get_output("pairs")->shape(), (Shape{0, 2}));
}

TEST(Executor, EmptyConstantIsAHostInput) {
  Program program = non_zero_program();
  program.values[0] = {Place::Weights, "x", DType::F32, {2, 0}, 0, -1};
  program.inputs.clear();
  auto session = make(program);
  const Status status = session->run();
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_EQ(session->get_output("indices")->shape(), (Shape{2, 0}));
}

TEST(Executor, ProfileCountsEveryStep) {
  auto session = make(affine(), affine_weights());
  ASSERT_TRUE(session->set_input("x", kX));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->run());
  ASSERT_EQ(session->profile().size(), 2u);
  EXPECT_EQ(session->profile()[0].name, "mul");
  EXPECT_EQ(session->profile()[1].callee, "add_one");
  for (const StepProfile& times : session->profile()) {
    EXPECT_EQ(times.calls, 5);
    EXPECT_GE(times.min_ns, 0);
    EXPECT_LE(times.min_ns, times.last_ns);
    EXPECT_GE(times.total_ns, 5 * times.min_ns);
  }
  session->reset_profile();
  EXPECT_EQ(session->profile()[0].calls, 0);
}

TEST(Executor, OneSessionPerThread) {
  auto program = std::make_shared<Program>(affine());
  auto pool = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = 2});
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      SessionOptions options;
      if (t % 2 == 0) options.pool = pool;  // two of them share a pool
      options.threads = 2;
      auto session = Session::create(program, lookup, affine_weights(), options);
      if (!session) return;
      for (int i = 0; i < 100; ++i) {
        Array x = kX.clone();
        x.set(1, static_cast<double>(t));
        if (!(*session)->set_input("x", x) || !(*session)->run()) return;
        good[t] += (*session)->get_output("y")->get(1) == static_cast<double>(t) + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 100));
}

TEST(Executor, KeepsTheCodeAlive) {
  auto code = std::make_shared<int>(1);
  auto session = make(affine(), affine_weights(), {.threads = 1, .keep_alive = code});
  EXPECT_EQ(code.use_count(), 2);
  session.reset();
  EXPECT_EQ(code.use_count(), 1);
}

}  // namespace
}  // namespace tilewright::runtime
