// SPDX-License-Identifier: GPL-2.0-or-later
//
// The minimum runtime of a job (rules C1 to C9): what a submission gets, what an
// update may change, and the words in which people are told. Durations in seconds.
// Pure functions.
#ifndef SLURM_BUDGET_COMMON_CONTRACT_H
#define SLURM_BUDGET_COMMON_CONTRACT_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parameters.h"
#include "result.h"
#include "run_tag.h"
#include "units.h"

namespace budget {

// A job as it is submitted, or as it would be after an update.
struct ContractRequest {
    bool gpus = true;                     // asks for GPUs, in whatever spelling (U1)
    bool system = false;                  // of root or SlurmUser (C8)
    std::optional<bool> has_budget = {};  // of its leaf (B4); nothing: cannot be told now
    std::string_view partitions = {};     // as asked for, comma-separated; the default one if none
    std::string_view qos = {};
    bool never_victim = false;  // a reservation, or PreemptMode=OFF of all its partitions: exempt as by name (C8)
    std::optional<std::string_view> stated = {};  // --min-runtime as it was written
    std::optional<Seconds> time_limit = {};       // the one that will apply; nothing: none
    std::optional<Seconds> time_min = {};
    bool requeueable = true;  // false: salloc, srun, --no-requeue
    bool interactive = false;
    bool in_het_job = false;  // a part of a heterogeneous job: another part may state the minimum (C7)
};

// refusal set: nothing else counts, the job is refused in these words. Each text is one line without newline.
struct ContractAnswer {
    std::optional<std::string> refusal = {};
    std::vector<std::string> notices = {};  // for the owner
    std::optional<RunTag> tag = {};         // for the job's record; nothing: outside the contract
    std::optional<Seconds> time_min = {};   // to be set instead of what was asked; whole minutes, as Slurm has it
    bool in_unallocated_qos = false;        // the site's QOS for unallocated jobs has to be set
};

// C1 to C5, C8: what a submission gets.
ContractAnswer settle_contract(const ContractRequest& request, const Parameters& parameters);

// A job of the queue or a run, and what somebody wants changed of it.
struct ContractChange {
    ContractRequest job =
        {};  // as it would be with the other changes of the update; `stated` is the new minimum, if any
    std::optional<RunTag> tag = {};  // as the record has it
    bool pending = true;             // false: a run
    bool by_operator = false;        // an operator or administrator asks
    bool limit_changes = true;       // the update may give another time limit (itself, a partition, a QOS)
};

// C6: what an update does. A pending job's terms are settled anew, with what it had stated where nothing new is
// stated; a run keeps its class, its owner may lower its minimum, an operator raise it up to the maximum
// and the time limit. Whether whoever asks may change this job at all is for the caller to know.
ContractAnswer amend_contract(const ContractChange& change, const Parameters& parameters);

// C7: what all parts of a heterogeneous job with GPUs get: allocated if any is, with the largest contract. A
// part without a tag says nothing; rate and reason of a tag stay each part's own and are not in the answer. The
// time limit of a part that has a shorter one goes before (C4), which the caller sees to.
RunTag combine_terms(std::span<const std::optional<RunTag>> parts);

// C9: what a pending job counts as whose record has no readable contract: the site's default, and where it
// has none the longest, as far as the time limit lets it.
RunTag default_terms(const std::optional<Seconds>& time_limit, bool exempt, const Parameters& parameters);

// Is a job exempt by its partition (the one it runs in, or all it asks for) or QOS (C8)?
bool is_exempt(std::string_view partitions, std::string_view qos, const Parameters& parameters);

// The value of a `min-runtime=TIME` word in a job's comment, for clients without SPANK, and the
// comment without it. Of two such words the values together, which are no time and so are refused.
struct CommentToken {
    std::optional<std::string> value;
    std::string rest;
};
CommentToken take_token(std::string_view comment);

}  // namespace budget

#endif
