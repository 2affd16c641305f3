// SPDX-License-Identifier: GPL-2.0-or-later
//
// See fitting.h.
#include "fitting.h"

#include <cassert>
#include <limits>
#include <tuple>

namespace budget {

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
