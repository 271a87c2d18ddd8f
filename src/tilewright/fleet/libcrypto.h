// libcrypto, OpenSSL's library: loaded when a key is first used, since nobody else needs it.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

// clang-format off
/// `TW_CRYPTO_FUNCTIONS(X)`: X(name) for each function that is used.
#define TW_CRYPTO_FUNCTIONS(X)                                                                     \
  X(BIO_ctrl) X(BIO_free) X(BIO_new) X(BIO_new_mem_buf) X(BIO_s_mem) X(EVP_DigestSign)             \
  X(EVP_DigestSignInit) X(EVP_DigestVerify) X(EVP_DigestVerifyInit) X(EVP_MD_CTX_free)             \
  X(EVP_MD_CTX_new) X(EVP_PKEY_Q_keygen) X(EVP_PKEY_free) X(EVP_PKEY_get_id)                       \
  X(EVP_PKEY_get_raw_public_key) X(PEM_read_bio_PUBKEY) X(PEM_read_bio_PrivateKey)                 \
  X(PEM_write_bio_PKCS8PrivateKey) X(PEM_write_bio_PUBKEY)
// clang-format on

/// Its entry points, under their own names.
struct Libcrypto {
#define TW_CRYPTO_MEMBER(name) decltype(&::name) name = nullptr;
  TW_CRYPTO_FUNCTIONS(TW_CRYPTO_MEMBER)
#undef TW_CRYPTO_MEMBER
};

/// Loads it the first time: the file that TILEWRIGHT_LIBCRYPTO names, or libcrypto.so.3.
/// errors: Tool.
Result<const Libcrypto*> libcrypto();

}  // namespace tilewright::fleet
