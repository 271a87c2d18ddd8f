// The scanner every small text language of Tilewright shares: IR, traces, tensor expressions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/result.h"

namespace tilewright {

/// One piece of text. A plain name is a letter or `_` followed by letters, digits and `_`, with
/// `.`, `@` and `~` allowed before another of these; any other name stands in backquotes.
/// Strings stand in double quotes. Comments run from `//` or `#` to the end of the line.
struct Token {
  enum class Kind { End, Name, Int, Float, String, Symbol, Bad };
  Kind kind = Kind::End;
  std::string_view text;    ///< as written; numbers without their suffix
  std::string_view suffix;  ///< numbers: letters directly behind (`i32` of `1i32`)
  std::string value;        ///< names and strings: without quotes; bad tokens: the reason
  bool quoted = false;      ///< a name in backquotes: never a keyword
  bool first_on_line = false;
  size_t offset = 0;
};

/// Splits text into tokens, one ahead, and words errors with the place, the line and a caret.
class Scanner {
 public:
  explicit Scanner(std::string_view text);

  const Token& peek() const { return token_; }
  Token next();
  bool at_end() const { return token_.kind == Token::Kind::End; }
  /// Where the current token starts.
  size_t offset() const { return token_.offset; }

  bool at_symbol(std::string_view symbol) const {
    return token_.kind == Token::Kind::Symbol && token_.text == symbol;
  }
  /// An unquoted name.
  bool at_word(std::string_view word) const {
    return token_.kind == Token::Kind::Name && !token_.quoted && token_.text == word;
  }
  bool accept_symbol(std::string_view symbol);
  bool accept_word(std::string_view word);
  /// errors: Parse; `context` says what the symbol is needed for (`after the extent`).
  Status expect_symbol(std::string_view symbol, std::string_view context);
  Status expect_word(std::string_view word, std::string_view context);
  /// A name, quoted or not; `what` names its role (`a loop`).
  Result<std::string> expect_name(std::string_view what);
  /// An i64 without suffix, perhaps negative. errors: Parse, also when it does not fit.
  Result<int64_t> expect_int(std::string_view what);
  Result<std::string> expect_string(std::string_view what);

  /// A Parse error at the current token, or at `offset`. A bad token gives its own reason.
  tl::unexpected<Error> error(std::string what, std::string fix = {}) const;
  tl::unexpected<Error> error_at(size_t offset, std::string what, std::string fix = {}) const;
  /// The current token in words, for messages: "`{`", "end of text".
  std::string found() const;

 private:
  void scan();
  void skip_space();
  void scan_number();
  void scan_quoted(char quote);
  bool digit_at(size_t pos) const;

  std::string_view text_;
  size_t pos_ = 0;
  Token token_;
};

/// `name` as text: bare if it is a plain name and not in `reserved`, else in backquotes.
std::string quote_name(std::string_view name, std::span<const std::string_view> reserved = {});
/// `text` in double quotes.
std::string quote_string(std::string_view text);

/// The candidate nearest to `name` among those with mostly the same letters; empty if none is worth
/// suggesting.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace tilewright
