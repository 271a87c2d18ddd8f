// The `tilewright` command line: one function per verb adds its options and its action.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "tilewright/base/result.h"
#include "tilewright/driver/command_line/options.h"

namespace tilewright::driver {

/// What verbs share. `action` is set by the verb the user chose; it returns the exit code.
struct VerbContext {
  bool json = false;
  std::string command;  ///< as typed, for manifests
  std::function<Result<int>()> action;
};

/// Runs the program; never throws. Returns the exit code of docs/cli.md.
int run_cli(int argc, char** argv);

// The verbs, in the order of `--help`.
void add_doctor(Verb app, VerbContext& context);
void add_devices(Verb app, VerbContext& context);
void add_targets(Verb app, VerbContext& context);
void add_calibrate(Verb app, VerbContext& context);
void add_zoo(Verb app, VerbContext& context);
void add_check(Verb app, VerbContext& context);
void add_compile(Verb app, VerbContext& context);
void add_run(Verb app, VerbContext& context);
void add_bench(Verb app, VerbContext& context);
void add_verify(Verb app, VerbContext& context);
void add_tune(Verb app, VerbContext& context);
void add_records(Verb app, VerbContext& context);
void add_inspect(Verb app, VerbContext& context);
void add_explain(Verb app, VerbContext& context);
void add_opt(Verb app, VerbContext& context);
void add_hw(Verb app, VerbContext& context);
void add_sim(Verb app, VerbContext& context);
void add_rtl(Verb app, VerbContext& context);
void add_hls(Verb app, VerbContext& context);
void add_synth(Verb app, VerbContext& context);
void add_codesign(Verb app, VerbContext& context);
void add_fleet(Verb app, VerbContext& context);
void add_worker(Verb app, VerbContext& context);
void add_measure_child(Verb app, VerbContext& context);
void add_run_folder(Verb app, VerbContext& context);
void add_probe(Verb app, VerbContext& context);

/// A JSON document of one verb: schema name and version first.
nlohmann::ordered_json document(const std::string& verb);
/// Prints it to stdout.
void print_json(const nlohmann::ordered_json& json);

/// Options that name files or folders to write, checked before a verb's work begins.
struct Outputs {
  std::vector<std::string> files, folders;  ///< empty ones are none
};
/// `inputs` are the files that the verb reads. errors: as check_output; Usage (two outputs are one,
/// or stdout is to hold a file and, with --json, a document).
Status check_outputs(const Outputs& outputs, const std::vector<std::string>& inputs, bool as_json);

/// Rows of text in aligned columns, the first row underlined as a heading.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tilewright::driver
