// SPDX-License-Identifier: GPL-2.0-or-later
//
// The budget tree (rules B1 to B5): the association tree of one cluster with
// its transparent (fairshare=parent) nodes folded away. Nodes are numbered
// parents first, siblings side by side; node 0 is the root account.
// Immutable once built; read from any thread.
#ifndef SLURM_BUDGET_COMMON_TREE_H
#define SLURM_BUDGET_COMMON_TREE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "result.h"
#include "units.h"

namespace budget {

using AssocId = std::uint32_t;    // Slurm's association id; 0 is none
using NodeIndex = std::uint32_t;  // position in Tree::nodes()
inline constexpr NodeIndex kRoot = 0;

// The raw share that Slurm stores for fairshare=parent.
inline constexpr std::uint32_t kSharesParent = 0x7fffffff;

// One association as Slurm holds it. Names are copied by Tree::build.
struct Association {
    AssocId id = 0;
    AssocId parent_id = 0;  // 0 for the root account only
    std::string_view account = {};
    std::string_view user = {};       // empty for an account
    std::string_view partition = {};  // empty where the association is not bound to one
    std::uint32_t shares = 1;         // raw share, or kSharesParent; the root account's is ignored
};

// A node of the folded tree: a weighted account, a weighted user (or user +
// partition), or the leaf shared by the fairshare=parent users of an account
// that also has weighted children (rule B3).
struct Node {
    NodeIndex parent = kRoot;        // the root's is itself
    NodeIndex first_child = 0;       // children are [first_child, first_child + child_count)
    std::uint32_t child_count = 0;   // 0 for a leaf
    std::uint32_t depth = 0;         // 0 for the root
    std::uint32_t weight = 0;        // raw share; 1 for a shared leaf and for the root
    std::uint64_t level_weight = 0;  // sum of weights over this node and its siblings (B2); 1 for the root
    AssocId assoc = 0;               // 0 for a shared leaf
    bool has_budget = true;          // no weight 0 from here to the root (B4)
};

class Tree {
   public:
    // A tree of the root account alone.
    Tree();

    // Folds the associations of one cluster. The order of the list is of no
    // consequence: siblings are ordered accounts before users before the shared
    // leaf, then by name. Fails, naming the association, where there is no root
    // or more than one, an id or a name occurs twice, a parent is unknown or a
    // user, or the parents form a circle.
    static Result<Tree> build(std::span<const Association> associations);

    std::span<const Node> nodes() const { return nodes_; }
    const Node& node(NodeIndex index) const { return nodes_[index]; }

    // Where usage and jobs of an association belong: its own node, or, where it
    // is transparent, the leaf or account it is folded into. User root directly
    // under the root account belongs to the root (B2). Nothing for an unknown id.
    std::optional<NodeIndex> find(AssocId id) const;

    // The node of an account by name, or the one it is folded into; nothing
    // where there is no such account.
    std::optional<NodeIndex> find_account(std::string_view account) const;

    // Names for messages: "account", "user (account)", "user (account/partition)",
    // and "* (account)" for a shared leaf; empty for the root.
    std::string_view name(NodeIndex index) const { return names_[index]; }

    // e(n) of rule B2 as a double, for display only: order never uses it.
    double entitlement(NodeIndex index) const;

   private:
    friend class TreeBuilder;
    std::vector<Node> nodes_;
    std::vector<std::string> names_;
    std::unordered_map<AssocId, NodeIndex> by_assoc_;
    std::unordered_map<std::string, NodeIndex> by_account_;
};

}  // namespace budget

#endif
