// A PostgreSQL of one's own in a folder, for users without an administrator and for tests.
//
//   DIR/data   what initdb made        DIR/log   what the server says
//   DIR/.s.PGSQL.5432                  the socket: only the owner of DIR, and root, gets to it
//
// Nothing listens on a port. PostgreSQL refuses to run as root: for root the folder belongs to the
// user `postgres`, who runs it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::postgres {

struct ServerOptions {
  std::vector<std::string> settings;  ///< `name=value`, as in postgresql.conf; later ones count
  bool bound = true;                  ///< ends with this process, even if that is killed
};

class PrivateServer {
 public:
  /// Makes the data; nothing to do where they are. errors: Tool (no PostgreSQL, or it refuses), Io,
  /// Usage (the folder has something else in it, or its path is too long for a socket).
  static Status init(const std::string& folder);
  /// Starts it and waits until it answers. requires: `init`. errors: Tool, with the end of its log.
  static Result<std::unique_ptr<PrivateServer>> start(const std::string& folder,
                                                      const ServerOptions& options = {});
  /// Ends one that anybody started there: connections are closed, what is committed stays.
  ///   errors: Io (none runs there, or it does not end).
  static Status stop(const std::string& folder);
  static std::string url(const std::string& folder, const std::string& database = "postgres");

  /// Ends a bound one.
  ~PrivateServer();
  PrivateServer(const PrivateServer&) = delete;
  PrivateServer& operator=(const PrivateServer&) = delete;

  std::string url() const { return url(folder_); }
  const std::string& folder() const { return folder_; }
  pid_t pid() const { return pid_; }
  /// As a loss of power would: none of its processes answers any more.
  void kill();

 private:
  PrivateServer(std::string folder, pid_t pid, bool bound)
      : folder_(std::move(folder)), pid_(pid), bound_(bound) {}
  Status wait_until_ready();

  std::string folder_;
  pid_t pid_;  ///< -1: it has ended
  bool bound_;
};

}  // namespace tilewright::postgres
