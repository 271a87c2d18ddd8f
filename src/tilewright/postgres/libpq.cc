#include "tilewright/postgres/libpq.h"

#include "tilewright/base/dynamic_library.h"

namespace tilewright::postgres {
namespace {

Result<Libpq> load() {
  auto library = DynamicLibrary::open("TILEWRIGHT_LIBPQ", {"libpq.so.5"});
  if (!library) {
    library.error().fix =
        "a postgresql:// store needs PostgreSQL's client library (Debian: libpq5); "
        "TILEWRIGHT_LIBPQ names another file";
    return tl::unexpected<Error>(std::move(library.error()));
  }
  Libpq pq;
#define TW_LIBPQ_SLOT(name) {&pq.name, "PQ" #name},
  TW_TRY_STATUS(library->bind_all({TW_LIBPQ_FUNCTIONS(TW_LIBPQ_SLOT)}));
#undef TW_LIBPQ_SLOT
  return pq;
}

}  // namespace

Result<const Libpq*> libpq() {
  static const Result<Libpq> loaded = load();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace tilewright::postgres
