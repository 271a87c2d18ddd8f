// Stores by the names that users give them.
#include "tilewright/records/open/open.h"

#include <gmock/gmock.h>

#include "tilewright/base/file.h"
#include "tilewright/postgres/testing/test_server.h"
#include "tilewright/records/sqlite/sqlite.h"

namespace tilewright::records {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(OpenStore, FilesHaveTwoNames) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  const std::string file = folder.file("a.sqlite");
  EXPECT_FALSE(store_exists(file));
  EXPECT_FALSE(open_any_store_to_read("sqlite:" + file));
  ASSERT_TRUE((*open_any_store("sqlite:" + file))->add_workload("k", "func"));
  EXPECT_TRUE(store_exists(file));
  EXPECT_TRUE(store_exists("sqlite:" + file));
  EXPECT_EQ(*(*open_any_store(file))->workload("k"), "func");
  EXPECT_EQ(*(*open_any_store_to_read("sqlite:" + file))->workload("k"), "func");
  EXPECT_FALSE((*open_any_store_to_read(file))->add_workload("l", "func"));
  EXPECT_EQ(store_file("sqlite:" + file), file);
  EXPECT_EQ(store_file(file), file);
  EXPECT_EQ(store_file("postgresql://db.lab/tw"), "");
}

/// Who names none has no use for libpq and what comes with it.
TEST(OpenStore, FilesDoNotLoadLibpq) {
  ASSERT_TRUE(open_any_store(":memory:"));
  EXPECT_THAT(*read_file("/proc/self/maps"), Not(HasSubstr("libpq.so")));
  const auto server = open_any_store("postgresql:///x?host=/none");
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(*read_file("/proc/self/maps"), HasSubstr("libpq.so"));
}

TEST(OpenStore, OtherFormsAreRefused) {
  EXPECT_TRUE(store_exists("mysql://db.lab/tw")) << "so that its form is told, not a missing file";
  for (const auto& opened :
       {open_any_store("mysql://db.lab/tw"), open_any_store_to_read("mysql://db.lab/tw")}) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().kind, ErrorKind::Usage);
    EXPECT_THAT(opened.error().what, HasSubstr("mysql"));
    EXPECT_THAT(opened.error().fix, HasSubstr("postgresql://"));
  }
  const auto password = open_any_store("postgres://ann:secret@db.lab/tw");
  ASSERT_FALSE(password);
  EXPECT_EQ(password.error().kind, ErrorKind::Usage);
  EXPECT_THAT(to_string(password.error()), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace tilewright::records
