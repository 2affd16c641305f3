// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/tree.h: rules B1 to B4. A tree is written as text, each node as
// `name weight/level` with its children in braces and `-` where it has no
// budget, so that a row of a table shows the whole of it.

#include "common/tree.h"

#include <check.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "check_main.h"

namespace {

using budget::Association;
using budget::kRoot;
using budget::kSharesParent;
using budget::Node;
using budget::NodeIndex;
using budget::Tree;

constexpr std::uint32_t kParent = kSharesParent;

std::string text(const Tree& tree, NodeIndex index = kRoot) {
    const Node& node = tree.node(index);
    std::string out = index == kRoot ? "root" : std::string(tree.name(index));
    out += " " + std::to_string(node.weight) + "/" + std::to_string(node.level_weight);
    if (!node.has_budget) out += "-";
    if (node.child_count == 0) return out;
    out += "{";
    for (NodeIndex child = node.first_child; child < node.first_child + node.child_count; ++child) {
        if (child != node.first_child) out += ", ";
        out += text(tree, child);
    }
    return out + "}";
}

// Where associations are at home, as `id:name` by id; the root's name is `root`.
std::string homes(const Tree& tree, const std::vector<Association>& list) {
    std::vector<budget::AssocId> ids;
    for (const Association& a : list) ids.push_back(a.id);
    std::sort(ids.begin(), ids.end());
    std::string out;
    for (const budget::AssocId id : ids) {
        const std::string name(tree.name(tree.find(id).value()));
        out += (out.empty() ? "" : " ") + std::to_string(id) + ":" + (name.empty() ? "root" : name);
    }
    return out;
}

const std::vector<Association> kRootOnly = {{.id = 1, .account = "root"}};

const struct {
    const char* why;
    std::vector<Association> list;
    const char* tree;
    const char* homes;
} kTrees[] = {
    {"B1: users with fairshare=parent make their account the leaf",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a", .shares = 70},
      {.id = 3, .parent_id = 2, .account = "a", .user = "ann", .shares = kParent},
      {.id = 4, .parent_id = 2, .account = "a", .user = "bob", .shares = kParent},
      {.id = 5, .parent_id = 1, .account = "b", .shares = 30}},
     "root 1/1{a 70/100, b 30/100}",
     "1:root 2:a 3:a 4:a 5:b"},
    {"B1: users with weights of their own are leaves",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a", .shares = 70},
      {.id = 3, .parent_id = 2, .account = "a", .user = "bob", .shares = 3},
      {.id = 4, .parent_id = 2, .account = "a", .user = "ann", .shares = 1}},
     "root 1/1{a 70/70{ann (a) 1/4, bob (a) 3/4}}",
     "1:root 2:a 3:bob (a) 4:ann (a)"},
    {"B1: a user may have a leaf per partition",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a", .user = "u", .partition = "gpu", .shares = 2},
      {.id = 4, .parent_id = 2, .account = "a", .user = "u", .shares = 1}},
     "root 1/1{a 1/1{u (a) 1/3, u (a/gpu) 2/3}}",
     "1:root 2:a 3:u (a/gpu) 4:u (a)"},
    {"B2: the association of user root under the root account has no weight",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "root", .user = "root", .shares = 1},
      {.id = 3, .parent_id = 1, .account = "a", .shares = 4}},
     "root 1/1{a 4/4}",
     "1:root 2:root 3:a"},
    {"B2: user root elsewhere is a user like others",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a", .user = "root", .shares = 5}},
     "root 1/1{a 1/1{root (a) 5/5}}",
     "1:root 2:a 3:root (a)"},
    {"BT-05: a weight of the root account is ignored",
     {{.id = 1, .account = "root", .shares = 0}, {.id = 2, .parent_id = 1, .account = "a"}},
     "root 1/1{a 1/1}",
     "1:root 2:a"},
    {"BT-05: so is fairshare=parent there",
     {{.id = 2, .account = "root", .shares = kParent}, {.id = 1, .parent_id = 2, .account = "a"}},
     "root 1/1{a 1/1}",
     "1:a 2:root"},
    {"B3: the children of a fairshare=parent account compete above it (RK-05)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "A", .shares = 100},
      {.id = 3, .parent_id = 2, .account = "B", .shares = kParent},
      {.id = 4, .parent_id = 3, .account = "B", .user = "u1", .shares = 1},
      {.id = 5, .parent_id = 3, .account = "B", .user = "u2", .shares = 1},
      {.id = 6, .parent_id = 2, .account = "A", .user = "u3", .shares = 2}},
     "root 1/1{A 100/100{u1 (B) 1/4, u2 (B) 1/4, u3 (A) 2/4}}",
     "1:root 2:A 3:A 4:u1 (B) 5:u2 (B) 6:u3 (A)"},
    {"B3: fairshare=parent users share a leaf of weight 1 beside weighted users",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a", .user = "x", .shares = kParent},
      {.id = 4, .parent_id = 2, .account = "a", .user = "y", .shares = kParent},
      {.id = 5, .parent_id = 2, .account = "a", .user = "z", .shares = 3}},
     "root 1/1{a 1/1{z (a) 3/4, * (a) 1/4}}",
     "1:root 2:a 3:* (a) 4:* (a) 5:z (a)"},
    {"B3: and beside weighted accounts, which do not take their usage in",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a1", .shares = 9},
      {.id = 4, .parent_id = 2, .account = "a", .user = "x", .shares = kParent}},
     "root 1/1{a 1/1{a1 9/10, * (a) 1/10}}",
     "1:root 2:a 3:a1 4:* (a)"},
    {"B3: users of nested transparent accounts share the leaf of the nearest weighted one",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "b", .shares = kParent},
      {.id = 4, .parent_id = 3, .account = "c", .shares = kParent},
      {.id = 5, .parent_id = 4, .account = "c", .user = "x", .shares = kParent},
      {.id = 6, .parent_id = 4, .account = "d", .shares = 2}},
     "root 1/1{a 1/1{d 2/3, * (a) 1/3}}",
     "1:root 2:a 3:a 4:a 5:* (a) 6:d"},
    {"B3: transparent up to the root",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a", .shares = kParent},
      {.id = 3, .parent_id = 2, .account = "a", .user = "x", .shares = kParent},
      {.id = 4, .parent_id = 1, .account = "root", .user = "root", .shares = kParent}},
     "root 1/1",
     "1:root 2:root 3:root 4:root"},
    {"B4: weight 0 is no budget, from there down (RK-03)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a", .user = "u1", .shares = 0},
      {.id = 4, .parent_id = 2, .account = "a", .user = "u2", .shares = 0},
      {.id = 5, .parent_id = 2, .account = "a", .user = "u3", .shares = 100000},
      {.id = 6, .parent_id = 1, .account = "b", .shares = 0},
      {.id = 7, .parent_id = 6, .account = "b", .user = "u4", .shares = 7}},
     "root 1/1{a 1/1{u1 (a) 0/100000-, u2 (a) 0/100000-, u3 (a) 100000/100000}, b 0/1-{u4 (b) 7/7-}}",
     "1:root 2:a 3:u1 (a) 4:u2 (a) 5:u3 (a) 6:b 7:u4 (b)"},
    {"B4: a fairshare=parent user beside one of weight 0 has the whole",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a", .user = "x", .shares = kParent},
      {.id = 4, .parent_id = 2, .account = "a", .user = "y", .shares = 0}},
     "root 1/1{a 1/1{y (a) 0/1-, * (a) 1/1}}",
     "1:root 2:a 3:* (a) 4:y (a)"},
    {"B4: a level of weight 0 alone (RK-03)",
     {{.id = 1, .account = "root"}, {.id = 2, .parent_id = 1, .account = "a", .shares = 0}},
     "root 1/1{a 0/0-}",
     "1:root 2:a"},
    {"users and accounts side by side, accounts first, each by name (RK-06)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "root", .user = "leaf", .shares = 100},
      {.id = 3, .parent_id = 1, .account = "z", .shares = 10},
      {.id = 4, .parent_id = 1, .account = "b", .shares = 1000}},
     "root 1/1{b 1000/1110, z 10/1110, leaf (root) 100/1110}",
     "1:root 2:leaf (root) 3:z 4:b"},
    {"the root account alone (RK-07)", kRootOnly, "root 1/1", "1:root"},
    {"root and user root (RK-07)",
     {{.id = 1, .account = "root"}, {.id = 2, .parent_id = 1, .account = "root", .user = "root"}},
     "root 1/1",
     "1:root 2:root"},
    {"an account with nobody, and one with one user (RK-07)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "empty"},
      {.id = 3, .parent_id = 1, .account = "one"},
      {.id = 4, .parent_id = 3, .account = "one", .user = "u"}},
     "root 1/1{empty 1/2, one 1/2{u (one) 1/1}}",
     "1:root 2:empty 3:one 4:u (one)"},
    {"one user in several accounts is a leaf in each (RK-09)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a", .shares = kParent},
      {.id = 3, .parent_id = 1, .account = "b", .shares = kParent},
      {.id = 4, .parent_id = 3, .account = "b", .user = "u"},
      {.id = 5, .parent_id = 2, .account = "a", .user = "u"}},
     "root 1/1{u (a) 1/2, u (b) 1/2}",
     "1:root 2:root 3:root 4:u (b) 5:u (a)"},
    {"absurd weights do not wrap (RK-13)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a", .shares = 0xffffffff},
      {.id = 3, .parent_id = 1, .account = "b", .shares = 0xffffffff},
      {.id = 4294967295, .parent_id = 1, .account = "c", .shares = 0xfffffffe}},
     "root 1/1{a 4294967295/12884901884, b 4294967295/12884901884, c 4294967294/12884901884}",
     "1:root 2:a 3:b 4294967295:c"},
    {"parents after their children in the list, and with greater ids (BT-06)",
     {{.id = 1, .parent_id = 3, .account = "leaf", .user = "u"},
      {.id = 2, .parent_id = 9, .account = "mid"},
      {.id = 3, .parent_id = 2, .account = "leaf"},
      {.id = 9, .account = "root"}},
     "root 1/1{mid 1/1{leaf 1/1{u (leaf) 1/1}}}",
     "1:u (leaf) 2:mid 3:leaf 9:root"},
};

void expect(const char* why, const std::string& is, const std::string& should) {
    ck_assert_msg(is == should, "%s:\n  is     %s\n  should %s", why, is.c_str(), should.c_str());
}

START_TEST(trees) {
    const auto& row = kTrees[_i];
    std::vector<Association> list = row.list;
    std::mt19937 random(7);
    for (int round = 0; round < 6; ++round) {
        const auto built = Tree::build(list);
        ck_assert_msg(built.ok(), "%s: %s", row.why, built.ok() ? "" : built.error().c_str());
        expect(row.why, text(built.value()), row.tree);
        expect(row.why, homes(built.value(), list), row.homes);
        std::shuffle(list.begin(), list.end(), random);  // the order of the list is of no consequence
    }
}
END_TEST

const struct {
    const char* why;
    std::vector<Association> list;
    const char* error;
} kRefused[] = {
    {"no associations at all", {}, "no root account among 0 associations: one account must have parent 0"},
    {"no root",
     {{.id = 4, .parent_id = 1, .account = "a"}},
     "no root account among 1 associations: one account must have parent 0"},
    {"two roots (BT-05)",
     {{.id = 3, .account = "root"}, {.id = 8, .account = "top"}},
     "association 3 (account root) and association 8 (account top) both have no parent: only the root account has "
     "none"},
    {"a user as root",
     {{.id = 3, .account = "root", .user = "u"}},
     "association 3 (user u of account root) has no parent: a user's parent is its account"},
    {"an id twice",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 2, .parent_id = 1, .account = "b"}},
     "association 2 (account a) and association 2 (account b) have one id: each needs its own"},
    {"a name twice",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "a"},
      {.id = 3, .parent_id = 2, .account = "a"}},
     "association 2 (account a) and association 3 (account a) have one name: remove one of them"},
    {"id 0",
     {{.id = 1, .account = "root"}, {.id = 0, .parent_id = 1, .account = "a"}},
     "association 0 (account a) has no id of its own: ids count from 1"},
    {"no account",
     {{.id = 1, .account = "root"}, {.id = 2, .parent_id = 1, .user = "u"}},
     "association 2 (user u of account ) names no account: every association has one"},
    {"an unknown parent",
     {{.id = 1, .account = "root"}, {.id = 2, .parent_id = 7, .account = "a", .user = "u", .partition = "p"}},
     "association 2 (user u of account a in partition p) has an unknown parent, association 7: give it an account of "
     "this list"},
    {"a user as parent",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 1, .account = "root", .user = "u"},
      {.id = 3, .parent_id = 2, .account = "a"}},
     "association 3 (account a) is below association 2 (user u of account root): a parent must be an account"},
    {"an account under its own child (BT-06)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 3, .account = "A"},
      {.id = 3, .parent_id = 2, .account = "A1"}},
     "association 2 (account A) is under itself: A under A1 under A; give one of them a parent outside the circle"},
    {"an account under itself (BT-06)",
     {{.id = 1, .account = "root"}, {.id = 2, .parent_id = 2, .account = "A"}},
     "association 2 (account A) is under itself: A under A; give one of them a parent outside the circle"},
    {"the error names the circle, not what hangs on it (BT-06)",
     {{.id = 1, .account = "root"},
      {.id = 2, .parent_id = 3, .account = "x"},
      {.id = 3, .parent_id = 5, .account = "y"},
      {.id = 4, .parent_id = 3, .account = "z"},
      {.id = 5, .parent_id = 4, .account = "w"}},
     "association 3 (account y) is under itself: y under w under z under y; give one of them a parent outside the "
     "circle"},
};

START_TEST(refused) {
    const auto& row = kRefused[_i];
    std::vector<Association> list = row.list;
    for (int round = 0; round < 2; ++round) {
        const auto built = Tree::build(list);
        ck_assert_msg(!built.ok(), "accepted: %s", row.why);
        expect(row.why, built.error(), row.error);
        std::reverse(list.begin(), list.end());  // nor does the error depend on the order
    }
}
END_TEST

START_TEST(entitlement) {
    const std::vector<Association> list = {{.id = 1, .account = "root"},
                                           {.id = 2, .parent_id = 1, .account = "p1", .shares = 60},
                                           {.id = 3, .parent_id = 2, .account = "a", .shares = 70},
                                           {.id = 4, .parent_id = 2, .account = "b", .shares = 30},
                                           {.id = 5, .parent_id = 1, .account = "p2", .shares = 40},
                                           {.id = 6, .parent_id = 5, .account = "c", .shares = 1},
                                           {.id = 7, .parent_id = 5, .account = "d", .shares = 0}};
    const Tree tree = Tree::build(list).value();
    const struct {
        const char* why;
        const char* account;
        double share;
    } rows[] = {
        {"B2: the root has everything", "root", 1},          {"B2: a part of the cluster", "p1", 0.6},
        {"B2: a part of the parent's part", "a", 0.42},      {"B2: whether its sibling is active or not", "b", 0.18},
        {"RK-07: alone, the whole of the parent", "c", 0.4}, {"B4: weight 0 is nothing", "d", 0}};
    for (const auto& row : rows) {
        const double is = tree.entitlement(tree.find_account(row.account).value());
        ck_assert_msg(is > row.share - 1e-12 && is < row.share + 1e-12, "%s: %f", row.why, is);
    }
}
END_TEST

START_TEST(lookups) {
    const std::vector<Association> list = {{.id = 1, .account = "root"},
                                           {.id = 2, .parent_id = 1, .account = "a"},
                                           {.id = 3, .parent_id = 2, .account = "b", .shares = kParent},
                                           {.id = 4, .parent_id = 3, .account = "b", .user = "u"}};
    const Tree tree = Tree::build(list).value();
    ck_assert_msg(!tree.find(0) && !tree.find(5), "an unknown id has no node");
    ck_assert_msg(!tree.find_account("c") && !tree.find_account("u"), "no account of that name");
    ck_assert_msg(tree.find_account("root") == kRoot, "the root account is node 0");
    ck_assert_msg(tree.find_account("b") == tree.find(2), "B3: a transparent account is at its nearest weighted one");
    const Tree empty;
    ck_assert_msg(empty.nodes().size() == 1 && empty.entitlement(kRoot) == 1, "RK-07: a tree of the root alone");
    ck_assert_msg(!empty.find(1), "which knows no association");
}
END_TEST

// Parents first, siblings side by side, as others rely on.
START_TEST(numbering) {
    for (const auto& row : kTrees) {
        const Tree tree = Tree::build(row.list).value();
        NodeIndex next = 1;
        for (NodeIndex n = 0; n < tree.nodes().size(); ++n) {
            const Node& node = tree.node(n);
            ck_assert_msg(n == kRoot ? node.parent == kRoot : node.parent < n, "%s", row.why);
            if (node.child_count == 0) continue;
            ck_assert_msg(node.first_child == next, "%s: the children of node %u", row.why, n);
            next += node.child_count;
            for (NodeIndex child = node.first_child; child < next; ++child) {
                ck_assert_msg(tree.node(child).parent == n && tree.node(child).depth == node.depth + 1, "%s", row.why);
            }
        }
        ck_assert_msg(next == tree.nodes().size(), "%s: every node is somebody's child", row.why);
    }
}
END_TEST

START_TEST(deep) {
    constexpr std::uint32_t kLevels = 50'000;
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < kLevels; ++i) names.push_back("a" + std::to_string(i));
    std::vector<Association> list;
    for (std::uint32_t i = 0; i < kLevels; ++i) list.push_back({.id = i + 1, .parent_id = i, .account = names[i]});
    const auto chain = Tree::build(list);
    ck_assert_msg(chain.ok() && chain.value().nodes().size() == kLevels, "a chain of accounts, without recursion");
    ck_assert_msg(chain.value().nodes().back().depth == kLevels - 1, "each a level deeper");
    list.push_back({.id = kLevels + 1, .account = "root"});
    list[0].parent_id = kLevels;
    ck_assert_msg(!Tree::build(list).ok(), "BT-06: a circle of as many");
}
END_TEST

}  // namespace

int main() {
    Suite* suite = suite_create("tree");
    TCase* tcase = tcase_create("tree");
    tcase_add_loop_test(tcase, trees, 0, std::ssize(kTrees));
    tcase_add_loop_test(tcase, refused, 0, std::ssize(kRefused));
    tcase_add_test(tcase, entitlement);
    tcase_add_test(tcase, lookups);
    tcase_add_test(tcase, numbering);
    tcase_add_test(tcase, deep);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
