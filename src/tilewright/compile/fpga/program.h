// Programs for FPGAs get the schedule of the model's best design, and say what it is.
#pragma once

#include <optional>
#include <string>

#include "tilewright/compile/backend.h"
#include "tilewright/compile/fpga/backend.h"
#include "tilewright/rules/fpga/schedule.h"

namespace tilewright::compile {

struct FpgaProgram {
  Func source;            ///< without the schedule
  Func func;              ///< what the C++ and the Verilog are made of
  schedule::Trace steps;  ///< that made it; empty: it is as it was written
  /// Absent: the steps are not the model's.
  std::optional<rules::FpgaSchedule> model;
  std::optional<records::Record> record;  ///< that had the steps
  int64_t stale_records = 0;              ///< that do not fit the program any more
  std::optional<Error> unscheduled;       ///< why it has no steps, where some were wanted
  std::string remark;  ///< for people: the schedule, or why there is none; empty: it is their own

  int64_t cycles() const;  ///< by the model, or of the record; 0: nobody knows
};
/// With the steps of the record that `tuned` knows, else with those of the model's best design, or
/// as it was. A program that is already cut into processes stays as it is.
FpgaProgram fpga_program(const Func& func, const hw::FpgaDevice& device,
                         const FindNetwork& tuned = {});

/// `func` with a schedule of the model.
FpgaProgram scheduled_program(const Func& func, rules::FpgaSchedule schedule,
                              const hw::FpgaDevice& device);

/// Whether its C++ can be written. errors: Unsupported.
Status check_cpp(const Func& func, const hw::FpgaDevice& device);

/// Of records: the program, names apart, and the device with a hash of its file.
std::string fpga_workload(const Func& func);
std::string fpga_record_key(const hw::FpgaDevice& device);

/// `LUT 1 of 2, FF ...`
std::string cells_text(const hw::FpgaCells& cells, const hw::FpgaDevice& device);
/// The largest share of one kind of cell that a design may take.
double share_of_cells(const hw::FpgaCells& cells, const hw::FpgaDevice& device);

/// For `explain`: by the model what reading, computing and writing take, what bounds them and what
/// the cells come to; then each process with its loops, the interval of each and its reason.
/// errors: those of lower/processes.h.
Result<std::vector<LayerNote>> fpga_notes(const FpgaProgram& program, const hw::FpgaDevice& device);

}  // namespace tilewright::compile
