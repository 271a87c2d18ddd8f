#include "tilewright/codegen/hls/host.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/codegen/common/plan.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

/// Bytes from the first element of a buffer to the end of its last, with the scalars as `n`.
Expr span(const Buffer& buffer, const std::vector<Expr>& strides) {
  Expr last = int_imm(0);
  Expr any = bool_imm(true);
  for (size_t axis = 0; axis < buffer.rank(); ++axis) {
    last = last + (buffer.shape()[axis] - 1) * strides[axis];
    any = logical_and(any, buffer.shape()[axis] > 0);
  }
  const Expr elements = select(any, last + 1, int_imm(0));
  return arith::simplify(elements * int_imm(bit_width(buffer.dtype()) / 8));
}

/// The memory of a port: what the kernel's caller gives, or memory of its own.
struct Memory {
  std::string name, bytes;
  int param;
};
std::vector<Memory> memories(const HlsKernel& kernel, HlsScope& scope, CText& out) {
  std::vector<Memory> all;
  CExprWriter exprs(scope.names, scope.strides);
  exprs.bounds = scope.bounds;
  std::set<Buffer> seen;
  for (const HlsPort& port : kernel.ports) {
    if (!seen.insert(port.buffer).second) continue;
    const Expr bytes = span(port.buffer, scope.strides.at(port.buffer));
    exprs.begin({bytes});
    all.push_back({port.name, exprs.value(bytes, out), port.param});
  }
  return all;
}

std::map<Buffer, std::string> first_ports(const HlsKernel& kernel) {
  std::map<Buffer, std::string> out;
  for (const HlsPort& port : kernel.ports) out.emplace(port.buffer, port.name);
  return out;
}

/// What a host program says about the arguments of one kernel.
struct HostLines {
  std::string before;  ///< scalars, buffers and what fills them
  std::string behind;  ///< what is saved
  std::vector<std::string> arguments;
};

HostLines host_lines(const Func& func, const HlsKernel& kernel) {
  HostLines out;
  const auto add = [](std::string& to, const std::string& line) { to += "  " + line + "\n"; };
  VarMap lowest;
  for (const Scalar& s : func.scalars) {
    add(out.before,
        fmt::format("const int64_t {} = {};  // {} to {}", s.var.name(), s.lo, s.lo, s.hi));
    lowest[s.var] = int_imm(s.lo);
  }
  std::map<Buffer, std::string> made;
  for (size_t i = 0; i < kernel.ports.size(); ++i) {
    const HlsPort& port = kernel.ports[i];
    const Param* param = port.param < 0 ? nullptr : &func.params[static_cast<size_t>(port.param)];
    const auto [id, fresh] = made.try_emplace(port.buffer, "buffer_" + port.name);
    out.arguments.push_back(id->second);
    if (!fresh) continue;
    const std::vector<Expr> strides =
        strides_of(port.buffer, param == nullptr ? std::vector<Expr>{} : param->strides);
    const Expr bytes = arith::simplify(substitute(span(port.buffer, strides), lowest));
    const int64_t used = as_int(bytes).value_or(0);
    const int64_t size = (std::max<int64_t>(used, 1) + 63) / 64 * 64;
    add(out.before,
        fmt::format("xrt::bo {}(device, {}, kernel.group_id({}));", id->second, size, i));
    if (param != nullptr && param->mode != ParamMode::Out)
      add(out.before,
          fmt::format("fill({}, \"{}.bin\", {});", id->second, port.buffer.name(), used));
    if (param != nullptr && port.writes)
      add(out.behind,
          fmt::format("save({}, \"{}.bin\", {});", id->second, port.buffer.name(), used));
  }
  for (const Scalar& s : func.scalars) out.arguments.push_back(s.var.name());
  return out;
}

/// Takes the kernel, and the three parts of HostLines: before, arguments, behind.
constexpr const char kHostProgram[] =
    R"c(// Runs {0} on a card, through XRT: host KERNEL.xclbin [DEVICE]
// Inputs are read from files NAME.bin, elements in row-major order; outputs are written to such
// files.
#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

static void fill(xrt::bo& buffer, const std::string& file, std::streamsize bytes) {{
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file);
  in.read(buffer.map<char*>(), bytes);
  if (in.gcount() != bytes || in.peek() != std::ifstream::traits_type::eof())
    throw std::runtime_error(file + " must have " + std::to_string(bytes) + " bytes");
  buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE);
}}

static void save(xrt::bo& buffer, const std::string& file, std::streamsize bytes) {{
  buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  std::ofstream out(file, std::ios::binary);
  out.write(buffer.map<char*>(), bytes);
  if (!out) throw std::runtime_error("cannot write " + file);
}}

// What to return if the next step fails: no usable card, another xclbin, files or the run.
static int code = 4;

static void run(const char* file, unsigned number) {{
  xrt::device device(number);
  std::cerr << "host: " << device.get_info<xrt::info::device::name>() << "\n";
  code = 8;
  const xrt::uuid id = device.load_xclbin(std::string(file));
  xrt::kernel kernel(device, id, "{0}");
  code = 1;
{1}
  xrt::run started = kernel({2});
  if (started.wait() != ERT_CMD_STATE_COMPLETED)
    throw std::runtime_error("the kernel did not come to its end");
{3}}}

int main(int argc, char** argv) {{
  if (argc < 2) {{
    std::cerr << "usage: host KERNEL.xclbin [DEVICE]\n";
    return 2;
  }}
  try {{
    run(argv[1], argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0);
  }} catch (const std::exception& error) {{
    std::cerr << "host: " << error.what() << "\n";
    return code;
  }}
  return 0;
}}
)c";

std::string host_program(const Func& func, const HlsKernel& kernel) {
  const HostLines lines = host_lines(func, kernel);
  return fmt::format(kHostProgram, kernel.symbol, lines.before, fmt::join(lines.arguments, ", "),
                     lines.behind);
}

/// Memory channels in turn, so that ports seldom share one; ports to one buffer must.
std::string link_file(const HlsKernel& kernel, const hw::FpgaDevice& device) {
  std::string out = fmt::format("[connectivity]\nnk={0}:1:{0}_1\n", kernel.symbol);
  std::map<Buffer, size_t> channels;
  for (const HlsPort& port : kernel.ports) {
    const size_t next = channels.size() % static_cast<size_t>(std::max(device.memory.channels, 1));
    const size_t channel = channels.emplace(port.buffer, next).first->second;
    out += fmt::format("sp={}_1.{}:DDR[{}]\n", kernel.symbol, port.name, channel);
  }
  if (device.regions > 1) out += fmt::format("slr={}_1:SLR0\n", kernel.symbol);
  return out;
}

std::string build_script(const HlsKernel& kernel, const hw::FpgaDevice& device) {
  return fmt::format(R"c(#!/bin/sh
# Builds {0}.xclbin with the vendor's compiler: build.sh PLATFORM
set -e
cd "$(dirname "$0")"
if ! command -v v++ > /dev/null; then
  echo "build.sh: no v++ on PATH: install Vitis and source its settings64.sh" >&2
  exit 7
fi
if [ $# -ne 1 ]; then
  echo "usage: build.sh PLATFORM" >&2
  exit 2
fi
v++ -c -t hw --platform "$1" -k {0} --kernel_frequency {1} -I. -o {0}.xo kernel.cpp
v++ -l -t hw --platform "$1" --config link.cfg --kernel_frequency {1} -o {0}.xclbin {0}.xo
)c",
                     kernel.symbol, device.clock_mhz);
}

/// Takes the kernel and the rows of its arguments.
constexpr const char kPlainReadme[] = R"c(# {0}

C++17 for high-level synthesis, without a vendor's headers. `kernel.h` declares the function,
`kernel.cpp` defines it, `tw_arithmetic.h` has the arithmetic. Statements stand in program order.

| argument | elements | |
|---|---|---|
{1})c";

/// Takes the kernel, the device, its clock, the bits of a word, and the rows of the arguments.
constexpr const char kVitisReadme[] = R"c(# {0}

C++ for Vitis HLS, for {1} at {2} MHz. No vendor's tool has seen this text.

| file | |
|---|---|
| `kernel.cpp`, `kernel.h` | one function per process, and the top function |
| `tw_arithmetic.h` | arithmetic, and elements of memory ports |
| `link.cfg` | which argument lies in which memory |
| `build.sh` | calls the vendor's compiler; exit code 7 without it |
| `host.cpp` | runs the kernel through XRT, on files with the arguments' elements |

The host program, with the vendor's XRT, and with Debian's (`libxrt-dev`):

```
g++ -std=c++17 -I$XILINX_XRT/include host.cpp -L$XILINX_XRT/lib -lxrt_coreutil -o host
g++ -std=c++17 -I/usr/include/xrt host.cpp -l:libxrt_coreutil.so.2 -o host
./host {0}.xclbin
```

It returns 4 if there is no usable card, 8 if the xclbin is missing or is not for it.

Memory ports are words of {3} bits. An element never crosses two words; elements lie in row-major
order.

| argument | elements | |
|---|---|---|
{4})c";

std::string readme(const HlsKernel& kernel, const hw::FpgaDevice& device, HlsDialect dialect) {
  std::string arguments;
  for (const HlsPort& port : kernel.ports)
    arguments += fmt::format("| `{}` | {} | {} |\n", port.name, name(port.buffer.dtype()),
                             port.param < 0 ? "memory of the kernel's own"
                             : !port.writes ? "read"
                             : !port.reads  ? "written"
                                            : "read and written");
  if (dialect == HlsDialect::Plain) return fmt::format(kPlainReadme, kernel.symbol, arguments);
  return fmt::format(kVitisReadme, kernel.symbol, device.name, device.clock_mhz,
                     8 * std::max(device.port.bytes, 8), arguments);
}

}  // namespace

void add_host_files(const Func& func, const hw::FpgaDevice& device, const HlsOptions& options,
                    HlsKernel& kernel) {
  kernel.files["README.md"] = readme(kernel, device, options.dialect);
  if (options.dialect == HlsDialect::Plain) return;
  kernel.files["host.cpp"] = host_program(func, kernel);
  kernel.files["link.cfg"] = link_file(kernel, device);
  kernel.files["build.sh"] = build_script(kernel, device);
}

Result<std::string> hls_csim_entry(const Func& func, const HlsKernel& kernel, HlsScope& scope,
                                   const std::string& word_type) {
  CText out;
  out.open(
      fmt::format("extern \"C\" void {}_csim(void* const* tw_buffers, "
                  "const int64_t* tw_scalars, void*, const void*) {{",
                  kernel.symbol));
  out.line("(void)tw_scalars;");
  for (size_t i = 0; i < func.scalars.size(); ++i)
    out.line(fmt::format("const i64 {} = tw_scalars[{}];", scope.names.of(func.scalars[i].var), i));
  for (const Memory& m : memories(kernel, scope, out))
    out.line(fmt::format("tw_csim::Memory tw_{}({}, {});", m.name,
                         m.param < 0 ? "nullptr" : fmt::format("tw_buffers[{}]", m.param),
                         m.bytes));
  const auto first = first_ports(kernel);
  std::vector<std::string> arguments;
  for (const HlsPort& port : kernel.ports) {
    const std::string type =
        scope.dialect == HlsDialect::Vitis ? word_type : c_storage_type(port.buffer.dtype());
    arguments.push_back(fmt::format("({}*)tw_{}.data()", type, first.at(port.buffer)));
  }
  for (const Scalar& s : func.scalars) arguments.push_back(scope.names.of(s.var));
  out.line("tw_csim::begin();");
  out.line(fmt::format("{}({});", kernel.symbol, fmt::join(arguments, ", ")));
  for (const HlsPort& port : kernel.ports)
    if (port.param >= 0 && port.writes && first.at(port.buffer) == port.name)
      out.line(fmt::format("tw_{}.copy_back();", port.name));
  out.close();
  return out.text;
}

}  // namespace tilewright::codegen
