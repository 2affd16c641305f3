// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which of those who may go on one node are the cheapest set that frees what is
// missing there (P5); part of placement. Memory in MB, work lost in 1/5040
// GPU-seconds. Plain values and one search; owned by who fits a request.
#ifndef SLURM_BUDGET_COMMON_VICTIM_SETS_H
#define SLURM_BUDGET_COMMON_VICTIM_SETS_H

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "amount.h"
#include "placement.h"
#include "units.h"

namespace budget {

inline constexpr std::size_t kMostUnits = 64;  // on one node that sets are formed of
inline constexpr std::size_t kMostLabels = 4096;

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

inline Bill bill_of(const VictimCost& cost) {
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

}  // namespace budget

#endif
