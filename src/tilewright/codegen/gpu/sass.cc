#include "tilewright/codegen/gpu/sass.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::codegen {
namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

struct Instruction {
  int64_t address = 0;
  std::string name;    ///< with its modifiers
  std::string label;   ///< of a branch's target
  bool always = true;  ///< a branch or exit without a condition
  size_t target = kNowhere;

  std::string_view opcode() const { return std::string_view(name).substr(0, name.find('.')); }
  bool branches() const { return !label.empty(); }
  bool falls_through() const {
    const bool ends = branches() || opcode() == "EXIT" || opcode() == "RET" || opcode() == "BRX" ||
                      opcode() == "JMX" || opcode() == "KILL";
    return !ends || !always;
  }
};

/// Instructions of a kernel, and where its labels are.
struct Code {
  std::string symbol;
  std::vector<Instruction> instructions;
  std::map<std::string, size_t, std::less<>> labels;
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r;") + 1 - begin);
}

/// `/*00d0*/  @!P0 BRA `(.L_x_3) ;`
Result<Instruction> parse_instruction(std::string_view line) {
  const auto broken = [&] {
    return fail(ErrorKind::Parse, "nvdisasm printed a line that is no instruction",
                std::string(line));
  };
  const size_t end = line.find("*/");
  Instruction out;
  const char* first = line.data() + 2;
  if (end == std::string_view::npos ||
      std::from_chars(first, line.data() + end, out.address, 16).ptr != line.data() + end)
    return broken();
  std::string_view text = trimmed(line.substr(end + 2));
  if (text.starts_with('@')) {
    out.always = false;
    text = trimmed(text.substr(std::min(text.find(' '), text.size())));
  }
  out.name = std::string(text.substr(0, text.find_first_of(" \t;")));
  if (out.name.empty()) return broken();
  if (out.opcode() != "BRA" && out.opcode() != "JMP") return out;
  const size_t label = text.find("`(");
  if (label == std::string_view::npos) return out;  // to an address: out of the kernel
  out.label = std::string(text.substr(label + 2, text.find(')', label) - label - 2));
  // `BRA P0, ...`, `BRA.U UP0, ...` and `BRA.DIV UR4, ...` have conditions as operands.
  out.always = out.always && trimmed(text.substr(out.name.size(), label - out.name.size())).empty();
  return out;
}

std::vector<size_t> next_of(const Code& code, size_t at) {
  const Instruction& instruction = code.instructions[at];
  std::vector<size_t> next;
  if (instruction.target != kNowhere) next.push_back(instruction.target);
  if (instruction.falls_through() && at + 1 < code.instructions.size()) next.push_back(at + 1);
  return next;
}

/// What `step` leads to from `from`, which is included, without going through `without`.
template <class Step>
std::set<size_t> reachable(size_t from, size_t without, const Step& step) {
  std::set<size_t> seen;
  if (from == without) return seen;
  std::vector<size_t> left = {from};
  seen.insert(from);
  while (!left.empty()) {
    const size_t at = left.back();
    left.pop_back();
    for (const size_t next : step(at))
      if (next != without && seen.insert(next).second) left.push_back(next);
  }
  return seen;
}

/// The loop that the branch at `branch` closes: empty unless its target is on every way to it.
std::set<size_t> loop_of(const Code& code, const std::vector<std::vector<size_t>>& before,
                         size_t branch) {
  const size_t head = code.instructions[branch].target;
  const auto next = [&](size_t at) { return next_of(code, at); };
  if (head > branch || head == branch || reachable(0, head, next).contains(branch) ||
      !reachable(0, kNowhere, next).contains(branch))
    return {};
  std::set<size_t> body = reachable(branch, head, [&](size_t at) { return before[at]; });
  body.insert(head);
  return body;
}

/// Whether a loop does nothing but ask again whether copies have come.
bool only_waits(const Code& code, const std::set<size_t>& body) {
  bool asks = false, works = false;
  for (const size_t at : body) {
    const std::string_view name = code.instructions[at].name;
    asks |= name.starts_with("SYNCS.PHASECHK");
    for (const std::string_view work : {"LD", "ST", "ATOM", "RED", "UTMA", "FFMA", "FADD", "FMUL"})
      works |= name.starts_with(work);
    works |= name.substr(0, name.find('.')).ends_with("MMA");
  }
  return asks && !works;
}

std::vector<SassLoop> innermost_loops(const Code& code) {
  std::vector<std::vector<size_t>> before(code.instructions.size());
  for (size_t at = 0; at < code.instructions.size(); ++at)
    for (const size_t next : next_of(code, at)) before[next].push_back(at);
  std::map<size_t, std::set<size_t>> bodies;  // by head: several branches may close a loop
  for (size_t at = 0; at < code.instructions.size(); ++at) {
    if (code.instructions[at].target == kNowhere) continue;
    const std::set<size_t> body = loop_of(code, before, at);
    if (!body.empty()) bodies[code.instructions[at].target].insert(body.begin(), body.end());
  }
  std::erase_if(bodies, [&](const auto& loop) { return only_waits(code, loop.second); });
  std::vector<SassLoop> loops;
  for (const auto& [head, body] : bodies) {
    const bool inner = std::none_of(bodies.begin(), bodies.end(), [&](const auto& other) {
      return other.first != head && body.contains(other.first);
    });
    if (!inner) continue;
    SassLoop loop{code.instructions[head].address, code.instructions[*body.rbegin()].address, {}};
    for (const size_t at : body) ++loop.counts[code.instructions[at].name];
    loops.push_back(std::move(loop));
  }
  return loops;
}

Result<SassKernel> summary(Code& code) {
  SassKernel kernel;
  kernel.symbol = code.symbol;
  for (Instruction& instruction : code.instructions) {
    if (instruction.name != "NOP") ++kernel.all[instruction.name];
    if (!instruction.branches()) continue;
    const auto it = code.labels.find(instruction.label);
    if (it == code.labels.end())
      return fail(ErrorKind::Parse, fmt::format("kernel '{}' branches to '{}', which is nowhere",
                                                code.symbol, instruction.label));
    instruction.target = it->second;
  }
  kernel.loops = innermost_loops(code);
  return kernel;
}

}  // namespace

int64_t count(const SassCounts& counts, std::string_view opcode, std::string_view modifiers) {
  int64_t found = 0;
  for (const auto& [name, times] : counts) {
    const size_t end = std::min(name.find('.'), name.size());
    const std::string rest = name.substr(end) + ".";
    if (std::string_view(name).substr(0, end) == opcode &&
        (modifiers.empty() || rest.find(fmt::format(".{}.", modifiers)) != std::string::npos))
      found += times;
  }
  return found;
}

int64_t total(const SassCounts& counts) {
  int64_t sum = 0;
  for (const auto& [name, times] : counts) sum += times;
  return sum;
}

const SassLoop* SassKernel::loop_with(std::string_view opcode, std::string_view modifiers) const {
  const SassLoop* best = nullptr;
  int64_t most = 0;
  for (const SassLoop& loop : loops)
    if (const int64_t found = count(loop.counts, opcode, modifiers); found > most)
      most = found, best = &loop;
  return best;
}

Result<std::vector<SassKernel>> parse_sass(std::string_view text) {
  constexpr std::string_view kSection = ".section\t.text.";
  std::vector<Code> codes;
  bool inside = false;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.starts_with(".section\t")) {
      inside = line.starts_with(kSection);
      if (!inside) continue;
      const std::string_view name = line.substr(kSection.size());
      codes.emplace_back().symbol = std::string(name.substr(0, name.find(',')));
    } else if (inside && line.starts_with("/*")) {
      codes.back().instructions.push_back(TW_TRY(parse_instruction(line)));
    } else if (inside && line.ends_with(':')) {
      codes.back().labels[std::string(line.substr(0, line.size() - 1))] =
          codes.back().instructions.size();
    }
  }
  std::vector<SassKernel> kernels;
  for (Code& code : codes) {
    // A label at the very end stands for no instruction.
    std::erase_if(code.labels,
                  [&](const auto& label) { return label.second >= code.instructions.size(); });
    kernels.push_back(TW_TRY(summary(code)));
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const SassKernel& a, const SassKernel& b) { return a.symbol < b.symbol; });
  return kernels;
}

Result<std::string> find_nvdisasm() {
  const std::string wanted = environment("TILEWRIGHT_NVDISASM").value_or("nvdisasm");
  std::string path = find_program(wanted);
  if (!path.empty()) return path;
  return fail(ErrorKind::Tool, "the disassembler for NVIDIA's GPUs is not there",
              fmt::format("'{}' is no program", wanted),
              "install a CUDA toolkit, or `pip install nvidia-cuda-nvdisasm` and set "
              "TILEWRIGHT_NVDISASM to its nvdisasm");
}

Result<std::vector<SassKernel>> disassemble(std::string_view cubin) {
  const std::string program = TW_TRY(find_nvdisasm());
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(write_file(folder.file("kernels.cubin"), cubin));
  const ToolResult result =
      TW_TRY(run_checked({program, "--print-code", folder.file("kernels.cubin")}));
  return parse_sass(result.output);
}

}  // namespace tilewright::codegen
