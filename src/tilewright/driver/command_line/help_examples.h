// Commands that `tilewright VERB --help` shows: each runs as it stands on the files that
// docs/recipes.md makes, in the order of this table (tests/e2e/docs.sh does).
#pragma once

namespace CLI {
class App;
}

namespace tilewright::driver {

/// Gives each verb of `app` its examples. A verb that people do not call (`worker`) has none.
void add_examples(CLI::App& app);

}  // namespace tilewright::driver
