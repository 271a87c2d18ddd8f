// A record store that is the schema `fleet` of a PostgreSQL database, which machines share.
#pragma once

#include <memory>
#include <string>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// A connection that is lost is made anew when it is next needed; until then errors are
/// Unreachable. `limit`: for connecting, and for each answer; units: s; 0: as a Connection does.
///   errors: Unreachable (no server, PostgreSQL without a fleet), Usage (a password in the URL,
///   another host without verify-full, a login that the fleet does not know), Package (a schema of
///   another age), Tool (libpq is not installed).
Result<std::shared_ptr<Store>> open_postgres_store(const std::string& url, double limit = 0);

}  // namespace tilewright::records
