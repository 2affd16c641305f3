// SPDX-License-Identifier: GPL-2.0-or-later
//
// The budget as Slurm's own tools show it: for each association the GPU time
// in the window, its part of the parent's and of the cluster's, and LevelFS and
// FairShare in the order of the claims. For display; order() never uses it.
// Pure function; any thread.
#ifndef SLURM_BUDGET_COMMON_SHARES_H
#define SLURM_BUDGET_COMMON_SHARES_H

#include <span>
#include <vector>

#include "claim.h"
#include "tree.h"
#include "units.h"

namespace budget {

struct Share {
    AssocId assoc = 0;
    double norm_shares = 0;       // entitled part among siblings (B2)
    long double gpu_seconds = 0;  // allocated, in the window; an account's is the sum of what is below it
    long double of_cluster = 0;   // its part of the root's
    long double of_parent = 0;    // its part of its parent's
    long double level_fs =
        0;  // entitled part over used part among siblings; infinite where nothing is used, 0 without weight
    double fs_factor = 0;  // users: (0, 1], 1 for the best claim; leaves with equal claims have the same
};

// own: GPU time charged directly to each association (by position in
// associations), for accounts that of former members. claims: of the allocated
// class, by the nodes of tree. The result is in the order of associations. User root
// directly under the root account has usage, but no weight (B2), and so no claim: 0.
std::vector<Share> shares(std::span<const Association> associations, const Tree& tree, std::span<const Wide> own,
                          const Claims& claims);

}  // namespace budget

#endif
