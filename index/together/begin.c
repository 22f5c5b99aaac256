/* How ranks begin alike, and how the plan of all gets its name (drps_together.h). */
#include "index/together/drps_together.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/drps_checksum.h"
#include "index/drps_index.h"
#include "index/plan/drps_algorithm.h"
#include "index/plan/drps_plan_files.h"

enum { FILE_MOST = 64 << 20 }; /* of plan.json: with the names of as many classes as can be */
enum { WAIT_MS = 3600000 };    /* all ranks come to these ends at about the same time */

int drps_together_await_all(const struct swap_ranks *ranks, struct drps_err *err)
{
    return drps_net_barrier(ranks->net, WAIT_MS, err);
}

/* ---- Options ---- */

static int is(const char *given, const char *name)
{
    return given && strcmp(given, name) == 0;
}

/* Returns what it is that only one machine can make, or NULL. */
static const char *of_one_machine(const struct drps_index_options *o)
{
    const struct drps_algorithm *a = drps_algorithm_find(o->algo);
    if (o->from_plan || o->base) return "a plan that begins with another plan";
    if (is(o->order, "grid")) return "the order grid";
    if (drps_algorithm_draws(a)) return "a plan of implicit feedback";
    if (drps_algorithm_has_sample_rows(a)) return "a plan whose samples have rows";
    if (o->servers || o->separate) return "a plan with servers of their own";
    if (o->hand_on) return "a plan that hands rows on";
    if (o->balance > 0) return "balanced rounds";
    if (o->machine_weights_n) return "machines of unequal weights";
    if (o->residual_slots) return "a plan with residual slots";
    if (o->samples && !is(o->samples, "kept") && !is(o->samples, "dealt"))
        return "a plan with placed samples";
    if (o->dppa.given) return "a plan with settings of dppa";
    if (o->partition && !is(o->partition, "auto") && !is(o->partition, "range"))
        return "a partition other than auto and range";
    if (o->blocks.by && !is(o->blocks.by, "pattern") && !is(o->blocks.by, "none"))
        return "blocks other than pattern and none";
    return NULL;
}

int drps_together_check(struct drps_index_options *o, struct drps_err *err)
{
    const char *what = of_one_machine(o);
    if (what)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: several machines cannot make that together; have one machine read "
                            "all data and make it for %" PRIu32 " workers",
                            what, o->ranks->count);
    if (o->workers && o->workers != o->ranks->count)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%" PRIu32 " workers and %" PRIu32
                            " machines: each machine is a worker, so leave their number out",
                            o->workers, o->ranks->count);
    o->workers = o->ranks->count;
    if (!o->partition) o->partition = "auto";
    if (!o->samples) o->samples = "kept";
    return 0;
}

/* ---- Beginning ---- */

static uint64_t hash_of(const char *text)
{
    return text ? drps_checksum(text, strlen(text)) : 0;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* What must be the same on all ranks. Memory, inputs and folders may differ. */
static const char *const option_names[] = {
    "whether files are the same on all",
    "algorithm",
    "loss",
    "task",
    "number of outputs",
    "number of factors",
    "choice of normalising",
    "choice of an intercept",
    "choice of dense batches",
    "class weights",
    "partition",
    "samples",
    "batch size",
    "batch size",
    "order",
    "seed",
    "share of test samples",
    "block builder",
    "block size",
    "cost of a disk request",
    "speed of the disk",
    "format",
    "bad lines",
    "label column",
    "header",
    "scale of columns",
    "columns crossed",
    "kinds of columns",
    "separator",
    "weights of samples",
    "column of clicks",
    "column of impressions",
    "seed of hashes",
    "hashing of features",
    "choice of a forecast",
};
enum { OPTIONS = sizeof(option_names) / sizeof(option_names[0]) };

static void hash_options(const struct drps_index_options *o, uint64_t out[OPTIONS])
{
    const struct drps_blocks_options *b = &o->blocks;
    const struct drps_reader_options *r = &o->reader;
    const uint64_t hashes[OPTIONS] = {
        (uint64_t)o->shared,
        hash_of(o->algo),
        hash_of(o->loss),
        hash_of(o->task),
        o->outputs,
        o->factors,
        (uint64_t)o->not_normalized,
        (uint64_t)o->no_bias,
        (uint64_t)o->dense,
        hash_of(o->class_weights),
        hash_of(o->partition),
        hash_of(o->samples),
        o->batch_size,
        bits_of(o->batch_percent),
        hash_of(o->order),
        o->seed,
        bits_of(o->test_fraction),
        hash_of(b->by),
        b->bytes,
        b->seek_ns,
        b->transfer_bps,
        hash_of(r->format),
        (uint64_t)r->skip_bad_lines,
        hash_of(r->csv_label),
        (uint64_t)r->csv_header,
        hash_of(r->csv_scale),
        hash_of(r->csv_cross),
        hash_of(r->csv_kinds),
        (uint64_t)r->csv_separator,
        hash_of(r->weight),
        hash_of(r->clicks),
        hash_of(r->impressions),
        r->hash_seed,
        (uint64_t)o->hashing.bits << 34 | (uint64_t)o->hashing.kind << 32 | o->hashing.bins,
        (uint64_t)o->no_forecast,
    };
    memcpy(out, hashes, sizeof(hashes));
}

static int check_options(const struct swap_ranks *ranks, const struct drps_index_options *o,
                         struct drps_err *err)
{
    uint64_t mine[OPTIONS], *all;
    hash_options(o, mine);
    int rc = drps_swap_gather(ranks, mine, OPTIONS, &all, err);
    for (uint32_t r = 1; r < ranks->count && rc == 0; r++)
        for (size_t i = 0; i < OPTIONS && rc == 0; i++)
            if (all[r * OPTIONS + i] != all[i])
                rc = drps_err_set(err, DRPS_E_CONFIG,
                                  "rank %" PRIu32
                                  " was started with other options than rank 0 (%s): all need the "
                                  "same, but for files, folders and memory",
                                  r, option_names[i]);
    free(all);
    return rc;
}

/* ---- Inputs ---- */

/* Hashes a file's name, size and first bytes; 0: it is empty, no file, or cannot be read, which the
 * reader says. */
static uint64_t hash_file(const struct drps_io *io, const char *path)
{
    enum { LOOK_BYTES = 64 << 10 };
    const char *name = strrchr(path, '/');
    uint64_t size = 0, hashes[3] = {hash_of(name ? name + 1 : path)};
    char *bytes = malloc(LOOK_BYTES);
    struct stat st;
    int fd = -1;
    if (bytes && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        drps_io_open(io, path, O_RDONLY, &fd, NULL) == 0 &&
        drps_io_size(io, fd, path, &size, NULL) == 0 && size) {
        const size_t n = size < LOOK_BYTES ? (size_t)size : LOOK_BYTES;
        if (drps_io_read_at(io, fd, bytes, n, 0, path, NULL) == 0) {
            hashes[1] = size;
            hashes[2] = drps_checksum(bytes, n);
        }
    }
    if (fd >= 0) drps_io_close(io, fd);
    free(bytes);
    return hashes[2] ? drps_checksum(hashes, sizeof(hashes)) : 0;
}

/* The first input of each rank must be another file: else its samples would count twice. */
static int check_inputs(const struct swap_ranks *ranks, const struct drps_index_options *o,
                        struct drps_err *err)
{
    uint64_t *all;
    const uint64_t mine = hash_file(ranks->io, o->inputs[0]);
    int rc = drps_swap_gather(ranks, &mine, 1, &all, err);
    for (uint32_t r = 1; r < ranks->count && rc == 0; r++)
        for (uint32_t q = 0; q < r && rc == 0; q++)
            if (all[r] && all[r] == all[q])
                rc = drps_err_set(err, DRPS_E_CONFIG,
                                  "ranks %" PRIu32 " and %" PRIu32
                                  " both read a file like %s, so that its samples would count "
                                  "twice: give each its own, or say that inputs are shared by all",
                                  q, r, o->inputs[0]);
    free(all);
    return rc;
}

/* Inputs are numbered over all ranks, and then test files. */
static int number_inputs(const struct swap_ranks *ranks, struct drps_index_options *o,
                         struct drps_err *err)
{
    enum { INPUTS_MOST = 1 << 24 };
    uint64_t *all, before[2] = {0}, inputs = 0, tests = 0;
    const uint64_t mine[2] = {o->inputs_n, o->tests_n};
    int rc = drps_swap_gather(ranks, mine, 2, &all, err);
    for (uint32_t r = 0; r < ranks->count && rc == 0; r++) {
        const uint64_t *of = &all[2 * (size_t)r];
        if (of[0] > INPUTS_MOST || of[1] > INPUTS_MOST)
            rc = drps_swap_fault(r, "too many inputs", err);
        for (int i = 0; i < 2 && r < ranks->rank; i++)
            before[i] += of[i];
        inputs += of[0];
        tests += of[1];
    }
    free(all);
    if (rc == 0 && inputs + tests > INPUTS_MOST)
        rc = drps_err_set(err, DRPS_E_CONFIG, "%" PRIu64 " inputs of all ranks: at most %d",
                          inputs + tests, INPUTS_MOST);
    o->first_input = (uint32_t)before[0];
    o->first_test = (uint32_t)(inputs + before[1]);
    return rc;
}

/* Checks that files which all ranks share are as many on each of them, and as long. */
static int check_shared(const struct swap_ranks *ranks, const struct drps_index_options *o,
                        struct drps_err *err)
{
    const char *const *lists[2] = {o->inputs, o->tests};
    const size_t n[2] = {o->inputs_n, o->tests_n};
    uint64_t *all, mine[2] = {0};
    for (int i = 0; i < 2; i++) {
        mine[i] = drps_checksum(&n[i], sizeof(n[i]));
        for (size_t k = 0; k < n[i]; k++) {
            struct stat st;
            const uint64_t size = stat(lists[i][k], &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
            const uint64_t both[2] = {mine[i], size};
            mine[i] = drps_checksum(both, sizeof(both));
        }
    }
    int rc = drps_swap_gather(ranks, mine, 2, &all, err);
    for (uint32_t r = 1; r < ranks->count && rc == 0; r++)
        if (memcmp(&all[2 * (size_t)r], all, sizeof(mine)) != 0)
            rc = drps_err_set(err, DRPS_E_CONFIG,
                              "rank %" PRIu32 " has other %s than rank 0: where files are shared, "
                              "all must name the same, with the same bytes",
                              r, all[2 * (size_t)r] != all[0] ? "input files" : "test files");
    free(all);
    return rc;
}

/* Counts the lines that the share has of its last file; 0 where it ends with the end of a file. */
static int count_lines(const struct drps_io *io, const char *const *paths, size_t n,
                       const struct drps_reader_share *s, uint64_t *lines_out, struct drps_err *err)
{
    *lines_out = 0;
    if (s->end.path >= n || !s->end.byte) return 0; /* it ends with a file */
    const uint64_t from = s->begin.path == s->end.path ? s->begin.byte : 0;
    return drps_reader_share_lines(io, paths[s->end.path], from, s->end.byte, lines_out, err);
}

int drps_together_share(const struct swap_ranks *ranks, const struct drps_io *io,
                        const char *const *paths, size_t n, struct drps_reader_share *out,
                        struct drps_err *err)
{
    uint64_t *all = NULL, mine[2] = {0};
    int rc = drps_reader_share(io, paths, n, ranks->rank, ranks->count, out, err);
    if (rc == 0) rc = count_lines(io, paths, n, out, &mine[1], err);
    mine[0] = out->end.path;
    if (rc == 0) rc = drps_swap_gather(ranks, mine, 2, &all, err);
    for (size_t r = 0; r < ranks->rank && rc == 0; r++)
        if (all[2 * r] == out->begin.path) out->lines += all[2 * r + 1];
    free(all);
    return rc;
}

/* Checks that the plan's folder can be made on this rank, whose disk may be its own. Rank 0 finds
 * that out when it begins; another rank gives its folder this name only when all is made, which is
 * too late for a refusal. Only a plan is replaced. */
static int check_out(const struct drps_index_options *o, struct drps_err *err)
{
    if (access(o->out, F_OK)) return 0;
    if (!o->force)
        return drps_err_set(err, -EEXIST, "%s exists: name another folder, or have it replaced",
                            o->out);
    char *manifest = drps_path_join(o->out, DRPS_FILE_MANIFEST);
    int rc = manifest ? access(manifest, F_OK) : -1;
    if (!manifest)
        rc = drps_err_set(err, -ENOMEM, "no memory for a path");
    else if (rc)
        rc = drps_err_set(err, -EEXIST, "%s holds no %s, and is not replaced: name another folder",
                          o->out, DRPS_FILE_MANIFEST);
    free(manifest);
    return rc;
}

int drps_together_begin(const struct swap_ranks *ranks, struct drps_index_options *options,
                        char **out_own, struct drps_err *err)
{
    *out_own = NULL;
    int rc = check_options(ranks, options, err);
    if (rc == 0)
        rc =
            options->shared ? check_shared(ranks, options, err) : check_inputs(ranks, options, err);
    if (rc == 0 && !options->shared) rc = number_inputs(ranks, options, err);
    if (rc < 0 || !ranks->rank) return rc;
    rc = check_out(options, err);
    if (rc < 0) return rc;
    if (asprintf(out_own, "%s.rank-%" PRIu32, options->out, ranks->rank) >= 0) return 0;
    *out_own = NULL;
    return drps_err_set(err, -ENOMEM, "no memory for a path");
}

/* ---- End ---- */

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
