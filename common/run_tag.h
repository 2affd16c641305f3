// SPDX-License-Identifier: GPL-2.0-or-later
//
// What stands at the front of a run's admin_comment (rule U10): its class, its
// contract, and where Slurm's own records cannot tell, the GPU weight that is
// charged. Slurm hands the comment to its accounting database when the run ends,
// so that usage can be rebuilt from there. Text of others is kept behind it.
//     [budget class=allocated contract=7200] text of others
//     [budget class=unallocated]
//     [budget class=allocated contract=0 gpus=8]
// Pure functions.
#ifndef SLURM_BUDGET_COMMON_RUN_TAG_H
#define SLURM_BUDGET_COMMON_RUN_TAG_H

#include <optional>
#include <string>
#include <string_view>

#include "ledger.h"
#include "units.h"

namespace budget {

struct RunTag {
    RunClass run_class = RunClass::kAllocated;
    Seconds contract = 0;           // 0 to 2^32 - 1; an unallocated run has none
    std::optional<Rate> rate = {};  // gpus=8, or as an exact fraction gpus=4/7; only where AllocTRES does not tell
    bool operator==(const RunTag&) const = default;
};

// The tag in brackets.
std::string to_string(const RunTag& tag);

// The tag at the front of a comment. Nothing where there is none or it cannot be read
// (unknown class, bad number, a key twice, a contract missing or one of an unallocated run, no
// closing bracket); a key not known here is passed over. Allocates nothing.
std::optional<RunTag> read_tag(std::string_view comment);

// What stands behind the tag and one blank, or the whole comment if it begins with none. What
// cannot be read is a tag as well if it is in [budget ...] on one line, without brackets in it.
std::string_view behind_tag(std::string_view comment);

// The comment with this tag at its front, in place of the one it may have.
std::string put_tag(const RunTag& tag, std::string_view comment);

}  // namespace budget

#endif
