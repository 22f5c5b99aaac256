/* The ladder of filters, and a bisection over it. */
#include "engine/cluster/target/drps_ladder.h"

#include <math.h>

/* Values are rounded first, as that costs least; then fewer values are sent. */
struct rung {
    uint32_t bits;
    double top; /* 0: all values */
    double psi; /* 0: no filter */
};
static const struct rung bsp[] = {
    {16, 0, 0},       {8, 0, 0},       {8, 0.5, 0.001}, {8, 0.3, 0.002}, {8, 0.2, 0.003},
    {8, 0.15, 0.005}, {8, 0.1, 0.007}, {8, 0.1, 0.01},  {8, 0.1, 0.015}, {8, 0.1, 0.02},
    {8, 0.1, 0.03},   {8, 0.05, 0.05}, {8, 0.05, 0.07}, {8, 0.03, 0.1},  {8, 0.02, 0.2},
};
/* Servers keep no published values. */
static const struct rung asynchronous[] = {
    {16, 0, 0}, {8, 0, 0}, {8, 0.5, 0}, {8, 0.2, 0}, {8, 0.1, 0}, {8, 0.05, 0}, {8, 0.02, 0},
};

unsigned drps_ladder_rungs(enum drps_sched_mode sync)
{
    return sync == DRPS_SCHED_BSP ? sizeof(bsp) / sizeof(*bsp)
                                  : sizeof(asynchronous) / sizeof(*asynchronous);
}

void drps_ladder_set(struct drps_train_options *o, unsigned rung, uint32_t dim, int copies)
{
    const int is_bsp = o->sync == DRPS_SCHED_BSP;
    o->push = (struct drps_push_options){.on = 0};
    o->pull = (struct drps_pull_options){.on = 0};
    o->pull_cached = 0;
    if (!rung) return;
    const struct rung *r = is_bsp ? &bsp[rung - 1] : &asynchronous[rung - 1];
    /* Rows of one value share no exponent, without which 8 bits are too few. */
    const uint32_t pull_bits = is_bsp && dim > 1 ? r->bits : 16;
    o->push = (struct drps_push_options){.on = 1, .bits = r->bits, .top = r->top};
    o->pull = (struct drps_pull_options){.on = 1, .bits = pull_bits, .psi = r->psi};
    if (r->psi > 0) o->pull.eps = DRPS_PULL_EPS;
    o->pull_cached = r->top > 0 && o->sync == DRPS_SCHED_SSP && copies;
}

struct drps_ladder_search drps_ladder_begin(double plain, double share, unsigned rungs)
{
    return (struct drps_ladder_search){
        .plain = plain, .most = share * fabs(plain), .beyond = rungs + 1};
}

unsigned drps_ladder_next(const struct drps_ladder_search *s)
{
    return s->beyond - s->within > 1 ? (s->within + s->beyond) / 2 : 0;
}

int drps_ladder_note(struct drps_ladder_search *s, unsigned rung, double loss)
{
    const int is_within = fabs(loss - s->plain) <= s->most;
    if (is_within)
        s->within = rung;
    else
        s->beyond = rung;
    return is_within;
}
