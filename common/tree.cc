// SPDX-License-Identifier: GPL-2.0-or-later
//
// Building the budget tree: check the list, walk it from the root, fold away
// what is transparent, number the rest level by level. No recursion, so that a
// deep tree needs no deep stack. Pure functions of the list.

#include "tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace budget {

namespace {

std::string describe(const Association& a) {
    std::string text = "association " + std::to_string(a.id) + " (";
    if (!a.user.empty()) text.append("user ").append(a.user).append(" of ");
    text.append("account ").append(a.account);
    if (!a.partition.empty()) text.append(" in partition ").append(a.partition);
    return text + ")";
}

std::string node_name(const Association& a) {
    if (a.user.empty()) return std::string(a.account);
    std::string text = std::string(a.user).append(" (").append(a.account);
    if (!a.partition.empty()) text.append("/").append(a.partition);
    return text + ")";
}

auto full_name(const Association& a) {
    return std::tie(a.account, a.user, a.partition);
}

// Accounts before users, then by name; users of several folded accounts may
// share a user name.
auto sibling_order(const Association& a) {
    return std::tuple(!a.user.empty(), a.user, a.account, a.partition);
}

}  // namespace

// Positions are indices into the associations sorted by id: what is reported
// of a bad list does not depend on its order.
class TreeBuilder {
   public:
    explicit TreeBuilder(std::span<const Association> associations);
    Result<Tree> build();

   private:
    using Position = std::uint32_t;
    static constexpr Position kNone = ~Position{0};

    // What hangs below a weighted account once the transparent ones are gone.
    struct Family {
        std::vector<Position> members;  // weighted accounts and users
        bool has_sharers = false;       // fairshare=parent users
        NodeIndex shared_leaf = kRoot;  // their node
    };

    std::optional<Error> check_ids() const;
    std::optional<Error> check_names() const;
    std::optional<Error> find_root();
    std::optional<Error> link();
    std::optional<Error> walk();
    std::string circle(Position below) const;

    Position find(AssocId id) const;
    bool is_root_user(Position p) const;
    bool is_weighted(Position p) const;

    void fold();
    void number();
    void number_children(NodeIndex parent);
    void add_node(Position p, NodeIndex parent, std::uint64_t level_weight);
    void fill_indices();
    NodeIndex home(Position p) const;

    std::vector<const Association*> list_;
    Position root_ = kNone;
    std::vector<Position> parent_;                 // by position; the root's is itself
    std::vector<std::vector<Position>> children_;  // by position
    std::vector<Position> walked_;                 // all positions, parents first
    std::vector<Position> anchor_;                 // by position: the nearest weighted one, from itself upwards
    std::vector<Family> families_;                 // by position
    std::vector<NodeIndex> node_of_;               // by position: own node of a weighted one
    std::vector<Position> source_;                 // by node; kNone for a shared leaf
    Tree tree_;
};

TreeBuilder::TreeBuilder(std::span<const Association> associations) {
    list_.reserve(associations.size());
    for (const Association& a : associations) list_.push_back(&a);
    std::sort(list_.begin(), list_.end(), [](const Association* a, const Association* b) {
        return std::tuple(a->id, full_name(*a)) < std::tuple(b->id, full_name(*b));
    });
}

Result<Tree> TreeBuilder::build() {
    if (auto error = check_ids()) return *error;
    if (auto error = check_names()) return *error;
    if (auto error = find_root()) return *error;
    if (auto error = link()) return *error;
    if (auto error = walk()) return *error;
    fold();
    number();
    fill_indices();
    return std::move(tree_);
}

std::optional<Error> TreeBuilder::check_ids() const {
    if (!list_.empty() && list_.front()->id == 0) {
        return Error{describe(*list_.front()) + " has no id of its own: ids count from 1"};
    }
    for (const Association* a : list_) {
        if (a->account.empty()) return Error{describe(*a) + " names no account: every association has one"};
    }
    const auto same_id = [](const Association* a, const Association* b) { return a->id == b->id; };
    const auto twice = std::adjacent_find(list_.begin(), list_.end(), same_id);
    if (twice == list_.end()) return std::nullopt;
    return Error{describe(**twice) + " and " + describe(**std::next(twice)) + " have one id: each needs its own"};
}

std::optional<Error> TreeBuilder::check_names() const {
    std::vector<const Association*> by_name = list_;
    std::stable_sort(by_name.begin(), by_name.end(),
                     [](const Association* a, const Association* b) { return full_name(*a) < full_name(*b); });
    const auto same_name = [](const Association* a, const Association* b) { return full_name(*a) == full_name(*b); };
    const auto twice = std::adjacent_find(by_name.begin(), by_name.end(), same_name);
    if (twice == by_name.end()) return std::nullopt;
    return Error{describe(**twice) + " and " + describe(**std::next(twice)) + " have one name: remove one of them"};
}

std::optional<Error> TreeBuilder::find_root() {
    for (Position p = 0; p < list_.size(); ++p) {
        const Association& a = *list_[p];
        if (a.parent_id != 0) continue;
        if (!a.user.empty()) return Error{describe(a) + " has no parent: a user's parent is its account"};
        if (root_ != kNone) {
            return Error{describe(*list_[root_]) + " and " + describe(a) +
                         " both have no parent: only the root account has none"};
        }
        root_ = p;
    }
    if (root_ != kNone) return std::nullopt;
    return Error{"no root account among " + std::to_string(list_.size()) +
                 " associations: one account must have parent 0"};
}

std::optional<Error> TreeBuilder::link() {
    parent_.resize(list_.size());
    children_.resize(list_.size());
    for (Position p = 0; p < list_.size(); ++p) {
        parent_[p] = p == root_ ? root_ : find(list_[p]->parent_id);
        if (p == root_) continue;
        if (parent_[p] == kNone) {
            return Error{describe(*list_[p]) + " has an unknown parent, association " +
                         std::to_string(list_[p]->parent_id) + ": give it an account of this list"};
        }
        const Association& parent = *list_[parent_[p]];
        if (!parent.user.empty()) {
            return Error{describe(*list_[p]) + " is below " + describe(parent) + ": a parent must be an account"};
        }
        children_[parent_[p]].push_back(p);
    }
    return std::nullopt;
}

// Lists all positions parents first. What cannot be reached is on or below a circle.
std::optional<Error> TreeBuilder::walk() {
    std::vector<bool> reached(list_.size());
    walked_.push_back(root_);
    for (std::size_t i = 0; i < walked_.size(); ++i) {
        reached[walked_[i]] = true;
        for (const Position child : children_[walked_[i]]) walked_.push_back(child);
    }
    if (walked_.size() == list_.size()) return std::nullopt;
    const auto lost = std::find(reached.begin(), reached.end(), false);
    return Error{circle(static_cast<Position>(std::distance(reached.begin(), lost)))};
}

std::string TreeBuilder::circle(Position below) const {
    for (std::size_t i = 0; i < list_.size(); ++i) below = parent_[below];  // now surely on the circle
    Position first = below;
    for (Position p = parent_[below]; p != below; p = parent_[p]) first = std::min(first, p);
    std::string path(list_[first]->account);
    for (Position p = parent_[first]; p != first; p = parent_[p]) path.append(" under ").append(list_[p]->account);
    path.append(" under ").append(list_[first]->account);
    return describe(*list_[first]) + " is under itself: " + path + "; give one of them a parent outside the circle";
}

TreeBuilder::Position TreeBuilder::find(AssocId id) const {
    const auto found = std::lower_bound(list_.begin(), list_.end(), id,
                                        [](const Association* a, AssocId wanted) { return a->id < wanted; });
    if (found == list_.end() || (*found)->id != id) return kNone;
    return static_cast<Position>(std::distance(list_.begin(), found));
}

bool TreeBuilder::is_root_user(Position p) const {
    return list_[p]->user == "root" && parent_[p] == root_;
}

bool TreeBuilder::is_weighted(Position p) const {
    return p == root_ || (list_[p]->shares != kSharesParent && !is_root_user(p));
}

void TreeBuilder::fold() {
    anchor_.resize(list_.size());
    families_.resize(list_.size());
    for (const Position p : walked_) {
        const Position above = anchor_[parent_[p]];
        anchor_[p] = is_weighted(p) ? p : above;
        if (p == root_) continue;
        if (is_weighted(p)) {
            families_[above].members.push_back(p);
        } else if (!list_[p]->user.empty() && !is_root_user(p)) {
            families_[above].has_sharers = true;
        }
    }
}

void TreeBuilder::number() {
    node_of_.resize(list_.size());
    node_of_[root_] = kRoot;
    source_.push_back(root_);
    tree_.nodes_[kRoot].assoc = list_[root_]->id;
    for (NodeIndex n = 0; n < tree_.nodes_.size(); ++n) {
        if (source_[n] != kNone) number_children(n);
    }
}

void TreeBuilder::number_children(NodeIndex parent) {
    Family& family = families_[source_[parent]];
    std::sort(family.members.begin(), family.members.end(),
              [this](Position a, Position b) { return sibling_order(*list_[a]) < sibling_order(*list_[b]); });
    const bool add_shared_leaf = family.has_sharers && !family.members.empty();
    std::uint64_t level_weight = add_shared_leaf ? 1 : 0;
    for (const Position p : family.members) level_weight += list_[p]->shares;

    const auto first = static_cast<NodeIndex>(tree_.nodes_.size());
    for (const Position p : family.members) add_node(p, parent, level_weight);
    if (add_shared_leaf) add_node(kNone, parent, level_weight);
    const auto past = static_cast<NodeIndex>(tree_.nodes_.size());
    family.shared_leaf = add_shared_leaf ? past - 1 : parent;
    if (past == first) return;
    tree_.nodes_[parent].first_child = first;
    tree_.nodes_[parent].child_count = past - first;
}

void TreeBuilder::add_node(Position p, NodeIndex parent, std::uint64_t level_weight) {
    const bool shared = p == kNone;
    if (!shared) node_of_[p] = static_cast<NodeIndex>(tree_.nodes_.size());
    const std::uint32_t weight = shared ? 1 : list_[p]->shares;
    tree_.nodes_.push_back({.parent = parent,
                            .depth = tree_.nodes_[parent].depth + 1,
                            .weight = weight,
                            .level_weight = level_weight,
                            .assoc = shared ? 0 : list_[p]->id,
                            .has_budget = weight > 0 && tree_.nodes_[parent].has_budget});
    tree_.names_.push_back(shared ? "* (" + std::string(list_[source_[parent]]->account) + ")" : node_name(*list_[p]));
    source_.push_back(p);
}

void TreeBuilder::fill_indices() {
    tree_.by_assoc_.reserve(list_.size());
    for (Position p = 0; p < list_.size(); ++p) {
        tree_.by_assoc_.emplace(list_[p]->id, home(p));
        if (list_[p]->user.empty()) tree_.by_account_.emplace(list_[p]->account, home(p));
    }
}

// Where usage and jobs of an association belong.
NodeIndex TreeBuilder::home(Position p) const {
    if (is_weighted(p)) return node_of_[p];
    if (is_root_user(p)) return kRoot;
    const Position above = anchor_[p];
    return list_[p]->user.empty() ? node_of_[above] : families_[above].shared_leaf;
}

Tree::Tree() : nodes_{Node{.weight = 1, .level_weight = 1}}, names_(1) {}

Result<Tree> Tree::build(std::span<const Association> associations) {
    return TreeBuilder(associations).build();
}

std::optional<NodeIndex> Tree::find(AssocId id) const {
    const auto found = by_assoc_.find(id);
    if (found == by_assoc_.end()) return std::nullopt;
    return found->second;
}

std::optional<NodeIndex> Tree::find_account(std::string_view account) const {
    const auto found = by_account_.find(std::string(account));
    if (found == by_account_.end()) return std::nullopt;
    return found->second;
}

double Tree::entitlement(NodeIndex index) const {
    double share = 1;
    for (NodeIndex n = index; n != kRoot; n = nodes_[n].parent) {
        if (nodes_[n].weight == 0) return 0;
        share *= static_cast<double>(nodes_[n].weight) / static_cast<double>(nodes_[n].level_weight);
    }
    return share;
}

}  // namespace budget
