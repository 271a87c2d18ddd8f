#include "tilewright/fleet/package_pieces.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tilewright/base/file.h"
#include "tilewright/base/process.h"

namespace tilewright::fleet {
namespace {

/// A tar made by the system's tool, of members by name and size.
std::string tar_of(const std::vector<std::pair<std::string, size_t>>& members) {
  const TemporaryFolder folder = *TemporaryFolder::create();
  std::vector<std::string> command = {"tar", "--format=ustar", "-cf", "all.tar"};
  for (const auto& [name, size] : members) {
    std::string bytes(size, name[0]);
    for (size_t i = 0; i < size; i += 7) bytes[i] = static_cast<char>('0' + i % 10);
    EXPECT_TRUE(write_file(folder.file(name), bytes));
    command.push_back(name);
  }
  ToolOptions options;
  options.folder = folder.path();
  EXPECT_TRUE(run_checked(command, options));
  return *read_file(folder.file("all.tar"));
}

std::string joined(const std::vector<Piece>& pieces) {
  std::string all;
  for (const Piece& piece : pieces) all += piece.bytes;
  return all;
}

TEST(PackagePieces, InARowTheyAreTheFile) {
  for (const size_t size : {0, 1, 511, 512, 513, 1000, 100'000}) {
    const std::string file = tar_of({{"manifest", 300}, {"weights", size}, {"records", 77}});
    const auto pieces = cut_package(file, {}, 512);
    ASSERT_TRUE(pieces) << size;
    EXPECT_EQ(joined(*pieces), file) << size;
    EXPECT_EQ(pieces->size(), size >= 512 ? 3u : 1u) << size;
    for (const Piece& piece : *pieces) EXPECT_EQ(piece.sha256, sha256(piece.bytes));
  }
}

TEST(PackagePieces, WeightsArePiecesThatDoNotChangeWithTheManifest) {
  const std::string one = tar_of({{"manifest", 300}, {"weights", 9000}, {"code", 40}});
  const std::string two = tar_of({{"manifest", 2000}, {"code", 1200}, {"weights", 9000}});
  const auto of = [](const std::string& file) {
    std::vector<std::string> hashes;
    const std::vector<Piece> pieces = *cut_package(file, {}, 4096);
    for (const Piece& piece : pieces) hashes.push_back(piece.sha256);
    return hashes;
  };
  EXPECT_EQ(of(one)[1], of(two)[1]);
  EXPECT_NE(of(one)[0], of(two)[0]);
}

TEST(PackagePieces, PromisedHashesAreTakenAndDamageIsFound) {
  std::string file = tar_of({{"manifest", 300}, {"weights", 9000}});
  const Piece weights = (*cut_package(file, {}, 4096))[1];
  file[static_cast<size_t>(weights.bytes.data() - file.data()) + 5000] ^= 1;
  const std::vector<Piece> pieces = *cut_package(file, {weights}, 4096);
  EXPECT_TRUE(check_piece(pieces[0]));
  EXPECT_EQ(pieces[1].sha256, weights.sha256);
  const Status damaged = check_piece(pieces[1]);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, ErrorKind::Package);
  EXPECT_THAT(damaged.error().why, testing::HasSubstr(weights.sha256.substr(0, 12)));
  EXPECT_TRUE(check_piece({weights.sha256, weights.bytes}));  // hashed just now
}

TEST(PackagePieces, WhatIsCutOffOrNoTarIsRefused) {
  const std::string file = tar_of({{"manifest", 300}, {"weights", 9000}});
  const auto cut = cut_package(std::string_view(file).substr(0, 4000));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, ErrorKind::Package);
  EXPECT_THAT(cut.error().why, testing::HasSubstr("9000 bytes"));
  std::string broken = file;
  broken[124] = 'x';
  EXPECT_FALSE(cut_package(broken));
  EXPECT_EQ(joined(*cut_package("no tar")), "no tar");  // shorter than a header: one piece
}

}  // namespace
}  // namespace tilewright::fleet
