// SPDX-License-Identifier: GPL-2.0-or-later
//
// Priority numbers for a queue order (rule Q6): strictly falling numbers inside
// a band, changing as few of the numbers already given as possible, so that
// slurmctld is told only of real changes. Pure function; any thread.
#ifndef SLURM_BUDGET_COMMON_NUMBERING_H
#define SLURM_BUDGET_COMMON_NUMBERING_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace budget {

// The half-open range [low, high) that numbers come from.
struct NumberBand {
    std::uint32_t low = 0;
    std::uint32_t high = 0;
    constexpr bool contains(std::uint32_t n) const { return n >= low && n < high; }
    constexpr std::uint32_t size() const { return high > low ? high - low : 0; }
};

// numbers[i] is the number that the i-th in order has now (one outside the
// band: none); on return they fall strictly. Kept is a longest subsequence of
// the present numbers that falls and leaves room in every gap for those who
// stand between, so that no other assignment changes fewer; but where gaps have
// become tight, those beside them are dealt anew with them, as far as it takes
// to be roomy again, in the end all. Steady arrivals at one place of the queue
// thus move a few numbers each, not a long row every time.
// Those who are dealt are spread evenly over their gap; before the first and
// behind the last that is kept they stay near it, so that arrivals at the ends
// do not use up the band. Where nothing is kept, all are spread over the middle
// of the band. Falling numbers inside the band stay as they are.
// Precondition: the band has at least as many numbers as there are entries.
// O(n log n). Returns how many changed.
std::size_t renumber(std::span<std::uint32_t> numbers, NumberBand band);

}  // namespace budget

#endif
