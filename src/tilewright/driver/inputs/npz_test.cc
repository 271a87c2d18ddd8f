#include "tilewright/driver/inputs/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace tilewright::driver {
namespace {

using ::testing::HasSubstr;

/// An archive as numpy.savez(a=[[1, 2]], b=[7]) makes it, stored without compression.
std::string archive_of(const std::string& folder) {
  const std::string path = folder + "/a.npz";
  const std::string script =
      "import sys; import zipfile, struct\n"
      "def npy(shape, values):\n"
      "  h = \"{'descr': '<f4', 'fortran_order': False, 'shape': %s, }\" % (shape,)\n"
      "  h += ' ' * (63 - (10 + len(h)) % 64) + chr(10)\n"
      "  return b'\\x93NUMPY\\x01\\x00' + struct.pack('<H', len(h)) + h.encode() + "
      "struct.pack('<%df' % len(values), *values)\n"
      "z = zipfile.ZipFile(sys.argv[1], 'w', zipfile.ZIP_DEFLATED)\n"
      "z.writestr('a.npy', npy((1, 2), [1, 2])); z.writestr('b.npy', npy((1,), [7]))\n"
      "z.writestr('c.npy', b'no array') if len(sys.argv) > 2 else None\n"
      "z.close()\n";
  std::ofstream(folder + "/make.py") << script;
  return path;
}

class Npz : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tw_npz_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = archive_of(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  bool make(const std::string& extra) {
    const std::string command = "python3 " + folder_ + "/make.py " + path_ + " " + extra;
    return std::system(command.c_str()) == 0;
  }
  std::string folder_, path_;
};

TEST_F(Npz, ReadsEveryArray) {
  if (!make("")) GTEST_SKIP() << "no python3 here";
  const auto arrays = read_npz(path_);
  ASSERT_TRUE(arrays) << to_string(arrays.error());
  ASSERT_EQ(arrays->size(), 2u);
  EXPECT_EQ(arrays->at("a").shape(), (Shape{1, 2}));
  EXPECT_EQ(arrays->at("a").get(1), 2);
  EXPECT_EQ(arrays->at("b").get(0), 7);
}

TEST_F(Npz, NamesWhatIsWrong) {
  EXPECT_EQ(read_npz(path_).error().kind, ErrorKind::Io);
  std::ofstream(path_) << "this is no archive at all, not even nearly";
  EXPECT_EQ(read_npz(path_).error().kind, ErrorKind::Parse);
  if (!make("bad")) GTEST_SKIP() << "no python3 here";
  const auto arrays = read_npz(path_);
  ASSERT_FALSE(arrays);
  EXPECT_THAT(to_string(arrays.error()), HasSubstr("c"));
}

TEST_F(Npz, CutOffArchivesNeverCrash) {
  if (!make("")) GTEST_SKIP() << "no python3 here";
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(read_npz(path_)) << size;
  }
}

}  // namespace
}  // namespace tilewright::driver
