/* Where a run goes on that logs vectors: at the last round that each of its ranks can restore, or
 * one that was asked for. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "engine/train/job.h"

uint64_t drps_job_round(const struct drps_job *job, uint64_t epoch, uint64_t step)
{
    return (epoch - 1) * job->plan->info.batches + step;
}

/* ---- Where the run goes on ---- */

struct drps_job_span drps_job_span(const struct drps_job *job, const struct drps_state *state,
                                   uint64_t last_round)
{
    const int evaluated = state->epoch > 1 && !state->part.step;
    const uint64_t first = 2 * drps_job_round(job, state->epoch, state->part.step);
    struct drps_job_span span = {first + (uint64_t)evaluated, 2 * last_round};
    if (span.last < span.first) span.last = span.first;
    return span;
}

/* The last place up to `most` that is in some span: 1, or 0. */
static int find_place(const struct drps_job_span *spans, size_t n, uint64_t most,
                      uint64_t *place_out, size_t *which_out)
{
    for (size_t i = 0; i < n; i++) {
        const struct drps_job_span *s = &spans[i];
        if (most < s->first) continue;
        uint64_t place = most < s->last ? most : s->last;
        if (place != s->first) place &= ~UINT64_C(1); /* logs have rounds alone */
        *place_out = place;
        *which_out = i;
        return 1;
    }
    return 0;
}

/* What each rank says of where it can go on. */
struct offer {
    uint64_t has, place;   /* the last one up to what was asked for */
    uint64_t first, last;  /* rounds that it has */
    uint64_t asked, round; /* by options: whether, and which */
};

/* The least offer of all ranks; *same_out: all are that. Rounds that all have to *low, *high. */
static int compare_offers(const struct drps_job *job, const struct offer *mine, struct offer *least,
                          int *same_out, struct drps_err *err)
{
    const uint32_t n = job->ranks ? job->cluster.count : 1;
    struct offer *all = calloc(n, sizeof(*all));
    if (!all) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", n);
    all[0] = *mine;
    int rc = job->ranks ? drps_net_gather(job->cluster.net, mine, sizeof(*mine), all,
                                          job->cluster.wait_ms, err)
                        : 0;
    *least = all[0];
    *same_out = 1;
    for (uint32_t r = 1; r < n && rc == 0; r++) {
        if (all[r].asked != all[0].asked || all[r].round != all[0].round)
            rc = drps_err_set(err, DRPS_E_CONFIG,
                              "rank %u was started to resume after another round than rank 0: give "
                              "all ranks the same",
                              r);
        *same_out &= all[r].has == all[0].has && all[r].place == all[0].place;
        if (all[r].first > least->first) least->first = all[r].first;
        if (all[r].last < least->last) least->last = all[r].last;
        if (all[r].has < least->has) least->has = 0;
        if (all[r].place < least->place) least->place = all[r].place;
    }
    free(all);
    return rc;
}

static int not_covered(const struct drps_job *job, const struct offer *of, struct drps_err *err)
{
    const unsigned long long round = job->options->resume_round;
    const char *dir = job->checkpoints.place.root;
    if (of->first > of->last)
        return drps_err_set(err, DRPS_E_NOT_FOUND,
                            "round %llu is not covered by %s, which holds no round that all ranks "
                            "have",
                            round, dir);
    return drps_err_set(err, DRPS_E_NOT_FOUND,
                        "round %llu is not covered by %s: rounds %" PRIu64 " to %" PRIu64 " are",
                        round, dir, of->first, of->last);
}

int drps_job_agree_on_place(const struct drps_job *job, const struct drps_job_span *spans, size_t n,
                            uint64_t *place_out, size_t *which_out, struct drps_err *err)
{
    const struct drps_train_options *o = job->options;
    const uint64_t wanted =
        o->resume_at && o->resume_round < UINT64_MAX / 2 ? 2 * o->resume_round + 1 : UINT64_MAX;
    struct offer mine = {.first = n ? spans[n - 1].first / 2 : UINT64_MAX,
                         .last = n ? spans[0].last / 2 : 0,
                         .asked = o->resume_at != 0,
                         .round = o->resume_round};
    struct offer least = {.place = wanted};
    int same = 0, rc = 0;
    do {
        mine.has = (uint64_t)find_place(spans, n, least.place, &mine.place, which_out);
        rc = compare_offers(job, &mine, &least, &same, err);
    } while (rc == 0 && !same && least.has);
    *place_out = mine.place;
    if (rc < 0) return rc;
    if (o->resume_at && (!least.has || mine.place / 2 != o->resume_round))
        return not_covered(job, &least, err);
    return least.has != 0;
}

int drps_job_take_place(struct drps_job *job, const struct drps_job_span *span, uint64_t place,
                        struct drps_err *err)
{
    struct drps_job_checkpoints *c = &job->checkpoints;
    struct drps_state *s = &c->state;
    const uint64_t batches = job->plan->info.batches, round = place / 2;
    c->round = round;
    c->replays = place != span->first;
    if (!c->replays) return 0;
    const uint64_t epoch = (round - 1) / batches + 1;
    struct drps_epoch *done = realloc(s->done, epoch * sizeof(*done));
    if (!done) return drps_err_set(err, -ENOMEM, "no memory for the results of epochs");
    for (uint64_t i = s->epoch - 1; i < epoch; i++)
        done[i] = (struct drps_epoch){0};
    s->done = done;
    s->epoch = epoch;
    s->part = (struct drps_epoch_part){.step = round - (epoch - 1) * batches};
    return 0;
}
