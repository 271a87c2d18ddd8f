// A verb's options and what it does. The library that parses command lines (CLI11) is known to
// options.cc, usage.cc and cli.cc only: its headers cost a compiler four seconds.
//
// Example: `Verb verb = app.add_verb("zoo", "..."); verb.add_option("--size", size,
// "...").in_range(1, 99);`
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tilewright::driver {

/// One option of a verb: what it may be.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  Option& required(bool is = true);
  /// Given several times, it takes one value each time.
  Option& one_value();
  /// One value in all.
  Option& only_one();
  /// Accepts these words only.
  Option& one_of(std::vector<std::string> words);
  /// Accepts numbers from `low` to `high`.
  Option& in_range(double low, double high);

 private:
  CLI::Option* option_;
};

/// A verb, an action of one, or the program itself. What options are read into must live until the
/// command line is parsed.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}

  Verb add_verb(const std::string& name, const std::string& what);
  /// `names`: "-o,--output", or a word: one without dashes, told by its place.
  Option add_option(const std::string& names, std::string& into, const std::string& what = {});
  Option add_option(const std::string& names, std::optional<std::string>& into,
                    const std::string& what);
  Option add_option(const std::string& names, std::vector<std::string>& into,
                    const std::string& what = {});
  Option add_option(const std::string& names, int& into, const std::string& what);
  Option add_option(const std::string& names, int64_t& into, const std::string& what);
  Option add_option(const std::string& names, uint64_t& into, const std::string& what);
  Option add_option(const std::string& names, double& into, const std::string& what);
  /// An option without a value.
  void add_flag(const std::string& names, bool& into, const std::string& what);
  /// One that was added before.
  Option option(const std::string& name);
  /// `option` does something only beside `other`: alone it is refused.
  void needs(const std::string& option, const std::string& other);
  /// One of the two would do nothing beside the other: both together are refused.
  void excludes(const std::string& option, const std::string& other);
  /// It needs one of its actions, which know its options.
  void needs_action();
  /// Not in the list of verbs.
  void hide();
  /// What is called when the user chose this verb.
  void callback(std::function<void()> action);

 private:
  CLI::App* app_;
};

}  // namespace tilewright::driver
