/* Common rows in rounds, by the plan: whether ranks have copies, which of their gradients go as
 * vectors, and what that takes of memory and links. */
#include <string.h>

#include "engine/cluster/rounds_internal.h"
#include "net/drps_allreduce.h"

/* ---- Whether there are copies ---- */

const char *drps_rounds_no_sums(const struct drps_plan_info *info,
                                const struct drps_train_options *o)
{
    const struct drps_plan_ranks *ranks = &info->ranks;
    if (!info->net[0]) return "its model is no net, whose own parameters all batches have";
    if (ranks->count < 2) return "a plan for one worker";
    if (o->sync != DRPS_SCHED_BSP)
        return "workers add up gradients in rounds, which are of synchronisation bsp";
    if (ranks->workers != ranks->count) return "not every rank is a worker";
    if (o->push.on || o->pull.on || o->pilot.of_filters)
        return "filters are for what goes to servers, or comes from there";
    return NULL;
}

static uint64_t values_of(const struct drps_plan_info *info)
{
    return drps_plan_common_rows(info) * (uint64_t)info->dim;
}

uint64_t drps_rounds_summed(const struct drps_plan_info *info,
                            const struct drps_outer_choice *vectors)
{
    return values_of(info) - drps_outer_floats(vectors);
}

/* A plan whose net cannot be parsed, which no open plan has, has no layers here. */
static void choose_vectors(const struct drps_plan_info *info, enum drps_outer_rule rule,
                           struct drps_outer_choice *out)
{
    struct drps_layers layers = {.n = 0};
    if (drps_plan_layers(info, &layers, NULL) < 0) layers.n = 0;
    drps_outer_choose(&layers, info->ranks.count, info->max_batch_samples, rule, out);
}

/* Servers need no steps of their own for it, but the one that has the rows sends their parameters
 * to all others, and gets as many gradients. */
static int are_sums_cheaper(const struct drps_plan_info *info)
{
    const uint64_t bytes = values_of(info) * sizeof(float), others = info->ranks.count - 1;
    struct drps_outer_choice vectors;
    choose_vectors(info, DRPS_OUTER_TIME, &vectors);
    return drps_net_allreduce_cost(DRPS_NET_IN_ORDER, info->ranks.count,
                                   drps_rounds_summed(info, &vectors) * sizeof(float)) +
               drps_outer_cost(&vectors, info->ranks.count, info->max_batch_samples) <
           2 * others * bytes;
}

int drps_rounds_sums_common(const struct drps_plan_info *info, const struct drps_train_options *o)
{
    if (o->common == DRPS_COMMON_SERVERS || drps_rounds_no_sums(info, o)) return 0;
    return o->common != DRPS_COMMON_AUTO || are_sums_cheaper(info);
}

void drps_rounds_vectors(const struct drps_plan_info *info, const struct drps_train_options *o,
                         struct drps_outer_choice *out)
{
    memset(out, 0, sizeof(*out));
    if (o->common == DRPS_COMMON_SUMS || !drps_rounds_sums_common(info, o)) return;
    choose_vectors(info, o->common == DRPS_COMMON_AUTO ? DRPS_OUTER_TIME : DRPS_OUTER_BYTES, out);
}

/* A copy, and its numbers; what the server sends once; a message from each other rank, one to each,
 * and a sum. */
uint64_t drps_rounds_common_memory(const struct drps_plan_info *info, size_t row_bytes)
{
    return drps_plan_common_rows(info) * (uint64_t)(2 * row_bytes + sizeof(uint32_t)) +
           3 * values_of(info) * sizeof(float);
}

/* Gradients of all others are there once more. */
uint64_t drps_rounds_vectors_memory(const struct drps_plan_info *info,
                                    const struct drps_outer_choice *vectors, unsigned members)
{
    if (!vectors->n) return 0;
    return drps_outer_memory(vectors, info->ranks.count, info->max_batch_samples, members) +
           drps_rounds_summed(info, vectors) * sizeof(float);
}

/* ---- Forecasts ---- */

static void take_away(uint64_t *from, uint64_t bytes)
{
    *from -= bytes < *from ? bytes : *from;
}

/* Batches of a worker, or of several ones, that have the common rows. */
struct batches {
    uint64_t trained, all;
};

static struct batches batches_of(const struct drps_plan_info *info, uint64_t epochs,
                                 uint64_t workers, const uint64_t *empty)
{
    const uint64_t trained = workers * epochs * info->batches - empty[1];
    return (struct batches){trained, trained + workers * epochs * info->eval_batches - empty[0]};
}

static uint64_t back_bytes(const struct drps_plan_info *info, int touches)
{
    return rounds_row_bytes(info) + (touches ? sizeof(uint32_t) : 0);
}

/* What ranks send each other in all epochs, if no vector has zeros. */
static struct drps_outer_bytes vectors_of_plan(const struct drps_plan_info *info, uint64_t epochs,
                                               const struct drps_outer_choice *vectors)
{
    const uint64_t batches = epochs * info->batches, workers = info->ranks.workers;
    const uint64_t samples =
        drps_plan_own_samples(info, info->samples) / (info->batches + !info->batches);
    const uint64_t each = vectors->n ? batches * drps_outer_message_bytes(vectors, samples) : 0;
    return (struct drps_outer_bytes){.each = each, .received = (workers - 1) * each};
}

void drps_rounds_forecast_common(const struct drps_plan_info *info, int touches, uint64_t row_bytes,
                                 uint64_t epochs, const struct drps_outer_choice *vectors,
                                 const struct drps_rounds_seen *seen, struct drps_rounds_bytes *out)
{
    const struct drps_plan_ranks *ranks = &info->ranks;
    const struct drps_rounds_seen planned = {.vectors = vectors_of_plan(info, epochs, vectors)};
    const uint64_t n = drps_plan_common_rows(info), there = rounds_row_bytes(info);
    const uint64_t own = drps_plan_own_common_rows(info, (uint32_t)n), others = ranks->count - 1;
    const uint64_t back = back_bytes(info, touches);
    const uint64_t sums =
        epochs * info->batches *
        drps_net_allreduce_bytes(DRPS_NET_IN_ORDER, ranks->count, ranks->rank,
                                 drps_rounds_summed(info, vectors), DRPS_NET_FLOAT32);
    if (!epochs) return;
    if (!seen) seen = &planned;
    const struct batches mine = batches_of(info, epochs, 1, seen->own_empty);
    const struct batches theirs = batches_of(info, epochs, others, seen->others_empty);
    take_away(&out->sent, own * theirs.all * there + (n - own) * mine.trained * back);
    take_away(&out->received, (n - own) * mine.all * there + own * theirs.trained * back);
    out->sent += sums + others * (own * row_bytes + seen->vectors.each);
    out->received += sums + (n - own) * row_bytes + seen->vectors.received;
}

void drps_rounds_forecast_links(const struct drps_rounds *r, uint64_t epochs, uint64_t *to,
                                uint64_t *from)
{
    const struct rounds_common *c = &r->common;
    const struct drps_plan_info *info = &r->o.plan->info;
    if (!c->n || !epochs) return;
    const struct batches mine = batches_of(info, epochs, 1, c->seen.own_empty);
    for (uint32_t p = 0; p < r->ranks; p++) {
        if (p == r->rank) continue;
        take_away(&to[p], c->of[p] * mine.trained * back_bytes(info, r->touches));
        take_away(&from[p], c->of[p] * mine.all * rounds_row_bytes(info));
        to[p] += c->seen.vectors.each +
                 epochs * info->batches *
                     drps_net_allreduce_bytes_to(r->ranks, r->rank, p,
                                                 drps_rounds_summed(info, &c->vectors),
                                                 DRPS_NET_FLOAT32);
        from[p] += c->of[p] * (uint64_t)r->o.server->row_bytes;
    }
}
