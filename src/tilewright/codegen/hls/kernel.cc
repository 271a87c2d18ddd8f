// The text of kernel.cpp: ports, functions of processes, the top function.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/codegen/hls/hls.h"
#include "tilewright/codegen/hls/host.h"
#include "tilewright/codegen/hls/prelude.h"
#include "tilewright/codegen/hls/statements.h"
#include "tilewright/codegen/hls/trees.h"
#include "tilewright/codegen/hls/widths.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/lower.h"

namespace tilewright::codegen {
namespace {

using lower::Channel;
using lower::Process;

/// Vendor tools stop at about this many copies of a loop's body.
constexpr int64_t kMostProducts = 4096;

/// Most copies of a block that unrolled loops around it make.
int64_t products(const Stmt& s, int64_t around) {
  if (const auto* loop = s.as<For>(); loop != nullptr && loop->kind == ForKind::Unroll)
    around *= as_int(loop->extent).value_or(1);
  int64_t most = s.as<Block>() != nullptr ? around : 1;
  for (const Stmt& child : children(s)) most = std::max(most, products(child, around));
  return most;
}

struct Access {
  bool reads = false, writes = false;
};
/// What `body` does with each buffer.
std::map<Buffer, Access> accesses(const Stmt& body) {
  std::map<Buffer, Access> out;
  walk(
      body,
      [&](const Stmt& s) {
        const auto* store = s.as<Store>();
        if (store == nullptr) return;
        out[store->buffer].writes = true;
        if (store->combine != Combine::Set) out[store->buffer].reads = true;
      },
      [&](const Expr& e) {
        if (const auto* l = e.as<Load>()) out[l->buffer].reads = true;
      });
  return out;
}

/// Writes one kernel.
class KernelWriter {
 public:
  KernelWriter(const Func& func, const lower::ProcessProgram& program, const hw::FpgaDevice& device,
               const HlsOptions& options)
      : func_(func), program_(program), device_(device), options_(options) {
    scope_.dialect = options.dialect;
    scope_.bounds = arith::Bounds(func);
    if (vitis()) scope_.widths = proven_widths(func);
    kernel_.symbol = scope_.names.fresh(symbol_of(func));
    for (const Param& p : func.params) scope_.strides[p.buffer] = strides_of(p.buffer, p.strides);
    walk(func.body, [&](const Stmt& s) {
      if (const auto* a = s.as<Alloc>()) scope_.strides[a->buffer] = strides_of(a->buffer, {});
    });
  }

  Result<HlsKernel> run() {
    make_ports();
    CText body;
    if (vitis())
      TW_TRY_STATUS(regions(body));
    else
      TW_TRY_STATUS(in_order(body));
    kernel_.files["kernel.cpp"] = head() + functions_.text + "extern \"C\" " + prototype() +
                                  " {\n" + interfaces() + body.text + "}\n";
    kernel_.files["kernel.h"] = header();
    kernel_.files["tw_arithmetic.h"] = hls_arithmetic(options_.dialect);
    kernel_.info.symbol = kernel_.symbol + "_csim";
    kernel_.csim = TW_TRY(hls_csim_entry(func_, kernel_, scope_, word_type()));
    add_host_files(func_, device_, options_, kernel_);
    return std::move(kernel_);
  }

 private:
  bool vitis() const { return options_.dialect == HlsDialect::Vitis; }
  std::string word_type() const {
    return fmt::format("ap_uint<{}>", 8 * std::max(device_.port.bytes, 8));
  }

  // --- Ports.

  /// An argument for each parameter, and for each further process of a region that reads it: two
  /// processes at one port would wait for each other.
  void make_ports() {
    std::map<Buffer, int> copies;
    std::map<Buffer, Access> touched = accesses(func_.body);
    if (vitis())
      for (const lower::DataflowRegion& region : program_.regions) {
        std::map<Buffer, int> users;
        for (const Process& process : region.processes)
          for (const auto& [buffer, access] : accesses(process.body))
            copies[buffer] = std::max(copies[buffer], ++users[buffer]);
      }
    for (size_t i = 0; i < func_.params.size(); ++i)
      add_ports(func_.params[i].buffer, static_cast<int>(i), copies[func_.params[i].buffer],
                touched[func_.params[i].buffer]);
    for (const Buffer& buffer : program_.scratch)
      add_ports(buffer, -1, copies[buffer], touched[buffer]);
  }

  void add_ports(const Buffer& buffer, int param, int copies, const Access& access) {
    for (int copy = 0; copy < std::max(copies, 1); ++copy) {
      HlsPort port;
      port.name = copy == 0 ? scope_.names.of(buffer)
                            : scope_.names.fresh(fmt::format("{}_{}", buffer.name(), copy + 1));
      port.buffer = buffer;
      port.reads = access.reads, port.writes = access.writes, port.param = param;
      ports_of_[buffer].push_back(static_cast<int>(kernel_.ports.size()));
      kernel_.ports.push_back(std::move(port));
    }
  }

  std::string port_parameter(const HlsPort& port, bool writes) const {
    const std::string type = vitis() ? word_type() : c_storage_type(port.buffer.dtype());
    return fmt::format("{}{}* {}", writes ? "" : "const ", type, port.name);
  }

  std::string prototype() {
    std::vector<std::string> parameters;
    for (const HlsPort& port : kernel_.ports)
      parameters.push_back(port_parameter(port, port.writes));
    for (const Scalar& s : func_.scalars) parameters.push_back("i64 " + scope_.names.of(s.var));
    return fmt::format("void {}({})", kernel_.symbol, fmt::join(parameters, ", "));
  }

  std::string interfaces() {
    if (!vitis()) return "";
    std::string out;
    for (const HlsPort& port : kernel_.ports) {
      out += fmt::format("#pragma HLS interface m_axi port={0} offset=slave bundle={0}", port.name);
      if (port.reads)
        out += fmt::format(" max_read_burst_length={} num_read_outstanding={}",
                           device_.port.burst_beats, device_.port.outstanding);
      if (port.writes)
        out += fmt::format(" max_write_burst_length={} num_write_outstanding={}",
                           device_.port.burst_beats, device_.port.outstanding);
      out += "\n";
    }
    for (const Scalar& s : func_.scalars)
      out += fmt::format("#pragma HLS interface s_axilite port={}\n", scope_.names.of(s.var));
    return out + "#pragma HLS interface s_axilite port=return\n";
  }

  // --- Functions.

  /// The whole program in its own order; channels are arrays.
  Status in_order(CText& body) {
    body.indent = 1;
    std::map<Buffer, std::string> ports;
    for (const HlsPort& port : kernel_.ports) ports[port.buffer] = port.name;
    const std::map<Buffer, HlsLock> none;
    return write_hls_statements(balance_sums(func_.body, func_.math), scope_,
                                HlsProcessText{&none, &ports}, body);
  }

  Status regions(CText& body) {
    body.indent = 1;
    const bool alone = program_.regions.size() == 1;
    for (size_t i = 0; i < program_.regions.size(); ++i) {
      const lower::DataflowRegion& region = program_.regions[i];
      if (region.processes.size() == 1 || alone) {
        if (region.processes.size() > 1) body.text += "#pragma HLS dataflow\n";
        TW_TRY_STATUS(calls(region, body));
        continue;
      }
      const std::string name = scope_.names.fresh(fmt::format("region_{}", i + 1));
      CText inner;
      inner.indent = 1;
      TW_TRY_STATUS(calls(region, inner));
      std::vector<std::string> parameters, arguments;
      for (const HlsPort& port : kernel_.ports) {
        parameters.push_back(port_parameter(port, port.writes));
        arguments.push_back(port.name);
      }
      for (const Scalar& s : func_.scalars) {
        parameters.push_back("i64 " + scope_.names.of(s.var));
        arguments.push_back(scope_.names.of(s.var));
      }
      functions_.text += fmt::format("static void {}({}) {{\n#pragma HLS dataflow\n{}}}\n\n", name,
                                     fmt::join(parameters, ", "), inner.text);
      body.line(fmt::format("{}({});", name, fmt::join(arguments, ", ")));
    }
    return {};
  }

  /// Channels of a region, and calls of its processes.
  Status calls(const lower::DataflowRegion& region, CText& out) {
    std::vector<std::string> names;
    for (const Channel& channel : region.channels) {
      const std::string id = scope_.names.fresh(channel.buffer.name() + "_blocks");
      const std::string type = scope_.names.fresh(channel.buffer.name() + "_block");
      functions_.line(fmt::format("typedef {} {}{};", hls_element_type(scope_, channel.buffer),
                                  type, TW_TRY(hls_array_axes(channel.buffer, scope_.bounds))));
      out.line(fmt::format("hls::stream_of_blocks<{}, {}> {};", type, channel.slots, id));
      TW_TRY_STATUS(partition(channel.buffer, id, region, out));
      out.line(fmt::format("TW_NAMED({});", id));
      channels_[channel.buffer] = {id, type, channel.slots};
    }
    if (!region.channels.empty()) functions_.text += "\n";
    const bool parallel = region.processes.size() > 1;
    if (parallel) out.line("TW_PROCESSES;");
    std::map<Buffer, int> users;
    for (size_t i = 0; i < region.processes.size(); ++i) {
      const Process& process = region.processes[i];
      const std::string name = scope_.names.fresh(
          process.name == kernel_.symbol ? process.name + "_process" : process.name);
      std::vector<std::string> arguments;
      TW_TRY_STATUS(function(region, static_cast<int>(i), name, users, arguments));
      out.line(parallel ? fmt::format("TW_PROCESS({}{}{});", name, arguments.empty() ? "" : ", ",
                                      fmt::join(arguments, ", "))
                        : fmt::format("{}({});", name, fmt::join(arguments, ", ")));
    }
    return {};
  }

  /// The function of one process, and what it is called with.
  Status function(const lower::DataflowRegion& region, int index, const std::string& name,
                  std::map<Buffer, int>& users, std::vector<std::string>& arguments) {
    const Process& process = region.processes[static_cast<size_t>(index)];
    if (const int64_t n = products(process.body, 1); n > kMostProducts)
      return fail(ErrorKind::Unsupported,
                  fmt::format("process {} has {} operations side by side", process.name, n),
                  fmt::format("vendors' tools take at most {}", kMostProducts),
                  "unroll less, or use the dialect plain");
    std::vector<std::string> parameters;
    std::map<Buffer, std::string> ports;
    const std::map<Buffer, Access> touched = accesses(process.body);
    for (const HlsPort& port : kernel_.ports) {
      const auto it = touched.find(port.buffer);
      if (it == touched.end() || ports.contains(port.buffer)) continue;
      const int at = users[port.buffer]++;
      const HlsPort& mine =
          kernel_.ports[static_cast<size_t>(ports_of_[port.buffer][static_cast<size_t>(at)])];
      ports[port.buffer] = mine.name;
      parameters.push_back(port_parameter(mine, it->second.writes));
      arguments.push_back(mine.name);
    }
    std::map<Buffer, HlsLock> locks;
    for (const Channel& channel : region.channels) {
      if (channel.writer != index && channel.reader != index) continue;
      const ChannelText& text = channels_.at(channel.buffer);
      locks[channel.buffer] = {text.id, text.type, channel.writer == index};
      parameters.push_back(
          fmt::format("hls::stream_of_blocks<{}, {}>& {}", text.type, text.slots, text.id));
      arguments.push_back(text.id);
    }
    CText body;
    body.indent = 1;
    TW_TRY_STATUS(write_hls_statements(balance_sums(process.body, func_.math), scope_,
                                       HlsProcessText{&locks, &ports}, body));
    for (const Scalar& s : func_.scalars) {
      const std::string id = scope_.names.of(s.var);
      if (!mentions(body.text, id)) continue;
      parameters.push_back("i64 " + id);
      arguments.push_back(id);
    }
    functions_.text += fmt::format("static void {}({}) {{\n{}}}\n\n", name,
                                   fmt::join(parameters, ", "), body.text);
    return {};
  }

  /// How the banks of a channel are said to the tool.
  Status partition(const Buffer& buffer, const std::string& id, const lower::DataflowRegion& region,
                   CText& out) {
    for (const Process& process : region.processes)
      if (const Alloc* alloc = alloc_of(process.body, buffer)) {
        for (const std::string& line : TW_TRY(hls_partitions(*alloc, id))) out.text += line;
        return {};
      }
    return {};
  }

  static const Alloc* alloc_of(const Stmt& body, const Buffer& buffer) {
    const Alloc* found = nullptr;
    walk(body, [&](const Stmt& s) {
      const auto* alloc = s.as<Alloc>();
      if (alloc != nullptr && alloc->buffer == buffer) found = alloc;
    });
    return found;
  }

  // --- Around them.

  std::string head() const {
    std::string out =
        fmt::format("// {} for {} ({} MHz).\n", func_.name, device_.name, device_.clock_mhz);
    std::string notes = options_.notes;
    for (size_t at = 0; at < notes.size();) {
      const size_t end = std::min(notes.find('\n', at), notes.size());
      out += "//   " + notes.substr(at, end - at) + "\n";
      at = end + 1;
    }
    if (vitis())
      for (const lower::DataflowRegion& region : program_.regions)
        for (const Channel& c : region.channels)
          out += fmt::format("// {}: {} -> {}, {} blocks\n", c.buffer.name(),
                             region.processes[static_cast<size_t>(c.writer)].name,
                             region.processes[static_cast<size_t>(c.reader)].name, c.slots);
    if (!channels_.empty()) out += "#include <hls_streamofblocks.h>\n";
    return out + "#include \"kernel.h\"\n\n";
  }

  std::string header() {
    return fmt::format("#pragma once\n\n#include \"tw_arithmetic.h\"\n\nextern \"C\" {};\n",
                       prototype());
  }

  struct ChannelText {
    std::string id, type;
    int slots;
  };

  const Func& func_;
  const lower::ProcessProgram& program_;
  const hw::FpgaDevice& device_;
  const HlsOptions& options_;
  HlsScope scope_;
  HlsKernel kernel_;
  std::map<Buffer, std::vector<int>> ports_of_;
  std::map<Buffer, ChannelText> channels_;
  CText functions_;
};

/// Of all buffers on the chip, those without constant extents left out.
int64_t elements_on_chip(const Stmt& body) {
  int64_t sum = 0;
  walk(body, [&](const Stmt& s) {
    const auto* alloc = s.as<Alloc>();
    if (alloc == nullptr || fpga_memory(alloc->buffer.scope()).empty()) return;
    int64_t elements = 1;
    for (const Expr& extent : alloc->buffer.shape()) elements *= as_int(extent).value_or(0);
    sum += elements;
  });
  return sum;
}

}  // namespace

std::string_view name(HlsDialect dialect) {
  return dialect == HlsDialect::Vitis ? "vitis" : "plain";
}

std::optional<HlsDialect> parse_hls_dialect(std::string_view text) {
  for (const HlsDialect d : {HlsDialect::Vitis, HlsDialect::Plain})
    if (text == name(d)) return d;
  return std::nullopt;
}

Result<Func> prepare_hls(const Func& func) {
  Func out = TW_TRY(inline_calls(func));
  Func held = TW_TRY(lower::run_pipeline(out, "fpga"));
  if (elements_on_chip(held.body) < elements_on_chip(out.body)) out = std::move(held);
  out.body = arith::simplify(out.body, arith::Bounds(out));
  return out;
}

Result<HlsKernel> emit_hls(const Func& func, const lower::ProcessProgram& program,
                           const hw::FpgaDevice& device, const HlsOptions& options) {
  return KernelWriter(func, program, device, options).run();
}

}  // namespace tilewright::codegen
