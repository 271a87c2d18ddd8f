// What a device sees before a launch: DRAM contents and streams of instructions, with absolute
// addresses. The instructions are the device's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/base/bytes.h"
#include "tilewright/base/result.h"

namespace tilewright::accel {

inline constexpr uint64_t kPage = 4096;  ///< images begin at a multiple of it; units: bytes

/// A named range of DRAM; units: bytes, address absolute.
struct Region {
  std::string name;
  uint64_t address = 0, bytes = 0;
};

/// DRAM written by the host before a launch.
struct Patch {
  uint64_t address = 0;
  std::string data;
};

/// Part of a stream, for reports: instructions [begin, end) belong to `name` (a layer).
struct Span {
  std::string name;
  size_t begin = 0, end = 0;
};

/// One launch.
template <class Insn>
struct Run {
  std::vector<Patch> patches;
  std::vector<Insn> insns;
  std::vector<Span> spans;
};

/// DRAM before the first launch, and what is where in it.
struct Image {
  uint64_t base = kPage;                ///< address of the first byte; a multiple of kPage
  std::string image;                    ///< weights, tables, zeros for what is computed
  std::vector<Region> inputs, outputs;  ///< outputs are read after the last run
  std::string producer, info;           ///< free text; `info` a JSON object or empty

  uint64_t end() const { return base + image.size(); }
};

template <class Insn>
struct Program : Image {
  std::vector<Run<Insn>> runs;
};

/// Grows an image: room is given out from its end.
class ImageBuilder {
 public:
  /// `limit`: where the device's memory ends. requires: base is a multiple of kPage.
  ImageBuilder(uint64_t base, uint64_t limit);

  uint64_t base() const { return image_.base; }
  uint64_t end() const { return image_.end(); }
  /// The address of so many zeros, a multiple of `align` (a power of two).
  /// errors: Capacity (beyond the limit).
  Result<uint64_t> allocate(const std::string& name, uint64_t bytes, uint64_t align = kPage);
  /// requires: inside of what is allocated.
  void write(uint64_t address, std::string_view bytes);
  void add_input(Region region) { image_.inputs.push_back(std::move(region)); }
  void add_output(Region region) { image_.outputs.push_back(std::move(region)); }
  /// What was built; the builder is empty afterwards.
  Image take();

 private:
  Image image_;
  uint64_t limit_;
};

/// Problems of a program; a few dozen are enough for anyone.
class Problems {
 public:
  void add(Error error);
  void add(std::string what);
  bool empty() const { return errors_.empty(); }
  /// errors: the first, with the others in it.
  Status status() &&;

 private:
  std::vector<Error> errors_;
};

/// Base and size of an image of so many runs, and that its regions are inside of it.
void check_image(const Image& image, size_t runs, uint64_t limit, Problems& into);
/// That the patches of run `index` are inside of the image and its spans among its instructions.
void check_run(const Image& image, size_t index, const std::vector<Patch>& patches,
               const std::vector<Span>& spans, size_t insns, Problems& into);

/// Bytes, as in packages; what `put` writes, `read_*` reads back. errors: those of ByteReader.
void put(std::string& out, const std::vector<Region>& regions);
void put(std::string& out, const std::vector<Patch>& patches);
void put(std::string& out, const std::vector<Span>& spans);
Result<std::vector<Region>> read_regions(ByteReader& in);
Result<std::vector<Patch>> read_patches(ByteReader& in);
Result<std::vector<Span>> read_spans(ByteReader& in);

}  // namespace tilewright::accel
