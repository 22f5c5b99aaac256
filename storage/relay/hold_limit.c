/* Choosing hold limits; drps_hold_limit.h has the idea. It needs counts alone, no rows. */
#include "storage/relay/drps_hold_limit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    COUNTS_MOST = 1 << 20,
    LIMIT_LEAST = 16,
};

/* The longest use distance that is counted by itself. */
static uint32_t most_distance(uint32_t windows, uint64_t memory_bytes)
{
    const uint64_t fit = memory_bytes / sizeof(uint32_t) / windows;
    uint32_t most = COUNTS_MOST / windows;
    if (most > fit) most = (uint32_t)fit;
    if (most < LIMIT_LEAST) most = LIMIT_LEAST;
    return most < windows ? most : windows;
}

int drps_hold_limit_init(struct drps_hold_limit *hold, uint32_t windows, uint64_t memory_bytes)
{
    *hold =
        (struct drps_hold_limit){.windows = windows, .most = most_distance(windows, memory_bytes)};
    hold->counts = calloc(windows, (hold->most + 1) * sizeof(*hold->counts));
    hold->room = drps_array_new(windows, sizeof(*hold->room));
    return hold->counts && hold->room ? 0 : -ENOMEM;
}

void drps_hold_limit_destroy(struct drps_hold_limit *hold)
{
    free(hold->counts);
    free(hold->room);
    *hold = (struct drps_hold_limit){0};
}

/* Take frames for n rows from window w until `distance` windows later, if there are any: the rows
 * need frames of their own as long as neither of the two open windows has them. */
static int take_room(struct drps_hold_limit *hold, uint32_t w, uint32_t distance, uint64_t n)
{
    for (uint32_t i = 1; n && i + 2 <= distance; i++)
        if (hold->room[(w + i) % hold->windows] < n) return 0;
    for (uint32_t i = 1; n && i + 2 <= distance; i++)
        hold->room[(w + i) % hold->windows] -= n;
    return 1;
}

uint64_t drps_hold_limit_hold(struct drps_hold_limit *hold, uint32_t *limits_out)
{
    uint64_t held = 0;
    for (uint32_t w = 0; w < hold->windows; w++)
        limits_out[w] = 1;
    for (uint32_t distance = 2; distance <= hold->most; distance++)
        for (uint32_t w = 0; w < hold->windows; w++) {
            const uint32_t n = *drps_hold_limit_count(hold, w, distance);
            if (limits_out[w] + 1 != distance || !take_room(hold, w, distance, n)) continue;
            limits_out[w] = distance;
            held += n;
        }
    return held;
}
