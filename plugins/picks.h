// SPDX-License-Identifier: GPL-2.0-or-later
//
// From the views of a pass to what plan() (common/preemption) takes, and from its
// decisions to the picks that are published (rules P1 to P5). Instants are UTC
// seconds, memory is in MB. Used by the engine under its lock.
#ifndef SLURM_BUDGET_PLUGINS_PICKS_H
#define SLURM_BUDGET_PLUGINS_PICKS_H

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/ledger.h"
#include "common/parameters.h"
#include "common/preemption.h"
#include "common/tree.h"
#include "plugins/engine.h"
#include "plugins/notices.h"
#include "plugins/verdicts.h"

namespace budget {

// A place of the queue, in its order.
struct Waiting {
    std::uint32_t job = 0;  // index into the jobs of the pass
    std::uint32_t number = 0;
    RunClass run_class = RunClass::kAllocated;  // class_in_queue
    Seconds contract = 0;
    bool left = false;  // Verdicts::is_left
};

// How many jobs a pass tries to place at the most.
inline constexpr std::size_t kPlacementAttempts = 1000;

// What a pass knows, and what it is asked with.
class Planning {
   public:
    Planning(const budget_pass& pass, const Tree& tree, const Ledger& ledger, const Parameters& parameters,
             const Notices& notices);

    // The request of a job of the pass, and whether placement can see all of it.
    PlacementRequest request(const budget_job& job) const;

    // Whoever waits, in any order; they come by their numbers.
    void set_queue(std::vector<Waiting> queue);

    Plan make(std::span<const NodeUsage> usage) const;

    // account: of the association of a job; leaf names are the tree's.
    std::vector<Pick> picks(const Plan& plan, std::span<const Association> associations) const;

   private:
    void take_up_runs(const Ledger& ledger, const Notices& notices);
    Candidate candidate(const Waiting& waiting) const;
    PickedVictim picked(const Victim& victim) const;

    const budget_pass& pass_;
    const Tree& tree_;
    const Parameters& parameters_;
    std::vector<Holding> totals_;
    std::vector<Holding> others_;
    std::vector<Incumbent> incumbents_;
    std::vector<Seconds> contracts_;        // by incumbent
    std::vector<const budget_job*> views_;  // by incumbent
    std::vector<Waiting> queue_;
    std::vector<Candidate> candidates_;
    std::unordered_map<std::uint32_t, std::uint32_t> parts_;  // pending ones, by heterogeneous job
};

}  // namespace budget

#endif
