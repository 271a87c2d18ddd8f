// The HTML page of a search for designs.
#pragma once

#include <string>
#include <vector>

#include "tilewright/driver/codesign/search_run.h"

namespace tilewright::driver {

/// `area (um2)`.
std::string objective_axis(codesign::Objective objective, const codesign::Technology& technology);
/// A paragraph: how the numbers of a technology are known, and what nobody checked.
std::string technology_note(const codesign::Technology& technology);

/// One self-contained page: each pair of objectives with all designs, the front, what is usually
/// chosen of it and the default design as a baseline; parameters and objectives of all designs as
/// parallel coordinates; hypervolume over evaluations; why designs are not on the front; the front;
/// and how the numbers of the technology are known.
std::string search_page(const SearchSubject& subject, const SearchResult& result);

}  // namespace tilewright::driver
