#include "tilewright/accel/common/manifest.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"

namespace tilewright::accel {
namespace {

constexpr uint64_t kManifestLimit = uint64_t{64} << 20;  // bytes
constexpr int kMaxDepth = 200;

}  // namespace

std::string manifest_text(const Json& manifest) { return json_text(manifest, 2) + "\n"; }

Result<Json> info_json(const std::string& info) {
  Json json = Json::object();
  if (!info.empty()) json = parse_ordered_json(info, std::nothrow);
  if (json.is_object()) return json;
  return fail(ErrorKind::Invalid, "the program's information is not a JSON object");
}

Json spans_json(const std::vector<Span>& spans) {
  Json json = Json::array();
  for (const Span& span : spans)
    json.push_back({{"name", span.name}, {"begin", span.begin}, {"end", span.end}});
  return json;
}

Json with_part(Json entry, Files& files, const std::string& file, std::string_view bytes) {
  std::string& contents = files[file];
  entry["file"] = file, entry["offset"] = contents.size(), entry["bytes"] = bytes.size();
  contents += bytes;
  return entry;
}

Json header_json(std::string_view format, int version, const Image& image) {
  Json json = {{"format", format}, {"version", version}};
  if (!image.producer.empty()) json["producer"] = image.producer;
  return json;
}

Status check_final_image(const Image& image, std::string_view final_image) {
  if (final_image.empty() || final_image.size() == image.image.size()) return {};
  return fail(ErrorKind::Invalid, fmt::format("the final image has {} bytes, but the image {}",
                                              final_image.size(), image.image.size()));
}

Status ManifestReader::open() {
  const std::filesystem::path path = std::filesystem::path(folder_.path()) / "manifest.json";
  std::error_code code;
  const uint64_t size = std::filesystem::file_size(path, code);
  if (!code && size > kManifestLimit) {
    problem("manifest.json", fmt::format("has {} bytes, more than {}", size, kManifestLimit));
    return status();
  }
  // The user names the folder, so the manifest itself may be a link, other than the files it names.
  Result<std::string> manifest = read_file(path.string());
  if (!manifest) {
    problem("", std::move(manifest.error()));
    return status();
  }
  if (json_depth(*manifest) > kMaxDepth) {
    problem("manifest.json", fmt::format("values are nested deeper than {}", kMaxDepth),
            ErrorKind::Parse);
    return status();
  }
  json_ = parse_ordered_json(*manifest, std::nothrow);
  if (!json_.is_object()) problem("manifest.json", "is not a JSON object", ErrorKind::Parse);
  return status();
}

void ManifestReader::problem(const std::string& where, Error error) {
  if (!where.empty()) error = std::move(error).at(where);
  problems_.add(std::move(error).at(folder_.path()));
}

void ManifestReader::problem(const std::string& where, std::string what, ErrorKind kind) {
  problem(where, Error{kind, std::move(what), {}, {}, {}, {}});
}

const Json* ManifestReader::member(const Json& object, const std::string& key,
                                   const std::string& where, bool required) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (object.is_object() && found != object.end()) return &*found;
  if (required) problem(where, fmt::format("`{}` is missing", key), ErrorKind::Parse);
  return nullptr;
}

std::optional<uint64_t> ManifestReader::number(const Json& object, const std::string& key,
                                               const std::string& where, bool required) {
  const Json* value = member(object, key, where, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<uint64_t>();
  problem(where, fmt::format("`{}` must be a number that is whole and not negative", key),
          ErrorKind::Parse);
  return std::nullopt;
}

std::optional<std::string> ManifestReader::text(const Json& object, const std::string& key,
                                                const std::string& where, bool required) {
  const Json* value = member(object, key, where, required);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  problem(where, fmt::format("`{}` must be a text", key), ErrorKind::Parse);
  return std::nullopt;
}

const Json& ManifestReader::list(const Json& object, const std::string& key,
                                 const std::string& where, bool required) {
  static const Json kNone = Json::array();
  const Json* value = member(object, key, where, required);
  if (value == nullptr) return kNone;
  if (value->is_array()) return *value;
  problem(where, fmt::format("`{}` must be an array", key), ErrorKind::Parse);
  return kNone;
}

const std::string* ManifestReader::file(const std::string& name, const std::string& where) {
  Result<const std::string*> contents = folder_.read(name, most_);
  if (contents) return *contents;
  problem(where, std::move(contents.error()));
  return nullptr;
}

std::optional<std::string_view> ManifestReader::part(const Json& object, const std::string& where,
                                                     std::optional<uint64_t> bytes) {
  const auto name = text(object, "file", where);
  const std::string* contents = name ? file(*name, where) : nullptr;
  if (contents == nullptr) return std::nullopt;
  const uint64_t offset = number(object, "offset", where, false).value_or(0);
  if (offset <= contents->size() && bytes.value_or(0) <= contents->size() - offset)
    return std::string_view(*contents).substr(offset, bytes.value_or(std::string::npos));
  problem(where, fmt::format("{} bytes from offset {} go beyond the {} of '{}'", bytes.value_or(0),
                             offset, contents->size(), *name));
  return std::nullopt;
}

void ManifestReader::check_format(std::string_view format) {
  if (const auto found = text(json_, "format", ""); found && *found != format)
    problem("", fmt::format("format is '{}', not '{}'", *found, format));
}

void ManifestReader::read_header(std::string_view format, int version, Image& into) {
  check_format(format);
  if (const auto found = number(json_, "version", "");
      found && *found != static_cast<uint64_t>(version))
    problem("", fmt::format("version {} is not known; {} is", *found, version));
  into.producer = read_producer();
  into.info = read_info();
}

std::string ManifestReader::read_info() {
  const Json* info = member(json_, "info", "", false);
  if (info == nullptr) return {};
  if (info->is_object()) return info->dump(-1, ' ', false, Json::error_handler_t::replace);
  problem("", "`info` must be an object", ErrorKind::Parse);
  return {};
}

std::optional<std::string_view> ManifestReader::patch_part(const Json& patch,
                                                           const std::string& where,
                                                           std::optional<uint64_t> bytes) {
  const auto contents = part(patch, where, bytes);
  if (!contents) return std::nullopt;
  patched_ += contents->size();
  if (patched_ <= most_) return contents;
  problem(where, "all patches together are too large");
  return std::nullopt;
}

std::vector<Region> ManifestReader::read_regions(const std::string& key) {
  std::vector<Region> regions;
  const Json& entries = list(json_, key, "");
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string where = fmt::format("{} {}", key, i);
    const auto name = text(entries[i], "name", where);
    const auto address = number(entries[i], "address", where);
    const auto bytes = number(entries[i], "bytes", where);
    if (name && address && bytes) regions.push_back({*name, *address, *bytes});
  }
  return regions;
}

void ManifestReader::read_spans(const Json& json, const std::string& where,
                                std::vector<Span>& into) {
  for (const Json& span : json) {
    const auto name = text(span, "name", where);
    const auto begin = number(span, "begin", where), end = number(span, "end", where);
    if (name && begin && end) into.push_back({*name, *begin, *end});
  }
}

std::string ManifestReader::expected(const Json& output, uint64_t bytes, const std::string& where) {
  const auto label = text(output, "expected", where, false);
  if (!label) return {};
  Json place = {{"file", *label}};
  if (output.contains("offset")) place["offset"] = output["offset"];
  const auto contents = part(place, where, bytes);
  if (!contents) return {};
  expected_ += contents->size();
  if (expected_ <= most_) return std::string(*contents);
  problem(where, "all expected results together are too large");
  return {};
}

void ManifestReader::add_setting(const Json& section, const std::string& key,
                                 const std::string& where, std::string& toml) {
  if (const Json* found = member(section, key, where, false))
    toml += key + " = " +
            found->dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace tilewright::accel
