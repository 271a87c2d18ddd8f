#include "tilewright/runtime/package.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "tilewright/base/check.h"
#include "tilewright/base/json.h"
#include "tilewright/runtime/executor.h"
#include "tilewright/runtime/library.h"
#include "tilewright/runtime/memory.h"
#include "tilewright/runtime/package_layout.h"
#include "tilewright/runtime/sha256.h"
#include "tilewright/runtime/tar.h"

namespace tilewright::runtime {
namespace {

using Json = nlohmann::json;

std::string hash(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.finish();
}

tl::unexpected<Error> bad(std::string what, std::string why = {}, std::string fix = {}) {
  return fail(ErrorKind::Package, std::move(what), std::move(why), std::move(fix));
}

/// The text of a string member, or an empty one.
std::string text_of(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end() || !it->is_string()) return {};
  return it->get<std::string>();
}

Status check_hash(const PackageMember& member) {
  const std::string actual = hash(member.bytes);
  if (actual == member.sha256) return {};
  return bad(fmt::format("'{}' is damaged: its hash does not match the manifest", member.name),
             fmt::format("sha256 {} is expected, {} was found", member.sha256, actual),
             "copy or compile the package again");
}

Status check_version(const Json& manifest) {
  if (text_of(manifest, "format") != kPackageFormat)
    return bad("the manifest does not describe a Tilewright package");
  const auto version = manifest.find("version");
  if (version == manifest.end() || !version->is_number_integer() || *version < 1)
    return bad("the manifest has no version");
  if (*version > kPackageVersion)
    return bad(fmt::format("package version {} is too new", version->dump()),
               fmt::format("this runtime reads versions up to {}", kPackageVersion),
               "use a newer Tilewright, or compile the model again");
  return {};
}

/// Hash and size of each member the manifest lists, noted in `members`.
Status match_members(const Json& manifest, std::vector<PackageMember>& members) {
  const auto list = manifest.find("members");
  if (list == manifest.end() || !list->is_array()) return bad("the manifest lists no members");
  for (const Json& entry : *list) {
    const std::string name = text_of(entry, "name"), sha = text_of(entry, "sha256");
    const auto member = std::find_if(members.begin(), members.end(),
                                     [&](const PackageMember& m) { return m.name == name; });
    if (member == members.end())
      return bad(fmt::format("the package has no member '{}'", name), "the manifest lists it");
    if (sha.size() != 64) return bad(fmt::format("the manifest has no hash of '{}'", name));
    const auto bytes = entry.find("bytes");
    if (bytes == entry.end() || !bytes->is_number_integer() || *bytes != member->bytes.size())
      return bad(
          fmt::format("'{}' has {} bytes, not what the manifest says", name, member->bytes.size()));
    member->sha256 = sha;
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Package>> Package::open(const std::string& path,
                                                     const OpenOptions& options) {
  return open(TW_TRY(map_package(path)), path, options);
}

Result<std::shared_ptr<const Package>> Package::open(MappedFile file, const std::string& name,
                                                     const OpenOptions& options) {
  std::shared_ptr<Package> package(new Package);
  package->file_ = std::move(file);
  auto steps = [&]() -> Status {
    const std::string_view bytes(package->file_.bytes.data(), package->file_.bytes.size());
    const std::vector<TarMember> entries = TW_TRY(read_tar(bytes));
    for (const TarMember& member : entries)
      package->members_.push_back({member.name, member.bytes, {}});
    TW_TRY_STATUS(package->read_manifest());
    TW_TRY_STATUS(package->check_members(options));
    return options.load_code ? package->load_code(options) : Status{};
  };
  if (Status status = steps(); !status)
    return tl::unexpected<Error>(std::move(status.error()).at(name));
  return std::shared_ptr<const Package>(std::move(package));
}

Status Package::read_manifest() {
  if (members_.empty() || members_.front().name != kManifestName)
    return bad(
        fmt::format("this is not a Tilewright package: {} is not its first member", kManifestName));
  const std::string_view text = members_.front().bytes;
  const PackageMember* digest = member(kManifestDigestName);
  if (digest == nullptr)
    return bad(fmt::format("the package has no member '{}'", kManifestDigestName));
  if (digest->bytes != manifest_digest_line(hash(text)))
    return bad(fmt::format("'{}' is damaged: its hash does not match '{}'", kManifestName,
                           kManifestDigestName),
               {}, "copy or compile the package again");
  const Json manifest = parse_json(text, std::nothrow);
  if (!manifest.is_object()) return bad(fmt::format("'{}' is not a JSON object", kManifestName));
  TW_TRY_STATUS(check_version(manifest));
  TW_TRY_STATUS(match_members(manifest, members_));
  const auto program = manifest.find("program");
  if (program == manifest.end()) return bad("the manifest has no program");
  program_ =
      TW_TRY(program_from_json(program->dump(-1, ' ', false, Json::error_handler_t::replace)));
  return {};
}

Status Package::check_members(const OpenOptions& options) const {
  const PackageMember* weights_member = member(kWeightsName);
  const auto there =
      static_cast<int64_t>(weights_member == nullptr ? 0 : weights_member->bytes.size());
  if (there < program_.weights_bytes)
    return bad(
        fmt::format("'{}' is too short", kWeightsName),
        fmt::format("the program needs {} bytes, {} are there", program_.weights_bytes, there));
  const std::string code = code_name(program_.target);
  if (!program_.kernels.empty() && member(code) == nullptr)
    return bad(fmt::format("the package has no member '{}'", code), "its program calls kernels");
  std::set<std::string> code_members = {code};
  for (const auto& [name, info] : program_.launches) {
    code_members.insert(launch_code_name(name, info));
    if (member(launch_code_name(name, info)) == nullptr)
      return bad(fmt::format("the package has no member '{}'", launch_code_name(name, info)),
                 "its program launches it");
  }
  for (const PackageMember& entry : members_) {
    const bool is_code = code_members.count(entry.name) > 0;
    if (entry.sha256.empty() && is_code)
      return bad(fmt::format("the manifest has no hash of '{}'", entry.name));
    if (entry.sha256.empty()) continue;
    if (is_code || options.verify_weights) TW_TRY_STATUS(check_hash(entry));
  }
  return {};
}

Status Package::load_code(const OpenOptions& options) {
  const PackageMember* code = member(code_name(program_.target));
  if (code == nullptr || code->bytes.empty()) return {};
  const TargetSpec& target = program_.target;
  const std::vector<std::string> missing =
      (options.missing_features ? options.missing_features : missing_cpu_features)(target);
  if (!missing.empty())
    return bad(fmt::format("the package is for another CPU ({})", target.name),
               fmt::format("this machine lacks {}", fmt::join(missing, ", ")),
               "compile the model for this machine: tilewright compile MODEL --target cpu");
  library_ = TW_TRY(Library::load(code->bytes, code->name));
  std::vector<std::string> absent;
  for (const auto& [symbol, kernel] : program_.kernels)
    if (find(symbol) == nullptr) absent.push_back(symbol);
  if (absent.empty()) return {};
  return bad(fmt::format("'{}' has no kernel '{}'", code->name, absent.front()),
             fmt::format("{} of {} kernels are missing", absent.size(), program_.kernels.size()));
}

const PackageMember* Package::member(std::string_view name) const {
  for (const PackageMember& entry : members_)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string_view Package::launch_code(const std::string& name) const {
  const auto info = program_.launches.find(name);
  if (info == program_.launches.end()) return {};
  const PackageMember* entry = member(launch_code_name(name, info->second));
  return entry == nullptr ? std::string_view() : entry->bytes;
}

MappedFile Package::weights() const {
  const PackageMember* entry = member(kWeightsName);
  if (entry == nullptr) return {};
  return {file_.owner, {entry->bytes.data(), entry->bytes.size()}};
}

tw_kernel Package::find(const std::string& symbol) const {
  if (library_ == nullptr || program_.kernels.count(symbol) == 0) return nullptr;
  return reinterpret_cast<tw_kernel>(library_->find(symbol));
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Package> package,
                                                 const SessionOptions& options) {
  TW_CHECK(package != nullptr);
  SessionOptions kept = options;
  kept.keep_alive = package;
  kept.launch_code = [raw = package.get()](const std::string& name) {
    return raw->launch_code(name);
  };
  const std::shared_ptr<const Program> program(package, &package->program());
  return create(
      program, [&](const std::string& symbol) { return package->find(symbol); }, package->weights(),
      kept);
}

}  // namespace tilewright::runtime
