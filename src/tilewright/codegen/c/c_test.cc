#include "tilewright/codegen/c/c.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tilewright/base/file.h"
#include "tilewright/codegen/testing/harness.h"
#include "tilewright/ir/text.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

/// A module compiled by the system's C compiler and loaded; removed with its folder.
class Loaded {
 public:
  explicit Loaded(const CModule& module) {
    std::string folder = (std::filesystem::temp_directory_path() / "tw_c_XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    const std::string source = folder_ + "/m.c", library = folder_ + "/m.so";
    if (!write_file(source, module.source)) return;
    const std::string command =
        fmt::format("cc -O1 -w {} -shared -fPIC {} -o {} -lm", kCFlags, source, library);
    if (std::system(command.c_str()) != 0) return;
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~Loaded() {
    if (handle_ != nullptr) dlclose(handle_);
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  bool ready() const { return handle_ != nullptr; }
  tw_kernel find(const std::string& symbol) const {
    return reinterpret_cast<tw_kernel>(dlsym(handle_, symbol.c_str()));
  }

 private:
  std::string folder_;
  void* handle_ = nullptr;
};

TEST(EmitCSlow, AgreesWithTheInterpreter) {
  const std::vector<testing::Case> cases = testing::standard_cases();
  const auto lowered = testing::lower_all(cases);
  ASSERT_TRUE(lowered) << to_string(lowered.error());
  const auto module = emit_c(*lowered);
  ASSERT_TRUE(module) << to_string(module.error());
  const Loaded library(*module);
  ASSERT_TRUE(library.ready());
  for (size_t i = 0; i < cases.size(); ++i) {
    const KernelInfo& info = module->kernels[i];
    const Status ok = testing::check(cases[i], library.find(info.symbol), info);
    EXPECT_TRUE(ok) << cases[i].name << "\n" << to_string(ok.error()) << print(cases[i].func);
  }
}

TEST(EmitC, IsReadable) {
  const auto func = parse_func(R"(func axpy(n: int in 1..64, A: f32[n], inout Y: f32[n]) {
  for i in n parallel {
    block Y(k: space n = i) {
      Y[k] = Y[k] + 2.5 * A[k]
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  const auto module = emit_c({*func});
  ASSERT_TRUE(module) << to_string(module.error());
  const std::string text = module->source.substr(module->source.find("struct axpy_i_env {"));
  EXPECT_EQ(text, R"(struct axpy_i_env {
  char* workspace;
  f32* restrict Y;
  const f32* restrict A;
  i64 n;
};
static void axpy_i(void* env_, int64_t i, int32_t worker) {
  const struct axpy_i_env* env = (const struct axpy_i_env*)env_;
  char* tw_worker_space = env->workspace + 0 + worker * INT64_C(0);
  (void)tw_worker_space;
  f32* restrict Y = env->Y;
  const f32* restrict A = env->A;
  const i64 n = env->n;
  {  /* Y */
    const i64 k = i;
    Y[k] = (Y[k] + (2.5f * A[k]));
  }
}

void axpy(void* const* buffers, const int64_t* scalars, void* workspace,
    const tw_kernel_services* services) {
  (void)buffers, (void)scalars, (void)workspace, (void)services;
  const f32* restrict A = buffers[0];
  f32* restrict Y = buffers[1];
  const i64 n = scalars[0];
  {
    struct axpy_i_env env = {0};
    env.workspace = (char*)workspace;
    env.Y = Y;
    env.A = A;
    env.n = n;
    services->parallel_for(services->pool, n, axpy_i, &env);
  }
}
)");
}

TEST(EmitC, TwoKernelsOfOneNameAreRefused) {
  const auto func = parse_func("func f(out Y: f32[1]) {\n  Y[0] = 1.0\n}\n");
  ASSERT_TRUE(func);
  const auto failed = emit_c({*func, *func});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::Invalid);
}

TEST(Plan, WorkspaceHoldsWhatTheStackDoesNot) {
  const auto func = parse_func(R"(func f(A: f32[64,300], out Y: f32[64,300]) {
  alloc big: f32[64,300]
  for i in 64 parallel {
    alloc row: f32[9000]
    alloc small: f32[300] local
    for j in 300 {
      small[j] = A[i, j]
      row[j] = small[j]
    }
    for k in 300 {
      Y[i, k] = row[k]
    }
  }
}
)");
  ASSERT_TRUE(func) << to_string(func.error());
  const auto plan = plan_kernel(*func);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->info.shared_bytes, 64 * 300 * 4);
  EXPECT_EQ(plan->info.per_worker_bytes, 36032);
  const auto unbounded = parse_func(
      "func f(n: int in 1..9, A: i64[n], out Y: i64[n]) {\n  alloc T: i64[n]\n  for i in n {\n"
      "    T[i] = A[i]\n    Y[i] = T[i]\n  }\n}\n");
  ASSERT_TRUE(unbounded);
  EXPECT_EQ(plan_kernel(*unbounded)->places.begin()->second.bytes, 72);
}

}  // namespace
}  // namespace tilewright::codegen
