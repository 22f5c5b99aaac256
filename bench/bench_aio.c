/*
 * How fast are the engines of the asynchronous file? Pieces of 16 KiB to 1 MiB, in order and at
 * random, written and read at depth 1, 8 and 32 on a preallocated file. This is the one benchmark
 * of a private header: it asks about a part, not about a module.
 *
 *   bench_aio FOLDER [FILE_BYTES [SECONDS]]
 *
 * Each figure is of one pass over the file, default 1 GiB, cut off after SECONDS, default 2. The
 * file is written once before, so that no figure is of blocks that were never written; it goes away
 * at the end. A disk of a virtual machine may have a cache of its own beyond O_DIRECT.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/drps_alloc.h"
#include "base/drps_clock.h"
#include "base/drps_rng.h"
#include "base/drps_size.h"
#include "storage/io/drps_aio.h"

enum { DEPTH = 32, PIECE_MAX = 1 << 20, BUFFERS_BYTES = DEPTH * PIECE_MAX };

struct setting {
    const char *path;
    char *buffers;
    uint64_t file_bytes;
    double seconds;
};

struct pass {
    uint32_t piece;
    unsigned depth;
    int random, write;
};

/* Piece i of the pass: every piece once where their number is a power of two. */
static uint64_t offset_of(const struct pass *p, uint64_t i, uint64_t pieces)
{
    uint64_t at = p->random ? (i * UINT64_C(2654435761) + 12345) % pieces : i;
    return at * p->piece;
}

/* MB/s of one pass. */
static int time_pass(struct drps_aio *aio, const struct setting *g, const struct pass *p,
                     double *mbs_out, struct drps_err *err)
{
    struct drps_aio_op ops[DEPTH];
    uint32_t tags[DEPTH];
    uint64_t pieces = g->file_bytes / p->piece, next = 0, finished = 0;
    size_t n = p->depth;
    uint64_t start = drps_clock_ns();

    for (unsigned i = 0; i < p->depth; i++)
        tags[i] = i;
    for (;;) { /* each tag that comes back goes out again with its buffer */
        size_t m = 0;
        int more = drps_seconds_since(start) < g->seconds;
        for (size_t i = 0; i < n && more && next < pieces; i++)
            ops[m++] = (struct drps_aio_op){.buf = g->buffers + (size_t)tags[i] * PIECE_MAX,
                                            .bytes = p->piece,
                                            .offset = offset_of(p, next++, pieces),
                                            .write = p->write,
                                            .tag = tags[i]};
        int rc = drps_aio_submit(aio, ops, m, err);
        if (rc < 0) return rc;
        if (!drps_aio_under_way(aio)) break;
        rc = drps_aio_wait(aio, 1, tags, DEPTH, &n, err);
        if (rc < 0) return rc;
        finished += n;
    }
    *mbs_out = (double)finished * p->piece * 1e-6 / drps_seconds_since(start);
    return 0;
}

static int time_engine(struct drps_aio *aio, const struct setting *g, struct drps_err *err)
{
    static const uint32_t pieces[] = {16 << 10, 64 << 10, 256 << 10, 1 << 20};
    static const unsigned depths[] = {1, 8, DEPTH};
    struct drps_aio_about about;
    char size[32];
    double mbs;
    drps_aio_about(aio, &about);
    printf("%s, %s, buffers %sregistered%s%s; MB/s\n", about.engine,
           about.direct ? "O_DIRECT" : "page cache", about.registered ? "" : "not ",
           about.why[0] ? ": " : "", about.why);
    printf("%10s %6s %10s %10s %10s %10s\n", "piece", "depth", "seq write", "seq read", "rnd write",
           "rnd read");
    struct setting whole = *g;
    whole.seconds = 1e9;
    int rc = time_pass(aio, &whole, &(struct pass){PIECE_MAX, 8, 0, 1}, &mbs, err);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces) && rc == 0; i++)
        for (size_t d = 0; d < sizeof(depths) / sizeof(*depths) && rc == 0; d++) {
            printf("%10s %6u", drps_size_format(pieces[i], size, sizeof(size)), depths[d]);
            for (int k = 0; k < 4 && rc == 0; k++) {
                struct pass p = {pieces[i], depths[d], k / 2, k % 2 == 0};
                rc = time_pass(aio, g, &p, &mbs, err);
                if (rc == 0) printf(" %10.0f", mbs);
                (void)fflush(stdout);
            }
            printf("\n");
        }
    return rc;
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct setting g = {.file_bytes = UINT64_C(1) << 30, .seconds = 2};
    int rc = 0;
    if (argc > 2) rc = drps_size_parse(argv[2], &g.file_bytes, &err);
    if (argc > 3) g.seconds = atof(argv[3]);
    if (rc < 0 || argc < 2 || argc > 4 || g.file_bytes < PIECE_MAX || g.file_bytes % PIECE_MAX ||
        !(g.seconds > 0)) {
        fprintf(stderr, "usage: bench_aio FOLDER [FILE_BYTES (whole MiB) [SECONDS]]\n%s\n",
                err.text);
        return 2;
    }
    char *path = drps_path_join(argv[1], "bench_aio.blocks");
    g.path = path;
    g.buffers = drps_pages_new(BUFFERS_BYTES);
    if (!path || !g.buffers) abort();
    for (size_t i = 0; i < BUFFERS_BYTES / sizeof(uint64_t); i++)
        ((uint64_t *)(void *)g.buffers)[i] =
            drps_rng_at(1, i); /* nothing that a disk could shorten */
    for (int threads_only = 0; threads_only < 2 && rc == 0; threads_only++) {
        struct drps_aio_config config = {.io = drps_io_os(),
                                         .path = path,
                                         .file_bytes = g.file_bytes,
                                         .buffers = g.buffers,
                                         .buffers_bytes = BUFFERS_BYTES,
                                         .depth = DEPTH,
                                         .threads_only = threads_only};
        struct drps_aio *aio;
        rc = drps_aio_open(&config, &aio, &err);
        if (rc < 0) break;
        rc = time_engine(aio, &g, &err);
        drps_aio_close(aio);
        (void)unlink(path);
    }
    drps_pages_free(g.buffers, BUFFERS_BYTES);
    free(path);
    if (rc < 0) fprintf(stderr, "bench_aio: %s\n", err.text);
    return rc < 0;
}
