/* What each rank reads: files of its own, numbered over all ranks, or its share of files that all
 * have (drps_together.h). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_checksum.h"
#include "index/drps_index.h"
#include "index/together/begin.h"

/* Hashes a file's name, size and first bytes; 0: it is empty, no file, or cannot be read, which the
 * reader says. */
static uint64_t hash_file(const struct drps_io *io, const char *path)
{
    enum { LOOK_BYTES = 64 << 10 };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    uint64_t size = 0, hashes[3] = {0};
    char *bytes = malloc(LOOK_BYTES);
    struct stat st;
    int fd = -1;
    hashes[0] = drps_checksum(name, strlen(name));
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
static int check_distinct(const struct swap_ranks *ranks, const struct drps_index_options *o,
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

int drps_together_check_inputs(const struct swap_ranks *ranks, struct drps_index_options *o,
                               struct drps_err *err)
{
    if (o->shared) return check_shared(ranks, o, err);
    int rc = check_distinct(ranks, o, err);
    return rc == 0 ? number_inputs(ranks, o, err) : rc;
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
