#include "tilewright/driver/codesign/picked_design.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/file.h"
#include "tilewright/codesign/hardware.h"
#include "tilewright/driver/codesign/design_package.h"
#include "tilewright/driver/codesign/design_page.h"
#include "tilewright/driver/codesign/eval_run.h"
#include "tilewright/driver/codesign/goals.h"
#include "tilewright/driver/codesign/mapping_options.h"
#include "tilewright/driver/codesign/search_inputs.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/generated_rtl.h"

namespace tilewright::driver {
namespace {

/// What the search was given, read again: to compile and report what was judged, and nothing else.
struct Searched {
  SearchInputs inputs;
  SearchSubject subject;
};

/// errors: Package (something is gone, or no longer what it was), with what differs.
Result<Searched> searched_of(const std::string& folder, codesign::StudyKey key) {
  const auto changed = [&](const std::string& differ) {
    return fail(ErrorKind::Package,
                fmt::format("'{}' is of a model or a space that is no longer there", folder),
                differ, "search again; --no-package writes the design alone");
  };
  Result<SearchInputs> inputs = read_inputs(folder);
  if (!inputs) return changed(inputs.error().what);
  Result<SearchSubject> subject = load_search(*inputs);
  if (!subject)
    return changed(subject.error().why.empty()
                       ? subject.error().what
                       : fmt::format("{}: {}", subject.error().what, subject.error().why));
  subject->goals = TW_TRY(goals_of(key));
  key.erase("warm start");
  const std::string differ = codesign::differences(study_key(*subject, inputs->mapping), key);
  if (!differ.empty()) return changed(differ);
  return Searched{*std::move(inputs), *std::move(subject)};
}

/// hw.toml, the technology by which it was judged (null: not known any more), and rtl/.
Status write_design(const FrontPoint& point, const codesign::Technology* technology,
                    const std::string& folder) {
  TW_TRY_STATUS(write_file(folder + "/hw.toml", point.design));
  if (technology != nullptr)
    TW_TRY_STATUS(write_file(folder + "/" + kTechnologyFile, technology->text));
  say(fmt::format("{}/hw.toml: design {}", folder, point.number));
  const Result<GeneratedRtl> made =
      generated_rtl(TW_TRY(codesign::read_hardware(point.design, "hw.toml")));
  if (made) return write_rtl(*made, folder + "/rtl");
  say(fmt::format("no rtl/: {}", made.error().what));
  return {};
}

}  // namespace

Result<size_t> picked(const std::string& pick, const std::vector<FrontPoint>& front,
                      const std::vector<std::string>& objectives) {
  if (pick == "knee") return knee_of(front);
  for (size_t j = 0; j < objectives.size(); ++j)
    if (pick == "min:" + objectives[j])
      return static_cast<size_t>(std::min_element(front.begin(), front.end(),
                                                  [&](const FrontPoint& a, const FrontPoint& b) {
                                                    return a.objectives[j] < b.objectives[j];
                                                  }) -
                                 front.begin());
  for (size_t i = 0; i < front.size(); ++i)
    if (pick == std::to_string(front[i].number)) return i;
  return fail(ErrorKind::Usage, fmt::format("--pick '{}' names no design of the front", pick),
              fmt::format("it takes knee, min: and one of {}, or a number of the front",
                          fmt::join(objectives, ", ")));
}

// All that can fail or take long comes before the first file.
Status write_picked(const std::string& study, const FrontPoint& point,
                    const codesign::StudyKey& key, const PickedOutput& output) {
  const std::string& folder = output.folder;
  const Result<Searched> searched = searched_of(study, key);
  if (!searched && !output.no_package) return tl::unexpected<Error>(searched.error());
  DesignPackages packages;
  if (!output.no_package)
    packages = TW_TRY(DesignPackages::compile(searched->inputs, point.design, output.command));
  std::string page;
  if (searched)
    page = design_page(searched->subject, TW_TRY(layer_mapper(searched->inputs.mapping)),
                       point.point, std::to_string(point.number), packages.list());
  TW_TRY_STATUS(check_interrupt());
  TW_TRY_STATUS(make_folder(folder));
  TW_TRY_STATUS(packages.write(folder));
  TW_TRY_STATUS(
      write_design(point, searched ? &searched->subject.space.file().technology : nullptr, folder));
  for (const DesignPackage& package : packages.list())
    say(package.problem.empty() ? fmt::format("{}/{}: the program", folder, package.file)
                                : fmt::format("no {}: {}", package.file, package.problem));
  if (searched) return write_file(folder + "/report.html", page);
  say(fmt::format("no report.html: {}", searched.error().why));
  return {};
}

}  // namespace tilewright::driver
