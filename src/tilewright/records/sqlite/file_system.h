// SQLite needs locks and shared memory that work between all who have a file open. On file systems
// that several machines mount they do not, and a store that two of them write is damaged.
#pragma once

#include <cstdint>
#include <string>

#include "tilewright/base/result.h"

namespace tilewright::records {

/// The number by which the system names the kind of file system that a path lies on, as statfs
/// tells it; 0: unknown.
using FileSystemOf = int64_t (*)(const std::string& path);
int64_t file_system_of(const std::string& path);

/// Refuses a file on NFS, SMB, FUSE, Lustre, Ceph or GPFS; where there is none yet, its folder
/// counts. errors: Io, with the store to take instead.
Status check_file_system(const std::string& path, FileSystemOf kind_of = file_system_of);

}  // namespace tilewright::records
