#include "tilewright/base/locked_file.h"

#include <gtest/gtest.h>

#include "tilewright/base/process.h"

namespace tilewright {
namespace {

TEST(LockedFile, ExclusiveOnesAreAlone) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const std::string path = folder.file("lock");
  const auto get = [&](LockKind kind) { return *LockedFile::try_lock(path, kind); };
  {
    auto first = get(LockKind::Shared), second = get(LockKind::Shared);
    ASSERT_TRUE(first && second);
    EXPECT_FALSE(get(LockKind::Exclusive));
    first.reset();
    EXPECT_FALSE(get(LockKind::Exclusive));
    const LockedFile moved = *std::move(second);
    second.reset();  // NOLINT(bugprone-use-after-move): what was moved from holds no lock any more
    EXPECT_FALSE(get(LockKind::Exclusive));
  }
  const auto alone = get(LockKind::Exclusive);
  ASSERT_TRUE(alone);
  EXPECT_FALSE(get(LockKind::Exclusive));
  EXPECT_FALSE(get(LockKind::Shared));
}

TEST(LockedFile, WhereNoFileCanBe) {
  const auto lock = LockedFile::try_lock("/no/such/folder/lock", LockKind::Shared);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().kind, ErrorKind::Io);
}

}  // namespace
}  // namespace tilewright
