// SPDX-License-Identifier: GPL-2.0-or-later
//
// For tests that write trees, runs and jobs as lists in text: the parts of a list,
// without the blanks around them; empty parts are left out.
#ifndef SLURM_BUDGET_TESTS_SCENE_TEXT_H
#define SLURM_BUDGET_TESTS_SCENE_TEXT_H

#include <algorithm>
#include <string>
#include <vector>

inline std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        const std::size_t first = text.find_first_not_of(' ', begin);
        if (first < end) parts.push_back(text.substr(first, text.find_last_not_of(' ', end - 1) + 1 - first));
        begin = end + 1;
    }
    return parts;
}

#endif
