#include "tilewright/accel/common/image.h"

#include <gtest/gtest.h>

namespace tilewright::accel {
namespace {

TEST(ImageBuilder, GivesRoomUpToTheLimit) {
  ImageBuilder builder(kPage, kPage + 200);
  EXPECT_EQ(builder.allocate("a", 10).value(), kPage);
  const uint64_t b = builder.allocate("b", 100, 64).value();
  EXPECT_EQ(b, kPage + 64);
  builder.write(b, "bytes");
  builder.add_input({"a", kPage, 10});
  const auto refused = builder.allocate("c", 100, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::Capacity);
  const Image image = builder.take();
  EXPECT_EQ(image.end(), kPage + 164);
  EXPECT_EQ(image.image.substr(64, 6), std::string("bytes\0", 6));
  EXPECT_EQ(image.inputs.size(), 1u);
  EXPECT_EQ(builder.end(), kPage);
  EXPECT_TRUE(builder.take().inputs.empty());
}

TEST(Image, PartsRoundTripAsBytes) {
  std::string bytes;
  put(bytes, std::vector<Region>{{"x", 4096, 7}, {"", 1, 2}});
  put(bytes, std::vector<Patch>{{5, std::string("\0a", 2)}});
  put(bytes, std::vector<Span>{{"layer", 0, 9}});
  ByteReader in(bytes, ErrorKind::Parse, "test");
  const auto regions = read_regions(in);
  const auto patches = read_patches(in);
  const auto spans = read_spans(in);
  ASSERT_TRUE(regions && patches && spans);
  EXPECT_EQ(in.left(), 0u);
  EXPECT_EQ(regions->at(0).name, "x");
  EXPECT_EQ(regions->at(1).bytes, 2u);
  EXPECT_EQ(patches->at(0).data.size(), 2u);
  EXPECT_EQ(spans->at(0).end, 9u);
  ByteReader cut(std::string_view(bytes).substr(0, 20), ErrorKind::Parse, "test");
  EXPECT_FALSE(read_regions(cut));
}

TEST(Image, ProblemsAreAllFound) {
  Image image;
  image.base = 1;
  image.image.resize(100);
  image.inputs = {{"x", 50, 100}};
  image.outputs = {{"y", 1, 10}, {"y", 1, 10}};
  Problems problems;
  check_image(image, 0, uint64_t{1} << 32, problems);
  check_run(image, 2, {{200, "z"}}, {{"s", 3, 1}}, 5, problems);
  const Status status = std::move(problems).status();
  ASSERT_FALSE(status);
  const std::string text = to_string(status.error());
  for (const char* part :
       {"base 1 is not", "there is no run", "input 'x'", "two outputs have the name 'y'",
        "a patch of run 2", "span 's' of run 2 is 3..1, but there are 5 instructions"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(status.error().others.size(), 5u);
}

}  // namespace
}  // namespace tilewright::accel
