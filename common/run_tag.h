// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands at the front of a run's admin_comment (rule U10): its class, its
// contract, and where Slurm's own records cannot tell, the GPU weight that is
// charged. Slurm hands the comment to its accounting database when the run ends,
// so that usage can be rebuilt from there. Text of others is kept behind it.
//     [budget class=allocated contract=7200] text of others
//     [budget class=unallocated]
//     [budget class=allocated contract=none gpus=8]
//     [budget class=allocated contract=7200 preempted_for=9 reason=claim account=c ratios=0.410/0.930 over=310]
// Of a pending job it is what the next run will have, and why the last one was stopped. Pure functions.
#ifndef SLURM_BUDGET_COMMON_RUN_TAG_H
#define SLURM_BUDGET_COMMON_RUN_TAG_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ledger.h"
#include "units.h"

namespace budget {

// Why the run was stopped for another (P3, P4).
struct PreemptedFor {
    std::uint32_t job_id = 0;
    enum class Reason : std::uint8_t { kUnallocated, kClaim, kPriority } reason = Reason::kUnallocated;
    std::string account = {};                 // of that job; empty: not to be told
    std::int64_t preemptor_ratio_millis = 0;  // of kClaim, where the paths part
    std::int64_t victim_ratio_millis = 0;
    Seconds over = 0;  // for how long the contract had been over
    bool operator==(const PreemptedFor&) const = default;
};

// Nobody asked for a minimum when the run began, contracts not being in force: it is not one of 0 (C9).
inline constexpr Seconds kNotAsked = -1;

struct RunTag {
    RunClass run_class = RunClass::kAllocated;
    Seconds contract = 0;           // 0 to 2^32 - 1, or kNotAsked; an unallocated run has none
    std::optional<Rate> rate = {};  // gpus=8, or as an exact fraction gpus=4/7; only where AllocTRES does not tell
    std::optional<PreemptedFor> preempted = {};
    bool operator==(const RunTag&) const = default;
};

// A reason in the word that tags, log and tools use, and thousandths of a ratio as 0.410.
std::string_view name_of(PreemptedFor::Reason reason);
std::string millis_text(std::int64_t millis);

// The tag in brackets. An account with a bracket, blank, or control character is left out.
std::string to_string(const RunTag& tag);

// The tag at the front of a comment. Nothing where there is none or it cannot be read
// (unknown class, bad number, a key twice, a contract missing or one of an unallocated run, no
// closing bracket); a key not known here is passed over, and so is a reason for a preemption of which a
// part is missing or cannot be read. Allocates nothing but the name of an account.
std::optional<RunTag> read_tag(std::string_view comment);

// What stands behind the tag and one blank, or the whole comment if it begins with none. What
// cannot be read is a tag as well if it is in [budget ...] on one line, without brackets in it.
std::string_view behind_tag(std::string_view comment);

// The comment with this tag at its front, in place of the one it may have.
std::string put_tag(const RunTag& tag, std::string_view comment);

}  // namespace budget

#endif
