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

TEST(EmitC, AgreesWithTheInterpreter) {
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

}  // namespace
}  // namespace tilewright::codegen
