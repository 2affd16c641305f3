// SPDX-License-Identifier: GPL-2.0-or-later
//
// What submissions and updates are judged by (rules C1 to C9): the parameters in
// force and which associations have a budget. Published anew when either changes, so
// that whoever submits or updates a job, under locks of Slurm, never waits for a pass.
// Questions may come from any thread, news from one at a time (under the engine's lock).
#ifndef SLURM_BUDGET_PLUGINS_TERMS_H
#define SLURM_BUDGET_PLUGINS_TERMS_H

#include <optional>
#include <span>
#include <vector>

#include "common/contract.h"
#include "common/parameters.h"
#include "common/snapshot.h"
#include "common/tree.h"
#include "plugins/engine.h"

namespace budget {

class Terms {
   public:
    static Terms& instance();

    void set_parameters(const Parameters& parameters);
    void set_tree(std::span<const Association> associations, const Tree& tree);

    // Fills in all of terms. What is to be freed is so by budget_terms_free. Fails (terms.failed) where there are no
    // parameters yet: then priority/budget is not loaded.
    void settle(const budget_submission& submission, budget_terms& terms) const;

   private:
    struct Leaf {
        std::uint32_t assoc_id = 0;
        bool has_budget = false;
    };
    struct Basis {
        Parameters parameters;
        std::vector<Leaf> leaves;  // ascending
        std::optional<bool> has_budget(std::uint32_t assoc_id) const;
    };
    void publish();

    bool has_parameters_ = false;
    Basis basis_;
    Published<Basis> published_;
};

}  // namespace budget

#endif
