#include "tilewright/driver/command_line/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "tilewright/base/names.h"
#include "tilewright/driver/command_line/usage.h"

namespace tilewright::driver {
namespace {

/// An empty value is none: `-o "$OUT"` of a script whose OUT is not set.
CLI::Option* with_text(CLI::Option* option) {
  return option->check(CLI::Validator(
      [option](std::string& text) -> std::string {
        if (text.empty())
          throw Refused{option, [](const std::string& name) {
                          return fmt::format("the value of {} is empty", name);
                        }};
        return {};
      },
      ""));
}

}  // namespace

Option& Option::required(bool is) {
  option_->required(is);
  return *this;
}

Option& Option::one_value() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::only_one() {
  option_->expected(1)->allow_extra_args(false);
  return *this;
}

Option& Option::one_of(std::vector<std::string> words) {
  const std::string list = fmt::format("{}", fmt::join(words, "|"));
  option_->check(CLI::Validator(
      [option = option_, words = std::move(words)](std::string& word) -> std::string {
        if (std::find(words.begin(), words.end(), word) == words.end())
          throw Refused{option,
                        [word](const std::string& name) {
                          return fmt::format("{} takes no '{}'", name, word);
                        },
                        fmt::format("it takes {}", fmt::join(words, ", ")),
                        did_you_mean(word, words)};
        return {};
      },
      list));
  return *this;
}

Option& Option::in_range(double low, double high) {
  option_->check(CLI::Validator(
      [option = option_, low, high](std::string& word) -> std::string {
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size())
          throw Refused{option, [word](const std::string& name) {
                          return fmt::format("{} '{}' is no number", name, word);
                        }};
        if (!(value >= low && value <= high))
          throw Refused{option, [word, low, high](const std::string& name) {
                          return fmt::format("{} {} is not between {} and {}", name, word, low,
                                             high);
                        }};
        return {};
      },
      fmt::format("{}..{}", low, high)));
  return *this;
}

Verb Verb::add_verb(const std::string& name, const std::string& what) {
  return Verb(*app_->add_subcommand(name, what));
}

Option Verb::add_option(const std::string& names, std::string& into, const std::string& what) {
  return Option(*with_text(app_->add_option(names, into, what)));
}
Option Verb::add_option(const std::string& names, std::optional<std::string>& into,
                        const std::string& what) {
  return Option(*with_text(app_->add_option(names, into, what)));
}
Option Verb::add_option(const std::string& names, std::vector<std::string>& into,
                        const std::string& what) {
  return Option(*with_text(app_->add_option(names, into, what)));
}
Option Verb::add_option(const std::string& names, int& into, const std::string& what) {
  return Option(*app_->add_option(names, into, what));
}
Option Verb::add_option(const std::string& names, int64_t& into, const std::string& what) {
  return Option(*app_->add_option(names, into, what));
}
Option Verb::add_option(const std::string& names, uint64_t& into, const std::string& what) {
  CLI::Option* option = app_->add_option(names, into, what);
  option->check(CLI::Validator(
      [option](std::string& word) -> std::string {
        if (word.starts_with("-"))
          throw Refused{option, [word](const std::string& name) {
                          return fmt::format("{} {} is negative", name, word);
                        }};
        return {};
      },
      ""));
  return Option(*option);
}
Option Verb::add_option(const std::string& names, double& into, const std::string& what) {
  return Option(*app_->add_option(names, into, what));
}

void Verb::add_flag(const std::string& names, bool& into, const std::string& what) {
  app_->add_flag(names, into, what);
}

Option Verb::option(const std::string& name) { return Option(*app_->get_option(name)); }

void Verb::needs(const std::string& option, const std::string& other) {
  app_->get_option(option)->needs(app_->get_option(other));
}

void Verb::excludes(const std::string& option, const std::string& other) {
  app_->get_option(option)->excludes(app_->get_option(other));
}

void Verb::needs_action() {
  app_->require_subcommand(1);
  app_->fallthrough();
}

void Verb::hide() { app_->group(""); }

void Verb::callback(std::function<void()> action) { app_->callback(std::move(action)); }

}  // namespace tilewright::driver
