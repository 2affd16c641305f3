// SPDX-License-Identifier: GPL-2.0-or-later
//
// One request on one cluster: best fit into what is free, or with victims; what
// Cluster::fit does. On one node the victims are the exact minimum, by labels of what
// a set of them frees and costs; over several nodes the cheapest ones are taken one
// after the other, in a few ways, and the best result stands. Used once.
#ifndef SLURM_BUDGET_COMMON_FITTING_H
#define SLURM_BUDGET_COMMON_FITTING_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "amount.h"
#include "placement.h"
#include "victim_sets.h"

namespace budget {

// One request on one cluster.
class Fitting {
   public:
    // empty: as if nobody were there and all nodes open.
    Fitting(const Cluster& cluster, const PlacementRequest& request, bool empty)
        : cluster_(cluster),
          request_(request),
          empty_(empty),
          chunk_(std::max<Amount>(request.gpu_chunk, 1)),
          gpus_(round_up(request.gpus, chunk_)),
          fewest_(std::max<std::size_t>(request.min_nodes, 1)),
          most_(most_nodes()) {}

    std::optional<Placement> free();
    std::optional<Placement> with_victims(const Victims& victims);

   private:
    // A node that could have a part of the job.
    struct Offer {
        NodeId node = 0;
        Amount most = 0;  // GPUs it can give
        Amount left = 0;  // all its free GPUs
        Amount cpus = 0;
    };

    std::size_t most_nodes() const {
        std::size_t most = std::max<std::size_t>(request_.max_nodes, fewest_);
        if (request_.max_nodes == 0) {
            most = fewest_;
            if (gpus_ > 0)
                most = std::max(most, static_cast<std::size_t>(gpus_ / std::max(least_stated(), chunk_)));
            else if (request_.cpus > 0)
                most = std::max(most, cluster_.nodes_.size());
        }
        return std::min(most, cluster_.nodes_.size());
    }

    Amount least_stated() const { return round_up(request_.gpus_per_node, chunk_); }

    // The fewest GPUs that each of k nodes has to give.
    Amount least(std::size_t k) const {
        if (request_.gpus_per_node > 0) return least_stated();
        return static_cast<Amount>(k) * chunk_ <= gpus_ ? chunk_ : 0;
    }

    // What each of k nodes gives if all give alike.
    Demand even(std::size_t k) const {
        const auto parts = static_cast<Amount>(k);
        return demand(std::max(least(k), round_up((gpus_ + parts - 1) / parts, chunk_)),
                      (Amount{request_.cpus} + parts - 1) / parts);
    }

    Demand demand(Amount gpus, Amount cpus) const {
        Demand d;
        d.gpus = gpus;
        d.cpus = std::max({cpus, Amount{request_.cpus_per_node}, product(gpus, request_.cpus_per_gpu)});
        d.memory = megabytes(request_.memory_per_node) + product(d.cpus, megabytes(request_.memory_per_cpu)) +
                   product(gpus, megabytes(request_.memory_per_gpu));
        return d;
    }

    bool usable(NodeId n) const {
        return (empty_ || cluster_.nodes_[n].open) &&
               (request_.allowed.empty() || (n < request_.allowed.size() && request_.allowed[n]));
    }

    bool matches(GpuKind kind) const { return request_.kind == kAnyGpu || request_.kind == kind; }
    bool gone(Occupant o) const { return gone_count_ > 0 && gone_[o] != 0; }

    Space space(NodeId n) const;
    Amount most_gpus(const Space& space) const;
    std::optional<std::vector<Demand>> share_out(std::span<const NodeId> nodes) const;
    std::optional<std::vector<Holding>> places(std::span<const NodeId> nodes) const;
    bool take(NodeId n, const Demand& demand, std::vector<Holding>& places) const;

    std::optional<std::vector<NodeId>> free_node() const;
    std::optional<std::vector<NodeId>> free_nodes(std::size_t k, std::vector<Offer> offers) const;
    std::vector<Offer> offers() const;

    // With victims.
    bool may_go(Occupant o, std::uint32_t group);
    bool worth_a_look(NodeId n, const Demand& demand, const Choice& best);
    Wide least_lost(Amount gpus);
    Unit unit(Occupant o) const;
    template <typename Visit>
    void each_member(const Unit& unit, Visit visit) const;
    void mark(const Unit& unit, bool gone);
    Amount survey(NodeId n);
    Choice choose(NodeId n, const Demand& demand, bool shared, const Choice* best);
    bool choose_few(std::span<const Unit> units, const Demand& missing, Choice& choice);
    void single(std::optional<Placement>& best);
    void several(std::size_t k, bool shared, std::optional<Placement>& best);
    void free_first(std::size_t k, std::optional<Placement>& best);
    void all_gone(std::size_t k, std::optional<Placement>& best);
    void keep_better(std::vector<NodeId> nodes, std::vector<Unit> units, std::optional<Placement>& best);
    void clear(std::span<const Unit> units);

    const Cluster& cluster_;
    const PlacementRequest& request_;
    const bool empty_;
    const Amount chunk_;
    const Amount gpus_;
    const std::size_t fewest_;
    const std::size_t most_;

    const Victims* victims_ = nullptr;
    std::vector<std::uint8_t> gone_;  // by occupant: taken for the placement that is tried
    int gone_count_ = 0;
    std::vector<std::int8_t> group_may_go_;  // -1: not looked up
    // Of the node surveyed last:
    std::vector<Unit> units_;
    Space space_;
    bool stuck_ = false;   // somebody is there who may not go
    bool spread_ = false;  // somebody who may go is on several nodes; of all surveyed
    SetSearch search_;
    struct Glimpse {
        Wide lost = 0;
        Amount gpus = 0;
    };
    std::vector<Glimpse> glimpsed_;
    // Of the best so far:
    Bill bill_;
    std::vector<std::uint64_t> ties_;
};

}  // namespace budget

#endif
