// SPDX-License-Identifier: GPL-2.0-or-later
//
// Usage from before this software ran, or from while its state was lost (rule
// U10): what has to be fetched from the accounting database, part by part, and how
// its rows become runs of the ledger. Instants in UTC seconds, given by the
// caller. No I/O; not thread-safe.
#ifndef SLURM_BUDGET_COMMON_REBUILD_H
#define SLURM_BUDGET_COMMON_REBUILD_H

#include <cstddef>
#include <optional>
#include <string_view>

#include "accounting_rows.h"
#include "ledger.h"
#include "parameters.h"
#include "result.h"
#include "tree.h"
#include "units.h"

namespace budget {

// What is not known and has to be fetched.
class Gap {
   public:
    struct Part {
        Seconds from = 0;
        Seconds to = 0;
        bool operator==(const Part&) const = default;
    };

    // How much is asked for at once, how long after a failure to ask again, and when to look a second
    // time: what slurmctld has not yet told its database is missing from the first answer.
    static constexpr Seconds kPart = kDay;
    static constexpr Seconds kRetry = 30;
    static constexpr Seconds kSecondLook = 2 * kMinute;

    // Everything from here on is wanted. An earlier start stays.
    void open(Seconds from);

    // What to fetch now, if anything.
    std::optional<Part> next(Seconds now) const;

    // That part is known. True if that was the last one, for the first time.
    bool filled(Part part);
    void failed(Seconds now) { wait_until_ = now + kRetry; }

    // From where on something is still wanted, a second look included; 0: nothing is. To be saved.
    Seconds from() const { return first_ != 0 ? first_ : again_; }
    bool is_open() const { return first_ != 0; }

   private:
    Seconds first_ = 0;       // start of what is not known; 0: nothing is missing
    Seconds begin_ = 0;       // where that began
    Seconds again_ = 0;       // start of what is to be looked at again; 0: nothing is
    Seconds wait_until_ = 0;  // not to be asked before
};

// How the rows went.
struct PastCounts {
    RowCounts rows;
    std::size_t runs = 0;           // charged, or free, in the window
    std::size_t changes = 0;        // of these new, or other than known
    std::size_t untagged = 0;       // of the new ones: charged by what their account has today
    std::size_t systems = 0;        // of root or SlurmUser
    std::optional<Seconds> oldest;  // the first start in the rows
};

// Takes up the rows of an answer of sacct (U10): class and contract from the tag, else by whether the leaf has
// a budget (B4); nothing for jobs of root and slurm_user (C8). Rows without an end are left to the
// controller's own list of jobs.
Result<PastCounts> take_up_past(Ledger& ledger, const Tree& tree, std::string_view text, char delimiter,
                                std::string_view slurm_user, RowRates& rates);

}  // namespace budget

#endif
