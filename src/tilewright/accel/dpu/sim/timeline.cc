#include "tilewright/accel/dpu/sim/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tilewright/base/check.h"

namespace tilewright::dpu {
namespace {

/// What a bar shows, with the colours of the DPUV3INT8 paper.
struct Look {
  std::string_view label, colour;
};
constexpr Look kFeatureLoad = {"LOAD", "#3b6fd4"}, kWeightLoad = {"LOAD weights", "#111111"};
constexpr Look kSaveLook = {"SAVE", "#b9a3e3"}, kNopLook = {"NOP", "#9a9a9a"};
constexpr Look kConvInitLook = {"CONVINIT", "#d43b3b"}, kConvLook = {"CONV", "#6a2c91"};
constexpr Look kPoolInitLook = {"POOLINIT", "#1f6b2e"}, kPoolLook = {"POOL", "#3aa655"};
constexpr Look kElewInitLook = {"ELEWINIT", "#a68a00"}, kElewLook = {"ELEW", "#e8c800"};

Look look_of(const Op& op) {
  if (const auto* load = std::get_if<Load>(&op))
    return load->mode == 1 ? kWeightLoad : kFeatureLoad;
  if (std::holds_alternative<Save>(op)) return kSaveLook;
  if (std::holds_alternative<ConvInit>(op)) return kConvInitLook;
  if (std::holds_alternative<Conv>(op)) return kConvLook;
  if (std::holds_alternative<PoolInit>(op)) return kPoolInitLook;
  if (std::holds_alternative<Pool>(op)) return kPoolLook;
  if (std::holds_alternative<ElewInit>(op)) return kElewInitLook;
  return std::holds_alternative<Elew>(op) ? kElewLook : kNopLook;
}

constexpr std::array<std::string_view, kUnits> kLaneNames = {"LOAD", "SAVE", "CONV", "MISC"};

/// From the first begin of a span's instructions to the last one's end.
struct Extent {
  std::string name;
  uint64_t begin = 0, end = 0;
};
std::vector<Extent> extents(const Run& run, const LaunchReport& report) {
  std::vector<Extent> out;
  for (const Span& span : run.spans) {
    Extent extent{span.name, ~uint64_t{0}, 0};
    for (size_t i = span.begin; i < std::min(span.end, report.times.size()); ++i) {
      extent.begin = std::min(extent.begin, report.times[i].begin);
      extent.end = std::max(extent.end, report.times[i].end);
    }
    if (extent.begin < extent.end) out.push_back(std::move(extent));
  }
  return out;
}

std::string wait_text(const InsnTime& time) {
  if (time.stall == Stall::Queue) return "wait: instruction fetch";
  if (time.stall != Stall::Token) return "wait";
  return fmt::format("wait: {}", kLaneNames.at(static_cast<size_t>(time.token_from)));
}

/// Text in XML; control characters and what is not ASCII become `?`, for names may be any bytes.
std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c < ' ' || c > '~' ? '?' : c;
  }
  return out;
}

// The page; units: points.
constexpr double kLeft = 70, kWidth = 1100, kLaneHeight = 46, kLaneStep = 60, kTop = 70;
constexpr double kBarsPerLane = 8000;  // more are drawn together: a page has no more dots

struct Bar {
  Look look;
  uint64_t begin = 0, end = 0;
  size_t first = 0, count = 0;  ///< instructions
};

/// Bars of each lane. Neighbours that look the same and lie closer than can be seen are one.
std::array<std::vector<Bar>, kUnits> bars_of(const Run& run, const Config& config,
                                             const LaunchReport& report) {
  std::array<std::vector<Bar>, kUnits> lanes;
  const double unseen = static_cast<double>(report.cycles) / kBarsPerLane;
  for (const InsnTime& time : report.times) {
    const Insn& insn = run.insns[time.insn];
    std::vector<Bar>& lane = lanes[static_cast<size_t>(unit_of(insn))];
    const Bar bar{look_of(insn.op), time.begin, busy_end(config, insn, time), time.insn, 1};
    if (bar.end == bar.begin) continue;
    const bool narrow = !lane.empty() && lane.back().look.label == bar.look.label &&
                        static_cast<double>(bar.end - lane.back().begin) < unseen;
    if (!narrow) {
      lane.push_back(bar);
      continue;
    }
    lane.back().end = bar.end;
    ++lane.back().count;
  }
  return lanes;
}

std::string rectangle(double x, double y, double width, double height, std::string_view colour,
                      const std::string& title) {
  return fmt::format(
      "<rect x=\"{:.3f}\" y=\"{}\" width=\"{:.3f}\" height=\"{}\" fill=\"{}\"><title>{}</title>"
      "</rect>\n",
      x, y, width, height, colour, title);
}

/// Layers above the lanes, in two rows so that neighbours do not touch.
std::string layers(const Run& run, const LaunchReport& report, double scale) {
  std::string out;
  size_t n = 0;
  for (const Extent& layer : extents(run, report)) {
    const double x = static_cast<double>(layer.begin) * scale;
    const double width = static_cast<double>(layer.end - layer.begin) * scale;
    out += rectangle(x, 20 + 20 * static_cast<double>(n++ % 2), width, 16, "#e4e4e4",
                     fmt::format("{}: cycles {} to {}", xml(layer.name), layer.begin, layer.end));
  }
  return out;
}

// The wheel zooms around the mouse by scaling the x axis, dragging moves, a double click shows all
// of it. The drawing is an SVG file by itself or a part of an HTML page, so the script begins at
// the group, not at the document.
constexpr std::string_view kScript = R"svg(<script><![CDATA[
(function () {
  var s = 1, t = 0, from = null, g = document.getElementById("all");
  var root = g.ownerSVGElement.ownerSVGElement, width = @WIDTH@;
  function show() {
    t = Math.max(width * (1 - s), Math.min(0, t));
    g.setAttribute("transform", "translate(" + t + " 0) scale(" + s + " 1)");
  }
  function cycle(e) {
    var p = root.createSVGPoint();
    p.x = e.clientX; p.y = e.clientY;
    return p.matrixTransform(g.getScreenCTM().inverse()).x;
  }
  root.addEventListener("wheel", function (e) {
    e.preventDefault();
    var at = cycle(e), old = s;
    s = Math.max(1, s * (e.deltaY < 0 ? 1.25 : 0.8));
    t += at * (old - s);
    show();
  }, { passive: false });
  root.addEventListener("mousedown", function (e) { from = cycle(e); e.preventDefault(); });
  root.addEventListener("mouseup", function () { from = null; });
  root.addEventListener("mousemove", function (e) {
    if (from === null || e.buttons === 0) return;
    t += (cycle(e) - from) * s;
    show();
  });
  root.addEventListener("dblclick", function () { s = 1; t = 0; show(); });
})();
]]></script>
)svg";

std::string script() {
  constexpr std::string_view kMark = "@WIDTH@";
  std::string text(kScript);
  return text.replace(text.find(kMark), kMark.size(), fmt::format("{}", kWidth));
}

}  // namespace

accel::RunTrace run_trace(const Run& run, const Config& config, const LaunchReport& report) {
  TW_CHECK(report.times.size() + 1 == run.insns.size(), "{} times for {} instructions",
           report.times.size(), run.insns.size());
  accel::RunTrace trace;
  for (const std::string_view lane : kLaneNames) trace.add_row(std::string(lane));
  const size_t layer_row = trace.add_row("layers");
  for (const InsnTime& time : report.times) {
    const Insn& insn = run.insns[time.insn];
    const auto row = static_cast<size_t>(unit_of(insn));
    trace.add({row, wait_text(time), "stall", time.ready, time.begin, {}});
    trace.add({row,
               std::string(look_of(insn.op).label),
               "insn",
               time.begin,
               busy_end(config, insn, time),
               {{"insn", uint64_t{time.insn}}, {"text", disassemble(insn)}, {"done", time.end}}});
  }
  for (const Extent& layer : extents(run, report))
    trace.add({layer_row, layer.name, "layer", layer.begin, layer.end, {}});
  return trace;
}

std::string timeline_svg(const Run& run, const Config& config, const LaunchReport& report) {
  TW_CHECK(report.times.size() + 1 == run.insns.size(), "{} times for {} instructions",
           report.times.size(), run.insns.size());
  const double scale = kWidth / static_cast<double>(std::max<uint64_t>(report.cycles, 1));
  const double height = kTop + kUnits * kLaneStep + 40;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kLeft + kWidth + 20, height);
  for (size_t u = 0; u < kUnits; ++u)
    out +=
        fmt::format("<text x=\"8\" y=\"{}\">{}</text>\n",
                    kTop + kLaneStep * static_cast<double>(u) + kLaneHeight / 2 + 4, kLaneNames[u]);
  const double ms = static_cast<double>(report.cycles) / (config.clock_mhz * 1000);
  out += fmt::format(
      "<text x=\"{}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" "
      "text-anchor=\"end\">{} cycles, {:.3f} ms</text>\n",
      kLeft, height - 14, kLeft + kWidth, height - 14, report.cycles, ms);
  // What is zoomed is clipped to the drawing.
  out += fmt::format("<svg x=\"{}\" y=\"0\" width=\"{}\" height=\"{}\"><g id=\"all\">\n", kLeft,
                     kWidth, height - 30);
  out += layers(run, report, scale);
  const auto lanes = bars_of(run, config, report);
  for (size_t u = 0; u < kUnits; ++u)
    for (const Bar& bar : lanes[u]) {
      const std::string what = bar.count == 1
                                   ? xml(disassemble(run.insns[bar.first]))
                                   : fmt::format("{} of {} from", bar.count, bar.look.label);
      out += rectangle(
          static_cast<double>(bar.begin) * scale, kTop + kLaneStep * static_cast<double>(u),
          static_cast<double>(bar.end - bar.begin) * scale, kLaneHeight, bar.look.colour,
          fmt::format("instruction {}: {}\ncycles {} to {}", bar.first, what, bar.begin, bar.end));
    }
  out += "</g></svg>\n";
  out += script();
  return out + "</svg>\n";
}

}  // namespace tilewright::dpu
