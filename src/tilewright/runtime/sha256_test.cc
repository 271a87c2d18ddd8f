#include "tilewright/runtime/sha256.h"

#include <gtest/gtest.h>

#include "tilewright/base/file.h"
#include "tilewright/base/rng.h"

namespace tilewright::runtime {
namespace {

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(Sha256().finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 abc;
  abc.update("abc");
  EXPECT_EQ(abc.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, AgreesWithOpenSslForEverySizeAndSplit) {
  Rng rng(3);
  for (int size = 0; size < 400; ++size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(rng.below(256));
    Sha256 pieces;
    for (size_t at = 0; at < bytes.size();) {
      const auto step = static_cast<size_t>(rng.between(0, 150));
      pieces.update(std::string_view(bytes).substr(at, step));
      at += step;
    }
    EXPECT_EQ(pieces.finish(), sha256(bytes)) << size;
  }
}

}  // namespace
}  // namespace tilewright::runtime
