// Writing packages: one pass to hash, one to write, nothing left behind on failure.
#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/json.h"
#include "tilewright/base/output_file.h"
#include "tilewright/runtime/package.h"
#include "tilewright/runtime/package_layout.h"
#include "tilewright/runtime/sha256.h"
#include "tilewright/runtime/tar.h"

namespace tilewright::runtime {
namespace {

/// A member as pieces, so that weights are never copied together.
struct Member {
  std::string name;
  std::vector<WeightPiece> pieces;  // sorted, not overlapping
  int64_t bytes = 0;
};

/// Calls f with all bytes of a member in order, zeros in its gaps.
template <class F>
Status for_each_chunk(const Member& member, F&& f) {
  static const std::string zeros(1 << 16, '\0');
  int64_t at = 0;
  auto fill_to = [&](int64_t end) -> Status {
    while (at < end) {
      const auto size = std::min<int64_t>(end - at, static_cast<int64_t>(zeros.size()));
      TW_TRY_STATUS(f(std::string_view(zeros).substr(0, static_cast<size_t>(size))));
      at += size;
    }
    return {};
  };
  for (const WeightPiece& piece : member.pieces) {
    TW_TRY_STATUS(fill_to(piece.offset));
    TW_TRY_STATUS(f(piece.bytes));
    at += static_cast<int64_t>(piece.bytes.size());
  }
  return fill_to(member.bytes);
}

std::string hash(const Member& member) {
  Sha256 sha;
  (void)for_each_chunk(member, [&](std::string_view chunk) -> Status {
    sha.update(chunk);
    return {};
  });
  return sha.finish();
}

Member whole(std::string name, std::string_view bytes) {
  return {std::move(name), {{0, bytes}}, static_cast<int64_t>(bytes.size())};
}

Result<Member> weights_member(const PackageContents& contents) {
  Member member{kWeightsName, contents.weights, contents.program.weights_bytes};
  std::sort(member.pieces.begin(), member.pieces.end(),
            [](const WeightPiece& a, const WeightPiece& b) { return a.offset < b.offset; });
  int64_t end = 0;
  for (const WeightPiece& piece : member.pieces) {
    const int64_t after = piece.offset + static_cast<int64_t>(piece.bytes.size());
    if (piece.offset < end || after > member.bytes)
      return fail(ErrorKind::Package, "the weights do not fit into weights.bin",
                  fmt::format("a piece covers bytes {} to {}; {} is the first free byte of {}",
                              piece.offset, after, end, member.bytes));
    end = after;
  }
  return member;
}

Status write_member(OutputFile& file, const Member& member) {
  TW_TRY_STATUS(file.append(TW_TRY(tar_header(member.name, static_cast<uint64_t>(member.bytes)))));
  TW_TRY_STATUS(for_each_chunk(member, [&](std::string_view chunk) { return file.append(chunk); }));
  return file.append(std::string(tar_padding(static_cast<uint64_t>(member.bytes)), '\0'));
}

std::string manifest_text(const Program& program, const std::vector<Member>& members) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Member& member : members)
    list.push_back({{"name", member.name}, {"bytes", member.bytes}, {"sha256", hash(member)}});
  return fmt::format(
      "{{\n\"format\": \"{}\",\n\"version\": {},\n\"members\": {},\n\"program\": {}\n}}\n",
      kPackageFormat, kPackageVersion, json_text(list, 1), to_json(program));
}

}  // namespace

Status write_package(const std::string& path, const PackageContents& contents) {
  // Whatever a reader would refuse is found before anything is written.
  TW_TRY(program_from_json(to_json(contents.program)));
  std::vector<Member> members = {whole(kGraphName, contents.graph)};
  if (!contents.program.kernels.empty() || !contents.code.empty())
    members.push_back(whole(code_name(contents.program.target), contents.code));
  for (const auto& [name, info] : contents.program.launches) {
    const auto code = contents.launches.find(name);
    if (code == contents.launches.end())
      return fail(ErrorKind::Package, fmt::format("launch '{}' has no code", name));
    members.push_back(whole(launch_code_name(name, info), code->second));
  }
  members.push_back(TW_TRY(weights_member(contents)));
  members.push_back(whole(kRecordsName, contents.records));
  for (const auto& [name, bytes] : contents.extras) members.push_back(whole(name, bytes));
  const std::string manifest = manifest_text(contents.program, members);
  const Member manifest_member = whole(kManifestName, manifest);
  const std::string digest = manifest_digest_line(hash(manifest_member));
  members.insert(members.begin(), manifest_member);
  members.push_back(whole(kManifestDigestName, digest));

  OutputFile file = TW_TRY(OutputFile::create(path));
  for (const Member& member : members) TW_TRY_STATUS(write_member(file, member));
  TW_TRY_STATUS(file.append(std::string(kTarEnd, '\0')));
  return file.publish();
}

}  // namespace tilewright::runtime
