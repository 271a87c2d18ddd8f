// Where URLs lead, what is refused in them, and the words for what went wrong.
#include "tilewright/postgres/address.h"

#include <gmock/gmock.h>

#include "tilewright/base/file.h"
#include "tilewright/postgres/failure.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::postgres {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool loaded() { return read_file("/proc/self/maps")->find("libpq.so") != std::string::npos; }

// Runs first: suites of this name do.
TEST(PostgresDeathTest, LibpqIsLoadedWhenItIsNeeded) {
  EXPECT_FALSE(loaded());
  EXPECT_FALSE(Connection::open("postgresql://ann:secret@db.lab/tw"));
  EXPECT_FALSE(loaded()) << "its texts might quote the password";
  const auto without = [] {
    ::setenv("TILEWRIGHT_LIBPQ", "/none/libpq.so", 1);
    const auto opened = Connection::open("postgresql:///tw");
    const bool told = !opened && opened.error().kind == ErrorKind::Tool &&
                      opened.error().fix.find("libpq5") != std::string::npos &&
                      opened.error().why.find("TILEWRIGHT_LIBPQ names it") != std::string::npos;
    std::_Exit(told ? 0 : 1);
  };
  EXPECT_EXIT(without(), testing::ExitedWithCode(0), "");
  ASSERT_TRUE(libpq());
  EXPECT_TRUE(loaded());
}

std::string option(const Address& address, const std::string& name) {
  std::string value;
  for (const auto& [key, text] : address.options)
    if (key == name) value = text;
  return value;
}

struct Addresses : testing::Test {
  Result<Address> of(const std::string& url) { return address_of(**libpq(), url); }
  // None of who runs the tests.
  Variable host{"PGHOST", nullptr}, user{"PGUSER", nullptr}, port{"PGPORT", nullptr},
      sslmode{"PGSSLMODE", nullptr}, service{"PGSERVICE", nullptr}, password{"PGPASSWORD", nullptr};
};

TEST_F(Addresses, AreWhatTheUrlAndLibpqSay) {
  const Result<Address> far = of("postgresql://ann@db.lab/tw?application_name=x");
  ASSERT_TRUE(far) << to_string(far.error());
  EXPECT_EQ(far->place, "db.lab:5432");
  EXPECT_EQ(far->user, "ann");
  EXPECT_EQ(far->database, "tw");
  EXPECT_EQ(option(*far, "application_name"), "x");
  EXPECT_EQ(far->connect_seconds, 0);
  EXPECT_EQ(of("postgresql://localhost/tw?connect_timeout=3")->connect_seconds, 3);
  EXPECT_EQ(of("postgresql:///tw?host=/run/pool&port=7")->place, "the socket /run/pool/.s.PGSQL.7");
  EXPECT_EQ(of("postgres://[::1]:77/tw")->place, "[::1]:77");
  const Variable from_environment("PGPORT", "99");
  EXPECT_EQ(of("postgresql://localhost/tw")->place, "localhost:99");
  const Variable patience("PGCONNECT_TIMEOUT", "4");
  EXPECT_EQ(of("postgresql://localhost/tw")->connect_seconds, 4);
}

TEST_F(Addresses, ATimeLimitIsANumber) {
  const Result<Address> made = of("postgresql://localhost/tw?connect_timeout=soon");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Usage);
  EXPECT_EQ(made.error().what, "connect_timeout=soon is no number");
}

TEST_F(Addresses, AnotherHostNeedsVerifiedTls) {
  for (const char* url : {"postgresql://db.lab/tw", "postgresql://db.lab/tw?sslmode=verify-full",
                          "postgresql://10.0.0.7/tw", "postgresql://localhost,db.lab/tw",
                          "postgresql://localhost/tw?hostaddr=10.0.0.7"}) {
    const Result<Address> address = of(url);
    ASSERT_TRUE(address) << url;
    EXPECT_EQ(option(*address, "sslmode"), "verify-full") << url;
    EXPECT_EQ(option(*address, "channel_binding"), "require") << url;
  }
  EXPECT_EQ(option(*of("postgresql://db.lab/tw?channel_binding=prefer"), "channel_binding"),
            "prefer");
  for (const char* mode : {"disable", "allow", "prefer", "require", "verify-ca"}) {
    const Result<Address> weak = of(std::string("postgresql://db.lab/tw?sslmode=") + mode);
    ASSERT_FALSE(weak) << mode;
    EXPECT_EQ(weak.error().kind, ErrorKind::Usage);
    EXPECT_THAT(weak.error().what, HasSubstr(mode));
    EXPECT_THAT(weak.error().fix, HasSubstr("verify-full"));
  }
  for (const char* url :
       {"postgresql:///tw", "postgresql://localhost/tw", "postgresql://127.1.2.3/tw",
        "postgresql://[::1]/tw", "postgresql:///tw?host=/run/pool",
        "postgresql://db.lab/tw?hostaddr=127.0.0.1"})
    EXPECT_EQ(option(*of(url), "sslmode"), "") << url;
  EXPECT_TRUE(of("postgresql://localhost/tw?sslmode=disable"));
}

/// What the URL does not say may come from elsewhere.
TEST_F(Addresses, HostsOfVariablesAndServiceFilesCount) {
  const Variable weak("PGSSLMODE", "disable");
  {
    const Variable there("PGHOST", "db.lab");
    const Result<Address> address = of("postgresql:///tw");
    ASSERT_TRUE(address);
    EXPECT_EQ(address->place, "db.lab:5432");
    EXPECT_EQ(option(*address, "sslmode"), "verify-full") << "the variable is weaker";
  }
  const TemporaryFolder folder = *TemporaryFolder::create();
  ASSERT_TRUE(write_file(folder.file("services"), "[lab]\nhost=db.lab\nsslmode=prefer\n"));
  const Variable services("PGSERVICEFILE", folder.file("services").c_str());
  const Result<Address> address = of("postgresql:///tw?service=lab");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->place, "db.lab:5432");
  EXPECT_EQ(option(*address, "sslmode"), "verify-full");
}

TEST_F(Addresses, PasswordsAreRefusedAndNeverShown) {
  for (const char* url :
       {"postgresql://ann:secret@db.lab/tw", "postgresql://ann:se/secret@db.lab/tw",
        "postgresql://ann:secret@[::1]/tw", "postgresql://ann@db.lab/tw?password=secret",
        "postgresql://ann@db.lab/tw?PASSWORD=secret", "postgresql://db.lab/tw?%70assword=secret",
        "postgresql://db.lab/tw?sslpassword=secret", "postgresql://ann%3Asecret@db.lab/tw",
        "postgresql://ann:secret%zz@db.lab/tw"}) {
    const Result<Address> address = of(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().kind, ErrorKind::Usage);
    EXPECT_THAT(address.error().fix, HasSubstr("PGPASSFILE")) << url;
    EXPECT_THAT(to_string(address.error()), Not(HasSubstr("secret"))) << url;
  }
  // Refused for another reason, and libpq's own text would quote it.
  for (const char* url :
       {"postgresql://ann:se?secret@db.lab/tw", "postgresql://db.lab/tw?%70assword=secret%zz"}) {
    const Result<Address> address = of(url);
    ASSERT_FALSE(address) << url;
    EXPECT_THAT(to_string(address.error()), Not(HasSubstr("secret"))) << url;
  }
}

TEST_F(Addresses, WhatIsNoUrlIsRefused) {
  for (const char* url :
       {"records.sqlite", "mysql://db.lab/tw", "postgresql://db.lab/tw?colour=red"}) {
    const Result<Address> address = of(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().kind, ErrorKind::Usage);
    EXPECT_THAT(address.error().fix, HasSubstr("postgresql://"));
  }
  EXPECT_THAT(of("postgresql://db.lab/tw?colour=red").error().why, HasSubstr("colour"));
  EXPECT_TRUE(is_url("postgres://x"));
  EXPECT_FALSE(is_url("sqlite:x"));
}

TEST(Failures, EachReasonHasItsOwnWords) {
  Address to;
  to.place = "db.lab:5432", to.host = "db.lab", to.user = "ann", to.database = "tw";
  const std::string front = "connection to server at \"db.lab\" (10.0.0.7), port 5432 failed: ";
  const std::string code = front + "FATAL:  ";
  const struct {
    std::string text, what;
  } rows[] = {
      {front + "Connection refused\n\tIs the server running on that host\n",
       "no server at db.lab:5432"},
      {"could not translate host name \"db.lab\" to address: Name or service not known\n",
       "there is no host 'db.lab'"},
      {front + "SSL error: certificate verify failed\n",
       "the certificate of db.lab:5432 is not signed by an authority known here"},
      {front + "server certificate for \"a\" does not match host name \"db.lab\"\n",
       "the certificate of db.lab:5432 is for another host"},
      {front + "root certificate file \"/x\" does not exist\n",
       "there is no certificate to check db.lab:5432 by"},
      {front + "server does not support SSL, but SSL was required\n", "db.lab:5432 offers no TLS"},
      {front + "SSL error: wrong version number\n", "no safe connection to db.lab:5432"},
      {front + "received invalid response to SSL negotiation: H\n",
       "what answers at db.lab:5432 is not PostgreSQL"},
      {front + "server closed the connection unexpectedly\n",
       "db.lab:5432 closed the connection at once"},
      {front +
           "channel binding required, but server authenticated client without channel binding\n",
       "the login at db.lab:5432 is not safe enough"},
      {front + "something new\n", "cannot connect to db.lab:5432"},
      {code + "28P01: mot de passe\nLOCATION:  auth.c:1\n",
       "PostgreSQL at db.lab:5432 refuses the password of 'ann'"},
      {code + "28000: no pg_hba.conf entry\n", "PostgreSQL at db.lab:5432 does not let 'ann' in"},
      {code + "3D000: x\n", "PostgreSQL at db.lab:5432 has no database 'tw'"},
      {code + "42501: x\n", "'ann' may not connect to the database 'tw'"},
      {code + "57P03: the database system is starting up\n",
       "PostgreSQL at db.lab:5432 is starting or ending"},
      {code + "53300: x\n", "PostgreSQL at db.lab:5432 has no connection left"},
  };
  for (const auto& [text, what] : rows) {
    const Error error = connect_failure(to, text, false);
    EXPECT_EQ(error.what, what);
    EXPECT_EQ(error.kind, ErrorKind::Unreachable);
    EXPECT_NE(error.fix, "");
    EXPECT_THAT(error.why, Not(HasSubstr("connection to server")));
    EXPECT_THAT(error.why, Not(HasSubstr("LOCATION")));
    EXPECT_THAT(error.why, Not(HasSubstr("\n")));
  }
  EXPECT_EQ(connect_failure(to, rows[0].text, false).why, "Connection refused");
  EXPECT_EQ(connect_failure(to, front + "fe_sendauth: no password supplied\n", true).what,
            "PostgreSQL at db.lab:5432 wants a password of 'ann'");
}

TEST(Failures, StatesOfStatementsNameTheKind) {
  const std::pair<const char*, ErrorKind> rows[] = {
      {"TW400", ErrorKind::Usage},       {"TW403", ErrorKind::Usage},
      {"TW404", ErrorKind::Device},      {"TW409", ErrorKind::Package},
      {"TW429", ErrorKind::Limit},       {"08006", ErrorKind::Unreachable},
      {"57P01", ErrorKind::Unreachable}, {"", ErrorKind::Unreachable},
      {"23505", ErrorKind::Io},          {"57014", ErrorKind::Io}};
  for (const auto& [code, kind] : rows)
    EXPECT_EQ(statement_failure({code, "m", "d", "h"}, "here").kind, kind) << code;
  EXPECT_EQ(to_string(statement_failure({"TW429", "full", "20 of 20", "wait"}, "here")),
            to_string(Error{ErrorKind::Limit, "full", {}, "20 of 20", "wait", {}}));
  EXPECT_EQ(statement_failure({"23505", "m", "d", "h"}, "here").why, "m (23505): d");
}

}  // namespace
}  // namespace tilewright::postgres
