// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tests of common/fair_tree: rows by hand, each with the rule of Slurm's Fair
// Tree that it shows, as the code of 22.05 has it. What is claimed of the code
// beyond its description was found by running it on random trees.
#include "common/fair_tree.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "common/tree.h"
#include "tests/check_main.h"

namespace {

using namespace budget;

// "ID PARENT SHARES USAGE, ...": users have ids from 100; shares may be "parent".
std::vector<FairTreeRow> rows_of(const std::string& text) {
    std::vector<FairTreeRow> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line, ',');) {
        std::istringstream words(line);
        FairTreeRow row;
        std::string shares;
        words >> row.id >> row.parent_id >> shares >> row.usage;
        row.shares = shares == "parent" ? kSharesParent : static_cast<std::uint32_t>(std::stoul(shares));
        row.is_user = row.id >= 100;
        row.fs_factor = -1;
        rows.push_back(row);
    }
    return rows;
}

// "100=1 101=0.5": users by id.
std::string factors(const std::vector<FairTreeRow>& rows) {
    std::map<std::uint32_t, double> by_id;
    for (const FairTreeRow& row : rows)
        if (row.is_user) by_id[row.id] = row.fs_factor;
    std::string text;
    for (const auto& [id, factor] : by_id) {
        char item[64];
        std::snprintf(item, sizeof item, "%s%u=%g", text.empty() ? "" : " ", id, factor);
        text += item;
    }
    return text;
}

struct Row {
    const char* why;
    const char* rows;
    const char* expected;
};

const Row kRows[] = {
    {"the user who used less of an equal share first", "1 0 1 30, 100 1 1 20, 101 1 1 10", "100=0.5 101=1"},
    {"shares weigh usage", "1 0 1 30, 100 1 4 20, 101 1 1 10", "100=1 101=0.5"},
    {"equal users share a rank, the next one's counts on", "1 0 1 40, 100 1 1 10, 101 1 1 10, 102 1 1 20, 103 1 1 0",
     "100=0.75 101=0.75 102=0.25 103=1"},
    {"without any usage all are equal", "1 0 1 0, 100 1 1 0, 101 1 7 0", "100=1 101=1"},
    {"depth first: all of a better account before the others",
     "1 0 1 100, 2 1 50 60, 3 1 50 40, 100 2 1 60, 101 2 1 0, 102 3 1 40, 103 3 1 0",
     "100=0.25 101=0.5 102=0.75 103=1"},
    {"RK-01: 10/1, 100/11, 1000/121",
     "1 0 1 133, 2 1 1000 121, 3 1 100 11, 4 1 10 1, 100 2 1 121, 101 3 1 11, 102 4 1 1",
     "100=0.333333 101=0.666667 102=1"},
    {"RK-03: no share is last, with usage or without; both are equal",
     "1 0 1 12, 100 1 0 10, 101 1 0 0, 102 1 100000 2", "100=0.666667 101=0.666667 102=1"},
    {"RK-03: no share at the whole level", "1 0 1 5, 100 1 0 5, 101 1 0 0", "100=1 101=1"},
    {"fairshare=parent users come first in their account, equal to those without usage",
     "1 0 1 30, 100 1 parent 20, 101 1 1 10, 102 1 1 0", "100=1 101=0.333333 102=1"},
    {"RK-05: children of a fairshare=parent account compete with those above, 1:1:2, over the usage above",
     "1 0 1 40, 2 1 100 40, 3 2 parent 20, 100 3 1 10, 101 3 1 11, 102 2 2 19", "100=0.666667 101=0.333333 102=1"},
    {"RK-05: through several fairshare=parent accounts",
     "1 0 1 30, 2 1 parent 20, 3 2 parent 20, 100 3 1 20, 101 1 1 10", "100=0.5 101=1"},
    {"RK-05: a fairshare=parent user below a fairshare=parent account is first there",
     "1 0 1 30, 2 1 parent 20, 100 2 parent 20, 101 1 1 10", "100=1 101=0.5"},
    {"RK-06: a user beside accounts", "1 0 1 100, 2 1 1 20, 100 1 1 50, 101 2 1 20, 102 1 1 30",
     "100=0.333333 101=1 102=0.666667"},
    {"RK-06: a user equal to an account has the rank of the account's first user",
     "1 0 1 20, 2 1 1 10, 100 1 1 10, 101 2 1 4, 102 2 1 6", "100=1 101=1 102=0.333333"},
    {"equal accounts: the second one starts with the rank that the first one ended with",
     "1 0 1 20, 2 1 1 10, 3 1 1 10, 100 2 1 4, 101 2 1 6, 102 3 1 1, 103 3 1 9", "100=1 101=0.75 102=0.75 103=0.25"},
    {"equal accounts: so their order in the list matters",
     "1 0 1 20, 3 1 1 10, 2 1 1 10, 100 2 1 4, 101 2 1 6, 102 3 1 1, 103 3 1 9", "100=0.75 101=0.25 102=1 103=0.75"},
    {"an equal account without users passes its tie on to nobody",
     "1 0 1 30, 2 1 1 10, 3 1 1 10, 4 1 1 10, 100 2 1 10, 101 4 1 10", "100=1 101=1"},
    {"RK-07: nobody but root", "1 0 1 0", ""},
    {"RK-07: an account without users", "1 0 1 0, 2 1 1 0", ""},
    {"RK-07: a single user has 1", "1 0 1 9, 2 1 1 9, 100 2 1 9", "100=1"},
    {"RK-07: no rows", "", ""},
    {"RK-13: usage beyond 64 bits", "1 0 1 3e25, 100 1 1 2e25, 101 1 1 1e25", "100=0.5 101=1"},
    {"RK-11: very little usage", "1 0 1 3e-300, 100 1 1 2e-300, 101 1 1 1e-300", "100=0.5 101=1"},
    {"who does not hang on the root keeps what they have, but counts", "1 0 1 10, 100 1 1 10, 101 9 1 5",
     "100=1 101=-1"},
    {"accounts in a circle are nobody's", "1 0 1 10, 2 3 1 1, 3 2 1 1, 100 1 1 10, 101 2 1 1", "100=1 101=-1"},
    {"nor fairshare=parent ones", "1 0 1 10, 2 3 parent 1, 3 2 parent 1, 100 1 1 10, 101 2 1 1", "100=1 101=-1"},
    {"no root at all", "2 1 1 0, 100 2 1 0", "100=-1"},
};

START_TEST(fair_tree_row) {
    const Row& row = kRows[_i];
    std::vector<FairTreeRow> rows = rows_of(row.rows);
    fair_tree(rows);
    const std::string got = factors(rows);
    ck_assert_msg(got == row.expected, "%s: expected \"%s\", got \"%s\"", row.why, row.expected, got.c_str());
    for (const FairTreeRow& account : rows)
        ck_assert_msg(account.is_user || account.fs_factor == -1, "%s: an account got a factor", row.why);
}
END_TEST

// A tree of any kind: factors lie in (0, 1], somebody has 1, and the order of
// the rows matters for equal accounts alone, of which there are none here.
START_TEST(random_trees) {
    for (int seed = 0; seed < rounds(500); ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        std::vector<FairTreeRow> rows = {{.id = 1}};
        std::vector<std::uint32_t> accounts = {1};
        for (std::uint32_t id = 2; id < 30; ++id) {
            const bool user = random() % 2 == 0;
            rows.push_back(
                {.id = id,
                 .parent_id = accounts[random() % accounts.size()],
                 .shares = random() % 9 == 0 ? kSharesParent : static_cast<std::uint32_t>(1 + random() % 1000),
                 .is_user = user,
                 .usage = user ? static_cast<long double>(1 + random() % 1'000'000) : 1});
            if (!user) accounts.push_back(id);
        }
        for (std::size_t i = rows.size(); i-- > 1;) rows[rows[i].parent_id - 1].usage += rows[i].usage;
        fair_tree(rows);
        const std::string first = factors(rows);
        double best = 0;
        for (const FairTreeRow& row : rows) {
            if (!row.is_user) continue;
            if (!(row.fs_factor > 0 && row.fs_factor <= 1))
                ck_abort_msg("tree %llu: a factor of %g", static_cast<unsigned long long>(seed), row.fs_factor);
            best = std::max(best, row.fs_factor);
        }
        ck_assert_msg(best == 1, "tree %llu: nobody is first", static_cast<unsigned long long>(seed));
        std::shuffle(rows.begin(), rows.end(), random);
        fair_tree(rows);
        ck_assert_msg(factors(rows) == first, "tree %llu depends on the order of the rows",
                      static_cast<unsigned long long>(seed));
    }
}
END_TEST

Suite* fair_tree_suite() {
    Suite* suite = suite_create("fair_tree");
    TCase* tcase = tcase_create("fair_tree");
    tcase_add_loop_test(tcase, fair_tree_row, 0, std::ssize(kRows));
    tcase_add_test(tcase, random_trees);
    suite_add_tcase(suite, tcase);
    return suite;
}

}  // namespace

int main() {
    return run_suite(fair_tree_suite());
}
