#include "tilewright/schedule/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tilewright/base/check.h"
#include "tilewright/base/scanner.h"
#include "tilewright/ir/text.h"
#include "tilewright/ir/verify.h"
#include "tilewright/schedule/apply.h"

namespace tilewright::schedule {
namespace {

/// Names as IR text writes them, numbers bare; anything with spaces or quotes as a string.
std::string text_of(const std::string& value) {
  const bool name = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < 127 && c != '`' && c != '"' && c != '\\';
  });
  const bool number = !value.empty() && value.size() < 10 &&
                      value.find_first_not_of("0123456789") == std::string::npos;
  if (number && (value.size() == 1 || value[0] != '0')) return value;
  return name ? quote_name(value) : quote_string(value);
}
std::string text_of(int64_t value) { return fmt::format("{}", value); }
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? ", " : "") + text_of(values[i]);
  return out + "]";
}

Status read(Scanner& in, std::string& value) {
  const Token& t = in.peek();
  if (t.kind != Token::Kind::Name && t.kind != Token::Kind::String && t.kind != Token::Kind::Int)
    return in.error("expected a name, found " + in.found());
  if (t.kind == Token::Kind::Int) {
    value = fmt::format("{}", TW_TRY(in.expect_int("a value")));
  } else {
    value = in.next().value;
  }
  return {};
}

Status read(Scanner& in, int64_t& value) {
  value = TW_TRY(in.expect_int("a number"));
  return {};
}

template <class T>
Status read(Scanner& in, std::vector<T>& values) {
  TW_TRY_STATUS(in.expect_symbol("[", "before the list"));
  while (!in.at_symbol("]")) {
    if (!values.empty()) TW_TRY_STATUS(in.expect_symbol(",", "between the elements"));
    T value{};
    TW_TRY_STATUS(read(in, value));
    values.push_back(std::move(value));
  }
  return in.expect_symbol("]", "after the list");
}

template <class S>
Result<Step> read_fields(Scanner& in) {
  S step{};
  bool first = true;
  std::optional<Error> error;
  for_each_field(step, [&](std::string_view name, auto& member) {
    if (error) return;
    auto field = [&]() -> Status {
      if (!first) TW_TRY_STATUS(in.expect_symbol(",", "between the fields"));
      TW_TRY_STATUS(in.expect_word(name, fmt::format("as the next field of {}", S::name)));
      TW_TRY_STATUS(in.expect_symbol("=", "after the field's name"));
      return read(in, member);
    };
    if (Status s = field(); !s) error = std::move(s).error();
    first = false;
  });
  if (error) return tl::unexpected<Error>(*std::move(error));
  return Step(std::move(step));
}

/// Reads the fields of the alternative called `name`.
template <size_t I = 0>
Result<Step> read_step(Scanner& in, const std::string& name, size_t offset) {
  if constexpr (I < std::variant_size_v<Step>) {
    using S = std::variant_alternative_t<I, Step>;
    if (name == S::name) return read_fields<S>(in);
    return read_step<I + 1>(in, name, offset);
  } else {
    return in.error_at(offset, fmt::format("no step is named {}", name));
  }
}

}  // namespace

Result<Func> apply(const Step& step, const Func& func) {
  Result<Func> out = std::visit([&](const auto& s) { return run(s, func); }, step);
  if (!out) return tl::unexpected<Error>(std::move(out).error().at(print(step)));
#ifdef TILEWRIGHT_VERIFY_EACH
  const Status valid = verify(*out, Stage::Scheduled);
  TW_CHECK(valid, "{} made an invalid program: {}\nbefore:\n{}\nafter:\n{}", print(step),
           to_string(valid.error()), tilewright::print(func), tilewright::print(*out));
#endif
  return out;
}

std::string print(const Step& step) {
  return std::visit(
      [](const auto& s) {
        std::string out = fmt::format("{}(", s.name);
        const char* comma = "";
        for_each_field(s, [&](std::string_view name, const auto& member) {
          out += fmt::format("{}{}={}", comma, name, text_of(member));
          comma = ", ";
        });
        return out + ")";
      },
      step);
}

std::string print(const Trace& trace) {
  std::string out;
  for (const Step& step : trace) out += print(step) + "\n";
  return out;
}

Result<Trace> parse_trace(std::string_view text) {
  Scanner in(text);
  Trace trace;
  while (!in.at_end()) {
    const size_t offset = in.offset();
    const std::string name = TW_TRY(in.expect_name("a step"));
    TW_TRY_STATUS(in.expect_symbol("(", "after the step's name"));
    trace.push_back(TW_TRY(read_step(in, name, offset)));
    TW_TRY_STATUS(in.expect_symbol(")", "after the last field"));
  }
  return trace;
}

Result<Func> replay(const Func& func, const Trace& trace) {
  Func now = func;
  for (size_t i = 0; i < trace.size(); ++i) {
    Result<Func> next = schedule::apply(trace[i], now);
    if (!next) return tl::unexpected<Error>(std::move(next).error().at(fmt::format("step {}", i)));
    now = *std::move(next);
  }
  return now;
}

}  // namespace tilewright::schedule
