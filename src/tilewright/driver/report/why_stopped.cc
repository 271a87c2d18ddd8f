#include "tilewright/driver/report/why_stopped.h"

#include <fmt/format.h>

namespace tilewright::driver {

std::string_view stop_name(search::Stop stop) {
  switch (stop) {
    case search::Stop::Trials:
      return "trials";
    case search::Stop::Time:
      return "time";
    case search::Stop::Stall:
      return "stall";
    case search::Stop::Exhausted:
      return "exhausted";
    case search::Stop::Interrupted:
      return "interrupted";
  }
  return "";
}

std::string why_stopped(search::Stop stop, const TuneSettings& settings, const std::string& all) {
  switch (stop) {
    case search::Stop::Trials:
      return settings.trials == 1 ? "1 trial was asked for"
                                  : fmt::format("{} trials were asked for", settings.trials);
    case search::Stop::Time:
      return "the time is up";
    case search::Stop::Stall:
      return fmt::format("the last trials gained less than {:.3g} %", 100 * settings.stall_gain);
    case search::Stop::Exhausted:
      return all + " was tried";
    case search::Stop::Interrupted:
      return "it was interrupted";
  }
  return "";
}

}  // namespace tilewright::driver
