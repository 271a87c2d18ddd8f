#include "tilewright/runtime/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace tilewright::runtime {

Result<std::shared_ptr<void>> allocate(int64_t bytes, const std::string& purpose) {
  constexpr size_t kHuge = size_t{2} << 20;
  const auto wanted = static_cast<size_t>(bytes > 0 ? bytes : 1);
  const bool huge = wanted >= 2 * kHuge;
  const size_t size = huge ? (wanted + kHuge - 1) / kHuge * kHuge + kHuge : wanted;
  void* base =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return fail(ErrorKind::Capacity, fmt::format("no memory for {}", purpose),
                fmt::format("{} bytes are needed: {}", bytes, std::strerror(errno)));
  void* data = base;
  if (huge) {
    const auto address = reinterpret_cast<uintptr_t>(base);
    data = reinterpret_cast<void*>((address + kHuge - 1) / kHuge * kHuge);
    ::madvise(data, size - kHuge, MADV_HUGEPAGE);  // only a hint: a refusal costs speed, not results
  }
  std::shared_ptr<void> region(base, [size](void* p) { ::munmap(p, size); });
  return std::shared_ptr<void>(std::move(region), data);
}

}  // namespace tilewright::runtime
