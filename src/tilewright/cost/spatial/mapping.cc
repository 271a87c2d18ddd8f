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

/// Words of a line, read into a mapping; errors are at a column of the line.
class MappingReader {
 public:
  MappingReader(const SpatialLayer& layer, std::string_view text) : layer_(layer), text_(text) {
    for (size_t i = 0; i < layer.loops.size(); ++i) {
      mapping_.tile[i] = layer.loops[i].extent;
      mapping_.order[i] = static_cast<int>(i);
    }
  }

  Result<SpatialMapping> read() {
    for (std::string_view word : split(text_, ' '))
      if (!word.empty()) TW_TRY_STATUS(read_word(word));
    return mapping_;
  }

 private:
  tl::unexpected<Error> bad(std::string_view word, std::string why) const {
    Error error{
        ErrorKind::Parse, "`" + std::string(word) + "` is no part of a mapping", {}, {}, {}, {}};
    error.why = std::move(why);
    error.place = std::to_string(word.data() - text_.data() + 1);
    return tl::unexpected<Error>(std::move(error));
  }

  Status read_tiles(std::string_view value) {
    const auto parts = split(value, ',');
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string_view part = parts[i];
      // Names of loops may end in digits: in a full list the loop whose turn it is, else the
      // longest.
      const size_t turn = parts.size() == layer_.loops.size() ? i : layer_.loops.size();
      int64_t size = 0;
      int found = -1;
      for (size_t l = 0; l < layer_.loops.size() && found != static_cast<int>(turn); ++l) {
        const std::string& name = layer_.loops[l].name;
        int64_t number = 0;
        if (!part.starts_with(name) || !read_number(part.substr(name.size()), number)) continue;
        if (found >= 0 && l != turn && name.size() < layer_.loops[found].name.size()) continue;
        found = static_cast<int>(l), size = number;
      }
      if (found < 0) return bad(part, "expected a loop of the layer and a number");
      mapping_.tile[found] = size;
    }
    return {};
  }

  Status read_order(std::string_view value) {
    const auto parts = split(value, ',');
    if (parts.size() != layer_.loops.size()) return bad(value, "the order names every loop once");
    for (size_t i = 0; i < parts.size(); ++i) {
      const int loop = layer_.find(std::string(parts[i]));
      if (loop < 0) return bad(parts[i], "expected a loop of the layer");
      mapping_.order[i] = loop;
    }
    return {};
  }

  Status read_copies(std::string_view value) {
    const auto parts = split(value, ',');
    if (parts.size() != kSpatialTensors) return bad(value, "expected three numbers");
    for (size_t i = 0; i < parts.size(); ++i) {
      int64_t number = 0;
      if (!read_number(parts[i], number)) return bad(parts[i], "expected a number");
      mapping_.copies[i] = static_cast<int>(std::clamp<int64_t>(number, 0, 3));
    }
    return {};
  }

  Status read_role(std::string_view word, std::string_view value, int& role) {
    role = layer_.find(std::string(value));
    if (role < 0) return bad(word, "expected a loop of the layer");
    return {};
  }

  Status read_word(std::string_view word) {
    const size_t equals = word.find('=');
    if (equals == word.npos) return bad(word, "expected key=value");
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    SpatialChoice& choice = mapping_.choice;
    if (key == "tile") return read_tiles(value);
    if (key == "order") return read_order(value);
    if (key == "copies") return read_copies(value);
    if (key == "i") return read_role(word, value, choice.i);
    if (key == "j") return read_role(word, value, choice.j);
    if (key == "k") return read_role(word, value, choice.k);
    if (key != "first") return bad(word, "expected first, i, j, k, tile, order or copies");
    for (int factor : {0, 1})
      if (layer_.tensors[factor].name == value) {
        choice.first = factor;
        return {};
      }
    return bad(word,
               "expected `" + layer_.tensors[0].name + "` or `" + layer_.tensors[1].name + "`");
  }

  const SpatialLayer& layer_;
  const std::string_view text_;
  SpatialMapping mapping_;
};

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
  const SpatialMapping mapping = TW_TRY(MappingReader(layer, text).read());
  TW_TRY_STATUS(validate(layer, mapping));
  return mapping;
}

}  // namespace tilewright::cost
