// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sums of GPUs, cores and memory (MB) in placement: may be negative where more is
// used than there is, and are held down to what no machine has.
#ifndef SLURM_BUDGET_COMMON_AMOUNT_H
#define SLURM_BUDGET_COMMON_AMOUNT_H

#include <algorithm>
#include <cstdint>

#include "units.h"

namespace budget {

using Amount = std::int64_t;

inline constexpr Amount kPlenty = Amount{1} << 60;      // more than there is of anything
inline constexpr Amount kMostMemory = Amount{1} << 40;  // MB; more is garbage

inline Amount product(Amount a, Amount b) {
    return static_cast<Amount>(std::min<Wide>(static_cast<Wide>(a) * b, kPlenty));
}

inline Amount megabytes(std::uint64_t memory) {
    return static_cast<Amount>(std::min<std::uint64_t>(memory, kMostMemory));
}

inline Amount round_up(Amount n, Amount chunk) {
    return (n + chunk - 1) / chunk * chunk;
}

}  // namespace budget

#endif
