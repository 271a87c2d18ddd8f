// The frame of HTML reports: one self-contained file, light or dark as the reader likes.
#pragma once

#include <string>
#include <vector>

namespace tilewright::driver {

/// Up to `<body>`; the title is `Tilewright: ` and `what`.
std::string html_head(const std::string& what);
/// A table; the first row is its heading. Cells are text, not HTML.
std::string html_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tilewright::driver
