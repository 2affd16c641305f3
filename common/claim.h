// SPDX-License-Identifier: GPL-2.0-or-later
//
// Claims on the next GPU (rules U5, Q1 to Q4, P3): who is furthest below their
// share, in which order pending jobs come, and whose run may give way.
// Compares exact integers by cross-multiplication; no floating point decides.
// Pure functions of their arguments; the result is immutable, any thread.
#ifndef SLURM_BUDGET_COMMON_CLAIM_H
#define SLURM_BUDGET_COMMON_CLAIM_H

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ledger.h"
#include "parameters.h"
#include "tree.h"
#include "units.h"

namespace budget {

// A pending job record, or the pending tasks of one job array record. Job ids
// are unique within a list.
struct PendingJob {
    std::uint32_t job_id = 0;
    std::uint32_t array_job_id = 0;  // of an array's record: stands in for the job id in the order; else 0
    std::uint32_t array_task = 0;    // the record's first task: tasks of an array come in their order
    NodeIndex leaf = kRoot;          // where it is charged (Tree::find)
    RunClass run_class = RunClass::kAllocated;
    Rate rate = 0;
    Seconds contract = 0;  // counted as at least the quantum (Q2)
    std::uint32_t qos_priority = 0;
    std::int64_t nice = 0;          // Slurm's nice, 0 is neutral; lower comes first
    Seconds eligible_since = 0;     // first eligible (Q3)
    std::uint32_t tasks = 1;        // pending tasks of an array record; 0 counts as 1
    std::uint32_t tasks_ahead = 1;  // how many of them get a place of their own (Q2); the rest get one place together
    bool eligible = true;           // false: dependent, delayed or blocked by a limit; gets a place but moves nobody's
};

// A place in the queue. Jobs with tasks > 1 occur tasks_ahead times (task 0, 1, ...)
// and once more for the rest where tasks > tasks_ahead.
struct Place {
    std::uint32_t job = 0;   // index into the list given to order()
    std::uint32_t task = 0;  // 0-based; == tasks_ahead for the remainder
    bool operator==(const Place&) const = default;
};

// The class that a job is ordered in: allocated only with a budget (C5).
RunClass class_in_queue(const Tree& tree, const PendingJob& job);

// The claims of all nodes of a tree in one class at one instant. Holds what it
// needs of its arguments, so that it can be published (snapshot.h).
class Claims {
   public:
    Claims() = default;

    // usage: by NodeIndex (Ledger::node_usage), for the window and shape of
    // parameters. capacity: GPU weight of the nodes up, for ratio() alone.
    Claims(const Tree& tree, std::span<const NodeUsage> usage, RunClass run_class, const Parameters& parameters,
           Rate capacity);

    std::size_t size() const { return nodes_.size(); }

    // Less: a has the better claim (lower ratio). Siblings only. Weight 0 is worse
    // than any weight above 0; two of weight 0 are equal (B4).
    std::weak_ordering compare(NodeIndex a, NodeIndex b) const;

    // The numerator of r (U5), from 0 to an upper bound that no real cluster
    // reaches. In a unit that is the same for all nodes of this object, and
    // depends on the parameters: only its order and quotients mean anything.
    Wide numerator(NodeIndex n) const { return nodes_[n].numerator; }

    // r(n, t) of U5 for display, never infinite: nothing for a node without
    // budget (B4), nor without capacity.
    std::optional<double> ratio(NodeIndex n) const;

    // P3: may a run of victim_leaf give way to a job of preemptor_leaf, by claims
    // alone? Compares where the two paths part, with the margin. False inside
    // one leaf, where one lies below the other, and for a preemptor without
    // budget. Allocates nothing, takes no lock; O(depth).
    bool better(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const;

    // The two siblings at which the paths of two leaves part; nothing inside one leaf, and where one
    // lies below the other.
    struct Fork {
        NodeIndex preemptor = kRoot;
        NodeIndex victim = kRoot;
    };
    std::optional<Fork> fork(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const;

    // P3 at a fork, with `ahead` added to the preemptor's numerator. The caller has seen to the
    // preemptor's budget.
    bool wins(const Fork& fork, Wide ahead) const;

    bool has_budget(NodeIndex n) const { return nodes_[n].has_budget; }
    NodeIndex parent(NodeIndex n) const { return nodes_[n].parent; }

    // Q2: what the start of an allocated job adds to the numerators along its path.
    Wide cost(Rate rate, Seconds contract) const;

    // As ratio(), with `ahead` added to the numerator.
    std::optional<double> ratio(NodeIndex n, Wide ahead) const;

    // By NodeIndex, 0 for the worst claim: leaves by the claims of the siblings at which their paths
    // part (P5). Leaves of one parent with equal claims have equal ranks; equal inner nodes come in
    // the order of the tree, a node itself before all below it.
    std::vector<std::uint32_t> ranks_from_worst() const;

   private:
    struct NodeClaim {
        Wide numerator = 0;
        double entitlement = 0;
        NodeIndex parent = kRoot;
        std::uint32_t depth = 0;
        std::uint32_t weight = 0;
        bool has_budget = false;
    };
    std::vector<NodeClaim> nodes_;
    std::uint32_t margin_millis_ = 0;
    double whole_ = 0;  // the numerator of a ratio of 1 at the root
    Seconds quantum_ = 0;
    Wide committed_unit_ = 0;  // the numerator of a unit of GPU time committed
    Wide running_unit_ = 0;    // and of a unit of rate started
};

// The claims while the queue is gone through (P3): what the jobs ahead cost counts on the
// preemptor's side alone, along their paths. Not thread-safe.
class Contest {
   public:
    explicit Contest(Claims claims) : claims_(std::move(claims)), ahead_(claims_.size(), 0) {}

    // Counts a cost (Claims::cost) from the leaf up to the root; a negative one takes it out again.
    void add(NodeIndex leaf, Wide cost);

    // As Claims::better, with what has been counted. Allocates nothing; O(depth).
    bool better(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const;

    // r of both sides where the paths part, the preemptor's with what has been counted; 0 where there is none.
    struct Ratios {
        double preemptor = 0;
        double victim = 0;
    };
    Ratios ratios(NodeIndex preemptor_leaf, NodeIndex victim_leaf) const;

    const Claims& claims() const { return claims_; }

   private:
    Claims claims_;
    std::vector<Wide> ahead_;
};

// Progressive filling (Q1 to Q4): all places, first to start first. Deterministic
// and independent of the order of the list.
//
// Again and again: from the root to the child with the best claim that has jobs
// left, down to a leaf; its first job by Q3 gets the next place, and its cost is
// added along the path. Cost: rate x max(contract, quantum), and its lead;
// unallocated jobs, which have no contract, cost the quantum. Equal claims: the
// earlier eligible time of the two jobs that would be taken, then the lower id.
// - Each task of an array that gets a place of its own costs as a job. The
//   rest follows as the array's last pick, at the cost of one task; only then
//   does the leaf go on with its next job.
// - Jobs charged to a node that has children come after those of all its
//   children, as those of a weight of 0 do.
// - Jobs that are not eligible stand where a filling over all jobs puts them; the
//   others keep, among themselves, the order they have without them.
std::vector<Place> order(const Tree& tree, std::span<const NodeUsage> usage, std::span<const PendingJob> jobs,
                         const Parameters& parameters);

}  // namespace budget

#endif
