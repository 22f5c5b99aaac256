/* How the plan of all ranks gets its name (drps_together.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "index/plan/drps_plan_files.h"
#include "index/together/drps_together.h"

enum { FILE_MOST = 64 << 20 }; /* of plan.json: with the names of as many classes as can be */
enum { WAIT_MS = 3600000 };    /* all ranks come to these ends at about the same time */

int drps_together_await_all(const struct swap_ranks *ranks, struct drps_err *err)
{
    return drps_net_barrier(ranks->net, WAIT_MS, err);
}

static int send_file(struct swap *s, const struct swap_ranks *ranks, const char *path,
                     struct drps_err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc = drps_io_read_file(ranks->io, path, FILE_MOST, &text, &n, err);
    for (uint32_t to = 1; to < ranks->count && rc == 0; to++)
        rc = drps_swap_put(s, to, text, n, err);
    free(text);
    return rc;
}

static int take_file(struct swap *s, const struct swap_ranks *ranks, const char *path,
                     struct drps_err *err)
{
    const uint64_t bytes = drps_swap_left(s, 0);
    if (bytes > FILE_MOST) return drps_swap_fault(0, "too large a file", err);
    char *text = malloc((size_t)bytes + 1);
    int rc = text ? drps_swap_take(s, 0, text, (size_t)bytes, err)
                  : drps_err_set(err, -ENOMEM, "no memory for %s", path);
    if (rc == 0) rc = drps_io_write_file(ranks->io, path, text, (size_t)bytes, err);
    free(text);
    return rc;
}

int drps_together_copy(struct swap_ranks *ranks, const char *dir, const char *name,
                       struct drps_err *err)
{
    struct swap *s = NULL;
    char *path = drps_path_join(dir, name);
    int rc = path ? drps_swap_open(ranks, &s, err) : drps_err_set(err, -ENOMEM, "no memory");
    if (rc == 0 && !ranks->rank) rc = send_file(s, ranks, path, err);
    if (rc == 0) rc = drps_swap_end(s, err);
    if (rc == 0 && ranks->rank) rc = take_file(s, ranks, path, err);
    drps_swap_close(s);
    free(path);
    return rc;
}

static int move(const struct drps_io *io, const char *from, const char *to, struct drps_err *err)
{
    const int rc = io->ops->rename(io->ctx, from, to);
    if (rc == 0) return 0;
    return drps_err_set(err, rc, "cannot move %s to %s: %s", from, to, drps_err_name(rc));
}

/* 1: `out` is a plan of the same name, which rank 0 has made there. That has no folder of this rank
 * yet, as an earlier plan of the same data has on a disk of this rank's own. */
static int is_made(const struct swap_ranks *ranks, const struct drps_io *io, const char *out,
                   const char *own)
{
    char part[DRPS_PLAN_PATH_BYTES];
    struct drps_plan *there = NULL, *mine = NULL;
    struct drps_err ignored = DRPS_ERR_INIT;
    int same = drps_plan_rank_dir(out, ranks->rank, part, &ignored) == 0 &&
               access(part, F_OK) != 0 && drps_plan_open(io, out, &there, &ignored) == 0;
    drps_err_clear(&ignored);
    same = same && drps_plan_open(io, own, &mine, &ignored) == 0 &&
           strcmp(there->info.ranks.whole, mine->info.ranks.whole) == 0;
    drps_plan_close(there);
    drps_plan_close(mine);
    return same;
}

static int move_folder(const struct swap_ranks *ranks, const struct drps_io *io, const char *own,
                       const char *out, struct drps_err *err)
{
    char from[DRPS_PLAN_PATH_BYTES], to[DRPS_PLAN_PATH_BYTES];
    int rc = drps_plan_rank_dir(own, ranks->rank, from, err);
    if (rc == 0) rc = drps_plan_rank_dir(out, ranks->rank, to, err);
    if (rc == 0) rc = move(io, from, to, err);
    return rc == 0 ? drps_io_remove_tree(io, own, err) : rc; /* all that is left is plan.json */
}

int drps_together_join(const struct swap_ranks *ranks, const struct drps_io *io, const char *own,
                       const char *out, int replace, struct drps_err *err)
{
    if (is_made(ranks, io, out, own)) return move_folder(ranks, io, own, out, err);
    int rc = replace ? drps_stage_remove(io, out, &drps_plan_kind, err) : 0;
    return rc == 0 ? move(io, own, out, err) : rc;
}
