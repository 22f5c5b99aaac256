/*
 * Which blocks each step uses, and how far ahead the next use of each lies.
 *
 * One pass backwards over the steps notes each block's first use in the epoch, a second one reads
 * and replaces it step by step: the distance wraps into the next epoch, which repeats this one. The
 * second pass has the steps' blocks from the first one, if there is memory for them. The records
 * come out last step first, into a scratch file, and are copied in order. Where four bytes a block
 * are too many for the memory given, blocks are done a slice at a time, and the pieces of a step
 * joined.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_window.h"

#include "base/drps_alloc.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_steps.h"

enum { SLICE_LEAST = 64 }; /* blocks */

/* The blocks of all steps in the slice, last step first. */
struct kept {
    uint32_t *blocks; /* [room], touched as they are needed */
    size_t n, room;
    size_t at;    /* of the step that the second pass comes to */
    uint32_t *of; /* [steps] how many are the step's */
    int whole;    /* 1: there was room for all */
};

/* What was counted of a step so far. */
struct step_cost {
    uint64_t rows; /* in its blocks */
    uint64_t end;  /* the row behind the last one */
};

struct uses {
    struct steps *lists;
    uint64_t steps, rows;
    const uint32_t *block_first;
    size_t blocks;
    uint32_t *block_of; /* [rows], or NULL: it takes too much memory */
    uint32_t *hint;     /* [rows >> shift, + 1] the block of row i << shift */
    unsigned shift;
    size_t slice, first, end; /* blocks of a slice; the slice [first, end) */
    size_t slices;
    uint32_t *next;            /* [slice] the step that uses the block next */
    uint32_t *list, *distance; /* [cap] of one step */
    size_t list_cap, distance_cap;
    size_t step_n; /* rows of the step that was listed last */
    struct kept kept;
    unsigned char *packed;
    size_t packed_cap;
    struct steps_scratch scratch; /* record slice * steps + (steps - 1 - step) */
    struct step_cost *costs;      /* [steps]; NULL: all blocks are in one slice */
    uint64_t gap;                 /* rows that a request goes through */
    struct drps_uses_result *sum;
};

static int kept_init(struct kept *k, uint64_t steps, size_t blocks, uint64_t memory_bytes)
{
    const uint64_t fit = memory_bytes / sizeof(*k->blocks), most = steps * blocks;
    k->room = (size_t)(fit < most ? fit : most);
    k->blocks = drps_pages_new(k->room * sizeof(*k->blocks));
    k->of = drps_array_new((size_t)steps, sizeof(*k->of));
    return k->blocks && k->of ? 0 : -ENOMEM;
}

static void kept_destroy(struct kept *k)
{
    drps_pages_free(k->blocks, k->room * sizeof(*k->blocks));
    free(k->of);
}

/* Before the first pass over a slice. */
static void kept_clear(struct kept *k)
{
    k->n = k->at = 0;
    k->whole = 1;
}

static void uses_destroy(struct uses *u)
{
    free(u->block_of);
    free(u->hint);
    free(u->next);
    free(u->list);
    free(u->distance);
    free(u->packed);
    kept_destroy(&u->kept);
    free(u->costs);
    drps_steps_scratch_end(&u->scratch);
}

static int check_blocks(const uint32_t *first, size_t blocks, uint64_t steps, struct drps_err *err)
{
    if (first[0] != 0 || steps > INT32_MAX || blocks > UINT32_MAX)
        return drps_err_set(err, -EINVAL, "%zu blocks from row %" PRIu32 ", %" PRIu64 " steps",
                            blocks, first[0], steps);
    for (size_t b = 0; b < blocks; b++)
        if (first[b] >= first[b + 1])
            return drps_err_set(err, -EINVAL,
                                "block %zu begins at row %" PRIu32 ", the next at %" PRIu32, b,
                                first[b], first[b + 1]);
    return 0;
}

static int number_rows(struct uses *u, struct drps_err *err)
{
    u->block_of = drps_array_new((size_t)u->rows, sizeof(*u->block_of));
    if (!u->block_of) return drps_err_set(err, -ENOMEM, "no memory to find the blocks of rows");
    for (uint32_t b = 0; b < u->blocks; b++)
        for (uint32_t row = u->block_first[b]; row < u->block_first[b + 1]; row++)
            u->block_of[row] = b;
    return 0;
}

/* Make about as many hints as there are blocks: then finding a row's block takes a step or two. */
static int make_hints(struct uses *u, struct drps_err *err)
{
    while (u->rows >> u->shift > u->blocks)
        u->shift++;
    size_t n = (size_t)(u->rows >> u->shift) + 1;
    u->hint = drps_array_new(n, sizeof(*u->hint));
    if (!u->hint) return drps_err_set(err, -ENOMEM, "no memory to find the blocks of rows");
    uint32_t b = 0;
    for (size_t i = 0; i < n; i++) {
        while (b + 1 < u->blocks && u->block_first[b + 1] <= (uint64_t)i << u->shift)
            b++;
        u->hint[i] = b;
    }
    return 0;
}

static int uses_init(struct uses *u, const struct drps_io *io, const char *dir,
                     uint64_t memory_bytes, struct drps_err *err)
{
    u->slice = u->blocks;
    if (u->slice > memory_bytes / 2 / sizeof(*u->next))
        u->slice = (size_t)(memory_bytes / 2 / sizeof(*u->next));
    if (u->slice < SLICE_LEAST) u->slice = SLICE_LEAST;
    u->slices = (u->blocks + u->slice - 1) / u->slice;
    if (!u->slices) u->slices = 1; /* of no blocks */
    u->next = drps_array_new(u->slice, sizeof(*u->next));
    if (!u->next)
        return drps_err_set(err, -ENOMEM, "no memory for the next uses of %zu blocks", u->slice);
    if (u->slices > 1) u->costs = calloc((size_t)u->steps + 1, sizeof(*u->costs));
    if ((u->slices > 1 && !u->costs) ||
        kept_init(&u->kept, u->steps, u->blocks, memory_bytes / 8) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %" PRIu64 " steps", u->steps);
    const int small = u->slices == 1 && u->rows <= memory_bytes / 4 / sizeof(*u->block_of);
    int rc = small ? number_rows(u, err) : make_hints(u, err);
    if (rc == 0) rc = drps_steps_scratch_begin(&u->scratch, io, dir, DRPS_FILE_USES_TMP, err);
    return rc;
}

/* List the blocks of rows in u->list. Whether a row begins another block can hardly be predicted:
 * no branch. */
static size_t list_all(struct uses *u, const uint32_t *restrict rows, size_t rows_n)
{
    const uint32_t *restrict block_of = u->block_of;
    uint32_t *restrict list = u->list;
    uint32_t before = UINT32_MAX; /* no block */
    size_t n = 0;
    for (size_t i = 0; i < rows_n; i++) {
        const uint32_t b = block_of[rows[i]];
        list[n] = b;
        n += b != before;
        before = b;
    }
    return n;
}

/* List the blocks of rows that are in the slice. */
static size_t list_slice(struct uses *u, const uint32_t *rows, size_t rows_n)
{
    const uint32_t *block_first = u->block_first;
    const uint64_t begin = block_first[u->first];
    uint64_t end = 0; /* of the block found last */
    size_t n = 0;
    for (size_t i = 0; i < rows_n; i++) {
        if (rows[i] < end || rows[i] < begin) continue;
        uint32_t b = u->hint[rows[i] >> u->shift];
        while (block_first[b + 1] <= rows[i])
            b++;
        if (b >= u->end) break;
        u->list[n++] = b;
        end = block_first[b + 1];
    }
    return n;
}

static int reserve_distances(struct uses *u, size_t n, struct drps_err *err)
{
    return drps_array_reserve(&u->distance, &u->distance_cap, n, sizeof(*u->distance))
               ? drps_err_set(err, -ENOMEM, "no memory for the blocks of a step")
               : 0;
}

/* The step's blocks in the slice: u->list. A step has no more blocks than rows. */
static int list_blocks(struct uses *u, uint64_t step, size_t *n_out, struct drps_err *err)
{
    const uint32_t *rows;
    size_t rows_n;

    *n_out = 0;
    int rc = drps_steps_rows(u->lists, step, u->rows, &rows, &rows_n, err);
    if (rc < 0) return rc;
    u->step_n = rows_n;
    if (drps_array_reserve(&u->list, &u->list_cap, rows_n + 1, sizeof(*u->list)))
        return drps_err_set(err, -ENOMEM, "no memory for the blocks of a step");
    *n_out = u->block_of ? list_all(u, rows, rows_n) : list_slice(u, rows, rows_n);
    return 0;
}

/* Count what reading the n blocks in u->list costs, in runs that go through gaps. */
static void price_step(struct uses *u, uint64_t step, size_t n)
{
    struct drps_uses_result *sum = u->sum;
    struct step_cost alone = {0}, *cost = u->costs ? &u->costs[step] : &alone;
    for (size_t i = 0; i < n; i++) {
        const uint64_t begin = u->block_first[u->list[i]], next = u->block_first[u->list[i] + 1];
        const int goes_on = cost->end && begin - cost->end <= u->gap;
        sum->runs += !goes_on;
        sum->run_rows += next - (goes_on ? cost->end : begin);
        sum->block_use_rows += next - begin;
        cost->rows += next - begin;
        cost->end = next;
    }
    sum->block_uses += n;
    if (cost->rows > sum->max_step_block_rows) sum->max_step_block_rows = cost->rows;
}

/* Keep the n blocks in u->list for the second pass, unless there is no room for them. */
static void keep(struct uses *u, uint64_t step, size_t n)
{
    struct kept *k = &u->kept;
    if (n > k->room - k->n) k->whole = 0;
    if (!k->whole) return;
    memcpy(k->blocks + k->n, u->list, n * sizeof(*k->blocks));
    k->n += n;
    k->of[step] = (uint32_t)n;
}

static int enter_step(struct uses *u, uint64_t step, struct drps_err *err)
{
    size_t n;
    int rc = list_blocks(u, step, &n, err);
    if (rc < 0) return rc;
    for (size_t i = 0; i < n; i++)
        u->next[u->list[i] - u->first] = (uint32_t)(step + u->steps);
    if (!u->first) u->sum->row_uses += u->step_n;
    price_step(u, step, n);
    keep(u, step, n);
    return 0;
}

/* The step's blocks, for the second pass. */
static int find_again(struct uses *u, uint64_t step, const uint32_t **list_out, size_t *n_out,
                      struct drps_err *err)
{
    struct kept *k = &u->kept;
    if (!k->whole) {
        int rc = list_blocks(u, step, n_out, err);
        *list_out = u->list;
        return rc;
    }
    *list_out = k->blocks + k->at;
    *n_out = k->of[step];
    k->at += *n_out;
    return 0;
}

static int pack(struct uses *u, const uint32_t *list, size_t n, struct drps_piece *piece_out,
                struct drps_err *err)
{
    if (drps_array_reserve(&u->packed, &u->packed_cap, 2 * drps_list_encode_bound(n), 1))
        return drps_err_set(err, -ENOMEM, "no memory for the blocks of a step");
    size_t used = drps_list_encode(list, n, u->packed);
    used += drps_numbers_encode(u->distance, n, u->packed + used);
    *piece_out = (struct drps_piece){u->packed, used};
    return 0;
}

static int leave_step(struct uses *u, uint64_t step, struct drps_err *err)
{
    struct drps_piece piece;
    const uint32_t *list;
    size_t n;
    int rc = find_again(u, step, &list, &n, err);

    if (rc == 0) rc = reserve_distances(u, n, err);
    for (size_t i = 0; i < n && rc == 0; i++) {
        uint32_t *next = &u->next[list[i] - u->first];
        u->distance[i] = *next - (uint32_t)step;
        *next = (uint32_t)step;
    }
    if (rc == 0) rc = pack(u, list, n, &piece, err);
    if (rc == 0) rc = drps_recwriter_add(u->scratch.writer, &piece, 1, err);
    return rc;
}

static int compile_slices(struct uses *u, struct drps_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < u->slices && rc == 0; i++) {
        u->first = i * u->slice;
        u->end = u->first + u->slice < u->blocks ? u->first + u->slice : u->blocks;
        kept_clear(&u->kept);
        for (uint64_t s = u->steps; s-- > 0 && rc == 0;)
            rc = enter_step(u, s, err);
        for (uint64_t s = u->steps; s-- > 0 && rc == 0;)
            rc = leave_step(u, s, err);
    }
    return rc;
}

/* Append a piece to u->list and u->distance, which hold n blocks. */
static int append_piece(struct uses *u, const struct drps_piece *piece, size_t *n,
                        struct drps_err *err)
{
    size_t more = drps_list_count(piece->data);
    if (drps_array_reserve(&u->list, &u->list_cap, *n + more, sizeof(*u->list)))
        return drps_err_set(err, -ENOMEM, "no memory for the blocks of a step");
    int rc = reserve_distances(u, *n + more, err);
    if (rc < 0) return rc;
    rc = drps_uses_decode(piece->data, piece->bytes, u->list + *n, u->distance + *n, err);
    *n += more;
    return rc;
}

/* A step's record from its pieces; a single one is the record. */
static int join_step(struct uses *u, struct drps_piece *pieces, struct drps_recwriter *out,
                     struct drps_err *err)
{
    size_t n = 0;
    int rc = 0;

    if (u->slices == 1) {
        n = drps_list_count(pieces[0].data);
    } else {
        for (size_t i = 0; i < u->slices && rc == 0; i++)
            rc = append_piece(u, &pieces[i], &n, err);
        if (rc == 0) rc = pack(u, u->list, n, &pieces[0], err);
    }
    if (n > u->sum->max_step_blocks) u->sum->max_step_blocks = n;
    return rc < 0 ? rc : drps_recwriter_add(out, pieces, 1, err);
}

static int join_steps(struct uses *u, struct drps_recwriter *out, struct drps_err *err)
{
    int rc = 0;
    struct drps_piece *pieces = drps_array_new(u->slices, sizeof(*pieces));

    if (!pieces) return drps_err_set(err, -ENOMEM, "no memory for %zu pieces of a step", u->slices);
    for (uint64_t s = 0; s < u->steps && rc == 0; s++) {
        rc = drps_steps_scratch_read(&u->scratch, u->steps - 1 - s, u->steps, u->slices, pieces,
                                     err);
        if (rc == 0) rc = join_step(u, pieces, out, err);
    }
    free(pieces);
    return rc;
}

static int write_uses(struct uses *u, const struct drps_io *io, const char *dir,
                      struct drps_err *err)
{
    struct drps_recwriter *out;
    char *path = drps_path_join(dir, DRPS_FILE_USES);

    if (!path) return drps_err_set(err, -ENOMEM, "no memory to write %s/" DRPS_FILE_USES, dir);
    int rc = drps_recwriter_open(io, path, DRPS_KIND_USES, &out, err);
    free(path);
    if (rc < 0) return rc;
    rc = join_steps(u, out, err);
    if (rc == 0) rc = drps_recwriter_finish(out, err);
    drps_recwriter_close(out);
    return rc;
}

int drps_uses_compile(const struct drps_io *io, const char *dir, uint64_t steps,
                      const uint32_t *block_first, size_t blocks, uint64_t gap,
                      uint64_t memory_bytes, struct drps_uses_result *result_out,
                      struct drps_err *err)
{
    struct uses u = {.steps = steps,
                     .rows = block_first[blocks],
                     .block_first = block_first,
                     .blocks = blocks,
                     .gap = gap,
                     .sum = result_out};

    *result_out = (struct drps_uses_result){0};
    int rc = check_blocks(block_first, blocks, steps, err);
    if (rc < 0) return rc;
    rc = drps_steps_open(io, dir, DRPS_FILE_ROWS, DRPS_KIND_ROWS, steps, memory_bytes / 8, &u.lists,
                         err);
    if (rc < 0) return rc;
    rc = uses_init(&u, io, dir, memory_bytes, err);
    if (rc == 0) rc = compile_slices(&u, err);
    if (rc == 0) rc = drps_steps_scratch_turn(&u.scratch, err);
    if (rc == 0) rc = write_uses(&u, io, dir, err);
    drps_steps_close(u.lists);
    uses_destroy(&u);
    return rc;
}

int drps_uses_decode(const void *record, size_t bytes, uint32_t *blocks_out, uint32_t *distance_out,
                     struct drps_err *err)
{
    const unsigned char *at = record;
    size_t a, b;
    uint32_t zero = 0;

    int rc = drps_list_decode(at, bytes, blocks_out, &a, err);
    if (rc < 0) return rc;
    uint32_t n = drps_list_count(at);
    if (bytes - a < 4 || drps_list_count(at + a) != n)
        return drps_err_set(err, DRPS_E_CORRUPT, "%" PRIu32 " blocks, but not as many distances",
                            n);
    rc = drps_numbers_decode(at + a, bytes - a, distance_out, &b, err);
    if (rc < 0) return rc;
    for (uint32_t i = 0; i < n; i++)
        zero |= distance_out[i] == 0;
    if (zero || a + b != bytes)
        return drps_err_set(err, DRPS_E_CORRUPT, "%" PRIu32 " blocks in %zu bytes of %zu%s", n,
                            a + b, bytes, zero ? ", one with distance 0" : "");
    return 0;
}
