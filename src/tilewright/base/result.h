// Errors as values: anything a user, a file, the search or a hardware limit can cause.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace tilewright {

/// What went wrong, by who can do something about it; the driver maps each kind to one exit code.
enum class ErrorKind {
  Usage,          ///< wrong option or configuration file
  Parse,          ///< text or file that does not follow its grammar
  Invalid,        ///< well-formed input that contradicts itself (shapes, dtypes, names)
  NotApplicable,  ///< a schedule step whose requirement does not hold here
  Unsupported,    ///< legal input that Tilewright cannot do
  Capacity,       ///< a memory or hardware limit is exceeded
  Device,         ///< a device or target is not usable
  Mismatch,       ///< verification found a difference
  Package,        ///< package, record or hardware do not fit together
  Io,             ///< the file system refused
  Tool,           ///< an external tool is missing, too old or failed
  Limit,          ///< time or memory limit hit before any result
  Unreachable,    ///< a server does not answer, or lets nobody in
  Interrupted,    ///< the user pressed Ctrl-C
};

/// One problem, or several found together (`others`). Texts are for users: names and numbers in
/// them.
struct Error {
  ErrorKind kind = ErrorKind::Invalid;
  std::string what;           ///< one sentence
  std::string place;          ///< file:line:column, node name or step; may be empty
  std::string why;            ///< numbers behind it; may be empty
  std::string fix;            ///< what to do, best a command; may be empty
  std::vector<Error> others;  ///< further problems of the same input

  /// Adds `where` in front of the place: called on the way up.
  Error at(const std::string& where) && {
    place = place.empty() ? where : where + ": " + place;
    return std::move(*this);
  }
};

/// Lines as printed to the user: `error: what`, then place, why, fix where present; then the
/// others.
std::string to_string(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// An error ready to be returned from a function of any Result type.
inline tl::unexpected<Error> fail(ErrorKind kind, std::string what, std::string why = {},
                                  std::string fix = {}) {
  return tl::unexpected<Error>(
      Error{kind, std::move(what), {}, std::move(why), std::move(fix), {}});
}

}  // namespace tilewright

#define TW_CONCAT_(a, b) a##b
#define TW_CONCAT(a, b) TW_CONCAT_(a, b)
#define TW_TRY_(tmp, expr)                                                          \
  ({                                                                                \
    auto tmp = (expr);                                                              \
    if (!tmp) return ::tl::unexpected<::tilewright::Error>(std::move(tmp.error())); \
    *std::move(tmp);                                                                \
  })
#define TW_TRY_STATUS_(tmp, expr)                                                   \
  do {                                                                              \
    auto tmp = (expr);                                                              \
    if (!tmp) return ::tl::unexpected<::tilewright::Error>(std::move(tmp.error())); \
  } while (false)

/// Value of a Result, or return its error from the enclosing function.
#define TW_TRY(...) TW_TRY_(TW_CONCAT(tw_try_, __COUNTER__), (__VA_ARGS__))
/// The same for a Status.
#define TW_TRY_STATUS(...) TW_TRY_STATUS_(TW_CONCAT(tw_try_, __COUNTER__), (__VA_ARGS__))
