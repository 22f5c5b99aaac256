/*
 * Windows and slots: examples by hand, random plans against a plain search for uses, the budget of
 * every pair, the same bytes whatever the memory, records that are damaged, and plans whose windows
 * are not those of their rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "index/plan/codec/drps_distances.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_window.h"
#include "index/verify/verify.h"
#include "support/fault_io.h"
#include "support/lists.h"

static struct drps_window_options options_for(const struct lists *l, uint64_t budget_rows,
                                              uint64_t memory)
{
    return (struct drps_window_options){.steps = l->steps,
                                        .train_steps = l->train,
                                        .rows = l->rows,
                                        .row_bytes = 12,
                                        .budget_bytes = budget_rows * 12 + 5,
                                        .memory_bytes = memory};
}

enum { ALL = DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV };

static const char *const scratch_names[] = {"windows.rows.tmp", "windows.next.tmp",
                                            "windows.prev.tmp"};

static void assert_no_scratch(const char *dir)
{
    for (int i = 0; i < 3; i++) {
        char *path = must(drps_path_join(dir, scratch_names[i]));
        assert_int_not_equal(access(path, F_OK), 0);
        free(path);
    }
}

/* Every record of a file. */
struct stored {
    size_t k;
    void **record;
    size_t *bytes;
};

static void stored_read_file(struct stored *st, const char *dir, const char *name, uint32_t kind)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recfile *f;
    char *path = must(drps_path_join(dir, name));
    assert_ok(drps_recfile_open(drps_io_os(), path, kind, &f, &err), &err);
    st->k = (size_t)drps_recfile_count(f);
    st->record = must(calloc(st->k + 1, sizeof(*st->record)));
    st->bytes = must(calloc(st->k + 1, sizeof(*st->bytes)));
    for (size_t i = 0; i < st->k; i++) {
        st->bytes[i] = (size_t)drps_recfile_bytes(f, i);
        st->record[i] = must(malloc((size_t)drps_recfile_run_bytes(f, i, 1)));
        assert_ok(drps_recfile_read(f, i, 1, st->record[i], &err), &err);
    }
    drps_recfile_close(f);
    free(path);
}

/* dir/windows.rec */
static void stored_read(struct stored *st, const char *dir)
{
    stored_read_file(st, dir, "windows.rec", DRPS_KIND_WINDOWS);
    assert_no_scratch(dir);
}

static void stored_write(const struct stored *st, const char *dir, const char *name, uint32_t kind)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    char *path = must(drps_path_join(dir, name));
    assert_ok(drps_recwriter_open(drps_io_os(), path, kind, &w, &err), &err);
    for (size_t i = 0; i < st->k; i++) {
        struct drps_piece piece = {st->record[i], st->bytes[i]};
        assert_ok(drps_recwriter_add(w, &piece, 1, &err), &err);
    }
    assert_ok(drps_recwriter_finish(w, &err), &err);
    drps_recwriter_close(w);
    free(path);
}

static void stored_free(struct stored *st)
{
    for (size_t i = 0; i < st->k; i++)
        free(st->record[i]);
    free(st->record);
    free(st->bytes);
}

/* touched[row] for the rows of steps [from, to). */
static void touch_rows(const struct lists *l, uint64_t from, uint64_t to, unsigned char *touched)
{
    for (uint64_t s = from; s < to; s++)
        for (size_t i = 0; i < l->n[s]; i++)
            touched[l->list[s][i]] = 1;
}

/* Ranks of the rows that window k of n touches, or both of its neighbours; UINT32_MAX elsewhere.
 * Returns how many there are. */
static uint32_t rank_rows(const struct lists *l, unsigned char *const *touched, size_t k,
                          size_t n_windows, uint32_t *rank)
{
    const unsigned char *before = touched[(k + n_windows - 1) % n_windows];
    const unsigned char *after = touched[(k + 1) % n_windows];
    uint32_t n = 0;
    memset(rank, 0xff, l->rows * sizeof(*rank));
    for (uint64_t r = 0; r < l->rows; r++)
        if (touched[k][r] || (before[r] && after[r])) rank[r] = 0;
    for (uint64_t r = 0; r < l->rows; r++)
        if (rank[r] == 0) rank[r] = n++;
    return n;
}

static struct drps_plan_info info_for(const struct lists *l, uint64_t windows)
{
    return (struct drps_plan_info){.rows = l->rows,
                                   .batches = l->train,
                                   .eval_batches = l->steps - l->train,
                                   .windows = windows};
}

/* The checks of a plan that are about windows; the first problem. */
static int verify_windows(const char *dir, const struct drps_plan_info *info,
                          const struct drps_window_result *r, struct drps_err *err)
{
    struct drps_plan plan = {.io = drps_io_os(), .dir = (char *)dir, .info = *info};
    struct drps_findings found = {0};
    struct verify v = {.plan = &plan,
                       .info = &plan.info,
                       .io = plan.io,
                       .steps = info->batches + info->eval_batches,
                       .found = &found};
    plan.info.working_set_rows = r->working_set_rows;
    plan.info.max_window_rows = r->max_window_rows;
    plan.info.window_rows = r->rows_touched;
    plan.info.window_rows_kept = r->rows_kept;
    plan.info.window_rows_moved = r->rows_moved;
    int rc = drps_verify_slots(&v, err);
    if (rc == 0) rc = drps_verify_distances(&v, err);
    return rc == 0 ? drps_findings_result(&found, err) : rc;
}

/* slots.rec for the steps of one window, of which `rank` has the ranks of the rows. */
static void check_slots(const struct lists *l, const struct stored *slots,
                        const struct drps_window *w, const uint32_t *rank)
{
    struct drps_err err = DRPS_ERR_INIT;
    for (uint64_t s = w->first_step; s < w->first_step + w->steps; s++) {
        size_t used, n = l->n[s];
        assert_int_equal(drps_list_count(slots->record[s]), n);
        uint32_t *slot = must(calloc(n + 1, sizeof(*slot)));
        assert_ok(drps_list_decode(slots->record[s], slots->bytes[s], slot, &used, &err), &err);
        assert_int_equal(used, slots->bytes[s]);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(slot[i], rank[l->list[s][i]]);
        free(slot);
    }
}

/* Windows to the next, or with step k - 1 the last, one that has the row. */
static uint32_t search(uint32_t *const *rank, size_t windows, size_t k, size_t step, uint32_t row)
{
    uint32_t distance = 1;
    for (k = (k + step) % windows; rank[k][row] == UINT32_MAX; k = (k + step) % windows)
        distance++;
    return distance;
}

/* Everything that windows.rec and slots.rec say, against the definition. */
static void check_stored(const struct lists *l, const struct stored *st, uint64_t budget_rows,
                         const struct drps_window_result *r)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window w = {0};
    struct drps_window_result want = {.windows = st->k};
    uint32_t **rank = must(calloc(st->k + 1, sizeof(*rank)));
    unsigned char **touched = must(calloc(st->k + 1, sizeof(*touched)));
    uint64_t next_step = 0;
    struct stored slots;

    stored_read_file(&slots, l->dir, "slots.rec", DRPS_KIND_SLOTS);
    assert_int_equal(slots.k, l->steps);

    for (size_t k = 0; k < st->k; k++) {
        assert_ok(drps_window_decode(st->record[k], st->bytes[k], DRPS_WINDOW_ROWS, &w, &err),
                  &err);
        assert_int_equal(w.windows, st->k);
        assert_int_equal(w.first_step, next_step);
        assert_true(w.steps > 0);
        next_step += w.steps;
        assert_int_equal(w.evaluation, w.first_step >= l->train);
        if (!w.evaluation) assert_true(next_step <= l->train);
        touched[k] = must(calloc(l->rows + 1, 1));
        touch_rows(l, w.first_step, next_step, touched[k]);
    }
    for (size_t k = 0; k < st->k; k++) {
        assert_ok(drps_window_decode(st->record[k], st->bytes[k], DRPS_WINDOW_ROWS, &w, &err),
                  &err);
        rank[k] = must(malloc((l->rows + 1) * sizeof(uint32_t)));
        assert_int_equal(rank_rows(l, touched, k, st->k, rank[k]), w.n);
        for (size_t i = 0; i < w.n; i++)
            assert_int_equal(rank[k][w.rows[i]], i);
        check_slots(l, &slots, &w, rank[k]);
        want.rows_touched += w.n;
        if (w.n > want.max_window_rows) want.max_window_rows = w.n;
    }
    assert_int_equal(next_step, l->steps);
    for (size_t k = 0; k < st->k; k++) {
        size_t after = (k + 1) % st->k;
        uint64_t both = 0;
        assert_ok(drps_window_decode(st->record[k], st->bytes[k], ALL, &w, &err), &err);
        for (uint64_t row = 0; row < l->rows; row++)
            both += rank[k][row] != UINT32_MAX || rank[after][row] != UINT32_MAX;
        if (both > budget_rows)
            fail_msg("windows %zu and %zu have %" PRIu64 " rows", k, after, both);
        if (both > want.working_set_rows) want.working_set_rows = both;
        size_t arriving = 0, leaving = 0;
        for (size_t i = 0; i < w.n; i++) {
            assert_int_equal(w.next[i], search(rank, st->k, k, 1, w.rows[i]));
            assert_int_equal(w.prev[i], search(rank, st->k, k, st->k - 1, w.rows[i]));
            leaving += w.next[i] > 1;
            arriving += w.prev[i] > 1;
        }
        assert_int_equal(w.max_rows, want.max_window_rows);
        assert_int_equal(w.leaving, leaving);
        assert_int_equal(w.arriving, arriving);
        want.rows_kept += w.n - leaving;
    }
    want.rows_moved = want.rows_touched - want.rows_kept;
    assert_memory_equal(&want, r, sizeof(want));
    struct drps_plan_info info = info_for(l, st->k);
    assert_ok(verify_windows(l->dir, &info, r, &err), &err);
    stored_free(&slots);
    for (size_t k = 0; k < st->k; k++) {
        free(rank[k]);
        free(touched[k]);
    }
    free(rank);
    free(touched);
    drps_window_free(&w);
}

static uint64_t most_step_rows(const struct lists *l)
{
    uint64_t most = 0;
    for (uint64_t s = 0; s < l->steps; s++)
        if (l->n[s] > most) most = l->n[s];
    return most;
}

static void test_window_example(void **state)
{
    (void)state;
    /*
     * C = 4 rows, m = 2: the bound is 2 throughout. Step 1 would make window 0 {0 1 2}, so it
     * begins window 1; step 2 would make that {1 2 3}; steps 2 and 3 have rows {3 4} together; step
     * 4 evaluates. Row 1 stays through window 2, which does not use it, but 1 and 3 do.
     */
    const char *const text[] = {"0 1", "1 2", "3", "3 4", "0 1"};
    static const struct {
        uint32_t steps, n, rows[3], next[3], prev[3], leaving, arriving;
    } want[] = {{.steps = 1,
                 .n = 2,
                 .rows = {0, 1},
                 .next = {3, 1},
                 .prev = {1, 1},
                 .leaving = 1,
                 .arriving = 0},
                {.steps = 1,
                 .n = 2,
                 .rows = {1, 2},
                 .next = {1, 4},
                 .prev = {1, 4},
                 .leaving = 1,
                 .arriving = 1},
                {.steps = 2,
                 .n = 3,
                 .rows = {1, 3, 4},
                 .next = {1, 4, 4},
                 .prev = {1, 4, 4},
                 .leaving = 2,
                 .arriving = 2},
                {.steps = 1,
                 .n = 2,
                 .rows = {0, 1},
                 .next = {1, 1},
                 .prev = {3, 1},
                 .leaving = 0,
                 .arriving = 1}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct drps_window w = {0};
    struct stored st;
    struct lists l;
    lists_from_text(&l, text, 5, 4, 5);
    struct drps_window_options o = options_for(&l, 4, 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    assert_int_equal(r.windows, 4);
    assert_int_equal(r.rows_touched, 9);
    assert_int_equal(r.rows_kept, 5); /* row 1 always, row 0 from the last to the first */
    assert_int_equal(r.rows_moved, 4);
    assert_int_equal(r.max_window_rows, 3);
    assert_int_equal(r.working_set_rows, 4);
    stored_read(&st, l.dir);
    for (size_t k = 0; k < 4; k++) {
        assert_ok(drps_window_decode(st.record[k], st.bytes[k], ALL, &w, &err), &err);
        assert_int_equal(w.steps, want[k].steps);
        assert_int_equal(w.n, want[k].n);
        assert_int_equal(w.evaluation, k == 3);
        assert_memory_equal(w.rows, want[k].rows, 4 * w.n);
        assert_memory_equal(w.next, want[k].next, 4 * w.n);
        assert_memory_equal(w.prev, want[k].prev, 4 * w.n);
        assert_int_equal(w.leaving, want[k].leaving);
        assert_int_equal(w.arriving, want[k].arriving);
    }
    check_stored(&l, &st, 4, &r);
    drps_window_free(&w);
    stored_free(&st);
    lists_free(&l);
}

/* Windows of {a, b}, {b, c}, {c} and {a}, and the first one byte by byte. */
static void test_window_golden(void **state)
{
    (void)state;
    /* Rows 0, 1 and 2 are a, b and c; three more in each step keep the windows apart. */
    const char *const text[] = {"0 1 3 4 5", "1 2 6 7 8", "2 9 10 11 12", "0 13 14 15 16"};
    static const uint32_t next[4][2] = {{3, 1}, {3, 1}, {3, 4}, {1, 4}};
    static const uint32_t prev[4][2] = {{1, 3}, {1, 3}, {1, 4}, {3, 4}};
    static const char bytes[] = "\0\0\0\0"
                                "\2\0\0\0"
                                "\0\0\0\0\0\0\0\0"
                                "\1\0\0\0\0\0\0\0" /* 2 rows, step 0 */
                                "\4\0\0\0"
                                "\2\0\0\0"
                                "\1\0\0\0"
                                "\1\0\0\0" /* windows, most, arriving, leaving */
                                "\1\0\0\0"
                                "\0\0\0\0"
                                "\13\0\0\0\0\0\0\0"
                                "\13\0\0\0\0\0\0\0" /* 1 section */
                                "\311\203\266\347\217\100\257\237"
                                "\2\0\0\0"
                                "\1"
                                "\1\0\0\0"
                                "\1"
                                "\1" /* next 3, 1 */
                                "\2\0\0\0"
                                "\2"
                                "\1\0\0\0"
                                "\1"
                                "\1" /* prev 1, 3 */
                                "\2\0\0\0"
                                "\0"
                                "\0\0"
                                "\0\0\0"; /* rows 0, 1 */
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct drps_window w = {0};
    struct stored st;
    struct lists l;
    lists_from_text(&l, text, 4, 4, 17);
    struct drps_window_options o = options_for(&l, 10, 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    assert_int_equal(r.windows, 4);
    stored_read(&st, l.dir);
    check_stored(&l, &st, 10, &r);
    for (size_t k = 0; k < 4; k++) {
        assert_ok(drps_window_decode(st.record[k], st.bytes[k], ALL, &w, &err), &err);
        assert_memory_equal(w.next, next[k], 8);
        assert_memory_equal(w.prev, prev[k], 8);
    }
    /* Window 0 with a and b alone. */
    assert_ok(drps_window_decode(bytes, sizeof(bytes) - 1, ALL, &w, &err), &err);
    assert_memory_equal(w.next, next[0], 8);
    assert_memory_equal(w.prev, prev[0], 8);
    assert_ok(drps_window_check_front(bytes, w.front_bytes, &err), &err);
    drps_window_free(&w);
    stored_free(&st);
    lists_free(&l);
}

/* The front alone has both distances; a byte of it that changed, or is missing, is found. */
static void test_window_front(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct stored st;
    struct lists l;
    lists_random(&l, &rng, 200000, 8, 200);
    struct drps_window_options o = options_for(&l, 2 * most_step_rows(&l), 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    stored_read(&st, l.dir);
    for (size_t k = 0; k < st.k; k++) {
        struct drps_window all = {0}, some = {0};
        assert_ok(drps_window_decode(st.record[k], st.bytes[k], ALL, &all, &err), &err);
        const size_t n = all.front_bytes;
        if (!all.n) { /* steps without rows: there is nothing but the front */
            assert_int_equal(n, st.bytes[k]);
            drps_window_free(&all);
            continue;
        }
        assert_true(n < st.bytes[k]);
        unsigned char *front = must(malloc(n)); /* exactly as long */
        memcpy(front, st.record[k], n);
        assert_ok(drps_window_check_front(front, n, &err), &err);
        assert_ok(drps_window_decode(front, n, DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV, &some, &err),
                  &err);
        assert_memory_equal(some.next, all.next, 4 * all.n);
        assert_memory_equal(some.prev, all.prev, 4 * all.n);
        assert_int_equal(drps_window_decode(front, n, ALL, &some, NULL), DRPS_E_CORRUPT);
        assert_int_equal(drps_window_check_front(front, n - 1, NULL), DRPS_E_CORRUPT);
        assert_int_equal(drps_window_check_front(front, 8, NULL), DRPS_E_CORRUPT);
        const size_t at = random_below(&rng, n);
        front[at] ^= 1;
        assert_int_equal(drps_window_check_front(front, n, &err), DRPS_E_CORRUPT);
        drps_err_clear(&err);
        free(front);
        drps_window_free(&all);
        drps_window_free(&some);
    }
    stored_free(&st);
    lists_free(&l);
}

/* Ways as plain distances, and where they are said to end. */
static void assert_ways(const uint64_t *marks, size_t at, const uint32_t *far, const uint32_t *want,
                        size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const int marked = marks[(at + i) / 64] >> (at + i) % 64 & 1;
        assert_int_equal(marked ? far[k] : 1, want[i]);
        k += (size_t)marked;
    }
    for (size_t i = at + n; i % 64; i++)
        assert_int_equal(marks[i / 64] >> i % 64 & 1, 0);
}

/* Marks are appended at any bit, and leave those before it alone. */
static void assert_far(const unsigned char *packed, size_t bytes, const uint32_t *want, size_t n,
                       const struct distances_table *table)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *far = must(calloc(n + 1, sizeof(*far)));
    uint64_t *marks = must(malloc(DRPS_DISTANCE_WORDS(n + 64) * sizeof(*marks)));
    size_t far_n, used, want_far = 0;
    for (size_t i = 0; i < n; i++)
        want_far += want[i] > 1;
    for (size_t at = 0; at < 64; at += 1 + n / 50) {
        memset(marks, 0xff, DRPS_DISTANCE_WORDS(n + 64) * sizeof(*marks));
        if (at) marks[0] = UINT64_MAX >> (64 - at);
        assert_ok(
            drps_distances_decode_far(packed, bytes, table, marks, at, far, &far_n, &used, &err),
            &err);
        assert_int_equal(far_n, want_far);
        assert_int_equal(used, bytes);
        assert_ways(marks, at, far, want, n);
        for (size_t i = 0; i < at; i++)
            assert_true(marks[0] >> i & 1);
    }
    free(marks);
    free(far);
}

static void assert_distances(const uint32_t *want, size_t n, uint32_t most)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct distances_table table;
    drps_distances_table_init(&table, most);
    uint32_t *numbers = must(calloc(n + 1, sizeof(*numbers)));
    unsigned char *packed = must(malloc(drps_distances_encode_bound(n)));
    size_t used, far, want_far = 0;
    for (size_t i = 0; i < n; i++)
        want_far += want[i] > 1;
    memcpy(numbers, want, n * sizeof(*want));
    const size_t bytes = drps_distances_encode(numbers, n, most, packed);
    assert_true(bytes <= drps_distances_encode_bound(n));
    assert_memory_equal(numbers, want, n * sizeof(*want));
    unsigned char *exact = must(malloc(bytes)); /* a sanitizer sees one byte too far */
    memcpy(exact, packed, bytes);
    assert_ok(drps_distances_decode(exact, bytes, &table, numbers, &far, &used, &err), &err);
    assert_memory_equal(numbers, want, n * sizeof(*want));
    assert_int_equal(far, want_far);
    assert_int_equal(used, bytes);
    assert_far(exact, bytes, want, n, &table);
    for (size_t i = 8 + (n + 7) / 8; i < bytes; i++) { /* none is more than there are windows */
        exact[i] ^= 0xff;
        const int rc = drps_distances_decode(exact, bytes, &table, numbers, &far, &used, NULL);
        assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
        for (size_t k = 0; rc == 0 && k < n; k++)
            assert_in_range(numbers[k], 1, most);
        exact[i] ^= 0xff;
    }
    assert_int_equal(drps_distances_decode(exact, bytes - 1, &table, numbers, &far, &used, NULL),
                     DRPS_E_CORRUPT);
    if (n) { /* another mark: as many numbers as marks no more */
        exact[4 + (n - 1) / 8] ^= (unsigned char)(1 << (n - 1) % 8);
        assert_int_equal(drps_distances_decode(exact, bytes, &table, numbers, &far, &used, NULL),
                         DRPS_E_CORRUPT);
        exact[4 + (n - 1) / 8] ^= (unsigned char)(1 << (n - 1) % 8);
    }
    if (n % 8) { /* a mark of a number that is not there */
        exact[4 + n / 8] |= 0x80;
        assert_int_equal(drps_distances_decode(exact, bytes, &table, numbers, &far, &used, NULL),
                         DRPS_E_CORRUPT);
    }
    free(exact);
    free(packed);
    free(numbers);
}

/* The bytes that index/plan/codec/drps_distances.h describes: with 200 windows, a distance has 3,
 * 6 or 8 bits. */
static void test_window_distances_golden_bytes(void **state)
{
    static const uint32_t distances[] = {1, 200, 2, 1, 9, 10, 66};
    static const unsigned char want[] = {7,    0,    0,   0, /* n */
                                         0x76,               /* all but 0 and 3 */
                                         5,    0,    0,   0, /* far */
                                         0x94, 3,            /* codes 0 1 1 2, 3 */
                                         0x38, 0x02, 0x04};
    unsigned char packed[64];
    (void)state;
    assert_int_equal(drps_distances_encode(distances, 7, 200, packed), sizeof(want));
    assert_memory_equal(packed, want, sizeof(want));
}

/* Any mixture of near and far, at any length. */
static void test_window_distances(void **state)
{
    (void)state;
    enum { MOST = 100000, NUMBERS = 70 };
    struct random_source rng = random_begin(__func__);
    uint32_t numbers[NUMBERS];
    for (size_t n = 0; n <= NUMBERS; n++)
        for (unsigned near = 0; near <= 4; near++) { /* quarters of them are 1 */
            uint32_t most = 1;
            for (size_t i = 0; i < n; i++) {
                numbers[i] =
                    random_below(&rng, 4) < near ? 1 : 2 + (uint32_t)random_below(&rng, MOST);
                most = numbers[i] > most ? numbers[i] : most;
            }
            assert_distances(numbers, n, most);
            assert_distances(numbers, n, most + (uint32_t)random_below(&rng, MOST));
        }
}

/* Each part alone is what it is among the others; what is not asked for is not touched. */
static void test_window_decode_parts(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct stored st;
    struct lists l;
    lists_random(&l, &rng, 300000, 12, 3000);
    struct drps_window_options o = options_for(&l, 2 * most_step_rows(&l), 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    stored_read(&st, l.dir);
    for (size_t k = 0; k < st.k; k++) {
        struct drps_window all = {0}, some = {0};
        assert_ok(drps_window_decode(st.record[k], st.bytes[k], ALL, &all, &err), &err);
        assert_ok(drps_window_head(st.record[k], st.bytes[k], &some, &err), &err);
        assert_int_equal(some.n, all.n);
        assert_null(some.rows);
        for (unsigned parts = 0; parts <= ALL; parts++) {
            assert_ok(drps_window_decode(st.record[k], st.bytes[k], parts, &some, &err), &err);
            if (!some.n) continue;
            if (parts == 1) assert_null(some.next);
            if (parts & DRPS_WINDOW_ROWS) assert_memory_equal(some.rows, all.rows, 4 * all.n);
            if (parts & DRPS_WINDOW_NEXT) assert_memory_equal(some.next, all.next, 4 * all.n);
            if (parts & DRPS_WINDOW_PREV) assert_memory_equal(some.prev, all.prev, 4 * all.n);
        }
        assert_int_equal(drps_window_decode(st.record[k], st.bytes[k], 8, &some, NULL), -EINVAL);
        for (int with_rows = 0; with_rows < 2; with_rows++) {
            struct drps_use_distances next = {must(calloc(DRPS_DISTANCE_WORDS(all.n), 8)),
                                              must(calloc(all.n + 1, 4)), 0};
            struct drps_use_distances prev = {must(calloc(DRPS_DISTANCE_WORDS(all.n), 8)),
                                              must(calloc(all.n + 1, 4)), 0};
            const size_t n = with_rows ? st.bytes[k] : all.front_bytes;
            assert_ok(drps_window_decode_use_distances(st.record[k], n, with_rows, &some, &next,
                                                       &prev, &err),
                      &err);
            assert_int_equal(some.n, all.n);
            assert_int_equal(next.n_far, all.leaving);
            assert_int_equal(prev.n_far, all.arriving);
            assert_ways(next.marks, 0, next.far, all.next, all.n);
            assert_ways(prev.marks, 0, prev.far, all.prev, all.n);
            if (with_rows && all.n) assert_memory_equal(some.rows, all.rows, 4 * all.n);
            free(next.marks);
            free(next.far);
            free(prev.marks);
            free(prev.far);
        }
        drps_window_free(&all);
        drps_window_free(&some);
    }
    stored_free(&st);
    lists_free(&l);
}

/* Into another folder, which is all that is written to. */
static void test_window_other_folder(void **state)
{
    (void)state;
    const char *const text[] = {"0 1", "1 2", "3", "3 4", "0 1"};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct stored st;
    struct lists l, other;
    lists_from_text(&l, text, 5, 4, 5);
    lists_from_text(&other, text, 0, 0, 5);
    struct drps_window_options o = options_for(&l, 4, 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, other.dir, &o, &r, &err), &err);
    stored_read(&st, other.dir);
    assert_int_equal(st.k, 4);
    char *path = must(drps_path_join(l.dir, "windows.rec"));
    assert_int_not_equal(access(path, F_OK), 0);
    free(path);
    stored_free(&st);
    lists_free(&l);
    lists_free(&other);
}

static void test_window_single_when_all_fits(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 2", "1 2 3", "0", "3"};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct lists l;
    for (uint64_t train = 0; train <= 4; train++) {
        lists_from_text(&l, text, 4, train, 100);
        struct drps_window_options o =
            options_for(&l, 4, 0); /* four rows are touched, though steps have three */
        assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
        assert_int_equal(r.windows, train == 0 || train == 4 ? 1 : 2);
        assert_int_equal(r.rows_moved, 0); /* rows of one window of two stay through the other */
        lists_free(&l);
    }
}

static void test_window_names_the_budget_that_would_do(void **state)
{
    (void)state;
    const char *const text[] = {"0 1 2", "3 4 5", "6 7"};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct lists l;
    lists_from_text(&l, text, 3, 3, 8);
    struct drps_window_options o = options_for(&l, 5, 1 << 20);
    assert_int_equal(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err),
                     DRPS_E_MEMORY_BUDGET);
    assert_non_null(strstr(err.text, " 72 bytes would do")); /* 2 * 3 rows of 12 bytes */
    drps_err_clear(&err);
    o.budget_bytes = 72;
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    lists_free(&l);
}

static void test_window_no_steps(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct lists l;
    lists_from_text(&l, NULL, 0, 0, 0);
    struct drps_window_options o = options_for(&l, 0, 0);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    assert_int_equal(r.windows, 0);
    lists_free(&l);
}

static void test_window_random_against_search(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 300; round++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_window_result r;
        struct stored st;
        struct lists l;
        lists_random(&l, &rng, 1 + random_below(&rng, 400), 1 + random_below(&rng, 30),
                     1 + random_below(&rng, 60));
        uint64_t budget = 2 * most_step_rows(&l) + random_below(&rng, 200);
        struct drps_window_options o = options_for(&l, budget, random_below(&rng, 2) << 24);
        assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
        stored_read(&st, l.dir);
        check_stored(&l, &st, budget, &r);
        stored_free(&st);
        lists_free(&l);
    }
}

/* Writes rows.rec anew, with lists packed as batches have them or plainly. */
static void write_lists(const struct lists *l, int dense)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    char *path = must(drps_path_join(l->dir, "rows.rec"));
    assert_ok(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_ROWS, &w, &err), &err);
    for (uint64_t s = 0; s < l->steps; s++) {
        void *packed = must(malloc(drps_list_encode_bound(l->n[s])));
        const size_t bytes = dense ? drps_list_encode_dense(l->list[s], l->n[s], packed)
                                   : drps_list_encode(l->list[s], l->n[s], packed);
        const struct drps_piece piece = {packed, bytes};
        assert_ok(drps_recwriter_add(w, &piece, 1, &err), &err);
        free(packed);
    }
    assert_ok(drps_recwriter_finish(w, &err), &err);
    drps_recwriter_close(w);
    free(path);
}

/* Where every window has all rows of the plan, lists that are packed as slots are become slots as
 * they are; others are packed anew, to the same bytes. */
static void test_window_slots_are_copied_where_all_fits(void **state)
{
    (void)state;
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 60; round++) {
        struct stored slots[2], st;
        struct lists l;
        lists_random(&l, &rng, 1 + random_below(&rng, 400), 1 + random_below(&rng, 30),
                     1 + random_below(&rng, 60));
        const uint64_t step = random_below(&rng, l.steps); /* this one has all rows */
        free(l.list[step]);
        l.list[step] = must(malloc((size_t)l.rows * sizeof(*l.list[step])));
        l.n[step] = (size_t)l.rows;
        for (uint32_t row = 0; row < l.rows; row++)
            l.list[step][row] = row;
        const struct drps_window_options o = options_for(&l, l.rows, 1 << 20);
        for (int dense = 0; dense < 2; dense++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_window_result r;
            write_lists(&l, dense);
            assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
            stored_read(&st, l.dir);
            check_stored(&l, &st, l.rows, &r);
            stored_free(&st);
            stored_read_file(&slots[dense], l.dir, "slots.rec", DRPS_KIND_SLOTS);
        }
        for (size_t s = 0; s < slots[0].k; s++) {
            assert_int_equal(slots[0].bytes[s], slots[1].bytes[s]);
            assert_memory_equal(slots[0].record[s], slots[1].record[s], slots[0].bytes[s]);
        }
        stored_free(&slots[0]);
        stored_free(&slots[1]);
        lists_free(&l);
    }
}

/* Five sections of 65536 ids: slices of one, two, and all. */
static void test_window_same_bytes_whatever_the_memory(void **state)
{
    (void)state;
    static const uint64_t memory[] = {UINT64_C(1) << 30, 0, 750000, 1250000};
    struct random_source rng = random_begin(__func__);
    for (int round = 0; round < 4; round++) {
        struct stored whole = {0}, slots = {0}, st;
        struct lists l;
        lists_random(&l, &rng, 300000 + random_below(&rng, 20000), 12, 3000);
        uint64_t budget = 2 * most_step_rows(&l) + random_below(&rng, 4000);
        for (size_t i = 0; i < 4; i++) {
            struct drps_err err = DRPS_ERR_INIT;
            struct drps_window_result r;
            struct drps_window_options o = options_for(&l, budget, memory[i]);
            assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
            stored_read(i ? &st : &whole, l.dir);
            if (i == 0) {
                check_stored(&l, &whole, budget, &r);
                stored_read_file(&slots, l.dir, "slots.rec", DRPS_KIND_SLOTS);
                continue;
            }
            assert_int_equal(st.k, whole.k);
            for (size_t k = 0; k < st.k; k++) {
                assert_int_equal(st.bytes[k], whole.bytes[k]);
                assert_memory_equal(st.record[k], whole.record[k], st.bytes[k]);
            }
            stored_free(&st);
            stored_read_file(&st, l.dir, "slots.rec", DRPS_KIND_SLOTS);
            for (size_t s = 0; s < st.k; s++) {
                assert_int_equal(st.bytes[s], slots.bytes[s]);
                assert_memory_equal(st.record[s], slots.record[s], st.bytes[s]);
            }
            stored_free(&st);
        }
        stored_free(&slots);
        stored_free(&whole);
        lists_free(&l);
    }
}

/* Every bit flipped, every shorter record: an error or a window in bounds, never a crash. */
static void test_window_decode_survives_damage(void **state)
{
    (void)state;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct drps_window w = {0};
    struct stored st;
    struct lists l;
    struct random_source rng = random_begin(__func__);
    lists_random(&l, &rng, 200000, 6, 60);
    struct drps_window_options o = options_for(&l, 2 * most_step_rows(&l), 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    stored_read(&st, l.dir);
    for (size_t k = 0; k < st.k; k++) {
        for (size_t n = 0; n < st.bytes[k]; n++) {
            unsigned char *cut =
                must(malloc(n + 1)); /* exactly as long: a sanitizer sees one byte too far */
            unsigned char *copy = must(malloc(st.bytes[k]));
            memcpy(cut, st.record[k], n);
            assert_int_equal(drps_window_decode(cut, n, ALL, &w, NULL), DRPS_E_CORRUPT);
            for (int bit = 0; bit < 8; bit++) {
                memcpy(copy, st.record[k], st.bytes[k]);
                copy[n] ^= (unsigned char)(1 << bit);
                int rc = drps_window_decode(copy, st.bytes[k], ALL, &w, NULL);
                assert_true(rc == 0 || rc == DRPS_E_CORRUPT);
                for (size_t i = 1; i < w.n; i++)
                    assert_true(w.rows[i - 1] < w.rows[i]);
                for (size_t i = 0; i < w.n; i++)
                    assert_true(w.next[i] - 1 < w.windows && w.prev[i] - 1 < w.windows);
            }
            free(cut);
            free(copy);
        }
    }
    drps_window_free(&w);
    stored_free(&st);
    lists_free(&l);
}

static void write_raw(const char *dir, const void *record, size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    char *path = must(drps_path_join(dir, "rows.rec"));
    const uint32_t row = 1;
    unsigned char good[32];
    struct drps_piece pieces[] = {{good, drps_list_encode(&row, 1, good)}, {record, bytes}};
    assert_ok(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_ROWS, &w, &err), &err);
    assert_ok(drps_recwriter_add(w, &pieces[0], 1, &err), &err);
    assert_ok(drps_recwriter_add(w, &pieces[1], 1, &err), &err);
    assert_ok(drps_recwriter_finish(w, &err), &err);
    drps_recwriter_close(w);
    free(path);
}

static void test_window_names_the_bad_record(void **state)
{
    (void)state;
    const char *const text[] = {"1", "2"};
    const uint32_t far[] = {3, 10};
    unsigned char packed[64] = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct lists l;
    lists_from_text(&l, text, 2, 2, 10);
    struct drps_window_options o = options_for(&l, 10, 1 << 20);
    size_t n = drps_list_encode(far, 2, packed);
    const size_t sizes[] = {n, n - 1, n + 1, 2, 0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_raw(l.dir, packed, sizes[i]);
        assert_int_equal(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err),
                         DRPS_E_CORRUPT);
        assert_non_null(strstr(err.text, "rows.rec: record 1: "));
        drps_err_clear(&err);
    }
    o.steps = 3;
    assert_int_equal(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err),
                     DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "rows.rec holds 2 records, expected 3"));
    lists_free(&l);
}

/* Each read and write in turn fails: the code comes through, no scratch file stays, an unfinished
 * file is refused. */
static void test_window_survives_faults(void **state)
{
    (void)state;
    struct drps_recfile *file;
    struct lists l;
    int rc = -EIO;
    struct random_source rng = random_begin(__func__);
    struct drps_window_result r;
    lists_random(&l, &rng, 200000, 10, 500);
    struct drps_window_options o = options_for(&l, 2 * most_step_rows(&l), 0);
    char *windows = must(drps_path_join(l.dir, "windows.rec"));
    char *slots = must(drps_path_join(l.dir, "slots.rec"));
    for (long k = 1; rc < 0; k++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct fault_io *f = must(fault_io_new(drps_io_os()));
        fault_io_arm(f, FAULT_PREAD | FAULT_PWRITE, k, 0, FAULT_ERROR, -EIO);
        (void)unlink(slots); /* of the run before */
        rc = drps_windows_compile(&f->io, l.dir, l.dir, &o, &r, &err);
        assert_int_equal(rc, atomic_load(&f->fired) ? -EIO : 0);
        fault_io_free(f);
        assert_no_scratch(l.dir);
        int opened = drps_recfile_open(drps_io_os(), windows, DRPS_KIND_WINDOWS, &file, NULL);
        assert_int_equal(opened == 0, rc == 0);
        drps_recfile_close(file);
        opened = drps_recfile_open(drps_io_os(), slots, DRPS_KIND_SLOTS, &file, NULL);
        if (rc == 0) assert_int_equal(opened, 0);
        drps_recfile_close(file);
    }
    free(windows);
    free(slots);
    lists_free(&l);
}

/* A step's slots, changed: slots of records whose checksums are right. */
static void test_window_verify_finds_wrong_slots(void **state)
{
    (void)state;
    const char *const text[] = {"0 1", "1 2", "3", "3 4", "0 1"};
    static const struct {
        const char *name, *want;
        uint32_t list[3], n;
    } cases[] = {{"too few", "slots.rec: record 3: 1 slots, but the step has 2", {1}, 1},
                 {"too many", "slots.rec: record 3: 3 slots, but the step has 2", {0, 1, 2}, 3},
                 {"out of range", "slots.rec: record 3: row 3 of 3", {0, 3}, 2}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct stored st;
    struct lists l;
    unsigned char packed[64];
    lists_from_text(&l, text, 5, 4, 5);
    struct drps_window_options o = options_for(&l, 4, 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    struct drps_plan_info info = info_for(&l, 4);
    stored_read_file(&st, l.dir, "slots.rec", DRPS_KIND_SLOTS);
    void *good = st.record[3];
    size_t good_bytes = st.bytes[3];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        st.record[3] = packed;
        st.bytes[3] = drps_list_encode(cases[i].list, cases[i].n, packed);
        stored_write(&st, l.dir, "slots.rec", DRPS_KIND_SLOTS);
        assert_int_equal(verify_windows(l.dir, &info, &r, &err), DRPS_E_CORRUPT);
        if (!strstr(err.text, cases[i].want)) fail_msg("%s: %s", cases[i].name, err.text);
        drps_err_clear(&err);
    }
    st.record[3] = good;
    st.bytes[3] = good_bytes;
    /* step 2 has row 3 alone: slot 2 holds row 4 */
    const uint32_t two = 2;
    void *other = st.record[2];
    st.record[2] = packed;
    st.bytes[2] = drps_list_encode(&two, 1, packed);
    stored_write(&st, l.dir, "slots.rec", DRPS_KIND_SLOTS);
    assert_int_equal(verify_windows(l.dir, &info, &r, &err), DRPS_E_CORRUPT);
    assert_non_null(strstr(err.text, "slots.rec: record 2: slot 2 holds row 4"));
    st.record[2] = other;
    stored_free(&st);
    lists_free(&l);
}

/* Make the checksum of a record's front right again. */
static void sum_front(void *record, size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window head = {0};
    unsigned char *at = record;
    assert_ok(drps_window_head(record, bytes, &head, &err), &err);
    const struct drps_piece pieces[] = {{at, 64}, {at + 72, head.front_bytes - 72}};
    drps_put_u64(at + 64, drps_checksum_pieces(pieces, 2));
}

/* Distances, bounds and rows that decode, but are not those of the steps. */
static void test_window_verify_finds_wrong_windows(void **state)
{
    (void)state;
    const char *const text[] = {"0 1", "1 2", "3", "3 4", "0 1"};
    /* byte `at` of window k's record becomes `value`: nexts begin at 72, the first far one 10 bytes
     * on; prevs and rows follow */
    static const struct {
        const char *name, *want;
        size_t k, at;
        unsigned char value;
    } cases[] = {
        {.name = "next",
         .want = "windows.rec: record 3: row 0 was used last 3 windows before",
         .k = 0,
         .at = 82,
         .value = 0},
        {.name = "prev",
         .want = "windows.rec: record 3: row 0 was used last 3 windows before",
         .k = 3,
         .at = 91,
         .value = 0},
        {.name = "first step",
         .want = "windows.rec: record 1: 1 steps from 2",
         .k = 1,
         .at = 8,
         .value = 2},
        {.name = "steps",
         .want = "windows.rec: record 2: 3 steps from 2",
         .k = 2,
         .at = 16,
         .value = 3},
        {.name = "fewer steps",
         .want = "windows.rec: record 2: no step has row 4",
         .k = 2,
         .at = 16,
         .value = 1},
        {.name = "evaluation", .want = "windows.rec: record 0: ", .k = 0, .at = 0, .value = 1},
        {.name = "windows", .want = "windows.rec: record 0: ", .k = 0, .at = 24, .value = 5},
        {.name = "most rows",
         .want = "windows.rec: the largest window has 3 rows, the last record says 4",
         .k = 3,
         .at = 28,
         .value = 4},
        {.name = "row",
         .want = "slots.rec: record 1: slot 1 holds row 3",
         .k = 1,
         .at = 98,
         .value = 1},
        {.name = "row of none",
         .want = "windows.rec: record 2: row 5 of 5",
         .k = 2,
         .at = 99,
         .value = 1}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct stored st;
    struct lists l;
    lists_from_text(&l, text, 5, 4, 5);
    struct drps_window_options o = options_for(&l, 4, 1 << 20);
    assert_ok(drps_windows_compile(drps_io_os(), l.dir, l.dir, &o, &r, &err), &err);
    struct drps_plan_info info = info_for(&l, 4);
    stored_read(&st, l.dir);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char *byte = (unsigned char *)st.record[cases[i].k] + cases[i].at;
        unsigned char good = *byte;
        *byte = cases[i].value;
        sum_front(st.record[cases[i].k], st.bytes[cases[i].k]);
        stored_write(&st, l.dir, "windows.rec", DRPS_KIND_WINDOWS);
        *byte = good;
        sum_front(st.record[cases[i].k], st.bytes[cases[i].k]);
        int rc = verify_windows(l.dir, &info, &r, &err);
        if (rc != DRPS_E_CORRUPT || !strstr(err.text, cases[i].want))
            fail_msg("%s: %d %s", cases[i].name, rc, err.text);
        drps_err_clear(&err);
    }
    stored_free(&st);
    lists_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window_example),
        cmocka_unit_test(test_window_golden),
        cmocka_unit_test(test_window_front),
        cmocka_unit_test(test_window_distances_golden_bytes),
        cmocka_unit_test(test_window_distances),
        cmocka_unit_test(test_window_decode_parts),
        cmocka_unit_test(test_window_other_folder),
        cmocka_unit_test(test_window_single_when_all_fits),
        cmocka_unit_test(test_window_names_the_budget_that_would_do),
        cmocka_unit_test(test_window_no_steps),
        cmocka_unit_test(test_window_random_against_search),
        cmocka_unit_test(test_window_slots_are_copied_where_all_fits),
        cmocka_unit_test(test_window_same_bytes_whatever_the_memory),
        cmocka_unit_test(test_window_decode_survives_damage),
        cmocka_unit_test(test_window_names_the_bad_record),
        cmocka_unit_test(test_window_survives_faults),
        cmocka_unit_test(test_window_verify_finds_wrong_slots),
        cmocka_unit_test(test_window_verify_finds_wrong_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
