/* One rank after another, one checkpoint after another; what is known of a number from the first
 * rank that has it, the others must have, too. */
#include "engine/train/verify/drps_verify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "engine/checkpoint/drps_checkpoint_files.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "engine/cluster/filters/drps_push.h"
#include "engine/publish/drps_trained.h"
#include "engine/checkpoint/drps_state.h"
#include "engine/train/verify/drps_covered.h"
#include "storage/relay/drps_relay.h"

/* The cut that a number stands for, as the first rank says. */
struct cut {
    uint64_t number, epoch, step;
};

struct verify {
    const struct drps_io *io;
    const char *root;
    struct drps_findings *found;
    struct cut cuts[DRPS_CHECKPOINT_LIST_MOST]; /* of rank 0 */
    size_t cuts_n;
};

/* Takes `path`; NULL and what is not there do not count. */
static void count_file(struct verify *v, char *path)
{
    struct stat st;
    if (path && stat(path, &st) == 0) {
        v->found->files++;
        v->found->bytes += (uint64_t)st.st_size;
    }
    free(path);
}

/* A file beside the manifest has the size and checksum that the manifest says. */
static int check_file(const struct verify *v, const struct drps_checkpoint *cp, const char *name,
                      uint64_t want, struct drps_err *err)
{
    uint64_t bytes, sum;
    char *path = drps_path_join(drps_checkpoint_dir(cp), name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory to read a checkpoint");
    int rc = drps_copy_file(v->io, path, NULL, &bytes, &sum, err);
    if (rc == 0 && sum != want)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s is damaged: its checksum is another", path);
    free(path);
    return rc;
}

/* The dictionary, which lies with rank 0; older versions wrote none. */
static int check_names(const struct verify *v, const struct drps_checkpoint *cp,
                       struct drps_err *err)
{
    const json_t *of = json_object_get(drps_checkpoint_manifest(cp), "of");
    const json_t *names = json_object_get(of, "names");
    uint64_t want;
    if (!json_is_object(names)) return 0;
    int rc = drps_manifest_get_hex(names, "checksum", drps_checkpoint_path(cp), &want, err);
    return rc == 0 ? check_file(v, cp, DRPS_CHECKPOINT_NAMES, want, err) : rc;
}

static int check_rows(const struct verify *v, struct drps_checkpoint *cp, struct drps_err *err)
{
    const char *store = drps_checkpoint_store(cp);
    int rc = drps_checkpoint_verify(cp, err);
    return rc == 0 && store ? drps_relay_verify_saved(v->io, store, err) : rc;
}

/* The rounds of vectors that followed the rows, where such are logged. */
static int check_vectors(struct verify *v, const struct drps_checkpoint *cp, struct drps_err *err)
{
    uint64_t first, last;
    if (!drps_vector_log_is_of(cp)) return 0;
    int rc = drps_vector_log_verify(v->io, cp, &first, &last, err);
    v->found->records += last - first;
    return rc;
}

/* Ranks are stopped before the same round: a number is the same cut on all of them. */
static int check_cut(struct verify *v, uint32_t rank, uint64_t number, const struct drps_state *s,
                     const char *path, struct drps_err *err)
{
    if (!rank) {
        v->cuts[v->cuts_n++] = (struct cut){number, s->epoch, s->part.step};
        return 0;
    }
    for (size_t i = 0; i < v->cuts_n; i++)
        if (v->cuts[i].number == number &&
            (v->cuts[i].epoch != s->epoch || v->cuts[i].step != s->part.step))
            return drps_err_set(
                err, DRPS_E_CORRUPT,
                "%s is of epoch %llu, batch %llu; rank 0's of that number is of "
                "epoch %llu, batch %llu",
                path, (unsigned long long)s->epoch, (unsigned long long)s->part.step,
                (unsigned long long)v->cuts[i].epoch, (unsigned long long)v->cuts[i].step);
    return 0;
}

static int check_state(struct verify *v, uint32_t rank, uint64_t number, struct drps_checkpoint *cp,
                       struct drps_err *err)
{
    struct drps_state s;
    const char *path = drps_checkpoint_path(cp);
    int rc = drps_state_from_json(drps_checkpoint_manifest(cp), path, &s, err);
    if (rc < 0) return rc;
    if (s.rows != drps_checkpoint_rows(cp) || s.row_bytes != drps_checkpoint_row_bytes(cp))
        rc = drps_err_set(err, DRPS_E_CORRUPT, "%s contradicts its rows", path);
    if (rc == 0 && s.push.on && drps_push_needs_own_slots(&s.push) &&
        !drps_checkpoint_held(cp)->slots)
        rc = drps_err_set(err, DRPS_E_CORRUPT,
                          "%s has nothing of what the run holds back of gradients", path);
    if (rc == 0) rc = check_cut(v, rank, number, &s, path, err);
    if (rc == 0 && !rank && s.best_epoch)
        rc = check_file(v, cp, DRPS_CHECKPOINT_BEST, s.best_content, err);
    drps_state_destroy(&s);
    return rc;
}

/* What was read, for the user. */
static void count(struct verify *v, const struct drps_checkpoint *cp)
{
    static const char *const files[] = {DRPS_CHECKPOINT_MANIFEST,
                                        DRPS_CHECKPOINT_BEST,
                                        DRPS_CHECKPOINT_HELD,
                                        DRPS_CHECKPOINT_NAMES,
                                        DRPS_CHECKPOINT_STORE "/relay.rec",
                                        DRPS_CHECKPOINT_STORE "/runs",
                                        DRPS_CHECKPOINT_VECTORS};
    v->found->records += drps_checkpoint_records(cp);
    for (uint64_t i = 0; i < drps_checkpoint_parts(cp); i++)
        count_file(v, drps_checkpoint_part(cp, i));
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        count_file(v, drps_path_join(drps_checkpoint_dir(cp), files[i]));
}

static int check_one(struct verify *v, const struct drps_checkpoints *c, uint32_t rank,
                     uint64_t number, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    int rc = drps_checkpoint_open(c, number, &cp, err);
    if (rc < 0) return drps_findings_take(v->found, rc, err);
    count(v, cp);
    rc = drps_findings_take(v->found, check_rows(v, cp, err), err);
    if (rc == 0) rc = drps_findings_take(v->found, check_state(v, rank, number, cp, err), err);
    if (rc == 0) rc = drps_findings_take(v->found, check_names(v, cp, err), err);
    if (rc == 0) rc = drps_findings_take(v->found, check_vectors(v, cp, err), err);
    drps_checkpoint_close(cp);
    return rc;
}

static int check_rank(struct verify *v, uint32_t rank, size_t *n_out, struct drps_err *err)
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct drps_checkpoints c;
    *n_out = 0;
    int rc = drps_checkpoints_init(&c, v->io, v->root, rank, err);
    if (rc == 0) rc = drps_checkpoints_list(&c, numbers, n_out, err);
    for (size_t i = 0; i < *n_out && rc == 0; i++)
        rc = check_one(v, &c, rank, numbers[i], err);
    drps_checkpoints_destroy(&c);
    return rc;
}

/* A machine may have the checkpoints of one rank alone, or of some that follow each other: no more
 * can be told of ranks that are not there than of those between two that are. */
static void check_missing(const struct verify *v, uint32_t first, uint32_t end)
{
    for (uint32_t rank = first; rank < end; rank++)
        drps_findings_add(v->found,
                          "%s/" DRPS_CHECKPOINT_RANK "%u holds no checkpoint, and those of rank %u "
                          "and rank %u are here: it is missing, or lies on another machine",
                          v->root, rank, first - 1, end);
}

int drps_checkpoints_verify(const struct drps_io *io, const char *root, struct drps_findings *found,
                            struct drps_err *err)
{
    struct verify v = {.io = io, .root = root, .found = found};
    uint32_t ranks, next = 0; /* after the last that has some; 0: none has */
    int rc = drps_checkpoints_ranks(root, &ranks, err);
    for (uint32_t rank = 0; rank < ranks && rc == 0; rank++) {
        size_t n;
        rc = check_rank(&v, rank, &n, err);
        if (!n) continue;
        if (next) check_missing(&v, next, rank);
        next = rank + 1;
    }
    if (rc == 0 && !next) rc = drps_err_set(err, DRPS_E_NOT_FOUND, "%s holds no checkpoints", root);
    return rc;
}
