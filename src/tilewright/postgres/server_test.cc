// A PostgreSQL of one's own: how it begins and ends.
#include "tilewright/postgres/server.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tilewright/base/file.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::postgres {
namespace {

using ::testing::HasSubstr;

TEST(PrivateServer, NothingListensOnAPort) {
  const auto connection = connect(test_server().server->url());
  EXPECT_EQ((*connection->query("SHOW listen_addresses"))[0][0], "");
  EXPECT_EQ((*connection->query("SHOW server_encoding"))[0][0], "UTF8");
  const auto status = std::filesystem::status(test_server().server->folder()).permissions();
  EXPECT_EQ(status, std::filesystem::perms::owner_all) << "others would be let in by the socket";
}

TEST(PrivateServer, OtherVariablesDoNotLeadElsewhere) {
  const Variable port("PGPORT", "77"), host("PGHOST", "db.lab"), database("PGDATABASE", "x");
  EXPECT_NE(connect(test_server().server->url()), nullptr);
}

TEST(PrivateServer, KeepsWhatWasCommitted) {
  TestServer server;
  const std::string folder = server.server->folder();
  const auto before = connect(server.server->url());
  ASSERT_TRUE(before->execute_script("CREATE TABLE kept (x int)"));
  server.server->kill();
  EXPECT_FALSE(before->query("SELECT x FROM kept")) << "a process of it was left";
  EXPECT_FALSE(Connection::open(server.server->url()));
  ASSERT_TRUE(PrivateServer::init(folder)) << "nothing to do";
  {
    auto again = PrivateServer::start(folder);
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_TRUE(connect((*again)->url())->query("SELECT x FROM kept"));
    const auto second = PrivateServer::start(folder);
    ASSERT_FALSE(second) << "the first one is there";
    EXPECT_EQ(second.error().kind, ErrorKind::Tool);
    EXPECT_THAT(second.error().why, HasSubstr("postmaster.pid"));
    EXPECT_NE(connect((*again)->url()), nullptr) << "and stays";
  }
  EXPECT_FALSE(Connection::open(server.server->url())) << "it ended with its object";
}

TEST(PrivateServer, AnUnboundOneGoesOn) {
  TestServer server;
  const std::string folder = server.server->folder();
  server.server.reset();
  EXPECT_FALSE(PrivateServer::stop(folder)) << "none runs";
  ASSERT_TRUE(PrivateServer::start(folder, {.settings = {}, .bound = false}));
  EXPECT_NE(connect(PrivateServer::url(folder)), nullptr);
  EXPECT_TRUE(PrivateServer::stop(folder));
  EXPECT_FALSE(Connection::open(PrivateServer::url(folder)));
}

/// Killed tests leave no servers.
TEST(PrivateServer, ABoundOneEndsWithItsProcess) {
  const TemporaryFolder folder = TestServer::open_folder();
  const std::string path = folder.file("server");
  ASSERT_TRUE(PrivateServer::init(path));
  int pipes[2];
  ASSERT_EQ(::pipe(pipes), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto server = PrivateServer::start(path);
    const pid_t pid = server ? (*server)->pid() : -1;
    if (::write(pipes[1], &pid, sizeof pid) < 0) ::_exit(1);
    ::pause();
  }
  pid_t server = -1;
  ASSERT_EQ(::read(pipes[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  ASSERT_GT(server, 0);
  EXPECT_EQ(::kill(server, 0), 0);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  for (int i = 0; i < 1000 && Connection::open(PrivateServer::url(path)); ++i) ::usleep(10000);
  EXPECT_FALSE(Connection::open(PrivateServer::url(path)));
  ::close(pipes[0]);
  ::close(pipes[1]);
}

TEST(PrivateServer, FoldersThatWillNotDo) {
  const TemporaryFolder folder = TestServer::open_folder();
  ASSERT_TRUE(write_file(folder.file("mine"), "x"));
  const Status used = PrivateServer::init(folder.path());
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().kind, ErrorKind::Usage);
  EXPECT_THAT(used.error().why, HasSubstr("there is something in it"));
  const Status deep = PrivateServer::init(folder.file(std::string(90, 'x')));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().kind, ErrorKind::Usage);
  EXPECT_THAT(deep.error().what, HasSubstr("too long for a socket"));
  const auto empty = PrivateServer::start(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().kind, ErrorKind::Tool);
  EXPECT_THAT(empty.error().why, HasSubstr("data"));
}

TEST(PrivateServer, UrlsKeepOddFolders) {
  EXPECT_EQ(PrivateServer::url("/a b/c&d@e", "tw"),
            "postgresql://tilewright@:5432/tw?host=/a%20b/c%26d%40e");
}

}  // namespace
}  // namespace tilewright::postgres
