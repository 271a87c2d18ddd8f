// TOML files whose problems are all reported at once, each with its line. The library's header is
// large: for sources that read such files only. Its parser is compiled once, in toml_table.cc.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {
/// Some texts, `[[[`, break rules of the library's parser itself, which would end the program.
/// Throws what parse_toml catches.
[[noreturn]] void surprise_toml();
}  // namespace tilewright

#define TOML_HEADER_ONLY 0
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(condition) ((condition) ? void() : ::tilewright::surprise_toml())
#include <toml++/toml.h>

namespace tilewright {

/// `fix`: where to see what such a file looks like. errors: Parse, with the place where `text`
/// stops to be TOML.
Result<toml::table> parse_toml(std::string_view text, const std::string& place,
                               const std::string& fix);

/// Problems of one text, gathered into one Error.
class TomlProblems {
 public:
  explicit TomlProblems(std::string place) : place_(std::move(place)) {}
  /// `node`: what it is about; null: the whole text.
  void add(std::string what, std::string fix = {}, const toml::node* node = nullptr);
  size_t count() const { return errors_.size(); }
  /// errors: Parse, with all that were added, in their order.
  Status status();

 private:
  std::string place_;
  std::vector<Error> errors_;
};

/// Whether a text has no line ends or other control characters, with which names do not print back.
bool is_one_line(std::string_view text);

/// One table of a file: its entries go into members, which keep their values where there is no such
/// entry, or are problems.
class TomlTable {
 public:
  /// `prefix`: of its keys in messages: `timing.`
  TomlTable(const toml::table& table, std::string prefix, TomlProblems& problems)
      : table_(table), prefix_(std::move(prefix)), problems_(problems) {}

  /// Whether a file is of this kind, as its entry `kind` says. To be asked first: of another kind
  /// of file all other keys would be unknown. errors: Parse (another kind; none where it is
  /// `needed`).
  Status check_kind(std::string_view kind, bool needed, const std::string& fix);
  /// False where the entry is no text of one line.
  bool read_text(std::string_view key, std::string& into);
  void read_texts(std::string_view key, std::vector<std::string>& into);
  void read_flag(std::string_view key, bool& into);
  void read_number(std::string_view key, double& into);
  void read_integer(std::string_view key, int& into);
  /// Numbers outside of `low` to `high` are problems.
  void read_number(std::string_view key, double& into, double low, double high);
  template <class Integer>
  void read_integer(std::string_view key, Integer& into, int64_t low, int64_t high) {
    int64_t value = into;
    const toml::node* node = integer(key, value);
    if (node == nullptr) return;
    if (value < low || value > high)
      add_range(key, fmt::to_string(value), fmt::format("{}..{}", low, high), node);
    else
      into = static_cast<Integer>(value);
  }
  /// The table at `key`; null if there is none.
  const toml::table* subtable(std::string_view key);
  /// Those of `[[key]]`.
  std::vector<const toml::table*> subtables(std::string_view key);
  /// Everything not read by now is unknown.
  void finish();

  const toml::node* find(std::string_view key) const;
  /// A problem with the value of `key`, or with what is missing.
  void problem(std::string_view key, std::string what, std::string fix = {});

 private:
  const toml::node* known(std::string_view key);
  const toml::node* integer(std::string_view key, int64_t& value);
  void add_range(std::string_view key, const std::string& value, const std::string& range,
                 const toml::node* node);
  void add_type(std::string_view key, std::string_view what, const toml::node* node);

  const toml::table& table_;
  std::string prefix_;
  TomlProblems& problems_;
  std::vector<std::string> known_;
};

}  // namespace tilewright
