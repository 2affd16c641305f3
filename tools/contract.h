// SPDX-License-Identifier: GPL-2.0-or-later
//
// `sbudget contract`: what a job's contract is, until when it protects, why the job
// was stopped last, and how its minimum is changed (C6).
#ifndef SLURM_BUDGET_TOOLS_CONTRACT_H
#define SLURM_BUDGET_TOOLS_CONTRACT_H

#include <optional>
#include <string>

namespace budget {

// Prints, returns the exit code: 0 done, 1 refused, 2 wrong usage, 3 no controller, 4 no such job.
int run_contract(const std::string& job, const std::optional<std::string>& minimum, bool json);

}  // namespace budget

#endif
