#include "tilewright/base/dynamic_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tilewright {
namespace {

constexpr const char* kVariable = "TILEWRIGHT_TEST_LIBRARY";

TEST(DynamicLibrary, TheFirstThatLoads) {
  const auto library = DynamicLibrary::open(kVariable, {"no-such-library.so", "libm.so.6"});
  ASSERT_TRUE(library) << to_string(library.error());
  EXPECT_EQ(library->name(), "libm.so.6");
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->bind(cosine, "cos"));
  EXPECT_EQ(cosine(0), 1);
  const Status missing = library->bind(cosine, "no_such_function");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "libm.so.6 has no entry point no_such_function");
}

TEST(DynamicLibrary, TheEnvironmentChooses) {
  ::setenv(kVariable, "/nowhere/library.so", 1);
  const auto library = DynamicLibrary::open(kVariable, {"libm.so.6"});
  ::unsetenv(kVariable);
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().kind, ErrorKind::Tool);
  EXPECT_EQ(library.error().what, "/nowhere/library.so cannot be loaded");
  EXPECT_THAT(library.error().why, testing::HasSubstr("TILEWRIGHT_TEST_LIBRARY names it"));
}

}  // namespace
}  // namespace tilewright
