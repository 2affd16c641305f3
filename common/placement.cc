// SPDX-License-Identifier: GPL-2.0-or-later
//
// Best fit and the choice of victims; see placement.h. On one node the victims are the exact minimum, by
// labels of what a set of them frees and costs; over several nodes the cheapest ones are taken one after the
// other, in a few ways, and the best result stands.
#include "placement.h"

#include <algorithm>
#include <cassert>
#include <compare>
#include <limits>
#include <tuple>

namespace budget {

namespace {

using Amount = std::int64_t;

constexpr Amount kPlenty = Amount{1} << 60;      // more than there is of anything
constexpr Amount kMostMemory = Amount{1} << 40;  // MB; more is garbage
constexpr std::size_t kMostUnits = 64;           // on one node that sets are formed of
constexpr std::size_t kMostLabels = 4096;

Amount product(Amount a, Amount b) {
    return static_cast<Amount>(std::min<Wide>(static_cast<Wide>(a) * b, kPlenty));
}

Amount megabytes(std::uint64_t memory) {
    return static_cast<Amount>(std::min<std::uint64_t>(memory, kMostMemory));
}

Amount round_up(Amount n, Amount chunk) {
    return (n + chunk - 1) / chunk * chunk;
}

// What a job takes of one node.
struct Demand {
    Amount gpus = 0;
    Amount cpus = 0;
    Amount memory = 0;
};

// What is free on a node; negative where more is used than there is.
struct Space {
    Amount gpus = 0;  // of the kind asked for
    Amount cpus = 0;
    Amount memory = 0;
    Amount all_gpus = 0;
    bool occupied = false;

    bool holds(const Demand& d) const {
        return d.gpus <= std::max<Amount>(gpus, 0) && d.cpus <= std::max<Amount>(cpus, 0) &&
               d.memory <= std::max<Amount>(memory, 0);
    }
};

// P5's order of what is lost.
struct Bill {
    Wide weight = 0;         // allocated GPU weight
    std::int64_t rank = -1;  // the best claim among allocated ones; -1: there is none
    Wide lost = 0;
    std::uint32_t count = 0;

    auto key() const { return std::tie(weight, rank, lost, count); }
    bool operator<(const Bill& other) const { return key() < other.key(); }
    bool operator==(const Bill& other) const { return key() == other.key(); }
    void add(const Bill& other) {
        weight = saturating_add(weight, other.weight);
        rank = std::max(rank, other.rank);
        lost = saturating_add(lost, other.lost);
        count += other.count;
    }
};

Bill bill_of(const VictimCost& cost) {
    return {.weight = cost.allocated ? cost.rate : 0,
            .rank = cost.allocated ? std::int64_t{cost.claim_rank} : -1,
            .lost = cost.lost,
            .count = 1};
}

// Who goes as a whole, and what that frees on the node looked at.
struct Unit {
    Occupant first = 0;
    std::uint32_t group = 0;
    std::uint64_t tie = 0;
    Demand frees = {};
    Bill bill = {};
};

// A set of units (bits of `set`), by what it frees of what is missing.
struct Label {
    Demand frees;
    Wide weight = 0;
    Wide lost = 0;
    std::uint32_t count = 0;
    std::uint64_t set = 0;

    // By cost; of equal ones the one with the lower ties, units standing by their tie.
    bool cheaper(const Label& other) const {
        if (weight != other.weight) return weight < other.weight;
        if (lost != other.lost) return lost < other.lost;
        if (count != other.count) return count < other.count;
        const std::uint64_t differ = set ^ other.set;
        return differ != 0 && (set & (differ & (~differ + 1))) != 0;
    }
    bool frees_as_much(const Label& other) const {
        return frees.gpus >= other.frees.gpus && frees.cpus >= other.frees.cpus && frees.memory >= other.frees.memory;
    }
    bool dominates(const Label& other) const { return frees_as_much(other) && !other.cheaper(*this); }
};

// The cheapest set of the units up to this rank that frees what is missing.
class SetSearch {
   public:
    std::optional<Label> run(std::span<const Unit> units, const Demand& missing, std::int64_t most_rank) {
        labels_.assign(1, Label{});
        best_.reset();
        if (missing.gpus <= 0 && missing.cpus <= 0 && missing.memory <= 0) return Label{};
        for (std::size_t i = 0; i < units.size(); ++i) {
            if (units[i].bill.rank > most_rank) continue;
            const std::size_t count = labels_.size();
            for (std::size_t l = 0; l < count; ++l) extend(labels_[l], units[i], i, missing);
        }
        return best_;
    }

   private:
    void extend(Label label, const Unit& unit, std::size_t position, const Demand& missing) {
        label.frees.gpus = std::min(label.frees.gpus + unit.frees.gpus, missing.gpus);
        label.frees.cpus = std::min(label.frees.cpus + unit.frees.cpus, missing.cpus);
        label.frees.memory = std::min(label.frees.memory + unit.frees.memory, missing.memory);
        label.weight += unit.bill.weight;
        label.lost += unit.bill.lost;
        label.count += unit.bill.count;
        label.set |= std::uint64_t{1} << position;
        if (best_ && !label.cheaper(*best_)) return;
        if (label.frees.gpus == missing.gpus && label.frees.cpus == missing.cpus &&
            label.frees.memory == missing.memory) {
            best_ = label;
            return;
        }
        for (const Label& other : labels_)
            if (other.dominates(label)) return;
        if (labels_.size() < kMostLabels) labels_.push_back(label);
    }

    std::vector<Label> labels_;
    std::optional<Label> best_;
};

// What a node would cost.
struct Choice {
    bool possible = false;
    Bill bill;
    std::vector<std::uint64_t> ties = {};  // ascending
    std::vector<Unit> units = {};

    bool operator<(const Choice& other) const {
        if (possible != other.possible) return possible;
        return bill == other.bill ? ties < other.ties : bill < other.bill;
    }
};

}  // namespace

Cluster::Cluster(std::size_t nodes, std::span<const Holding> totals, std::vector<bool> open) : nodes_(nodes) {
    for (std::size_t n = 0; n < nodes; ++n) nodes_[n].open = n < open.size() && open[n];
    std::vector<Holding> sorted(totals.begin(), totals.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const Holding& a, const Holding& b) { return std::tie(a.node, a.kind) < std::tie(b.node, b.kind); });
    for (const Holding& total : sorted) {
        if (total.node >= nodes) continue;
        NodeRoom& node = nodes_[total.node];
        node.cpus += total.room.cpus;
        node.memory = std::min(node.memory + megabytes(total.room.memory), kMostMemory);
        if (total.room.gpus == 0) continue;
        if (node.kind_count == 0) node.first_kind = static_cast<std::uint32_t>(kinds_.size());
        if (node.kind_count == 0 || kinds_.back().kind != total.kind) {
            kinds_.push_back({.kind = total.kind});
            ++node.kind_count;
        }
        kinds_.back().total += total.room.gpus;
    }
}

// Takes from the node what the resident holds, but no more than is there in all.
void Cluster::settle(NodeId id, Resident resident, std::vector<Resident>& held) {
    NodeRoom& node = nodes_[id];
    resident.cpus = static_cast<std::uint32_t>(std::min<Amount>(resident.cpus, node.cpus));
    resident.memory = static_cast<std::uint64_t>(std::min(megabytes(resident.memory), node.memory));
    std::uint32_t gpus = resident.gpus;
    bool first = true;
    for (const KindRoom& room : kinds(node)) {
        if (resident.kind != kAnyGpu && resident.kind != room.kind) continue;
        Resident part = resident;
        part.kind = room.kind;
        part.gpus = static_cast<std::uint32_t>(std::min<Amount>(gpus, room.total));
        if (part.gpus == 0) continue;
        if (!first) part.cpus = 0, part.memory = 0;
        gpus -= part.gpus;
        first = false;
        use(node, part, 1);
        node.residents.push_back(part);
        held.push_back(part);
        held.back().who = id;
    }
    if (!first) return;
    resident.gpus = 0;
    use(node, resident, 1);
    node.residents.push_back(resident);
    held.push_back(resident);
    held.back().who = id;
}

void Cluster::use(NodeRoom& node, const Resident& resident, int sign) {
    for (std::uint32_t k = node.first_kind; k < node.first_kind + node.kind_count; ++k)
        if (kinds_[k].kind == resident.kind) kinds_[k].used += sign * Amount{resident.gpus};
    node.cpus_used += sign * Amount{resident.cpus};
    node.memory_used += sign * megabytes(resident.memory);
}

Occupant Cluster::add(std::span<const Holding> holdings, std::uint64_t group) {
    const auto occupant = static_cast<Occupant>(parties_.size());
    Party& party = parties_.emplace_back();
    party.there = true;
    if (group != 0) {
        const auto [entry, fresh] = group_index_.try_emplace(group, static_cast<std::uint32_t>(groups_.size()));
        if (fresh) groups_.emplace_back();
        groups_[entry->second].push_back(occupant);
        party.group = entry->second;
    }
    for (const Holding& holding : holdings) {
        if (holding.node >= nodes_.size()) continue;
        settle(holding.node,
               {.who = occupant,
                .kind = holding.kind,
                .gpus = holding.room.gpus,
                .cpus = holding.room.cpus,
                .memory = holding.room.memory,
                .group = party.group},
               party.held);
    }
    return occupant;
}

void Cluster::remove(Occupant occupant) {
    assert(occupant < parties_.size());
    Party& party = parties_[occupant];
    if (!party.there) return;
    for (const Resident& held : party.held) {
        NodeRoom& node = nodes_[held.who];
        use(node, held, -1);
        std::erase_if(node.residents, [&](const Resident& resident) { return resident.who == occupant; });
    }
    if (party.group != 0) std::erase(groups_[party.group], occupant);
    party = {};
}

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

Space Fitting::space(NodeId n) const {
    const Cluster::NodeRoom& node = cluster_.nodes_[n];
    Space space;
    space.cpus = node.cpus - (empty_ ? 0 : node.cpus_used);
    space.memory = node.memory - (empty_ ? 0 : node.memory_used);
    for (const Cluster::KindRoom& room : cluster_.kinds(node)) {
        Amount left = room.total - (empty_ ? 0 : room.used);
        if (node.kind_count > 1) left = std::max<Amount>(left, 0);
        if (matches(room.kind)) space.gpus += left;
        space.all_gpus += left;
    }
    if (empty_) return space;
    space.occupied = gone_count_ == 0 && !node.residents.empty();
    if (gone_count_ == 0) return space;
    for (const Cluster::Resident& resident : node.residents) {
        if (!gone(resident.who)) {
            space.occupied = true;
            continue;
        }
        if (matches(resident.kind)) space.gpus += resident.gpus;
        space.all_gpus += resident.gpus;
        space.cpus += resident.cpus;
        space.memory += megabytes(resident.memory);
    }
    return space;
}

// How many GPUs a node with this space can give, 0 included; negative: it cannot have any part of the job.
Amount Fitting::most_gpus(const Space& space) const {
    if (request_.whole_nodes && space.occupied) return -1;
    Amount gpus = std::max<Amount>(space.gpus, 0) / chunk_ * chunk_;
    if (request_.gpus > 0) gpus = std::min(gpus, std::max(gpus_, least_stated()));
    if (request_.cpus_per_gpu > 0)
        gpus = std::min(gpus, std::max<Amount>(space.cpus, 0) / request_.cpus_per_gpu / chunk_ * chunk_);
    while (gpus >= 0 && !space.holds(demand(gpus, 0))) gpus -= chunk_;
    return gpus;
}

// Shares the job out over the nodes, the first ones being filled first.
std::optional<std::vector<Demand>> Fitting::share_out(std::span<const NodeId> nodes) const {
    const Amount least_each = least(nodes.size());
    Amount gpus = std::max<Amount>(gpus_ - least_each * static_cast<Amount>(nodes.size()), 0);
    Amount cpus = request_.cpus;
    std::vector<Demand> shares;
    std::vector<Space> spaces;
    for (NodeId n : nodes) {
        spaces.push_back(space(n));
        const Amount most = most_gpus(spaces.back());
        if (most < least_each) return std::nullopt;
        const Amount more = std::min(most - least_each, gpus);
        gpus -= more;
        shares.push_back(demand(least_each + more, 0));
        cpus -= shares.back().cpus;
    }
    for (std::size_t i = 0; i < nodes.size() && cpus > 0; ++i) {
        Amount more = std::min(cpus, std::max<Amount>(spaces[i].cpus, 0) - shares[i].cpus);
        if (request_.memory_per_cpu > 0)
            more = std::min(more, (spaces[i].memory - shares[i].memory) / megabytes(request_.memory_per_cpu));
        shares[i] = demand(shares[i].gpus, shares[i].cpus + more);
        cpus -= more;
    }
    if (gpus > 0 || cpus > 0) return std::nullopt;
    return shares;
}

// What the job holds of one node.
bool Fitting::take(NodeId n, const Demand& demand, std::vector<Holding>& places) const {
    const Cluster::NodeRoom& node = cluster_.nodes_[n];
    Holding rest{.node = n,
                 .kind = kAnyGpu,
                 .room = {.gpus = 0,
                          .cpus = static_cast<std::uint32_t>(request_.whole_nodes ? node.cpus : demand.cpus),
                          .memory = static_cast<std::uint64_t>(request_.whole_nodes ? node.memory : demand.memory)}};
    struct Left {
        Amount gpus = 0;
        GpuKind kind = 0;
    };
    std::vector<Left> left;
    for (const Cluster::KindRoom& room : cluster_.kinds(node)) {
        if (!request_.whole_nodes && !matches(room.kind)) continue;
        Amount gpus = room.total - (empty_ || request_.whole_nodes ? 0 : room.used);
        if (!request_.whole_nodes && gone_count_ > 0)
            for (const Cluster::Resident& resident : node.residents)
                if (resident.kind == room.kind && gone(resident.who)) gpus += resident.gpus;
        if (gpus > 0) left.push_back({gpus, room.kind});
    }
    std::sort(left.begin(), left.end(),
              [](const Left& a, const Left& b) { return std::tie(a.gpus, a.kind) < std::tie(b.gpus, b.kind); });
    Amount wanted = request_.whole_nodes ? kPlenty : demand.gpus;
    for (const Left& kind : left) {
        const Amount taken = std::min(kind.gpus, wanted);
        if (taken <= 0) break;
        wanted -= taken;
        rest.kind = kind.kind;
        rest.room.gpus = static_cast<std::uint32_t>(taken);
        places.push_back(rest);
        rest.room = {};
    }
    if (left.empty() || places.empty() || places.back().node != n) places.push_back(rest);
    return request_.whole_nodes || wanted <= 0;
}

std::optional<std::vector<Holding>> Fitting::places(std::span<const NodeId> nodes) const {
    const std::optional<std::vector<Demand>> shares = share_out(nodes);
    if (!shares) return std::nullopt;
    std::vector<Holding> result;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        if (!take(nodes[i], (*shares)[i], result)) return std::nullopt;
    std::sort(result.begin(), result.end(),
              [](const Holding& a, const Holding& b) { return std::tie(a.node, a.kind) < std::tie(b.node, b.kind); });
    return result;
}

std::optional<std::vector<NodeId>> Fitting::free_node() const {
    const Demand wanted = even(1);
    std::optional<NodeId> best;
    Amount best_left = 0;
    for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
        const Cluster::NodeRoom& node = cluster_.nodes_[n];
        if (!usable(n) || (request_.whole_nodes && !empty_ && !node.residents.empty())) continue;
        const Space here = space(n);
        if (!here.holds(wanted) || (best && here.all_gpus >= best_left)) continue;
        best = n;
        best_left = here.all_gpus;
        if (empty_) break;
    }
    if (!best) return std::nullopt;
    return std::vector<NodeId>{*best};
}

std::vector<Fitting::Offer> Fitting::offers() const {
    std::vector<Offer> result;
    for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
        if (!usable(n)) continue;
        const Space here = space(n);
        const Amount most = most_gpus(here);
        if (most >= 0) result.push_back({.node = n, .most = most, .left = here.all_gpus, .cpus = here.cpus});
    }
    std::sort(result.begin(), result.end(), [](const Offer& a, const Offer& b) {
        return std::tie(a.most, a.left, a.node) < std::tie(b.most, b.left, b.node);
    });
    return result;
}

// k of the offers, which stand by what they can give, that leave little: those next to each other that
// suffice first, each then replaced by a smaller one if that does.
std::optional<std::vector<NodeId>> Fitting::free_nodes(std::size_t k, std::vector<Offer> offers) const {
    std::erase_if(offers, [&](const Offer& offer) { return offer.most < least(k); });
    if (offers.size() < k) return std::nullopt;
    const bool alike = least(k) * static_cast<Amount>(k) >= gpus_;
    if (alike)
        std::sort(offers.begin(), offers.end(),
                  [](const Offer& a, const Offer& b) { return std::tie(a.left, a.node) < std::tie(b.left, b.node); });
    Amount sum = 0;
    for (std::size_t i = 0; i < offers.size(); ++i) {
        sum += offers[i].most;
        if (i >= k) sum -= offers[i - k].most;
        if (i + 1 < k || (!alike && sum < gpus_)) continue;
        std::vector<std::size_t> picked;
        for (std::size_t j = i + 1 - k; j <= i; ++j) picked.push_back(j);
        Amount slack = sum - gpus_;
        for (std::size_t j = k; !alike && j-- > 0;) {
            for (std::size_t other = 0; other < picked[j]; ++other) {
                const Amount less = offers[picked[j]].most - offers[other].most;
                if (less > slack || std::find(picked.begin(), picked.end(), other) != picked.end()) continue;
                slack -= less;
                picked[j] = other;
                break;
            }
        }
        std::sort(picked.begin(), picked.end());
        std::vector<NodeId> nodes;
        for (std::size_t j : picked) nodes.push_back(offers[j].node);
        if (share_out(nodes)) return nodes;
    }
    return std::nullopt;
}

std::optional<Placement> Fitting::free() {
    std::vector<Offer> offered;
    for (std::size_t k = fewest_; k <= most_; ++k) {
        std::optional<std::vector<NodeId>> nodes;
        if (k == 1) {
            nodes = free_node();
        } else {
            if (offered.empty()) offered = offers();
            if (offered.size() < k) break;
            nodes = free_nodes(k, offered);
        }
        if (!nodes) continue;
        std::optional<std::vector<Holding>> places_there = places(*nodes);
        if (places_there) return Placement{.places = *std::move(places_there), .victims = {}};
    }
    return std::nullopt;
}

bool Fitting::may_go(Occupant o, std::uint32_t group) {
    if (!victims_->may_go(o)) return false;
    if (group == 0) return true;
    std::int8_t& known = group_may_go_[group];
    if (known < 0) {
        const std::vector<Occupant>& members = cluster_.groups_[group];
        known = std::all_of(members.begin(), members.end(), [&](Occupant m) { return victims_->may_go(m); }) ? 1 : 0;
    }
    return known > 0;
}

template <typename Visit>
void Fitting::each_member(const Unit& unit, Visit visit) const {
    if (unit.group == 0) {
        visit(unit.first);
        return;
    }
    for (Occupant member : cluster_.groups_[unit.group]) visit(member);
}

Unit Fitting::unit(Occupant o) const {
    Unit unit{.first = o, .group = cluster_.parties_[o].group, .tie = ~std::uint64_t{0}};
    each_member(unit, [&](Occupant member) {
        unit.bill.add(bill_of(victims_->cost(member)));
        unit.tie = std::min(unit.tie, victims_->cost(member).tie);
    });
    return unit;
}

void Fitting::mark(const Unit& unit, bool gone) {
    each_member(unit, [&](Occupant member) {
        if ((gone_[member] != 0) == gone) return;
        gone_[member] = gone ? 1 : 0;
        gone_count_ += gone ? 1 : -1;
    });
}

// Fills in space_, units_ by their ties, stuck_; returns how many GPUs there can be.
Amount Fitting::survey(NodeId n) {
    const Cluster::NodeRoom& node = cluster_.nodes_[n];
    units_.clear();
    stuck_ = false;
    space_ = space(n);
    Amount possible = space_.gpus;
    for (const Cluster::Resident& resident : node.residents) {
        if (gone(resident.who)) continue;
        const std::uint32_t group = resident.group;
        if (!may_go(resident.who, group)) {
            stuck_ = true;
            continue;
        }
        Unit* found = nullptr;
        for (Unit& known : units_)
            if (group == 0 ? known.first == resident.who : known.group == group) found = &known;
        if (found == nullptr) {
            found = &units_.emplace_back(unit(resident.who));
            spread_ = spread_ || group != 0 || cluster_.parties_[resident.who].held.size() > 1;
        }
        const Amount gpus = matches(resident.kind) ? Amount{resident.gpus} : 0;
        found->frees.gpus += gpus;
        found->frees.cpus += resident.cpus;
        found->frees.memory += megabytes(resident.memory);
        possible += gpus;
    }
    return possible;
}

// The least work that those in glimpsed_ lose if so many GPUs are needed, were they divisible.
Wide Fitting::least_lost(Amount gpus) {
    std::sort(glimpsed_.begin(), glimpsed_.end(), [](const Glimpse& a, const Glimpse& b) {
        return saturating_mul(a.lost, b.gpus) < saturating_mul(b.lost, a.gpus);
    });
    Wide lost = 0;
    for (const Glimpse& glimpse : glimpsed_) {
        if (gpus <= 0) break;
        lost += gpus >= glimpse.gpus ? glimpse.lost : saturating_mul(glimpse.lost, gpus) / glimpse.gpus;
        gpus -= glimpse.gpus;
    }
    return lost;
}

// False if the node cannot be better than the best so far, by bounds that cost little.
bool Fitting::worth_a_look(NodeId n, const Demand& demand, const Choice& best) {
    const Cluster::NodeRoom& node = cluster_.nodes_[n];
    const Amount free = space(n).gpus;
    Amount possible = free;
    Amount within = free;  // by those whose claim is no better than that of the best so far
    Amount below = free;   // by those whose claim is worse
    Amount unallocated = 0;
    Amount largest = 1;
    Rate density = std::numeric_limits<Rate>::max();  // of weight per GPU
    std::uint64_t tie = ~std::uint64_t{0};
    glimpsed_.clear();
    for (const Cluster::Resident& resident : node.residents) {
        if (resident.gpus == 0 || !matches(resident.kind) || gone(resident.who) ||
            !may_go(resident.who, resident.group))
            continue;
        const Amount gpus = resident.gpus;
        possible += gpus;
        if (!best.possible) continue;
        const VictimCost& cost = victims_->cost(resident.who);
        if (cost.allocated) density = std::min(density, gpus == 1 ? cost.rate : cost.rate / gpus);
        if (cost.allocated && cost.claim_rank > best.bill.rank) continue;
        if (!cost.allocated) unallocated += gpus;
        if (!cost.allocated || cost.claim_rank < best.bill.rank) below += gpus;
        within += gpus;
        largest = std::max(largest, gpus);
        tie = std::min(tie, resident.group == 0 ? cost.tie : 0);
        glimpsed_.push_back({cost.lost, gpus});
    }
    if (possible < demand.gpus) return false;
    if (!best.possible || demand.gpus <= free || node.kind_count > 1) return true;
    const Amount lacking = demand.gpus - free;
    const Wide weight = lacking > unallocated ? static_cast<Wide>(density) * (lacking - unallocated) : 0;
    if (weight != best.bill.weight) return weight < best.bill.weight;
    if (within < demand.gpus || below >= demand.gpus) return within >= demand.gpus;
    const Wide lost = least_lost(lacking);
    if (lost != best.bill.lost) return lost < best.bill.lost;
    const auto count = static_cast<std::uint32_t>((lacking + largest - 1) / largest);
    return count < best.bill.count || (count == best.bill.count && tie <= best.ties.front());
}

// More units than sets are formed of: the cheapest are taken until it fits, and left out again if they can be.
bool Fitting::choose_few(std::span<const Unit> units, const Demand& missing, Choice& choice) {
    std::vector<const Unit*> order;
    for (const Unit& unit : units) order.push_back(&unit);
    std::sort(order.begin(), order.end(),
              [](const Unit* a, const Unit* b) { return a->bill == b->bill ? a->tie < b->tie : a->bill < b->bill; });
    Demand freed;
    const auto enough = [&] {
        return freed.gpus >= missing.gpus && freed.cpus >= missing.cpus && freed.memory >= missing.memory;
    };
    const auto count = [&](const Unit& unit, Amount sign) {
        freed.gpus += sign * unit.frees.gpus;
        freed.cpus += sign * unit.frees.cpus;
        freed.memory += sign * unit.frees.memory;
    };
    std::vector<const Unit*> taken;
    for (const Unit* unit : order) {
        if (enough()) break;
        count(*unit, 1);
        taken.push_back(unit);
    }
    if (!enough()) return false;
    for (std::size_t i = taken.size(); i-- > 0;) {
        count(*taken[i], -1);
        if (enough())
            taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
        else
            count(*taken[i], 1);
    }
    for (const Unit* unit : taken) choice.units.push_back(*unit);
    return true;
}

// What this node costs for that demand. shared: of those on several nodes a part only counts. Nothing
// if it is no better than `best`.
Choice Fitting::choose(NodeId n, const Demand& demand, bool shared, const Choice* best) {
    Choice choice;
    if (survey(n) < demand.gpus) return choice;
    if (shared) {
        for (Unit& unit : units_) {
            Wide parts = 0;
            each_member(unit,
                        [&](Occupant member) { parts += static_cast<Wide>(cluster_.parties_[member].held.size()); });
            unit.bill.weight /= std::max<Wide>(parts, 1);
            unit.bill.lost /= std::max<Wide>(parts, 1);
        }
    }
    const auto missing = [](Amount wanted, Amount there) {
        return wanted == 0 ? 0 : std::max<Amount>(wanted - there, 0);
    };
    const Demand lacking{.gpus = missing(demand.gpus, space_.gpus),
                         .cpus = missing(demand.cpus, space_.cpus),
                         .memory = missing(demand.memory, space_.memory)};
    std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.tie < b.tie; });
    if (request_.whole_nodes) {
        if (stuck_) return choice;
        Demand all;
        for (const Unit& unit : units_) {
            all.gpus += unit.frees.gpus;
            all.cpus += unit.frees.cpus;
            all.memory += unit.frees.memory;
        }
        if (all.gpus < lacking.gpus || all.cpus < lacking.cpus || all.memory < lacking.memory) return choice;
        choice.units = units_;
    } else if (units_.size() > kMostUnits) {
        if (!choose_few(units_, lacking, choice)) return choice;
    } else {
        std::optional<Label> found = search_.run(units_, lacking, std::numeric_limits<std::int64_t>::max());
        if (!found) return choice;
        if (best != nullptr && best->possible && found->weight > best->bill.weight) return choice;
        std::vector<std::int64_t> ranks = {-1};
        std::int64_t highest = -1;
        for (std::size_t i = 0; i < units_.size(); ++i) {
            ranks.push_back(units_[i].bill.rank);
            if ((found->set >> i & 1) != 0) highest = std::max(highest, units_[i].bill.rank);
        }
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
        for (std::int64_t rank : ranks) {
            if (rank >= highest) break;
            const std::optional<Label> lower = search_.run(units_, lacking, rank);
            if (!lower || lower->weight != found->weight) continue;
            found = lower;
            break;
        }
        for (std::size_t i = 0; i < units_.size(); ++i)
            if ((found->set >> i & 1) != 0) choice.units.push_back(units_[i]);
    }
    choice.possible = true;
    for (const Unit& unit : choice.units) {
        choice.bill.add(unit.bill);
        choice.ties.push_back(unit.tie);
    }
    std::sort(choice.ties.begin(), choice.ties.end());
    return choice;
}

void Fitting::clear(std::span<const Unit> units) {
    for (const Unit& unit : units) mark(unit, false);
}

// Takes the nodes with these units gone, if that is a placement and better than the best so far; leaves out who
// can be left out. Precondition: the units are marked as gone; afterwards nobody is.
void Fitting::keep_better(std::vector<NodeId> nodes, std::vector<Unit> units, std::optional<Placement>& best) {
    std::sort(nodes.begin(), nodes.end());
    if (!share_out(nodes)) {
        clear(units);
        return;
    }
    for (Unit& unit : units) unit = this->unit(unit.first);
    std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) {
        if (a.bill == b.bill) return a.tie > b.tie;
        return b.bill < a.bill;
    });
    std::vector<Unit> needed;
    for (const Unit& unit : units) {
        mark(unit, false);
        if (share_out(nodes)) continue;
        mark(unit, true);
        needed.push_back(unit);
    }
    Bill bill;
    std::vector<std::uint64_t> ties;
    Placement placement;
    for (const Unit& unit : needed) {
        bill.add(unit.bill);
        ties.push_back(unit.tie);
        each_member(unit, [&](Occupant member) { placement.victims.push_back(member); });
    }
    std::sort(ties.begin(), ties.end());
    std::sort(placement.victims.begin(), placement.victims.end());
    std::optional<std::vector<Holding>> there = places(nodes);
    clear(needed);
    if (!there) return;
    if (best && !(bill < bill_) && !(bill == bill_ && ties < ties_)) return;
    placement.places = *std::move(there);
    best = std::move(placement);
    bill_ = bill;
    ties_ = std::move(ties);
}

void Fitting::single(std::optional<Placement>& best) {
    const Demand wanted = even(1);
    Choice cheapest;
    NodeId node = 0;
    for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
        if (!usable(n) || !worth_a_look(n, wanted, cheapest)) continue;
        Choice choice = choose(n, wanted, false, &cheapest);
        if (!choice.possible || !(choice < cheapest)) continue;
        cheapest = std::move(choice);
        node = n;
    }
    if (!cheapest.possible) return;
    for (const Unit& unit : cheapest.units) mark(unit, true);
    keep_better({node}, cheapest.units, best);
}

// The cheapest node, again and again, with those on it gone everywhere.
void Fitting::several(std::size_t k, bool shared, std::optional<Placement>& best) {
    const Demand wanted = even(k);
    std::vector<Choice> choices(cluster_.nodes_.size());
    std::vector<NodeId> candidates;
    for (NodeId n = 0; n < choices.size(); ++n) {
        if (!usable(n)) continue;
        choices[n] = choose(n, wanted, shared, nullptr);
        if (choices[n].possible) candidates.push_back(n);
    }
    if (candidates.size() < k) return;
    std::vector<NodeId> nodes;
    std::vector<Unit> units;
    while (nodes.size() < k) {
        auto cheapest = candidates.begin();
        for (auto c = candidates.begin(); c != candidates.end(); ++c)
            if (choices[*c] < choices[*cheapest]) cheapest = c;
        const NodeId node = *cheapest;
        candidates.erase(cheapest);
        nodes.push_back(node);
        std::vector<NodeId> touched;
        for (const Unit& unit : choices[node].units) {
            mark(unit, true);
            units.push_back(unit);
            each_member(unit, [&](Occupant member) {
                for (const Cluster::Resident& held : cluster_.parties_[member].held) touched.push_back(held.who);
            });
        }
        std::sort(touched.begin(), touched.end());
        touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
        for (NodeId n : touched)
            if (std::binary_search(candidates.begin(), candidates.end(), n))
                choices[n] = choose(n, wanted, shared, nullptr);
    }
    keep_better(std::move(nodes), std::move(units), best);
}

// For GPUs that may be shared out as one likes: what is free first, the rest from the cheapest.
void Fitting::free_first(std::size_t k, std::optional<Placement>& best) {
    std::vector<NodeId> nodes;
    std::vector<Unit> units;
    Amount rest = gpus_;
    const Amount least_each = least(k);
    while (nodes.size() < k) {
        const Amount others = least_each * static_cast<Amount>(k - nodes.size() - 1);
        std::optional<NodeId> picked;
        Amount given = std::max(least_each, chunk_) - 1;
        for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
            if (!usable(n) || std::find(nodes.begin(), nodes.end(), n) != nodes.end()) continue;
            const Amount free = std::min(most_gpus(space(n)), rest - others);
            if (free <= given || (others == 0 && free < rest)) continue;
            picked = n;
            given = free;
        }
        if (!picked) {
            const auto parts = static_cast<Amount>(k - nodes.size());
            Choice cheapest;
            given = round_up((rest + parts - 1) / parts, chunk_);
            for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
                if (!usable(n) || std::find(nodes.begin(), nodes.end(), n) != nodes.end()) continue;
                Choice choice = choose(n, demand(given, 0), false, &cheapest);
                if (!choice.possible || !(choice < cheapest)) continue;
                cheapest = std::move(choice);
                picked = n;
            }
            for (const Unit& unit : cheapest.units) {
                mark(unit, true);
                units.push_back(unit);
            }
        }
        if (!picked) {
            clear(units);
            return;
        }
        nodes.push_back(*picked);
        rest = std::max<Amount>(rest - given, 0);
    }
    keep_better(std::move(nodes), std::move(units), best);
}

// Best fit as if all that may go had gone; who can be left out stays. Finds a placement wherever there is one by GPUs.
void Fitting::all_gone(std::size_t k, std::optional<Placement>& best) {
    std::vector<Unit> units;
    for (NodeId n = 0; n < cluster_.nodes_.size(); ++n) {
        if (!usable(n)) continue;
        survey(n);
        for (const Unit& unit : units_) {
            mark(unit, true);
            units.push_back(unit);
        }
    }
    const std::optional<std::vector<NodeId>> nodes = free_nodes(k, offers());
    if (!nodes) {
        clear(units);
        return;
    }
    std::erase_if(units, [&](const Unit& unit) {
        bool concerned = false;
        each_member(unit, [&](Occupant member) {
            for (const Cluster::Resident& held : cluster_.parties_[member].held)
                concerned = concerned || std::find(nodes->begin(), nodes->end(), held.who) != nodes->end();
        });
        if (!concerned) mark(unit, false);
        return !concerned;
    });
    keep_better(*nodes, std::move(units), best);
}

std::optional<Placement> Fitting::with_victims(const Victims& victims) {
    victims_ = &victims;
    gone_.assign(cluster_.parties_.size(), 0);
    group_may_go_.assign(cluster_.groups_.size(), -1);
    std::optional<Placement> best;
    if (fewest_ == 1 && most_ == 1) {
        single(best);
        return best;
    }
    std::vector<Amount> possible;
    for (NodeId n = 0; n < cluster_.nodes_.size(); ++n)
        if (usable(n)) possible.push_back(std::min(survey(n), std::max(gpus_, least_stated())));
    std::sort(possible.begin(), possible.end(), std::greater<>());
    Amount sum = 0;
    for (std::size_t i = 0; i + 1 < fewest_ && i < possible.size(); ++i) sum += possible[i];
    int without_gain = 0;
    for (std::size_t k = fewest_; k <= most_ && k <= possible.size() && without_gain < 2; ++k) {
        sum += possible[k - 1];
        if (sum < gpus_ || possible[k - 1] < least(k)) continue;
        const bool had = best.has_value();
        const Bill before = bill_;
        if (k == 1) {
            single(best);
        } else {
            several(k, false, best);
            if (spread_) several(k, true, best);
            const bool uneven = gpus_ > least(k) * static_cast<Amount>(k);
            if (uneven) free_first(k, best);
            if (uneven || !best) all_gone(k, best);
        }
        if (had && !(bill_ < before)) ++without_gain;
    }
    return best;
}

std::optional<Placement> Cluster::fit(const PlacementRequest& request) const {
    return Fitting(*this, request, false).free();
}

std::optional<Placement> Cluster::fit(const PlacementRequest& request, const Victims& victims) const {
    if (std::optional<Placement> placement = fit(request)) return placement;
    if (victims.none()) return std::nullopt;
    return Fitting(*this, request, false).with_victims(victims);
}

bool Cluster::can_ever_fit(const PlacementRequest& request) const {
    return Fitting(*this, request, true).free().has_value();
}

}  // namespace budget
