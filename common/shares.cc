// SPDX-License-Identifier: GPL-2.0-or-later
//
// The numbers of sshare from the claims; see shares.h.
#include "shares.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace budget {

namespace {

long double norm_share(const Node& node) {
    if (node.level_weight == 0) return 0;
    return static_cast<long double>(node.weight) / static_cast<long double>(node.level_weight);
}

// LevelFS of every node: (w / sum w) / (N / sum N) over its siblings; the same
// for siblings whose claims are exactly equal.
std::vector<long double> level_fs(const Tree& tree, const Claims& claims) {
    std::vector<long double> result(tree.nodes().size(), 1);
    std::vector<NodeIndex> level;
    for (const Node& parent : tree.nodes()) {
        level.clear();
        long double used = 0;
        for (NodeIndex child = parent.first_child; child < parent.first_child + parent.child_count; ++child) {
            level.push_back(child);
            used += static_cast<long double>(claims.numerator(child));
        }
        std::sort(level.begin(), level.end(), [&](NodeIndex a, NodeIndex b) { return claims.compare(a, b) < 0; });
        for (std::size_t i = 0; i < level.size(); ++i) {
            const NodeIndex n = level[i];
            const Node& node = tree.node(n);
            const auto own = static_cast<long double>(claims.numerator(n));
            if (i > 0 && claims.compare(level[i - 1], n) == 0)
                result[n] = result[level[i - 1]];
            else if (node.weight == 0)
                result[n] = 0;
            else
                result[n] = own > 0 ? norm_share(node) * used / own : std::numeric_limits<long double>::infinity();
        }
    }
    return result;
}

// The leaves in the order of claims, depth first. Siblings with equal claims are
// merged: what is below them is compared as if side by side, so that no order
// depends on listing. Leaves that stay equal share a rank.
class LeafRanks {
   public:
    LeafRanks(const Tree& tree, std::span<const long double> level_fs)
        : tree_(tree), level_fs_(level_fs), rank_(tree.nodes().size(), 0) {
        descend({kRoot});
    }

    std::uint32_t rank(NodeIndex leaf) const { return rank_[leaf]; }
    std::uint32_t leaves() const { return leaves_; }

   private:
    void descend(std::vector<NodeIndex> group) {
        const std::uint32_t rank = leaves_;
        std::uint32_t leaves_here = 0;
        std::vector<NodeIndex> below;
        for (NodeIndex n : group) {
            const Node& node = tree_.node(n);
            rank_[n] = rank;
            if (node.child_count == 0) ++leaves_here;
            for (NodeIndex i = 0; i < node.child_count; ++i) below.push_back(node.first_child + i);
        }
        std::stable_sort(below.begin(), below.end(),
                         [&](NodeIndex a, NodeIndex b) { return level_fs_[a] > level_fs_[b]; });
        for (std::size_t i = 0; i < below.size();) {
            std::size_t end = i + 1;
            while (end < below.size() && level_fs_[below[end]] == level_fs_[below[i]]) ++end;
            descend({below.begin() + static_cast<std::ptrdiff_t>(i), below.begin() + static_cast<std::ptrdiff_t>(end)});
            i = end;
        }
        leaves_ += leaves_here;  // a leaf ties with the best of an equal account
    }

    const Tree& tree_;
    std::span<const long double> level_fs_;
    std::vector<std::uint32_t> rank_;  // leaves that come before
    std::uint32_t leaves_ = 0;
};

// Adds what every association has to those above it.
std::vector<long double> sums(std::span<const Association> associations, std::span<const Wide> own,
                              const std::unordered_map<AssocId, std::size_t>& by_id) {
    std::vector<long double> sum(associations.size(), 0);
    for (std::size_t i = 0; i < associations.size(); ++i) {
        const long double amount = static_cast<long double>(own[i]) / static_cast<long double>(kGpu);
        for (std::size_t at = i;;) {
            sum[at] += amount;
            const auto parent = by_id.find(associations[at].parent_id);
            if (parent == by_id.end()) break;
            at = parent->second;
        }
    }
    return sum;
}

long double part(long double amount, long double whole) {
    return whole > 0 ? amount / whole : 0;
}

}  // namespace

std::vector<Share> shares(std::span<const Association> associations, const Tree& tree, std::span<const Wide> own,
                          const Claims& claims) {
    std::unordered_map<AssocId, std::size_t> by_id;
    for (std::size_t i = 0; i < associations.size(); ++i) by_id.emplace(associations[i].id, i);
    const std::vector<long double> used = sums(associations, own, by_id);
    const std::vector<long double> level = level_fs(tree, claims);
    const LeafRanks ranks(tree, level);

    long double cluster = 0;
    for (std::size_t i = 0; i < associations.size(); ++i)
        if (associations[i].parent_id == 0) cluster = used[i];

    std::vector<Share> result;
    result.reserve(associations.size());
    for (std::size_t i = 0; i < associations.size(); ++i) {
        const Association& association = associations[i];
        const auto parent = by_id.find(association.parent_id);
        const NodeIndex node = tree.find(association.id).value_or(kRoot);
        Share share;
        share.assoc = association.id;
        share.gpu_seconds = used[i];
        share.of_cluster = part(used[i], cluster);
        share.of_parent = parent == by_id.end() ? 1 : part(used[i], used[parent->second]);
        const bool below_root = parent != by_id.end() && associations[parent->second].parent_id == 0;
        const bool counts = !below_root || association.user != "root";  // B2
        share.norm_shares = counts ? static_cast<double>(norm_share(tree.node(node))) : 0;
        share.level_fs = counts ? level[node] : 0;
        if (counts && !association.user.empty())
            share.fs_factor = 1.0 - static_cast<double>(ranks.rank(node)) /
                                        static_cast<double>(std::max<std::uint32_t>(ranks.leaves(), 1));
        result.push_back(share);
    }
    return result;
}

}  // namespace budget
