// A run as a trace for ui.perfetto.dev. One cycle is one unit of time.
#include <fmt/format.h>

#include "tilewright/accel/fpga/sim/tsim.h"

namespace tilewright::fpga {

std::string perfetto_trace(const Design& design, const Report& report) {
  std::string out = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const auto add = [&out](const std::string& event) {
    out += out.back() == '[' ? "\n" : ",\n";
    out += event;
  };
  for (size_t p = 0; p < design.processes.size(); ++p)
    add(fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})",
                    p + 1, design.processes[p].name));
  for (const Span& span : report.spans) {
    const Process& process = design.processes[static_cast<size_t>(span.process)];
    const Item& item = process.items[static_cast<size_t>(span.item)];
    const auto* nest = std::get_if<Nest>(&item);
    const bool works = span.doing == Doing::Working;
    if (works && nest == nullptr) continue;  // single cycles of control
    const std::string what(works ? std::string_view(nest->name) : name(span.doing));
    add(fmt::format(
        R"({{"ph":"X","pid":1,"tid":{},"name":"{}","cat":"{}","ts":{},"dur":{},"args":{{}}}})",
        span.process + 1, what, works ? "nest" : "stall", span.begin, span.end - span.begin));
  }
  return out + "\n]}\n";
}

}  // namespace tilewright::fpga
