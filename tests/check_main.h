// SPDX-License-Identifier: GPL-2.0-or-later
//
// What every Check program of ours ends with: run one suite, let Check report,
// and close with the line `N passed, N failed` that contrib/check adds up.
// A suite that tests nothing has failed.
#ifndef SLURM_BUDGET_TESTS_CHECK_MAIN_H
#define SLURM_BUDGET_TESTS_CHECK_MAIN_H

#include <check.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

// How often a test with random input goes round: `whole` times, and a tenth of that under a tool that makes all of it
// many times slower (valgrind, sanitizers) and looks at how memory is used, not at results.
inline int rounds(int whole) {
    static const bool slow = std::getenv("SLURM_BUDGET_SLOW_TOOL") != nullptr;
    return slow ? std::max(whole / 10, 1) : whole;
}

// Runs the suite and frees it. The exit status for main(). Obeys Check's own
// environment (CK_FORK, CK_VERBOSITY, CK_TIMEOUT_MULTIPLIER).
inline int run_suite(Suite* suite) {
    SRunner* runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int run = srunner_ntests_run(runner);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    std::printf("%d passed, %d failed\n", run - failed, failed);
    return run > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
