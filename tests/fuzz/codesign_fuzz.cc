// Files of co-design: designs, whose text means the same, technologies and spaces.
#include <cmath>

#include "fuzz_common.h"
#include "tilewright/codesign/area.h"
#include "tilewright/codesign/space.h"

namespace {

using namespace tilewright;

void try_technology(std::string_view text) {
  const Result<codesign::Technology> read = codesign::read_technology(text, "input");
  if (!read && read.error().what.empty()) fuzz::report("an error without words");
  if (!read) return;
  for (const codesign::Hardware& hardware :
       {codesign::Hardware(spatial::Design()), codesign::Hardware(vta::Config())})
    if (std::isnan(codesign::area(hardware, *read).total())) fuzz::report("a design has no area");
}

void try_space(std::string_view text) {
  const Result<codesign::DesignSpace> read = codesign::read_space(text, "input");
  if (!read && read.error().what.empty()) fuzz::report("an error without words");
  if (!read) return;
  int left = 1000;
  read->for_each([&](const search::Point& point) {
    const bool legal = read->legal(point);
    if (legal != read->reasons(point).empty())
      fuzz::report("a point is legal for reasons: " + read->points().text(point));
    if (legal && !codesign::read_hardware(codesign::to_toml(read->hardware(point)), "picked"))
      fuzz::report("a legal point has no file: " + read->points().text(point));
    return --left > 0;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  if (text.find(".toml") != text.npos) return 0;  // spaces may name files of technologies
  fuzz::round_trip(
      text, [](std::string_view design) { return codesign::read_hardware(design, "input"); },
      [](const codesign::Hardware& hardware) { return codesign::to_toml(hardware); });
  try_technology(text);
  try_space(text);
  return 0;
}
