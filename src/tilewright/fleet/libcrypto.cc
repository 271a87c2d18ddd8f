#include "tilewright/fleet/libcrypto.h"

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
#define TW_CRYPTO_SLOT(name) {&crypto.name, #name},
  TW_TRY_STATUS(library->bind_all({TW_CRYPTO_FUNCTIONS(TW_CRYPTO_SLOT)}));
#undef TW_CRYPTO_SLOT
  return crypto;
}

}  // namespace

Result<const Libcrypto*> libcrypto() {
  static const Result<Libcrypto> loaded = load_libcrypto();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace tilewright::fleet
