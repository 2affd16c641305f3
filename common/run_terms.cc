// SPDX-License-Identifier: GPL-2.0-or-later
//
// See run_terms.h.

#include "run_terms.h"

#include <algorithm>
#include <vector>

#include "contract.h"

namespace budget {

namespace {

// C3: whoever has agreed to run unallocated does so, where agreements are in force.
RunClass first_class(const RunSigns& signs) {
    if (!signs.tag) return signs.by_budget;
    if (!signs.seen_starting) return signs.tag->run_class;
    const bool agreed =
        signs.contracts_in_force && signs.tag->run_class == RunClass::kUnallocated && !signs.never_victim;
    return agreed ? RunClass::kUnallocated : signs.by_budget;
}

// C9: what is protected from the first sight on, as a contract from the start on. Of one that had ended by then it is
// the longest.
Seconds unreadable_contract(const RunView& run, const RunSigns& signs) {
    const Seconds before = run.end ? 0 : std::max<Seconds>(signs.now - run.start - run.suspended_before, 0);
    const Seconds contract = before + signs.longest;
    return signs.time_limit ? std::min(contract, std::max<Seconds>(*signs.time_limit, 0)) : contract;
}

bool tells_contract(const std::optional<RunTag>& tag) {
    return tag && tag->run_class == RunClass::kAllocated && tag->contract != kNotAsked;
}

// An unallocated tag tells of none; that its run is allocated all the same is since nobody asked.
Seconds first_contract(const RunView& run, const RunSigns& signs) {
    if (run.run_class != RunClass::kAllocated) return 0;
    if (tells_contract(signs.tag)) return signs.tag->contract;
    if (signs.never_victim && signs.tag && signs.tag->run_class == RunClass::kUnallocated) return 0;
    return signs.contracts_in_force ? unreadable_contract(run, signs) : 0;
}

// The tag of a run that has ended may be that of the job's next run already.
Seconds contract_now(const RunView& run, const Run& known, const RunSigns& signs) {
    if (run.end || !signs.tag || known.run_class != RunClass::kAllocated) return known.contract;
    if (tells_contract(signs.tag)) return signs.tag->contract;
    const bool nobody_asked = signs.tag->contract == kNotAsked && known.contract == 0;
    return nobody_asked && signs.contracts_in_force ? unreadable_contract(run, signs) : known.contract;
}

}  // namespace

void settle_terms(RunView& run, const Run* known, const RunSigns& signs) {
    if (known && is_another_job(*known, run)) known = nullptr;
    run.run_class = known ? known->run_class : first_class(signs);
    run.contract = known ? contract_now(run, *known, signs) : first_contract(run, signs);
    const bool is_broken = (signs.broken || signs.by_operator) && run.end &&
                           ends_within_contract(run.start, *run.end, run.suspended_before, run.contract);
    run.refunded = run.end && (is_broken || (known && known->refunded));
    run.by_itself = run.end && (run.by_itself || (known && known->ended && known->by_itself));
}

bool ends_within_contract(Seconds start, Seconds end, Seconds suspended, Seconds contract) {
    return Wide{end} < Wide{start} + suspended + contract;
}

RunTag tag_for(const Run& run, Rate rate, bool beyond_tres, bool contracts_in_force) {
    RunTag tag;
    tag.run_class = run.run_class;
    if (run.run_class == RunClass::kAllocated)
        tag.contract = run.contract == 0 && !contracts_in_force ? kNotAsked : Seconds{run.contract};
    if (beyond_tres) tag.rate = rate;
    return tag;
}

std::optional<RunTag> pending_tag(const std::optional<RunTag>& tag, const std::optional<Seconds>& time_limit,
                                  bool exempt, bool contracts_in_force, const Parameters& parameters) {
    if (tag && tag->contract != kNotAsked) return tag;
    if (!contracts_in_force) return std::nullopt;
    return default_terms(time_limit, exempt, parameters);
}

void settle_parts(std::span<PendingPart> parts) {
    std::vector<std::optional<RunTag>> each;
    for (const PendingPart& part : parts) each.push_back(part.tag);
    RunTag all = combine_terms(each);
    const bool one_is_free =
        std::any_of(parts.begin(), parts.end(), [](const PendingPart& part) { return part.without_budget; });
    if (one_is_free) all = {.run_class = RunClass::kUnallocated};
    for (PendingPart& part : parts) {
        part.tag.run_class = all.run_class;
        part.tag.contract = std::min(all.contract, part.time_limit.value_or(all.contract));
    }
}

PendingTerms pending_terms(const std::optional<RunTag>& tag, bool has_budget, const std::optional<Seconds>& time_limit,
                           bool exempt, bool contracts_in_force, const Parameters& parameters) {
    constexpr PendingTerms kFree = {.run_class = RunClass::kUnallocated};
    if (!has_budget) return kFree;
    const std::optional<RunTag> terms = pending_tag(tag, time_limit, exempt, contracts_in_force, parameters);
    if (!terms) return {};
    if (terms->run_class == RunClass::kUnallocated) return contracts_in_force ? kFree : PendingTerms{};
    return {.contract = std::max<Seconds>(terms->contract, 0)};
}

}  // namespace budget
