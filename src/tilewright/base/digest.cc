// Apart from file.cc: what ships to a device reads files, and has no OpenSSL.
#include <fmt/format.h>
#include <openssl/evp.h>

#include "tilewright/base/file.h"

namespace tilewright {

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_sha256(), nullptr);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace tilewright
