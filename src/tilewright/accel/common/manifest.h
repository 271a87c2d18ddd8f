// The `manifest.json` of a program dump: its values, the files it names, and what is written into
// it alike for every accelerator.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/dump_folder.h"
#include "tilewright/accel/common/image.h"

namespace tilewright::accel {

using Json = nlohmann::ordered_json;

/// As a file. Names are the user's: bytes that are not UTF-8 are replaced rather than fatal.
std::string manifest_text(const Json& manifest);
/// `Image::info`; an empty text is an empty object. errors: Invalid.
Result<Json> info_json(const std::string& info);
Json spans_json(const std::vector<Span>& spans);

/// What a reader of dumps begins with. A value that is missing or wrong is noted as a problem and
/// reads as nothing, so that all problems of a dump are found at once. `where` is a place in the
/// manifest, for messages.
class ManifestReader {
 public:
  /// `most`: bytes of a file that the manifest names.
  ManifestReader(std::string folder, uint64_t most) : folder_(std::move(folder)), most_(most) {}

 protected:
  const std::string& folder() const { return folder_.path(); }
  /// Reads the manifest into `json()`. errors: Io, Parse, Invalid.
  Status open();
  const Json& json() const { return json_; }

  void problem(const std::string& where, Error error);
  void problem(const std::string& where, std::string what, ErrorKind kind = ErrorKind::Invalid);
  /// errors: the problems so far.
  Status status() { return std::move(problems_).status(); }

  const Json* member(const Json& object, const std::string& key, const std::string& where,
                     bool required = true);
  std::optional<uint64_t> number(const Json& object, const std::string& key,
                                 const std::string& where, bool required = true);
  std::optional<std::string> text(const Json& object, const std::string& key,
                                  const std::string& where, bool required = true);
  /// The entries of an array.
  const Json& list(const Json& object, const std::string& key, const std::string& where,
                   bool required = true);
  /// `bytes` bytes (default: the rest) of the file that an object names, from its offset on.
  std::optional<std::string_view> part(const Json& object, const std::string& where,
                                       std::optional<uint64_t> bytes);
  /// The contents of a file, or null.
  const std::string* file(const std::string& name, const std::string& where);

  void check_format(std::string_view format);
  std::string read_info();
  void read_spans(const Json& json, const std::string& where, std::vector<Span>& into);

 private:
  DumpFolder folder_;
  uint64_t most_;
  Json json_;
  Problems problems_;
};

}  // namespace tilewright::accel
