#include "tilewright/compile/conv_record.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "tilewright/records/workload.h"

namespace tilewright::compile {
namespace {

const std::string kPrefix = "algorithm: ", kDirect = "direct", kWinograd = "winograd ";

}  // namespace

std::string conv_text(const tensor::Conv2dShape& conv) {
  std::string text = fmt::format("conv {}x{}->{} of {}x{}, window {}x{}", conv.batch, conv.channels,
                                 conv.filters, conv.height, conv.width, conv.taps_h, conv.taps_w);
  if (conv.dilation_h > 1 || conv.dilation_w > 1)
    text += fmt::format(", dilation {}x{}", conv.dilation_h, conv.dilation_w);
  return text;
}

std::string conv_key(const tensor::Conv2dShape& conv) {
  return records::workload_key(conv_text(conv));
}

std::optional<int64_t> form_in(const records::Record& record) {
  std::string_view text = record.point;
  if (record.kind != records::kAlgorithmKind || !text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  if (text == kDirect) return 0;
  if (!text.starts_with(kWinograd)) return std::nullopt;
  text.remove_prefix(kWinograd.size());
  int64_t m = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), m);
  return error == std::errc() && end == text.data() + text.size() && m > 0 ? std::optional(m)
                                                                           : std::nullopt;
}

std::string form_name(int64_t m) { return m == 0 ? kDirect : kWinograd + std::to_string(m); }

std::string form_point(int64_t m) { return kPrefix + form_name(m); }

}  // namespace tilewright::compile
