/* To whom a rank sends its vectors in a round. */
#include "engine/cluster/sv/receivers.h"

#include "base/drps_rng.h"

enum { DRAWN = 1, BROKEN = 2 }; /* streams of random numbers */

/* Is the link between two ranks broken? */
static int is_broken(const struct receivers *r, uint64_t round, uint32_t a, uint32_t b)
{
    const uint64_t low = a < b ? a : b, high = a < b ? b : a;
    const uint64_t pairs = drps_rng_at(r->seed + BROKEN, round);
    return drps_unit_double(drps_rng_at(pairs, low * r->ranks + high)) < r->loss;
}

/* Is place `at` among Q of the P - 1 places behind a rank? Each is taken with the probability that
 * leaves Q in all (Knuth, "Seminumerical Algorithms", 3.4.2, algorithm S). */
static int is_drawn(const struct receivers *r, uint64_t seed, uint32_t at)
{
    const uint32_t places = r->ranks - 1;
    uint32_t taken = 0;
    for (uint32_t i = 0; i <= at; i++) {
        const double left = places - i, due = r->to - taken;
        const int take = drps_unit_double(drps_rng_at(seed, i)) * left < due;
        if (i == at) return take;
        taken += (uint32_t)take;
    }
    return 0;
}

int receivers_has(const struct receivers *r, uint64_t round, uint32_t from, uint32_t to)
{
    const uint32_t places = r->ranks - 1;
    const uint32_t at = (to + r->ranks - from - 1) % r->ranks; /* `from` itself is at the end */
    if (at == places) return 0;
    if (r->loss > 0 && is_broken(r, round, from, to)) return 0;
    if (r->to == places || r->rule == DRPS_MULTICAST_FIXED) return at < r->to;
    if (r->rule == DRPS_MULTICAST_ROBIN)
        return (at + places - round % places * r->to % places) % places < r->to;
    return is_drawn(r, drps_rng_at(r->seed + DRAWN, round * r->ranks + from), at);
}

float receivers_scale(const struct receivers *r)
{
    return (float)(r->ranks - 1) / (float)r->to;
}
