// Names: finding the one a user meant.
#pragma once

#include <string>
#include <vector>

namespace tilewright {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// `text` with small letters instead of the capitals A to Z.
std::string lower_case(std::string text);

/// The words of `text`, which white space separates.
std::vector<std::string> split_words(const std::string& text);

/// Letters to change, add, leave out or swap with their neighbour to get from `a` to `b`.
size_t edit_distance(const std::string& a, const std::string& b);

/// The candidate with the smallest edit distance to `name`, however far; empty if there are none.
std::string nearest(const std::string& name, const std::vector<std::string>& candidates);

/// Whether somebody who wrote `name` may have meant `candidate`: a slip of the keyboard away (a
/// third of the letters; letters in the wrong order count once), or one is a part of the other.
bool is_near(const std::string& name, const std::string& candidate);

/// "did you mean 'candidate'?" for the nearest candidate, if any is near; else empty.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace tilewright
