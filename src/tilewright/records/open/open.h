// Stores by name: what users write behind --store and into TILEWRIGHT_STORE.
//
//   records.sqlite, sqlite:records.sqlite      a file of SQLite
//   postgresql://db.lab/tilewright             the fleet of a PostgreSQL database
#pragma once

#include <memory>
#include <string>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// The file of a store that is one; empty for a server.
std::string store_file(const std::string& name);

/// Whether there is one: of a server, that shows when it is opened.
bool store_exists(const std::string& name);

/// Opens a store, and makes one that is a file.
///   errors: of its form: Io, Package; Unreachable, Usage, Tool; Usage for any other form.
Result<std::shared_ptr<Store>> open_any_store(const std::string& name);
/// The same for who only reads: a file must be there, and stays as it is.
Result<std::shared_ptr<Store>> open_any_store_to_read(const std::string& name);

/// A server's store, for who does without it where it is slow. `limit`: for connecting, and for
/// each answer; units: s. errors: as above.
Result<std::shared_ptr<Store>> open_quick_server(const std::string& url, double limit);

}  // namespace tilewright::records
