// The `manifest.json` of a program dump: its values, the files it names, and what is written into
// it alike for every accelerator.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/accel/common/dump_folder.h"
#include "tilewright/accel/common/image.h"

namespace tilewright::accel {

using Json = nlohmann::ordered_json;
using Files = std::map<std::string, std::string>;  ///< contents of a dump's files by their names

/// As a file. Names are the user's: bytes that are not UTF-8 are replaced rather than fatal.
std::string manifest_text(const Json& manifest);
/// `Image::info`; an empty text is an empty object. errors: Invalid.
Result<Json> info_json(const std::string& info);
Json spans_json(const std::vector<Span>& spans);
/// Appends bytes to a file of the dump. Gives `entry` with the keys that say where they are.
Json with_part(Json entry, Files& files, const std::string& file, std::string_view bytes);
/// The manifest's first keys: format, version, and who made the program.
Json header_json(std::string_view format, int version, const Image& image);
/// That DRAM after the last run is as large as the image; empty: not known. errors: Invalid.
Status check_final_image(const Image& image, std::string_view final_image);

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
  /// What `header_json` wrote, and `info`.
  void read_header(std::string_view format, int version, Image& into);
  std::string read_producer() { return text(json_, "producer", "", false).value_or(""); }
  std::string read_info();
  /// The bytes of a patch; all patches together are limited like a file. `bytes`: as in `part`.
  std::optional<std::string_view> patch_part(const Json& patch, const std::string& where,
                                             std::optional<uint64_t> bytes);
  /// The regions in the array `key`, by `name`, `address` and `bytes`.
  std::vector<Region> read_regions(const std::string& key);
  void read_spans(const Json& json, const std::string& where, std::vector<Span>& into);
  /// The bytes that an output is to have: `expected` names a file, `offset` the place in it; those
  /// of all outputs together are limited like a file. Empty: the dump says nothing.
  std::string expected(const Json& output, uint64_t bytes, const std::string& where);
  /// Hardware as the TOML that it stands for: `kind`, `name`, and `keys` (entries with `table` and
  /// `name`) but for those of the table `left_out`. Keys that are not known are left out.
  template <class Keys>
  std::string toml_of(const Json& hardware, const std::string& where, const Keys& keys,
                      std::string_view left_out = {}) {
    std::string toml;
    for (const char* key : {"kind", "name"}) add_setting(hardware, key, where, toml);
    std::string_view table;
    for (const auto& key : keys) {
      if (!left_out.empty() && key.table == left_out) continue;
      if (key.table != table) toml += '[' + std::string(key.table) + "]\n";
      table = key.table;
      const Json* section =
          table.empty() ? &hardware : member(hardware, std::string(table), where, false);
      if (section != nullptr) add_setting(*section, std::string(key.name), where, toml);
    }
    return toml;
  }

 private:
  void add_setting(const Json& section, const std::string& key, const std::string& where,
                   std::string& toml);

  DumpFolder folder_;
  uint64_t most_, patched_ = 0, expected_ = 0;
  Json json_;
  Problems problems_;
};

}  // namespace tilewright::accel
