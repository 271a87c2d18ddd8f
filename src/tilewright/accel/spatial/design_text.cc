// Designs as TOML.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <sstream>

#include "tilewright/accel/spatial/design_keys.h"
#include "tilewright/accel/spatial/needs.h"
#include "tilewright/base/names.h"
#include "tilewright/base/toml_table.h"

namespace tilewright::spatial {
namespace {

constexpr const char* kExample = "hw/spatial.toml shows what a design looks like";

void read_word(const Words& words, const Key& key, TomlTable& table, Design& into) {
  std::string text(words.words[static_cast<size_t>(words.get(into))]);
  if (!table.read_text(key.name, text)) return;
  const std::vector<std::string> known(words.words.begin(), words.words.end());
  for (size_t w = 0; w < known.size(); ++w)
    if (known[w] == text) return words.set(into, static_cast<int>(w));
  std::string fix = did_you_mean(text, known);
  if (fix.empty()) fix = fmt::format("it is one of {}", fmt::join(known, ", "));
  table.problem(key.name, fmt::format("`{}` cannot be `{}`", key.path(), text), fix);
}

void read_key(const Key& key, TomlTable& table, Design& into) {
  if (const auto* number = std::get_if<Key::Int>(&key.value))
    table.read_integer(key.name, (*number)(into));
  else if (const auto* real = std::get_if<Key::Double>(&key.value))
    table.read_number(key.name, (*real)(into));
  else
    read_word(std::get<Words>(key.value), key, table, into);
}

std::string place_of(const toml::table& top, const Key& key, const std::string& place) {
  const toml::table* table = key.table.empty() ? &top : top[key.table].as_table();
  const toml::node* node = table == nullptr ? nullptr : table->get(key.name);
  if (node == nullptr) return place;
  const toml::source_position at = node->source().begin;
  return fmt::format("{}:{}:{}", place, at.line, at.column);
}

/// What is wrong with the values that could be read.
std::vector<Error> value_errors(const Design& design, const toml::table& top,
                                const std::string& place) {
  std::vector<Error> errors;
  for (Problem& problem : placed_problems(design)) {
    Error error{ErrorKind::Invalid, std::move(problem.what), place, {}, {}, {}};
    for (const Key& key : design_keys())
      if (key.path() == problem.key) error.place = place_of(top, key, place);
    errors.push_back(std::move(error));
  }
  return errors;
}

std::string value_text(const Key& key, const Design& design) {
  if (const auto* words = std::get_if<Words>(&key.value))
    return fmt::format("\"{}\"", words->words[static_cast<size_t>(words->get(design))]);
  if (key.whole()) return fmt::format("{}", static_cast<int>(key.get(design)));
  return fmt::format("{:#}", key.get(design));
}

}  // namespace

Result<Design> read_design(std::string_view text, const std::string& place) {
  const toml::table top = TW_TRY(parse_toml(text, place, kExample));
  TomlProblems problems(place);
  TomlTable table(top, "", problems);
  TW_TRY_STATUS(table.check_kind("spatial", true, kExample));
  Design design;
  table.read_text("name", design.name);
  static const toml::table kNothing;
  std::map<std::string_view, TomlTable> tables;
  for (const std::string_view inner : {"timing", "host"}) {
    const toml::table* found = table.subtable(inner);
    tables.emplace(
        inner, TomlTable(found == nullptr ? kNothing : *found, std::string(inner) + ".", problems));
  }
  for (const Key& key : design_keys())
    read_key(key, key.table.empty() ? table : tables.at(key.table), design);
  if (!top.contains("links")) design.links = usual_links(design.unit);
  table.finish();
  for (auto& [inner, its] : tables) its.finish();

  std::vector<Error> errors = value_errors(design, top, place);
  Status read = problems.status();
  if (read && errors.empty()) return design;
  Error first = read ? std::move(errors.front()) : std::move(read.error());
  first.others.insert(first.others.end(), std::make_move_iterator(errors.begin() + (read ? 1 : 0)),
                      std::make_move_iterator(errors.end()));
  return tl::unexpected<Error>(std::move(first));
}

std::string to_toml(const Design& design) {
  std::ostringstream name;  // names may hold any characters: the library quotes them
  name << toml::table{{"name", design.name}};
  std::string text = "kind = \"spatial\"\n" + name.str() + "\n";
  std::string_view table;
  for (const Key& key : design_keys()) {
    if (key.table != table) text += fmt::format("\n[{}]\n", key.table);
    table = key.table;
    text += fmt::format("{} = {}\n", key.name, value_text(key, design));
  }
  return text;
}

}  // namespace tilewright::spatial
