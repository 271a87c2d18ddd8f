#include "tilewright/base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tilewright {
namespace {

/// Sets a variable for the length of a test.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Setting() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Environment, RefusesWhatAVariableDoesNotTake) {
  for (const char* value : {"abc", "0", "-1", "2x", "4096", " 2"}) {
    const Setting threads("TILEWRIGHT_THREADS", value);
    const Status status = check_environment();
    ASSERT_FALSE(status) << value;
    EXPECT_EQ(status.error().kind, ErrorKind::Usage);
    EXPECT_NE(status.error().what.find(value), std::string::npos);
  }
  const Setting threads("TILEWRIGHT_THREADS", "2");
  const Setting calibrate("TILEWRIGHT_CALIBRATE", "never");
  EXPECT_FALSE(check_environment());
}

TEST(Environment, SwitchesTakeAnyCase) {
  for (const char* value : {"off", "OFF", "Off"}) {
    const Setting calibrate("TILEWRIGHT_CALIBRATE", value);
    EXPECT_TRUE(check_environment()) << value;
    EXPECT_TRUE(environment_off("TILEWRIGHT_CALIBRATE")) << value;
  }
  const Setting calibrate("TILEWRIGHT_CALIBRATE", "on");
  EXPECT_TRUE(check_environment());
  EXPECT_FALSE(environment_off("TILEWRIGHT_CALIBRATE"));
}

TEST(Environment, NothingIsNotSet) {
  const Setting records("TILEWRIGHT_RECORDS", "");
  EXPECT_EQ(environment("TILEWRIGHT_RECORDS"), std::nullopt);
}

TEST(Environment, FindsSlips) {
  const auto found =
      misspelt_variables({"TILEWRIGHT_THREAD", "TILEWRIGHT_THREADS", "TILEWRIGHT_FUZZ", "HOME"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].first, "TILEWRIGHT_THREAD");
  EXPECT_EQ(found[0].second, "TILEWRIGHT_THREADS");
}

}  // namespace
}  // namespace tilewright
