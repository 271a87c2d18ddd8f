// Instructions as text, one a line.
#include "tilewright/accel/spatial/assembly.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/spatial/fields.h"
#include "tilewright/accel/spatial/operands.h"
#include "tilewright/base/names.h"

namespace tilewright::spatial {
namespace {

constexpr std::string_view kQueueLetters = "LCS";
constexpr std::string_view kLayerMark = "# layer ";
constexpr std::string_view kEnd = "END";

template <class Work>
constexpr std::string_view operation() {
  if constexpr (std::is_same_v<Work, Load>) return "LOAD";
  if constexpr (std::is_same_v<Work, Compute>) return "COMPUTE";
  return "STORE";
}

template <class T>
std::string number_text(T number) {
  if constexpr (std::is_same_v<T, uint64_t>) return fmt::format("{}", number);
  return fmt::format("{}", static_cast<int64_t>(number));
}

/// Whether `text` is a number of the type.
template <class T>
bool read_number(std::string_view text, T& into) {
  std::conditional_t<std::is_same_v<T, uint64_t>, uint64_t, int64_t> value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return false;
  if constexpr (!std::is_same_v<T, uint64_t>)
    if (value < int64_t{std::numeric_limits<T>::min()} ||
        value > int64_t{std::numeric_limits<T>::max()})
      return false;
  into = static_cast<T>(value);
  return true;
}

/// Numbers that stand side by side.
struct FieldText {
  std::string_view name;
  std::string values;
};

template <class Work>
std::vector<FieldText> texts_of(const Work& work) {
  std::vector<FieldText> out;
  each_field(work, [&](std::string_view name, int, const auto& number) {
    if (!out.empty() && out.back().name == name)
      out.back().values += "," + number_text(number);
    else
      out.push_back({name, number_text(number)});
  });
  return out;
}

std::string queues_text(std::string_view name, unsigned mask) {
  std::string text;
  for (size_t q = 0; q < 8; ++q)
    if ((mask >> q & 1) != 0) text += q < kQueueLetters.size() ? kQueueLetters[q] : '?';
  return text.empty() ? text : fmt::format(" {}={}", name, text);
}

/// The words between characters of `space`; with `empty` also those of no letters.
std::vector<std::string_view> split_at(std::string_view text, std::string_view space, bool empty) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(space, at), text.size());
    if (end > at || empty) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// What a line says, or what is wrong in it.
class LineReader {
 public:
  Insn insn;
  accel::Problems problems;

  explicit LineReader(std::string_view line) {
    const auto words = split_at(line, " \t\r\v\f", false);
    if (words.empty()) {
      problem("there is no instruction");
      return;
    }
    for (size_t w = 1; w < words.size(); ++w) read_entry(words[w]);
    if (words[0] == operation<Load>())
      read_work<Load>();
    else if (words[0] == operation<Compute>())
      read_work<Compute>();
    else if (words[0] == operation<Store>())
      read_work<Store>();
    else
      problem(fmt::format("no instruction is called `{}`", words[0]),
              did_you_mean(std::string(words[0]), {"LOAD", "COMPUTE", "STORE"}));
  }

 private:
  void problem(std::string what, std::string fix = {}) {
    problems.add(Error{ErrorKind::Parse, std::move(what), {}, {}, std::move(fix), {}});
  }

  void read_entry(std::string_view word) {
    const size_t equals = word.find('=');
    if (equals == word.npos) return problem(fmt::format("`{}` is not FIELD=VALUE", word));
    const std::string name(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    if (name == "takes" || name == "gives") {
      read_queues(name, value, name == "takes" ? insn.takes : insn.gives);
    } else if (!entries_.emplace(name, split_at(value, ",", true)).second) {
      problem(fmt::format("`{}` is named twice", name));
    }
  }

  void read_queues(const std::string& name, std::string_view value, uint8_t& into) {
    for (const char c : value) {
      const size_t queue = kQueueLetters.find(c);
      if (queue == kQueueLetters.npos || (into >> queue & 1) != 0)
        return problem(fmt::format("`{}={}` is no set of queues", name, value),
                       "the queues are L, C and S, each at most once");
      into = static_cast<uint8_t>(into | 1u << queue);
    }
  }

  template <class Work>
  void read_work() {
    Work work;
    std::map<std::string, size_t> sizes;
    each_field(work, [&](std::string_view name, int, auto& number) {
      const size_t at = sizes[std::string(name)]++;
      const auto entry = entries_.find(std::string(name));
      if (entry == entries_.end() || at >= entry->second.size()) return;
      if (!read_number(entry->second[at], number))
        problem(fmt::format("`{}` cannot be `{}`", name, entry->second[at]));
    });
    std::vector<std::string> names = {"takes", "gives"};
    for (const auto& [name, size] : sizes) names.push_back(name);
    for (const auto& [name, values] : entries_) {
      const auto known = sizes.find(name);
      if (known == sizes.end())
        problem(fmt::format("{} has no field `{}`", operation<Work>(), name),
                did_you_mean(name, names));
      else if (known->second != values.size())
        problem(fmt::format("`{}` has {} numbers, not {}", name, known->second, values.size()));
    }
    insn.work = work;
  }

  std::map<std::string, std::vector<std::string_view>> entries_;
};

/// Names may be any bytes; a line ends at its end.
std::string one_line(std::string name) {
  for (char& c : name)
    if (c == '\n' || c == '\r') c = '?';
  return name;
}

/// Reads a text line by line into the runs of a program.
class TextReader {
 public:
  TextReader(const Design& design, const std::string& place) : place_(place) {
    program_.design = design;
  }

  Result<Program> read(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      ++number_;
      read_line(text.substr(at, end - at));
      at = end + 1;
    }
    if (program_.runs.empty() || !run_.insns.empty() || !run_.spans.empty())
      problem({ErrorKind::Parse,
               "the run does not end with END",
               {},
               {},
               "END alone in the last line",
               {}});
    TW_TRY_STATUS(std::move(problems_).status());
    return std::move(program_);
  }

 private:
  void problem(Error error) {
    error.kind = ErrorKind::Parse;
    problems_.add(std::move(error).at(fmt::format("{}:{}", place_, std::max(number_, 1))));
  }

  void read_line(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kLayerMark)) {
      end_span();
      run_.spans.push_back({std::string(line.substr(kLayerMark.size())), run_.insns.size(), 0});
      return;
    }
    line = line.substr(0, line.find('#'));
    const auto words = split_at(line, " \t\r\v\f", false);
    if (words.empty()) return;
    if (words[0] == kEnd && words.size() == 1) {
      end_span();
      program_.runs.push_back(std::exchange(run_, {}));
      return;
    }
    Result<Insn> insn = parse_insn(line);
    if (!insn) return problem(std::move(insn.error()));
    if (Status status = check_fields(program_.design, *insn); !status)
      problem(std::move(status.error()));
    run_.insns.push_back(*std::move(insn));
  }

  /// A span lasts to the next one, the last one to END.
  void end_span() {
    if (!run_.spans.empty()) run_.spans.back().end = run_.insns.size();
  }

  std::string place_;
  int number_ = 0;
  Program program_;
  spatial::Run run_;
  accel::Problems problems_;
};

/// An image as large as the program's transfers reach, full of zeros.
Status make_image(Program& program) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  uint64_t low = ~uint64_t{0}, high = 0;
  for (const Run& run : program.runs)
    for (const Insn& insn : run.insns) {
      Runs all;
      if (const auto* load = std::get_if<Load>(&insn.work)) all = runs(*load);
      if (const auto* store = std::get_if<Store>(&insn.work)) all = runs(*store);
      if (all.bytes == 0) continue;
      low = std::min(low, static_cast<uint64_t>(all.begins.first()));
      high = std::max(high, static_cast<uint64_t>(all.begins.last()) + all.bytes);
    }
  if (high == 0) return {};
  program.base = std::max(low / accel::kPage * accel::kPage, accel::kPage);
  if (low < program.base)
    return fail(ErrorKind::Invalid, fmt::format("a transfer begins at byte {} of DRAM", low),
                fmt::format("images begin at {}", accel::kPage));
  if (high - program.base > kMostBytes)
    return fail(ErrorKind::Capacity,
                fmt::format("the transfers reach over {} bytes of DRAM", high - program.base),
                fmt::format("a program of text alone gets {} at most", kMostBytes));
  program.image.resize(high - program.base);
  return {};
}

}  // namespace

std::string to_string(const Insn& insn) {
  return std::visit(
      [&](const auto& work) {
        using Work = std::decay_t<decltype(work)>;
        std::string text(operation<Work>());
        text += queues_text("takes", insn.takes) + queues_text("gives", insn.gives);
        const auto own = texts_of(work), usual = texts_of(Work{});
        for (size_t i = 0; i < own.size(); ++i)
          if (own[i].values != usual[i].values)
            text += fmt::format(" {}={}", own[i].name, own[i].values);
        return text;
      },
      insn.work);
}

Result<Insn> parse_insn(std::string_view line) {
  LineReader reader(line);
  TW_TRY_STATUS(std::move(reader.problems).status());
  return reader.insn;
}

std::string assembly(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    for (size_t i = 0; i <= run.insns.size(); ++i) {
      for (const Span& span : run.spans)
        if (span.begin == i) text += std::string(kLayerMark) + one_line(span.name) + "\n";
      if (i < run.insns.size()) text += to_string(run.insns[i]) + "\n";
    }
    text += std::string(kEnd) + "\n";
  }
  return text;
}

Result<Program> parse_assembly(std::string_view text, const Design& design,
                               const std::string& place) {
  Program program = TW_TRY(TextReader(design, place).read(text));
  TW_TRY_STATUS(make_image(program));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::spatial
