// SPDX-License-Identifier: GPL-2.0-or-later
//
// What all readers of engine.h's views need: their texts, and their tags as the
// policy's and back. Pure functions; a text lives as long as its view.
#ifndef SLURM_BUDGET_PLUGINS_VIEWS_H
#define SLURM_BUDGET_PLUGINS_VIEWS_H

#include <string_view>

#include "common/run_tag.h"
#include "plugins/engine.h"

namespace budget {

// NULL is empty.
inline std::string_view text(const char* s) {
    return s ? std::string_view(s) : std::string_view();
}

inline budget_tag shown_tag(const RunTag& tag) {
    return {.readable = true,
            .allocated = tag.run_class == RunClass::kAllocated,
            .contract = tag.contract,
            .rate = tag.rate.value_or(0),
            .has_reason = tag.preempted.has_value()};
}

// Without the reason, which a view has none of.
inline RunTag tag_of(const budget_tag& shown) {
    RunTag tag{.run_class = shown.allocated ? RunClass::kAllocated : RunClass::kUnallocated,
               .contract = shown.contract};
    if (shown.rate > 0) tag.rate = shown.rate;
    return tag;
}

}  // namespace budget

#endif
