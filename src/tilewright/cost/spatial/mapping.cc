#include "tilewright/cost/spatial/mapping.h"

#include <algorithm>
#include <charconv>

namespace tilewright::cost {
namespace {

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(at);
    if (end != 0 || at != ' ') parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool read_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

tl::unexpected<Error> bad(std::string_view word, std::string why) {
  return fail(ErrorKind::Parse, "`" + std::string(word) + "` is no part of a mapping",
              std::move(why));
}

Status read_tiles(const SpatialLayer& layer, std::string_view value, SpatialMapping& mapping) {
  for (std::string_view part : split(value, ',')) {
    const size_t digits = std::min(part.find_first_of("0123456789"), part.size());
    const int loop = layer.find(std::string(part.substr(0, digits)));
    int64_t size = 0;
    if (loop < 0 || !read_number(part.substr(digits), size))
      return bad(part, "expected a loop of the layer and a number");
    mapping.tile[loop] = size;
  }
  return {};
}

Status read_order(const SpatialLayer& layer, std::string_view value, SpatialMapping& mapping) {
  const auto parts = split(value, ',');
  if (parts.size() != layer.loops.size()) return bad(value, "the order names every loop once");
  for (size_t i = 0; i < parts.size(); ++i) {
    const int loop = layer.find(std::string(parts[i]));
    if (loop < 0) return bad(parts[i], "expected a loop of the layer");
    mapping.order[i] = loop;
  }
  return {};
}

Status read_copies(std::string_view value, SpatialMapping& mapping) {
  const auto parts = split(value, ',');
  if (parts.size() != kSpatialTensors) return bad(value, "expected three numbers");
  for (size_t i = 0; i < parts.size(); ++i) {
    int64_t number = 0;
    if (!read_number(parts[i], number)) return bad(parts[i], "expected a number");
    mapping.copies[i] = static_cast<int>(std::clamp<int64_t>(number, 0, 3));
  }
  return {};
}

Status read_role(const SpatialLayer& layer, std::string_view word, std::string_view value,
                 int& role) {
  role = layer.find(std::string(value));
  if (role < 0) return bad(word, "expected a loop of the layer");
  return {};
}

Status read_word(const SpatialLayer& layer, std::string_view word, SpatialMapping& mapping) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return bad(word, "expected key=value");
  const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
  SpatialChoice& choice = mapping.choice;
  if (key == "tile") return read_tiles(layer, value, mapping);
  if (key == "order") return read_order(layer, value, mapping);
  if (key == "copies") return read_copies(value, mapping);
  if (key == "i") return read_role(layer, word, value, choice.i);
  if (key == "j") return read_role(layer, word, value, choice.j);
  if (key == "k") return read_role(layer, word, value, choice.k);
  if (key != "first") return bad(word, "expected first, i, j, k, tile, order or copies");
  for (int factor : {0, 1})
    if (layer.tensors[factor].name == value) {
      choice.first = factor;
      return {};
    }
  return bad(word, "expected `" + layer.tensors[0].name + "` or `" + layer.tensors[1].name + "`");
}

Status validate(const SpatialLayer& layer, const SpatialMapping& mapping) {
  const size_t count = layer.loops.size();
  auto invalid = [](std::string what) { return fail(ErrorKind::Invalid, std::move(what)); };
  uint32_t seen = 0;
  bool reduces = false;
  for (size_t i = 0; i < count; ++i) {
    const SpatialLoop& loop = layer.loops[i];
    if (mapping.tile[i] < 1 || mapping.tile[i] > loop.extent)
      return invalid("the tile of " + loop.name + " is not 1.." + std::to_string(loop.extent));
    const SpatialLoop& ordered = layer.loops[mapping.order[i]];
    if (reduces && !ordered.reduces)
      return invalid("loop " + ordered.name + " stands inside a loop that is summed over");
    reduces = ordered.reduces;
    seen |= 1u << mapping.order[i];
  }
  if (seen != (1u << count) - 1) return invalid("the order names every loop once");
  for (int copies : mapping.copies)
    if (copies < 1 || copies > 2) return invalid("copies are 1 or 2");
  return {};
}

}  // namespace

std::string to_string(const SpatialLayer& layer, const SpatialMapping& mapping) {
  std::string text = "first=" + layer.tensors[mapping.choice.first].name;
  auto role = [&](const char* key, int loop) {
    if (loop >= 0) text += std::string(" ") + key + "=" + layer.loops[loop].name;
  };
  role("i", mapping.choice.i);
  role("j", mapping.choice.j);
  role("k", mapping.choice.k);
  std::string tile, order;
  for (size_t i = 0; i < layer.loops.size(); ++i) {
    const char* comma = i ? "," : "";
    tile += comma + layer.loops[i].name + std::to_string(mapping.tile[i]);
    order += comma + layer.loops[mapping.order[i]].name;
  }
  text += " tile=" + tile + " order=" + order + " copies=";
  for (int i = 0; i < kSpatialTensors; ++i)
    text += (i ? "," : "") + std::to_string(mapping.copies[i]);
  return text;
}

Result<SpatialMapping> parse_mapping(const SpatialLayer& layer, std::string_view text) {
  SpatialMapping mapping;
  for (size_t i = 0; i < layer.loops.size(); ++i) {
    mapping.tile[i] = layer.loops[i].extent;
    mapping.order[i] = static_cast<int>(i);
  }
  for (std::string_view word : split(text, ' '))
    if (!word.empty()) TW_TRY_STATUS(read_word(layer, word, mapping));
  TW_TRY_STATUS(validate(layer, mapping));
  return mapping;
}

}  // namespace tilewright::cost
