#include "tilewright/base/scanner.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "tilewright/base/names.h"

namespace tilewright {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c); }
bool is_joint(char c) { return c == '.' || c == '@' || c == '~'; }

/// Length of the plain name at the start of `text`, 0 if there is none.
size_t plain_name_length(std::string_view text) {
  if (text.empty() || !is_letter(text[0])) return 0;
  size_t n = 1;
  while (n < text.size()) {
    if (is_name_char(text[n])) {
      ++n;
    } else if (is_joint(text[n]) && n + 1 < text.size() && is_name_char(text[n + 1])) {
      n += 2;
    } else {
      break;
    }
  }
  return n;
}

// Longest first: the first match wins.
constexpr std::string_view kLongSymbols[] = {
    "..", ":+", "+=", "*=", "==", "!=", "<=", ">=", "&&", "||", "<<", ">>", "->"};
constexpr std::string_view kShortSymbols = "()[]{}<>=+-*/%,:;.!~&|^@?$";

std::string quote(std::string_view text, char mark) {
  std::string out(1, mark);
  for (const char c : text) {
    if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + mark;
}

/// Letters that both texts have, in any order.
size_t common_letters(std::string a, std::string b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::string common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return common.size();
}

}  // namespace

Scanner::Scanner(std::string_view text) : text_(text) { scan(); }

Token Scanner::next() {
  Token token = std::move(token_);
  scan();
  return token;
}

bool Scanner::accept_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  scan();
  return true;
}

bool Scanner::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  scan();
  return true;
}

Status Scanner::expect_symbol(std::string_view symbol, std::string_view context) {
  if (accept_symbol(symbol)) return {};
  return error(fmt::format("expected `{}` {}, found {}", symbol, context, found()));
}

Status Scanner::expect_word(std::string_view word, std::string_view context) {
  if (accept_word(word)) return {};
  return error(fmt::format("expected `{}` {}, found {}", word, context, found()));
}

Result<std::string> Scanner::expect_name(std::string_view what) {
  if (token_.kind != Token::Kind::Name)
    return error(fmt::format("expected the name of {}, found {}", what, found()));
  return next().value;
}

Result<int64_t> Scanner::expect_int(std::string_view what) {
  const size_t start = offset();
  const bool negative = accept_symbol("-");
  if (token_.kind != Token::Kind::Int || !token_.suffix.empty())
    return error(fmt::format("expected an integer for {}, found {}", what, found()));
  const std::string digits = (negative ? "-" : "") + std::string(token_.text);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size())
    return error_at(start, fmt::format("{} for {} does not fit in 64 bits", digits, what));
  scan();
  return value;
}

Result<std::string> Scanner::expect_string(std::string_view what) {
  if (token_.kind != Token::Kind::String)
    return error(fmt::format("expected a string in double quotes for {}, found {}", what, found()));
  return next().value;
}

tl::unexpected<Error> Scanner::error(std::string what, std::string fix) const {
  if (token_.kind == Token::Kind::Bad) return error_at(token_.offset, token_.value);
  return error_at(token_.offset, std::move(what), std::move(fix));
}

tl::unexpected<Error> Scanner::error_at(size_t offset, std::string what, std::string fix) const {
  offset = std::min(offset, text_.size());
  const size_t line_number = std::count(text_.begin(), text_.begin() + offset, '\n') + 1;
  const size_t before = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
  const size_t begin = before == std::string_view::npos ? 0 : before + 1;
  const size_t end = std::min(text_.find('\n', offset), text_.size());
  const size_t column = offset - begin;
  // Long lines are shown around the caret only.
  constexpr size_t kBefore = 60, kAfter = 40;
  const size_t from = column > kBefore ? begin + column - kBefore : begin;
  std::string line(text_.substr(from, std::min(end - from, kBefore + kAfter)));
  std::replace_if(line.begin(), line.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  Error e;
  e.kind = ErrorKind::Parse;
  e.what = std::move(what);
  e.place = fmt::format("{}:{}", line_number, column + 1);
  e.why = fmt::format("{}\n{}^", line, std::string(offset - from, ' '));
  e.fix = std::move(fix);
  return tl::unexpected<Error>(std::move(e));
}

std::string Scanner::found() const {
  if (token_.kind == Token::Kind::End) return "the end of the text";
  std::string text(token_.text.substr(0, 40));
  text += token_.suffix.substr(0, 20);
  return "`" + text + "`";
}

bool Scanner::digit_at(size_t pos) const { return pos < text_.size() && is_digit(text_[pos]); }

void Scanner::skip_space() {
  while (pos_ < text_.size()) {
    const char c = text_[pos_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++pos_;
    } else if (c == '#' || text_.substr(pos_, 2) == "//") {
      pos_ = std::min(text_.find('\n', pos_), text_.size());
    } else {
      break;
    }
  }
}

void Scanner::scan() {
  const size_t end = pos_;
  skip_space();
  token_ = Token();
  token_.first_on_line = text_.substr(end, pos_ - end).find('\n') != std::string_view::npos;
  token_.offset = pos_;
  if (pos_ == text_.size()) return;
  const char c = text_[pos_];
  if (const size_t n = plain_name_length(text_.substr(pos_)); n > 0) {
    token_.kind = Token::Kind::Name;
    token_.text = text_.substr(pos_, n);
    token_.value = token_.text;
    pos_ += n;
    return;
  }
  if (is_digit(c)) return scan_number();
  if (c == '`' || c == '"') return scan_quoted(c);
  token_.kind = Token::Kind::Symbol;
  for (const std::string_view symbol : kLongSymbols) {
    if (text_.substr(pos_, 2) != symbol) continue;
    token_.text = text_.substr(pos_, 2);
    pos_ += 2;
    return;
  }
  token_.text = text_.substr(pos_++, 1);
  if (kShortSymbols.find(c) != std::string_view::npos) return;
  token_.kind = Token::Kind::Bad;
  token_.value = fmt::format("unexpected character (byte 0x{:02x})", static_cast<unsigned char>(c));
}

void Scanner::scan_number() {
  const size_t start = pos_;
  token_.kind = Token::Kind::Int;
  while (digit_at(pos_)) ++pos_;
  if (pos_ < text_.size() && text_[pos_] == '.' && digit_at(pos_ + 1)) {
    token_.kind = Token::Kind::Float;
    ++pos_;
    while (digit_at(pos_)) ++pos_;
  }
  if (pos_ < text_.size() && (text_[pos_] == 'e' || text_[pos_] == 'E')) {
    const bool sign = pos_ + 1 < text_.size() && (text_[pos_ + 1] == '+' || text_[pos_ + 1] == '-');
    if (digit_at(pos_ + 1 + sign)) {
      token_.kind = Token::Kind::Float;
      pos_ += 1 + sign;
      while (digit_at(pos_)) ++pos_;
    }
  }
  token_.text = text_.substr(start, pos_ - start);
  const size_t suffix = pos_;
  while (pos_ < text_.size() && is_name_char(text_[pos_])) ++pos_;
  token_.suffix = text_.substr(suffix, pos_ - suffix);
}

void Scanner::scan_quoted(char quote_mark) {
  const size_t start = pos_++;
  auto bad = [&](std::string why) {
    token_.kind = Token::Kind::Bad;
    token_.value = std::move(why);
    token_.text = text_.substr(start, 1);
  };
  while (true) {
    if (pos_ == text_.size() || text_[pos_] == '\n')
      return bad(fmt::format("{} is not closed on this line", quote_mark));
    char c = text_[pos_++];
    if (c == quote_mark) break;
    if (c == '\\') {
      if (pos_ == text_.size()) return bad("a backslash at the end of the text");
      c = text_[pos_++];
      if (c == 'x') {
        unsigned value = 0;
        const std::string_view hex = text_.substr(pos_, 2);
        const auto [end, code] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
        if (code != std::errc() || hex.size() != 2 || end != hex.data() + 2)
          return bad("\\x needs two hexadecimal digits");
        c = static_cast<char>(value);
        pos_ += 2;
      } else if (c != quote_mark && c != '\\') {
        return bad("unknown escape: only \\\\, the quote and \\xHH");
      }
    }
    token_.value += c;
  }
  token_.kind = quote_mark == '`' ? Token::Kind::Name : Token::Kind::String;
  token_.quoted = true;
  token_.text = text_.substr(start, pos_ - start);
  if (token_.kind == Token::Kind::Name && token_.value.empty()) bad("an empty name");
}

std::string quote_name(std::string_view name, std::span<const std::string_view> reserved) {
  const bool plain = !name.empty() && plain_name_length(name) == name.size() &&
                     std::find(reserved.begin(), reserved.end(), name) == reserved.end();
  return plain ? std::string(name) : quote(name, '`');
}

std::string quote_string(std::string_view text) { return quote(text, '"'); }

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kTooLong = 80;  // keeps the quadratic distance cheap on hostile input
  if (name.size() > kTooLong) return {};
  std::vector<std::string> near;
  for (const std::string& candidate : candidates) {
    const size_t longer = std::max(candidate.size(), name.size());
    if (longer <= kTooLong && 3 * common_letters(std::string(name), candidate) >= 2 * longer)
      near.push_back(candidate);
  }
  return nearest(std::string(name), near);
}

}  // namespace tilewright
