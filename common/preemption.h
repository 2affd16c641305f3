// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who preempts whom now (rules P1 to P6): walks the queue in its order over what is
// free and who may give way. The controller publishes the picks, the simulator acts on
// them; both call plan(). Instants are UTC seconds, work lost is in 1/5040 GPU-seconds.
// Pure functions of their arguments.
#ifndef SLURM_BUDGET_COMMON_PREEMPTION_H
#define SLURM_BUDGET_COMMON_PREEMPTION_H

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "claim.h"
#include "ledger.h"
#include "parameters.h"
#include "placement.h"
#include "tree.h"
#include "units.h"

namespace budget {

// Q3: the higher QOS priority, then the lower nice, is the higher stated priority.
struct StatedPriority {
    std::uint32_t qos_priority = 0;
    std::int64_t nice = 0;
    bool higher_than(const StatedPriority& other) const {
        return qos_priority != other.qos_priority ? qos_priority > other.qos_priority : nice < other.nice;
    }
};

// A run that holds a place.
struct Incumbent {
    RunKey key = {};
    NodeIndex leaf = kRoot;
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;
    StatedPriority stated = {};
    Seconds start = 0;
    Seconds protected_until = 0;  // the end of its contract; of an unallocated one its start
    Seconds checkpoint = 0;       // the last one known, a contract's end being one; else the start
    bool exempt = false;          // never a victim (C8), suspended (U6), or being stopped already
    std::uint64_t group = 0;      // parts of one heterogeneous job have one; else 0
    std::vector<Holding> holdings = {};
};

// A pending job, in the order of the queue (Q2); the tasks of an array as candidates of their own.
struct Candidate {
    std::uint32_t job_id = 0;
    NodeIndex leaf = kRoot;
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;
    Seconds contract = 0;
    StatedPriority stated = {};
    PlacementRequest request = {};
    bool modelled = true;  // false: it asks for what placement.h does not see
    bool left_to_slurm =
        false;  // picks for it were not followed by a placement: Slurm chooses among all rightful victims
    // Its victims are being stopped: its contract counts for everybody (P3), and it gets no more victims, but
    // fits or is blocked (or left, with none).
    bool being_placed = false;
    // Parts of one heterogeneous job have one, and are decided together where the first of them stands: all of them fit
    // or preempt, none costing the others, or all are blocked, as they are if not all `parts` are candidates. 0: none.
    std::uint64_t group = 0;
    std::uint32_t parts = 0;
};

enum class Outcome : std::uint8_t {
    kFits,      // starts without anybody giving way
    kPreempts,  // with these victims
    kLeft,      // not modelled, or left to Slurm: victims are all that may give way to it
    kBlocked,   // not now
    kNever,     // not even on an empty cluster
};

// By what right a victim gives way.
enum class Right : std::uint8_t { kUnallocated, kClaim, kStatedPriority };

struct Victim {
    std::uint32_t incumbent = 0;  // index
    Right right = Right::kUnallocated;
    // r of both sides where their paths part, the preemptor's with the contracts ahead; only of kClaim.
    double preemptor_ratio = 0;
    double victim_ratio = 0;
};

struct Decision {
    Outcome outcome = Outcome::kBlocked;
    std::vector<Holding> places = {};  // of kFits and kPreempts
    std::vector<Victim> victims = {};  // by P5's order: the first to go first
};

struct Plan {
    std::vector<Decision> decisions;  // by candidate
    // The earliest instant after now at which somebody gets past a contract whose place somebody blocked
    // could have by P3 or P4 (by claims as they are now).
    std::optional<Seconds> next_look;
};

// What is there beside runs in the budgets.
struct Surroundings {
    std::size_t node_count = 0;
    std::span<const Holding> totals = {};
    std::vector<bool> open = {};
    std::span<const Holding> others = {};  // held by jobs without GPUs, of root, and the like: never victims
};

// Decides for the candidates in their order, each on what those before it leave. usage: by
// NodeIndex (Ledger::node_usage). A candidate's cost (Q2) counts on its path for all after it if it
// fits or preempts, as does that of every blocked one ahead of it; that of one being placed counts for all others.
// limit: how many attempts at a placement are made; candidates after that are blocked.
Plan plan(const Tree& tree, std::span<const NodeUsage> usage, const Parameters& parameters, Rate capacity,
          const Surroundings& surroundings, std::span<const Incumbent> incumbents,
          std::span<const Candidate> candidates, Seconds now, std::size_t limit);

}  // namespace budget

#endif
