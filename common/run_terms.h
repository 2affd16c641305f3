// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is fixed for a run at its start: its class and its contract (C6), and what
// its end may change: a refund (U7). Also the tag that its record has to bear
// (U10). Pure functions.
#ifndef SLURM_BUDGET_COMMON_RUN_TERMS_H
#define SLURM_BUDGET_COMMON_RUN_TERMS_H

#include <optional>

#include "ledger.h"
#include "run_tag.h"
#include "units.h"

namespace budget {

// What is told of a run beside what a RunView has.
struct RunSigns {
    std::optional<RunTag> tag = {};             // of its record
    RunClass by_budget = RunClass::kAllocated;  // what its association has a budget for now (B4)
    bool seen_starting = true;                  // false: it was on before anybody looked
    bool broken = false;                        // the cluster ended it: failed node, boot or launch
};

// Fills in class, contract and refund. They are those of the first sight: `known` is what the ledger
// has under the run's key, if anything, and counts unless it is another job's. At the first sight
// the class is that of the budget, or, of a run that was on before, that of its tag; the contract is
// the tag's. A run that the cluster ends inside its contract is refunded, once and for all.
void settle_terms(RunView& run, const Run* known, const RunSigns& signs);

// Does a run end before its contract is over? Suspended time is none of the contract (U6).
bool ends_within_contract(Seconds start, Seconds end, Seconds suspended, Seconds contract);

// The tag that the record has to bear; beyond_tres: AllocTRES does not tell the rate.
RunTag tag_for(const Run& run, Rate rate, bool beyond_tres);

}  // namespace budget

#endif
