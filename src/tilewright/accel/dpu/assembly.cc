// Instructions as text, one a line.
#include "tilewright/accel/dpu/assembly.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "tilewright/accel/common/image.h"
#include "tilewright/accel/dpu/isa.h"
#include "tilewright/accel/dpu/operands.h"
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

constexpr std::string_view kLayerMark = "# layer ";

Error at_line(const std::string& place, int number, std::string what, std::string fix = {}) {
  return Error{ErrorKind::Parse,
               std::move(what),
               fmt::format("{}:{}", place, number),
               {},
               std::move(fix),
               {}};
}

/// An instruction, or the name of a layer that begins.
struct Line {
  int number = 0;
  std::optional<std::string> layer;
  Insn insn;
};

/// The lines that say something; what is wrong with the others goes into `problems`. `check`: what
/// an instruction must be besides, check_widths or check_fields.
std::vector<Line> read_lines(std::string_view text, const std::string& place,
                             Status (*check)(const Insn&, const std::string&),
                             accel::Problems& problems) {
  std::vector<Line> lines;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kLayerMark)) {
      lines.push_back({number, std::string(line.substr(kLayerMark.size())), {}});
      continue;
    }
    const std::vector<std::string_view> words = words_in(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    LineReader reader(words);
    for (LineReader::Problem& problem : reader.problems)
      problems.add(at_line(place, number, std::move(problem.what), std::move(problem.fix)));
    if (!reader.problems.empty()) continue;
    if (Status status = check(reader.insn, fmt::format("{}:{}", place, number)); !status) {
      status.error().kind = ErrorKind::Parse;
      problems.add(std::move(status.error()));
    }
    lines.push_back({number, std::nullopt, reader.insn});
  }
  return lines;
}

/// Names may be any bytes; a line ends at its end.
std::string one_line(std::string name) {
  for (char& c : name)
    if (c == '\n' || c == '\r') c = '?';
  return name;
}

/// A span lasts to the next one, the last one to END.
void end_spans(Run& run) {
  for (size_t s = 0; s < run.spans.size(); ++s)
    run.spans[s].end = s + 1 < run.spans.size() ? run.spans[s + 1].begin : run.insns.size() - 1;
}

/// Regions as large as the program's transfers reach, full of zeros.
Status place_regions(Program& program) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  std::array<uint64_t, kRegs> bytes{};
  for (const Run& run : program.runs)
    for (const Insn& insn : run.insns)
      if (const auto ddr = ddr_of(program.config, insn.op)) {
        uint64_t& most = bytes[static_cast<size_t>(ddr->reg)];
        most = std::max(most, (ddr->end() + accel::kPage - 1) / accel::kPage * accel::kPage);
      }
  uint64_t at = program.base;
  for (size_t r = 0; r < kRegs; ++r) {
    if (bytes[r] > 0) program.regions[r] = {std::string(name(static_cast<Reg>(r))), at, bytes[r]};
    at += bytes[r];
  }
  if (at - program.base > kMostBytes)
    return fail(ErrorKind::Capacity,
                fmt::format("the transfers reach over {} bytes of DDR", at - program.base),
                fmt::format("a program of text alone gets {} at most", kMostBytes));
  program.image.resize(at - program.base);
  return {};
}

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
  accel::Problems problems;
  std::vector<Insn> insns;
  for (const Line& line : read_lines(text, place, check_widths, problems))
    if (!line.layer) insns.push_back(line.insn);
  TW_TRY_STATUS(std::move(problems).status());
  return insns;
}

std::string assembly(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs)
    for (size_t i = 0; i < run.insns.size(); ++i) {
      for (const Span& span : run.spans)
        if (span.begin == i) text += std::string(kLayerMark) + one_line(span.name) + "\n";
      text += disassemble(run.insns[i]) + "\n";
    }
  return text;
}

Result<Program> parse_assembly(std::string_view text, const Config& config,
                               const std::string& place) {
  accel::Problems problems;
  const std::vector<Line> lines = read_lines(text, place, check_fields, problems);
  Program program;
  program.config = config;
  dpu::Run run;
  for (const Line& line : lines) {
    if (line.layer) {
      run.spans.push_back({*line.layer, run.insns.size(), 0});
      continue;
    }
    run.insns.push_back(line.insn);
    if (!std::holds_alternative<End>(line.insn.op)) continue;
    end_spans(run);
    program.runs.push_back(std::exchange(run, {}));
  }
  if (program.runs.empty() || !run.insns.empty() || !run.spans.empty())
    problems.add(at_line(place, lines.empty() ? 1 : lines.back().number,
                         "the stream does not end with END", "END alone in the last line"));
  TW_TRY_STATUS(std::move(problems).status());
  TW_TRY_STATUS(place_regions(program));
  TW_TRY_STATUS(validate(program));
  return program;
}

}  // namespace tilewright::dpu
