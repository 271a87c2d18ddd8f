#include "tilewright/accel/common/image.h"

#include <fmt/format.h>

#include <cstring>
#include <set>
#include <utility>

#include "tilewright/base/check.h"

namespace tilewright::accel {

ImageBuilder::ImageBuilder(uint64_t base, uint64_t limit) : limit_(limit) {
  TW_CHECK(base % kPage == 0, "base {}", base);
  image_.base = base;
}

Result<uint64_t> ImageBuilder::allocate(const std::string& name, uint64_t bytes, uint64_t align) {
  TW_CHECK(align > 0 && (align & (align - 1)) == 0, "align {}", align);
  const uint64_t address = (end() + align - 1) / align * align;
  if (address > limit_ || bytes > limit_ - address)
    return fail(ErrorKind::Capacity, fmt::format("`{}` does not fit in the device's memory", name),
                fmt::format("{} bytes from {:#x} on; it ends at {:#x}", bytes, address, limit_));
  image_.image.resize(address + bytes - base());
  return address;
}

void ImageBuilder::write(uint64_t address, std::string_view bytes) {
  TW_CHECK(address >= base() && bytes.size() <= image_.image.size() &&
               address - base() <= image_.image.size() - bytes.size(),
           "{} bytes at {:#x}, allocated [{:#x}, {:#x})", bytes.size(), address, base(), end());
  if (!bytes.empty())
    std::memcpy(image_.image.data() + (address - base()), bytes.data(), bytes.size());
}

Image ImageBuilder::take() {
  Image empty;
  empty.base = base();
  return std::exchange(image_, std::move(empty));
}

void Problems::add(Error error) {
  constexpr size_t kMost = 50;
  if (errors_.size() < kMost) errors_.push_back(std::move(error));
}

void Problems::add(std::string what) {
  add(Error{ErrorKind::Invalid, std::move(what), {}, {}, {}, {}});
}

Status Problems::status() && {
  if (errors_.empty()) return {};
  Error first = std::move(errors_.front());
  for (size_t i = 1; i < errors_.size(); ++i) first.others.push_back(std::move(errors_[i]));
  return tl::unexpected<Error>(std::move(first));
}

namespace {

void check_inside(const Image& image, const std::string& what, uint64_t address, uint64_t bytes,
                  Problems& into) {
  const uint64_t size = image.image.size();
  if (address < image.base || address - image.base > size || bytes > size - (address - image.base))
    into.add(fmt::format("{} ({} bytes from {}) is not inside the image ({} bytes from {})", what,
                         bytes, address, size, image.base));
}

void check_regions(const Image& image, std::string_view kind, const std::vector<Region>& all,
                   Problems& into) {
  std::set<std::string> names;
  for (const Region& region : all) {
    check_inside(image, fmt::format("{} '{}'", kind, region.name), region.address, region.bytes,
                 into);
    if (!names.insert(region.name).second)
      into.add(fmt::format("two {}s have the name '{}'", kind, region.name));
  }
}

}  // namespace

void check_image(const Image& image, size_t runs, uint64_t limit, Problems& into) {
  if (image.base % kPage != 0 || image.base < kPage)
    into.add(fmt::format("base {} is not a positive multiple of {}", image.base, kPage));
  if (image.base > limit || image.image.size() > limit - image.base)
    into.add(fmt::format("the image of {} bytes from {} ends beyond {} GiB", image.image.size(),
                         image.base, limit >> 30));
  if (runs == 0) into.add("there is no run");
  check_regions(image, "input", image.inputs, into);
  check_regions(image, "output", image.outputs, into);
}

void check_run(const Image& image, size_t index, const std::vector<Patch>& patches,
               const std::vector<Span>& spans, size_t insns, Problems& into) {
  for (const Patch& patch : patches)
    check_inside(image, fmt::format("a patch of run {}", index), patch.address, patch.data.size(),
                 into);
  for (const Span& span : spans)
    if (span.begin > span.end || span.end > insns)
      into.add(fmt::format("span '{}' of run {} is {}..{}, but there are {} instructions",
                           span.name, index, span.begin, span.end, insns));
}

void put(std::string& out, const std::vector<Region>& regions) {
  put_number(out, regions.size());
  for (const Region& region : regions) {
    put_bytes(out, region.name);
    put_number(out, region.address);
    put_number(out, region.bytes);
  }
}

void put(std::string& out, const std::vector<Patch>& patches) {
  put_number(out, patches.size());
  for (const Patch& patch : patches) {
    put_number(out, patch.address);
    put_bytes(out, patch.data);
  }
}

void put(std::string& out, const std::vector<Span>& spans) {
  put_number(out, spans.size());
  for (const Span& span : spans) {
    put_bytes(out, span.name);
    put_number(out, span.begin);
    put_number(out, span.end);
  }
}

Result<std::vector<Region>> read_regions(ByteReader& in) {
  std::vector<Region> regions(TW_TRY(in.count(24, "regions")));
  for (Region& region : regions) {
    region.name = TW_TRY(in.bytes("a name"));
    region.address = TW_TRY(in.number());
    region.bytes = TW_TRY(in.number());
  }
  return regions;
}

Result<std::vector<Patch>> read_patches(ByteReader& in) {
  std::vector<Patch> patches(TW_TRY(in.count(16, "patches")));
  for (Patch& patch : patches) {
    patch.address = TW_TRY(in.number());
    patch.data = TW_TRY(in.bytes("a patch"));
  }
  return patches;
}

Result<std::vector<Span>> read_spans(ByteReader& in) {
  std::vector<Span> spans(TW_TRY(in.count(24, "spans")));
  for (Span& span : spans) {
    span.name = TW_TRY(in.bytes("a name"));
    span.begin = TW_TRY(in.number());
    span.end = TW_TRY(in.number());
  }
  return spans;
}

}  // namespace tilewright::accel
