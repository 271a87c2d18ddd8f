// Connections to a server of our own: statements, and every way in which they can fail.
#include "tilewright/postgres/connection.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::postgres {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string url() { return test_server().server->url(); }

/// The error of opening a URL, which must show no secret.
Error failure(const std::string& name, double limit = 10) {
  const auto opened = Connection::open(name, limit);
  EXPECT_FALSE(opened) << name;
  if (opened) return {};
  EXPECT_EQ(opened.error().kind, ErrorKind::Unreachable) << to_string(opened.error());
  EXPECT_THAT(to_string(opened.error()), Not(HasSubstr("secret")));
  EXPECT_NE(opened.error().fix, "");
  return opened.error();
}

TEST(PostgresConnection, ValuesComeBackAsTheyWere) {
  const auto connection = connect(url());
  const Result<Rows> rows = connection->query(
      "SELECT $1::text, $2::bigint, $3::float8, $4::bool, $5::text, encode($6, 'hex')",
      {std::string("it's \"x\"\n\u00e9"), int64_t{-1} << 62, 0.1, true, nullptr,
       Bytes{std::string_view("\0\1\xff", 3)}});
  ASSERT_TRUE(rows) << to_string(rows.error());
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ((*rows)[0], (Row{"it's \"x\"\n\u00e9", "-4611686018427387904", "0.1", "t", std::nullopt,
                             "0001ff"}));
  EXPECT_TRUE(connection->query("SELECT 1 WHERE false")->empty());
  EXPECT_EQ(connection->query("SELECT g FROM generate_series(1, 3) g")->size(), 3u);
}

TEST(PostgresConnection, BytesTravelAsTheyAre) {
  const auto connection = connect(url());
  std::string data(3 << 20, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 256);
  EXPECT_TRUE(connection->query_bytes("SELECT $1::bytea", {Bytes{data}}) == data);
  EXPECT_EQ(*connection->query_bytes("SELECT $1::bytea", {Bytes{}}), "");
  EXPECT_EQ(*connection->query_bytes("SELECT NULL::bytea", {}), "");
  EXPECT_EQ(*connection->query_bytes("SELECT ''::bytea WHERE false", {}), "");
}

TEST(PostgresConnection, WhatIsToldIsDoneAndItsAnswerIsNobodys) {
  const std::string here = new_database();
  auto connection = connect(here);
  ASSERT_TRUE(connection->execute_script("CREATE TABLE told (n int)"));
  ASSERT_TRUE(connection->tell("INSERT INTO told VALUES ($1) RETURNING n", {int64_t{1}}));
  ASSERT_TRUE(connection->tell("SELECT none_such", {}));
  EXPECT_EQ((*connection->query("SELECT sum(n) FROM told"))[0][0], "1");
  ASSERT_TRUE(connection->tell("INSERT INTO told SELECT 1 FROM pg_sleep(0.2)", {}));
  connection.reset();  // it is done all the same
  connection = connect(here);
  for (int i = 0; i < 500 && (*connection->query("SELECT count(*) FROM told"))[0][0] != "2"; ++i)
    ASSERT_TRUE(connection->query("SELECT pg_sleep(0.02)"));
  EXPECT_EQ((*connection->query("SELECT count(*) FROM told"))[0][0], "2");
}

TEST(PostgresConnection, ErrorsOfTheSchemaKeepTheirParts) {
  const auto connection = connect(url());
  const Status raised = connection->execute_script(
      "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'TW429', MESSAGE = 'full', DETAIL = '3 of 3', "
      "HINT = 'wait'; END $$");
  ASSERT_FALSE(raised);
  EXPECT_EQ(raised.error().kind, ErrorKind::Limit);
  EXPECT_EQ(raised.error().what, "full");
  EXPECT_EQ(raised.error().why, "3 of 3");
  EXPECT_EQ(raised.error().fix, "wait");
  const auto wrong = connection->query("SELECT none_such");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::Io);
  EXPECT_THAT(wrong.error().why, HasSubstr("none_such"));
  EXPECT_FALSE(connection->lost());
  EXPECT_EQ((*connection->query("SELECT 5"))[0][0], "5");
  const Status barred = connection->execute_script(
      "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = 'no right to f' ; END $$");
  ASSERT_FALSE(barred);
  EXPECT_EQ(barred.error().kind, ErrorKind::Usage);
  EXPECT_THAT(barred.error().why, HasSubstr("no right to f"));
  EXPECT_NE(barred.error().fix, "");
}

TEST(PostgresConnection, AScriptEndsAtItsFirstError) {
  const auto connection = connect(new_database());
  const Status done =
      connection->execute_script("CREATE TABLE a (x int); SELECT 1 / 0; CREATE TABLE b (x int)");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().why, HasSubstr("division by zero"));
  EXPECT_EQ((*connection->query("SELECT to_regclass('a'), to_regclass('b')"))[0],
            (Row{std::nullopt, std::nullopt}));
}

TEST(PostgresConnection, NoticesAreNotPrinted) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(connect(url())->execute_script("DO $$ BEGIN RAISE WARNING 'hello'; END $$"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

/// A sequence counts attempts: it does not go back with a transaction.
TEST(PostgresConnection, WhatWasBrokenOffForOthersIsRepeated) {
  const auto connection = connect(new_database());
  ASSERT_TRUE(connection->execute_script(
      "CREATE SEQUENCE tries; CREATE FUNCTION flaky(code text) RETURNS bigint LANGUAGE plpgsql AS "
      "$$ "
      "BEGIN IF nextval('tries') % 3 > 0 THEN RAISE EXCEPTION USING ERRCODE = code; END IF; RETURN "
      "currval('tries'); END $$"));
  int64_t tries = 0;
  for (const char* code : {"40P01", "40001", "55P03"}) {
    const auto answer = connection->query("SELECT flaky($1)", {std::string(code)});
    ASSERT_TRUE(answer) << to_string(answer.error());
    EXPECT_EQ((*answer)[0][0], std::to_string(tries += 3));
  }
  EXPECT_FALSE(connection->query("SELECT flaky($1)", {std::string("22000")}));
  EXPECT_FALSE(connection->broken_off());
  // What went before in a transaction is gone: only who began it can repeat it.
  ASSERT_TRUE(connection->execute_script("BEGIN"));
  EXPECT_FALSE(connection->query("SELECT flaky($1)", {std::string("40001")}));
  EXPECT_TRUE(connection->broken_off());
  ASSERT_TRUE(connection->execute_script("ROLLBACK"));
  EXPECT_EQ((*connection->query("SELECT last_value FROM tries"))[0][0], "11");
}

TEST(PostgresConnection, AListenerIsTold) {
  const auto listener = connect(url()), teller = connect(url());
  EXPECT_FALSE(*listener->wait_for_notification(0));
  ASSERT_TRUE(*listener->listen("a \"channel\""));
  const auto tell = [&](const char* channel) {
    ASSERT_TRUE(teller->query("SELECT pg_notify($1, '')", {std::string(channel)}));
  };
  std::thread later([&] { tell("a \"channel\""); });
  EXPECT_TRUE(*listener->wait_for_notification(30));
  later.join();
  EXPECT_FALSE(*listener->wait_for_notification(0)) << "told once";
  tell("another");
  EXPECT_FALSE(*listener->wait_for_notification(.02));
  // What comes with the answer to a statement is not lost.
  tell("a \"channel\"");
  tell("a \"channel\"");
  EXPECT_EQ((*listener->query("SELECT 5"))[0][0], "5");
  EXPECT_TRUE(*listener->wait_for_notification(30));
}

TEST(PostgresConnection, AListenerWhoseServerEndsIsLost) {
  const auto listener = connect(url()), teller = connect(url());
  ASSERT_TRUE(*listener->listen("a"));
  const std::string pid = *(*listener->query("SELECT pg_backend_pid()"))[0][0];
  ASSERT_TRUE(teller->query("SELECT pg_terminate_backend($1)", {pid}));
  const Result<bool> told = listener->wait_for_notification(30);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().kind, ErrorKind::Unreachable);
  EXPECT_TRUE(listener->lost());
  EXPECT_FALSE(listener->wait_for_notification(0));
}

TEST(PostgresConnection, AStoppedServerIsLost) {
  const auto connection = connect(url());
  const pid_t backend = std::atoi((*connection->query("SELECT pg_backend_pid()"))[0][0]->c_str());
  ASSERT_GT(backend, 0);
  connection->answer_within(0.2);
  ASSERT_EQ(::kill(backend, SIGSTOP), 0);
  const auto late = connection->query("SELECT 1");
  ::kill(backend, SIGCONT);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(late.error().why, HasSubstr("does not answer"));
  EXPECT_TRUE(connection->lost());
  EXPECT_FALSE(connection->query("SELECT 1")) << "another answer might come first";
}

TEST(PostgresConnection, AnEndedBackendIsLost) {
  const auto connection = connect(url());
  const auto id = (*connection->query("SELECT pg_backend_pid()::text"))[0][0];
  ASSERT_TRUE(connect(url())->query("SELECT pg_terminate_backend($1)", {*id}));
  const auto after = connection->query("SELECT 1");
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().kind, ErrorKind::Unreachable);
  EXPECT_TRUE(connection->lost());
  const auto other = connect(url());
  const auto last = other->query("SELECT pg_terminate_backend(pg_backend_pid())");
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(last.error().why, HasSubstr("terminating connection")) << "the server's last words";
  EXPECT_TRUE(other->lost());
}

// --- Ways not to get a connection.

/// A port of this machine on which somebody answers who is no server of ours.
class Stranger {
 public:
  /// `answer`: to whatever comes, or once `end` has come; nullptr: none. Without `listens`, nobody
  /// is there.
  explicit Stranger(const char* answer, bool listens = true, char end = 0) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    if (!listens) return;
    ::listen(socket_, 8);
    thread_ = std::thread([this, answer, end] {
      for (int client; (client = ::accept(socket_, nullptr, nullptr)) >= 0;) {
        char read[64];
        if (answer == nullptr) {
          kept_.push_back(client);
          continue;
        }
        for (ssize_t got = 1; got > 0;) {
          got = ::recv(client, read, sizeof read, 0);
          if (end == 0 || (got > 0 && memchr(read, end, static_cast<size_t>(got)) != nullptr))
            break;
        }
        (void)!::send(client, answer, strlen(answer), MSG_NOSIGNAL);
        ::close(client);
      }
    });
  }
  ~Stranger() {
    ::shutdown(socket_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(socket_);
    for (const int client : kept_) ::close(client);
  }
  std::string url() const { return fmt::format("postgresql://ann@127.0.0.1:{}/tw", port_); }
  std::string place() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  int socket_, port_;
  std::vector<int> kept_;
  std::thread thread_;
};

TEST(PostgresFailures, NobodyListens) {
  const Stranger nobody(nullptr, false);
  const Error error = failure(nobody.url());
  EXPECT_EQ(error.what, "no server at " + nobody.place());
  EXPECT_EQ(error.why, "Connection refused");
  const TemporaryFolder folder = *TemporaryFolder::create();
  EXPECT_EQ(failure(PrivateServer::url(folder.path())).what,
            fmt::format("no server at the socket {}/.s.PGSQL.5432", folder.path()));
}

TEST(PostgresFailures, ThereIsNoSuchHost) {
  EXPECT_EQ(failure("postgresql://no-such-host.invalid/tw").what,
            "there is no host 'no-such-host.invalid'");
}

/// Most web servers say nothing before they have seen the end of a line.
TEST(PostgresFailures, H1_APatientWebServerIsNotPostgresEither) {
  const Stranger web("<!DOCTYPE HTML>", true, '\n');
  EXPECT_EQ(failure(web.url(), .3).what, "what answers at " + web.place() + " is not PostgreSQL");
  EXPECT_EQ(failure(web.url() + "?sslmode=disable", .3).what,
            "what answers at " + web.place() + " is not PostgreSQL");
}

TEST(PostgresFailures, H1_AWebServerIsNotPostgres) {
  const Stranger web("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(failure(web.url()).what, "what answers at " + web.place() + " is not PostgreSQL");
  EXPECT_EQ(failure(web.url() + "?sslmode=disable").what,
            "what answers at " + web.place() + " is not PostgreSQL");
}

TEST(PostgresFailures, SomebodyClosesTheConnection) {
  const Stranger shy("");
  EXPECT_EQ(failure(shy.url()).what, shy.place() + " closed the connection at once");
}

TEST(PostgresFailures, NobodyAnswersInTime) {
  const Stranger silent(nullptr);
  EXPECT_EQ(failure(silent.url(), 0.3).what, silent.place() + " does not answer within 0.3 s");
  EXPECT_EQ(failure(silent.url() + "?connect_timeout=1", 0).what,
            silent.place() + " does not answer within 1 s");
}

TEST(PostgresFailures, TheDatabaseIsMissing) {
  const Error error = failure(test_server().url("none_such"));
  EXPECT_THAT(error.what, HasSubstr("has no database 'none_such'"));
  EXPECT_THAT(error.fix, HasSubstr("createdb none_such"));
}

TEST(PostgresFailures, TheLoginIsMissing) {
  std::string name = url();
  name.replace(name.find("tilewright@"), 11, "nobody@");
  EXPECT_THAT(failure(name).what, HasSubstr("does not let 'nobody' in"));
}

/// A server with TLS on an address of this machine alone: each process has its own of 127/8, so
/// that tests side by side may all have the same port.
struct PostgresTls : testing::Test {
  static void SetUpTestSuite() {
    folder = new TemporaryFolder(TestServer::open_folder());
    address = fmt::format("127.{}.{}.{}", 64 + ::getpid() / 65536 % 64, ::getpid() / 256 % 256,
                          ::getpid() % 256);
    const std::string path = folder->file("server");
    ASSERT_TRUE(PrivateServer::init(path));
    for (const char* name : {"fleet.test", "other.test"}) {
      const auto made = run_checked(
          {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
           "-nodes", "-days", "2", "-keyout", fmt::format("{}/{}.key", path, name), "-out",
           fmt::format("{}/{}.crt", path, name), "-subj", fmt::format("/CN={}", name)});
      ASSERT_TRUE(made) << to_string(made.error());
    }
    struct stat owner{};
    ASSERT_EQ(::stat(path.c_str(), &owner), 0);
    ASSERT_TRUE(write_file(path + "/data/pg_hba.conf",
                           "local all all trust\n"
                           "hostssl all mona 127.0.0.0/8 md5\n"
                           "hostssl all all 127.0.0.0/8 scram-sha-256\n"));
    for (const char* file : {"/fleet.test.key", "/data/pg_hba.conf"})
      ASSERT_EQ(::chown((path + file).c_str(), owner.st_uid, owner.st_gid), 0);
    auto started =
        PrivateServer::start(path, {.settings = {"listen_addresses=" + address, "ssl=on",
                                                 "ssl_cert_file=" + path + "/fleet.test.crt",
                                                 "ssl_key_file=" + path + "/fleet.test.key"}});
    ASSERT_TRUE(started) << to_string(started.error());
    server = started->release();
    ASSERT_TRUE(connect(server->url())
                    ->execute_script("CREATE ROLE ann LOGIN PASSWORD 'secret'; SET "
                                     "password_encryption = 'md5'; CREATE ROLE mona LOGIN PASSWORD "
                                     "'secret'"));
  }
  static void TearDownTestSuite() {
    delete server;
    delete folder;
  }
  /// As another host would be reached: by name, with all checks.
  static std::string url(const std::string& user, const std::string& host = "fleet.test",
                         const std::string& authority = "fleet.test") {
    return fmt::format(
        "postgresql://{}@{}/postgres?hostaddr={}&sslmode=verify-full&channel_binding=require&"
        "sslrootcert={}/{}.crt",
        user, host, address, server->folder(), authority);
  }
  static TemporaryFolder* folder;
  static PrivateServer* server;
  static std::string address;
  const Variable none{"PGPASSFILE", "/none/pgpass"}, password{"PGPASSWORD", "secret"};
};
TemporaryFolder* PostgresTls::folder = nullptr;
PrivateServer* PostgresTls::server = nullptr;
std::string PostgresTls::address;

TEST_F(PostgresTls, TheRightPasswordOpens) {
  const auto connection = connect(url("ann"));
  ASSERT_NE(connection, nullptr);
  EXPECT_EQ((*connection->query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"))[0][0],
            "t");
}

TEST_F(PostgresTls, PasswordsComeFromFilesToo) {
  const Variable unset("PGPASSWORD", nullptr);
  const std::string file = folder->file("pgpass");
  ASSERT_TRUE(write_file(file, "fleet.test:*:*:ann:secret\n"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  const Variable passwords("PGPASSFILE", file.c_str());
  EXPECT_NE(connect(url("ann")), nullptr);
}

TEST_F(PostgresTls, TheWrongPasswordDoesNot) {
  const Variable wrong("PGPASSWORD", "secret2");
  const Error error = failure(url("ann"));
  EXPECT_THAT(error.what, HasSubstr("refuses the password of 'ann'"));
  EXPECT_THAT(error.fix, HasSubstr("PGPASSFILE"));
}

TEST_F(PostgresTls, NoPasswordIsNotAWrongOne) {
  const Variable unset("PGPASSWORD", nullptr);
  EXPECT_THAT(failure(url("ann")).what, HasSubstr("wants a password of 'ann'"));
}

TEST_F(PostgresTls, TheWrongAuthority) {
  EXPECT_THAT(failure(url("ann", "fleet.test", "other.test")).what,
              HasSubstr("is not signed by an authority known here"));
}

TEST_F(PostgresTls, TheWrongName) {
  EXPECT_THAT(failure(url("ann", "other.test")).what, HasSubstr("is for another host"));
}

TEST_F(PostgresTls, NoAuthority) {
  const Error error = failure(url("ann", "fleet.test", "none"));
  EXPECT_THAT(error.what, HasSubstr("there is no certificate to check"));
  EXPECT_THAT(error.fix, HasSubstr("sslrootcert=FILE"));
}

TEST_F(PostgresTls, AWeakLogin) {
  EXPECT_THAT(failure(url("mona")).what, HasSubstr("is not safe enough"));
}

TEST_F(PostgresTls, NobodyComesInWithoutTls) {
  EXPECT_THAT(failure(fmt::format("postgresql://ann@{}/postgres?sslmode=disable", address)).what,
              HasSubstr("does not let 'ann' in"));
}

TEST(PostgresFailures, AServerWithoutTls) {
  const std::string address = fmt::format("127.{}.{}.{}", 128 + ::getpid() / 65536 % 64,
                                          ::getpid() / 256 % 256, ::getpid() % 256);
  const TestServer plain({.settings = {"listen_addresses=" + address}});
  EXPECT_EQ(failure(fmt::format("postgresql://ann@{}/tw?sslmode=verify-full&sslrootcert=/dev/null",
                                address))
                .what,
            address + ":5432 offers no TLS");
}

}  // namespace
}  // namespace tilewright::postgres
