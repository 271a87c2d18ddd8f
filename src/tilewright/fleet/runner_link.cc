#include "tilewright/fleet/runner_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "tilewright/base/json.h"
#include "tilewright/base/stopwatch.h"
#include "tilewright/fleet/schema/migrate.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr int kSliceMs = 20;  ///< between looks at `stop`

/// One request and its answer.
class Exchange {
 public:
  Exchange(int to, int from, double limit_s, const std::function<bool()>& stop)
      : to_(to), from_(from), limit_s_(limit_s), stop_(stop) {}

  tl::expected<void, Silence> send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::write(to_, bytes.data(), bytes.size());
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        if (const auto ready = wait(to_, POLLOUT); !ready) return ready;
      } else {
        return tl::unexpected(Silence::Gone);
      }
    }
    return {};
  }

  /// Up to the end of a line, which has at most `most` bytes.
  tl::expected<std::string, Silence> line(size_t most) {
    for (size_t seen = 0;;) {
      const size_t end = text_.find('\n', seen);
      if (end != text_.npos) return take(end + 1);
      if (text_.size() > most) return tl::unexpected(Silence::Nonsense);
      seen = text_.size();
      if (const auto more = read_more(64 << 10); !more) return tl::unexpected(more.error());
    }
  }

  tl::expected<std::string, Silence> bytes(size_t count) {
    while (text_.size() < count)
      if (const auto more = read_more(std::max<size_t>(64 << 10, count - text_.size())); !more)
        return tl::unexpected(more.error());
    return take(count);
  }

  /// Whether all that was sent was read.
  bool done() const { return text_.empty(); }

 private:
  tl::expected<void, Silence> wait(int descriptor, short events) {
    for (;;) {
      if (stop_ && stop_()) return tl::unexpected(Silence::Stopped);
      if (seconds_since(begin_) > limit_s_) return tl::unexpected(Silence::TimedOut);
      pollfd watched{descriptor, events, 0};
      if (::poll(&watched, 1, kSliceMs) > 0) return {};
    }
  }

  tl::expected<void, Silence> read_more(size_t most) {
    constexpr size_t kChunk = 1 << 20;
    if (const auto ready = wait(from_, POLLIN); !ready) return ready;
    const size_t before = text_.size();
    text_.resize(before + std::min(most, kChunk));
    const ssize_t got = ::read(from_, text_.data() + before, text_.size() - before);
    text_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
      return tl::unexpected(Silence::Gone);
    return {};
  }

  std::string take(size_t count) {
    std::string taken = text_.substr(0, count);
    text_.erase(0, count);
    return taken;
  }

  int to_, from_;
  double limit_s_;
  const std::function<bool()>& stop_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  std::string text_;
};

/// The sizes of the outputs that a reply lists.
std::optional<std::vector<size_t>> output_sizes(const Json& reply) {
  const Json listed = reply.value("outputs", Json());
  if (!listed.is_array() || listed.size() > RunnerLink::kMostOutputs) return std::nullopt;
  std::vector<size_t> sizes;
  size_t sum = 0;
  for (const Json& output : listed) {
    if (!output.is_object() || !output.contains("bytes") || !output["bytes"].is_number_unsigned())
      return std::nullopt;
    sizes.push_back(output["bytes"].get<size_t>());
    if (sizes.back() > RunnerLink::kMostOutputBytes - sum) return std::nullopt;
    sum += sizes.back();
  }
  return sizes;
}

tl::expected<RunnerAnswer, Silence> read_answer(Exchange& exchange) {
  const auto line = exchange.line(RunnerLink::kMostReply);
  if (!line) return tl::unexpected(line.error());
  RunnerAnswer answer{parse_json(*line, std::nothrow), {}};
  const Json& reply = answer.reply;
  if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean())
    return tl::unexpected(Silence::Nonsense);
  if (reply["ok"].get<bool>()) {
    const auto sizes = output_sizes(reply);
    if (!sizes) return tl::unexpected(Silence::Nonsense);
    for (const size_t size : *sizes) {
      auto bytes = exchange.bytes(size);
      if (!bytes) return tl::unexpected(bytes.error());
      answer.outputs.push_back(*std::move(bytes));
    }
  }
  if (!exchange.done()) return tl::unexpected(Silence::Nonsense);
  return answer;
}

/// That the package has arrived, at a runner of this version.
tl::expected<void, Silence> read_receipt(Exchange& exchange) {
  const auto line = exchange.line(RunnerLink::kMostReply);
  if (!line)
    return tl::unexpected(line.error() == Silence::Nonsense ? Silence::OtherVersion : line.error());
  const Json receipt = parse_json(*line, std::nothrow);
  if (receipt.is_object() && receipt.value("runner", Json()) == program_version()) return {};
  return tl::unexpected(Silence::OtherVersion);
}

}  // namespace

RunnerLink::RunnerLink(int to, int from) : to_(to), from_(from) {
  ::signal(SIGPIPE, SIG_IGN);
  for (const int end : {to_, from_}) ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
}

RunnerLink::RunnerLink(RunnerLink&& other) noexcept
    : to_(std::exchange(other.to_, -1)),
      from_(std::exchange(other.from_, -1)),
      given_(std::move(other.given_)),
      received_(other.received_) {}

RunnerLink::~RunnerLink() {
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0 && from_ != to_) ::close(from_);
}

void RunnerLink::give(Json how, std::string package) {
  how["package"] = package.size();
  given_ = json_text(how) + "\n" + std::move(package);
  received_ = false;
}

tl::expected<RunnerAnswer, Silence> RunnerLink::ask(Json job,
                                                    const std::vector<std::string>& inputs,
                                                    double limit_s,
                                                    const std::function<bool()>& stop) {
  Json& sizes = job["inputs"] = Json::array();
  for (const std::string& input : inputs) sizes.push_back(input.size());
  Exchange exchange(to_, from_, limit_s, stop);
  auto sent = exchange.send(given_).and_then([&] { return exchange.send(json_text(job) + "\n"); });
  for (size_t i = 0; i < inputs.size() && sent; ++i) sent = exchange.send(inputs[i]);
  given_ = {};
  // One that is gone may have said before that it has the package.
  if (!received_ && (sent || sent.error() == Silence::Gone)) {
    if (const auto receipt = read_receipt(exchange); !receipt)
      return tl::unexpected(receipt.error());
    received_ = true;
  }
  if (!sent) return tl::unexpected(sent.error());
  return read_answer(exchange);
}

tl::unexpected<Error> refused_by_runner(Silence why, const std::string& end) {
  switch (why) {
    case Silence::OtherVersion:
    case Silence::Nonsense:
      return fail(ErrorKind::Device, "the runner's answer is that of another version or program",
                  fmt::format("tilewright-runner {} must be on the device, and a login there must "
                              "print nothing",
                              program_version()));
    case Silence::TimedOut:
      return fail(ErrorKind::Limit, "the runner did not take the package in time", end);
    default:
      return fail(ErrorKind::Device, "the runner did not take the package", end,
                  "start the worker anew: it says what is wrong with the runner");
  }
}

}  // namespace tilewright::fleet
