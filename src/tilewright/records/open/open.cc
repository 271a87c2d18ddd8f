#include "tilewright/records/open/open.h"

#include <filesystem>

#include "tilewright/postgres/connection.h"
#include "tilewright/records/postgres/postgres.h"
#include "tilewright/records/sqlite/sqlite.h"

namespace tilewright::records {
namespace {

constexpr std::string_view kSqlite = "sqlite:";

Result<std::shared_ptr<Store>> open(
    const std::string& name, Result<std::shared_ptr<Store>> (*open_file)(const std::string&)) {
  if (postgres::is_url(name)) return open_postgres_store(name);
  const size_t scheme = name.find("://");
  if (scheme == name.npos) return open_file(store_file(name));
  return fail(ErrorKind::Usage, "no store has the form " + name.substr(0, scheme) + "://...", "",
              "sqlite:FILE or postgresql://HOST/DATABASE");
}

}  // namespace

std::string store_file(const std::string& name) {
  if (postgres::is_url(name)) return "";
  return name.starts_with(kSqlite) ? name.substr(kSqlite.size()) : name;
}

bool store_exists(const std::string& name) {
  std::error_code ignored;
  return name.find("://") != name.npos || std::filesystem::exists(store_file(name), ignored);
}

Result<std::shared_ptr<Store>> open_any_store(const std::string& name) {
  return open(name, open_store);
}

Result<std::shared_ptr<Store>> open_any_store_to_read(const std::string& name) {
  return open(name, open_store_to_read);
}

Result<std::shared_ptr<Store>> open_quick_server(const std::string& url, double limit) {
  return open_postgres_store(url, limit);
}

}  // namespace tilewright::records
