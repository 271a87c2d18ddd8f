// A PostgreSQL for the tests of a program, started when a test first asks for it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/base/process.h"
#include "tilewright/postgres/connection.h"
#include "tilewright/postgres/server.h"

namespace tilewright::postgres {

/// A server and its folder, in memory where the system has a file system there.
struct TestServer {
  explicit TestServer(const ServerOptions& options = {}) {
    Status made = PrivateServer::init(folder.file("server"));
    EXPECT_TRUE(made) << to_string(made.error());
    auto started = PrivateServer::start(folder.file("server"), options);
    EXPECT_TRUE(started) << to_string(started.error());
    if (started) server = *std::move(started);
  }
  static TemporaryFolder quick_folder() {
    Result<TemporaryFolder> made = TemporaryFolder::create("/dev/shm");
    return made ? *std::move(made) : *TemporaryFolder::create();
  }
  /// The user of the server may pass the folder, and sees nothing in it but its own.
  static TemporaryFolder open_folder() {
    TemporaryFolder made = quick_folder();
    std::filesystem::permissions(made.path(), std::filesystem::perms(0711));
    return made;
  }
  std::string url(const std::string& database) const {
    return PrivateServer::url(server->folder(), database);
  }

  TemporaryFolder folder = open_folder();
  std::unique_ptr<PrivateServer> server;
};

/// One for all tests of the program.
inline TestServer& test_server() {
  static TestServer server;
  return server;
}

inline std::unique_ptr<Connection> connect(const std::string& url) {
  auto made = Connection::open(url);
  EXPECT_TRUE(made) << to_string(made.error());
  return made ? *std::move(made) : nullptr;
}

/// An empty database of the common server, or a copy of `pattern`. Its URL.
inline std::string new_database(const std::string& pattern = "template0") {
  static int count = 0;
  const std::string name = fmt::format("test_{}", ++count);
  const auto made =
      connect(test_server().server->url())
          ->execute_script(fmt::format("CREATE DATABASE {} TEMPLATE {}", name, pattern));
  EXPECT_TRUE(made) << to_string(made.error());
  return test_server().url(name);
}

/// Sets a variable of the environment for the length of a scope; nullptr: it is not set there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace tilewright::postgres
