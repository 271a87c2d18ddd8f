// The program with a store of tuning records on a PostgreSQL server, as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tilewright/base/file.h"
#include "tilewright/fleet/schema/migrate.h"
#include "tilewright/postgres/testing/test_server.h"

namespace tilewright::driver {
namespace {

using postgres::Variable;
using ::testing::HasSubstr;
using ::testing::Not;

class Stores : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    fleet_ = postgres::new_database();
    const Status made = fleet::migrate(*postgres::connect(fleet_));
    ASSERT_TRUE(made) << to_string(made.error());
  }
  void SetUp() override {
    ASSERT_TRUE(
        write_file(folder_.file("product.tw"),
                   "tensor product(A: f32[m, k], const B: f32[k, n]) where m = 24, n = 32, "
                   "k = 40 {\n  C[i in m, j in n] = sum(l in k) A[i, l] * B[l, j]\n  return "
                   "C\n}\n"));
  }
  /// Runs the program in the test's folder.
  ToolResult run(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {TILEWRIGHT_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const Result<ToolResult> done = run_tool(words, {folder_.path(), 120});
    EXPECT_TRUE(done);
    return done ? *done : ToolResult();
  }
  int64_t count(const std::string& store) {
    const ToolResult listed = run({"-q", "--json", "records", "ls", "--store", store});
    EXPECT_EQ(listed.status, 0) << listed.output;
    const auto json = nlohmann::json::parse(listed.output, nullptr, false);
    return json.is_object() ? json.value("count", int64_t{-1}) : -1;
  }

  static std::string fleet_;  ///< the URL of a database with a fleet
  TemporaryFolder folder_ = *TemporaryFolder::create();
  const std::string own_ = folder_.file("own.sqlite");
  const Variable records_{"TILEWRIGHT_RECORDS", own_.c_str()}, store_{"TILEWRIGHT_STORE", nullptr},
      rates_{"TILEWRIGHT_CALIBRATE", "off"};
};
std::string Stores::fleet_;

TEST_F(Stores, TuneCompileAndRecordsWorkOnAServer) {
  const ToolResult tuned =
      run({"tune", "product.tw", "--trials", "6", "--space", "tiling", "--store", fleet_});
  ASSERT_EQ(tuned.status, 0) << tuned.output;
  EXPECT_FALSE(std::filesystem::exists(own_)) << "the user's own store is another one";
  const int64_t rows = count(fleet_);
  EXPECT_GE(rows, 7) << "six candidates and the schedule by rule";
  const ToolResult compiled = run({"compile", "product.tw", "--store", fleet_, "-o", "p.twm"});
  EXPECT_EQ(compiled.status, 0) << compiled.output;
  EXPECT_THAT(compiled.output, HasSubstr("of 1 kernel from tuning records"));
  EXPECT_THAT(run({"records", "best", "--store", fleet_}).output, HasSubstr("product"));
  EXPECT_THAT(run({"records", "validate", "--store", fleet_}).output, HasSubstr(" 0 do not"));
  // To a file and back: the same records.
  EXPECT_EQ(run({"records", "merge", fleet_, "--store", "sqlite:copy.sqlite"}).status, 0);
  EXPECT_EQ(count("copy.sqlite"), rows);
  EXPECT_THAT(run({"records", "merge", "copy.sqlite", "--store", fleet_}).output,
              HasSubstr("0 added"));
  ASSERT_EQ(run({"records", "export", "-o", "a.jsonl", "--store", fleet_}).status, 0);
  ASSERT_EQ(run({"records", "export", "-o", "b.jsonl", "--records", "copy.sqlite"}).status, 0);
  EXPECT_EQ(*read_file(folder_.file("a.jsonl")), *read_file(folder_.file("b.jsonl")));
  // The same search again, out of the server's records.
  EXPECT_EQ(run({"tune", "product.tw", "--trials", "2", "--space", "tiling", "--measure",
                 "replay:" + fleet_})
                .status,
            0);
  EXPECT_EQ(run({"records", "prune", "--keep", "1", "--store", fleet_}).status, 0);
  EXPECT_LT(count(fleet_), rows);
  EXPECT_THAT(run({"compile", "product.tw", "--store", fleet_, "-o", "p.twm"}).output,
              HasSubstr("of 1 kernel from tuning records"));
}

TEST_F(Stores, TheOptionCountsBeforeTheVariable) {
  ASSERT_EQ(run({"tune", "product.tw", "--trials", "2", "--space", "tiling", "--store",
                 "sqlite:flag.sqlite"})
                .status,
            0);
  EXPECT_GT(count("flag.sqlite"), 0);
  const std::string empty = postgres::new_database();
  const Variable store("TILEWRIGHT_STORE", empty.c_str());
  EXPECT_EQ(run({"records", "ls"}).status, 10) << "the variable names a database without a fleet";
  EXPECT_EQ(run({"records", "ls", "--store", "flag.sqlite"}).status, 0);
  EXPECT_EQ(run({"records", "ls", "--records", "sqlite:flag.sqlite"}).status, 0);
  EXPECT_EQ(run({"compile", "product.tw", "-o", "p.twm"}).status, 10);
  EXPECT_EQ(run({"compile", "product.tw", "-o", "p.twm", "--no-records"}).status, 0);
}

/// `fleet init --store` makes later commands use it; a server that is away costs a line, no second.
TEST_F(Stores, TheSettingsNameOneToo) {
  const std::string settings = folder_.file("settings");
  const Variable home("XDG_CONFIG_HOME", settings.c_str()),
      data("XDG_DATA_HOME", folder_.path().c_str()), none("TILEWRIGHT_RECORDS", nullptr);
  const std::string fleet = postgres::new_database();
  EXPECT_THAT(run({"fleet", "init", "--store", fleet}).output, HasSubstr("for tuning records too"));
  ASSERT_EQ(run({"tune", "product.tw", "--trials", "2", "--space", "tiling"}).status, 0);
  EXPECT_GT(count(fleet), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.file("tilewright/records.sqlite")));
  // On a busy machine the server may be slow; a command that only reads does without it then.
  std::string said;
  for (int i = 0; i < 20 && said.find("from tuning records") == said.npos; ++i)
    said = run({"compile", "product.tw", "-o", "p.twm"}).output;
  EXPECT_THAT(said, HasSubstr("from tuning records"));
  EXPECT_EQ(run({"records", "ls"}).status, 0);
  EXPECT_THAT(run({"doctor"}).output, HasSubstr("config.toml): answers in"));
  {
    const Variable named("TILEWRIGHT_RECORDS", own_.c_str());
    EXPECT_THAT(run({"compile", "product.tw", "-o", "p.twm"}).output,
                Not(HasSubstr("from tuning records")))
        << "a variable counts before the settings";
  }
  // Nobody is there; and somebody who never answers.
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 8), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  for (const std::string& url :
       {"postgresql:///tw?host=" + folder_.path(),
        fmt::format("postgresql://127.0.0.1:{}/tw?connect_timeout=2", ntohs(address.sin_port))}) {
    ASSERT_TRUE(write_file(settings + "/tilewright/config.toml",
                           fmt::format("[fleet]\nstore = '{}'\nrecords = true\n", url)));
    const ToolResult compiled = run({"compile", "product.tw", "-o", "p.twm"});
    EXPECT_EQ(compiled.status, 0) << compiled.output;
    EXPECT_THAT(compiled.output, HasSubstr("warning: no tuning records of the fleet"));
    EXPECT_EQ(run({"records", "ls"}).status, 10);
    EXPECT_EQ(run({"tune", "product.tw", "--trials", "2"}).status, 10);
  }
  ::close(silent);
  EXPECT_THAT(run({"doctor"}).output, HasSubstr("config.toml): no server at"));
  ASSERT_TRUE(write_file(settings + "/tilewright/config.toml", "[fleet\n"));
  const ToolResult broken = run({"compile", "product.tw", "-o", "p.twm"});
  EXPECT_EQ(broken.status, 0);
  EXPECT_THAT(broken.output, HasSubstr("warning: "));
}

/// The server is killed in the middle of a search and comes back: nothing that was measured is
/// lost.
TEST_F(Stores, H2_ATuneOutlivesItsServer) {
  constexpr int kTrials = 100;
  postgres::TestServer own;
  const std::string url = own.server->url(), said = folder_.file("said");
  ASSERT_TRUE(fleet::migrate(*postgres::connect(url)));
  ToolResult tuned;
  std::thread tuning([&] {
    const std::string words = fmt::format(
        "exec '{}' --json tune product.tw --trials {} --space tiling --store '{}' 2>'{}'",
        TILEWRIGHT_PROGRAM, kTrials, url, said);
    tuned = *run_tool({"sh", "-c", words}, {folder_.path(), 300});
  });
  const auto becomes = [](const std::function<bool()>& condition) {
    for (int i = 0; i < 6000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  };
  const auto rows = [&] {
    const auto counted = postgres::connect(url)->query("SELECT count(*) FROM fleet.records");
    return std::stoi((*counted)[0][0].value_or("0"));
  };
  EXPECT_TRUE(becomes([&] { return rows() > 0; }));
  own.server->kill();
  EXPECT_TRUE(becomes(
      [&] { return read_file(said).value_or("").find("measuring goes on") != std::string::npos; }));
  own.server = *postgres::PrivateServer::start(own.server->folder());
  tuning.join();
  ASSERT_EQ(tuned.status, 0) << tuned.output << read_file(said).value_or("");
  EXPECT_THAT(*read_file(said), HasSubstr("the store does not answer"));
  EXPECT_EQ(nlohmann::json::parse(tuned.output).at("trials"), kTrials);
  EXPECT_GT(rows(), kTrials) << "one for each, and the schedule by rule";
}

TEST_F(Stores, WhoNamesNoServerNeedsNoLibpq) {
  const Variable broken("TILEWRIGHT_LIBPQ", "/none/libpq.so");
  EXPECT_EQ(run({"tune", "product.tw", "--trials", "2", "--space", "tiling"}).status, 0);
  EXPECT_EQ(run({"compile", "product.tw", "-o", "p.twm"}).status, 0);
  const ToolResult named = run({"records", "ls", "--store", fleet_});
  EXPECT_EQ(named.status, 7);
  EXPECT_THAT(named.output, HasSubstr("libpq5"));
}

TEST_F(Stores, BadDaysHaveTheirExitCodes) {
  const ToolResult password =
      run({"compile", "product.tw", "--store", "postgresql://ann:secret@db.lab/tw"});
  EXPECT_EQ(password.status, 2);
  EXPECT_THAT(password.output, HasSubstr("PGPASSFILE"));
  EXPECT_THAT(password.output, Not(HasSubstr("secret")));
  {
    const Variable store("TILEWRIGHT_STORE", "postgresql://ann:secret@db.lab/tw");
    const ToolResult variable = run({"compile", "product.tw", "-o", "p.twm"});
    EXPECT_EQ(variable.status, 2);
    EXPECT_THAT(variable.output, Not(HasSubstr("secret")));
  }
  const std::string gone = "postgresql:///tw?host=" + folder_.path();
  const ToolResult json = run({"-q", "--json", "records", "ls", "--store", gone});
  EXPECT_EQ(json.status, 10);
  EXPECT_THAT(json.output, HasSubstr("\"kind\": \"unreachable\""));
  for (const auto& words : {std::vector<std::string>{"compile", "product.tw", "-o", "p.twm"},
                            {"tune", "product.tw", "--trials", "2"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--store", gone});
    const ToolResult failed = run(all);
    EXPECT_EQ(failed.status, 10) << failed.output;
    EXPECT_THAT(failed.output, HasSubstr("no server at the socket"));
  }
  const ToolResult none = run({"tune", "product.tw", "--store", postgres::new_database()});
  EXPECT_EQ(none.status, 10);
  EXPECT_THAT(none.output, HasSubstr("but has no fleet"));
  EXPECT_THAT(none.output, HasSubstr("tilewright fleet init"));
  const std::string old = postgres::new_database();
  ASSERT_TRUE(fleet::migrate(*postgres::connect(old)));
  ASSERT_TRUE(postgres::connect(old)->execute_script("UPDATE fleet.meta SET version = 0"));
  const ToolResult older = run({"records", "ls", "--store", old});
  EXPECT_EQ(older.status, 8);
  EXPECT_THAT(older.output, HasSubstr("tilewright fleet migrate"));
  EXPECT_EQ(run({"records", "ls", "--store", "mysql://db.lab/tw"}).status, 2);
}

}  // namespace
}  // namespace tilewright::driver
