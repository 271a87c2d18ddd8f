#include "tilewright/driver/cli.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "tilewright/base/check.h"
#include "tilewright/base/file.h"
#include "tilewright/base/names.h"
#include "tilewright/driver/console.h"

namespace tilewright::driver {
namespace {

constexpr const char* kVersion = "0.1.0";

std::string joined(int argc, char** argv) {
  std::string text = "tilewright";
  for (int i = 1; i < argc; ++i) text += std::string(" ") + argv[i];
  return text;
}

/// Bugs end here: the message, and a file that says how to see it again.
int report_bug(const std::string& command, const std::string& what) {
  const std::string path = "tilewright-bug.txt";
  const std::string text = fmt::format("version {}\ncommand {}\n{}\n", kVersion, command, what);
  const bool written = write_file(path, text).has_value();
  fmt::print(stderr, "error: internal error, a bug in tilewright\n  why: {}\n  more: {}\n", what,
             written ? path : "the reproducer could not be written");
  return 1;
}

/// CLI11's own texts lack a suggestion for a mistyped option or verb: this adds the nearest.
std::string suggestion(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> verbs, options;
  const CLI::App* scope = &app;
  for (const CLI::App* verb : app.get_subcommands({})) {
    verbs.push_back(verb->get_name());
    if (verb->parsed()) scope = verb;
  }
  for (const CLI::App* place : {&app, scope})
    for (const CLI::Option* option : place->get_options())
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word = word.substr(0, word.find('='));
    const bool is_verb = i == 1 && !word.starts_with("-");
    if (!is_verb && !word.starts_with("--")) continue;
    const std::vector<std::string>& known = is_verb ? verbs : options;
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    return fmt::format("  fix: did you mean '{}'?\n", nearest(word, known));
  }
  return "";
}

int act(const Context& context) {
  try {
    const Result<int> result = context.action();
    if (result) return *result;
    fmt::print(stderr, "{}", to_string(result.error()));
    return exit_code(result.error().kind);
  } catch (const InternalError& error) {
    return report_bug(context.command, error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n  fix: a smaller batch or --size, or more memory\n");
    return 9;
  } catch (const std::exception& error) {
    return report_bug(context.command, error.what());
  }
}

}  // namespace

int run_cli(int argc, char** argv) {
  install_interrupt_handler();
  CLI::App app(
      "Tilewright compiles tensor programs to fast code.\n\n"
      "  tilewright zoo resnet18 -o resnet18.onnx\n"
      "  tilewright compile resnet18.onnx -o resnet18.twm\n"
      "  tilewright verify resnet18.onnx --against ort\n"
      "  tilewright bench resnet18.onnx --against ort --threads 2\n",
      "tilewright");
  Context context;
  context.command = joined(argc, argv);
  app.set_version_flag("--version", std::string("tilewright ") + kVersion);
  app.add_flag("-q,--quiet", console().quiet, "no messages, only data and errors");
  app.add_flag("-v,--verbose", console().verbose, "more detail on stderr");
  app.add_flag("--json", context.json, "one JSON document on stdout");
  app.add_option("--progress", console().progress, "auto, plain or none")
      ->check(CLI::IsMember({"auto", "plain", "none"}));
  app.require_subcommand(1);
  app.fallthrough();
  for (auto add :
       {add_doctor, add_devices, add_targets, add_calibrate, add_zoo,     add_check,   add_compile,
        add_run,    add_bench,   add_verify,  add_tune,      add_records, add_inspect, add_explain,
        add_opt,    add_hw,      add_sim,     add_rtl,       add_synth,   add_worker})
    add(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string first = argc > 1 ? argv[1] : "";
    const bool unknown_verb =
        !first.empty() && !first.starts_with("-") && app.get_subcommands().empty();
    const std::string what =
        unknown_verb ? fmt::format("there is no verb '{}'", first) : error.what();
    fmt::print(stderr, "error: {}\n{}  more: tilewright --help\n", what,
               suggestion(app, argc, argv));
    return 2;
  }
  return act(context);
}

nlohmann::ordered_json document(const std::string& verb) {
  nlohmann::ordered_json json;
  json["schema"] = "tilewright." + verb;
  json["version"] = 1;
  return json;
}

void print_json(const nlohmann::ordered_json& json) { fmt::print("{}\n", json.dump(2)); }

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i)
      line += fmt::format("{:<{}}  ", rows[r][i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 0) text += std::string(line.size(), '-') + "\n";
  }
  return text;
}

}  // namespace tilewright::driver
