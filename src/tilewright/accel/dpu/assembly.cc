// Instructions as text, one a line.
#include <fmt/format.h>

#include <charconv>
#include <set>
#include <type_traits>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/dpu/isa.h"
#include "tilewright/base/names.h"

namespace tilewright::dpu {
namespace {

std::string mask_text(unsigned mask) {
  std::string text;
  for (int u = 0; u < 8; ++u)
    if (mask >> u & 1) text += u < kUnits ? letter(static_cast<Unit>(u)) : '?';
  return text;
}

std::vector<std::string_view> words_in(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(kSpace); at != line.npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kSpace, end);
  }
  return words;
}

template <size_t I = 0>
bool find_op(std::string_view name, Op& into) {
  if constexpr (I == std::variant_size_v<Op>) {
    return false;
  } else {
    using T = std::variant_alternative_t<I, Op>;
    if (T::name != name) return find_op<I + 1>(name, into);
    into = T{};
    return true;
  }
}

template <size_t I = 0>
void all_names(std::vector<std::string>& into) {
  if constexpr (I < std::variant_size_v<Op>) {
    into.emplace_back(std::variant_alternative_t<I, Op>::name);
    all_names<I + 1>(into);
  }
}

/// What a line says, or why it says nothing: the sentence and what may have been meant.
class LineReader {
 public:
  struct Problem {
    std::string what, fix;
  };
  Insn insn;
  std::vector<Problem> problems;

  explicit LineReader(const std::vector<std::string_view>& words) {
    if (!find_op(words.front(), insn.op)) {
      std::vector<std::string> names;
      all_names(names);
      const std::string name(words.front());
      problems.push_back(
          {fmt::format("no instruction is called `{}`", name), did_you_mean(name, names)});
      return;
    }
    std::visit(
        [](auto& op) {
          for (const auto& field : op.fields()) op.*field.member = 0;
        },
        insn.op);
    for (size_t i = 1; i < words.size(); ++i) read_entry(words[i]);
  }

 private:
  void read_entry(std::string_view word) {
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      problems.push_back({fmt::format("`{}` is not FIELD=VALUE", word), ""});
      return;
    }
    const std::string name(word.substr(0, equals));
    const std::string_view value = word.substr(equals + 1);
    if (!named_.insert(name).second) {
      problems.push_back({fmt::format("`{}` is named twice", name), ""});
    } else if (name == "dpon" || name == "dpby") {
      read_mask(name, value, name == "dpon" ? insn.dpon : insn.dpby);
    } else {
      std::visit([&](auto& op) { read_field(op, name, value); }, insn.op);
    }
  }
  void read_mask(const std::string& name, std::string_view value, uint8_t& into) {
    for (const char c : value) {
      const size_t unit = std::string_view("LSCP").find(c);
      if (unit == std::string_view::npos || (into >> unit & 1) != 0) {
        problems.push_back({fmt::format("`{}={}` is no set of units", name, value),
                            "the units are L, S, C and P, each at most once"});
        return;
      }
      into = static_cast<uint8_t>(into | 1u << unit);
    }
  }
  template <class T>
  void read_field(T& op, const std::string& name, std::string_view value) {
    std::vector<std::string> names = {"dpon", "dpby"};
    for (const auto& field : op.fields()) {
      names.emplace_back(field.name);
      if (field.name != name) continue;
      const auto [end, code] =
          std::from_chars(value.data(), value.data() + value.size(), op.*field.member);
      if (code != std::errc{} || end != value.data() + value.size())
        problems.push_back({fmt::format("`{}` must be a number, not `{}`", name, value), ""});
      return;
    }
    problems.push_back(
        {fmt::format("{} has no field `{}`", T::name, name), did_you_mean(name, names)});
  }

  std::set<std::string> named_;
};

}  // namespace

std::string disassemble(const Insn& insn) {
  std::string text(op_name(insn.op));
  if (insn.dpon != 0) text += " dpon=" + mask_text(insn.dpon);
  if (insn.dpby != 0) text += " dpby=" + mask_text(insn.dpby);
  std::visit(
      [&](const auto& op) {
        for (const auto& field : op.fields())
          text += fmt::format(" {}={}", field.name, op.*field.member);
      },
      insn.op);
  return text;
}

std::string disassemble(const std::vector<Insn>& insns) {
  std::string text;
  for (const Insn& insn : insns) text += disassemble(insn) + "\n";
  return text;
}

Result<std::vector<Insn>> parse_asm(std::string_view text, const std::string& place) {
  std::vector<Insn> insns;
  accel::Problems problems;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    const std::vector<std::string_view> words = words_in(line);
    if (words.empty()) continue;
    LineReader reader(words);
    for (LineReader::Problem& problem : reader.problems)
      problems.add(Error{ErrorKind::Parse,
                         std::move(problem.what),
                         fmt::format("{}:{}", place, number),
                         {},
                         std::move(problem.fix),
                         {}});
    if (!reader.problems.empty()) continue;
    // A value that is too wide for its field has no meaning, whatever else the line says.
    if (Status status = check_widths(reader.insn, fmt::format("{}:{}", place, number)); !status) {
      status.error().kind = ErrorKind::Parse;
      problems.add(std::move(status.error()));
    }
    insns.push_back(reader.insn);
  }
  TW_TRY_STATUS(std::move(problems).status());
  return insns;
}

}  // namespace tilewright::dpu
