#include "tilewright/driver/codesign/parallel_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/driver/report/svg_chart.h"

namespace tilewright::driver {
namespace {

constexpr double kWide = 96, kTop = 34, kBottom = 214, kLeft = 48;
constexpr const char* kColours[] = {"#8d96a3", "#00798c", "#d1495b"};
constexpr double kOpacities[] = {0.25, 0.7, 1};

struct Range {
  double low = 0, high = 0;
  double at(double place) const {
    return high > low ? kBottom - (place - low) / (high - low) * (kBottom - kTop)
                      : (kTop + kBottom) / 2;
  }
};

double place(const ParallelAxis& axis, double value) {
  return axis.log ? std::log10(std::max(value, 1e-300)) : value;
}

std::string label(const ParallelAxis& axis, double value) {
  const auto word = static_cast<size_t>(std::llround(value));
  if (!axis.words.empty()) return word < axis.words.size() ? axis.words[word] : "";
  return fmt::format("{:.4g}", value);
}

std::string text_at(double x, double y, const std::string& text) {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", x, y,
                     html_text(text));
}

}  // namespace

std::string parallel_chart(const std::vector<ParallelAxis>& axes,
                           const std::vector<ParallelLine>& lines) {
  if (axes.empty() || lines.empty()) return {};
  std::vector<Range> ranges;
  std::string text =
      fmt::format("<svg width=\"{:.0f}\" height=\"{:.0f}\">",
                  2 * kLeft + kWide * static_cast<double>(axes.size() - 1), kBottom + 26);
  for (size_t a = 0; a < axes.size(); ++a) {
    const auto [least, most] = std::minmax_element(
        lines.begin(), lines.end(), [a](const ParallelLine& one, const ParallelLine& other) {
          return one.values[a] < other.values[a];
        });
    ranges.push_back({place(axes[a], least->values[a]), place(axes[a], most->values[a])});
    const double x = kLeft + kWide * static_cast<double>(a);
    text += fmt::format("<path class=\"grid\" d=\"M{:.0f} {:.0f}V{:.0f}\"/>", x, kTop, kBottom);
    text += text_at(x, 12, axes[a].name) + text_at(x, kTop - 6, label(axes[a], most->values[a])) +
            text_at(x, kBottom + 14, label(axes[a], least->values[a]));
  }
  for (int kind = 0; kind < 3; ++kind)
    for (const ParallelLine& line : lines) {
      if (line.kind != kind) continue;
      std::string path;
      for (size_t a = 0; a < axes.size(); ++a)
        path += fmt::format("{}{:.0f} {:.1f}", a == 0 ? "M" : "L",
                            kLeft + kWide * static_cast<double>(a),
                            ranges[a].at(place(axes[a], line.values[a])));
      text += fmt::format(
          "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" opacity=\"{}\"/>", path,
          kColours[kind], kind == 2 ? 2.5 : 1, kOpacities[kind]);
    }
  return text + "</svg>\n";
}

}  // namespace tilewright::driver
