// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is fixed for a run at its start: its class (C6), what its contract is, and
// what its end may change: a refund (U7). Also the tag that its record has to bear
// (U10), and what a waiting job counts as. Durations and instants in seconds. Pure
// functions.
#ifndef SLURM_BUDGET_COMMON_RUN_TERMS_H
#define SLURM_BUDGET_COMMON_RUN_TERMS_H

#include <optional>
#include <span>

#include "ledger.h"
#include "parameters.h"
#include "run_tag.h"
#include "units.h"

namespace budget {

// What is told of a run beside what a RunView has.
struct RunSigns {
    std::optional<RunTag> tag = {};             // of its record
    RunClass by_budget = RunClass::kAllocated;  // what its association has a budget for now (B4)
    bool seen_starting = true;                  // false: it was on before anybody looked
    bool broken = false;                        // the cluster ended it: failed node, boot or launch
    bool by_operator = false;                   // an operator ended it, who is neither its owner nor a coordinator (U7)
    bool never_victim = false;                  // by its place, whatever its minimum (C8)
    bool contracts_in_force = false;            // false: nobody asks for minimums, and a run without a tag has none
    Seconds longest = 0;                        // the site's max_min_runtime (C9)
    Seconds now = 0;                            // C9: the first sight
    std::optional<Seconds> time_limit = {};     // no contract by C9 is longer; nothing: none, or unknown
};

// Fills in class, contract, refund and whether it ended by itself. `known` is what the ledger has under the
// run's key, if anything, and counts unless it is another job's.
// The class is that of the first sight: that of the budget, or of a run that was on before, that of its tag; in
// force, a tag that says unallocated counts as well, but not where nobody may stop the run anyhow (C8). The contract is
// the tag's, and follows it as long as an allocated run is on, since only those who may change it (C6) write it. In
// force, a run that was first seen without a readable tag, or began when nobody asked for minimums, is protected for
// the longest contract from then on (C9). A run that the cluster or an operator ends inside its contract is refunded,
// once and for all (U7).
void settle_terms(RunView& run, const Run* known, const RunSigns& signs);

// Does a run end before its contract is over? Suspended time is none of the contract (U6).
bool ends_within_contract(Seconds start, Seconds end, Seconds suspended, Seconds contract);

// The tag that the record has to bear; beyond_tres: AllocTRES does not tell the rate.
RunTag tag_for(const Run& run, Rate rate, bool beyond_tres, bool contracts_in_force);

// What the record of a pending job is to say: what it says, or where contracts are in force the site's default (C9).
std::optional<RunTag> pending_tag(const std::optional<RunTag>& tag, const std::optional<Seconds>& time_limit,
                                  bool exempt, bool contracts_in_force, const Parameters& parameters);

// A part of a pending heterogeneous job, and what its record is to say.
struct PendingPart {
    RunTag tag = {};
    bool without_budget = false;  // of its leaf, for certain (B4)
    std::optional<Seconds> time_limit = {};
};

// C7: all parts get the largest contract, each as far as its time limit lets it (C4). Where one has no budget all
// are unallocated: it would be free and yet as protected as the others (C5).
void settle_parts(std::span<PendingPart> parts);

// What the queue counts a waiting job as (Q1, Q2, U4): class, and the contract that its next run will have. In force
// that is by its tag, or by the site's default where it has none (C9).
struct PendingTerms {
    RunClass run_class = RunClass::kAllocated;
    Seconds contract = 0;
};
PendingTerms pending_terms(const std::optional<RunTag>& tag, bool has_budget, const std::optional<Seconds>& time_limit,
                           bool exempt, bool contracts_in_force, const Parameters& parameters);

}  // namespace budget

#endif
