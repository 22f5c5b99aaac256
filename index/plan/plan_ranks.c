/* How many workers and servers a plan has, as texts for people. */
#include <inttypes.h>
#include <stdio.h>

#include "index/plan/drps_plan.h"

static const char *plural(uint32_t n)
{
    return n == 1 ? "" : "s";
}

const char *drps_plan_ranks_text(const struct drps_plan_ranks *ranks,
                                 char text[DRPS_PLAN_RANKS_TEXT_BYTES])
{
    const size_t room = DRPS_PLAN_RANKS_TEXT_BYTES;
    const uint32_t w = ranks->workers, s = ranks->servers;
    if (drps_ranks_are_alike(ranks))
        (void)snprintf(text, room, "%" PRIu32 " worker%s", w, plural(w));
    else
        (void)snprintf(text, room,
                       "%" PRIu32 " worker%s and %" PRIu32 " server%s on %" PRIu32 " ranks", w,
                       plural(w), s, plural(s), ranks->count);
    return text;
}
