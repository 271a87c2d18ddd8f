// Which schedules tuning keeps: what wins a race against the rules' schedule, kernel by kernel and
// for whole models.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tilewright/driver/tuning/tasks.h"
#include "tilewright/measure/measurer.h"
#include "tilewright/tune/tuner.h"

namespace tilewright::driver {

/// What was decided for one task.
struct Verdict {
  records::Record record;  ///< searcher `race`: the schedule to keep, and its cost
  bool better = false;     ///< it is not the rules' schedule
  double ratio = 1;        ///< its time over that of the rules' schedule
  std::string rule;        ///< the rules' schedule, printed
  double rule_cost = 0;
  bool known = false;  ///< false: the task was not measured at all; there is nothing to keep
};

/// One verdict per task of `tuner`. A schedule must win by the median and by the fastest reading.
/// `measurer`: null decides by the readings of the search alone; so do tasks after `time_left` says
/// no. `when`: of the verdicts' records. `exact`: readings are cycles of a simulator, of which one
/// less is less.
std::vector<Verdict> final_races(const tune::Tuner& tuner, const std::string& compiler,
                                 const std::string& when, measure::Measurer* measurer,
                                 const std::function<bool()>& time_left, bool exact = false);

/// The rules' schedule after all.
void give_up(Verdict& verdict);

/// Answers with the verdicts, by workload.
compile::FindRecord find_among(const std::vector<Verdict>& verdicts);

}  // namespace tilewright::driver
