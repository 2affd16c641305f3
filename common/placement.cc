// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who holds what of which node; see placement.h. Requests are fitted in fitting.cc.
#include "placement.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "amount.h"

namespace budget {

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

}  // namespace budget
