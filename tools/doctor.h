// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is missing or wrong in a controller's configuration for budgets and contracts,
// finding by finding, each with the line to write; and how people and programs
// are shown it. examine() reads files that the configuration names, nothing else.
#ifndef SLURM_BUDGET_TOOLS_DOCTOR_H
#define SLURM_BUDGET_TOOLS_DOCTOR_H

#include <string>
#include <vector>

#include "controller.h"

namespace budget {

enum class Severity : std::uint8_t { kWrong, kAdvice, kGood };

struct Finding {
    Severity severity = Severity::kGood;
    std::string subject;       // the key of slurm.conf, or what it is about
    std::string what;          // one sentence
    std::string line = {};     // to write, or the command to run; empty if nothing is to be done
    std::string shorter = {};  // the same with ... for what the line has already; empty: line is short
};

std::vector<Finding> examine(const Configuration& configuration);

// The subcommand: prints, returns the exit code (0 nothing is wrong, 1 something is, 3 no controller).
int run_doctor(bool json);

}  // namespace budget

#endif
