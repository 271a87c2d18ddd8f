#include "tilewright/postgres/libpq.h"

#include <cstring>

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
  struct Slot {
    void* member;
    const char* symbol;
  };
#define TW_LIBPQ_SLOT(name) {&pq.name, "PQ" #name},
  const Slot slots[] = {TW_LIBPQ_FUNCTIONS(TW_LIBPQ_SLOT)};
#undef TW_LIBPQ_SLOT
  for (const Slot& slot : slots) {
    void* found = nullptr;
    TW_TRY_STATUS(library->bind(found, slot.symbol));
    std::memcpy(slot.member, &found, sizeof found);
  }
  return pq;
}

}  // namespace

Result<const Libpq*> libpq() {
  static const Result<Libpq> loaded = load();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace tilewright::postgres
