// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rows of Slurm's accounting database as `sacct -P` prints them: a header line
// that names the columns, in any order, then a row a line. Rows of steps, rows
// that are cut off and rows that make no sense are passed over and counted, never
// fatal. Instants in UTC seconds (SLURM_TIME_FORMAT=%s). Pure functions.
#ifndef SLURM_BUDGET_COMMON_ACCOUNTING_ROWS_H
#define SLURM_BUDGET_COMMON_ACCOUNTING_ROWS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ledger.h"
#include "parameters.h"
#include "result.h"
#include "run_tag.h"
#include "tree.h"
#include "units.h"

namespace budget {

// A count of a GPU-like TRES of a row: "gres/gpu:a100=8".
struct TresCount {
    std::string_view name;  // "gpu", "shard", "mps"
    std::string_view type;  // "a100", "" if untyped
    std::uint64_t count = 0;
};

// One row: what the database calls a job, a start of one, or a part of one
// between two resizes. Texts point into the text that was read.
struct AccountingRow {
    std::uint32_t job_id = 0;  // JobIDRaw: the own id of an array task or of a part of a heterogeneous job
    std::string_view account;
    std::string_view user;
    std::string_view partition;
    AssocId assoc = 0;
    std::optional<Seconds> start;  // nothing: never started; of a part behind a resize its instant
    std::optional<Seconds> end;    // nothing: not ended, as far as the database knows
    Seconds suspended = 0;
    std::optional<std::uint32_t> uid = {};           // of the job's user; nothing: not told
    std::optional<std::uint32_t> cancelled_by = {};  // the uid of "CANCELLED by UID"
    bool behind_resize = false;                      // its start is the instant of a resize
    std::string_view state;                          // first word: COMPLETED, CANCELLED, NODE_FAIL, RESIZING, ...
    std::vector<TresCount> gpus;                     // of AllocTRES: gpu, shard and mps, none of them 0
    std::string_view admin_comment;                  // as a whole; the tag is at its front (run_tag.h)
    std::optional<RunTag> tag = {};                  // at the front of the comment
};

// How the rows went. Each is visited, or counted as one of the first four.
struct RowCounts {
    std::size_t rows = 0;          // all of them, without the header
    std::size_t steps = 0;         // JobID or JobIDRaw with a dot
    std::size_t unreadable = 0;    // cut off, a field that is no number, an end before the start
    std::size_t not_started = 0;   // no start, or one that is Unknown or None
    std::size_t without_gpus = 0;  // in AllocTRES, nor a weight in the tag
    std::size_t no_end = 0;        // of those visited: started and not ended
    std::size_t untagged = 0;      // of those visited: without a readable tag
};

// What to ask sacct for, for --format: the columns that read_accounting_rows knows.
// AdminComment is last: it may hold the delimiter or line ends.
extern const std::string_view kAccountingColumns;

// Calls visit(row) for each row of a job that started and holds GPUs, in the order of the text; rows
// without an end among them. Fails, naming the column, if one that is needed is missing in the header:
// JobIDRaw (or JobID), Start, End, State and AllocTRES. A column not known is passed over. delimiter:
// what separates the columns. An empty text, without a header, is an error as well.
//
// If AdminComment is the last column, it has all that follows on the line, and further lines with too few
// delimiters to be a row; but such a line that begins with a job id, or that ends the text
// without a line end, is a row that was cut off. Without JobIDRaw the tasks of arrays (12_3) and the parts of
// heterogeneous jobs (12+1) are unreadable: their JobID does not tell their own id.
Result<RowCounts> read_accounting_rows(std::string_view text, char delimiter,
                                       const std::function<void(const AccountingRow&)>& visit);

// U1: the rate of a row, from its tag if that has one, else from its GPUs.
class RowRates {
   public:
    RowRates(const Parameters& parameters, GpuParts parts) : parameters_(parameters), parts_(parts) {}
    Rate rate(const AccountingRow& row, const std::optional<RunTag>& tag);

   private:
    Parameters parameters_;
    GpuParts parts_;
    std::unordered_map<std::string, GpuRates> by_kinds_;  // of the combinations of kinds met so far
    std::string kinds_;                                   // of the row at hand, to find it there
    std::vector<std::uint64_t> counts_;                   // of the row at hand
};

// U7, as far as the row tells: the cluster ended this run inside its contract (NODE_FAIL, BOOT_FAIL or
// LAUNCH_FAILED), or somebody other than its user did: an operator, or a coordinator, which the database does not tell
// apart. Of a run that was resized the row is the last part alone.
bool is_refunded(const AccountingRow& row, Seconds contract);

// U11: did the run end by its script, its own user, or its time limit? Not of the last part of a run that was
// resized, whose contract began earlier.
bool is_by_itself(const AccountingRow& row);

}  // namespace budget

#endif
