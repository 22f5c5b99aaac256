#include "storage/relay/drps_hold_limit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"

enum {
    COUNTS_MOST = 1 << 20,
    REACH_LEAST = 16,
};

/* The longest way that is counted. */
static uint32_t most_way(uint32_t windows, uint64_t memory_bytes)
{
    const uint64_t fit = memory_bytes / sizeof(uint32_t) / windows;
    uint32_t most = COUNTS_MOST / windows;
    if (most > fit) most = (uint32_t)fit;
    if (most < REACH_LEAST) most = REACH_LEAST;
    return most < windows ? most : windows;
}

int drps_hold_limit_init(struct drps_hold_limit *reach, uint32_t windows, uint64_t memory_bytes)
{
    *reach = (struct drps_hold_limit){.windows = windows, .most = most_way(windows, memory_bytes)};
    reach->counts = calloc(windows, (reach->most + 1) * sizeof(*reach->counts));
    reach->room = drps_array_new(windows, sizeof(*reach->room));
    return reach->counts && reach->room ? 0 : -ENOMEM;
}

void drps_hold_limit_destroy(struct drps_hold_limit *reach)
{
    free(reach->counts);
    free(reach->room);
    *reach = (struct drps_hold_limit){0};
}

/* Room for n rows from window w until `way` windows later: in frames of their own as long as
 * neither of the two open windows has them. Takes it, if there is. */
static int take_room(struct drps_hold_limit *reach, uint32_t w, uint32_t way, uint64_t n)
{
    for (uint32_t i = 1; n && i + 2 <= way; i++)
        if (reach->room[(w + i) % reach->windows] < n) return 0;
    for (uint32_t i = 1; n && i + 2 <= way; i++)
        reach->room[(w + i) % reach->windows] -= n;
    return 1;
}

uint64_t drps_hold_limit_hold(struct drps_hold_limit *reach, uint32_t *reach_out)
{
    uint64_t held = 0;
    for (uint32_t w = 0; w < reach->windows; w++)
        reach_out[w] = 1;
    for (uint32_t way = 2; way <= reach->most; way++)
        for (uint32_t w = 0; w < reach->windows; w++) {
            const uint32_t n = *drps_hold_limit_count(reach, w, way);
            if (reach_out[w] + 1 != way || !take_room(reach, w, way, n)) continue;
            reach_out[w] = way;
            held += n;
        }
    return held;
}
