#include "tilewright/fleet/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tilewright/base/file.h"
#include "tilewright/fleet/libcrypto.h"

namespace tilewright::fleet {
namespace {

constexpr size_t kPublicBytes = 32, kSignatureBytes = 64;  // source: RFC 8032, section 5.1
constexpr size_t kNameDigits = 16;

using Bio = std::unique_ptr<BIO, decltype(&::BIO_free)>;
using Digest = std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)>;

EVP_PKEY* raw(const CryptoKey& key) { return static_cast<EVP_PKEY*>(key.get()); }

CryptoKey owned(const Libcrypto& crypto, EVP_PKEY* key) {
  return {key, [&crypto](void* one) { crypto.EVP_PKEY_free(static_cast<EVP_PKEY*>(one)); }};
}

/// Bytes of a file, for OpenSSL to read; they outlive it.
Bio reader_of(const Libcrypto& crypto, const std::string& text) {
  return {crypto.BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), crypto.BIO_free};
}

/// The name of an Ed25519 key; nothing of another kind.
std::optional<std::string> name_of_key(const Libcrypto& crypto, EVP_PKEY* key) {
  std::array<unsigned char, kPublicBytes> bytes;
  size_t size = bytes.size();
  if (crypto.EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
      crypto.EVP_PKEY_get_raw_public_key(key, bytes.data(), &size) != 1)
    return std::nullopt;
  return sha256({reinterpret_cast<const char*>(bytes.data()), size}).substr(0, kNameDigits);
}

std::string hex_of(const std::array<unsigned char, kSignatureBytes>& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// False: these are not as many digits as a signature has.
bool bytes_of(const std::string& hex, std::array<unsigned char, kSignatureBytes>& bytes) {
  if (hex.size() != 2 * kSignatureBytes ||
      hex.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  return true;
}

/// What `write` puts into a file of OpenSSL's.
template <class Write>
std::string pem_of(const Libcrypto& crypto, const Write& write) {
  const Bio bio(crypto.BIO_new(crypto.BIO_s_mem()), crypto.BIO_free);
  char* text = nullptr;
  if (bio == nullptr || write(bio.get()) != 1) return "";
  const long size = crypto.BIO_ctrl(bio.get(), BIO_CTRL_INFO, 0, &text);
  return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
}

/// A file that was not there. `mode`: who may read it.
Status write_new(const std::string& path, const std::string& text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0 && errno == EEXIST)
    return fail(ErrorKind::Usage, fmt::format("{} is there already", path),
                "a key that is gone cannot be had again", "name a new file");
  const bool written =
      file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (written) return {};
  return fail(ErrorKind::Io, fmt::format("cannot write {}", path), std::strerror(error));
}

tl::unexpected<Error> no_key(const std::string& path, const char* what, const char* why) {
  return fail(
      ErrorKind::Usage, fmt::format("{} holds no {} Ed25519 key", path, what), why,
      "tilewright fleet keygen FILE makes FILE, which signs, and FILE.pub, which is trusted");
}

}  // namespace

Result<SigningKey> SigningKey::make(const std::string& path) {
  const Libcrypto& crypto = *TW_TRY(libcrypto());
  const CryptoKey key = owned(crypto, crypto.EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const auto name = key != nullptr ? name_of_key(crypto, raw(key)) : std::nullopt;
  const std::string secret = !name ? "" : pem_of(crypto, [&](BIO* bio) {
    return crypto.PEM_write_bio_PKCS8PrivateKey(bio, raw(key), nullptr, nullptr, 0, nullptr,
                                                nullptr);
  });
  const std::string known =
      !name ? ""
            : pem_of(crypto, [&](BIO* bio) { return crypto.PEM_write_bio_PUBKEY(bio, raw(key)); });
  if (secret.empty() || known.empty()) return fail(ErrorKind::Tool, "OpenSSL made no key");
  TW_TRY_STATUS(write_new(path, secret, 0600));
  TW_TRY_STATUS(write_new(path + ".pub", known, 0644));
  return SigningKey(key, *name);
}

Result<SigningKey> SigningKey::load(const std::string& path) {
  const Libcrypto& crypto = *TW_TRY(libcrypto());
  const std::string text = TW_TRY(read_file(path));
  const Bio bio = reader_of(crypto, text);
  char none[] = "";  // for keys with a passphrase, which would be asked for at the terminal
  const CryptoKey key =
      owned(crypto, crypto.PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, none));
  const auto name = key != nullptr ? name_of_key(crypto, raw(key)) : std::nullopt;
  if (!name)
    return no_key(path, "private",
                  key != nullptr ? "it is a key of another kind"
                                 : "it is no private key in PEM, or one with a passphrase");
  return SigningKey(key, *name);
}

Result<std::string> SigningKey::sign(std::string_view text) const {
  const Libcrypto& crypto = *TW_TRY(libcrypto());
  const Digest digest(crypto.EVP_MD_CTX_new(), crypto.EVP_MD_CTX_free);
  std::array<unsigned char, kSignatureBytes> bytes;
  size_t size = bytes.size();
  if (digest == nullptr ||
      crypto.EVP_DigestSignInit(digest.get(), nullptr, nullptr, nullptr, raw(key_)) != 1 ||
      crypto.EVP_DigestSign(digest.get(), bytes.data(), &size,
                            reinterpret_cast<const unsigned char*>(text.data()), text.size()) != 1)
    return fail(ErrorKind::Tool, "OpenSSL made no signature");
  return hex_of(bytes);
}

Result<TrustedKeys> TrustedKeys::load(const std::string& path) {
  namespace fs = std::filesystem;
  const Libcrypto& crypto = *TW_TRY(libcrypto());
  std::vector<std::string> files = {path};
  std::error_code error;
  if (fs::is_directory(path, error)) {
    files.clear();
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".pub") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    if (files.empty()) return no_key(path, "public", "no file in the folder ends in .pub");
  }
  TrustedKeys keys;
  for (const std::string& file : files) {
    const std::string text = TW_TRY(read_file(file));
    const Bio bio = reader_of(crypto, text);
    const size_t before = keys.keys_.size();
    while (EVP_PKEY* read = crypto.PEM_read_bio_PUBKEY(bio.get(), nullptr, nullptr, nullptr)) {
      const CryptoKey key = owned(crypto, read);
      const auto name = name_of_key(crypto, read);
      if (!name) return no_key(file, "public", "it is a key of another kind");
      keys.keys_.push_back({*name, key});
    }
    if (keys.keys_.size() == before) return no_key(file, "public", "it is no public key in PEM");
  }
  return keys;
}

const TrustedKeys::Named* TrustedKeys::find(const std::string& name) const {
  const auto found =
      std::find_if(keys_.begin(), keys_.end(), [&](const Named& one) { return one.name == name; });
  return found == keys_.end() ? nullptr : &*found;
}

bool TrustedKeys::verify(const std::string& name, std::string_view text,
                         const std::string& signature) const {
  const auto crypto = libcrypto();
  const Named* named = find(name);
  std::array<unsigned char, kSignatureBytes> bytes;
  if (!crypto || named == nullptr || !bytes_of(signature, bytes)) return false;
  const Digest digest((*crypto)->EVP_MD_CTX_new(), (*crypto)->EVP_MD_CTX_free);
  return digest != nullptr &&
         (*crypto)->EVP_DigestVerifyInit(digest.get(), nullptr, nullptr, nullptr,
                                         raw(named->key)) == 1 &&
         (*crypto)->EVP_DigestVerify(digest.get(), bytes.data(), bytes.size(),
                                     reinterpret_cast<const unsigned char*>(text.data()),
                                     text.size()) == 1;
}

}  // namespace tilewright::fleet
