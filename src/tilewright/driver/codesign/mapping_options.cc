#include "tilewright/driver/codesign/mapping_options.h"

#include <fmt/format.h>

#include "tilewright/base/check.h"

namespace tilewright::driver {

void add_mapping_options(Verb verb, tune::MappingSearch& search) {
  std::vector<std::string> names;
  for (const tune::MappingMethod& method : tune::mapping_methods()) names.emplace_back(method.name);
  verb.add_option("--mapper", search.method, "how layers are mapped (default ours)").one_of(names);
  verb.add_option("--mapper-trials", search.trials,
                  "mappings of a layer that other mappers try (default 500)")
      .in_range(1, 1e6);
  verb.needs("--mapper-trials", "--mapper");
  verb.add_option("--choices", search.choices, "of loops for the unit (default all)")
      .one_of({"all", "one"});
}

bool is_plain(const tune::MappingSearch& search) {
  return search.method == "ours" && search.choices == "all";
}

std::string describe(const tune::MappingSearch& search) {
  std::string text = search.method;
  if (search.method != "ours")
    text += fmt::format(", {} trials, seed {}", search.trials, search.seed);
  return text + (search.choices == "all" ? "" : ", one choice");
}

Result<codesign::LayerMapper> layer_mapper(const tune::MappingSearch& search) {
  if (is_plain(search)) return codesign::LayerMapper();
  // What may fail does so here, once, on a layer that takes no time.
  tune::MappingSearch trial = search;
  trial.trials = 1;
  TW_TRY(tune::find_mapping({}, cost::matmul(1, 1, 1), trial));
  return [search](const spatial::Design& design, const cost::SpatialLayer& layer) {
    const auto found = tune::find_mapping(design, layer, search);
    TW_CHECK(found.has_value(), "a mapper fails on some layers: {}", found.error().what);
    return *found;
  };
}

}  // namespace tilewright::driver
