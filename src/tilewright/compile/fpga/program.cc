#include "tilewright/compile/fpga/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tilewright/base/file.h"
#include "tilewright/codegen/hls/hls.h"
#include "tilewright/hw/fpga_device_file.h"
#include "tilewright/ir/walk.h"
#include "tilewright/lower/initiation.h"
#include "tilewright/records/workload.h"

namespace tilewright::compile {
namespace {

bool is_cut(const Func& func) {
  bool cut = false;
  walk(func.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    cut |= loop != nullptr && find_mark(loop->marks, MarkKind::Pipeline) != nullptr;
  });
  return cut;
}

LayerNote model_note(const rules::FpgaSchedule& schedule, const hw::FpgaDevice& device) {
  const cost::FpgaTime& time = schedule.time;
  LayerNote note;
  note.lines = {
      fmt::format("design {}", to_string(schedule.design)),
      fmt::format("{:.0f} cycles by the model, bound by {}: reads {:.0f} (image) and {:.0f} "
                  "(weights), computes {:.0f}, writes {:.0f}",
                  time.cycles, time.bound, time.image, time.weights, time.compute, time.result),
      fmt::format("cells by the model, of those that a design may take: {}",
                  cells_text(schedule.cells, device))};
  return note;
}

/// `for x: II 2, 12 cycles from ...`.
std::string loop_line(const lower::Initiation& loop) {
  std::string nest;
  for (const For* around : loop.nest) nest += (nest.empty() ? "" : ", ") + around->var.name();
  const std::string why = loop.why();
  return fmt::format("loops {}: II {}{}", nest, loop.cycles(), why.empty() ? "" : ", " + why);
}

}  // namespace

int64_t FpgaProgram::cycles() const {
  return std::llround(model ? model->time.cycles : record ? record->cost : 0);
}

FpgaProgram fpga_program(const Func& func, const hw::FpgaDevice& device, const FindNetwork& tuned) {
  FpgaProgram program{func, func, {}, {}, {}, 0, {}, ""};
  if (is_cut(func)) return program;
  if (auto record = tuned ? tuned(fpga_workload(func)) : std::nullopt) {
    const auto steps = schedule::parse_trace(record->schedule);
    if (auto made = steps ? schedule::replay(func, *steps) : Result<Func>(func); steps && made) {
      program.func = *std::move(made);
      program.steps = *steps;
      program.remark =
          fmt::format("schedule: of tuning; {:.0f} cycles in the simulator", record->cost);
      program.record = std::move(record);
      return program;
    }
    ++program.stale_records;
  }
  auto best = rules::best_fpga_schedule(func, device, device.path());
  if (!best) {
    const Error& e = best.error();
    program.remark = fmt::format("note: {} is not scheduled: {}{}", func.name, e.what,
                                 e.why.empty() ? "" : ", " + e.why);
    program.unscheduled = e;
    return program;
  }
  FpgaProgram made = scheduled_program(func, *std::move(best), device);
  made.stale_records = program.stale_records;
  return made;
}

FpgaProgram scheduled_program(const Func& func, rules::FpgaSchedule schedule,
                              const hw::FpgaDevice& device) {
  FpgaProgram program{func, schedule.func, schedule.trace, {}, {}, 0, {}, ""};
  program.remark =
      fmt::format("schedule: {}; {:.4g} ms by the model, bound by {}", to_string(schedule.design),
                  schedule.time.cycles / device.clock_mhz * 1e-3, schedule.time.bound);
  program.model = std::move(schedule);
  return program;
}

Status check_cpp(const Func& func, const hw::FpgaDevice& device) {
  const Func prepared = TW_TRY(codegen::prepare_hls(func));
  TW_TRY(codegen::emit_hls(prepared, TW_TRY(lower::processes_of(prepared)), device));
  return {};
}

std::string cells_text(const hw::FpgaCells& cells, const hw::FpgaDevice& device) {
  const hw::FpgaCells there = device.usable_cells();
  return fmt::format(
      "LUT {:.0f} of {:.0f}, FF {:.0f} of {:.0f}, DSP {:.0f} of {:.0f}, BRAM18 {} of {}, URAM {} "
      "of {}",
      cells.luts, there.luts, cells.ffs, there.ffs, cells.dsps, there.dsps, cells.bram18,
      there.bram18, cells.uram, there.uram);
}

double share_of_cells(const hw::FpgaCells& cells, const hw::FpgaDevice& device) {
  const hw::FpgaCells there = device.usable_cells();
  const auto share = [](auto some, auto all) {
    return all > 0 ? static_cast<double>(some) / static_cast<double>(all) : 0.0;
  };
  return std::max({share(cells.luts, there.luts), share(cells.ffs, there.ffs),
                   share(cells.dsps, there.dsps), share(cells.bram18, there.bram18),
                   share(cells.uram, there.uram)});
}

std::string fpga_workload(const Func& func) {
  return records::workload_key(records::workload_text(func));
}

std::string fpga_record_key(const hw::FpgaDevice& device) {
  return fmt::format("{}:{}:{}", kFpgaTarget, device.name,
                     sha256(hw::to_toml(device)).substr(0, 12));
}

Result<std::vector<LayerNote>> fpga_notes(const FpgaProgram& program,
                                          const hw::FpgaDevice& device) {
  std::vector<LayerNote> notes;
  if (program.model) notes.push_back(model_note(*program.model, device));
  const Func prepared = TW_TRY(codegen::prepare_hls(program.func));
  for (const lower::DataflowRegion& region : TW_TRY(lower::processes_of(prepared)).regions) {
    for (const lower::Process& process : region.processes) {
      LayerNote& note = notes.emplace_back();
      note.layer = process.name;
      for (const lower::Channel& channel : region.channels) {
        const auto is = [&](int index) {
          return &region.processes[static_cast<size_t>(index)] == &process;
        };
        if (!is(channel.writer) && !is(channel.reader)) continue;
        note.lines.push_back(fmt::format("{} {}, {} slot{}", is(channel.writer) ? "fills" : "takes",
                                         channel.buffer.name(), channel.slots,
                                         channel.slots == 1 ? "" : "s"));
      }
      // What has no interval is nevertheless built: the C++ leaves it to the vendor's compiler.
      const auto loops = lower::initiations_of(process, prepared.math, device, device.path());
      if (!loops) {
        note.lines.push_back(fmt::format("its intervals are not known: {}", loops.error().what));
        continue;
      }
      for (const lower::Initiation& loop : *loops) note.lines.push_back(loop_line(loop));
    }
  }
  return notes;
}

}  // namespace tilewright::compile
