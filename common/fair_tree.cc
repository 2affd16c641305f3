// SPDX-License-Identifier: GPL-2.0-or-later
//
// Slurm's Fair Tree; see fair_tree.h. Types of intermediate values are chosen as
// Slurm has them, as rounding decides ties: shares are normalised in double,
// usage and level_fs are long double, sums of shares wrap at 32 bits.
#include "fair_tree.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tree.h"

namespace budget {

namespace {

using RowIndex = std::size_t;

// What stands as the level of an account without shares of its own, and before
// the first sibling of a level: Slurm's "no value".
constexpr long double kNoLevel = 0xfffffffe;

class FairTree {
   public:
    explicit FairTree(std::span<FairTreeRow> rows)
        : rows_(rows),
          parent_(rows.size()),
          children_(rows.size()),
          level_shares_(rows.size()),
          level_fs_(rows.size()) {
        for (RowIndex i = 0; i < rows.size(); ++i) {
            by_id_.emplace(rows[i].id, i);
            if (rows[i].is_user) ++users_;
            if (rows[i].parent_id == 0) root_ = i;
        }
        for (RowIndex i = 0; i < rows.size(); ++i) {
            parent_[i] = weighted_parent(i);
            if (parent_[i]) children_[*parent_[i]].push_back(i);
        }
        for (const std::vector<RowIndex>& level : children_) set_level(level);
    }

    void run() {
        rank_ = users_;
        untied_rank_ = users_;
        if (root_) descend(children_[*root_], false);
    }

   private:
    // The nearest ancestor with shares of its own, or the topmost account.
    std::optional<RowIndex> weighted_parent(RowIndex row) const {
        RowIndex at = row;
        for (std::size_t steps = 0; steps < rows_.size() && rows_[at].parent_id != 0; ++steps) {
            const auto parent = by_id_.find(rows_[at].parent_id);
            if (parent == by_id_.end()) return std::nullopt;
            at = parent->second;
            if (rows_[at].shares != kSharesParent) break;
        }
        return at == row ? std::nullopt : std::optional(at);
    }

    void set_level(const std::vector<RowIndex>& level) {
        std::uint32_t sum = 0;
        for (RowIndex i : level)
            if (rows_[i].shares != kSharesParent) sum += rows_[i].shares;
        for (RowIndex i : level) level_shares_[i] = sum;
        for (RowIndex i : level) level_fs_[i] = level_fs(i);
    }

    long double level_fs(RowIndex i) const {
        const FairTreeRow& row = rows_[i];
        constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
        if (row.shares == kSharesParent) return row.is_user ? kInfinity : kNoLevel;
        if (row.shares == 0 || level_shares_[i] == 0) return 0;
        const long double share = static_cast<double>(row.shares) / static_cast<double>(level_shares_[i]);
        const long double all = rows_[*parent_[i]].usage;
        const long double used = all == 0 ? 0 : row.usage / all;
        return used == 0 ? kInfinity : share / used;
    }

    // Ranks the users of a level and below. tied: this level's account ties with
    // the sibling before it. Depth is that of the tree of accounts.
    void descend(std::vector<RowIndex> level, bool tied) {
        std::stable_sort(level.begin(), level.end(), [this](RowIndex a, RowIndex b) {
            if (level_fs_[a] != level_fs_[b]) return level_fs_[a] > level_fs_[b];
            return rows_[a].is_user && !rows_[b].is_user;
        });
        long double before = kNoLevel;
        for (RowIndex i : level) {
            const bool first_of_tie = tied && i == level.front();
            const bool tie = first_of_tie || before == level_fs_[i];
            if (rows_[i].is_user) {
                if (!tie) rank_ = untied_rank_;
                rows_[i].fs_factor = rank_ / static_cast<double>(users_);
                --untied_rank_;
            } else {
                descend(children_[i], tie);
            }
            before = level_fs_[i];
        }
    }

    std::span<FairTreeRow> rows_;
    std::unordered_map<std::uint32_t, RowIndex> by_id_;
    std::vector<std::optional<RowIndex>> parent_;
    std::vector<std::vector<RowIndex>> children_;
    std::vector<std::uint32_t> level_shares_;
    std::vector<long double> level_fs_;
    std::optional<RowIndex> root_;
    std::uint32_t users_ = 0;
    std::uint32_t rank_ = 0;         // the rank given last
    std::uint32_t untied_rank_ = 0;  // what it would be without ties
};

}  // namespace

void fair_tree(std::span<FairTreeRow> rows) {
    FairTree(rows).run();
}

}  // namespace budget
