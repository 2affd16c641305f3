// SPDX-License-Identifier: GPL-2.0-or-later
//
// Durations as people write them: Slurm's time forms, and a number with one of
// the suffixes s, m, h and d. Whole seconds. Depends on no locale.
// Pure functions; any thread.
#ifndef SLURM_BUDGET_COMMON_TIME_TEXT_H
#define SLURM_BUDGET_COMMON_TIME_TEXT_H

#include <string>
#include <string_view>

#include "result.h"
#include "units.h"

namespace budget {

// The longest duration that is understood, about a hundred years.
inline constexpr Seconds kLongestDuration = 36500 * kDay;

// minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes, days-hours:minutes:seconds, or a number with s, m, h or d.
// As in Slurm, a field may exceed what the next one holds (90:00 is an hour and
// a half). 0 is a duration; a sign, a fraction, a blank, "UNLIMITED" and
// anything above kLongestDuration are not. The error names the text.
Result<Seconds> parse_duration(std::string_view text);

// True of a plain number, which Slurm takes for minutes.
bool is_bare_number(std::string_view text);

// [days-]hours:minutes:seconds, as Slurm prints it; parse_duration gives the
// same value back. A negative duration has a leading minus.
std::string format_duration(Seconds duration);

// Text of others for use in a message of ours: control characters and bytes
// beyond ASCII replaced, and cut where it is long.
std::string printable(std::string_view text);

}  // namespace budget

#endif
