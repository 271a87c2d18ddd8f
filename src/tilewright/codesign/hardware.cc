#include "tilewright/codesign/hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/names.h"
#include "tilewright/base/toml_table.h"
#include "tilewright/base/unknown_name.h"
#include "tilewright/codesign/generator.h"

namespace tilewright::codesign {

Result<Hardware> read_hardware(std::string_view text, const std::string& place) {
  constexpr const char* kExample = "hw/spatial.toml and hw/vta.toml show what designs look like";
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return TW_TRY(vta::parse_config(text, place));
  const toml::table top = TW_TRY(parse_toml(text, place, kExample));
  const auto* kind = top.get_as<std::string>("kind");
  if (kind != nullptr && **kind == spatial_generator().name())
    return TW_TRY(spatial::read_design(text, place));
  if (kind == nullptr || **kind == vta_generator().name())
    return TW_TRY(vta::parse_config(text, place));
  const toml::source_position at = kind->source().begin;
  Error error{ErrorKind::Usage,
              fmt::format("co-design has no model of kind `{}`", **kind),
              fmt::format("{}:{}:{}", place, at.line, at.column),
              {},
              kExample,
              {}};
  return tl::unexpected<Error>(std::move(error));
}

Result<Hardware> load_hardware(const std::string& name_or_path) {
  const std::vector<std::string> builtin = vta::builtin_configs();
  if (std::find(builtin.begin(), builtin.end(), name_or_path) != builtin.end())
    return TW_TRY(vta::builtin_config(name_or_path));
  const spatial::Design usual;
  if (name_or_path == usual.name) return usual;
  if (!is_path(name_or_path)) {
    std::vector<std::string> known = builtin;
    known.push_back(usual.name);
    return unknown_name(
        fmt::format("no VTA and no accelerator `spatial` is called '{}'", name_or_path),
        name_or_path, known);
  }
  return read_hardware(TW_TRY(read_file(name_or_path)), name_or_path);
}

std::string to_toml(const Hardware& hardware) {
  return std::visit([](const auto& design) { return to_toml(design); }, hardware);
}

double clock_mhz(const Hardware& hardware) {
  return std::visit([](const auto& design) { return design.clock_mhz; }, hardware);
}

spatial::Host host_of(const Hardware& hardware) {
  const auto* design = std::get_if<spatial::Design>(&hardware);
  return design != nullptr ? design->host : spatial::Host();
}

}  // namespace tilewright::codesign
