#include "tilewright/fleet/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tilewright/base/check.h"
#include "tilewright/base/json.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/schema/migrate.h"

namespace tilewright::fleet {
namespace {

/// `SELECT fleet.post($1, $2, $3)`
std::string statement(const std::string& function, size_t parameters) {
  std::string text = "SELECT fleet." + function + "(";
  for (size_t i = 1; i <= parameters; ++i) text += fmt::format("{}${}", i > 1 ? ", " : "", i);
  return text + ")";
}

std::mt19937_64& random_bits() {
  static thread_local std::mt19937_64 bits = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return bits;
}

/// Between half of `seconds` and all of it: clients that lost one server do not come back at once.
double jittered(double seconds) {
  return seconds * std::uniform_real_distribution<>(.5, 1)(random_bits());
}

constexpr double kConnectFirst = .5, kConnectLongest = 30;  ///< seconds between attempts to connect
constexpr double kTellEvery = 4;                            ///< seconds
constexpr double kNap = .05;  ///< seconds until a pause asks whether it shall stop

}  // namespace

Result<std::unique_ptr<Client>> Client::open(const std::string& url, Patience patience) {
  std::unique_ptr<Client> client(new Client(url, {}));
  TW_TRY_STATUS(client->connect());
  client->patience_ = std::move(patience);
  return client;
}

std::unique_ptr<Client> Client::reopen(const std::string& url, Patience patience) {
  return std::unique_ptr<Client>(new Client(url, std::move(patience)));
}

Status Client::connect() {
  auto connection = TW_TRY(postgres::Connection::open(url_));
  if (limit_) connection->answer_within(*limit_);
  TW_TRY_STATUS(check(TW_TRY(state(*connection))));
  for (const std::string& channel : channels_) hears_ = TW_TRY(connection->listen(channel));
  connection_ = std::move(connection);
  return {};
}

void Client::answer_within(double seconds) {
  limit_ = seconds;
  if (connection_ != nullptr) connection_->answer_within(seconds);
}

void Client::listen(const std::string& channel) {
  channels_.push_back(channel);
  if (connection_ != nullptr && !connection_->lost())
    hears_ = connection_->listen(channel).value_or(false);
}

void Client::tell(const std::string& function, const std::vector<postgres::Parameter>& parameters) {
  if (!hears_ || connection_ == nullptr || connection_->lost())
    (void)call(function, parameters);
  else
    (void)connection_->tell(statement(function, parameters.size()), parameters);
}

bool Client::wait(double seconds) {
  const auto begin = SteadyClock::now();
  for (double left = seconds; left > 0 && !(patience_.stop && patience_.stop());
       left = seconds - seconds_since(begin)) {
    const double nap = std::min(left, kNap);
    if (channels_.empty() || connection_ == nullptr || connection_->lost())
      std::this_thread::sleep_for(std::chrono::duration<double>(nap));
    else if (connection_->wait_for_notification(nap).value_or(false))
      return true;
  }
  return false;
}

template <class T>
Result<T> Client::repeat(const std::function<Result<T>()>& once) {
  const auto start = SteadyClock::now();
  double pause = kConnectFirst, told = 0, counted = 0;
  for (;;) {
    Status ready;
    if (connection_ == nullptr || connection_->lost()) ready = connect();
    Result<T> result = ready ? once() : Result<T>(tl::unexpected<Error>(ready.error()));
    if (result || result.error().kind != ErrorKind::Unreachable) return result;
    const double waited = seconds_since(start);
    if (waited >= patience_.seconds || (patience_.stop && patience_.stop())) return result;
    if (patience_.waiting && waited - told >= kTellEvery) {
      patience_.waiting(waited, result.error());
      told = waited;
    }
    const double rest = std::min(jittered(pause), patience_.seconds - waited);
    away_ += waited + rest - counted;
    counted = waited + rest;
    // In short naps, so that a stop is noticed.
    for (const auto nap = SteadyClock::now(); seconds_since(nap) < rest;) {
      if (patience_.stop && patience_.stop()) return result;
      std::this_thread::sleep_for(std::chrono::duration<double>(kNap));
    }
    pause = std::min(2 * pause, kConnectLongest);
  }
}

Result<nlohmann::json> Client::call(const std::string& function,
                                    const std::vector<postgres::Parameter>& parameters) {
  return repeat<nlohmann::json>([&]() -> Result<nlohmann::json> {
    const postgres::Rows rows =
        TW_TRY(connection_->query(statement(function, parameters.size()), parameters));
    if (rows.empty() || rows[0].empty() || !rows[0][0] || rows[0][0]->empty())
      return nlohmann::json();
    const std::string& text = *rows[0][0];
    if (text == "t" || text == "f") return nlohmann::json(text == "t");  // a boolean of SQL
    nlohmann::json value = parse_json(text, std::nothrow);
    // A plain text, as some functions return.
    return value.is_discarded() ? nlohmann::json(text) : value;
  });
}

Result<std::string> Client::bytes(const std::string& function,
                                  const std::vector<postgres::Parameter>& parameters) {
  return repeat<std::string>(
      [&] { return connection_->query_bytes(statement(function, parameters.size()), parameters); });
}

std::string new_uuid() {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  const uint64_t a = random_bits()(), b = random_bits()();
  return fmt::format("{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}", (now >> 16) & 0xffffffff, now & 0xffff,
                     a & 0xfff, 0x8000 | (b & 0x3fff), (a >> 16) & 0xffffffffffff);
}

}  // namespace tilewright::fleet
