#include "tilewright/fleet/blobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tilewright/base/file.h"

namespace tilewright::fleet {
namespace {

/// Empty bytes have one part too, so that there is something to be whole.
int64_t parts_of(std::string_view bytes) {
  return std::max<int64_t>(1, (static_cast<int64_t>(bytes.size()) + kPartBytes - 1) / kPartBytes);
}

std::string_view part_of(std::string_view bytes, int64_t part) {
  return bytes.substr(static_cast<size_t>(part * kPartBytes), static_cast<size_t>(kPartBytes));
}

/// Reads parts until one is short or, behind a last one that is full, not there.
template <class Read>
Result<std::string> whole_blob(const std::string& sha, const Read& read) {
  std::string bytes;
  for (int64_t part = 0;; ++part) {
    const Result<std::string> next = read(part);
    if (!next && next.error().kind == ErrorKind::Device && part > 0) break;
    bytes += TW_TRY(next);
    if (static_cast<int64_t>(next->size()) < kPartBytes) break;
  }
  if (sha256(bytes) != sha)
    return fail(ErrorKind::Package,
                fmt::format("blob {} of the store is damaged or missing", sha.substr(0, 12)),
                fmt::format("its {} bytes have another SHA-256", bytes.size()),
                "run the command again: it is uploaded anew");
  return bytes;
}

}  // namespace

Result<int64_t> put_blob(Client& client, const std::string& sha, std::string_view bytes) {
  const int64_t parts = parts_of(bytes);
  const nlohmann::json state =
      TW_TRY(client.call("blob_begin", {sha, static_cast<int64_t>(bytes.size()), parts}));
  if (state.value("whole", false)) return 0;
  std::set<int64_t> there;
  for (const nlohmann::json& part : state.value("have", nlohmann::json::array()))
    there.insert(part.get<int64_t>());
  int64_t sent = 0;
  for (int64_t part = 0; part < parts; ++part) {
    if (there.count(part) > 0) continue;
    const std::string_view data = part_of(bytes, part);
    TW_TRY(client.call("blob_put", {sha, part, postgres::Bytes{data}}));
    sent += static_cast<int64_t>(data.size());
  }
  const nlohmann::json whole = TW_TRY(client.call("blob_finish", {sha}));
  if (!whole.is_boolean() || !whole.get<bool>())
    return fail(ErrorKind::Package, "an upload arrived damaged",
                fmt::format("the store computes another SHA-256 than {}", sha.substr(0, 12)),
                "run the command again");
  return sent;
}

Result<std::set<std::string>> whole_blobs(Client& client, const std::vector<std::string>& hashes) {
  // An array of SQL: in hashes nothing has to be quoted.
  const nlohmann::json listed =
      TW_TRY(client.call("blobs_whole", {fmt::format("{{{}}}", fmt::join(hashes, ","))}));
  std::set<std::string> whole;
  for (const nlohmann::json& hash : listed)
    if (hash.is_string()) whole.insert(hash.get<std::string>());
  return whole;
}

Result<std::string> get_blob(Client& client, const std::string& sha) {
  return whole_blob(sha, [&](int64_t part) { return client.bytes("blob_get", {sha, part}); });
}

Result<std::string> get_leased_blob(Client& client, const LeaseKey& lease, const std::string& sha) {
  return whole_blob(sha, [&](int64_t part) {
    return client.bytes("worker_blob_get", {lease.worker, lease.secret, lease.device, lease.token,
                                            lease.job, sha, part});
  });
}

Status put_result_blob(Client& client, const LeaseKey& lease, const std::string& sha,
                       std::string_view bytes) {
  const int64_t parts = parts_of(bytes);
  for (int64_t part = 0; part < parts; ++part)
    TW_TRY(client.call("worker_blob_put", {lease.worker, lease.secret, lease.device, lease.token,
                                           lease.job, sha, static_cast<int64_t>(bytes.size()),
                                           parts, part, postgres::Bytes{part_of(bytes, part)}}));
  return {};
}

}  // namespace tilewright::fleet
