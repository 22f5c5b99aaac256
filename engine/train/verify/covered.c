/* One rank after another, from its newest checkpoint to its oldest. */
#include "engine/train/verify/drps_covered.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder/drps_durable.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/checkpoint/drps_state.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"

enum { RANKS_MOST = 1 << 20 };

int drps_checkpoints_ranks(const char *root, uint32_t *n_out, struct drps_err *err)
{
    const size_t prefix = strlen(DRPS_CHECKPOINT_RANK);
    const struct dirent *entry;
    DIR *dir = opendir(root);
    *n_out = 0;
    if (!dir) return drps_err_set(err, -errno, "cannot list %s: %s", root, strerror(errno));
    while ((entry = readdir(dir))) {
        char *end;
        if (strncmp(entry->d_name, DRPS_CHECKPOINT_RANK, prefix) != 0) continue;
        const unsigned long rank = strtoul(entry->d_name + prefix, &end, 10);
        if (end != entry->d_name + prefix && !*end && rank < RANKS_MOST && rank >= *n_out)
            *n_out = (uint32_t)rank + 1;
    }
    (void)closedir(dir);
    return 0;
}

static uint64_t log_bytes(const struct drps_checkpoint *cp)
{
    struct stat st;
    char *path = drps_path_join(drps_checkpoint_dir(cp), DRPS_CHECKPOINT_VECTORS);
    const uint64_t bytes = path && stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
    free(path);
    return bytes;
}

/* Takes one up; they come from the newest on. */
static int take(struct drps_covered *r, const struct drps_io *io, const struct drps_checkpoint *cp,
                uint64_t number, struct drps_err *err)
{
    struct drps_state s;
    uint64_t first, last;
    if (!r->checkpoints++) {
        int rc =
            drps_state_from_json(drps_checkpoint_manifest(cp), drps_checkpoint_path(cp), &s, err);
        if (rc < 0) return rc;
        r->newest = number;
        r->epoch = s.epoch;
        r->step = s.part.step;
        drps_state_destroy(&s);
    }
    if (!drps_vector_log_is_of(cp)) return 0;
    int rc = drps_vector_log_verify(io, cp, &first, &last, err);
    if (rc < 0) return rc;
    if (!r->logged) r->last = last;
    r->logged = 1;
    r->first = first;
    r->log_bytes += log_bytes(cp);
    return 0;
}

static int take_rank(struct drps_covered *r, const struct drps_checkpoints *c, struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    size_t n;
    int rc = drps_checkpoints_list(c, numbers, &n, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct drps_checkpoint *cp;
        rc = drps_checkpoint_open(c, numbers[i], &cp, err);
        if (rc == 0) rc = take(r, c->io, cp, numbers[i], err);
        drps_checkpoint_close(cp);
    }
    return rc;
}

int drps_checkpoints_covered(const struct drps_io *io, const char *root, drps_covered_visit visit,
                             void *ctx, struct drps_err *err)
{
    uint32_t ranks;
    int any = 0;
    int rc = drps_checkpoints_ranks(root, &ranks, err);
    for (uint32_t rank = 0; rank < ranks && rc == 0; rank++) {
        struct drps_covered r = {.rank = rank};
        struct drps_checkpoints c;
        rc = drps_checkpoints_init(&c, io, root, rank, err);
        if (rc == 0) rc = take_rank(&r, &c, err);
        drps_checkpoints_destroy(&c);
        if (rc == 0 && r.checkpoints) rc = visit(ctx, &r, err);
        any |= r.checkpoints > 0;
    }
    if (rc == 0 && !any) rc = drps_err_set(err, DRPS_E_NOT_FOUND, "%s holds no checkpoints", root);
    return rc;
}
