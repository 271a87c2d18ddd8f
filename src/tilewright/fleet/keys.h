// Keys of those whose code a worker runs: Ed25519, in the files that OpenSSL writes too (PEM).
//
//   tilewright fleet keygen ann.key    ann.key       signs; only its owner may read it
//                                      ann.key.pub   checks; goes to workers
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright::fleet {

/// One of OpenSSL's keys.
using CryptoKey = std::shared_ptr<void>;

class SigningKey {
 public:
  /// A new one in `path`, and what checks its signatures in `path`.pub. errors: Tool (no OpenSSL),
  /// Usage (one of the files is there), Io.
  static Result<SigningKey> make(const std::string& path);
  /// errors: Tool, Io, Usage (the file holds no private Ed25519 key, or one with a passphrase).
  static Result<SigningKey> load(const std::string& path);

  /// In hexadecimal. errors: Tool.
  Result<std::string> sign(std::string_view text) const;
  /// For messages and to find it among others: the first 16 digits of the SHA-256 of its 32 public
  /// bytes.
  const std::string& name() const { return name_; }

 private:
  SigningKey(CryptoKey key, std::string name) : key_(std::move(key)), name_(std::move(name)) {}
  CryptoKey key_;
  std::string name_;
};

class TrustedKeys {
 public:
  /// `path`: a file with one or more public keys, or a folder whose files `*.pub` are such.
  ///   errors: Tool, Io, Usage (no key in it, or one of another kind).
  static Result<TrustedKeys> load(const std::string& path);

  bool knows(const std::string& name) const { return find(name) != nullptr; }
  /// Whether the key `name` made the signature of exactly this text. False for any other text.
  bool verify(const std::string& name, std::string_view text, const std::string& signature) const;
  size_t size() const { return keys_.size(); }

 private:
  struct Named {
    std::string name;
    CryptoKey key;
  };
  const Named* find(const std::string& name) const;
  std::vector<Named> keys_;
};

}  // namespace tilewright::fleet
