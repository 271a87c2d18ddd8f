// Where a URL leads, and what must hold on the way there.
//
//   postgresql://ann@db.lab/tilewright  ->  host=db.lab user=ann dbname=tilewright, and, because
//                                           that is another machine, sslmode=verify-full
//                                           channel_binding=require
//
// libpq fills in what the URL leaves open: from variables (PGUSER, PGHOST, ...), service files and
// its own defaults. So whether the way leaves this machine is asked of libpq, not of the URL.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tilewright/base/result.h"
#include "tilewright/postgres/libpq.h"

namespace tilewright::postgres {

struct Address {
  std::vector<std::pair<std::string, std::string>> options;  ///< for libpq; later ones count
  std::string place;                                         ///< for messages: `db.lab:5432`
  std::string host, user, database;
  double connect_seconds = 0;  ///< `connect_timeout` of the URL or PGCONNECT_TIMEOUT; 0: none
};

/// errors: Usage (no URL of PostgreSQL; a password in it; a connect_timeout that is no number; less
/// than verify-full to another host).
Result<Address> address_of(const Libpq& pq, const std::string& url);

/// Whether a list of hosts, as libpq takes them, leads to this machine alone.
bool stays_here(const std::string& hosts);

/// Whether a URL seems to hold a password: found without libpq, whose texts may quote it.
bool has_password(const std::string& url);
/// The error of such a one.
Error password_in_url();

}  // namespace tilewright::postgres
