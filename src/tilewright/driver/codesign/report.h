// The HTML page of a search for designs.
#pragma once

#include <string>
#include <vector>

#include "tilewright/driver/codesign/search_run.h"

namespace tilewright::driver {

/// One self-contained page: each pair of objectives with all designs and the front, hypervolume
/// over evaluations, the designs of the front, and how the numbers of the technology are known.
std::string search_page(const SearchSubject& subject, const SearchResult& result);

}  // namespace tilewright::driver
