// SPDX-License-Identifier: GPL-2.0-or-later
//
// sbudget: the command for people, a subcommand a file. Here are only the options;
// CLI11 reads them. Wrong usage is exit code 2.
#include <slurm/slurm.h>
#include <stdio.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <optional>
#include <string>

#include "contract.h"
#include "doctor.h"

namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done (doctor: nothing is wrong), 1 refused (doctor: something is\n"
    "wrong), 2 wrong usage, 3 slurmctld cannot be reached, 4 no such job.";

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
}

int run(int argc, char** argv) {
    CLI::App app{"sbudget - GPU budgets and contracts of a Slurm cluster", "sbudget"};
    app.require_subcommand(1);
    app.footer(kExitCodes);
    app.set_version_flag("-V,--version", std::string("sbudget ") + BUDGET_VERSION);

    std::string job;
    std::optional<std::string> minimum;
    bool json = false;
    CLI::App* contract = app.add_subcommand("contract", "show a job's contract, or change its minimum runtime");
    contract->add_option("JOB", job, "5, 5_3, 5_[1-3,7] (tasks of an array) or 5+1 (a part of a job)")->required();
    contract
        ->add_option("--min-runtime", minimum,
                     "the new minimum: 2:00:00, 90m, a plain number is minutes. Of a pending job\n"
                     "any that the site allows; of a running one a shorter one, or by an operator.")
        ->type_name("TIME");
    contract->add_flag("--json", json, "for programs");

    CLI::App* doctor = app.add_subcommand("doctor", "what is missing or wrong in slurm.conf for budgets and contracts");
    doctor->add_flag("--json", json, "for programs");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return usage_error(app, error);
    }
    slurm_init(nullptr);
    return contract->parsed() ? budget::run_contract(job, minimum, json) : budget::run_doctor(json);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        fprintf(stderr, "sbudget: %s\n", error.what());
        return 1;
    }
}
