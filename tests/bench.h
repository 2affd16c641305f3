// SPDX-License-Identifier: GPL-2.0-or-later
//
// The figures of `make bench`: each function measures with a fixed seed and
// prints lines of `name value unit`. One core; nothing else should be running.
#ifndef SLURM_BUDGET_TESTS_BENCH_H
#define SLURM_BUDGET_TESTS_BENCH_H

void bench_charge();      // charge_1m_runs, sum_10k_leaves
void bench_rows();        // read_1m_rows
void bench_order();       // order_100k_jobs_10k_leaves, order_100k_memory
void bench_preemption();  // plan_10k_blocked, plan_1k_shapes
void bench_preempt();     // preempt_pass_8k_runs, preemptable_running, _not_running, each also cold

#endif
