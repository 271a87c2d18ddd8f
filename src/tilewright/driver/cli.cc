#include "tilewright/driver/cli.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include "tilewright/base/check.h"
#include "tilewright/base/environment.h"
#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/names.h"
#include "tilewright/base/output_file.h"
#include "tilewright/driver/command_line/help_examples.h"
#include "tilewright/driver/command_line/usage.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/error_report.h"

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
  tell(fmt::format("error: internal error, a bug in tilewright\n  why: {}\n  more: {}\n", what,
                   written ? path : "the reproducer could not be written"));
  return 1;
}

/// What `help` and `--help` print. A stdout that takes nothing is noticed by end_stdout.
void print_help(const std::string& text, bool as_json) {
  nlohmann::ordered_json json = document("help");
  json["text"] = text;
  std::fputs((as_json ? json_text(json, 2) + "\n" : text).c_str(), stdout);
}

/// `help`, `help VERB`: what `--help` prints.
void add_help(CLI::App& app, VerbContext& context) {
  CLI::App* verb =
      app.add_subcommand("help", "Prints the verbs, or the options of one: help compile");
  auto words = std::make_shared<std::vector<std::string>>();
  auto all = std::make_shared<bool>(false);
  verb->add_option("verb", *words, "which verb, and its action");
  verb->add_flag("--all", *all, "the options of every verb");
  verb->callback([&app, &context, words, all] {
    context.action = [&app, &context, words, all]() -> Result<int> {
      const CLI::App* scope = &app;
      std::string above = "tilewright";  // what stands in front of the verb
      for (const std::string& word : *words) {
        const std::vector<const CLI::App*> verbs = scope->get_subcommands({});
        const auto found = std::find_if(verbs.begin(), verbs.end(), [&](const CLI::App* other) {
          return other->get_name() == word;
        });
        std::vector<std::string> names;
        for (const CLI::App* other : verbs)  // hidden verbs are in no group
          if (!other->get_group().empty()) names.push_back(other->get_name());
        if (found == verbs.end())
          return fail(ErrorKind::Usage, fmt::format("there is no verb '{}'", word),
                      fmt::format("the verbs are {}", fmt::join(names, ", ")),
                      did_you_mean(word, names));
        if (scope != &app) above += " " + scope->get_name();
        scope = *found;
      }
      // App::help would print that of the verb in use, which is this one.
      std::string text = scope == &app
                             ? app.get_formatter()->make_help(&app, "", CLI::AppFormatMode::Normal)
                             : scope->help(above);
      if (scope != &app) above += " " + scope->get_name();
      if (*all)
        for (const CLI::App* other : scope->get_subcommands({}))
          if (!other->get_group().empty()) text += "\n" + other->help(above);
      print_help(text, context.json);
      return 0;
    };
  });
}

void add_version(Verb app, VerbContext& context) {
  Verb verb = app.add_verb("version", "Prints the program's version");
  verb.callback([&context] {
    context.action = [&context]() -> Result<int> {
      nlohmann::ordered_json json = document("version");
      json["tilewright"] = kVersion;
      context.json ? print_json(json) : fmt::print("tilewright {}\n", kVersion);
      return 0;
    };
  });
}

/// An option takes one value each time it is given, so that it does not swallow the model's name.
void take_single_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_positional()) option->allow_extra_args(false);
  for (CLI::App* verb : app.get_subcommands({})) take_single_values(*verb);
}

/// The options of all verbs, and the verbs.
void add_all(CLI::App& app, VerbContext& context) {
  app.get_formatter()->label("SUBCOMMAND", "VERB");
  app.set_version_flag("--version", std::string("tilewright ") + kVersion);
  app.add_flag("-q,--quiet", console().quiet, "no messages, only data and errors");
  app.add_flag("-v,--verbose", console().verbose, "more detail on stderr");
  app.add_flag("--json", context.json, "one JSON document on stdout");
  Verb(app)
      .add_option("--progress", console().progress, "auto, plain or none")
      .one_of({"auto", "plain", "none"});
  Verb(app).excludes("--quiet", "--verbose");
  app.require_subcommand(1);
  app.fallthrough();
  for (const auto add :
       {add_doctor,     add_devices, add_targets,  add_calibrate, add_zoo,    add_check,
        add_compile,    add_run,     add_bench,    add_verify,    add_tune,   add_records,
        add_inspect,    add_explain, add_opt,      add_hw,        add_sim,    add_rtl,
        add_hls,        add_synth,   add_codesign, add_fleet,     add_worker, add_measure_child,
        add_run_folder, add_probe})
    add(Verb(app), context);
  add_help(app, context);
  add_version(Verb(app), context);
  for (CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty()) verb->group("Verbs");
  add_examples(app);
  take_single_values(app);
}

std::vector<std::string> names_in_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    names.push_back(std::string(*entry).substr(0, std::string_view(*entry).find('=')));
  return names;
}

int act(const VerbContext& context) {
  console().json = context.json;
  try {
    const Result<int> result = context.action();
    if (result) return end_stdout(*result);
    if (std::ferror(stdout) != 0) return end_stdout(exit_code(ErrorKind::Io));
    return report_error(result.error(), context.json);
  } catch (const InternalError& error) {
    return report_bug(context.command, error.what());
  } catch (const std::bad_alloc&) {
    return report_error(Error{ErrorKind::Limit,
                              "out of memory",
                              {},
                              {},
                              "a smaller batch or --size, or more memory",
                              {}},
                        context.json);
  } catch (const std::system_error& error) {
    // How fmt::print says that stdout does not take what it is given.
    if (std::ferror(stdout) == 0) return report_bug(context.command, error.what());
    return end_stdout(exit_code(ErrorKind::Io));
  } catch (const std::exception& error) {
    return report_bug(context.command, error.what());
  }
}

}  // namespace

int run_cli(int argc, char** argv) {
  open_standard_streams();
  install_interrupt_handler();
  CLI::App app(
      "Tilewright compiles tensor programs to fast code.\n\n"
      "  tilewright zoo resnet18 -o resnet18.onnx\n"
      "  tilewright compile resnet18.onnx -o resnet18.twm\n"
      "  tilewright verify resnet18.onnx --against ort\n"
      "  tilewright bench resnet18.onnx --against ort --threads 2\n",
      "tilewright");
  VerbContext context;
  context.command = joined(argc, argv);
  add_all(app, context);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool as_json = std::find(words.begin(), words.end(), "--json") != words.end();
  try {
    if (words.empty()) throw CLI::CallForHelp();
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    const int code = app.exit(success, text, text);
    print_help(text.str(), as_json && success.get_name() != "CallForVersion");
    return end_stdout(code);
  } catch (const CLI::ParseError& error) {
    return report_error(usage_error(app, error, words), as_json);
  } catch (const Refused& refused) {
    return report_error(refusal(refused, words), as_json);
  }
  if (const Status sound = check_environment(); !sound)
    return report_error(sound.error(), context.json);
  for (const auto& [name, meant] : misspelt_variables(names_in_environment()))
    say(fmt::format("warning: the environment sets {}, which nothing reads: did you mean {}?", name,
                    meant));
  return act(context);
}

nlohmann::ordered_json document(const std::string& verb) {
  nlohmann::ordered_json json;
  json["schema"] = "tilewright." + verb;
  json["version"] = 1;
  return json;
}

void print_json(const nlohmann::ordered_json& json) { fmt::print("{}\n", json_text(json, 2)); }

Status check_outputs(const Outputs& outputs, const std::vector<std::string>& inputs, bool as_json) {
  for (size_t i = 0; i < outputs.files.size(); ++i) {
    const std::string& file = outputs.files[i];
    if (file.empty()) continue;
    TW_TRY_STATUS(check_output(file, inputs));
    for (size_t j = 0; j < i; ++j)
      if (outputs.files[j] == file)
        return fail(ErrorKind::Usage, fmt::format("two options write '{}'", file), {},
                    "give each a file of its own");
    if (file == "-" && as_json)
      return fail(ErrorKind::Usage, "stdout cannot hold a file and a JSON document", {},
                  "name a file, or leave --json out");
  }
  for (const std::string& folder : outputs.folders) TW_TRY_STATUS(check_output_folder(folder));
  return {};
}

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
