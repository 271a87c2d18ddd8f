#include "tilewright/driver/inputs/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/npy.h"
#include "tilewright/base/rng.h"
#include "tilewright/driver/inputs/npz.h"

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

const std::vector<ZipMember> kMembers = {{"a", "some bytes"}, {"folder/b", ""}, {"c", "\x01\xff"}};

TEST(Zip, ReadsWhatItWrites) {
  const std::string archive = write_zip(kMembers);
  EXPECT_TRUE(is_zip(archive));
  EXPECT_TRUE(is_zip(write_zip({})));
  const auto members = read_zip(archive, "x.zip");
  ASSERT_TRUE(members) << to_string(members.error());
  ASSERT_EQ(members->size(), kMembers.size());
  for (size_t i = 0; i < kMembers.size(); ++i) {
    EXPECT_EQ((*members)[i].name, kMembers[i].name);
    EXPECT_EQ((*members)[i].bytes, kMembers[i].bytes);
  }
}

TEST(Zip, FindsTheDirectoryBeforeAComment) {
  std::string archive = write_zip(kMembers) + "a comment";
  archive[archive.size() - 11] = 9;  // its length
  EXPECT_TRUE(read_zip(archive, "x.zip"));
}

TEST(Zip, NamesTheDamagedMember) {
  std::string archive = write_zip(kMembers);
  archive[archive.find("bytes")] ^= 1;
  const auto members = read_zip(archive, "x.zip");
  ASSERT_FALSE(members);
  EXPECT_EQ(members.error().kind, ErrorKind::Parse);
  EXPECT_THAT(to_string(members.error()), HasSubstr("'a'"));
  EXPECT_THAT(to_string(members.error()), HasSubstr("checksum"));
}

TEST(Zip, CutOffOrChangedArchivesNeverCrash) {
  Array array(DType::F32, {3, 2});
  const auto archive = npz_bytes({{"x", array}, {"y", array}});
  ASSERT_TRUE(archive);
  for (size_t size = 0; size < archive->size(); ++size)
    EXPECT_FALSE(parse_npz(archive->substr(0, size), "x.npz")) << size;
  Rng rng(1);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string changed = *archive;
    for (int64_t n = rng.between(1, 4); n > 0; --n)
      changed[static_cast<size_t>(rng.below(static_cast<int64_t>(changed.size())))] =
          static_cast<char>(rng.below(256));
    (void)parse_npz(changed, "x.npz");
  }
}

TEST(Npy, ColumnsFirstBecomesRowsFirst) {
  Array array(DType::I32, {2, 3, 4});
  for (int64_t i = 0; i < 24; ++i) array.set_int(i, i);
  std::string file = *npy_bytes(array);
  const size_t order = file.find("False");
  file.replace(order, 5, "True ");
  // The same bytes, first axis innermost: element [a, b, c] lies at a + 2 b + 6 c.
  const auto read = parse_npy(file, "x.npy");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->shape(), array.shape());
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t c = 0; c < 4; ++c)
        EXPECT_EQ(read->get_int(a * 12 + b * 4 + c), a + 2 * b + 6 * c);
}

TEST(Npy, CutOffOrChangedFilesNeverCrash) {
  std::string file = *npy_bytes(Array(DType::F64, {3, 5}));
  file.replace(file.find("False"), 5, "True ");
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(parse_npy(file.substr(0, size), "x.npy")) << size;
  Rng rng(2);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string changed = file;
    for (int64_t n = rng.between(1, 4); n > 0; --n)
      changed[static_cast<size_t>(rng.below(128))] = static_cast<char>(rng.below(256));
    (void)parse_npy(changed, "x.npy");
  }
}

}  // namespace
}  // namespace tilewright::driver
