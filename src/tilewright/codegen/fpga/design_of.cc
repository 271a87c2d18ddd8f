#include "tilewright/codegen/fpga/design_of.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/codegen/fpga/first_sum.h"
#include "tilewright/codegen/fpga/nest.h"
#include "tilewright/codegen/fpga/operands.h"
#include "tilewright/ir/walk.h"

namespace tilewright::codegen {
namespace {

using fpga_design::BankedBuffer;
using fpga_design::BuiltNest;
using fpga_design::Counter;
using fpga_design::Fetched;
using fpga_design::Loops;
using fpga_design::Surroundings;
using lower::Banking;

/// Loops that are one counter, and what is inside of them.
struct Chain {
  std::vector<Counter> counters;
  int64_t wanted = 1;
  Stmt body;
};

/// The perfect nest that begins at `s`; absent if there is none: memories or other loops inside.
std::optional<Chain> chain_of(const Stmt& s) {
  Chain chain{{}, 1, s};
  VarMap once;
  for (const For* loop = s.as<For>(); loop != nullptr && loop->kind == ForKind::Serial;
       loop = chain.body.as<For>()) {
    const auto extent = as_int(loop->extent);
    if (!extent) return std::nullopt;
    chain.wanted =
        std::max(chain.wanted, int_mark(loop->marks, MarkKind::InitiationInterval).value_or(1));
    if (*extent == 1)
      once[loop->var] = int_imm(0);
    else
      chain.counters.push_back({loop->var, *extent});
    chain.body = loop->body;
  }
  bool perfect = true;
  walk(chain.body, [&](const Stmt& inside) {
    const auto* loop = inside.as<For>();
    perfect &= inside.as<Alloc>() == nullptr && (loop == nullptr || loop->kind == ForKind::Unroll);
  });
  if (!perfect) return std::nullopt;
  if (!once.empty()) chain.body = substitute(chain.body, once);
  return chain;
}

/// The first buffer that `s` stores to.
std::string stored_in(const Stmt& s) {
  std::string name;
  walk(s, [&](const Stmt& inside) {
    const auto* store = inside.as<Store>();
    if (store != nullptr && name.empty()) name = store->buffer.name();
  });
  return name;
}

/// Beats that wait to be written where no LUT is a RAM: they lie in flip-flops.
constexpr int kIce40WriteFifo = 8;

class DesignWriter {
 public:
  DesignWriter(const Func& func, const hw::FpgaDevice& device) : func_(func) {
    around_.device = &device;
    design_.name = func.name;
    design_.bus = {device.port.bytes, device.port.burst_beats, device.port.outstanding};
    if (device.family == hw::FpgaFamily::Ice40) design_.bus.write_fifo = kIce40WriteFifo;
    design_.multiplier_bits = device.multiplier_bits();
    design_.arguments = static_cast<int>(func.params.size());
    for (size_t i = 0; i < func.params.size(); ++i)
      around_.arguments[func.params[i].buffer] = static_cast<int>(i);
  }

  Result<fpga::Design> run(const lower::DataflowRegion& region) {
    for (const lower::Channel& channel : region.channels)
      accumulated_[channel.buffer] = channel.accumulated;
    for (const lower::Process& process : region.processes) {
      process_ = {process.name, {}};
      loops_ = {};
      Status done = statement(process.body);
      if (!done) {
        Error error = done.error();
        if (error.place.empty()) error.place = "process " + process.name;
        return tl::unexpected<Error>(std::move(error));
      }
      fpga_design::start_sums_with_first(process_);
      design_.processes.push_back(std::move(process_));
    }
    TW_TRY_STATUS(check_legal(design_));
    return std::move(design_);
  }

 private:
  Status statement(const Stmt& s) {
    if (const auto chain = chain_of(s)) return nest(*chain);
    if (const auto* loop = s.as<For>()) return loop_around(*loop);
    if (const auto* all = s.as<Seq>()) return sequence(*all);
    if (s.as<Alloc>() != nullptr) return sequence({{s}});
    if (const auto* test = s.as<If>(); test != nullptr && !test->else_body) {
      guards_.push_back(test->condition);
      const Status done = statement(test->then_body);
      guards_.pop_back();
      return done;
    }
    return fail(ErrorKind::Unsupported, "the Verilog has no statement of this kind around loops");
  }

  Status loop_around(const For& loop) {
    const auto extent = as_int(loop.extent);
    if (!extent)
      return fail(ErrorKind::Unsupported,
                  fmt::format("loop {} has a length known only at run time", loop.var.name()));
    if (loop.kind != ForKind::Serial && loop.kind != ForKind::Unroll)
      return fail(
          ErrorKind::Unsupported,
          fmt::format("the Verilog has one pipeline: loop {} is parallel", loop.var.name()));
    process_.items.push_back(fpga::LoopBegin{*extent});
    loops_.push_back({loop.var, *extent});
    TW_TRY_STATUS(statement(loop.body));
    loops_.pop_back();
    process_.items.push_back(fpga::LoopEnd{});
    return {};
  }

  /// Blocks of channels live from their allocation to the end of the sequence.
  Status sequence(const Seq& all) {
    std::vector<int> held;
    for (const Stmt& s : all.stmts) {
      const auto* alloc = s.as<Alloc>();
      if (alloc == nullptr) {
        TW_TRY_STATUS(statement(s));
        continue;
      }
      if (!guards_.empty())
        return fail(ErrorKind::Unsupported,
                    fmt::format("memory {} stands under a condition", alloc->buffer.name()));
      const int memory = TW_TRY(memory_of(*alloc));
      if (design_.memories[static_cast<size_t>(memory)].slots == 0) continue;
      process_.items.push_back(fpga::Acquire{memory});
      held.push_back(memory);
    }
    for (const int memory : held) process_.items.push_back(fpga::Release{memory});
    return {};
  }

  Result<int> memory_of(const Alloc& alloc) {
    const Buffer& buffer = alloc.buffer;
    if (const auto known = around_.memories.find(buffer); known != around_.memories.end())
      return known->second.memory;
    BankedBuffer chip{
        static_cast<int>(design_.memories.size()), {}, TW_TRY(lower::banking_of(alloc))};
    for (const Expr& extent : buffer.shape()) {
      const auto whole = as_int(extent);
      if (!whole)
        return fail(ErrorKind::Unsupported,
                    fmt::format("memory {} has a size known only at run time", buffer.name()));
      chip.shape.push_back(*whole);
    }
    const bool registers = fpga_memory(buffer.scope()) == "reg";
    if (registers && find_mark(alloc.marks, MarkKind::Partition) == nullptr)
      for (size_t i = 0; i < chip.shape.size(); ++i)
        chip.banking[i] = {Banking::Kind::Complete, chip.shape[i]};
    const auto slots = int_mark(alloc.marks, MarkKind::Slots);
    const auto accumulated = accumulated_.find(buffer);
    design_.memories.push_back({buffer.name(), fpga::number_of(buffer.dtype()),
                                static_cast<int>(chip.banks()), chip.words(),
                                static_cast<int>(slots.value_or(0)),
                                accumulated != accumulated_.end() && accumulated->second, 2});
    around_.memories[buffer] = chip;
    return chip.memory;
  }

  Status nest(Chain chain) {
    for (auto guard = guards_.rbegin(); guard != guards_.rend(); ++guard)
      chain.body = make(If{*guard, chain.body, {}});
    const Fetched fetched = fetch_operands(chain.counters, chain.body, around_);
    for (const Fetched::Copy& copy : fetched.copies) {
      TW_TRY_STATUS(memory_of(Alloc{copy.buffer, {}}));
      TW_TRY_STATUS(add({copy.counters, 1, copy.body}));
    }
    chain.body = fetched.body;
    TW_TRY_STATUS(add(chain));
    for (const Fetched::Copy& copy : fetched.copies)
      make_room(around_.memories.at(copy.buffer).memory);
    return {};
  }

  /// A counter that is cut where banks had their turn may go over its end: what the last nest reads
  /// there of a copy is not used, but must be an element.
  void make_room(int copy) {
    const auto& nest = std::get<fpga::Nest>(process_.items.back());
    fpga::Memory& memory = design_.memories[static_cast<size_t>(copy)];
    const auto most = [&](const fpga::Affine& a) {
      int64_t sum = a.constant;
      for (size_t i = 0; i < a.loops.size(); ++i)
        sum += std::max<int64_t>(0, a.loops[i]) * (loops_[i].extent - 1);
      for (size_t i = 0; i < a.counters.size(); ++i)
        sum += std::max<int64_t>(0, a.counters[i]) * (nest.extents[i] - 1);
      return sum;
    };
    for (const fpga::Node& node : nest.nodes) {
      if (node.op != fpga::Op::Read || node.place.memory != copy) continue;
      memory.words = std::max(memory.words, most(node.place.word) + 1);
      memory.banks = std::max(memory.banks, static_cast<int>(most(node.place.bank)) + 1);
    }
  }

  Status add(const Chain& chain) {
    Loops loops{loops_, chain.counters};
    if (loops.counters.empty()) loops.counters.push_back({Var("once"), 1});
    BuiltNest built =
        TW_TRY(fpga_design::build_nest(loops, chain.body, chain.wanted, design_, around_));
    built.nest.name = stored_in(chain.body);
    if (built.argument >= 0) {
      const Buffer& buffer = func_.params[static_cast<size_t>(built.argument)].buffer;
      built.nest.stream.port = static_cast<int>(design_.ports.size());
      design_.ports.push_back({buffer.name(), built.writes, built.argument,
                               built.argument % around_.device->memory.channels});
    }
    process_.items.push_back(std::move(built.nest));
    return {};
  }

  const Func& func_;
  Surroundings around_;
  fpga::Design design_;
  fpga::Process process_;
  std::vector<Counter> loops_;
  std::vector<Expr> guards_;
  std::map<Buffer, bool> accumulated_;
};

}  // namespace

Result<fpga::Design> design_of(const Func& func, const lower::ProcessProgram& program,
                               const hw::FpgaDevice& device) {
  if (program.regions.size() != 1 || !program.scratch.empty())
    return fail(ErrorKind::Unsupported,
                fmt::format("'{}' has {} parts that run one after the other and {} buffers between "
                            "them; the Verilog takes one region of processes",
                            func.name, program.regions.size(), program.scratch.size()),
                "a schedule with the step dataflow, or the C++: device fpga:csim");
  return DesignWriter(func, device).run(program.regions[0]);
}

}  // namespace tilewright::codegen
