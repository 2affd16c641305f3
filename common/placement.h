// SPDX-License-Identifier: GPL-2.0-or-later
//
// Where a job can be placed, and who has to give way for it (rules P1, P5, Q5):
// all at once or not at all. A node is known by its GPUs of each kind, cores and
// memory; features, licences, topology and sockets are not seen. The simulator
// places by it, the controller picks victims by it. Memory is in MB, lost work in
// 1/5040 GPU-seconds. Not thread-safe; owned by its caller.
#ifndef SLURM_BUDGET_COMMON_PLACEMENT_H
#define SLURM_BUDGET_COMMON_PLACEMENT_H

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "units.h"

namespace budget {

using NodeId = std::uint32_t;    // index into the cluster's nodes
using GpuKind = std::uint16_t;   // the caller's numbering
using Occupant = std::uint32_t;  // what Cluster::add returned

inline constexpr GpuKind kAnyGpu = 0xffff;

struct Room {
    std::uint32_t gpus = 0;
    std::uint32_t cpus = 0;
    std::uint64_t memory = 0;
    bool operator==(const Room&) const = default;
};

// What is held on one node, or is there in all. Where a node has GPUs of several kinds there is one
// for each kind; cores and memory stand in one of them.
struct Holding {
    NodeId node = 0;
    GpuKind kind = 0;
    Room room;
    bool operator==(const Holding&) const = default;
};

// A set of nodes by their ids; empty means all.
using NodeSet = std::vector<bool>;

// What a job asks for. Zero means: no such demand.
struct PlacementRequest {
    std::uint32_t min_nodes = 1;
    std::uint32_t max_nodes = 0;      // 0: as many as it takes
    GpuKind kind = kAnyGpu;           // of all its GPUs
    std::uint32_t gpus = 0;           // in all
    std::uint32_t gpus_per_node = 0;  // on each node, at least
    std::uint32_t gpu_chunk = 1;      // a node gives a multiple of it (GPUs of a task)
    std::uint32_t cpus = 0;           // in all
    std::uint32_t cpus_per_node = 0;  // on each node, at least
    std::uint32_t cpus_per_gpu = 0;
    std::uint64_t memory_per_node = 0;
    std::uint64_t memory_per_cpu = 0;
    std::uint64_t memory_per_gpu = 0;
    bool whole_nodes = false;  // nobody else on its nodes
    NodeSet allowed = {};
    bool operator==(const PlacementRequest&) const = default;
};

// What is lost if an occupant gives way, in the order of P5.
struct VictimCost {
    bool allocated = false;        // unallocated ones go first
    std::uint32_t claim_rank = 0;  // of an allocated one: 0 is the worst claim
    Wide lost = 0;                 // work since the last known checkpoint
    Rate rate = 0;
    std::uint64_t tie = 0;  // decides what is equal otherwise: the lower goes first
};

struct Placement {
    std::vector<Holding> places;    // by node; one for each node (and kind) that is used
    std::vector<Occupant> victims;  // ascending; empty if it fits as it is
};

// Who may give way to the job in question, by occupant; a group (see add) gives way as a whole or
// not at all.
class Victims {
   public:
    // may_go[o]: occupant o may be stopped for it. costs[o] counts for those alone.
    Victims() = default;
    Victims(std::vector<bool> may_go, std::span<const VictimCost> costs) : may_go_(std::move(may_go)), costs_(costs) {}
    bool may_go(Occupant o) const { return o < may_go_.size() && may_go_[o]; }
    const VictimCost& cost(Occupant o) const { return costs_[o]; }
    bool none() const { return may_go_.empty(); }

   private:
    std::vector<bool> may_go_;
    std::span<const VictimCost> costs_;
};

class Cluster {
   public:
    // nodes: how many; totals: what each has (nodes without any have nothing). open[n] false: takes
    // no new work (down, drained).
    Cluster(std::size_t nodes, std::span<const Holding> totals, std::vector<bool> open);

    // Somebody holds this. Occupants of one group (not 0) go together, as parts of a heterogeneous job
    // do. Holdings beyond what is there are held down to it.
    Occupant add(std::span<const Holding> holdings, std::uint64_t group = 0);
    void remove(Occupant occupant);

    // Best fit into what is free: on the nodes that keep the least free GPUs, lowest node first.
    // Nothing if it does not fit as a whole.
    std::optional<Placement> fit(const PlacementRequest& request) const;

    // P5: fit(), or else with victims that may go: of the placements looked at the one with the least
    // allocated GPU weight stopped, then the one whose best claim among the victims is the worst, then the least
    // work lost, the fewest victims, and the lowest tie. No victim can be left out with the request still
    // fitting on the nodes chosen. Deterministic, whatever the order in which occupants were added.
    std::optional<Placement> fit(const PlacementRequest& request, const Victims& victims) const;

    // Could it ever be placed, were the cluster empty and all nodes open?
    bool can_ever_fit(const PlacementRequest& request) const;

    std::size_t node_count() const { return nodes_.size(); }

   private:
    friend class Fitting;
    // GPUs of one kind on one node. More may be used than there are.
    struct KindRoom {
        GpuKind kind = 0;
        std::int64_t total = 0;
        std::int64_t used = 0;
    };
    // What an occupant holds on a node, of one kind.
    struct Resident {
        Occupant who = 0;
        GpuKind kind = 0;
        std::uint32_t gpus = 0;
        std::uint32_t cpus = 0;
        std::uint64_t memory = 0;
        std::uint32_t group = 0;  // index into groups_, 0: none
    };
    struct NodeRoom {
        bool open = false;
        std::uint32_t first_kind = 0;
        std::uint32_t kind_count = 0;
        std::int64_t cpus = 0;
        std::int64_t cpus_used = 0;
        std::int64_t memory = 0;
        std::int64_t memory_used = 0;
        std::vector<Resident> residents = {};
    };
    struct Party {
        std::vector<Resident> held = {};  // with `who` standing for the node
        std::uint32_t group = 0;
        bool there = false;
    };
    std::span<const KindRoom> kinds(const NodeRoom& node) const {
        return std::span(kinds_).subspan(node.first_kind, node.kind_count);
    }
    void settle(NodeId node, Resident resident, std::vector<Resident>& held);
    void use(NodeRoom& node, const Resident& resident, int sign);

    std::vector<KindRoom> kinds_;
    std::vector<NodeRoom> nodes_;
    std::vector<Party> parties_;
    std::vector<std::vector<Occupant>> groups_ = {{}};
    std::unordered_map<std::uint64_t, std::uint32_t> group_index_;
};

}  // namespace budget

#endif
