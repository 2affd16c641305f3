// SPDX-License-Identifier: GPL-2.0-or-later
//
// The engine's state on disk, StateSaveLocation/slurm_budget_state: the log of
// runs, whom they are charged to, when jobs were first eligible and the last good
// parameters. docs/state_format.md has the format. Written anew each time: new
// file, flush, rename, flush the folder; so there is always a whole one. Instants
// in UTC seconds. One StateFile per process; not thread-safe. Nothing of Slurm.
#ifndef SLURM_BUDGET_PLUGINS_LEDGER_FILE_H
#define SLURM_BUDGET_PLUGINS_LEDGER_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/ledger.h"
#include "common/result.h"
#include "common/units.h"

namespace budget {

// What outlives the process.
struct State {
    LedgerImage ledger;                                             // its now is the instant of saving
    std::vector<std::pair<std::uint32_t, Seconds>> first_eligible;  // job id, since (Q3)
    std::string parameters;                                         // as to_string(Parameters) gives them
    Seconds incomplete_before = 0;  // usage before this instant is not known to be complete; 0: it is
    Seconds gap_from = 0;           // history from here on has still to be fetched (U10); 0: nothing has
    bool operator==(const State&) const = default;
};

// Why bytes are no state.
struct StateFault {
    enum class Kind : std::uint8_t { kDamaged, kNewer } kind = Kind::kDamaged;
    std::string message;        // one line without the file's name
    std::uint32_t version = 0;  // kNewer: that of the file
};

// What a ledger could not take up, or nothing: the nobody of owners is not the first, an owner that does not exist,
// parents in a circle, a key that occurs twice, runs not by key, an end before the start, steps out of order,
// anything beyond the limits of units.h. One line, which names the owner or the run. decode() and
// StateFile::save() ask it.
std::string fault_of(const State& state);

// The bytes of a state, and back. decode() takes any bytes whatever: a fault, never a crash, and memory
// in proportion to their number. What newer code of the same version has added is passed over where it is marked so.
std::string encode(const State& state);
std::variant<State, StateFault> decode(std::string_view bytes);

// The system calls that a file is written with; a test double fails the n-th of them.
class FileCalls {
   public:
    virtual ~FileCalls() = default;
    virtual int open(const char* path, int flags, unsigned mode);
    virtual long write(int fd, const void* data, std::size_t size);
    virtual int fsync(int fd);
    virtual int close(int fd);
    virtual int rename(const char* from, const char* to);
    virtual int unlink(const char* path);
};

// Which of the files that have had this name. A rename keeps it.
struct FileIdentity {
    std::uint64_t inode = 0;
    std::int64_t written = 0;  // the last time, nanoseconds
    bool operator==(const FileIdentity&) const = default;
};

// The file in its folder.
class StateFile {
   public:
    explicit StateFile(FileCalls& calls) : calls_(calls) {}

    enum class Found : std::uint8_t { kRead, kNone, kUnusable };
    struct Loaded {
        Found found = Found::kNone;
        State state;
        std::string message;  // kUnusable: one line, what was wrong and under which name it is kept
    };

    // Reads folder/slurm_budget_state. One that cannot be used is renamed, so that it is kept and never
    // overwritten: to slurm_budget_state.damaged, or slurm_budget_state.version-N if it is newer than
    // this code; an older one of that name is replaced. Where the rename fails, the message says so, and
    // the next save() tries it again. A left-over slurm_budget_state.new is of no interest.
    Loaded load(const std::string& folder);

    // Replaces the file. On failure the old file stays as it was, and the error names path and call; if only the
    // folder cannot be flushed, the new one is in its place but may not outlive a loss of power. Fails as
    // well, without touching the file, if it is not the one that this object read or wrote last, or there was none:
    // then another slurmctld has taken over and writes it. One that has vanished is written again.
    Result<std::size_t> save(const std::string& folder, const State& state);  // its size in bytes

   private:
    std::string keep(const std::string& path);
    std::string taken_over(const std::string& path) const;
    std::string write_new(const std::string& path, std::string_view bytes);
    std::string put_in_place(const std::string& path, const std::string& new_path);
    std::string flush_folder(const std::string& folder);

    FileCalls& calls_;
    FileIdentity known_;   // of the file read or written last; zeros: there was none
    std::string keep_as_;  // the file known cannot be used, and has still to be renamed to this; mostly empty
};

}  // namespace budget

#endif
