// SPDX-License-Identifier: GPL-2.0-or-later
//
// Notices before a stop; see notices.h.
#include "plugins/notices.h"

namespace budget {
namespace {

// `now` is a second that has begun, so that a notice ends in the second after the last one of its own.
constexpr Seconds kRounded = 1;

}  // namespace

std::optional<Seconds> Notices::end(RunKey run) const {
    const auto at = std::find_if(given_.begin(), given_.end(), [&](const Given& each) { return each.run == run; });
    return at != given_.end() ? std::optional<Seconds>(at->end) : std::nullopt;
}

std::optional<Seconds> Notices::give(const PickedVictim& victim, const Pick& pick, Seconds now, News& news) {
    if (victim.notice <= 0) return {};
    const Seconds whole = now + victim.notice + kRounded;
    auto at = std::find_if(given_.begin(), given_.end(), [&](const Given& each) { return each.run == victim.key; });
    if (at == given_.end()) {
        if (victim.signalled) return {};
        at = given_.insert(at, {.run = victim.key, .end = whole});
        news.lines.push_back("signal to JobId=" + std::to_string(victim.key.job_id) +
                             " restart=" + std::to_string(victim.key.restart_count) +
                             " before it is stopped for JobId=" + std::to_string(pick.job_id) +
                             ": notice=" + std::to_string(victim.notice));
    }
    at->end = std::min(at->end, whole);  // the clock may have been put back
    if (!victim.signalled && std::find(news.signals.begin(), news.signals.end(), victim.key) == news.signals.end())
        news.signals.push_back(victim.key);
    return at->end;
}

Notices::News Notices::hold_back(std::vector<Pick>& picks, Seconds now) {
    News news;
    for (Pick& pick : picks) {
        Seconds until = now;
        Rate named = 0;
        for (const PickedVictim& victim : pick.victims) {
            if (!pick.ours && named >= pick.rate) break;
            named += victim.rate;
            until = std::max(until, give(victim, pick, now, news).value_or(now));
        }
        pick.held_back = until > now;
        if (pick.held_back) news.next_look = std::min(news.next_look.value_or(until), until);
    }
    return news;
}

}  // namespace budget
