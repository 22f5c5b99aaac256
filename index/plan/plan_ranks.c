/* What a plan says of several ranks: how many there are, as text for people, and what they move. */
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

void drps_plan_handed_add(struct drps_plan_handed *sum, const struct drps_plan_handed *part)
{
    if (part->slots > sum->slots) sum->slots = part->slots;
    sum->states = part->states;
    sum->used += part->used;
    sum->taken += part->taken;
    sum->returned += part->returned;
    sum->handed += part->handed;
    sum->arrived += part->arrived;
    sum->away += part->away;
    sum->given += part->given;
    sum->regained += part->regained;
}

uint64_t drps_plan_moved_values(const struct drps_plan_info *info, int hands_on, uint64_t states)
{
    const struct drps_plan_handed *h = &info->ranks.handed;
    const uint64_t plain = 2 * info->dim * info->ranks.pulled_rows;
    const uint64_t rows = h->taken + h->returned + h->handed;
    return hands_on ? plain - 2 * info->dim * h->used + rows * info->dim * (1 + states) : plain;
}

const char *drps_plan_states_name(uint64_t states)
{
    static const char *const names[] = {"sgd", "adagrad", "ftrl", "adam"};
    return names[states < 3 ? states : 3];
}
