#include "tilewright/fleet/open_package.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "tilewright/base/json.h"
#include "tilewright/base/stopwatch.h"

namespace tilewright::fleet {
namespace {

using Json = nlohmann::json;

constexpr int kSliceMs = 20;          ///< between looks at `stop`
constexpr double kLeaveSeconds = 10;  ///< from the end of a child's socket to its own

/// Why talking to a child ended before its answer.
enum class Silence { Stopped, TimedOut, Gone, Nonsense };

/// One request and its answer.
class Exchange {
 public:
  Exchange(int socket, double limit_s, const std::function<bool()>& stop)
      : socket_(socket), limit_s_(limit_s), stop_(stop) {}

  tl::expected<void, Silence> send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<size_t>(sent));
      } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        if (const auto ready = wait(POLLOUT); !ready) return ready;
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
  tl::expected<void, Silence> wait(short events) {
    for (;;) {
      if (stop_ && stop_()) return tl::unexpected(Silence::Stopped);
      if (seconds_since(begin_) > limit_s_) return tl::unexpected(Silence::TimedOut);
      pollfd watched{socket_, events, 0};
      if (::poll(&watched, 1, kSliceMs) > 0) return {};
    }
  }

  tl::expected<void, Silence> read_more(size_t most) {
    constexpr size_t kChunk = 1 << 20;
    if (const auto ready = wait(POLLIN); !ready) return ready;
    const size_t before = text_.size();
    text_.resize(before + std::min(most, kChunk));
    const ssize_t got = ::recv(socket_, text_.data() + before, text_.size() - before, MSG_DONTWAIT);
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

  int socket_;
  double limit_s_;
  const std::function<bool()>& stop_;
  SteadyClock::time_point begin_ = SteadyClock::now();
  std::string text_;
};

/// The sizes of the outputs that a reply lists.
std::optional<std::vector<size_t>> output_sizes(const Json& reply) {
  const Json listed = reply.value("outputs", Json());
  if (!listed.is_array() || listed.size() > OpenPackage::kMostOutputs) return std::nullopt;
  std::vector<size_t> sizes;
  size_t sum = 0;
  for (const Json& output : listed) {
    if (!output.is_object() || !output.contains("bytes") || !output["bytes"].is_number_unsigned())
      return std::nullopt;
    sizes.push_back(output["bytes"].get<size_t>());
    if (sizes.back() > OpenPackage::kMostOutputBytes - sum) return std::nullopt;
    sum += sizes.back();
  }
  return sizes;
}

tl::expected<OpenRun, Silence> talk(Exchange& exchange, const Json& job,
                                    const std::vector<std::string>& inputs) {
  if (const auto sent = exchange.send(json_text(job) + "\n"); !sent)
    return tl::unexpected(sent.error());
  for (const std::string& input : inputs)
    if (const auto sent = exchange.send(input); !sent) return tl::unexpected(sent.error());
  const auto line = exchange.line(OpenPackage::kMostReply);
  if (!line) return tl::unexpected(line.error());
  OpenRun run{{"ok", ""}, parse_json(*line, std::nothrow), {}};
  if (!run.reply.is_object() || !run.reply.contains("ok") || !run.reply["ok"].is_boolean())
    return tl::unexpected(Silence::Nonsense);
  if (run.reply["ok"].get<bool>()) {
    const auto sizes = output_sizes(run.reply);
    if (!sizes) return tl::unexpected(Silence::Nonsense);
    for (const size_t size : *sizes) {
      auto bytes = exchange.bytes(size);
      if (!bytes) return tl::unexpected(bytes.error());
      run.outputs.push_back(*std::move(bytes));
    }
  }
  if (!exchange.done()) return tl::unexpected(Silence::Nonsense);
  return run;
}

}  // namespace

Result<std::unique_ptr<OpenPackage>> OpenPackage::start(const OpenChild& child,
                                                        const ConfinedProcess::Prepare& prepare) {
  std::unique_ptr<OpenPackage> package(new OpenPackage);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorKind::Io, "no pair of sockets can be made", std::strerror(errno));
  package->socket_ = ends[0];
  auto started = child(ends[1], prepare);
  ::close(ends[1]);
  package->process_ = TW_TRY(std::move(started));
  return package;
}

OpenPackage::~OpenPackage() {
  if (socket_ >= 0) ::close(socket_);
}

Result<OpenRun> OpenPackage::run(Json job, const std::vector<std::string>& inputs, double limit_s,
                                 const std::function<bool()>& stop) {
  job["inputs"] = Json::array();
  for (const std::string& input : inputs) job["inputs"].push_back(input.size());
  const auto begin = SteadyClock::now();
  Exchange exchange(socket_, limit_s, stop);
  auto answered = talk(exchange, job, inputs);
  if (answered) return *std::move(answered);
  const std::unique_ptr<ConfinedProcess> ending = std::move(process_);
  const Silence why = answered.error();
  ToolResult ended = TW_TRY(ending->end(why == Silence::Gone ? kLeaveSeconds : 0));
  OpenRun run;
  ended.timed_out = why == Silence::TimedOut;
  ended.seconds = seconds_since(begin);
  run.end = ending_of(ended);
  if (why == Silence::Nonsense) run.end = {"invalid", "its answer is none"};
  if (run.end.outcome == "ok") run.end = {"invalid", "it left no answer"};
  return run;
}

}  // namespace tilewright::fleet
