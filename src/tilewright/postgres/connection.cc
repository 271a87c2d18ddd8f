#include "tilewright/postgres/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "tilewright/postgres/address.h"
#include "tilewright/postgres/failure.h"

namespace tilewright::postgres {
namespace {

constexpr unsigned kBytea = 17;        ///< its number among the types of every server
constexpr double kConnectLimit = 10;   ///< units: s
constexpr double kScriptLimit = 3600;  ///< units: s
constexpr int kAttempts = 6;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Waits for one of `events` at a socket; 0: it did not happen before `end`.
int wait_at(int socket, int events, double end) {
  pollfd entry{socket, static_cast<short>(events), 0};
  const double left = std::ceil(std::max(end - now(), 0.0) * 1e3);
  const int ready = ::poll(&entry, 1, static_cast<int>(std::min(left, 1e6)));
  return ready > 0 ? entry.revents : 0;
}

/// Connects, step by step as libpq asks for it. False: `end` came first.
bool connect(const Libpq& pq, PGconn* connection, double end) {
  int events = POLLOUT;
  while (pq.status(connection) != CONNECTION_BAD) {
    // A signal ends a wait early.
    if (wait_at(pq.socket(connection), events, end) == 0) {
      if (now() >= end) return false;
      continue;
    }
    const PostgresPollingStatusType step = pq.connectPoll(connection);
    if (step == PGRES_POLLING_OK || step == PGRES_POLLING_FAILED) return true;
    events = step == PGRES_POLLING_READING ? POLLIN : POLLOUT;
  }
  return true;
}

/// Whether who has not answered yet answers an empty line with what PostgreSQL never says: a web
/// server waits for lines. Only for a connection that is given up: the line spoils it.
bool waits_for_lines(int socket) {
  constexpr std::string_view kLines = "\r\n\r\n", kFirstBytes = "RESNv";
  char first = 0;
  return ::send(socket, kLines.data(), kLines.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0 &&
         wait_at(socket, POLLIN, now() + .5) != 0 && ::recv(socket, &first, 1, MSG_DONTWAIT) == 1 &&
         kFirstBytes.find(first) == kFirstBytes.npos;
}

std::string field_of(const Libpq& pq, const PGresult* result, int field) {
  const char* text = pq.resultErrorField(result, field);
  return text == nullptr ? "" : text;
}

}  // namespace

bool is_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

/// Parameters as libpq takes them.
struct Connection::Arguments {
  explicit Arguments(const std::vector<Parameter>& parameters) : texts(parameters.size()) {
    for (size_t i = 0; i < parameters.size(); ++i) add(parameters[i], texts[i]);
  }
  void add(const Parameter& parameter, std::string& text) {
    const Bytes* bytes = std::get_if<Bytes>(&parameter);
    if (const auto* given = std::get_if<std::string>(&parameter)) text = *given;
    if (const auto* whole = std::get_if<int64_t>(&parameter)) text = std::to_string(*whole);
    if (const auto* number = std::get_if<double>(&parameter)) text = fmt::format("{}", *number);
    if (const auto* truth = std::get_if<bool>(&parameter)) text = *truth ? "t" : "f";
    values.push_back(bytes != nullptr ? bytes->data.data() != nullptr ? bytes->data.data() : ""
                     : std::holds_alternative<std::nullptr_t>(parameter) ? nullptr
                                                                         : text.c_str());
    types.push_back(bytes != nullptr ? kBytea : 0);
    lengths.push_back(bytes != nullptr ? static_cast<int>(bytes->data.size()) : 0);
    formats.push_back(bytes != nullptr ? 1 : 0);
  }
  std::vector<std::string> texts;
  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> lengths, formats;
};

void Connection::Clear::operator()(pg_result* result) const { pq->clear(result); }

Result<std::unique_ptr<Connection>> Connection::open(const std::string& url, double limit) {
  const double start = now();
  if (is_url(url) && has_password(url)) return tl::unexpected<Error>(password_in_url());
  const Libpq* pq = TW_TRY(libpq());
  const Address address = TW_TRY(address_of(*pq, url));
  if (limit == 0) limit = address.connect_seconds > 0 ? address.connect_seconds : kConnectLimit;
  std::vector<const char*> names, values;
  for (const auto& [name, value] : address.options) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  std::unique_ptr<Connection> made(
      new Connection(pq, pq->connectStartParams(names.data(), values.data(), 0)));
  made->place_ = address.place;
  pq->setErrorVerbosity(made->handle_, PQERRORS_VERBOSE);  // with codes
  pq->setNoticeProcessor(made->handle_, [](void*, const char*) {}, nullptr);
  if (!connect(*pq, made->handle_, start + limit)) {
    if (waits_for_lines(pq->socket(made->handle_)))
      return fail(ErrorKind::Unreachable,
                  fmt::format("what answers at {} is not PostgreSQL", address.place),
                  "it waits for lines, as a web server does", "check host and port");
    return fail(ErrorKind::Unreachable,
                fmt::format("{} does not answer within {:g} s", address.place, limit), "",
                "check host and port, and firewalls between");
  }
  if (pq->status(made->handle_) != CONNECTION_OK)
    return tl::unexpected<Error>(connect_failure(address, pq->errorMessage(made->handle_),
                                                 pq->connectionNeedsPassword(made->handle_) != 0));
  pq->setnonblocking(made->handle_, 1);
  return made;
}

Connection::~Connection() { pq_->finish(handle_); }

tl::unexpected<Error> Connection::lose(const std::string& why) {
  lost_ = true;
  return tl::unexpected<Error>(statement_failure({"", reason_of(why), "", ""}, place_));
}

bool Connection::broken_off() const {
  return code_ == "40P01" || code_ == "40001" || code_ == "55P03";
}

Status Connection::wait(int events, double end) {
  while (wait_at(pq_->socket(handle_), events, end) == 0)
    if (now() >= end) return lose("the server does not answer");
  if (pq_->consumeInput(handle_) == 0) return lose(pq_->errorMessage(handle_));
  return {};
}

Status Connection::send(const std::string& sql, const Arguments* arguments, int format) {
  const int sent =
      arguments == nullptr
          ? pq_->sendQuery(handle_, sql.c_str())
          : pq_->sendQueryParams(handle_, sql.c_str(), static_cast<int>(arguments->values.size()),
                                 arguments->types.data(), arguments->values.data(),
                                 arguments->lengths.data(), arguments->formats.data(), format);
  return sent != 0 ? Status() : lose(pq_->errorMessage(handle_));
}

Status Connection::flush(double end) {
  for (int left; (left = pq_->flush(handle_)) != 0;) {
    if (left < 0) return lose(pq_->errorMessage(handle_));
    TW_TRY_STATUS(wait(POLLIN | POLLOUT, end));
  }
  return {};
}

/// The last result, or the first that is an error.
Result<Connection::Answer> Connection::receive(double end) {
  TW_TRY_STATUS(flush(end));
  Answer answer(nullptr, Clear{pq_});
  for (bool failed = false;;) {
    while (pq_->isBusy(handle_) != 0) {
      const Status more = wait(POLLIN, end);
      if (more) continue;
      if (failed) return answer;  // the server's last words
      return tl::unexpected<Error>(more.error());
    }
    Answer next(pq_->getResult(handle_), Clear{pq_});
    if (next == nullptr) break;
    if (!failed) answer = std::move(next);
    failed = failed || pq_->resultStatus(answer.get()) == PGRES_FATAL_ERROR;
  }
  if (answer == nullptr) return lose(pq_->errorMessage(handle_));
  return answer;
}

Result<Connection::Answer> Connection::ask_once(const std::string& sql, const Arguments* arguments,
                                                int format) {
  code_.clear();
  if (lost_) return lose("it was lost before");
  if (std::exchange(told_, false)) TW_TRY(receive(now() + limit_));
  TW_TRY_STATUS(send(sql, arguments, format));
  Answer answer = TW_TRY(receive(now() + (arguments == nullptr ? kScriptLimit : limit_)));
  const ExecStatusType status = pq_->resultStatus(answer.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_EMPTY_QUERY)
    return answer;
  code_ = field_of(*pq_, answer.get(), PG_DIAG_SQLSTATE);
  lost_ = lost_ || pq_->status(handle_) == CONNECTION_BAD;
  const Complaint complaint{lost_ ? "" : code_,
                            field_of(*pq_, answer.get(), PG_DIAG_MESSAGE_PRIMARY),
                            field_of(*pq_, answer.get(), PG_DIAG_MESSAGE_DETAIL),
                            field_of(*pq_, answer.get(), PG_DIAG_MESSAGE_HINT)};
  return tl::unexpected<Error>(statement_failure(complaint, place_));
}

Result<Connection::Answer> Connection::ask(const std::string& sql,
                                           const std::vector<Parameter>* parameters, int format) {
  std::optional<Arguments> arguments;
  if (parameters != nullptr) arguments.emplace(*parameters);
  const bool alone = pq_->transactionStatus(handle_) == PQTRANS_IDLE;
  for (int attempt = 1;; ++attempt) {
    Result<Answer> answer = ask_once(sql, arguments ? &*arguments : nullptr, format);
    if (answer || !alone || attempt == kAttempts || !broken_off()) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(5 << attempt));
  }
}

Status Connection::tell(const std::string& sql, const std::vector<Parameter>& parameters) {
  if (lost_) return lose("it was lost before");
  if (std::exchange(told_, false)) TW_TRY(receive(now() + limit_));
  const Arguments arguments(parameters);
  TW_TRY_STATUS(send(sql, &arguments, 0));
  told_ = true;
  return flush(now() + limit_);
}

Result<Rows> Connection::query(const std::string& sql, const std::vector<Parameter>& parameters) {
  const Answer answer = TW_TRY(ask(sql, &parameters, 0));
  Rows rows(static_cast<size_t>(pq_->ntuples(answer.get())));
  for (int r = 0; r < pq_->ntuples(answer.get()); ++r)
    for (int c = 0; c < pq_->nfields(answer.get()); ++c) {
      auto& value = rows[static_cast<size_t>(r)].emplace_back();
      if (pq_->getisnull(answer.get(), r, c) == 0)
        value.emplace(pq_->getvalue(answer.get(), r, c),
                      static_cast<size_t>(pq_->getlength(answer.get(), r, c)));
    }
  return rows;
}

Result<std::string> Connection::query_bytes(const std::string& sql,
                                            const std::vector<Parameter>& parameters) {
  const Answer answer = TW_TRY(ask(sql, &parameters, 1));
  if (pq_->ntuples(answer.get()) == 0 || pq_->nfields(answer.get()) == 0) return std::string();
  return std::string(pq_->getvalue(answer.get(), 0, 0),
                     static_cast<size_t>(pq_->getlength(answer.get(), 0, 0)));
}

Result<bool> Connection::listen(const std::string& channel) {
  // A pooler makes up the number that it tells at the beginning.
  const Rows rows = TW_TRY(query("SELECT pg_backend_pid()"));
  if (rows.at(0).at(0) != std::to_string(pq_->backendPID(handle_))) return false;
  std::string quoted;
  for (const char c : channel) quoted.append(c == '"' ? 2 : 1, c);
  TW_TRY(query("LISTEN \"" + quoted + "\""));
  return true;
}

Result<bool> Connection::wait_for_notification(double seconds) {
  for (const double end = now() + seconds;;) {
    if (lost_) return lose("it was lost before");
    bool told = false;
    while (PGnotify* notification = pq_->notifies(handle_)) {
      pq_->freemem(notification);
      told = true;
    }
    if (told) return true;
    if (wait_at(pq_->socket(handle_), POLLIN, end) == 0) {
      if (now() >= end) return false;
    } else if (pq_->consumeInput(handle_) == 0) {
      return lose(pq_->errorMessage(handle_));
    }
  }
}

Status Connection::execute_script(const std::string& sql) {
  TW_TRY(ask(sql, nullptr, 0));
  return {};
}

}  // namespace tilewright::postgres
