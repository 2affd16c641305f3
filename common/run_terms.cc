// SPDX-License-Identifier: GPL-2.0-or-later
//
// See run_terms.h.

#include "run_terms.h"

namespace budget {

void settle_terms(RunView& run, const Run* known, const RunSigns& signs) {
    if (known && is_another_job(*known, run)) known = nullptr;
    if (known) {
        run.run_class = known->run_class;
        run.contract = known->contract;
    } else {
        run.run_class = signs.tag && !signs.seen_starting ? signs.tag->run_class : signs.by_budget;
        run.contract = signs.tag && run.run_class == RunClass::kAllocated ? signs.tag->contract : 0;
    }
    const bool is_broken =
        signs.broken && run.end && ends_within_contract(run.start, *run.end, run.suspended_before, run.contract);
    run.refunded = run.end && (is_broken || (known && known->refunded));
}

bool ends_within_contract(Seconds start, Seconds end, Seconds suspended, Seconds contract) {
    return Wide{end} < Wide{start} + suspended + contract;
}

RunTag tag_for(const Run& run, Rate rate, bool beyond_tres) {
    RunTag tag;
    tag.run_class = run.run_class;
    if (run.run_class == RunClass::kAllocated) tag.contract = run.contract;
    if (beyond_tres) tag.rate = rate;
    return tag;
}

}  // namespace budget
