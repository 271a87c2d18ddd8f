// Bytes in the store: cut into parts of 1 MiB, known by their SHA-256. What the store has already
// does not travel again.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/fleet/client.h"

namespace tilewright::fleet {

inline constexpr int64_t kPartBytes = 1 << 20;

/// Puts `bytes` into the store of this login; the number of bytes that had to travel. Parts that an
/// interrupted upload left are kept. errors: Limit (the login's quota), those of the client.
Result<int64_t> put_blob(Client& client, const std::string& sha256, std::string_view bytes);

/// Which of these the store has whole, for this login. errors: those of the client.
Result<std::set<std::string>> whole_blobs(Client& client, const std::vector<std::string>& sha256s);

/// Reads a blob of this login. errors: Package (its bytes do not have the hash), those of the
/// client.
Result<std::string> get_blob(Client& client, const std::string& sha256);

/// What lets a worker read the blobs of a job, and add results to it: its lease.
struct LeaseKey {
  std::string worker, secret;
  int64_t device = 0, token = 0;
  std::string job;
};
/// errors: as get_blob; Usage (the lease ended, or the job does not name the blob).
Result<std::string> get_leased_blob(Client& client, const LeaseKey& lease,
                                    const std::string& sha256);
/// Bytes that a job's submitter is to have. errors: as put_blob; Usage (the lease ended).
Status put_result_blob(Client& client, const LeaseKey& lease, const std::string& sha256,
                       std::string_view bytes);

}  // namespace tilewright::fleet
