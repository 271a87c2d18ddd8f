// What went wrong between this program and PostgreSQL, in words for users and by the kind of error.
// No text that is made here holds a password: libpq does not put them into its own.
#pragma once

#include <string>
#include <string_view>

#include "tilewright/base/result.h"
#include "tilewright/postgres/address.h"

namespace tilewright::postgres {

/// libpq's text on one line: without what it says in front of each attempt, without its advice, and
/// without where in the server's source an error came from.
std::string reason_of(const std::string& text);

/// The error of a connection that did not come about. `text`: libpq's, with codes (verbose);
/// `needs_password`: the server asked for one and there was none. Its kind is Unreachable.
Error connect_failure(const Address& address, const std::string& text, bool needs_password);

/// What a server says about a statement that failed; `code`: SQLSTATE.
struct Complaint {
  std::string code, message, detail, hint;
};
/// Codes of the schema's own errors name the kind (TW400 Usage, TW404 Device, ...); what ends the
/// connection is Unreachable, all else Io.
Error statement_failure(const Complaint& complaint, const std::string& place);

}  // namespace tilewright::postgres
