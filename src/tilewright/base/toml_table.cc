#include "tilewright/base/toml_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "tilewright/base/names.h"

namespace tilewright {
namespace {

struct TomlSurprise {};

bool surprises(std::string_view text) {
  try {
    (void)toml::parse(text);
    return false;
  } catch (const TomlSurprise&) {
    return true;
  }
}

/// The first line with which `text`, which surprises the parser, does so.
int64_t surprising_line(std::string_view text) {
  int64_t line = 1;
  for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', end + 1), ++line)
    if (surprises(text.substr(0, end + 1))) break;
  return line;
}

}  // namespace

void surprise_toml() { throw TomlSurprise(); }

Result<toml::table> parse_toml(std::string_view text, const std::string& place,
                               const std::string& fix) {
  const auto refused = [&](int64_t line, int64_t column, std::string_view why) {
    return tl::unexpected<Error>(Error{ErrorKind::Parse,
                                       "this is no TOML file",
                                       fmt::format("{}:{}:{}", place, line, column),
                                       std::string(why),
                                       fix,
                                       {}});
  };
  try {
    toml::parse_result parsed = toml::parse(text, place);
    if (parsed) return std::move(parsed).table();
    const toml::source_position at = parsed.error().source().begin;
    return refused(at.line, at.column, parsed.error().description());
  } catch (const TomlSurprise&) {
    return refused(surprising_line(text), 1, "a name is missing or not written as one");
  }
}

void TomlProblems::add(std::string what, std::string fix, const toml::node* node) {
  std::string place = place_;
  if (node != nullptr && node->source().begin.line > 0)
    place += fmt::format(":{}:{}", node->source().begin.line, node->source().begin.column);
  errors_.push_back(Error{ErrorKind::Parse, std::move(what), place, {}, std::move(fix), {}});
}

Status TomlProblems::status() {
  if (errors_.empty()) return {};
  Error first = std::move(errors_.front());
  first.others.assign(std::make_move_iterator(errors_.begin() + 1),
                      std::make_move_iterator(errors_.end()));
  errors_.clear();
  return tl::unexpected<Error>(std::move(first));
}

const toml::node* TomlTable::find(std::string_view key) const {
  const auto found = table_.find(key);
  return found == table_.end() ? nullptr : &found->second;
}

const toml::node* TomlTable::known(std::string_view key) {
  known_.emplace_back(key);
  return find(key);
}

void TomlTable::problem(std::string_view key, std::string what, std::string fix) {
  problems_.add(std::move(what), std::move(fix), find(key));
}

void TomlTable::add_type(std::string_view key, std::string_view what, const toml::node* node) {
  problems_.add(fmt::format("`{}{}` must be {}", prefix_, key, what), {}, node);
}

void TomlTable::add_range(std::string_view key, const std::string& value, const std::string& range,
                          const toml::node* node) {
  problems_.add(fmt::format("`{}{}` is {}, but must be in {}", prefix_, key, value, range), {},
                node);
}

bool TomlTable::read_text(std::string_view key, std::string& into) {
  const toml::node* node = known(key);
  if (node == nullptr) return true;
  const auto value = node->value_exact<std::string>();
  if (value)
    into = *value;
  else
    add_type(key, "a text in quotes", node);
  return value.has_value();
}

void TomlTable::read_texts(std::string_view key, std::vector<std::string>& into) {
  const toml::node* node = known(key);
  if (node == nullptr) return;
  if (!node->is_array()) return add_type(key, "a list of texts in quotes", node);
  into.clear();
  for (const toml::node& entry : *node->as_array())
    if (const auto value = entry.value_exact<std::string>())
      into.push_back(*value);
    else
      add_type(key, "a list of texts in quotes", &entry);
}

void TomlTable::read_flag(std::string_view key, bool& into) {
  const toml::node* node = known(key);
  if (node == nullptr) return;
  if (const auto value = node->value_exact<bool>())
    into = *value;
  else
    add_type(key, "true or false", node);
}

void TomlTable::read_number(std::string_view key, double& into) {
  const toml::node* node = known(key);
  if (node == nullptr) return;
  if (const auto value = node->value<double>())  // whole numbers are numbers, too
    into = *value;
  else
    add_type(key, "a number", node);
}

void TomlTable::read_number(std::string_view key, double& into, double low, double high) {
  double value = into;
  read_number(key, value);
  if (value >= low && value <= high)
    into = value;
  else  // not a number is outside of every range
    add_range(key, fmt::to_string(value), fmt::format("{}..{}", low, high), find(key));
}

const toml::node* TomlTable::integer(std::string_view key, int64_t& value) {
  const toml::node* node = known(key);
  if (node == nullptr) return nullptr;
  if (node->is_integer()) {
    value = node->value_or(value);
    return node;
  }
  add_type(key, "an integer", node);
  return nullptr;
}

void TomlTable::read_integer(std::string_view key, int& into) {
  int64_t value = into;
  const toml::node* node = integer(key, value);
  if (node == nullptr) return;
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    problems_.add(fmt::format("`{}{}` = {} is too large", prefix_, key, value), {}, node);
  else
    into = static_cast<int>(value);
}

const toml::table* TomlTable::subtable(std::string_view key) {
  const toml::node* node = known(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) problems_.add(fmt::format("`{}` must be a table", key), {}, node);
  return node->as_table();
}

std::vector<const toml::table*> TomlTable::subtables(std::string_view key) {
  std::vector<const toml::table*> tables;
  const toml::node* node = known(key);
  if (node == nullptr) return tables;
  if (!node->is_array_of_tables()) {
    problems_.add(fmt::format("`{0}` must be tables, as in [[{0}]]", key), {}, node);
    return tables;
  }
  for (const toml::node& entry : *node->as_array()) tables.push_back(entry.as_table());
  return tables;
}

void TomlTable::finish() {
  for (const auto& [key, node] : table_) {
    const std::string text(key.str());
    if (std::find(known_.begin(), known_.end(), text) != known_.end()) continue;
    const std::string near = did_you_mean(text, known_);
    problems_.add(
        fmt::format("unknown key `{}{}`", prefix_, text),
        near.empty() ? fmt::format("the keys here are {}", fmt::join(known_, ", ")) : near, &node);
  }
}

}  // namespace tilewright
