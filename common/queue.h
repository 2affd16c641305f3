// SPDX-License-Identifier: GPL-2.0-or-later
//
// From the pending jobs to the numbers that Slurm sorts by (rules Q1, Q2, Q6):
// the order of claim.h, which job arrays have to be split so that their first
// tasks get numbers of their own, and the bands of priority numbers. Weights in
// 1/5040 GPU. Pure functions and one small memory; not thread-safe.
#ifndef SLURM_BUDGET_COMMON_QUEUE_H
#define SLURM_BUDGET_COMMON_QUEUE_H

#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "claim.h"
#include "ledger.h"
#include "numbering.h"
#include "parameters.h"
#include "tree.h"
#include "units.h"

namespace budget {

// All numbers that are given out lie in [kPriorityLow, kPriorityHigh); those
// outside are an operator's and count literally (Q6).
inline constexpr std::uint32_t kPriorityLow = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kPriorityHigh = std::uint32_t{1} << 31;

// Where the classes lie among the numbers. The band of jobs without GPUs (Q7)
// is wide enough for any sum of multifactor's weights below 2^30.
struct Bands {
    NumberBand allocated;
    NumberBand no_gpu;
    NumberBand unallocated;
};
Bands bands(Parameters::Band no_gpu);

// A pending record as it stands in Slurm.
struct QueueEntry {
    PendingJob job;            // tasks_ahead is worked out here
    std::uint32_t number = 0;  // its number now
    // How many more tasks the array's own limit lets start now.
    std::uint32_t task_room = std::numeric_limits<std::uint32_t>::max();
    // Others are being stopped for it (P3). It stands before all of its class until it starts: the
    // place that is made free is its own, and both of Slurm's schedulers go by the number.
    bool being_placed = false;
};

// A record of the queue after the splits, and the number it ought to have.
struct NumberedPlace {
    std::uint32_t entry = 0;  // index into the entries given
    std::uint32_t task = 0;   // 0: the record as it is, or the first task to be split off; k: the next ones
    bool rest = false;        // what remains of the array record after the splits
    std::uint32_t number = 0;
    std::uint32_t position = 0;  // 1 is first
    bool changed = false;        // false: entry has just this number already, and no split is due
};

// Ranks and numbers the pending jobs. startable: the GPU weight that could be
// free at the next scheduling pass (idle now, and what one ending run may add);
// it bounds how many array tasks are split off (Q2). Allocated entries that are being
// placed come first, in their order. Deterministic, and independent of the order of the entries.
std::vector<NumberedPlace> place_queue(const Tree& tree, std::span<const NodeUsage> usage,
                                       std::span<const QueueEntry> entries, Rate startable,
                                       const Parameters& parameters);

// When each pending or running job was first eligible (Q3), remembered over
// requeues, for as long as the job is shown in every scan.
class FirstEligible {
   public:
    void begin_scan();

    // The job is there; eligible_time is what Slurm says now, nothing while it
    // waits for a dependency or a begin time. Returns the remembered instant,
    // or nothing if it has never been eligible.
    std::optional<Seconds> see(std::uint32_t job_id, std::optional<Seconds> eligible_time);

    // Forgets the jobs not seen since begin_scan.
    void end_scan();

    std::size_t size() const { return jobs_.size(); }

    // Job ids and instants, by id, to be kept over the process's end; and taking them back, for
    // jobs not seen yet.
    std::vector<std::pair<std::uint32_t, Seconds>> image() const;
    void restore(std::span<const std::pair<std::uint32_t, Seconds>> image);

   private:
    struct Memory {
        std::optional<Seconds> since;
        std::uint64_t scan = 0;
    };
    std::unordered_map<std::uint32_t, Memory> jobs_;
    std::uint64_t scan_ = 0;
};

}  // namespace budget

#endif
