// A client whose connection ends: what was asked of the old one holds for the new one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tilewright/fleet/client.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::fleet {
namespace {

TEST(FleetClient, ANewConnectionKeepsTheLimitOfAnAnswer) {
  const std::string url = postgres::new_database();
  const auto owner = postgres::connect(url);
  ASSERT_TRUE(migrate(*owner));
  ASSERT_TRUE(owner->execute_script(
      "CREATE FUNCTION fleet.process() RETURNS int LANGUAGE sql AS 'SELECT pg_backend_pid()';"
      "CREATE FUNCTION fleet.slow() RETURNS int LANGUAGE sql AS 'SELECT 7 FROM pg_sleep(15)'"));
  Patience patience;
  patience.seconds = 60;  // a busy machine may need several attempts to connect within the limit
  const auto client = *Client::open(url, patience);
  client->answer_within(1);
  const auto before = client->call("process", {});
  ASSERT_TRUE(before) << to_string(before.error());
  ASSERT_TRUE(owner->query("SELECT pg_terminate_backend($1)", {before->get<int64_t>()}));
  const auto after = client->call("process", {});
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_NE(*before, *after);
  client->set_patience({});
  const auto late = client->call("slow", {});
  ASSERT_FALSE(late) << "it has waited for longer than 1 s: " << *late;
  EXPECT_EQ(late.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(late.error().why, testing::HasSubstr("does not answer"));
}

}  // namespace
}  // namespace tilewright::fleet
