/*
 * Counts of features on machines, and the scores of samples (affinity.h): one array
 * by features, another of the machines that have each.
 */
#include "partition/affinity.h"

#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_rng.h"

int drps_affinity_begin(struct affinity *a, uint32_t features_n, uint32_t machines)
{
    *a = (struct affinity){.features_n = features_n, .machines = machines};
    a->feature = calloc((size_t)features_n + 1, sizeof(*a->feature));
    a->score = calloc(machines, sizeof(*a->score));
    return a->feature && a->score ? 0 : -ENOMEM;
}

void drps_affinity_free(struct affinity *a)
{
    free(a->feature);
    free(a->held);
    free(a->score);
    *a = (struct affinity){0};
}

void drps_affinity_count(struct affinity *a, const uint32_t *features, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (features[i] < a->features_n) a->feature[features[i]].samples++;
}

/* Entries of held for a feature of n samples. */
static size_t room(const struct affinity *a, uint32_t n, uint64_t samples, uint32_t least)
{
    if (n < least || n > samples / AFFINITY_MOST_SHARE) return 0;
    return n < a->machines ? n : a->machines;
}

uint64_t drps_affinity_held_bytes(const struct affinity *a, uint64_t samples, uint32_t least)
{
    uint64_t sum = 0;
    for (uint32_t f = 0; f < a->features_n; f++)
        sum += room(a, a->feature[f].samples, samples, least);
    return sum * sizeof(*a->held);
}

int drps_affinity_ready(struct affinity *a, uint64_t samples, uint32_t least)
{
    size_t sum = 0;
    for (uint32_t f = 0; f < a->features_n; f++) {
        struct affinity_feature *it = &a->feature[f];
        const size_t n = room(a, it->samples, samples, least);
        it->start = sum;
        if (!n) it->samples = 0;
        sum += n;
    }
    a->held = drps_array_new(sum, sizeof(*a->held));
    return a->held ? 0 : -ENOMEM;
}

/* The entry of a feature; NULL if it does not count. */
static struct affinity_feature *find(const struct affinity *a, uint32_t feature)
{
    if (feature >= a->features_n) return NULL;
    struct affinity_feature *it = &a->feature[feature];
    return it->samples ? it : NULL;
}

void drps_affinity_prefetch(const struct affinity *a, const uint32_t *features, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (features[i] < a->features_n) __builtin_prefetch(&a->feature[features[i]]);
    for (size_t i = 0; a->held && i < n; i++) {
        const struct affinity_feature *f = find(a, features[i]);
        if (f) __builtin_prefetch(a->held + f->start);
    }
}

void drps_affinity_add(struct affinity *a, const uint32_t *features, size_t n, uint32_t machine)
{
    for (size_t i = 0; i < n; i++) {
        struct affinity_feature *f = find(a, features[i]);
        uint32_t k = 0;
        if (!f) continue;
        struct affinity_held *held = a->held + f->start;
        while (k < f->used && held[k].machine != machine)
            k++;
        if (k == f->used) held[f->used++] = (struct affinity_held){machine, 0};
        held[k].samples++;
    }
}

void drps_affinity_drop(struct affinity *a, const uint32_t *features, size_t n, uint32_t machine)
{
    for (size_t i = 0; i < n; i++) {
        struct affinity_feature *f = find(a, features[i]);
        uint32_t k = 0;
        if (!f) continue;
        struct affinity_held *held = a->held + f->start;
        while (held[k].machine != machine)
            k++;
        if (--held[k].samples == 0) held[k] = held[--f->used];
    }
}

void drps_affinity_add_scores(struct affinity *a, const uint32_t *features, size_t n,
                              double batch_share)
{
    for (size_t i = 0; i < n; i++) {
        const struct affinity_feature *f = find(a, features[i]);
        if (!f) continue;
        const struct affinity_held *held = a->held + f->start;
        const double all = f->samples, worth = 1 / (all * (1 + batch_share * all));
        for (uint32_t k = 0; k < f->used; k++)
            a->score[held[k].machine] += worth * held[k].samples;
    }
}

uint64_t drps_affinity_minhash(const struct affinity *a, const uint32_t *features, size_t n,
                               uint64_t seed)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (!find(a, features[i])) continue;
        const uint64_t hash = drps_rng_at(seed, features[i]);
        if (hash < least) least = hash;
    }
    return least;
}
