// A record store that is one SQLite file, which several processes may use at the same time.
#pragma once

#include <memory>
#include <string>

#include "tilewright/records/store.h"

namespace tilewright::records {

/// Opens or makes the file; `:memory:` is a store that nobody else sees. A file of an older schema
/// is brought to this one, all of it or, on an error, nothing.
///   errors: Io (also: on a file system that machines share); Package for a file of a newer schema,
///   with both versions.
Result<std::shared_ptr<Store>> open_store(const std::string& path);
/// The same for who only reads: nothing is added through it, and a file of an older schema stays
/// what it is. A file that somebody else owns will do. errors: Io (also: it is not there), Package.
Result<std::shared_ptr<Store>> open_store_to_read(const std::string& path);
/// `TILEWRIGHT_RECORDS`, else tilewright/records.sqlite in the user's data folder.
std::string default_store_path();

}  // namespace tilewright::records
