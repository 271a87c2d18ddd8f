// Small plots for reports: inline SVG, nothing loaded from elsewhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright::driver {

/// Text with the characters that HTML gives a meaning replaced.
std::string html_text(const std::string& text);

using PlotPoints = std::vector<std::pair<double, double>>;

struct PlotSeries {
  std::string name;
  PlotPoints points;
  bool line = true;    ///< false: a dot per point
  bool steps = false;  ///< a line that stays level until the next point
};

struct Plot {
  std::string title, x, y;  ///< with units
  bool log_x = false, log_y = false;
  std::vector<PlotSeries> series;
};

/// `<svg>...</svg>`; points that a logarithmic axis cannot show are left out. Empty plots say so.
std::string svg(const Plot& plot);

}  // namespace tilewright::driver
