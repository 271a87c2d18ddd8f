#include "tilewright/fleet/libcrypto.h"

#include <cstring>

#include "tilewright/base/dynamic_library.h"

namespace tilewright::fleet {
namespace {

Result<Libcrypto> load_libcrypto() {
  auto library = DynamicLibrary::open("TILEWRIGHT_LIBCRYPTO", {"libcrypto.so.3"});
  if (!library) {
    library.error().fix =
        "signatures need OpenSSL 3 (Debian: libssl3); TILEWRIGHT_LIBCRYPTO names another file";
    return tl::unexpected<Error>(std::move(library.error()));
  }
  Libcrypto crypto;
  struct Slot {
    void* member;
    const char* symbol;
  };
#define TW_CRYPTO_SLOT(name) {&crypto.name, #name},
  const Slot slots[] = {TW_CRYPTO_FUNCTIONS(TW_CRYPTO_SLOT)};
#undef TW_CRYPTO_SLOT
  for (const Slot& slot : slots) {
    void* found = nullptr;
    TW_TRY_STATUS(library->bind(found, slot.symbol));
    std::memcpy(slot.member, &found, sizeof found);
  }
  return crypto;
}

}  // namespace

Result<const Libcrypto*> libcrypto() {
  static const Result<Libcrypto> loaded = load_libcrypto();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace tilewright::fleet
