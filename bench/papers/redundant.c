/*
 * How much of what workers and servers send each other is redundant, as "Efficient Distributed
 * Machine Learning for Large-scale Models by Reducing Redundant Communication" counts it?
 *
 *   bench_redundant PLAN WORKERS
 *
 * PLAN is one for one worker; its batch k is worker k mod WORKERS's, in round k / WORKERS, as
 * drps-index --samples dealt deals it. Values of parameters are counted by row: the unit is a row
 * that goes one way. D are the rows of a worker's batch.
 *
 *   uses      sum of |D| over an epoch: what is reduced, and what is broadcast, without the method
 *   single    of them, those of rows that one worker alone has in the round (its Algorithm 2)
 *   reduced, broadcast, direct      with the method, step by step (its Algorithm 3 and section
 *             IV-D): where one worker alone has a row in a round, or in the next round that has it,
 *             each worker of the first sends it to each of the second
 *   own       of the direct ones, those that a worker would send to itself
 *
 * Prints one JSON object.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/drps_io.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_steps.h"

enum { WORKERS_MAX = 64, BUFFER_BYTES = 1 << 20 };

struct counts {
    uint64_t rounds, uses, single, reduced, broadcast, direct, own;
};

/* A row's workers, a bit each: in the round that is read now, and in the one that had it last. */
struct row {
    uint64_t now, before;
};

static int die(const struct drps_err *err)
{
    fprintf(stderr, "bench_redundant: %s\n", err->text);
    return 1;
}

static unsigned ones(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* What goes between the round that had a row before and this one. */
static void count_passage(struct counts *c, uint64_t before, uint64_t now)
{
    const unsigned from = ones(before), to = ones(now);
    c->uses += to;
    c->single += to == 1;
    if (from == 1 || (from && to == 1)) {
        c->direct += (uint64_t)from * to;
        c->own += ones(before & now);
    } else {
        c->reduced += from;
        c->broadcast += to;
    }
}

/* The rows of a round, once the batches of all its workers are read; `list` names each of them for
 * every worker that has it. */
static void end_round(struct counts *c, struct row *rows, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct row *r = &rows[list[i]];
        if (!r->now) continue;
        count_passage(c, r->before, r->now);
        *r = (struct row){.before = r->now};
    }
    c->rounds++;
}

static int count(const struct drps_plan_info *info, struct steps *steps, unsigned workers,
                 struct row *rows, uint32_t *round, struct counts *c, struct drps_err *err)
{
    size_t n = 0;
    for (uint64_t s = 0; s < info->batches; s++) {
        const uint32_t *list;
        size_t list_n;
        int rc = drps_steps_rows(steps, s, info->rows, &list, &list_n, err);
        if (rc < 0) return rc;
        for (size_t i = 0; i < list_n; i++) {
            rows[list[i]].now |= (uint64_t)1 << s % workers;
            round[n++] = list[i];
        }
        if (s % workers == workers - 1 || s + 1 == info->batches) {
            end_round(c, rows, round, n);
            n = 0;
        }
    }
    for (uint64_t r = 0; r < info->rows; r++)
        c->reduced += ones(rows[r].before);
    return 0;
}

static int count_plan(const struct drps_plan *plan, unsigned workers, struct counts *c,
                      struct drps_err *err)
{
    const struct drps_plan_info *info = &plan->info;
    struct steps *steps = NULL;
    struct row *rows = calloc((size_t)info->rows, sizeof(*rows));
    uint32_t *round = calloc((size_t)info->max_batch_rows * workers, sizeof(*round));
    int rc = rows && round ? 0 : drps_err_set(err, -ENOMEM, "%" PRIu64 " rows", info->rows);
    if (rc == 0)
        rc = drps_steps_open(plan->io, plan->dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS,
                             info->batches + info->eval_batches, BUFFER_BYTES, &steps, err);
    if (rc == 0) rc = count(info, steps, workers, rows, round, c, err);
    drps_steps_close(steps);
    free(round);
    free(rows);
    return rc;
}

int main(int argc, char **argv)
{
    struct drps_err err = {0};
    struct drps_plan *plan = NULL;
    struct counts c = {0};
    const unsigned long workers = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (workers < 1 || workers > WORKERS_MAX) {
        fprintf(stderr, "Usage: bench_redundant PLAN WORKERS (1 to %d)\n", WORKERS_MAX);
        return 2;
    }
    int rc = drps_plan_open(drps_io_os(), argv[1], &plan, &err);
    if (rc == 0 && drps_plan_shape(&plan->info) != DRPS_PLAN_ONE)
        rc = drps_err_set(&err, DRPS_E_CONFIG, "%s is no plan for one worker", argv[1]);
    if (rc == 0) rc = count_plan(plan, (unsigned)workers, &c, &err);
    drps_plan_close(plan);
    if (rc < 0) return die(&err);
    printf("{\"rounds\": %" PRIu64 ", \"uses\": %" PRIu64 ", \"single\": %" PRIu64
           ", \"reduced\": %" PRIu64 ", \"broadcast\": %" PRIu64 ", \"direct\": %" PRIu64
           ", \"own\": %" PRIu64 "}\n",
           c.rounds, c.uses, c.single, c.reduced, c.broadcast, c.direct, c.own);
    return 0;
}
