#include "tilewright/base/cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "tilewright/base/environment.h"

namespace tilewright {

Result<std::string> cache_folder(const std::string& part) {
  namespace fs = std::filesystem;
  std::string folder;
  if (const auto own = environment("TILEWRIGHT_CACHE_DIR"))
    folder = *own;
  else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != 0)
    folder = std::string(xdg) + "/tilewright";
  else if (const char* home = std::getenv("HOME"); home != nullptr && *home != 0)
    folder = std::string(home) + "/.cache/tilewright";
  else
    folder = fs::temp_directory_path().string() + "/tilewright-cache";
  folder += "/" + part;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorKind::Io, fmt::format("cannot create the cache folder '{}'", folder),
                error.message(), "set TILEWRIGHT_CACHE_DIR to a folder that can be written");
  return fs::absolute(folder).string();
}

}  // namespace tilewright
