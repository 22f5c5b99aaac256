#include "tools/stat/checkpoints.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/drps_size.h"
#include "base/folder/drps_manifest.h"
#include "engine/train/verify/drps_covered.h"

struct shown {
    const struct drps_cli *cli;
    const char *path;
    json_t *ranks;        /* --json; else NULL */
    uint64_t first, last; /* rounds that all ranks so far have */
    uint64_t n, logged;   /* ranks, and those that log vectors */
};

static void print_rank(const struct drps_covered *r)
{
    char bytes[48];
    printf("  rank %-4" PRIu32 " %" PRIu64 " %s, the newest %" PRIu64 ": ", r->rank, r->checkpoints,
           r->checkpoints == 1 ? "checkpoint" : "checkpoints", r->newest);
    /* One at an epoch's end is where the next begins. */
    if (r->step || r->epoch < 2)
        printf("epoch %" PRIu64 ", %" PRIu64 " %s done", r->epoch, r->step,
               r->step == 1 ? "batch" : "batches");
    else
        printf("%" PRIu64 " %s done", r->epoch - 1, r->epoch == 2 ? "epoch" : "epochs");
    if (r->logged)
        printf("; rounds %" PRIu64 " to %" PRIu64 ", logs of %s", r->first, r->last,
               drps_size_format(r->log_bytes, bytes, sizeof(bytes)));
    printf("\n");
}

static json_t *count(uint64_t v)
{
    return json_integer(v > INT64_MAX ? INT64_MAX : (json_int_t)v);
}

static json_t *rank_to_json(const struct drps_covered *r)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "rank", count(r->rank));
    drps_manifest_put(&j, "checkpoints", count(r->checkpoints));
    drps_manifest_put(&j, "newest", count(r->newest));
    drps_manifest_put(&j, "epoch", count(r->epoch));
    drps_manifest_put(&j, "step", count(r->step));
    if (!r->logged) return j;
    drps_manifest_put(&j, "first_round", count(r->first));
    drps_manifest_put(&j, "last_round", count(r->last));
    drps_manifest_put(&j, "log_bytes", count(r->log_bytes));
    return j;
}

/* A drps_covered_visit. */
static int show_rank(void *ctx, const struct drps_covered *r, struct drps_err *err)
{
    struct shown *s = ctx;
    (void)err;
    if (s->cli->json)
        drps_manifest_append(&s->ranks, rank_to_json(r));
    else {
        if (!s->n) printf("checkpoints %s\n", s->path);
        print_rank(r);
    }
    s->n++;
    if (!r->logged) return 0;
    if (!s->logged || r->first > s->first) s->first = r->first;
    if (!s->logged || r->last < s->last) s->last = r->last;
    s->logged++;
    return 0;
}

static int print_json(struct shown *s, struct drps_err *err)
{
    json_t *j = json_object();
    drps_manifest_put(&j, "ranks", s->ranks);
    s->ranks = NULL;
    if (s->logged == s->n && s->first <= s->last) {
        drps_manifest_put(&j, "first_round", count(s->first));
        drps_manifest_put(&j, "last_round", count(s->last));
    }
    return drps_cli_json_print(j, err);
}

int stat_print_checkpoints(struct drps_cli *cli, const struct drps_io *io, const char *path,
                           struct drps_err *err)
{
    struct shown s = {.cli = cli, .path = path, .ranks = cli->json ? json_array() : NULL};
    int rc = drps_checkpoints_covered(io, path, show_rank, &s, err);
    if (rc == 0 && cli->json) rc = print_json(&s, err);
    if (rc == 0 && !cli->json && s.logged == s.n && s.first <= s.last)
        printf("  covered  drps-train --resume goes on after round %" PRIu64
               ", --resume-round N after any from %" PRIu64 " on\n",
               s.last, s.first);
    json_decref(s.ranks);
    return rc;
}
