#include "tilewright/postgres/failure.h"

#include <fmt/format.h>

#include <sstream>

namespace tilewright::postgres {
namespace {

/// The server's code in libpq's verbose text: `FATAL:  28P01: password ...`. Words may be in the
/// language of the server; codes are not.
std::string code_in(const std::string& text) {
  for (size_t at = text.find(":  "); at != text.npos; at = text.find(":  ", at + 1)) {
    const std::string code = text.substr(at + 3, 5);
    if (code.size() == 5 && text.compare(at + 8, 2, ": ") == 0 &&
        code.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == code.npos)
      return code;
  }
  return "";
}

struct Words {
  std::string what, fix;
};

constexpr const char* kPasswords =
    "PGPASSWORD, or a line of ~/.pgpass (PGPASSFILE names another file)";

/// What the server's code means to who connects; no words for other codes.
Words words_of_code(const std::string& code, const Address& to) {
  const std::string server = "PostgreSQL at " + to.place;
  if (code == "28P01")
    return {fmt::format("{} refuses the password of '{}'", server, to.user), kPasswords};
  if (code == "28000")
    return {fmt::format("{} does not let '{}' in", server, to.user),
            "its administrator makes logins, and says in pg_hba.conf who may come from where"};
  if (code == "3D000")
    return {fmt::format("{} has no database '{}'", server, to.database),
            fmt::format("createdb {}, or another name in the URL", to.database)};
  if (code == "42501")
    return {fmt::format("'{}' may not connect to the database '{}'", to.user, to.database),
            "its owner grants CONNECT"};
  if (code.starts_with("57P0")) return {server + " is starting or ending", "try again in a moment"};
  if (code == "53300")
    return {server + " has no connection left", "max_connections of the server, or pgbouncer"};
  return {};
}

/// What libpq noticed itself; in the order in which one text may hide another.
Words words_of_text(const std::string& text, const Address& to) {
  const auto has = [&](const char* part) { return text.find(part) != text.npos; };
  if (has("could not translate host name"))
    return {fmt::format("there is no host '{}'", to.host), "see to the name in the store's URL"};
  if (has("root certificate file"))
    return {"there is no certificate to check " + to.place + " by",
            "sslrootcert=FILE in the URL names that of the authority which signed the server's"};
  if (has("does not support SSL"))
    return {to.place + " offers no TLS", "ssl = on in the server's postgresql.conf"};
  if (has("does not match host name"))
    return {"the certificate of " + to.place + " is for another host",
            "use the name that the certificate has"};
  if (has("certificate verify failed"))
    return {"the certificate of " + to.place + " is not signed by an authority known here",
            "sslrootcert=FILE in the URL names the right authority's certificate"};
  if (has("no response to SSL") || has("response to SSL negotiation") ||
      has("expected authentication request"))
    return {"what answers at " + to.place + " is not PostgreSQL", "check host and port"};
  if (has("server closed the connection"))
    return {to.place + " closed the connection at once",
            "it is starting or ending, or no PostgreSQL: try again, or check host and port"};
  if (has("SSL error") || has("certificate"))
    return {"no safe connection to " + to.place, "sslmode and sslrootcert say what TLS needs"};
  if (has("channel binding"))
    return {"the login at " + to.place + " is not safe enough",
            "SCRAM passwords over TLS; channel_binding=prefer in the URL where a pooler between "
            "cannot do that"};
  if (has("Connection refused") || has("No such file or directory"))
    return {"no server at " + to.place, "start PostgreSQL there, or check host and port"};
  return {"cannot connect to " + to.place, "check host and port of the store's URL"};
}

}  // namespace

std::string reason_of(const std::string& text) {
  std::string reason;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("LOCATION:") || line.starts_with('\t')) continue;
    const size_t failed = line.find(" failed: ");
    if (line.starts_with("connection to server") && failed != line.npos) line.erase(0, failed + 9);
    if (!line.empty()) reason += (reason.empty() ? "" : "; ") + line;
  }
  return reason;
}

Error connect_failure(const Address& address, const std::string& text, bool needs_password) {
  const std::string code = code_in(text);
  Words words = words_of_code(code, address);
  if (needs_password && code.empty())
    words = {fmt::format("PostgreSQL at {} wants a password of '{}'", address.place, address.user),
             kPasswords};
  else if (words.what.empty())
    words = words_of_text(text, address);
  return {ErrorKind::Unreachable, words.what, {}, reason_of(text), words.fix, {}};
}

Error statement_failure(const Complaint& complaint, const std::string& place) {
  const std::string& code = complaint.code;
  if (code.empty() || code.starts_with("08") || code.starts_with("57P"))
    return {ErrorKind::Unreachable,
            fmt::format("the connection to {} is lost", place),
            {},
            complaint.message,
            "see whether PostgreSQL runs there",
            {}};
  constexpr std::pair<std::string_view, ErrorKind> kKinds[] = {
      {"TW400", ErrorKind::Usage},   {"TW403", ErrorKind::Usage}, {"TW404", ErrorKind::Device},
      {"TW409", ErrorKind::Package}, {"TW429", ErrorKind::Limit},
  };
  for (const auto& [own, kind] : kKinds)
    if (own == code) return {kind, complaint.message, {}, complaint.detail, complaint.hint, {}};
  if (code == "42501")  // who may call what is told by PostgreSQL's own rights
    return {ErrorKind::Usage,
            "this login may not do this",
            {},
            fmt::format("{} at {}", complaint.message, place),
            "the owner of the fleet may, or makes it a login that does: tilewright fleet login",
            {}};
  std::string why = fmt::format("{} ({})", complaint.message, code);
  if (!complaint.detail.empty()) why += ": " + complaint.detail;
  return {ErrorKind::Io,
          fmt::format("PostgreSQL at {} refused a statement", place),
          {},
          why,
          complaint.hint,
          {}};
}

}  // namespace tilewright::postgres
