#include "tilewright/fleet/measure/runner_door.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "tilewright/fleet/pipes.h"

namespace tilewright::fleet {
namespace {

constexpr size_t kMostText = 4096;  ///< of an answer
constexpr double kDoorPatience = 10;

/// One message, with descriptors or without.
bool send_message(int socket, const std::string& text, const std::vector<int>& descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (const size_t bytes = descriptors.size() * sizeof(int); bytes > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  }
  ssize_t sent;
  do sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

struct Message {
  std::string text;
  std::vector<OwnedFd> descriptors;
};
std::optional<Message> receive_message(int socket) {
  Message received{std::string(kMostText, '\0'), {}};
  iovec part{received.text.data(), received.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got <= 0) return std::nullopt;
  received.text.resize(static_cast<size_t>(got));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(header), numbers.size() * sizeof(int));
    for (const int number : numbers) received.descriptors.emplace_back(number);
  }
  return received;
}

/// What is asked for: `start`, or the number of one whose end is to be told.
constexpr const char* kStart = "start";

}  // namespace

Result<std::unique_ptr<RunnerDoor>> RunnerDoor::create(OpenChild child) {
  std::unique_ptr<RunnerDoor> door(new RunnerDoor(std::move(child)));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(ErrorKind::Io, "no pair of sockets can be made", std::strerror(errno));
  door->here_ = OwnedFd(ends[0]);
  door->there_ = OwnedFd(ends[1]);
  door->thread_ = std::thread([it = door.get()] { it->serve(); });
  return door;
}

RunnerDoor::~RunnerDoor() {
  ::shutdown(here_.get(), SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
}

void RunnerDoor::serve() {
  while (const std::optional<Message> asked = receive_message(here_.get())) {
    if (asked->text == kStart)
      start_one();
    else if (!send_message(here_.get(), end_of(std::atoi(asked->text.c_str())), {}))
      return;
  }
}

/// Answers with its number and its descriptors, or with why there is none.
void RunnerDoor::start_one() {
  while (started_.size() >= kMostAtOnce) started_.pop_front();
  Result<RunnerPipes> pipes = RunnerPipes::create();
  auto process = pipes ? child_(pipes->input.get(), pipes->answers.get(), nullptr)
                       : tl::unexpected<Error>(pipes.error());
  if (!process) {
    (void)send_message(here_.get(), to_string(process.error()).substr(0, kMostText), {});
    return;
  }
  started_.push_back({++last_id_, *std::move(process)});
  (void)send_message(here_.get(), std::to_string(last_id_), {pipes->to.get(), pipes->from.get()});
}

std::string RunnerDoor::end_of(int id) {
  const auto found = std::find_if(started_.begin(), started_.end(),
                                  [&](const Started& one) { return one.id == id; });
  if (found == started_.end()) return "it is not known any more";
  const Result<ToolResult> ended = found->process->end(kDoorPatience);
  started_.erase(found);
  const std::string text = ended ? ending_of(*ended).reason : to_string(ended.error());
  return text.empty() ? "it ended" : text.substr(0, kMostText);
}

Result<DoorRunner> ask_for_runner(int door) {
  const auto none = [](std::string why) {
    return fail(ErrorKind::Device, "the runner cannot be started", std::move(why));
  };
  if (!send_message(door, kStart, {})) return none("the worker does not answer");
  std::optional<Message> answer = receive_message(door);
  if (!answer) return none("the worker does not answer");
  if (answer->descriptors.size() != 2) return none(answer->text);
  return DoorRunner{std::atoi(answer->text.c_str()),
                    RunnerLink(answer->descriptors[0].release(), answer->descriptors[1].release())};
}

std::string ask_how_it_ended(int door, int id) {
  if (!send_message(door, std::to_string(id), {})) return "";
  const std::optional<Message> answer = receive_message(door);
  return answer ? answer->text : "";
}

}  // namespace tilewright::fleet
