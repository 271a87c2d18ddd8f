#include "tilewright/driver/report/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::driver {
namespace {

constexpr double kWidth = 420, kHeight = 230, kLeft = 64, kRight = 12, kTop = 24, kBottom = 40;
constexpr const char* kColours[] = {"#00798c", "#d1495b", "#8d96a3", "#edae49", "#66a182"};

/// Maps values to pixels.
struct Axis {
  bool log = false;
  double low = 0, high = 1, begin = 0, end = 1;

  bool shows(double value) const { return std::isfinite(value) && (!log || value > 0); }
  double place(double value) const { return log ? std::log10(value) : value; }
  double at(double value) const {
    return begin + (place(value) - low) / (high - low) * (end - begin);
  }

  /// Some margin around `values`; from 0 where that is near.
  void fit(const std::vector<double>& values) {
    low = std::numeric_limits<double>::infinity(), high = -low;
    for (double value : values)
      low = std::min(low, place(value)), high = std::max(high, place(value));
    if (!log && low > 0 && low < 0.5 * high) low = 0;
    // What differs by rounding only is one value: steps between ticks must change a number.
    const bool differ = high - low > 1e-9 * std::max(std::abs(low), std::abs(high));
    const double margin = differ ? 0.06 * (high - low) : std::max(0.5, 0.05 * std::abs(high));
    if (log || low != 0) low -= margin;
    high += margin;
  }

  std::vector<double> ticks() const {
    std::vector<double> found;
    if (log) {
      for (double e = std::ceil(low); e <= high; ++e) found.push_back(std::pow(10, e));
      if (found.size() >= 2) return found;
      found.clear();
      for (int i = 0; i <= 3; ++i) found.push_back(std::pow(10, low + (high - low) * i / 3));
      return found;
    }
    const double rough = (high - low) / 4;
    const double unit = std::pow(10, std::floor(std::log10(rough)));
    const double step = unit * (rough / unit < 2 ? 1 : rough / unit < 5 ? 2 : 5);
    for (double t = std::ceil(low / step) * step; t <= high; t += step) found.push_back(t);
    return found;
  }
};

/// Three digits; thousands without an exponent.
std::string number(double value) {
  return std::abs(value) >= 1e3 && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                         : fmt::format("{:.3g}", value);
}

void draw_axes(std::string& text, const Plot& plot, const Axis& x, const Axis& y) {
  for (double tick : x.ticks())
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4}</text>",
        x.at(tick), kTop, kHeight - kBottom, kHeight - kBottom + 14, number(tick));
  for (double tick : y.ticks())
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>",
        kLeft, y.at(tick), kWidth - kRight, kLeft - 5, y.at(tick) + 4, number(tick));
  text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                      (kLeft + kWidth - kRight) / 2, kHeight - 8, html_text(plot.x));
  text += fmt::format(
      "<text transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}"
      "</text>",
      (kTop + kHeight - kBottom) / 2, html_text(plot.y));
}

void draw(std::string& text, const PlotSeries& series, const char* colour, const Axis& x,
          const Axis& y) {
  std::string path;
  for (const auto& [px, py] : series.points) {
    if (!x.shows(px) || !y.shows(py)) continue;
    if (!series.line) {
      text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x.at(px),
                          y.at(py), colour);
      continue;
    }
    if (!path.empty() && series.steps) path += fmt::format("H{:.1f}", x.at(px));
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(px), y.at(py));
  }
  if (!path.empty())
    text += fmt::format("<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" d=\"{}\"/>", colour,
                        path);
}

}  // namespace

std::string html_text(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '&')
      safe += "&amp;";
    else if (c == '"')
      safe += "&quot;";
    else
      safe += c;
  }
  return safe;
}

std::string svg(const Plot& plot) {
  Axis x{plot.log_x, 0, 1, kLeft, kWidth - kRight}, y{plot.log_y, 0, 1, kHeight - kBottom, kTop};
  std::vector<double> xs, ys;
  for (const PlotSeries& series : plot.series)
    for (const auto& [px, py] : series.points)
      if (x.shows(px) && y.shows(py)) xs.push_back(px), ys.push_back(py);
  std::string text = fmt::format(
      "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\"><text x=\"{2}\" "
      "y=\"15\" class=\"title\">{3}</text>",
      kWidth, kHeight, kLeft, html_text(plot.title));
  if (xs.empty()) return text + "<text x=\"120\" y=\"110\">no valid reading</text></svg>\n";
  x.fit(xs);
  y.fit(ys);
  draw_axes(text, plot, x, y);
  double legend = kWidth - kRight;  // in the line of the title, from its end: data stays free
  for (size_t i = plot.series.size(); i-- > 0;) {
    const char* colour = kColours[i % std::size(kColours)];
    draw(text, plot.series[i], colour, x, y);
    if (plot.series.size() < 2) continue;
    text +=
        fmt::format("<text x=\"{:.0f}\" y=\"15\" text-anchor=\"end\" style=\"fill:{}\">{}</text>",
                    legend, colour, html_text(plot.series[i].name));
    legend -= 12 + 6.2 * static_cast<double>(plot.series[i].name.size());
  }
  return text + "</svg>\n";
}

}  // namespace tilewright::driver
