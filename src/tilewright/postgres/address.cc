#include "tilewright/postgres/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "tilewright/base/names.h"

namespace tilewright::postgres {
namespace {

using Options = std::unique_ptr<PQconninfoOption, decltype(&::PQconninfoFree)>;

/// The value of an option; empty without one.
std::string value_of(const Options& options, std::string_view name) {
  for (const PQconninfoOption* option = options.get(); option && option->keyword; ++option)
    if (option->keyword == name && option->val != nullptr) return option->val;
  return "";
}

/// What the URL says. libpq's own text is shown only where it cannot quote a secret.
Result<Options> parse(const Libpq& pq, const std::string& url) {
  char* text = nullptr;
  Options options(pq.conninfoParse(url.c_str(), &text), pq.conninfoFree);
  std::string why = text == nullptr ? "" : text;
  pq.freemem(text);
  if (options != nullptr) return options;
  const size_t query = url.find('?');
  if (url.find('%') != url.npos || (query != url.npos && url.find('@', query) != url.npos))
    why = "";
  if (why.ends_with('\n')) why.pop_back();
  return fail(ErrorKind::Usage, "the store's name is no URL of PostgreSQL", why,
              "postgresql://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...], or "
              "postgresql:///DATABASE?host=FOLDER for a socket");
}

/// All options with which libpq would connect. An impossible value keeps it from doing so: it fills
/// in variables, service files and defaults first.
Options effective(const Libpq& pq, const Address& address) {
  std::vector<const char*> names, values;
  for (const auto& [name, value] : address.options) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.insert(names.end(), {"sslmode", nullptr});
  values.insert(values.end(), {"none", nullptr});
  PGconn* connection = pq.connectStartParams(names.data(), values.data(), 0);
  Options options(pq.conninfo(connection), pq.conninfoFree);
  pq.finish(connection);
  return options;
}

/// `db.lab:5432`, `[::1]:5432`, `the socket /run/.s.PGSQL.5432`.
std::string place_of(const std::string& host, const std::string& port) {
  if (host.starts_with('/')) return fmt::format("the socket {}/.s.PGSQL.{}", host, port);
  if (host.empty()) return "the default socket of libpq";
  return (host.find(':') != host.npos ? "[" + host + "]" : host) + ":" + port;
}

}  // namespace

Error password_in_url() {
  return {ErrorKind::Usage,
          "a password stands in the URL of the store",
          {},
          "arguments and variables of a program are seen by others",
          "leave it out: PGPASSFILE (or ~/.pgpass), PGPASSWORD or a service file has it",
          {}};
}

bool has_password(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const size_t query = std::min(url.find('?', begin), url.size());
  // The last @ counts: a password may have one, or a slash.
  const size_t at = std::string_view(url).substr(0, query).rfind('@');
  const size_t colon = url.find(':', begin);
  return (at != url.npos && colon < at && url[begin] != '[') ||
         lower_case(url).find("password=", query) != url.npos;
}

bool stays_here(const std::string& hosts) {
  std::istringstream list(hosts);
  for (std::string host; std::getline(list, host, ',');) {
    const bool socket = host.empty() || host[0] == '/' || host[0] == '@';
    if (!socket && host != "localhost" && host != "::1" && !host.starts_with("127.")) return false;
  }
  return true;
}

Result<Address> address_of(const Libpq& pq, const std::string& url) {
  if (!url.starts_with("postgresql://") && !url.starts_with("postgres://"))
    return fail(ErrorKind::Usage, "the store's name is no URL of PostgreSQL", "",
                "postgresql://[USER@]HOST[:PORT]/DATABASE");
  if (has_password(url)) return tl::unexpected<Error>(password_in_url());
  const Options given = TW_TRY(parse(pq, url));
  if (!value_of(given, "password").empty() || !value_of(given, "sslpassword").empty() ||
      value_of(given, "user").find(':') != std::string::npos)
    return tl::unexpected<Error>(password_in_url());
  Address address;
  // A peer that is gone shows within half a minute, not within hours.
  address.options = {{"fallback_application_name", "tilewright"},
                     {"keepalives_idle", "10"},
                     {"keepalives_interval", "5"},
                     {"keepalives_count", "3"},
                     {"tcp_user_timeout", "25000"},
                     {"client_encoding", "UTF8"}};
  for (const PQconninfoOption* option = given.get(); option->keyword != nullptr; ++option)
    if (option->val != nullptr) address.options.emplace_back(option->keyword, option->val);
  const Options all = effective(pq, address);
  address.host = value_of(all, "host");
  const std::string numbers = value_of(all, "hostaddr");
  if (address.host.empty()) address.host = numbers;
  address.user = value_of(all, "user");
  address.database = value_of(all, "dbname");
  if (const std::string patience = value_of(all, "connect_timeout"); !patience.empty()) {
    char* end = nullptr;
    address.connect_seconds = std::max(std::strtod(patience.c_str(), &end), 0.0);
    if (*end != 0)
      return fail(ErrorKind::Usage, fmt::format("connect_timeout={} is no number", patience), "",
                  "give seconds, or leave it out of the URL and PGCONNECT_TIMEOUT");
  }
  address.place = place_of(address.host, value_of(all, "port"));
  if (stays_here(numbers.empty() ? address.host : numbers)) return address;
  const std::string mode = value_of(given, "sslmode");
  if (!mode.empty() && mode != "verify-full")
    return fail(
        ErrorKind::Usage, fmt::format("sslmode={} is not enough for another host", mode),
        fmt::format("without verify-full anybody on the way to {} may answer", address.place),
        "leave sslmode out of the URL, or verify-full; sslrootcert=FILE names the "
        "authority that signed the server's certificate");
  address.options.emplace_back("sslmode", "verify-full");
  if (value_of(given, "channel_binding").empty())
    address.options.emplace_back("channel_binding", "require");
  return address;
}

}  // namespace tilewright::postgres
