// Decisions as text. Example: `schedule=breadth-first later=12:2 apart=7,9 home=3:3`.
#include "tilewright/codegen/dpu/way.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <iterator>
#include <vector>

namespace tilewright::dpu {
namespace {

std::vector<std::string_view> parts_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Result<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return fail(ErrorKind::Parse, fmt::format("'{}' is no count", text));
  return value;
}

template <typename Enum, size_t N>
Status read_name(std::string_view text, const char* const (&names)[N], Enum& value) {
  for (size_t i = 0; i < N; ++i)
    if (text == names[i]) {
      value = static_cast<Enum>(i);
      return {};
    }
  return fail(ErrorKind::Parse, fmt::format("'{}' is none of {}", text, fmt::join(names, ", ")));
}

Status read_map(std::string_view text, std::map<int, int>& values) {
  for (const std::string_view part : parts_at(text, ',')) {
    const size_t colon = part.find(':');
    if (colon == std::string_view::npos)
      return fail(ErrorKind::Parse, fmt::format("'{}' is no NUMBER:VALUE", part));
    values[TW_TRY(number(part.substr(0, colon)))] = TW_TRY(number(part.substr(colon + 1)));
  }
  return {};
}

Status read_decision(std::string_view key, std::string_view value, Way& way) {
  if (key == "form") return read_name(value, kForms, way.form);
  if (key == "schedule") return read_name(value, kSchedules, way.schedule);
  if (key == "homes") return read_name(value, kHomes, way.homes);
  if (key == "later") return read_map(value, way.later);
  if (key == "pieces_of") return read_map(value, way.pieces_of);
  if (key == "rows") return read_map(value, way.rows);
  if (key == "home") return read_map(value, way.home);
  if (key == "apart") {
    for (const std::string_view part : parts_at(value, ',')) way.apart.insert(TW_TRY(number(part)));
    return {};
  }
  if (key == "plain_strides") {
    for (const std::string_view part : parts_at(value, ','))
      way.plain_strides.insert(TW_TRY(number(part)));
    return {};
  }
  if (key == "behind_pools") {
    way.behind_pools = TW_TRY(number(value)) != 0;
    return {};
  }
  if (key == "fuse") {
    way.fuse = TW_TRY(number(value)) != 0;
    return {};
  }
  if (key == "pieces") {
    way.pieces = TW_TRY(number(value));
    return {};
  }
  return fail(ErrorKind::Parse, fmt::format("there is no decision '{}'", key));
}

std::string map_text(const std::map<int, int>& values) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : values) parts.push_back(fmt::format("{}:{}", key, value));
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string window_text(const Window& w) {
  return fmt::format(" {}x{} /{},{} *{},{} pads {},{},{},{}", w.kernel_h, w.kernel_w, w.stride_h,
                     w.stride_w, w.dilation_h, w.dilation_w, w.pad_top, w.pad_left, w.pad_bottom,
                     w.pad_right);
}

}  // namespace

std::string shape_text(const Network& network) {
  std::string text = fmt::format("inputs {} outputs {}\n", fmt::join(network.inputs, ","),
                                 fmt::join(network.outputs, ","));
  for (const Value& value : network.values)
    text += fmt::format("{}x{}x{}\n", value.channels, value.height, value.width);
  for (const Layer& layer : network.layers) {
    text += fmt::format("{} of {} is {}:", layer.output, fmt::join(layer.inputs, ","),
                        layer.op.index());
    std::visit(
        [&](const auto& op) {
          if constexpr (requires { op.window; }) text += window_text(op.window);
          if constexpr (requires { op.groups; }) text += fmt::format(" groups {}", op.groups);
          if constexpr (requires { op.act; }) text += fmt::format(" act {}", int(op.act));
          if constexpr (requires { op.means; })
            text += fmt::format(" average {} means {}", op.average, op.means.size());
          if constexpr (requires { op.factor_h; })
            text += fmt::format(" {}x{}", op.factor_h, op.factor_w);
        },
        layer.op);
    text += '\n';
  }
  return text;
}

std::string to_string(const Way& way) {
  std::vector<std::string> parts;
  const Way usual;
  if (way.form != usual.form) parts.push_back(fmt::format("form={}", kForms[int(way.form)]));
  if (way.schedule != usual.schedule)
    parts.push_back(fmt::format("schedule={}", kSchedules[int(way.schedule)]));
  if (!way.later.empty()) parts.push_back("later=" + map_text(way.later));
  if (!way.fuse) parts.emplace_back("fuse=0");
  if (way.behind_pools) parts.emplace_back("behind_pools=1");
  if (!way.plain_strides.empty())
    parts.push_back(fmt::format("plain_strides={}", fmt::join(way.plain_strides, ",")));
  if (!way.apart.empty()) parts.push_back(fmt::format("apart={}", fmt::join(way.apart, ",")));
  if (way.pieces != usual.pieces) parts.push_back(fmt::format("pieces={}", way.pieces));
  if (!way.pieces_of.empty()) parts.push_back("pieces_of=" + map_text(way.pieces_of));
  if (!way.rows.empty()) parts.push_back("rows=" + map_text(way.rows));
  if (way.homes != usual.homes) parts.push_back(fmt::format("homes={}", kHomes[int(way.homes)]));
  if (!way.home.empty()) parts.push_back("home=" + map_text(way.home));
  return parts.empty() ? "default" : fmt::format("{}", fmt::join(parts, " "));
}

Result<Way> parse_way(std::string_view text) {
  Way way;
  if (text == "default") return way;
  for (const std::string_view part : parts_at(text, ' ')) {
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos)
      return fail(ErrorKind::Parse, fmt::format("'{}' is no DECISION=VALUE", part));
    TW_TRY_STATUS(read_decision(part.substr(0, equals), part.substr(equals + 1), way));
  }
  return way;
}

std::string describe(const Way& way, const Network& network, bool can_fuse) {
  constexpr const char* kOrders[] = {"in order", "breadth first", "depth first",
                                     "least memory first", "longest way first"};
  std::string text = kOrders[int(way.schedule)];
  if (can_fuse) text += way.fuse ? ", fused" : ", not fused";
  if (way.behind_pools) text += ", pools with the convolutions behind them";
  if (way.pieces > 1) text += fmt::format(", low layers in {} passes", way.pieces);
  if (way.form == Form::InputsOnce) text += ", inputs loaded once";
  if (way.form == Form::StridesReordered) text += ", strided layers reordered";
  std::string kept;
  for (const int layer : way.plain_strides)
    if (const size_t l = static_cast<size_t>(layer); l < network.layers.size())
      kept += (kept.empty() ? " but " : ", ") + network.layers[l].name;
  text += kept;
  if (way.homes == Homes::Largest) text += ", largest memory first";
  if (way.homes == Homes::Earliest) text += ", earliest map first";
  const size_t single = way.later.size() + way.apart.size() + way.pieces_of.size() +
                        way.rows.size() + way.home.size();
  if (single > 0) text += fmt::format(", {} decisions about single layers", single);
  return text;
}

}  // namespace tilewright::dpu
