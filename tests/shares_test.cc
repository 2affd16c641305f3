// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/shares: what sshare shows agrees with the claims that order
// the queue. Each row says why.
#include "common/shares.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/check_main.h"

namespace {

using namespace budget;

// root{p1(60){a(70){ann, abe: parent}, b(30){bo(1), by(3)}}, p2(40){c}, z(0)}
const std::vector<Association> kAssociations = {
    {.id = 1, .parent_id = 0, .account = "root"},
    {.id = 2, .parent_id = 1, .account = "p1", .shares = 60},
    {.id = 3, .parent_id = 2, .account = "a", .shares = 70},
    {.id = 4, .parent_id = 3, .account = "a", .user = "ann", .shares = kSharesParent},
    {.id = 5, .parent_id = 3, .account = "a", .user = "abe", .shares = kSharesParent},
    {.id = 6, .parent_id = 2, .account = "b", .shares = 30},
    {.id = 7, .parent_id = 6, .account = "b", .user = "bo", .shares = 1},
    {.id = 8, .parent_id = 6, .account = "b", .user = "by", .shares = 3},
    {.id = 9, .parent_id = 1, .account = "p2", .shares = 40},
    {.id = 10, .parent_id = 9, .account = "c", .shares = 1},
    {.id = 11, .parent_id = 10, .account = "c", .user = "cy", .shares = kSharesParent},
    {.id = 12, .parent_id = 1, .account = "z", .shares = 0},
    {.id = 13, .parent_id = 12, .account = "z", .user = "zoe", .shares = kSharesParent},
};

struct Used {
    AssocId assoc;
    std::int64_t gpu_seconds;
};

class Shown {
   public:
    explicit Shown(const std::vector<Used>& used, const std::vector<Association>& associations = kAssociations) {
        const Tree tree = Tree::build(associations).value();
        std::vector<NodeUsage> usage(tree.nodes().size());
        std::vector<Wide> own(associations.size(), 0);
        for (const Used& row : used) {
            const Wide amount = static_cast<Wide>(row.gpu_seconds) * kGpu;
            for (std::size_t i = 0; i < associations.size(); ++i)
                if (associations[i].id == row.assoc) own[i] += amount;
            for (NodeIndex n = tree.find(row.assoc).value();; n = tree.node(n).parent) {
                usage[n].allocated.box += amount;
                if (n == kRoot) break;
            }
        }
        const Claims claims(tree, usage, RunClass::kAllocated, Parameters(), 8 * kGpu);
        rows_ = shares(associations, tree, own, claims);
    }
    const Share& of(AssocId id) const {
        for (const Share& share : rows_)
            if (share.assoc == id) return share;
        ck_abort_msg("association %u is not shown", id);
        return rows_.front();
    }

   private:
    std::vector<Share> rows_;
};

void same(const char* why, long double got, long double wanted) {
    ck_assert_msg(std::fabs(static_cast<double>(got - wanted)) < 1e-9, "%s: got %f, wanted %f", why,
                  static_cast<double>(got), static_cast<double>(wanted));
}

START_TEST(usage_adds_up) {
    const Shown shown({{4, 100}, {5, 50}, {7, 30}, {11, 20}, {13, 5}});
    same("a user's own", shown.of(4).gpu_seconds, 100);
    same("an account is the sum of its users", shown.of(3).gpu_seconds, 150);
    same("a programme is the sum of its accounts", shown.of(2).gpu_seconds, 180);
    same("the root is the sum of all", shown.of(1).gpu_seconds, 205);
    same("part of the parent", shown.of(4).of_parent, 100.0L / 150);
    same("part of the cluster", shown.of(9).of_cluster, 20.0L / 205);
}
END_TEST

START_TEST(level_fs_is_entitled_over_used) {
    const Shown shown({{4, 210}, {7, 90}, {11, 100}});
    // p1: 300 of 400 used, 60 of 100 entitled; p2: 100 of 400, 40 of 100.
    same("B2: an overused programme is below 1", shown.of(2).level_fs, 0.6L / 0.75L);
    same("B2: an underused one above 1", shown.of(9).level_fs, 0.4L / 0.25L);
    same("exactly at its share", shown.of(3).level_fs, 1);
    ck_assert_msg(std::isinf(static_cast<double>(shown.of(8).level_fs)), "an unused leaf is infinitely unused");
    same("B4: no weight, no claim", shown.of(12).level_fs, 0);
}
END_TEST

START_TEST(fair_share_follows_the_claims) {
    const Shown shown({{4, 210}, {7, 90}, {11, 100}});
    const double c = shown.of(11).fs_factor;
    const double a = shown.of(4).fs_factor;
    const double by = shown.of(8).fs_factor;
    const double bo = shown.of(7).fs_factor;
    const double z = shown.of(13).fs_factor;
    ck_assert_msg(c == 1.0, "the best claim is 1, got %f", c);
    ck_assert_msg(c > by && by > bo && bo > z, "by claims, depth first: %f %f %f %f", c, by, bo, z);
    ck_assert_msg(z > 0, "RK-03: the last is above 0");
    ck_assert_msg(a == shown.of(5).fs_factor, "B1: users who share a leaf share its factor");
}
END_TEST

START_TEST(equal_claims_share_a_factor) {
    const Shown shown({});  // RK-07: nobody has used anything
    ck_assert(shown.of(4).fs_factor == 1.0);
    ck_assert(shown.of(7).fs_factor == 1.0);
    ck_assert(shown.of(8).fs_factor == 1.0);
    ck_assert(shown.of(11).fs_factor == 1.0);
    ck_assert_msg(shown.of(13).fs_factor < 1.0, "RK-03: weight 0 and no usage is not a claim");
    same("no usage, no part", shown.of(2).of_cluster, 0);
}
END_TEST

START_TEST(user_root_has_no_claim) {
    const Shown shown({{20, 60}, {22, 40}}, {
                                                {.id = 19, .parent_id = 0, .account = "root"},
                                                {.id = 20, .parent_id = 19, .account = "root", .user = "root"},
                                                {.id = 21, .parent_id = 19, .account = "a"},
                                                {.id = 22, .parent_id = 21, .account = "a", .user = "root"},
                                            });
    same("B2: user root under the root account has no weight", shown.of(20).norm_shares, 0);
    same("B2: nor a level", shown.of(20).level_fs, 0);
    same("B2: nor a rank", shown.of(20).fs_factor, 0);
    same("but what it used is shown", shown.of(20).gpu_seconds, 60);
    same("and is part of the cluster's", shown.of(20).of_cluster, 0.6L);
    same("the root account keeps its own", shown.of(19).norm_shares, 1);
    same("and its level", shown.of(19).level_fs, 1);
    same("B2: in an account of its own user root is as any other", shown.of(22).norm_shares, 1);
    same("with a rank", shown.of(22).fs_factor, 1);

    const Shown folded({}, {
                               {.id = 1, .parent_id = 0, .account = "root"},
                               {.id = 2, .parent_id = 1, .account = "root", .user = "root", .shares = kSharesParent},
                               {.id = 3, .parent_id = 1, .account = "root", .user = "ann", .shares = kSharesParent},
                           });
    same("B2: nor with fairshare=parent", folded.of(2).norm_shares, 0);
    same("nor a rank with it", folded.of(2).fs_factor, 0);
    same("B3: another user folded into the root account has the whole", folded.of(3).norm_shares, 1);
    same("B3: and its rank", folded.of(3).fs_factor, 1);
}
END_TEST

Suite* shares_suite() {
    Suite* suite = suite_create("shares");
    TCase* tests = tcase_create("shares");
    tcase_add_test(tests, usage_adds_up);
    tcase_add_test(tests, level_fs_is_entitled_over_used);
    tcase_add_test(tests, fair_share_follows_the_claims);
    tcase_add_test(tests, equal_claims_share_a_factor);
    tcase_add_test(tests, user_root_has_no_claim);
    suite_add_tcase(suite, tests);
    return suite;
}

}  // namespace

int main() {
    return run_suite(shares_suite());
}
