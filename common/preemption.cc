// SPDX-License-Identifier: GPL-2.0-or-later
//
// The walk along the queue; see preemption.h. While it goes on rights only shrink, as costs are added on the
// preemptors' side alone (P3), and free room grows only where somebody was picked as a victim. So what has failed
// once is not tried again before that.
#include "preemption.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

namespace budget {

namespace {

// A form of request. Its nodes are compared by their hash: bit by bit that would take longer than all the rest.
struct Form {
    const PlacementRequest* request = nullptr;
    std::size_t nodes = 0;

    explicit Form(const PlacementRequest& asked) : request(&asked), nodes(std::hash<NodeSet>()(asked.allowed)) {}

    auto key() const {
        const PlacementRequest& r = *request;
        return std::tuple(nodes, r.allowed.size(), r.min_nodes, r.max_nodes, r.kind, r.gpus, r.gpus_per_node,
                          r.gpu_chunk, r.cpus, r.cpus_per_node, r.cpus_per_gpu, r.memory_per_node, r.memory_per_cpu,
                          r.memory_per_gpu, r.whole_nodes);
    }
    bool operator==(const Form& other) const { return key() == other.key(); }
};

struct FormHash {
    std::size_t operator()(const Form& form) const {
        std::size_t hash = 0;
        std::apply([&](auto... value) { ((hash = (hash ^ static_cast<std::size_t>(value)) * kOdd ^ hash >> 29), ...); },
                   form.key());
        return hash;
    }
    static constexpr std::size_t kOdd = 0x9e3779b97f4a7c15;
};

// What is known of one form of request, of whomever.
struct Shape {
    std::uint32_t index = 0;
    bool looked = false;  // whether it can ever fit is known
    bool never = false;
    std::uint64_t unfit_since = 0;  // the generation in which it did not fit into what was free; 0: none
};

// The attempts with victims that a leaf has made for a shape.
struct Failure {
    StatedPriority stated = {};
    std::uint64_t generation = 0;
};

// Whom a leaf's candidates may have stopped.
struct Rights {
    bool begun = false;
    std::vector<NodeIndex> beaten = {};  // leaves with a worse claim (P3)
    StatedPriority stated = {};          // of the candidate that `victims` was made for
    std::size_t count = 0;               // who may go, at that time
    Victims victims = {};
    std::vector<bool> may_go = {};
    bool looked = false;  // next_look has been asked, for this stated priority or a higher one
    StatedPriority looked_for = {};
};

class Walk {
   public:
    Walk(const Tree& tree, std::span<const NodeUsage> usage, const Parameters& parameters, Rate capacity,
         const Surroundings& surroundings, std::span<const Incumbent> incumbents, std::span<const Candidate> candidates,
         Seconds now, std::size_t limit)
        : tree_(tree),
          incumbents_(incumbents),
          candidates_(candidates),
          now_(now),
          limit_(limit),
          contest_(Claims(tree, usage, RunClass::kAllocated, parameters, capacity)),
          cluster_(surroundings.node_count, surroundings.totals, surroundings.open),
          past_(tree.nodes().size()),
          protected_(tree.nodes().size()),
          rights_(tree.nodes().size()),
          there_(incumbents.size(), true) {
        for (const Incumbent& incumbent : incumbents) cluster_.add(incumbent.holdings, incumbent.group);
        for (const Holding& other : surroundings.others) cluster_.add(std::span(&other, 1));
        sort_incumbents();
    }

    Plan run();

   private:
    bool preempts(const Candidate& candidate) const {
        return candidate.run_class == RunClass::kAllocated && tree_.node(candidate.leaf).has_budget;
    }
    bool past_contract(const Incumbent& incumbent) const { return incumbent.protected_until <= now_; }

    void sort_incumbents();
    Rights& rights(const Candidate& candidate);
    void fill_in(Rights& rights, const Candidate& candidate);
    Victim victim(const Candidate& candidate, std::uint32_t incumbent) const;
    Shape& shape(const PlacementRequest& request);
    Decision decide(const Candidate& candidate);
    Decision leave(const Candidate& candidate);
    std::optional<Placement> place(const Candidate& candidate, const Cluster& cluster);
    bool try_parts(std::span<const std::uint32_t> parts, std::vector<Decision>& decisions);
    void decide_parts(std::span<const std::uint32_t> parts, std::vector<Decision>& decisions);
    void count(const Candidate& candidate, const Decision& decision);
    Decision attempt(const Candidate& candidate, Shape& shape);
    Decision take(const Candidate& candidate, Placement placement);
    void look_ahead(const Candidate& candidate);

    const Tree& tree_;
    std::span<const Incumbent> incumbents_;
    std::span<const Candidate> candidates_;
    const Seconds now_;
    const std::size_t limit_;
    std::size_t attempts_ = 0;

    Contest contest_;
    Cluster cluster_;  // occupant i is incumbent i, as long as it has not gone
    std::vector<VictimCost> costs_;
    std::vector<std::uint32_t> by_cost_;  // incumbents, the first to go first (P5)
    std::vector<std::uint32_t> turn_;     // and their places in it

    std::vector<std::uint32_t> unallocated_;             // incumbents that may always go
    std::vector<std::vector<std::uint32_t>> past_;       // by leaf: past their contract
    std::vector<std::vector<std::uint32_t>> protected_;  // by leaf: inside it, by its end
    std::vector<NodeIndex> past_leaves_;
    std::vector<NodeIndex> protected_leaves_;
    std::vector<std::vector<std::uint32_t>> groups_;
    std::vector<Rights> rights_;  // by leaf
    std::vector<bool> there_;     // by incumbent

    std::unordered_map<Form, Shape, FormHash> shapes_;
    std::unordered_map<std::uint64_t, Failure> failures_;  // by shape and leaf
    std::uint64_t generation_ = 1;                         // grows when room may have become free
    std::optional<Seconds> next_look_;
};

void Walk::sort_incumbents() {
    const std::vector<std::uint32_t> ranks = contest_.claims().ranks_from_worst();
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups;
    for (std::uint32_t i = 0; i < incumbents_.size(); ++i) {
        const Incumbent& incumbent = incumbents_[i];
        const bool allocated = incumbent.run_class == RunClass::kAllocated;
        Seconds since = std::max(incumbent.start, incumbent.checkpoint);
        if (allocated && past_contract(incumbent)) since = std::max(since, incumbent.protected_until);
        costs_.push_back({.allocated = allocated,
                          .claim_rank = ranks[incumbent.leaf],
                          .lost = saturating_mul(incumbent.rate, std::max<Seconds>(now_ - since, 0)),
                          .rate = incumbent.rate,
                          .tie = std::uint64_t{incumbent.key.job_id} << 32 | incumbent.key.restart_count});
        by_cost_.push_back(i);
        if (incumbent.group != 0) groups[incumbent.group].push_back(i);
        if (incumbent.exempt) continue;
        if (!allocated)
            unallocated_.push_back(i);
        else
            (past_contract(incumbent) ? past_ : protected_)[incumbent.leaf].push_back(i);
    }
    for (auto& [group, members] : groups) groups_.push_back(std::move(members));
    const auto key = [this](std::uint32_t i) {
        const VictimCost& cost = costs_[i];
        return std::tuple(cost.allocated, cost.allocated ? cost.claim_rank : 0, cost.lost, cost.tie, i);
    };
    std::sort(by_cost_.begin(), by_cost_.end(), [&](auto a, auto b) { return key(a) < key(b); });
    turn_.resize(by_cost_.size());
    for (std::uint32_t t = 0; t < by_cost_.size(); ++t) turn_[by_cost_[t]] = t;
    for (NodeIndex leaf = 0; leaf < past_.size(); ++leaf) {
        if (!past_[leaf].empty()) past_leaves_.push_back(leaf);
        if (!protected_[leaf].empty()) protected_leaves_.push_back(leaf);
        std::sort(protected_[leaf].begin(), protected_[leaf].end(),
                  [this](auto a, auto b) { return incumbents_[a].protected_until < incumbents_[b].protected_until; });
    }
}

// P1 to P4 for this candidate, now.
Rights& Walk::rights(const Candidate& candidate) {
    Rights& rights = rights_[candidate.leaf];
    const std::size_t before = rights.beaten.size();
    if (!rights.begun) rights.beaten = past_leaves_;
    std::erase_if(rights.beaten, [&](NodeIndex leaf) { return !contest_.better(candidate.leaf, leaf); });
    const bool same_stated =
        !rights.stated.higher_than(candidate.stated) && !candidate.stated.higher_than(rights.stated);
    if (!rights.begun || rights.beaten.size() != before || (!same_stated && !past_[candidate.leaf].empty()))
        fill_in(rights, candidate);
    return rights;
}

void Walk::fill_in(Rights& rights, const Candidate& candidate) {
    rights.begun = true;
    rights.stated = candidate.stated;
    std::vector<bool> may_go(incumbents_.size(), false);
    for (std::uint32_t i : unallocated_) may_go[i] = true;
    for (NodeIndex leaf : rights.beaten)
        for (std::uint32_t i : past_[leaf]) may_go[i] = true;
    for (std::uint32_t i : past_[candidate.leaf])
        if (candidate.stated.higher_than(incumbents_[i].stated)) may_go[i] = true;
    for (const std::vector<std::uint32_t>& group : groups_) {
        if (std::all_of(group.begin(), group.end(), [&](std::uint32_t i) { return may_go[i]; })) continue;
        for (std::uint32_t i : group) may_go[i] = false;
    }
    rights.count = static_cast<std::size_t>(std::count(may_go.begin(), may_go.end(), true));
    rights.may_go = may_go;
    rights.victims = Victims(std::move(may_go), costs_);
}

Victim Walk::victim(const Candidate& candidate, std::uint32_t incumbent) const {
    const Incumbent& run = incumbents_[incumbent];
    Victim victim{.incumbent = incumbent};
    if (run.run_class == RunClass::kUnallocated) return victim;
    victim.right = run.leaf == candidate.leaf ? Right::kStatedPriority : Right::kClaim;
    if (victim.right == Right::kStatedPriority) return victim;
    const Contest::Ratios ratios = contest_.ratios(candidate.leaf, run.leaf);
    victim.preemptor_ratio = ratios.preemptor;
    victim.victim_ratio = ratios.victim;
    return victim;
}

Shape& Walk::shape(const PlacementRequest& request) {
    const auto [entry, fresh] = shapes_.try_emplace(Form(request));
    if (fresh) entry->second.index = static_cast<std::uint32_t>(shapes_.size());
    return entry->second;
}

// Slurm chooses among all that may give way. If it has chosen already, it needs no more of them.
Decision Walk::leave(const Candidate& candidate) {
    Decision decision{.outcome = Outcome::kLeft};
    ++attempts_;
    if (!preempts(candidate) || candidate.being_placed) return decision;
    const Rights& allowed = rights(candidate);
    for (std::uint32_t i : by_cost_)
        if (there_[i] && allowed.may_go[i]) decision.victims.push_back(victim(candidate, i));
    look_ahead(candidate);
    return decision;
}

Decision Walk::decide(const Candidate& candidate) {
    if (attempts_ >= limit_) return {};
    if (!candidate.modelled || candidate.left_to_slurm) return leave(candidate);
    Shape& asked = shape(candidate.request);
    if (asked.never) return {.outcome = Outcome::kNever};
    Decision decision = attempt(candidate, asked);
    if (decision.outcome != Outcome::kBlocked) return decision;
    if (!asked.looked) {
        asked.looked = true;
        asked.never = !cluster_.can_ever_fit(candidate.request);
        if (asked.never) decision.outcome = Outcome::kNever;
    }
    if (decision.outcome == Outcome::kBlocked && preempts(candidate)) look_ahead(candidate);
    return decision;
}

Decision Walk::attempt(const Candidate& candidate, Shape& asked) {
    const bool may_preempt = preempts(candidate) && !candidate.being_placed;
    const std::uint64_t key = std::uint64_t{candidate.leaf} << 32 | asked.index;
    const auto failure = may_preempt ? failures_.find(key) : failures_.end();
    const bool unfit = asked.unfit_since == generation_;
    const bool tried = failure != failures_.end() && !candidate.stated.higher_than(failure->second.stated);
    if (unfit && (!may_preempt || tried)) return {};
    const Rights* allowed = may_preempt && !tried ? &rights(candidate) : nullptr;
    const bool with_victims = allowed != nullptr && allowed->count > 0;
    std::optional<Placement> placement;
    if (with_victims || !unfit) {
        ++attempts_;
        placement = with_victims ? cluster_.fit(candidate.request, allowed->victims) : cluster_.fit(candidate.request);
    }
    if (placement) return take(candidate, *std::move(placement));
    asked.unfit_since = generation_;
    if (may_preempt && !tried) failures_[key].stated = candidate.stated;
    return {};
}

// The victims go, and the candidate has its places.
Decision Walk::take(const Candidate& candidate, Placement placement) {
    Decision decision;
    decision.outcome = placement.victims.empty() ? Outcome::kFits : Outcome::kPreempts;
    for (Occupant o : placement.victims) {
        cluster_.remove(o);
        there_[o] = false;
    }
    if (!placement.victims.empty()) {
        ++generation_;
        std::sort(placement.victims.begin(), placement.victims.end(),
                  [this](Occupant a, Occupant b) { return turn_[a] < turn_[b]; });
        for (Occupant o : placement.victims) decision.victims.push_back(victim(candidate, o));
    }
    cluster_.add(placement.places);
    decision.places = std::move(placement.places);
    return decision;
}

// When the next contract ends of somebody who could then give way to this candidate.
void Walk::look_ahead(const Candidate& candidate) {
    Rights& rights = rights_[candidate.leaf];
    if (rights.looked && !candidate.stated.higher_than(rights.looked_for)) return;
    const auto note = [this](std::uint32_t i) {
        const Seconds end = incumbents_[i].protected_until;
        if (!next_look_ || end < *next_look_) next_look_ = end;
    };
    if (!rights.looked)
        for (NodeIndex leaf : protected_leaves_)
            if (contest_.better(candidate.leaf, leaf)) note(protected_[leaf].front());
    for (std::uint32_t i : protected_[candidate.leaf]) {
        if (!candidate.stated.higher_than(incumbents_[i].stated)) continue;
        note(i);
        break;
    }
    rights.looked = true;
    rights.looked_for = candidate.stated;
}

// Into what is free, or with victims where the candidate may have some.
std::optional<Placement> Walk::place(const Candidate& candidate, const Cluster& cluster) {
    ++attempts_;
    if (!preempts(candidate) || candidate.being_placed) return cluster.fit(candidate.request);
    const Rights& allowed = rights(candidate);
    return allowed.count > 0 ? cluster.fit(candidate.request, allowed.victims) : cluster.fit(candidate.request);
}

// The parts of one job one after the other, on a copy of the cluster that counts only if all of them can be placed; a
// part that placement cannot see is believed to be. What is remembered of failures is of no use here: it holds for the
// cluster as it is.
bool Walk::try_parts(std::span<const std::uint32_t> parts, std::vector<Decision>& decisions) {
    std::optional<Cluster> trial;
    for (const std::uint32_t part : parts) {
        const Candidate& candidate = candidates_[part];
        if (!candidate.modelled || candidate.left_to_slurm) continue;
        if (attempts_ >= limit_) return false;
        std::optional<Placement> placement = place(candidate, trial ? *trial : cluster_);
        if (!placement) return false;
        if (!trial) trial = cluster_;
        std::swap(cluster_, *trial);
        decisions[part] = take(candidate, *std::move(placement));
        std::swap(cluster_, *trial);
    }
    if (trial) cluster_ = *std::move(trial);
    return true;
}

// Q5 for a job of several parts.
void Walk::decide_parts(std::span<const std::uint32_t> parts, std::vector<Decision>& decisions) {
    const std::vector<bool> there = there_;
    const bool complete = parts.size() >= candidates_[parts.front()].parts;
    if (!complete || !try_parts(parts, decisions)) {
        there_ = there;
        ++generation_;
        for (const std::uint32_t part : parts) {
            decisions[part] = {};
            if (complete && preempts(candidates_[part])) look_ahead(candidates_[part]);
        }
    } else {
        for (const std::uint32_t part : parts)
            if (!candidates_[part].modelled || candidates_[part].left_to_slurm)
                decisions[part] = leave(candidates_[part]);
    }
    for (const std::uint32_t part : parts) count(candidates_[part], decisions[part]);
}

// Its cost is ahead of all that follow (P3).
void Walk::count(const Candidate& candidate, const Decision& decision) {
    const bool counted = candidate.being_placed && candidate.group == 0;
    if (preempts(candidate) && !counted && decision.outcome != Outcome::kNever)
        contest_.add(candidate.leaf, contest_.claims().cost(candidate.rate, candidate.contract));
}

Plan Walk::run() {
    Plan plan;
    plan.decisions.resize(candidates_.size());
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> groups;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
        const Candidate& candidate = candidates_[i];
        if (candidate.group != 0)
            groups[candidate.group].push_back(i);
        else if (candidate.being_placed && preempts(candidate))
            contest_.add(candidate.leaf, contest_.claims().cost(candidate.rate, candidate.contract));
    }
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
        if (candidates_[i].group == 0) {
            plan.decisions[i] = decide(candidates_[i]);
            count(candidates_[i], plan.decisions[i]);
        } else if (const auto& parts = groups[candidates_[i].group]; parts.front() == i) {
            decide_parts(parts, plan.decisions);
        }
    }
    plan.next_look = next_look_;
    return plan;
}

}  // namespace

Plan plan(const Tree& tree, std::span<const NodeUsage> usage, const Parameters& parameters, Rate capacity,
          const Surroundings& surroundings, std::span<const Incumbent> incumbents,
          std::span<const Candidate> candidates, Seconds now, std::size_t limit) {
    return Walk(tree, usage, parameters, capacity, surroundings, incumbents, candidates, now, limit).run();
}

}  // namespace budget
