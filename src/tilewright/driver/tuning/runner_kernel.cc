#include "tilewright/driver/tuning/runner_kernel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string_view>

#include "tilewright/base/file.h"
#include "tilewright/base/json.h"
#include "tilewright/base/names.h"
#include "tilewright/base/npy.h"
#include "tilewright/base/process.h"
#include "tilewright/compile/compile.h"
#include "tilewright/compile/cpu/shared_code.h"
#include "tilewright/measure/job.h"

namespace tilewright::driver {
namespace {

constexpr std::string_view kRunner = "runner:";
constexpr size_t kMostReplyLine = 256 << 10, kMostReplyBytes = size_t{1} << 30;
constexpr int64_t kMostRunsAtOnce = 4000;  ///< that a runner lists

/// A program whose stdin and stdout are pipes: a sandbox allows no sockets. It ends with this
/// process; while that lives, the end of its input is what ends it.
class RunnerProcess {
 public:
  static Result<std::unique_ptr<RunnerProcess>> start(std::vector<std::string> argv) {
    std::unique_ptr<RunnerProcess> process(new RunnerProcess);
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0)
      return fail(ErrorKind::Io, "no pipe can be made", std::strerror(errno));
    process->to_ = to[1];
    if (::pipe2(from, O_CLOEXEC) != 0) {
      ::close(to[0]);
      return fail(ErrorKind::Io, "no pipe can be made", std::strerror(errno));
    }
    process->from_ = from[0];
    ::signal(SIGPIPE, SIG_IGN);  // one that has ended is an error of writing
    std::vector<char*> words;
    for (std::string& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    process->pid_ = ::fork();
    if (process->pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::signal(SIGPIPE, SIG_DFL);
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      // It is not to keep the files of measuring open when this process has ended.
      for (const int file : {measure::kJobsFile, measure::kTurnFile, measure::kResultsFile})
        ::close(file);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    if (process->pid_ < 0)
      return fail(ErrorKind::Device, "the runner cannot be started", std::strerror(errno));
    return process;
  }
  ~RunnerProcess() {
    for (const int end : {to_, from_})
      if (end >= 0) ::close(end);
    if (pid_ > 0) (void)ended();
  }
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  Status send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::write(to_, bytes.data(), bytes.size());
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return gone();
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return {};
  }
  /// Up to the end of a line.
  Result<std::string> line() {
    for (size_t seen = 0;;) {
      const size_t end = text_.find('\n', seen);
      if (end != text_.npos) return take(end + 1);
      if (text_.size() > kMostReplyLine) return no_answer();
      seen = text_.size();
      TW_TRY_STATUS(receive(1 << 16));
    }
  }
  Result<std::string> bytes(size_t count) {
    while (text_.size() < count)
      TW_TRY_STATUS(receive(std::max<size_t>(1 << 16, count - text_.size())));
    return take(count);
  }
  static tl::unexpected<Error> no_answer() {
    return fail(ErrorKind::Device, "the runner's answer is none", {},
                "a tilewright-runner of this program's version");
  }

 private:
  RunnerProcess() = default;

  Status receive(size_t most) {
    const size_t before = text_.size();
    text_.resize(before + most);
    ssize_t got;
    do {
      got = ::read(from_, text_.data() + before, most);
    } while (got < 0 && errno == EINTR);
    text_.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return got > 0 ? Status() : gone();
  }
  std::string take(size_t count) {
    std::string taken = text_.substr(0, count);
    text_.erase(0, count);
    return taken;
  }
  /// Its status, as waitpid gives it.
  int ended() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  tl::unexpected<Error> gone() {
    const int status = pid_ > 0 ? ended() : 0;
    const std::string how = WIFSIGNALED(status)
                                ? fmt::format("by signal {}", WTERMSIG(status))
                                : fmt::format("with status {}", WEXITSTATUS(status));
    return fail(ErrorKind::Device, "the runner ended " + how);
  }

  int to_ = -1, from_ = -1;
  pid_t pid_ = -1;
  std::string text_;  ///< has arrived
};

Shape shape_of(const Param& param) {
  Shape shape;
  for (const Expr& extent : param.buffer.shape()) shape.push_back(as_int(extent).value_or(0));
  return shape;
}

class RunnerKernel final : public measure::DeviceKernel {
 public:
  RunnerKernel(const Func& func, std::unique_ptr<RunnerProcess> process)
      : process_(std::move(process)) {
    for (size_t i = 0; i < func.params.size(); ++i) {
      const Param& param = func.params[i];
      if (param.values) continue;
      (param.mode == ParamMode::Out ? results_ : inputs_).push_back({i, shape_of(param)});
    }
  }

  Status write(const std::vector<Array>& operands) override {
    sent_.clear();
    for (const Operand& input : inputs_)
      sent_.push_back(TW_TRY(npy_bytes(operands[input.index].reshaped(input.shape))));
    return {};
  }

  Result<double> run(int64_t calls) override {
    nlohmann::json request = {
        {"warmup", 0}, {"runs", std::min(calls, kMostRunsAtOnce)}, {"seconds", 0}};
    nlohmann::json& sizes = request["inputs"] = nlohmann::json::array();
    for (const std::string& bytes : sent_) sizes.push_back(bytes.size());
    TW_TRY_STATUS(process_->send(json_text(request) + "\n"));
    for (const std::string& bytes : sent_) TW_TRY_STATUS(process_->send(bytes));
    const nlohmann::json reply = parse_json(TW_TRY(process_->line()), std::nothrow);
    try {
      if (!reply.at("ok").get<bool>())
        return fail(ErrorKind::Device, "the runner does not run it",
                    reply.at("error").get<std::string>());
      answered_.clear();
      if (reply.at("outputs").size() != results_.size()) return RunnerProcess::no_answer();
      for (const nlohmann::json& output : reply.at("outputs")) {
        const auto size = output.at("bytes").get<size_t>();
        if (size > kMostReplyBytes) return RunnerProcess::no_answer();
        answered_.push_back(TW_TRY(process_->bytes(size)));
      }
      const auto times = reply.at("run_ns").get<std::vector<double>>();
      if (times.empty()) return RunnerProcess::no_answer();
      return std::accumulate(times.begin(), times.end(), 0.) / static_cast<double>(times.size());
    } catch (const nlohmann::json::exception&) {
      return RunnerProcess::no_answer();
    }
  }

  Status read(std::vector<Array>& operands) override {
    for (size_t i = 0; i < results_.size(); ++i) {
      Array& into = operands[results_[i].index];
      const Array value = TW_TRY(parse_npy(answered_.at(i), "a result"));
      if (value.dtype() != into.dtype() || value.bytes() != into.bytes())
        return RunnerProcess::no_answer();
      std::memcpy(into.data(), value.data(), static_cast<size_t>(value.bytes()));
    }
    return {};
  }

 private:
  struct Operand {
    size_t index;  ///< of the parameter
    Shape shape;
  };

  std::unique_ptr<RunnerProcess> process_;
  std::vector<Operand> inputs_, results_;
  std::vector<std::string> sent_, answered_;  ///< .npy files
};

Status check_parameters(const Func& func) {
  for (const Param& param : func.params) {
    const std::string what = fmt::format("'{}' is not measured behind a runner", func.name);
    const auto refused = [&](const char* why) {
      return fail(ErrorKind::Unsupported, what, fmt::format("'{}' {}", param.buffer.name(), why));
    };
    if (!param.strides.empty()) return refused("is part of a larger buffer");
    if (param.mode == ParamMode::InOut) return refused("is changed in place");
    if (!param.values && param.buffer.dtype() == DType::BF16)
      return refused("is bf16, which no .npy file holds");
  }
  return {};
}

}  // namespace

std::string runner_command(const std::string& device) {
  return device.starts_with(kRunner) ? device.substr(kRunner.size()) : "";
}

Result<std::unique_ptr<measure::DeviceKernel>> load_runner_kernel(const Func& scheduled,
                                                                  const hw::Target& target,
                                                                  int threads,
                                                                  const std::string& device) {
  TW_TRY_STATUS(check_parameters(scheduled));
  compile::CompileOptions options;
  options.target = target;
  options.threads = threads;
  options.jobs = 1;
  options.math = scheduled.math;
  options.use_c = !compile::has_llvm();
  const schedule::Trace as_it_is;
  const compile::CompiledModel model = TW_TRY(compile::compile_func(scheduled, options, &as_it_is));
  const TemporaryFolder folder = TW_TRY(TemporaryFolder::create());
  TW_TRY_STATUS(compile::save_package(folder.file("kernel.twm"), model));
  const std::string package = TW_TRY(read_file(folder.file("kernel.twm")));
  std::vector<std::string> argv = split_words(runner_command(device));
  argv.insert(argv.end(), {"--serve", "-"});
  std::unique_ptr<RunnerProcess> process = TW_TRY(RunnerProcess::start(std::move(argv)));
  const nlohmann::json how = {{"device", "cpu"}, {"threads", threads}, {"package", package.size()}};
  TW_TRY_STATUS(process->send(json_text(how) + "\n"));
  TW_TRY_STATUS(process->send(package));
  return std::make_unique<RunnerKernel>(scheduled, std::move(process));
}

}  // namespace tilewright::driver
