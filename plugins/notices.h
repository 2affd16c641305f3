// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who has asked for a signal of its own before it is stopped (rule P7): it gets that as soon as a
// pass picks it, and whom it was picked for waits until the notice is over.
// Instants are UTC seconds. Used by the engine under its lock.
#ifndef SLURM_BUDGET_PLUGINS_NOTICES_H
#define SLURM_BUDGET_PLUGINS_NOTICES_H

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/ledger.h"
#include "common/units.h"
#include "plugins/verdicts.h"

namespace budget {

class Notices {
   public:
    struct News {
        std::vector<RunKey> signals = {};       // whose signal is to be sent now
        std::optional<Seconds> next_look = {};  // when the first of the notices ends that somebody waits for
        std::vector<std::string> lines = {};    // for the log: a notice begins
    };
    // Marks the picks that have to wait. A signal that Slurm itself has sent was notice enough. Of a pick that is
    // left to Slurm, the first victims count that have together what the job asks for.
    News hold_back(std::vector<Pick>& picks, Seconds now);

    // When the notice of a run ends or has ended; nothing if it was given none.
    std::optional<Seconds> end(RunKey run) const;

    // Forgets the runs that are over: is_on(RunKey).
    template <typename IsOn>
    void forget(IsOn is_on) {
        std::erase_if(given_, [&](const Given& each) { return !is_on(each.run); });
    }

   private:
    struct Given {
        RunKey run = {};
        Seconds end = 0;
    };
    std::optional<Seconds> give(const PickedVictim& victim, const Pick& pick, Seconds now, News& news);

    std::vector<Given> given_;  // few: runs that are on, past their contract, with a signal of their own
};

}  // namespace budget

#endif
