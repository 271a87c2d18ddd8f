#include "tilewright/driver/report/html_page.h"

#include "tilewright/driver/report/svg_chart.h"

namespace tilewright::driver {
namespace {

constexpr const char* kStyle = R"(
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em;
       color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid #ccc6; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
td.text { text-align: left; white-space: normal }
pre { overflow-x: auto; background: #8881; padding: .7em; font-size: 12px }
svg { margin: 0 1em 1em 0 } svg text { font: 11px system-ui, sans-serif; fill: currentColor }
svg .title { font-weight: 600 } svg .grid { stroke: #8884; fill: none }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } }
)";

}  // namespace

std::string html_head(const std::string& what) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tilewright: " +
         html_text(what) + "</title><style>" + kStyle + "</style></head><body>\n";
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<table>";
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string cell = i == 0 ? "th" : "td";
    text += "<tr>";
    for (const std::string& value : rows[i])
      text += "<" + cell + ">" + html_text(value) + "</" + cell + ">";
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

}  // namespace tilewright::driver
