#include "tilewright/driver/fleet/runner_device.h"

#include <fmt/format.h>

#include <string_view>

#include "tilewright/base/names.h"

namespace tilewright::driver {
namespace {

constexpr std::string_view kRunner = "runner:", kSsh = "ssh:";
/// It asks for no password, since nobody is there to answer, and notices within 15 s that a board
/// is not there, or no longer.
constexpr const char* kSshOptions =
    "-T -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=5 -o ServerAliveCountMax=3";

}  // namespace

bool is_runner(const std::string& device) { return device.starts_with(kRunner); }

std::vector<std::string> runner_command(const std::string& device) {
  return split_words(device.substr(kRunner.size()));
}

bool leads_elsewhere(const std::vector<std::string>& command) {
  if (command.empty()) return false;
  const std::string& program = command[0];
  return program.substr(program.rfind('/') + 1) == "ssh";  // npos + 1 is 0
}

Result<std::string> as_runner(const std::string& device) {
  if (!device.starts_with(kSsh)) return device;
  const std::string board = device.substr(kSsh.size());
  if (board.empty() || board[0] == '-' || board.find_first_of(" \t\n") != std::string::npos)
    return fail(
        ErrorKind::Usage, fmt::format("'{}' names no board", device), {},
        "ssh:board or ssh:user@board, as `ssh` knows it; with a port or another path there: "
        "'runner:ssh -p 2222 board /opt/tilewright-runner'");
  return fmt::format("{}ssh {} {} tilewright-runner", kRunner, kSshOptions, board);
}

}  // namespace tilewright::driver
