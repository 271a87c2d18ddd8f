#include "tilewright/codegen/testing/guard.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csetjmp>
#include <cstring>

#include "tilewright/base/check.h"

namespace tilewright::codegen::testing {
namespace {

constexpr unsigned char kPattern = 0xa5;
/// Bytes looked at beside the data; the page behind catches what goes further.
constexpr int64_t kLooked = 256;

int64_t page() { return sysconf(_SC_PAGESIZE); }

thread_local sigjmp_buf* back = nullptr;
thread_local void* faulted = nullptr;

void on_fault(int, siginfo_t* info, void*) {
  if (back == nullptr) {
    signal(SIGSEGV, SIG_DFL);  // not ours: die where it happened
    return;
  }
  faulted = info->si_addr;
  siglongjmp(*back, 1);
}

}  // namespace

Fenced::Fenced(std::string name, int64_t bytes, Side side) : name_(std::move(name)), bytes_(bytes) {
  const int64_t inside = (bytes + kLooked + page() - 1) / page() * page();
  length_ = inside + 2 * page();
  void* got =
      mmap(nullptr, static_cast<size_t>(length_), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TW_CHECK(got != MAP_FAILED, "no memory for {} bytes", length_);
  base_ = static_cast<unsigned char*>(got);
  TW_CHECK(mprotect(base_ + page(), static_cast<size_t>(inside), PROT_READ | PROT_WRITE) == 0,
           "no access to {} bytes", inside);
  std::memset(base_ + page(), kPattern, static_cast<size_t>(inside));
  data_ = base_ + page() + (side == Side::Front ? 0 : inside - bytes);
}

Fenced::~Fenced() { munmap(base_, static_cast<size_t>(length_)); }

bool Fenced::intact() const {
  const bool front = data_ == base_ + page();
  const unsigned char* beside = front ? data_ + bytes_ : data_ - kLooked;
  for (int64_t i = 0; i < kLooked; ++i)
    if (beside[i] != kPattern) return false;
  return true;
}

bool Fenced::near(const void* address, int64_t& offset) const {
  const auto* at = static_cast<const unsigned char*>(address);
  offset = at - data_;
  return at >= base_ && at < base_ + length_;
}

Status run_fenced(const std::function<void()>& body,
                  const std::vector<std::unique_ptr<Fenced>>& memory) {
  struct sigaction action = {}, before = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  sigjmp_buf here;
  Status status;
  if (sigsetjmp(here, 1) == 0) {
    back = &here;
    body();
  } else {
    std::string place = fmt::format("address {}", fmt::ptr(faulted));
    int64_t offset = 0;
    for (const auto& m : memory)
      if (m->near(faulted, offset)) place = fmt::format("byte {} of {}", offset, m->name());
    status = fail(ErrorKind::Mismatch, fmt::format("the kernel touched {}", place),
                  "it lies outside every buffer");
  }
  back = nullptr;
  sigaction(SIGSEGV, &before, nullptr);
  return status;
}

}  // namespace tilewright::codegen::testing
