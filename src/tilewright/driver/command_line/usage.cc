#include "tilewright/driver/command_line/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "tilewright/base/names.h"

namespace tilewright::driver {
namespace {

Error usage(std::string what, std::string why = {}, std::string fix = {}) {
  return Error{ErrorKind::Usage, std::move(what), {}, std::move(why), std::move(fix), {}};
}

/// The verb in use and the action below it, outermost first; empty if no verb was recognised.
std::vector<const CLI::App*> path_of(const CLI::App& app) {
  std::vector<const CLI::App*> path;
  for (const CLI::App* scope = &app; !scope->get_subcommands().empty();)
    path.push_back(scope = scope->get_subcommands().front());
  return path;
}

std::string title(const std::vector<const CLI::App*>& path) {
  std::string text;
  for (const CLI::App* app : path) text += (text.empty() ? "" : " ") + app->get_name();
  return text;
}

/// Verbs that people see.
std::vector<std::string> names_below(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  return names;
}

const CLI::Option* find(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options())
    if (!option->get_positional() && option->check_name(name)) return option;
  return nullptr;
}

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

/// `--dim` of `--dim=N`, `-O` of `-O2`.
std::string option_name(const std::string& word) {
  return word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

/// The name by which the option was called: `-O` or `--level`.
std::string typed_name(const CLI::Option& option, const std::vector<std::string>& words) {
  std::string typed = option.get_name();
  for (const std::string& word : words)
    if (is_option(word) && option.check_name(option_name(word))) typed = option_name(word);
  return typed;
}

Error unknown_option(const CLI::App& app, const std::vector<const CLI::App*>& path,
                     const std::string& name) {
  std::vector<std::string> elsewhere, known = long_names(app);
  for (const CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty() && find(*verb, name) != nullptr)
      elsewhere.push_back(verb->get_name());
  for (const CLI::App* scope : path)
    for (std::string& option : long_names(*scope)) known.push_back(std::move(option));
  const std::string near = did_you_mean(name, known);
  return usage(path.empty() ? fmt::format("there is no option '{}'", name)
                            : fmt::format("{} has no option '{}'", title(path), name),
               elsewhere.empty() ? "" : fmt::format("it is for {}", fmt::join(elsewhere, ", ")),
               near.empty() ? "tilewright help" + (path.empty() ? "" : " " + title(path)) : near);
}

/// Words that are no options and no values of options, after the verbs of `path`; the first unknown
/// option, or one without its value, is put into `problem`.
std::vector<std::string> plain_words(const CLI::App& app, const std::vector<const CLI::App*>& path,
                                     const std::vector<std::string>& words,
                                     std::optional<Error>& problem) {
  std::vector<std::string> plain;
  for (size_t i = 0; i < words.size() && !problem; ++i) {
    if (!is_option(words[i])) {
      plain.push_back(words[i]);
      continue;
    }
    const std::string name = option_name(words[i]);
    const CLI::Option* option = find(app, name);
    for (const CLI::App* scope : path)
      if (option == nullptr) option = find(*scope, name);
    if (option == nullptr) {
      problem = unknown_option(app, path, name);
    } else if (option->get_items_expected_max() > 0 && words[i] == name && ++i == words.size()) {
      problem = usage(fmt::format("option '{}' needs a value", name), option->get_description(),
                      fmt::format("tilewright help {}", title(path)));
    }
  }
  return plain;
}

Error no_verb(const CLI::App& app, const std::vector<std::string>& plain) {
  if (plain.empty())
    return usage("no verb is given", "the verbs say what to do", "tilewright help");
  const std::string near = did_you_mean(plain[0], names_below(app));
  return usage(fmt::format("there is no verb '{}'", plain[0]),
               fmt::format("the verbs are {}", fmt::join(names_below(app), ", ")),
               near.empty() ? "tilewright help" : near);
}

Error needs(const std::vector<const CLI::App*>& path, const CLI::Option& option) {
  const std::string what = option.get_description(), help = "tilewright help " + title(path);
  if (!option.get_positional())
    return usage(fmt::format("{} needs {}", title(path), option.get_name()), what, help);
  return usage(fmt::format("{} needs {}", title(path), what.empty() ? option.get_name() : what), {},
               help);
}

/// An option that stands in front of its verb, where only those of all verbs may stand.
std::optional<Error> too_early(const CLI::App& app, const std::vector<const CLI::App*>& path,
                               const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == path.front()->get_name()) break;
    if (const std::string name = option_name(word); is_option(word) && find(app, name) == nullptr)
      return usage(fmt::format("'{}' stands in front of its verb", name),
                   "only --json, --quiet, --verbose and --progress may",
                   fmt::format("tilewright {} {} ...", title(path), name));
  }
  return std::nullopt;
}

/// Something that must be there and is not.
std::optional<Error> missing(const std::vector<const CLI::App*>& path) {
  const CLI::App& scope = *path.back();
  for (const CLI::Option* option : scope.get_options())
    if (option->get_required() && option->count() == 0) return needs(path, *option);
  return std::nullopt;
}

/// An option given twice that takes one value, one without the other that it needs, or two of which
/// one would do nothing.
std::optional<Error> disagreement(const std::vector<const CLI::App*>& scopes,
                                  const std::vector<std::string>& words) {
  for (const CLI::App* scope : scopes)
    for (const CLI::Option* option : scope->get_options()) {
      if (option->count() == 0 || option->get_positional()) continue;
      const std::string name = typed_name(*option, words);
      if (const auto most = static_cast<size_t>(option->get_items_expected_max());
          most > 0 && option->results().size() > most)
        return usage(
            fmt::format("{} is given more than once", name),
            fmt::format("it takes one value, not {}", fmt::join(option->results(), " and ")),
            "leave all but one out");
      for (const CLI::Option* other : option->get_needs())
        if (other->count() == 0)
          return usage(fmt::format("{} does nothing without {}", name, other->get_name()),
                       fmt::format("{}: {}", other->get_name(), other->get_description()),
                       fmt::format("add {}, or leave {} out", other->get_name(), name));
      for (const CLI::Option* other : scope->get_options())
        if (other->count() > 0 && option->get_excludes().contains(const_cast<CLI::Option*>(other)))
          return usage(
              fmt::format("{} and {} exclude each other", name,
                          other->get_positional() ? fmt::format("'{}'", other->results().front())
                                                  : typed_name(*other, words)),
              {}, "leave one of them out");
    }
  return std::nullopt;
}

Error wrong_number(const std::vector<const CLI::App*>& path, const std::string& text,
                   const std::vector<std::string>& words) {
  for (const CLI::App* scope : path)
    for (const CLI::Option* option : scope->get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || text.find(name + " = ") == std::string::npos) continue;
      const bool whole = option->get_type_name().find("FLOAT") == std::string::npos;
      return usage(fmt::format("{} '{}' is no {}", typed_name(*option, words),
                               option->results().back(), whole ? "whole number" : "number"),
                   option->get_description());
    }
  return usage(text);
}

}  // namespace

tl::unexpected<Error> unknown_node(const std::string& node, const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  return fail(ErrorKind::Usage, fmt::format("no kernel is named after node '{}'", node),
              fmt::format("a kernel has the name of its main node: {}{}", fmt::join(shown, ", "),
                          names.size() > kShown ? ", ..." : ""),
              did_you_mean(node, names));
}

Error refusal(const Refused& refused, const std::vector<std::string>& words) {
  return usage(refused.what(typed_name(*refused.option, words)), refused.why, refused.fix);
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& words) {
  const std::vector<const CLI::App*> path = path_of(app);
  std::optional<Error> problem;
  std::vector<std::string> plain = plain_words(app, path, words, problem);
  if (path.empty() && (!problem || !plain.empty())) return no_verb(app, plain);
  if (problem) return *std::move(problem);
  const CLI::App& scope = *path.back();
  plain.erase(plain.begin(),
              plain.begin() + static_cast<std::ptrdiff_t>(std::min(plain.size(), path.size())));
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr)
    return wrong_number(path, error.what(), words);
  if (!names_below(scope).empty()) {
    const std::string near = plain.empty() ? "" : did_you_mean(plain[0], names_below(scope));
    return usage(plain.empty() ? fmt::format("{} needs an action", title(path))
                               : fmt::format("{} has no action '{}'", title(path), plain[0]),
                 fmt::format("the actions are {}", fmt::join(names_below(scope), ", ")), near);
  }
  if (std::optional<Error> early = too_early(app, path, words)) return *std::move(early);
  if (std::optional<Error> absent = missing(path)) return *std::move(absent);
  std::vector<const CLI::App*> scopes = path;
  scopes.insert(scopes.begin(), &app);
  if (std::optional<Error> clash = disagreement(scopes, words)) return *std::move(clash);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !plain.empty())
    return usage(fmt::format("{} does not take '{}'", title(path), plain.back()),
                 "it is one word too many", fmt::format("tilewright help {}", title(path)));
  return usage(error.what(), {}, fmt::format("tilewright help {}", title(path)));
}

}  // namespace tilewright::driver
