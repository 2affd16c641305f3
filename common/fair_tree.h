// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm's Fair Tree, computed as priority/multifactor of 22.05 does it, to the
// last bit: for the order of jobs without GPUs (rule Q7), and as a baseline.
// Usage in any unit. A user's factor is rank / number of users, 1 is best.
// Pure function; any thread.
#ifndef SLURM_BUDGET_COMMON_FAIR_TREE_H
#define SLURM_BUDGET_COMMON_FAIR_TREE_H

#include <cstdint>
#include <span>

namespace budget {

struct FairTreeRow {
    std::uint32_t id = 0;
    std::uint32_t parent_id = 0;  // 0: the root account
    std::uint32_t shares = 1;     // raw share or kSharesParent
    bool is_user = false;
    long double usage = 0;  // own, for an account with all below it
    double fs_factor = 0;   // out; accounts keep what they have
};

// Fills in fs_factor of every user that hangs on the root account; others keep
// theirs. Depth first, siblings by falling level_fs = (share / level's shares) /
// (usage / parent's usage): infinite without usage, 0 without share (also where
// both are 0), users with kSharesParent infinite. The children of an account
// with kSharesParent count as the nearest other ancestor's, whose usage is also
// the divisor; the account itself has an empty place among them.
// Ties: equal users share a rank, and users come before equal accounts. An
// account that ties with the sibling before it starts with the rank of the user
// ranked last; the account's children are not merged with those of an equal
// account, although Slurm's description says so, because the code does not.
// So the order of equal accounts, which is that of the rows, matters: give
// them as Slurm's association list has them.
void fair_tree(std::span<FairTreeRow> rows);

}  // namespace budget

#endif
