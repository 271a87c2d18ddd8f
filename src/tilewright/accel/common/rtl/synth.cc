#include "tilewright/accel/common/rtl/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

#include "tilewright/base/cache.h"
#include "tilewright/base/file.h"
#include "tilewright/base/integers.h"
#include "tilewright/base/process.h"
#include "tilewright/base/tool_version.h"

namespace tilewright::accel {
namespace {

constexpr size_t kShown = 2000;  // bytes of what Yosys said, from the end
constexpr const char* kMemory = "tilewright_memory";

/// The place of a memory, with its ports; and the rule that puts it there.
constexpr const char* kBoxes = R"v((* blackbox *)
module tilewright_memory #(parameter WIDTH = 1, SIZE = 1, ABITS = 1, READS = 1, WRITES = 1) (
  input [READS-1:0] rc, re, ra, rs, input [READS*ABITS-1:0] raddr, output [READS*WIDTH-1:0] rdata,
  input [WRITES-1:0] wc, input [WRITES*WIDTH-1:0] we, input [WRITES*ABITS-1:0] waddr,
  input [WRITES*WIDTH-1:0] wdata);
endmodule
)v";
constexpr const char* kBoxRule = R"v((* techmap_celltype = "$mem_v2" *)
module box (RD_CLK, RD_EN, RD_ARST, RD_SRST, RD_ADDR, RD_DATA, WR_CLK, WR_EN, WR_ADDR, WR_DATA);
  parameter MEMID = "", SIZE = 1, OFFSET = 0, ABITS = 1, WIDTH = 1, INIT = 1'bx, RD_PORTS = 1,
      RD_CLK_ENABLE = 1, RD_CLK_POLARITY = 1, RD_TRANSPARENCY_MASK = 0, RD_COLLISION_X_MASK = 0,
      RD_WIDE_CONTINUATION = 0, RD_CE_OVER_SRST = 0, RD_ARST_VALUE = 0, RD_SRST_VALUE = 0,
      RD_INIT_VALUE = 0, WR_PORTS = 1, WR_CLK_ENABLE = 1, WR_CLK_POLARITY = 1,
      WR_PRIORITY_MASK = 0, WR_WIDE_CONTINUATION = 0;
  input [RD_PORTS-1:0] RD_CLK, RD_EN, RD_ARST, RD_SRST;
  input [RD_PORTS*ABITS-1:0] RD_ADDR;
  output [RD_PORTS*WIDTH-1:0] RD_DATA;
  input [WR_PORTS-1:0] WR_CLK;
  input [WR_PORTS*WIDTH-1:0] WR_EN, WR_DATA;
  input [WR_PORTS*ABITS-1:0] WR_ADDR;
  tilewright_memory #(.WIDTH(WIDTH), .SIZE(SIZE), .ABITS(ABITS), .READS(RD_PORTS), .WRITES(WR_PORTS))
      memory (.rc(RD_CLK), .re(RD_EN), .ra(RD_ARST), .rs(RD_SRST), .raddr(RD_ADDR), .rdata(RD_DATA),
      .wc(WR_CLK), .we(WR_EN), .waddr(WR_ADDR), .wdata(WR_DATA));
endmodule
)v";

bool begins_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

void add_cells(Cells& sum, std::string_view cell, int64_t count) {
  const auto is = [cell](std::string_view prefix) { return begins_with(cell, prefix); };
  // LUT RAM and shift registers sit in LUTs, too; the wide ones take the LUTs of several.
  if (is("LUT") || is("SRL")) sum.lut += count;
  int64_t memory = 0;
  if (is("RAM32X1D") || is("RAM64X1D")) memory = 2 * count;
  if (is("RAM32M") || is("RAM64M") || is("RAM128X1D")) memory = 4 * count;
  if (is("RAM32M16") || is("RAM64M8")) memory = 8 * count;
  sum.lut += memory;
  sum.lut_ram += memory;
  if (is("FD")) sum.ff += count;
  if (is("DSP48")) sum.dsp += count;
  if (is("RAMB18")) sum.bram18 += count;
  if (is("RAMB36")) sum.bram18 += 2 * count;
  if (is("CARRY4")) sum.carry += count;
}

/// A memory with several write ports is as many memories side by side. Small ones are LUT RAM with
/// two ports, the others blocks of 2 KiB and 36 bits.
Cells cells_of(const MemoryBox& box) {
  constexpr int64_t kLutRamBytes = 512, kLutBits = 32, kBlockBytes = 2048, kBlockBits = 36;
  const int64_t parts = std::max<int64_t>(1, box.writes);
  const int64_t bits = ceil_div(box.size, parts) * box.width;
  Cells cells;
  if (bits <= 8 * kLutRamBytes)
    cells.lut = parts * ceil_div(bits, kLutBits);
  else
    cells.bram18 =
        parts * std::max(ceil_div(bits, 8 * kBlockBytes), ceil_div(box.width, kBlockBits));
  return cells;
}

/// One module of the design as Yosys has it once parameters are known.
struct Elaborated {
  std::string id;                           ///< of RTLIL: `\name`, `$paramod\name\N=1`
  std::string name;                         ///< of the Verilog
  std::map<std::string, int64_t> contains;  ///< ids
};

std::string verilog_name(const std::string& id) {
  const size_t begin = id.find('\\');
  if (begin == std::string::npos) return id;
  return id.substr(begin + 1, id.find('\\', begin + 1) - begin - 1);
}

std::vector<Elaborated> elaborated_modules(const std::string& rtlil) {
  std::vector<Elaborated> modules;
  std::istringstream lines(rtlil);
  std::string line, word, id;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    if (!(words >> word >> id)) continue;
    if (word == "module")
      modules.push_back({id, verilog_name(id), {}});
    else if (word == "cell" && !modules.empty())
      ++modules.back().contains[id];
  }
  return modules;
}

/// `rtlil` with other names for modules: `m0`, `m1`, which commands can name.
std::string renamed(const std::string& rtlil, const std::map<std::string, size_t>& places) {
  std::istringstream lines(rtlil);
  std::string out, line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word, id;
    words >> word >> id;
    const auto found = word == "module" || word == "cell" ? places.find(id) : places.end();
    if (found != places.end())
      line.replace(line.find(id), id.size(), fmt::format("\\m{}", found->second));
    out += line + "\n";
  }
  return out;
}

/// How often each module is there.
std::vector<int64_t> copies(const std::vector<Elaborated>& modules,
                            const std::map<std::string, size_t>& places, const std::string& top) {
  std::vector<int64_t> counts(modules.size(), 0);
  const std::function<void(size_t, int64_t)> add = [&](size_t place, int64_t times) {
    counts[place] += times;
    for (const auto& [id, count] : modules[place].contains)
      if (const auto child = places.find(id); child != places.end())
        add(child->second, times * count);
  };
  if (const auto found = places.find("\\" + top); found != places.end()) add(found->second, 1);
  return counts;
}

/// The text of a module; all of it, where it is not found.
std::string text_of(const std::string& verilog, const std::string& name) {
  for (size_t at = 0; (at = verilog.find("module " + name, at)) != std::string::npos; ++at) {
    const char behind = verilog[at + 7 + name.size()];
    if ((at == 0 || verilog[at - 1] == '\n') && (behind == ' ' || behind == '('))
      return verilog.substr(at, verilog.find("endmodule", at) - at);
  }
  return verilog;
}

std::string flow_of(CellFamily family) {
  return fmt::format("synth_xilinx -family {} -top all -noiopad -noclkbuf\n",
                     family == CellFamily::Xc7 ? "xc7" : "xcup");
}

class Run {
 public:
  Run(const SynthesisTask& task, std::string folder) : task_(task), folder_(std::move(folder)) {}

  double seconds() const { return seconds_; }

  Status yosys(const std::string& script) {
    TW_TRY_STATUS(write_file(folder_ + "/run.ys", script));
    const double left = task_.limit_seconds - seconds_;
    const ToolResult result = TW_TRY(run_tool({"yosys", "-q", "-s", "run.ys"}, {folder_, left}));
    seconds_ += result.seconds;
    if (result.timed_out)
      return fail(ErrorKind::Limit,
                  fmt::format("Yosys did not finish in {} s", task_.limit_seconds), task_.top,
                  "give it more time, or take a smaller design");
    if (result.killed()) return killed_tool("yosys", result);
    if (result.status == 0) return {};
    const size_t begin = result.output.size() - std::min(result.output.size(), kShown);
    return fail(ErrorKind::Tool, fmt::format("yosys failed with status {}", result.status),
                result.output.substr(begin));
  }

  /// What is done with modules; `boxed` ones lose their memories first.
  std::string flow() const {
    if (task_.library.empty()) return flow_of(task_.family);
    return "synth -top all\ndfflibmap -liberty cells.lib\nabc -liberty cells.lib\nopt_clean\n";
  }
  /// The report of module `place`, alone, in `m<place>.txt`.
  std::string report_of(size_t place) const {
    return fmt::format("tee -o m{0}.txt stat {1} m{0}\ntee -a m{0}.txt dump m{0}/t:{2}\n", place,
                       task_.library.empty() ? "" : "-liberty cells.lib", kMemory);
  }
  bool boxed(const std::string& name) const {
    return !task_.library.empty() ||
           std::find(task_.boxed.begin(), task_.boxed.end(), name) != task_.boxed.end();
  }
  /// Commands for the modules at `missing`; the others are there as boxes. A module `all` has one
  /// of each, so that all are reached; nothing is flattened, so each is optimised by itself.
  std::string script(const std::vector<Elaborated>& modules, const std::vector<size_t>& missing) {
    std::string out = "read_rtlil all.il\n", reports, boxes;
    for (size_t i = 0, next = 0; i < modules.size(); ++i) {
      if (next == missing.size() || missing[next] != i) {
        out += fmt::format("blackbox m{}\n", i);
        continue;
      }
      ++next;
      if (boxed(modules[i].name))
        boxes += fmt::format(
            "select m{}\nproc\nopt_clean\nmemory -nomap\ntechmap -map box_rule.v\nselect -clear\n",
            i);
      reports += report_of(i);
    }
    if (!boxes.empty()) out += "read_verilog -lib boxes.v\n" + boxes;
    return out + flow() + reports;
  }

 private:
  const SynthesisTask& task_;
  std::string folder_;
  double seconds_ = 0;
};

/// The design with its parameters, without anything synthesised.
Result<std::string> elaborate(const SynthesisTask& task, Run& run, const std::string& folder) {
  TW_TRY_STATUS(write_file(folder + "/design.v", task.verilog));
  TW_TRY_STATUS(write_file(folder + "/boxes.v", kBoxes));
  TW_TRY_STATUS(write_file(folder + "/box_rule.v", kBoxRule));
  if (!task.library.empty())
    TW_TRY_STATUS(write_file(folder + "/cells.lib", TW_TRY(read_file(task.library))));
  TW_TRY_STATUS(run.yosys(fmt::format(
      "read_verilog design.v\nhierarchy -check -top {}\nwrite_rtlil all.il\n", task.top)));
  return read_file(folder + "/all.il");
}

}  // namespace

ModuleReport read_report(std::string_view report) {
  ModuleReport out;
  std::istringstream lines{std::string(report)};
  std::string line, word, name;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    if (!(words >> word)) continue;
    int64_t count = 0;
    if (word == "cell" && words >> name && name == fmt::format("\\{}", kMemory)) {
      out.memories.push_back({});
    } else if (word == "parameter" && !out.memories.empty()) {
      MemoryBox& box = out.memories.back();
      while (words >> name && name[0] != '\\') {  // `parameter signed \SIZE 4`
      }
      if (!(words >> count)) continue;
      if (name == "\\WIDTH") box.width = count;
      if (name == "\\SIZE") box.size = count;
      if (name == "\\READS") box.reads = count;
      if (name == "\\WRITES") box.writes = count;
    } else if (const size_t at = line.find("Chip area for"); at != std::string::npos) {
      out.um2 = std::strtod(line.c_str() + line.rfind(':') + 1, nullptr);
    } else if (words >> count) {
      add_cells(out.cells, word, count);
    }
  }
  for (const MemoryBox& box : out.memories) {
    const Cells cells = cells_of(box);
    out.cells.lut += cells.lut;
    out.cells.lut_ram += cells.lut;
    out.cells.bram18 += cells.bram18;
  }
  return out;
}

Result<Synthesis> synthesise(const SynthesisTask& task) {
  const std::string version = TW_TRY(checked_version(kYosys));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  Run run(task, folder.path());
  const std::string rtlil = TW_TRY(elaborate(task, run, folder.path()));
  const std::vector<Elaborated> modules = elaborated_modules(rtlil);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < modules.size(); ++i) places[modules[i].id] = i;
  const std::string cache = TW_TRY(cache_folder("synth"));
  const std::string cells =
      task.library.empty() ? "" : TW_TRY(read_file(folder.path() + "/cells.lib"));
  std::vector<std::string> kept(modules.size());
  std::vector<size_t> missing;
  std::string all = "module \\all\n";
  for (size_t i = 0; i < modules.size(); ++i) {
    const Elaborated& module = modules[i];
    const std::string key =
        fmt::format("{}\n{}\n{}\n{}\n{}\n{}", version, module.id, run.flow(),
                    run.boxed(module.name), cells, text_of(task.verilog, module.name));
    kept[i] = fmt::format("{}/{}.txt", cache, sha256(key).substr(0, 32));
    if (std::filesystem::exists(kept[i])) continue;
    missing.push_back(i);
    all += fmt::format("attribute \\keep 1\ncell \\m{0} \\m{0}\nend\n", i);
  }
  if (!missing.empty()) {
    TW_TRY_STATUS(write_file(folder.path() + "/all.il", renamed(rtlil, places) + all + "end\n"));
    TW_TRY_STATUS(run.yosys(run.script(modules, missing)));
  }
  for (const size_t i : missing)
    TW_TRY_STATUS(write_file(kept[i], TW_TRY(read_file(folder.file(fmt::format("m{}.txt", i))))));

  Synthesis out;
  const std::vector<int64_t> counts = copies(modules, places, task.top);
  for (size_t i = 0; i < modules.size(); ++i) {
    if (counts[i] == 0) continue;
    ModuleReport report = read_report(TW_TRY(read_file(kept[i])));
    out.modules.push_back(
        {modules[i].name, counts[i], report.cells, report.um2, std::move(report.memories)});
  }
  std::stable_sort(out.modules.begin(), out.modules.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  out.seconds = run.seconds();
  out.reused = static_cast<int64_t>(modules.size() - missing.size());
  return out;
}

Cells Synthesis::cells() const {
  Cells sum;
  for (const SynthesisedModule& m : modules) {
    sum.lut += m.copies * m.cells.lut;
    sum.ff += m.copies * m.cells.ff;
    sum.dsp += m.copies * m.cells.dsp;
    sum.bram18 += m.copies * m.cells.bram18;
    sum.carry += m.copies * m.cells.carry;
    sum.lut_ram += m.copies * m.cells.lut_ram;
  }
  return sum;
}

double Synthesis::um2() const {
  double sum = 0;
  for (const SynthesisedModule& m : modules) sum += static_cast<double>(m.copies) * m.um2;
  return sum;
}

}  // namespace tilewright::accel
