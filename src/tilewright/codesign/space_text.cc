// Spaces as TOML.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "codesign_builtin_files.h"
#include "tilewright/base/is_path.h"
#include "tilewright/base/names.h"
#include "tilewright/codesign/space.h"

namespace tilewright::codesign {
namespace {

constexpr FileKind kSpace = {"space", "spaces", "spaces/edge.toml shows what a space looks like"};
constexpr const char* kParameterForms =
    "a list of choices, as in [8, 16], or a range, as in { from = 1, to = 8 }";
constexpr size_t kMostValues = 4096;
/// Points looked at for one that is legal; a space of more is taken to have some.
constexpr int64_t kMostPoints = 1 << 20;

class SpaceReader {
 public:
  SpaceReader(const toml::table& top, std::string place)
      : place_(std::move(place)), problems_(place_), table_(top, "", problems_) {}

  Result<DesignSpace> read() {
    read_head();
    read_rule_texts();
    const toml::table* parameters = table_.subtable("parameters");
    const toml::table* fixed = table_.subtable("fixed");
    const toml::table* limits = table_.subtable("limits");
    table_.finish();
    start_values();
    fixed_ = fixed;
    if (fixed != nullptr) read_keys(*fixed, "", &SpaceReader::read_fixed);
    if (parameters != nullptr) read_keys(*parameters, "", &SpaceReader::read_parameter);
    check_required();
    check_parents();
    read_computed();
    read_rules();
    if (limits != nullptr) read_limits(*limits);
    std::sort(file_.parameters.begin(), file_.parameters.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    TW_TRY_STATUS(status());
    DesignSpace space(std::move(file_));
    check_points(space);
    TW_TRY_STATUS(status());
    return space;
  }

 private:
  struct Text {
    std::string text;
    const toml::node* node;
    int key = -1;  ///< of what is computed
  };
  using ReadKey = void (SpaceReader::*)(int key, const toml::node& node);
  const std::vector<SpaceKey>& keys() const { return file_.generator->keys(); }
  const SpaceKey& key_at(int key) const { return keys()[static_cast<size_t>(key)]; }

  // --- Problems ---

  std::string place_of(const toml::node& node, size_t offset = 0) const {
    const toml::source_region& at = node.source();
    return fmt::format("{}:{}:{}", place_, at.begin.line, at.begin.column + offset);
  }
  /// Where something could stand that is missing: below the head of a table, or at the top.
  std::string place_of_missing(const toml::table* table = nullptr) const {
    return table == nullptr ? place_ + ":1:1" : place_of(*table);
  }
  void add(std::string place, std::string what, std::string fix = {}) {
    errors_.push_back(
        {ErrorKind::Parse, std::move(what), std::move(place), {}, std::move(fix), {}});
  }
  void add(const toml::node& node, std::string what, std::string fix = {}) {
    add(place_of(node), std::move(what), std::move(fix));
  }
  /// A mistake within a text in quotes; one of several lines is pointed at as a whole.
  void add(const Text& text, const RuleError& error) {
    const toml::source_region& at = text.node->source();
    const bool plain =
        at.begin.line == at.end.line && at.begin.column + text.text.size() + 2 == at.end.column;
    add(place_of(*text.node, plain ? error.offset + 1 : 0), error.what, error.fix);
  }
  static void flatten(Error error, std::vector<Error>& all) {
    std::vector<Error> others = std::exchange(error.others, {});
    all.push_back(std::move(error));
    for (Error& other : others) flatten(std::move(other), all);
  }
  Status status() {
    std::vector<Error> all;
    if (Status read = problems_.status(); !read) flatten(std::move(read.error()), all);
    for (Error& error : errors_) flatten(std::move(error), all);
    errors_.clear();
    if (all.empty()) return {};
    Error first = std::move(all.front());
    first.others.assign(std::make_move_iterator(all.begin() + 1),
                        std::make_move_iterator(all.end()));
    return tl::unexpected<Error>(std::move(first));
  }

  // --- The top ---

  void read_head() {
    std::string generator(file_.generator->name()), technology;
    read_file_head(table_, kSpace, file_.name, file_.about);
    if (table_.read_text("generator", generator)) {
      std::vector<std::string> known;
      const Generator* found = nullptr;
      for (const Generator* one : generators()) {
        known.emplace_back(one->name());
        if (one->name() == generator) found = one;
      }
      if (found == nullptr)
        table_.problem("generator", fmt::format("there is no generator `{}`", generator),
                       near_or_list(generator, known));
      else
        file_.generator = found;
    }
    if (table_.read_text("technology", technology)) read_technology_name(technology);
  }

  void read_technology_name(std::string name) {
    if (name.empty())
      return add(place_of_missing(), "a space needs a `technology`",
                 near_or_list(name, builtin_technologies()));
    const bool is_file = is_path(name);
    if (const size_t slash = place_.rfind('/');
        is_file && !name.starts_with('/') && slash != place_.npos)
      name = place_.substr(0, slash + 1) + name;  // beside the space's own file
    Result<Technology> read = load_technology(name);
    if (read)
      file_.technology = std::move(*read);
    else if (is_file && read.error().kind == ErrorKind::Parse)
      errors_.push_back(std::move(read.error()));
    else
      table_.problem("technology", read.error().what, read.error().fix);
  }

  void read_rule_texts() {
    std::vector<std::string> texts;
    table_.read_texts("rules", texts);
    const toml::node* node = table_.find("rules");
    if (node == nullptr || !node->is_array()) return;
    for (const toml::node& entry : *node->as_array())
      if (const auto text = entry.value_exact<std::string>())
        rule_texts_.push_back({*text, &entry});
  }

  void start_values() {
    file_.fixed = file_.generator->defaults();
    file_.given.assign(keys().size(), false);
    first_.assign(keys().size(), nullptr);
  }

  // --- Keys ---

  /// Keys of a table, and of tables in it: `timing.read_latency`.
  void read_keys(const toml::table& table, const std::string& prefix, ReadKey how) {
    for (const auto& [name, node] : table) {
      const std::string path = prefix + std::string(name.str());
      int key = 0;
      while (key < static_cast<int>(keys().size()) && key_at(key).name != path) ++key;
      if (key < static_cast<int>(keys().size())) {
        read_known(key, node, how);
        continue;
      }
      const bool group = std::any_of(keys().begin(), keys().end(), [&](const SpaceKey& one) {
        return one.name.starts_with(path + ".");
      });
      if (group && node.is_table()) {
        read_keys(*node.as_table(), path + ".", how);
        continue;
      }
      std::vector<std::string> known;
      for (const SpaceKey& one : keys()) known.push_back(one.name);
      add(node, fmt::format("unknown key `{}`", path), near_or_list(path, known));
    }
  }

  void read_known(int key, const toml::node& node, ReadKey how) {
    const auto at = static_cast<size_t>(key);
    if (first_[at] != nullptr)
      return add(node, fmt::format("`{}` is fixed already", key_at(key).name),
                 fmt::format("it stands at {}, too", place_of(*first_[at])));
    first_[at] = &node;
    file_.given[at] = true;
    (this->*how)(key, node);
  }

  /// One value of a key; absent (and a problem) if it cannot have it.
  std::optional<double> read_value(int key, const toml::node& node) {
    const SpaceKey& info = key_at(key);
    if (!info.words.empty()) {
      const auto text = node.value_exact<std::string>();
      for (size_t w = 0; text && w < info.words.size(); ++w)
        if (info.words[w] == *text) return static_cast<double>(w);
      add(node,
          text ? fmt::format("`{}` cannot be `{}`", info.name, *text)
               : fmt::format("`{}` must be a word in quotes", info.name),
          near_or_list(text.value_or(""), info.words));
      return std::nullopt;
    }
    if (!node.is_number()) {
      add(node, fmt::format("`{}` must be a number", info.name));
      return std::nullopt;
    }
    const double value = node.value_or(0.0);
    return is_possible(key, value, node) ? std::optional(value) : std::nullopt;
  }

  bool is_possible(int key, double value, const toml::node& node) {
    const SpaceKey& info = key_at(key);
    const bool inside = value >= info.low && value <= info.high;
    const bool whole = !info.whole || value == std::floor(value);
    const bool power = !info.power_of_two || std::exp2(std::round(std::log2(value))) == value;
    if (inside && whole && power) return true;
    add(node, fmt::format("`{}` is {}, but must be {}in {}..{}", info.name, value,
                          info.power_of_two ? "a power of two "
                          : info.whole      ? "a whole number "
                                            : "",
                          info.low, info.high));
    return false;
  }

  void read_fixed(int key, const toml::node& node) {
    if (const auto text = node.value_exact<std::string>(); text && key_at(key).words.empty()) {
      computed_.push_back({*text, &node, key});
      return;
    }
    if (node.is_array() || node.is_table())
      return add(node, fmt::format("`{}` has one value here", key_at(key).name),
                 "choices and ranges stand in [parameters]");
    if (const auto value = read_value(key, node)) file_.fixed[static_cast<size_t>(key)] = *value;
  }

  void read_parameter(int key, const toml::node& node) {
    std::vector<double> values;
    if (const toml::array* choices = node.as_array())
      values = read_choices(key, *choices);
    else if (const toml::table* range = node.as_table())
      values = read_range(key, *range);
    else
      add(node, fmt::format("`{}` is no parameter", key_at(key).name),
          fmt::format("{}; one value stands in [fixed]", kParameterForms));
    if (values.size() == 1) file_.fixed[static_cast<size_t>(key)] = values[0];
    if (values.size() > 1) file_.parameters.push_back({key, std::move(values)});
  }

  std::vector<double> read_choices(int key, const toml::array& choices) {
    std::vector<double> values;
    if (choices.empty()) add(choices, fmt::format("`{}` has no choices", key_at(key).name));
    for (const toml::node& choice : choices) {
      const auto value = read_value(key, choice);
      if (!value) continue;
      if (std::find(values.begin(), values.end(), *value) != values.end())
        add(choice, fmt::format("`{}` has the choice {} twice", key_at(key).name,
                                key_at(key).text(*value)));
      else
        values.push_back(*value);
    }
    if (key_at(key).words.empty()) std::sort(values.begin(), values.end());
    return values;
  }

  std::vector<double> read_range(int key, const toml::table& range) {
    const SpaceKey& info = key_at(key);
    if (!info.words.empty()) {
      add(range, fmt::format("`{}` is a word and has no range", info.name), kParameterForms);
      return {};
    }
    const size_t before = errors_.size() + problems_.count();
    TomlTable table(range, info.name + ".", problems_);
    double from = info.low, to = info.high, step = 0, times = 0;
    table.read_number("from", from);
    table.read_number("to", to);
    table.read_number("step", step);
    table.read_number("times", times);
    for (const char* bound : {"from", "to"})
      if (!range.contains(bound))
        add(range, fmt::format("`{}.{}` is missing", info.name, bound), kParameterForms);
    const bool steps = range.contains("step"), factors = range.contains("times");
    if (steps && factors) add(range, fmt::format("`{}` has step and times", info.name));
    if (steps && !(step > 0)) add(range, fmt::format("`{}.step` must be above 0", info.name));
    if (factors && !(times > 1)) add(range, fmt::format("`{}.times` must be above 1", info.name));
    if (!(from <= to))
      add(range, fmt::format("the range of `{}` is reversed: {}..{}", info.name, from, to));
    table.finish();
    if (errors_.size() + problems_.count() != before) return {};
    return range_values(key, range, from, to, factors ? times : 1, steps ? step : factors ? 0 : 1);
  }

  std::vector<double> range_values(int key, const toml::table& range, double from, double to,
                                   double times, double step) {
    std::vector<double> values;
    if (!is_possible(key, from, range)) return values;
    for (double value = from; value <= to; value = value * times + step) {
      if (values.size() == kMostValues) {
        add(range, fmt::format("`{}` has more than {} values", key_at(key).name, kMostValues));
        return {};
      }
      if (!is_possible(key, value, range)) return {};
      values.push_back(value);
    }
    return values;
  }

  void check_required() {
    for (size_t k = 0; k < keys().size(); ++k) {
      if (!keys()[k].required || file_.given[k]) continue;
      const SpaceKey& info = keys()[k];
      add(place_of_missing(fixed_), fmt::format("`{}` is missing", info.name),
          fmt::format("fix it, or make it a parameter: {}",
                      info.words.empty() ? fmt::format("{}..{}", info.low, info.high)
                                         : fmt::format("{}", fmt::join(info.words, ", "))));
    }
  }

  /// A decision that can never be asked is no dimension but a mistake.
  void check_parents() {
    for (const SpaceFile::Parameter& parameter : file_.parameters) {
      const SpaceKey& info = key_at(parameter.key);
      if (info.parent < 0) continue;
      std::vector<double> parents = {file_.fixed[static_cast<size_t>(info.parent)]};
      for (const SpaceFile::Parameter& other : file_.parameters)
        if (other.key == info.parent) parents = other.values;
      const bool asked = std::any_of(parents.begin(), parents.end(), [&](double value) {
        return std::find(info.when.begin(), info.when.end(), static_cast<int>(value)) !=
               info.when.end();
      });
      if (!asked)
        add(*first_[static_cast<size_t>(parameter.key)],
            fmt::format("`{}` changes nothing here: only {} has one", info.name,
                        key_at(info.parent).text(info.when[0])));
    }
  }

  // --- Rules and limits ---

  void read_computed() {
    for (const Text& text : computed_) {
      auto value = SpaceRule::parse_number(text.text, keys());
      if (!value) {
        add(text, value.error());
        continue;
      }
      for (const int read : value->reads())
        for (const Text& other : computed_)
          if (other.key == read)
            add(*text.node, fmt::format("`{}` is computed from `{}`, which is computed itself",
                                        key_at(text.key).name, key_at(read).name));
      file_.computed.push_back({text.key, std::move(*value)});
    }
  }

  void read_rules() {
    for (const Text& text : rule_texts_) {
      auto rule = SpaceRule::parse_condition(text.text, keys());
      if (rule)
        file_.rules.push_back({std::move(*rule), place_of(*text.node)});
      else
        add(text, rule.error());
    }
  }

  void read_limits(const toml::table& limits) {
    for (const auto& [name, node] : limits) {
      const auto text = node.value_exact<std::string>();
      if (!text) {
        add(node, fmt::format("the limit `{}` must be a text in quotes", name.str()),
            "power = \"2 W\"");
        continue;
      }
      const std::string objective(name.str());
      Result<Limit> limit = parse_limit(objective, *text);
      if (!limit) {
        const std::string example = example_limit(objective);
        add(node, limit.error().what,
            example.empty() ? limit.error().fix : fmt::format("{} = \"{}\"", objective, example));
        continue;
      }
      if (std::string why = misplaced_unit(*limit, file_.technology); !why.empty())
        add(node, std::move(why));
      file_.limits.push_back(*limit);
    }
  }

  /// What only shows when points are looked at.
  void check_points(const DesignSpace& space) {
    for (const SpaceFile::Condition& condition : space.file().rules)
      if (space.can_be_met(condition.rule) == false)
        add(condition.place,
            fmt::format("nothing in this space meets the rule `{}`", condition.rule.text()));
    if (!errors_.empty()) return;
    int64_t left = kMostPoints;
    bool found = false;
    space.for_each([&](const search::Point& point) {
      found = space.legal(point);
      return !found && --left > 0;
    });
    if (found || left == 0) return;
    const search::Point first(space.points().decisions().size(), 0);
    add(place_of_missing(),
        fmt::format("no point of this space can be built ({} were looked at)", kMostPoints - left),
        fmt::format("one of the reasons: {}", space.reasons(first)[0]));
  }

  std::string place_;
  TomlProblems problems_;
  TomlTable table_;
  const toml::table* fixed_ = nullptr;
  SpaceFile file_;
  std::vector<Error> errors_;
  std::vector<Text> rule_texts_, computed_;
  std::vector<const toml::node*> first_;  ///< where each key is named
};

}  // namespace

Result<DesignSpace> read_space(std::string_view text, const std::string& place) {
  const toml::table top = TW_TRY(parse_toml(text, place, kSpace.example));
  return SpaceReader(top, place).read();
}

Result<DesignSpace> load_space(const std::string& name_or_path) {
  return load_named(kSpace, kSpaceFiles, name_or_path, read_space);
}

std::vector<std::string> builtin_spaces() { return names_of(kSpaceFiles); }

}  // namespace tilewright::codesign
