/*
 * Checking plans: every flipped byte is found, and so is each file that is damaged consistently,
 * with checksums made anew: what it says of the others is wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/drps_alloc.h"
#include "base/drps_checksum.h"
#include "base/drps_endian.h"
#include "base/folder/drps_manifest.h"
#include "index/drps_index.h"
#include "index/plan/codec/drps_published.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_names_writer.h"
#include "index/plan/drps_handed.h"
#include "index/plan/drps_residuals.h"
#include "index/plan/drps_round.h"
#include "index/plan/drps_window_record.h"
#include "index/verify/drps_verify.h"
#include "support/edited.h"
#include "support/index_case.h"
#include "support/scratch.h"

/* ---- A plan and its records ---- */

enum { RECORDS_MOST = 256, LIST_MOST = 4096 };

struct records {
    char path[SCRATCH_PATH_BYTES + 32];
    uint32_t kind;
    size_t n;
    struct drps_piece pieces[RECORDS_MOST];
};

/* Cut windows for the rows of two batches: the least memory of drps-index holds all rows here. */
static void cut_windows(const char *dir)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window_result r;
    struct drps_plan *plan;
    if (drps_plan_open(drps_io_os(), dir, &plan, &err) < 0) fail_msg("%s", err.text);
    struct drps_plan_info *i = &plan->info;
    const struct drps_window_options o = {.steps = i->batches + i->eval_batches,
                                          .train_steps = i->batches,
                                          .rows = i->rows,
                                          .row_bytes = i->row_bytes,
                                          .budget_bytes = 2 * i->max_batch_rows * i->row_bytes,
                                          .memory_bytes = 1 << 20};
    if (drps_windows_compile(drps_io_os(), dir, dir, &o, &r, &err) < 0) fail_msg("%s", err.text);
    assert_true(r.windows > 2);
    i->windows = r.windows;
    i->working_set_rows = r.working_set_rows;
    i->max_window_rows = r.max_window_rows;
    i->window_rows = r.rows_touched;
    i->window_rows_kept = r.rows_kept;
    i->window_rows_moved = r.rows_moved;
    if (drps_plan_save(drps_io_os(), dir, i, plan->fields, NULL, &err) < 0)
        fail_msg("%s", err.text);
    drps_plan_close(plan);
}

/* A plan; one for several workers has residual slots, or with `hands_on` hands rows on. */
enum with { SOME_SLOTS, HANDS_ON, OWN_SLOTS };

static void make_one(struct scratch *s, enum case_format format, const char *algo, uint32_t workers,
                     enum with with)
{
    static const char net[] = "x = embedding 4\nscore = full 1 x\n";
    const int hands_on = with == HANDS_ON, is_net = strcmp(algo, "net") == 0;
    struct case_run c;
    char path[SCRATCH_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s", scratch_path(s, "net.txt"));
    scratch_write(path, net, sizeof(net) - 1);
    case_begin(&c, s, case_input(s, "input", format, 120, 300, 41), algo);
    c.options.net = is_net ? path : NULL;
    c.options.batch_size = hands_on ? 4 : 10;
    c.options.test_fraction = 0.3;
    c.options.workers = workers;
    c.options.residual_slots = workers > 1 && !hands_on && !is_net ? 40 : 0;
    if (with == OWN_SLOTS) c.options.residual_slots = UINT64_MAX;
    c.options.own_slots = with == OWN_SLOTS;
    c.options.hand_on = hands_on ? UINT64_MAX : 0;
    c.options.blocks.bytes = 64;
    case_compile(&c);
    if (workers == 1) cut_windows(c.out);
}

static void make(struct scratch *s, enum case_format format, const char *algo, uint32_t workers)
{
    make_one(s, format, algo, workers, SOME_SLOTS);
}

static void read_records(struct records *r, const char *dir, const char *name, uint32_t kind)
{
    struct drps_recfile *f;
    (void)snprintf(r->path, sizeof(r->path), "%s/%s", dir, name);
    r->kind = kind;
    assert_int_equal(drps_recfile_open(drps_io_os(), r->path, kind, &f, NULL), 0);
    r->n = (size_t)drps_recfile_count(f);
    assert_true(r->n < RECORDS_MOST);
    for (size_t i = 0; i < r->n; i++) {
        void *data = calloc(1, (size_t)drps_recfile_run_bytes(f, i, 1) + 8);
        assert_int_equal(drps_recfile_read(f, i, 1, data, NULL), 0);
        r->pieces[i] = (struct drps_piece){data, (size_t)drps_recfile_bytes(f, i)};
    }
    drps_recfile_close(f);
}

static void write_records(struct records *r)
{
    struct drps_recwriter *w;
    assert_int_equal(drps_recwriter_open(drps_io_os(), r->path, r->kind, &w, NULL), 0);
    for (size_t i = 0; i < r->n; i++) {
        assert_int_equal(drps_recwriter_add(w, &r->pieces[i], 1, NULL), 0);
        free((void *)r->pieces[i].data);
    }
    assert_int_equal(drps_recwriter_finish(w, NULL), 0);
    drps_recwriter_close(w);
}

static void replace(struct records *r, size_t i, const void *data, size_t n)
{
    void *copy = calloc(1, n + 8);
    memcpy(copy, data, n);
    free((void *)r->pieces[i].data);
    r->pieces[i] = (struct drps_piece){copy, n};
}

static size_t list_of(const struct records *r, size_t i, uint32_t *list)
{
    const size_t n = drps_list_count(r->pieces[i].data);
    assert_true(n + 2 < LIST_MOST);
    assert_int_equal(drps_list_decode(r->pieces[i].data, r->pieces[i].bytes, list, NULL, NULL), 0);
    return n;
}

static void put_list(struct records *r, size_t i, const uint32_t *list, size_t n)
{
    unsigned char packed[8 * LIST_MOST];
    replace(r, i, packed, drps_list_encode(list, n, packed));
}

/* Write plan.json anew, with the checksums of the files as they are. */
static void sign(const char *dir)
{
    struct drps_plan *plan;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_open(drps_io_os(), dir, &plan, &err) < 0) fail_msg("%s", err.text);
    if (drps_plan_save(drps_io_os(), dir, &plan->info, plan->fields, NULL, &err) < 0)
        fail_msg("%s", err.text);
    drps_plan_close(plan);
}

static struct drps_findings check(const char *dir)
{
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    if (drps_plan_open(drps_io_os(), dir, &plan, &err) < 0) fail_msg("%s", err.text);
    if (drps_plan_verify(plan, &found, &err) < 0) fail_msg("%s", err.text);
    drps_plan_close(plan);
    return found;
}

static void assert_whole(const char *dir)
{
    const struct drps_findings f = check(dir);
    if (f.problems) fail_msg("%s", f.kept[0].text);
}

/* Some problem says all of `wants`, a part after a '|'. */
static int says(const struct drps_findings *f, const char *wants)
{
    char parts[256];
    for (uint64_t i = 0; i < f->problems && i < DRPS_FINDINGS_KEPT; i++) {
        int all = 1;
        char *save = NULL;
        (void)snprintf(parts, sizeof(parts), "%s", wants);
        for (char *p = strtok_r(parts, "|", &save); p; p = strtok_r(NULL, "|", &save))
            all &= strstr(f->kept[i].text, p) != NULL;
        if (all) return 1;
    }
    return 0;
}

/* ---- Consistent damage ---- */

static void row_too_many(struct records *r)
{
    uint32_t list[LIST_MOST];
    const size_t n = list_of(r, 3, list);
    size_t at = 1;
    while (at < n && list[at] == list[at - 1] + 1)
        at++;
    assert_true(at < n);
    memmove(list + at + 1, list + at, (n - at) * sizeof(*list));
    list[at] = list[at - 1] + 1;
    put_list(r, 3, list, n + 1);
}

static void other_row(struct records *r)
{
    uint32_t list[LIST_MOST];
    const size_t n = list_of(r, 3, list);
    size_t at = 1;
    while (at < n && list[at] == list[at - 1] + 1)
        at++;
    assert_true(at < n);
    list[at] = list[at - 1] + 1;
    put_list(r, 3, list, n);
}

static void row_of_nobody(struct records *r)
{
    uint32_t list[LIST_MOST];
    const size_t n = list_of(r, 2, list);
    list[n - 1] = 1 << 20;
    put_list(r, 2, list, n);
}

static void wrong_slot(struct records *r)
{
    uint32_t list[LIST_MOST];
    const size_t n = list_of(r, 4, list);
    size_t at = n - 1;
    while (at && list[at] == list[at - 1] + 1)
        at--;
    assert_true(at > 0);
    list[at]--;
    put_list(r, 4, list, n);
}

static void swapped_records(struct records *r)
{
    const struct drps_piece first = r->pieces[0];
    r->pieces[0] = r->pieces[1];
    r->pieces[1] = first;
}

static void no_last_record(struct records *r)
{
    free((void *)r->pieces[--r->n].data);
}

/* Say of one block that it is used next a step later than it is. */
static void wrong_next_use(struct records *r)
{
    uint32_t blocks[LIST_MOST], distance[LIST_MOST];
    unsigned char packed[16 * LIST_MOST];
    const size_t n = list_of(r, 5, blocks);
    assert_int_equal(
        drps_uses_decode(r->pieces[5].data, r->pieces[5].bytes, blocks, distance, NULL), 0);
    distance[n / 2]++;
    size_t used = drps_list_encode(blocks, n, packed);
    used += drps_numbers_encode(distance, n, packed + used);
    replace(r, 5, packed, used);
}

/* Say of the last step's block, which the next epoch uses, that it is used a step earlier than it
 * is. */
static void wrong_last_use(struct records *r)
{
    uint32_t blocks[LIST_MOST], distance[LIST_MOST];
    unsigned char packed[16 * LIST_MOST];
    const size_t last = r->n - 1, n = list_of(r, last, blocks);
    assert_int_equal(
        drps_uses_decode(r->pieces[last].data, r->pieces[last].bytes, blocks, distance, NULL), 0);
    distance[n - 1]++;
    size_t used = drps_list_encode(blocks, n, packed);
    used += drps_numbers_encode(distance, n, packed + used);
    replace(r, last, packed, used);
}

/* So far that step and distance together are 2^32. */
static void next_use_that_wraps(struct records *r)
{
    uint32_t blocks[LIST_MOST], distance[LIST_MOST];
    unsigned char packed[16 * LIST_MOST];
    const size_t n = list_of(r, 5, blocks);
    assert_int_equal(
        drps_uses_decode(r->pieces[5].data, r->pieces[5].bytes, blocks, distance, NULL), 0);
    distance[n / 2] = UINT32_MAX - 4;
    size_t used = drps_list_encode(blocks, n, packed);
    used += drps_numbers_encode(distance, n, packed + used);
    replace(r, 5, packed, used);
}

static void block_left_out(struct records *r)
{
    uint32_t blocks[LIST_MOST], distance[LIST_MOST];
    unsigned char packed[16 * LIST_MOST];
    const size_t n = list_of(r, 5, blocks) - 1;
    assert_int_equal(
        drps_uses_decode(r->pieces[5].data, r->pieces[5].bytes, blocks, distance, NULL), 0);
    size_t used = drps_list_encode(blocks, n, packed);
    used += drps_numbers_encode(distance, n, packed + used);
    replace(r, 5, packed, used);
}

static void moved_boundary(struct records *r)
{
    uint32_t sizes[LIST_MOST];
    unsigned char packed[8 * LIST_MOST];
    const size_t n = drps_list_count(r->pieces[0].data);
    assert_true(n > 3 && n < LIST_MOST);
    assert_int_equal(drps_numbers_decode(r->pieces[0].data, r->pieces[0].bytes, sizes, NULL, NULL),
                     0);
    size_t at = 1;
    while (at + 1 < n && sizes[at] < 2)
        at++;
    assert_true(at + 1 < n);
    sizes[at]--;
    sizes[at + 1]++;
    replace(r, 0, packed, drps_numbers_encode(sizes, n, packed));
}

static void gap_behind_blocks(struct records *r)
{
    uint32_t sizes[LIST_MOST];
    unsigned char packed[8 * LIST_MOST];
    const size_t n = drps_list_count(r->pieces[0].data);
    assert_int_equal(drps_numbers_decode(r->pieces[0].data, r->pieces[0].bytes, sizes, NULL, NULL),
                     0);
    sizes[n - 1]++;
    replace(r, 0, packed, drps_numbers_encode(sizes, n, packed));
}

/* A distance of a far row becomes another one that fits: the front's checksum is made anew. */
static void wrong_window_distance(struct records *r)
{
    const size_t k = 1;
    unsigned char *head = (unsigned char *)r->pieces[k].data;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_window w = {0};
    const uint64_t nexts = drps_get_u64(head + 48);
    for (size_t at = WINDOW_HEAD_BYTES + nexts; at-- > WINDOW_HEAD_BYTES + 8;) {
        for (unsigned bit = 0; bit < 8; bit++) {
            head[at] ^= (unsigned char)(1U << bit);
            if (drps_window_decode(head, r->pieces[k].bytes,
                                   DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV, &w,
                                   &err) == 0) {
                const struct drps_piece pieces[] = {
                    {head, WINDOW_HEAD_BYTES - 8},
                    {head + WINDOW_HEAD_BYTES, w.front_bytes - WINDOW_HEAD_BYTES}};
                drps_put_u64(head + WINDOW_HEAD_BYTES - 8, drps_checksum_pieces(pieces, 2));
                drps_window_free(&w);
                return;
            }
            drps_err_clear(&err);
            head[at] ^= (unsigned char)(1U << bit);
        }
    }
    fail_msg("no bit of the nexts gives other distances");
}

static unsigned char *name_row(struct records *r, size_t i)
{
    unsigned char *page = (unsigned char *)r->pieces[0].data;
    const size_t n = drps_get_u32(page);
    assert_true(i < n);
    return page + 8 + 8 * n + 4 * i;
}

static void two_names_one_row(struct records *r)
{
    drps_put_u32(name_row(r, 3), drps_get_u32(name_row(r, 7)));
}

static void name_of_the_intercept(struct records *r)
{
    drps_put_u32(name_row(r, 3), 0);
}

static void names_out_of_order(struct records *r)
{
    unsigned char *keys = (unsigned char *)r->pieces[0].data + 8, key[8];
    memcpy(key, keys + 8, 8);
    memcpy(keys + 8, keys + 16, 8);
    memcpy(keys + 16, key, 8);
}

static void joined_samples(struct records *r)
{
    struct drps_batch_pieces out;
    struct drps_batch b = {0};
    unsigned char plain[1 << 16] __attribute__((aligned(8)));
    size_t bytes, n = 0;
    assert_int_equal(drps_batch_unpack(r->pieces[1].data, r->pieces[1].bytes, plain, sizeof(plain),
                                       &bytes, NULL),
                     0);
    assert_int_equal(drps_batch_decode_unpacked(plain, bytes, &b, NULL), 0);
    if (b.starts) { /* the last but one takes the entries of the last one */
        ((uint32_t *)(uintptr_t)b.starts)[b.samples - 1] = (uint32_t)b.nnz;
    }
    b.samples--;
    drps_batch_encode(&b, &out);
    unsigned char record[1 << 16];
    for (size_t i = 0; i < out.n; i++) {
        memcpy(record + n, out.pieces[i].data, out.pieces[i].bytes);
        n += out.pieces[i].bytes;
    }
    replace(r, 1, record, n);
}

/* The body counts a row that none of its entries has. */
static void row_without_entry(struct records *r)
{
    unsigned char *head = (unsigned char *)r->pieces[3].data;
    drps_put_u32(head + 4, drps_get_u32(head + 4) + 1);
}

static void label_of_nothing(struct records *r)
{
    unsigned char plain[1 << 16] __attribute__((aligned(8)));
    const float two = 2;
    size_t bytes;
    assert_int_equal(drps_batch_unpack(r->pieces[1].data, r->pieces[1].bytes, plain, sizeof(plain),
                                       &bytes, NULL),
                     0);
    memcpy(plain + DRPS_BATCH_HEAD_BYTES + 4, &two, sizeof(two));
    replace(r, 1, plain, bytes);
}

static void test_verify_finds_consistent_damage(void **state)
{
    static const struct {
        const char *name, *file;
        uint32_t kind;
        void (*change)(struct records *r);
        const char *wants;
    } cases[] = {
        {"a row too many", "rows.rec", DRPS_KIND_ROWS, row_too_many,
         "rows.rec: record 3|rows, but"},
        {"another row", "rows.rec", DRPS_KIND_ROWS, other_row, "slots.rec: record 3|holds row"},
        {"a row outside", "rows.rec", DRPS_KIND_ROWS, row_of_nobody,
         "rows.rec: record 2|row 1048576"},
        {"swapped lists", "rows.rec", DRPS_KIND_ROWS, swapped_records, "slots.rec: record 0|"},
        {"a wrong slot", "slots.rec", DRPS_KIND_SLOTS, wrong_slot, "slots.rec: record 4|holds row"},
        {"a record less", "slots.rec", DRPS_KIND_SLOTS, no_last_record, "slots.rec holds|records"},
        {"a wrong next use", "uses.rec", DRPS_KIND_USES, wrong_next_use, "uses.rec|says"},
        {"a wrong last use", "uses.rec", DRPS_KIND_USES, wrong_last_use,
         "uses.rec|of the epoch behind"},
        {"a next use that wraps", "uses.rec", DRPS_KIND_USES, next_use_that_wraps,
         "uses.rec: record 5|in an epoch of"},
        {"a block left out", "uses.rec", DRPS_KIND_USES, block_left_out,
         "uses.rec: record 5|no block of it"},
        {"a moved boundary", "blocks.rec", DRPS_KIND_BLOCKS, moved_boundary, ".rec|block"},
        {"blocks past the rows", "blocks.rec", DRPS_KIND_BLOCKS, gap_behind_blocks,
         "blocks.rec does not hold"},
        {"a wrong distance", "windows.rec", DRPS_KIND_WINDOWS, wrong_window_distance,
         "windows.rec: record|used last|in record 1;"},
        {"two names, one row", "names.rec", DRPS_KIND_NAMES, two_names_one_row,
         "names.rec: name 7|row of another name"},
        {"the intercept's name", "names.rec", DRPS_KIND_NAMES, name_of_the_intercept,
         "names.rec: name 3|outside of its table"},
        {"names out of order", "names.rec", DRPS_KIND_NAMES, names_out_of_order, "names.rec|key"},
        {"two samples joined", "data.rec", DRPS_KIND_DATA, joined_samples,
         "data.rec: record 1|order of their rows"},
        {"a row without entry", "data.rec", DRPS_KIND_DATA, row_without_entry,
         "data.rec: record 3|no entry has row"},
        {"another label", "data.rec", DRPS_KIND_DATA, label_of_nothing,
         "data.rec: record 1|neither -1 nor 1"},
        {"swapped batches", "data.rec", DRPS_KIND_DATA, swapped_records, "rows.rec: record 0|"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        static struct records r;
        char dir[SCRATCH_PATH_BYTES];
        (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
        make(s, CASE_LIBSVM, "lor", 1);
        assert_whole(dir);
        read_records(&r, dir, cases[i].file, cases[i].kind);
        cases[i].change(&r);
        write_records(&r);
        const struct drps_findings stale = check(dir); /* plan.json has the checksum of before */
        assert_true(stale.problems > 0);
        sign(dir);
        const struct drps_findings found = check(dir);
        if (!says(&found, cases[i].wants))
            fail_msg("%s: %" PRIu64 " problems: %s", cases[i].name, found.problems,
                     found.problems ? found.kept[0].text : "");
        edited_remove(dir);
    }
}

/* Weights of plan.json and of batches say the same. */
static void test_verify_finds_other_weights(void **state)
{
    static const struct {
        const char *name, *key;
        double by;         /* the sum is 4.5, of evaluation 3, and the largest is 2 */
        const char *wants; /* NULL: such a plan is not opened */
    } cases[] = {
        {"nothing", "sum", 1, ""},
        {"another sum", "sum", 1.01, "weights sum to 4.545"},
        {"another sum of evaluation", "test_sum", 1.01, "of evaluation to 3.03"},
        {"another largest one", "most", 1.01, "are 2.02 at most"},
        {"none", NULL, 0, "weights in a plan without"},
        {"a sum below the largest one", "sum", 0.1, NULL},
        {"a sum below 0", "sum", -1, NULL},
        {"a sum of evaluation below 0", "test_sum", -1, NULL},
        {"a largest one of 0", "most", 0, NULL},
        {"one that no float is", "most", 1e300, NULL},
    };
    struct scratch *s = *state;
    char weights[SCRATCH_PATH_BYTES];
    const char *const list[] = {weights};
    (void)snprintf(weights, sizeof(weights), "%s",
                   scratch_file(s, "weights", "2\n0.5\n1\n1\n", SIZE_MAX));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_run c;
        struct drps_err err = DRPS_ERR_INIT;
        json_t *j;
        case_begin(&c, s, scratch_file(s, "input", "1 1:1\n0 2:1\n1 3:1\n0 1:1\n", SIZE_MAX),
                   "lor");
        (void)snprintf(c.test, sizeof(c.test), "%s",
                       scratch_file(s, "test", "1 1:1\n0 2:1\n1 3:1\n", SIZE_MAX));
        c.options.tests_n = 1;
        c.options.weights = list;
        c.options.weights_n = 1;
        c.options.force = 1;
        case_compile(&c);
        char *path = drps_path_join(c.out, "plan.json");
        assert_int_equal(
            drps_manifest_read(drps_io_os(), path, "drps-plan", DRPS_PLAN_VERSION, &j, &err), 0);
        json_t *w = json_object_get(j, "weights");
        if (cases[i].key)
            assert_int_equal(
                json_object_set_new(
                    w, cases[i].key,
                    json_real(json_real_value(json_object_get(w, cases[i].key)) * cases[i].by)),
                0);
        else
            assert_int_equal(json_object_del(j, "weights"), 0);
        (void)json_object_del(j, "checksum");
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        json_decref(j);
        free(path);
        if (!cases[i].wants) {
            struct drps_plan *plan;
            const int rc = drps_plan_open(drps_io_os(), c.out, &plan, &err);
            if (rc != DRPS_E_CORRUPT || !strstr(err.text, "samples that weigh"))
                fail_msg("%s: %d '%s'", cases[i].name, rc, err.text);
            continue;
        }
        const struct drps_findings found = check(c.out);
        if (*cases[i].wants ? !says(&found, cases[i].wants) : found.problems != 0)
            fail_msg("%s: %" PRIu64 " problems: %s", cases[i].name, found.problems,
                     found.problems ? found.kept[0].text : "");
    }
}

/* Numbers of plan.json that were changed, with its checksum. */
static void test_verify_finds_other_numbers(void **state)
{
    static const char *const keys[] = {"samples",
                                       "test_samples",
                                       "nnz",
                                       "test_nnz",
                                       "max_batch_samples",
                                       "max_batch_rows",
                                       "max_batch_nnz",
                                       "row_uses",
                                       "max_step_blocks",
                                       "max_block_rows",
                                       "block_uses",
                                       "block_use_rows",
                                       "runs",
                                       "run_rows",
                                       "working_set_rows",
                                       "window_rows",
                                       "window_rows_kept",
                                       "max_window_rows",
                                       "window_rows_moved",
                                       "max_body_bytes"};
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES];
    struct drps_plan *plan;
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_LIBSVM, "lor", 1);
    size_t changed = 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        char *path = drps_path_join(dir, "plan.json"), want[128];
        struct drps_err err = DRPS_ERR_INIT;
        json_t *j;
        assert_int_equal(
            drps_manifest_read(drps_io_os(), path, "drps-plan", DRPS_PLAN_VERSION, &j, &err), 0);
        const json_int_t is = json_integer_value(json_object_get(j, keys[i]));
        for (int by = -1; by <= 1; by += 2) { /* one of the two is mostly within its bounds */
            assert_int_equal(json_object_set_new(j, keys[i], json_integer(is + by)), 0);
            (void)json_object_del(j, "checksum");
            assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
            if (is + by == 0 || drps_plan_open(drps_io_os(), dir, &plan, NULL) < 0) continue;
            drps_plan_close(plan);
            const struct drps_findings found = check(dir);
            (void)snprintf(want, sizeof(want), "plan.json: %s is", keys[i]);
            if (!says(&found, want) && !says(&found, DRPS_FILE_MANIFEST) &&
                !says(&found, "more than"))
                fail_msg("%s: %" PRIu64 " problems: %s", keys[i], found.problems,
                         found.problems ? found.kept[0].text : "");
            changed++;
        }
        assert_int_equal(json_object_set_new(j, keys[i], json_integer(is)), 0);
        (void)json_object_del(j, "checksum");
        assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
        json_decref(j);
        free(path);
    }
    assert_true(changed >= sizeof(keys) / sizeof(*keys));
    assert_whole(dir);
}

/* Adds to a number of plan.json, and makes its checksum anew. */
static void add_to(const char *dir, const char *key, int by)
{
    char *path = drps_path_join(dir, "plan.json");
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    assert_int_equal(
        drps_manifest_read(drps_io_os(), path, "drps-plan", DRPS_PLAN_VERSION, &j, &err), 0);
    const json_int_t is = json_integer_value(json_object_get(j, key));
    assert_int_equal(json_object_set_new(j, key, json_integer(is + by)), 0);
    (void)json_object_del(j, "checksum");
    assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
    json_decref(j);
    free(path);
}

/* Where there are no windows, all rows are in memory together, and no window has any. */
static void test_verify_finds_numbers_of_no_windows(void **state)
{
    static const struct {
        const char *key, *wants;
        int by;
    } cases[] = {{"working_set_rows", "plan.json: working_set_rows is", -1},
                 {"max_window_rows", "plan.json: max_window_rows is 1, the files have 0", 1}};
    struct scratch *s = *state;
    struct case_run c;
    case_begin(&c, s, case_input(s, "input", CASE_LIBSVM, 120, 300, 41), "lor");
    c.options.windows_later = 1;
    case_compile(&c);
    assert_whole(c.out);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        add_to(c.out, cases[i].key, cases[i].by);
        const struct drps_findings found = check(c.out);
        if (found.problems != 1 || !says(&found, cases[i].wants))
            fail_msg("%s: %" PRIu64 " problems: %s", cases[i].key, found.problems,
                     found.problems ? found.kept[0].text : "");
        add_to(c.out, cases[i].key, -cases[i].by);
    }
    assert_whole(c.out);
}

/* Whoever makes every checksum anew leaves the id: it is that of other files. */
static void test_verify_compares_the_id(void **state)
{
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES];
    json_t *j;
    struct drps_err err = DRPS_ERR_INIT;
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_LIBSVM, "lor", 1);
    char *path = drps_path_join(dir, "plan.json");
    assert_int_equal(
        drps_manifest_read(drps_io_os(), path, "drps-plan", DRPS_PLAN_VERSION, &j, &err), 0);
    assert_int_equal(json_object_set_new(j, "id", json_string("0123456789abcdef")), 0);
    (void)json_object_del(j, "checksum");
    assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
    json_decref(j);
    free(path);
    const struct drps_findings found = check(dir);
    assert_int_equal(found.problems, 1);
    assert_true(says(&found, "plan.json: the id is 0123456789abcdef, that of the files"));
}

/* ---- Flipped bytes ---- */

/* Whether the plan, once `path` has this content, cannot be opened or has a problem that names the
 * file. */
static int is_found(const char *dir, const char *name, char *why, size_t cap)
{
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    int rc = drps_plan_open(drps_io_os(), dir, &plan, &err);
    if (rc == 0) rc = drps_plan_verify(plan, &found, &err);
    drps_plan_close(plan);
    (void)snprintf(why, cap, "%s",
                   rc < 0           ? err.text
                   : found.problems ? found.kept[0].text
                                    : "whole");
    return rc < 0 ? strstr(err.text, name) != NULL : says(&found, name);
}

static void flip_file(const char *dir, const char *below, const char *name, size_t step)
{
    char path[SCRATCH_PATH_BYTES + 64], why[1000];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s%s/%s", dir, below, name);
    char *data = scratch_read(path, &n);
    for (size_t at = 0; at < n; at += step) {
        data[at] = (char)(data[at] ^ 1 << at % 8);
        scratch_write(path, data, n);
        if (!is_found(dir, name, why, sizeof(why)))
            fail_msg("%s%s, byte %zu: %s", below, name, at, why);
        data[at] = (char)(data[at] ^ 1 << at % 8);
    }
    scratch_write(path, data, n);
    free(data);
}

static void test_verify_finds_every_flipped_byte(void **state)
{
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_LIBSVM, "lor", 1);
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++)
        if (drps_plan_files[i].shapes & DRPS_PLAN_ONE)
            flip_file(dir, "", drps_plan_files[i].name, DRPS_TEST_ONE_IN);
    assert_whole(dir);
}

static void check_flipped_ranks(struct scratch *s, enum with with)
{
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make_one(s, CASE_LIBSVM, "lor", 2, with);
    struct drps_plan *part;
    assert_int_equal(drps_plan_open_rank(drps_io_os(), dir, 1, &part, NULL), 0);
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++)
        if (drps_plan_has_file(&part->info, i))
            flip_file(dir, "/rank-1", drps_plan_files[i].name, 37 * DRPS_TEST_ONE_IN);
    drps_plan_close(part);
    assert_whole(dir);
    edited_remove(dir);
}

static void test_verify_finds_flipped_bytes_of_ranks(void **state)
{
    check_flipped_ranks(*state, SOME_SLOTS);
    check_flipped_ranks(*state, HANDS_ON);
}

/* ---- Ranks ---- */

/* Worker 1 says that one row more is its own server's, and one less the other's. */
static void test_verify_compares_ranks(void **state)
{
    struct scratch *s = *state;
    static struct records r;
    char dir[SCRATCH_PATH_BYTES], part[SCRATCH_PATH_BYTES + 8];
    uint32_t list[LIST_MOST];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    (void)snprintf(part, sizeof(part), "%s/rank-1", dir);
    make(s, CASE_LIBSVM, "lor", 3);
    assert_whole(dir);
    read_records(&r, part, "shares.rec", DRPS_KIND_SHARES);
    unsigned char packed[64];
    assert_int_equal(drps_numbers_decode(r.pieces[2].data, r.pieces[2].bytes, list, NULL, NULL), 0);
    assert_true(list[0] > 0);
    list[0]--;
    list[2]++;
    replace(&r, 2, packed, drps_numbers_encode(list, 3, packed));
    write_records(&r);
    sign(part);
    const struct drps_findings found = check(dir);
    assert_int_equal(found.problems, 2);
    assert_true(says(&found, "rank-1/shares.rec: record 2|rank 0|rank-0/positions.rec"));
    assert_true(says(&found, "rank-1/shares.rec: record 2|rank 2|rank-2/positions.rec"));
    edited_remove(dir);
}

enum residuals_forgery { KEEPS, GIVES_UP, HAS_NONE };

/* Forge a round of rank 1's residuals: the first row that has, or has not, given its slot up does
 * the other, or has no slot. */
static void forge_residuals(const char *part, size_t round, enum residuals_forgery what,
                            uint64_t slots)
{
    const int gives_up = what == GIVES_UP;
    static struct records shares, r;
    static uint32_t list[LIST_MOST], slot[LIST_MOST], room[2 * LIST_MOST];
    static uint8_t whole[LIST_MOST];
    static unsigned char packed[16 * LIST_MOST];
    read_records(&shares, part, "shares.rec", DRPS_KIND_SHARES);
    assert_int_equal(drps_numbers_decode(shares.pieces[round].data, shares.pieces[round].bytes,
                                         list, NULL, NULL),
                     0);
    write_records(&shares); /* as they were */
    const struct drps_residual_rows rows = {slot, whole, room, list[0] + list[2]};
    read_records(&r, part, "residuals.rec", DRPS_KIND_RESIDUALS);
    assert_int_equal(
        drps_residuals_decode(r.pieces[round].data, r.pieces[round].bytes, slots, &rows, NULL), 0);
    uint32_t i = 0;
    while (i < rows.n && (slot[i] == DRPS_NO_SLOT || whole[i] == gives_up))
        i++;
    assert_true(i < rows.n);
    whole[i] = what != KEEPS;
    if (what == HAS_NONE) slot[i] = DRPS_NO_SLOT;
    replace(&r, round, packed, drps_residuals_encode(&rows, packed));
    write_records(&r);
    sign(part);
}

static void check_forged(struct scratch *s, enum with with, size_t round,
                         enum residuals_forgery forgery, const char *what)
{
    char dir[SCRATCH_PATH_BYTES], part[SCRATCH_PATH_BYTES + 8];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    (void)snprintf(part, sizeof(part), "%s/rank-1", dir);
    make_one(s, CASE_LIBSVM, "lor", 3, with);
    assert_whole(dir);
    forge_residuals(part, round, forgery, with == OWN_SLOTS ? UINT32_MAX : 40);
    const struct drps_findings found = check(dir);
    assert_true(found.problems > 0);
    assert_true(says(&found, what));
    edited_remove(dir);
}

static void test_verify_follows_residual_slots(void **state)
{
    check_forged(*state, SOME_SLOTS, 2, KEEPS,
                 "rank-1/residuals.rec: record 2|slots are still held");
    check_forged(*state, SOME_SLOTS, 0, GIVES_UP,
                 "rank-1/residuals.rec: record 0|holds nothing, and is given up");
    check_forged(*state, OWN_SLOTS, 2, KEEPS,
                 "rank-1/residuals.rec: record 2|slots are still held");
    check_forged(*state, OWN_SLOTS, 0, GIVES_UP,
                 "rank-1/residuals.rec: record|a row has it that is another");
    check_forged(*state, OWN_SLOTS, 1, HAS_NONE,
                 "rank-1/residuals.rec: record 1|has no slot of its own");
}

/* Remove a member of what the whole plan says of its ranks. */
static void remove_of_cluster(const char *dir, const char *key)
{
    char *path = drps_path_join(dir, "plan.json");
    struct drps_err err = DRPS_ERR_INIT;
    json_t *j;
    assert_int_equal(
        drps_manifest_read(drps_io_os(), path, "drps-plan", DRPS_PLAN_VERSION, &j, &err), 0);
    assert_int_equal(json_object_del(json_object_get(j, "cluster"), key), 0);
    (void)json_object_del(j, "checksum");
    assert_int_equal(drps_manifest_write(drps_io_os(), path, j, &err), 0);
    json_decref(j);
    free(path);
}

static void test_verify_compares_whose_slots_are(void **state)
{
    static const char *const keys[] = {"own_slots", "residual_slots"};
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    for (size_t i = 0; i < 2; i++) {
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_plan *plan;
        make_one(s, CASE_LIBSVM, "lor", 3, OWN_SLOTS);
        assert_whole(dir);
        remove_of_cluster(dir, keys[i]);
        const int rc = drps_plan_open(drps_io_os(), dir, &plan, &err);
        assert_int_equal(rc, i ? DRPS_E_CORRUPT : 0);
        if (rc < 0) {
            assert_non_null(strstr(err.text, "own_slots"));
        } else {
            drps_plan_close(plan);
            const struct drps_findings found = check(dir);
            assert_true(says(&found, "own_slots is"));
        }
        edited_remove(dir);
    }
}

/* Forge a round of rank 1's published slots: a use after which the worker has, or has not, a copy
 * becomes the other; or a row gets the slot of another one. */
static void forge_published(const char *part, size_t round, int what)
{
    static struct records lists, positions, r;
    static uint32_t slot[LIST_MOST], room[2 * LIST_MOST], places[LIST_MOST];
    static uint8_t keeps[LIST_MOST];
    static unsigned char packed[16 * LIST_MOST];
    size_t first[4];
    read_records(&lists, part, "rows.rec", DRPS_KIND_ROWS);
    const uint32_t n = drps_list_count(lists.pieces[round].data);
    write_records(&lists); /* as they were */
    read_records(&positions, part, "positions.rec", DRPS_KIND_POSITIONS);
    assert_int_equal(drps_positions_decode(positions.pieces[round].data,
                                           positions.pieces[round].bytes, 3, n, LIST_MOST, places,
                                           first, NULL),
                     0);
    write_records(&positions);
    const struct drps_published_rows rows = {slot, keeps, room, n, (uint32_t)first[3]};
    read_records(&r, part, "published.rec", DRPS_KIND_PUBLISHED);
    assert_int_equal(
        drps_published_decode(r.pieces[round].data, r.pieces[round].bytes, 40, &rows, NULL), 0);
    uint32_t i = 0, k;
    if (what < 2) {
        while (i < rows.uses && (keeps[i] == what || slot[places[i]] == DRPS_NOT_PUBLISHED))
            i++;
        assert_true(i < rows.uses);
        keeps[i] = (uint8_t)what;
    } else {
        while (i < n && slot[i] == DRPS_NOT_PUBLISHED)
            i++;
        for (k = i + 1; k < n && slot[k] == DRPS_NOT_PUBLISHED;)
            k++;
        assert_true(k < n);
        slot[k] = slot[i];
    }
    replace(&r, round, packed, drps_published_encode(&rows, packed));
    write_records(&r);
    sign(part);
}

static void check_forged_published(struct scratch *s, size_t round, int forgery, const char *what)
{
    char dir[SCRATCH_PATH_BYTES], part[SCRATCH_PATH_BYTES + 8];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    (void)snprintf(part, sizeof(part), "%s/rank-1", dir);
    make(s, CASE_LIBSVM, "lor", 3);
    forge_published(part, round, forgery);
    const struct drps_findings found = check(dir);
    assert_true(found.problems > 0);
    if (!says(&found, what)) fail_msg("%s", found.kept[0].text);
    edited_remove(dir);
}

static void test_verify_follows_published_slots(void **state)
{
    check_forged_published(*state, 2, 1, "rank-1/published.rec: record 2|copies still");
    check_forged_published(*state, 0, 2, "rank-1/published.rec: record 0|is another row's still");
    check_forged_published(*state, 0, 0, "rank-1/published.rec");
}

/* ---- Rows that are handed on ---- */

/* What is forged of a row that rank 1's worker has. */
enum forgery { NOT_TAKEN, TAKEN_TWICE, NOT_RETURNED, GOES_ELSEWHERE, OTHER_SLOT };

/* Forge one row of a record, the first that can be. Returns 1, or 0 if there is none. */
static int forge_row(struct drps_handed_rows *rows, enum forgery forgery)
{
    for (uint32_t i = 0; i < rows->used_n; i++)
        if (forgery == NOT_TAKEN && rows->taken[i])
            return !(rows->taken[i] = 0);
        else if (forgery == TAKEN_TWICE && !rows->taken[i])
            return rows->taken[i] = 1;
        else if (forgery == NOT_RETURNED && rows->to[i] == DRPS_HANDED_RETURNED)
            return (rows->to[i] = DRPS_HANDED_KEPT) != 0;
        else if (forgery == GOES_ELSEWHERE && rows->to[i] < DRPS_HANDED_RETURNED)
            return (rows->to[i] = 2 - rows->to[i]) <= 2;
        else if (forgery == OTHER_SLOT && i)
            return (rows->slot[i] = rows->slot[0]) != UINT32_MAX;
    return 0;
}

static void forge_handed(const char *part, uint64_t slots, enum forgery forgery)
{
    static struct records r;
    static unsigned char packed[64 * LIST_MOST];
    const struct drps_handed_most most = {LIST_MOST, slots, 3, 1};
    struct drps_handed_rows rows;
    int done = 0;
    assert_int_equal(drps_handed_allocate(&rows, &most, NULL), 0);
    read_records(&r, part, "handed.rec", DRPS_KIND_HANDED);
    for (size_t t = 0; t < r.n && !done; t++) {
        assert_int_equal(
            drps_handed_decode(r.pieces[t].data, r.pieces[t].bytes, &most, &rows, NULL), 0);
        done = forge_row(&rows, forgery);
        assert_true(drps_handed_encode_bound(&rows) <= sizeof(packed));
        if (done) replace(&r, t, packed, drps_handed_encode(&rows, packed));
    }
    if (!done) fail_msg("forgery %d: no row", (int)forgery);
    write_records(&r);
    sign(part);
    drps_handed_free(&rows);
}

static void check_handed_forged(struct scratch *s, enum forgery forgery, const char *what)
{
    char dir[SCRATCH_PATH_BYTES], part[SCRATCH_PATH_BYTES + 8];
    struct drps_plan *plan;
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    (void)snprintf(part, sizeof(part), "%s/rank-1", dir);
    make_one(s, CASE_LIBSVM, "lor", 3, HANDS_ON);
    assert_whole(dir);
    assert_int_equal(drps_plan_open_rank(drps_io_os(), dir, 1, &plan, NULL), 0);
    forge_handed(part, plan->info.ranks.handed.slots, forgery);
    drps_plan_close(plan);
    const struct drps_findings found = check(dir);
    if (!found.problems || !says(&found, what)) fail_msg("not found: %s", what);
    edited_remove(dir);
}

static void test_verify_follows_rows_that_are_handed_on(void **state)
{
    check_handed_forged(*state, NOT_TAKEN, "rank-1/handed.rec: record|which holds none");
    check_handed_forged(*state, TAKEN_TWICE, "rank-1/handed.rec: record|which has one");
    check_handed_forged(*state, NOT_RETURNED, "rank-1/handed.rec: record");
    check_handed_forged(*state, GOES_ELSEWHERE, "rank 1's handed.rec|handed.rec disagree");
    check_handed_forged(*state, OTHER_SLOT, "rank-1/handed.rec: record|have slot");
}

/* Rows of samples: of the second sample of a batch the k-th entry, in the order of rows, gets
 * another value and another row than it has. The first is its own. */
static void change_entry(struct records *r, size_t k, float value, int row)
{
    unsigned char plain[1 << 16] __attribute__((aligned(8))), record[1 << 16];
    struct drps_batch b;
    struct drps_batch_pieces out;
    size_t bytes, n = 0;
    assert_int_equal(drps_batch_unpack(r->pieces[1].data, r->pieces[1].bytes, plain, sizeof(plain),
                                       &bytes, NULL),
                     0);
    assert_int_equal(drps_batch_decode_unpacked(plain, bytes, &b, NULL), 0);
    const size_t j = drps_batch_start(&b, 1) + k;
    assert_true(drps_batch_value(&b, drps_batch_start(&b, 1)) == 0 && b.local16);
    ((float *)(uintptr_t)b.values)[j] = value;
    if (row) ((uint16_t *)(uintptr_t)b.local16)[j] = (uint16_t)drps_batch_sample_row(&b, 0);
    drps_batch_encode(&b, &out);
    for (size_t i = 0; i < out.n; n += out.pieces[i++].bytes)
        memcpy(record + n, out.pieces[i].data, out.pieces[i].bytes);
    replace(r, 1, record, n);
}

static void test_verify_follows_rows_of_samples(void **state)
{
    static const struct {
        size_t entry;
        float value;
        int row;
        const char *wants;
    } cases[] = {{0, 1, 0, "data.rec: record 1|sample 1 has 0 rows of its own"},
                 {1, 0, 0, "data.rec: record 1|sample 1 has 2 rows of its own"},
                 {0, 0, 1, "data.rec: record 1|sample 1 has the own row of another"},
                 {1, 1, 1, "data.rec: record 1|own row is a feature's"}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        static struct records r;
        char dir[SCRATCH_PATH_BYTES];
        (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
        make(s, CASE_LIBSVM, "topic", 1);
        read_records(&r, dir, "data.rec", DRPS_KIND_DATA);
        change_entry(&r, cases[i].entry, cases[i].value, cases[i].row);
        write_records(&r);
        sign(dir);
        const struct drps_findings found = check(dir);
        if (!says(&found, cases[i].wants))
            fail_msg("%zu: %s", i, found.problems ? found.kept[0].text : "whole");
        edited_remove(dir);
    }
}

/* ---- Rows that all batches have ---- */

enum { NET_ROWS = 5 }; /* 22 parameters, of 5 fields, in rows of 5 floats */

static void other_common_row(struct records *r)
{
    uint32_t list[LIST_MOST];
    const size_t n = list_of(r, 3, list);
    assert_true(n > NET_ROWS && list[NET_ROWS - 1] == NET_ROWS - 1);
    assert_true(list[NET_ROWS] > NET_ROWS);
    list[NET_ROWS - 1]++;
    put_list(r, 3, list, n);
}

static void too_few_rows(struct records *r)
{
    uint32_t list[LIST_MOST];
    (void)list_of(r, 3, list);
    put_list(r, 3, list, NET_ROWS - 1);
}

/* Another entry has the row, too. */
static int is_shared(const struct drps_batch *b, size_t entry)
{
    for (size_t j = 0; j < b->nnz; j++)
        if (j != entry && b->local16[j] == b->local16[entry]) return 1;
    return 0;
}

/* The first entry of a sample has the last of these rows in place of its own, which another one
 * has.
 */
static void entry_of_common_row(struct records *r)
{
    static unsigned char plain[1 << 17] __attribute__((aligned(8))), record[1 << 17];
    struct drps_batch b;
    struct drps_batch_pieces out;
    size_t bytes, n = 0, at = 0;
    assert_int_equal(drps_batch_unpack(r->pieces[1].data, r->pieces[1].bytes, plain, sizeof(plain),
                                       &bytes, NULL),
                     0);
    assert_int_equal(drps_batch_decode_unpacked(plain, bytes, &b, NULL), 0);
    while (at < b.samples && !is_shared(&b, drps_batch_start(&b, at)))
        at++;
    assert_true(at < b.samples);
    ((uint16_t *)(uintptr_t)b.local16)[drps_batch_start(&b, at)] = NET_ROWS - 1;
    drps_batch_encode(&b, &out);
    for (size_t i = 0; i < out.n; n += out.pieces[i++].bytes)
        memcpy(record + n, out.pieces[i].data, out.pieces[i].bytes);
    replace(r, 1, record, n);
}

static void name_of_common_row(struct records *r)
{
    drps_put_u32(name_row(r, 3), NET_ROWS - 1);
}

static void test_verify_finds_rows_of_a_net(void **state)
{
    static const struct {
        const char *file;
        uint32_t kind;
        void (*change)(struct records *r);
        const char *wants;
    } cases[] = {
        {"rows.rec", DRPS_KIND_ROWS, other_common_row,
         "rows.rec: record 3|does not begin with the 5 rows that every batch has"},
        {"rows.rec", DRPS_KIND_ROWS, too_few_rows, "rows.rec: record 3|rows, but the batch"},
        {"data.rec", DRPS_KIND_DATA, entry_of_common_row,
         "data.rec: record 1|an entry has row 4, which all batches have"},
        {"names.rec", DRPS_KIND_NAMES, name_of_common_row,
         "names.rec: name 3|outside of its table"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        static struct records r;
        char dir[SCRATCH_PATH_BYTES];
        (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
        make(s, CASE_LIBFFM, "net", 1);
        assert_whole(dir);
        read_records(&r, dir, cases[i].file, cases[i].kind);
        cases[i].change(&r);
        write_records(&r);
        sign(dir);
        const struct drps_findings found = check(dir);
        if (!says(&found, cases[i].wants))
            fail_msg("%zu: %s", i, found.problems ? found.kept[0].text : "whole");
        edited_remove(dir);
    }
}

static void test_verify_is_whole_for_every_kind(void **state)
{
    static const struct {
        enum case_format format;
        const char *algo;
        uint32_t workers;
    } cases[] = {{CASE_LIBSVM, "topic", 1}, {CASE_LIBSVM, "svm", 1},  {CASE_LIBSVM, "fm", 3},
                 {CASE_RATINGS, "lmf", 1},  {CASE_RATINGS, "lmf", 2}, {CASE_CSV, "lor", 1},
                 {CASE_CSV, "fm", 2},       {CASE_CSV, "ffm", 1},     {CASE_LIBFFM, "ffm", 3},
                 {CASE_LIBFFM, "net", 3},   {CASE_CSV, "net", 1}};
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *dir = scratch_path(s, "plan");
        make(s, cases[i].format, cases[i].algo, cases[i].workers);
        const struct drps_findings found = check(dir);
        if (found.problems) fail_msg("%zu: %s", i, found.kept[0].text);
        assert_int_equal(found.strangers, 0);
        assert_true(found.files > 7 && found.records > 20 && found.bytes > 1000);
        assert_true(found.done == found.total);
        edited_remove(scratch_path(s, "plan"));
    }
}

/* An exchanged dictionary of strings: keys are not those strings' hashes. */
static void test_verify_finds_exchanged_strings(void **state)
{
    struct scratch *s = *state;
    static struct records r;
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_RATINGS, "lmf", 1);
    read_records(&r, dir, "names.rec", DRPS_KIND_NAMES);
    unsigned char *page = (unsigned char *)r.pieces[0].data;
    page[r.pieces[0].bytes - 1] ^= 1;
    write_records(&r);
    sign(dir);
    struct drps_findings found = check(dir);
    assert_true(says(&found, "names.rec|not the hash of its string"));
    edited_remove(dir);
    /* that of a plan of more names */
    make(s, CASE_LIBSVM, "lor", 1);
    struct names_writer *w;
    assert_int_equal(drps_names_writer_open(drps_io_os(), dir, 0, &w, NULL), 0);
    for (uint32_t k = 1; k < 4; k++)
        assert_int_equal(drps_names_writer_add(w, k, k, 0, NULL, 0, NULL), 0);
    assert_int_equal(drps_names_writer_finish(w, NULL), 0);
    drps_names_writer_close(w);
    found = check(dir);
    assert_true(says(&found, "names.rec is not the file that drps-index wrote"));
    sign(dir);
    found = check(dir);
    assert_true(says(&found, "names.rec has 3 names"));
    edited_remove(dir);
}

/* ---- What it tells ---- */

static void test_verify_keeps_ten_problems_and_counts_all(void **state)
{
    struct scratch *s = *state;
    static struct records r;
    char dir[SCRATCH_PATH_BYTES];
    size_t n;
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_LIBSVM, "lor", 1);
    read_records(&r, dir, "slots.rec", DRPS_KIND_SLOTS);
    assert_true(r.n > DRPS_FINDINGS_KEPT);
    char *data = scratch_read(r.path, &n);
    size_t at = 64;
    for (size_t i = 0; i < r.n; i++) {
        data[at] ^= 1;
        at += (r.pieces[i].bytes + 7) / 8 * 8;
    }
    scratch_write(r.path, data, n);
    for (size_t i = 0; i < r.n; i++)
        free((void *)r.pieces[i].data);
    const struct drps_findings found = check(dir);
    assert_int_equal(found.problems, r.n);
    assert_true(says(&found, "slots.rec: record 0 at offset 64"));
    assert_true(says(&found, "slots.rec: record 9 at offset"));
    free(data);
    edited_remove(dir);
}

static void test_verify_tells_strangers_and_missing_files(void **state)
{
    struct scratch *s = *state;
    char dir[SCRATCH_PATH_BYTES];
    (void)snprintf(dir, sizeof(dir), "%s", scratch_path(s, "plan"));
    make(s, CASE_LIBSVM, "lor", 1);
    scratch_write(scratch_path(s, "plan/notes.txt"), "x", 1);
    struct drps_findings found = check(dir);
    assert_int_equal(found.problems, 0);
    assert_int_equal(found.strangers, 1);
    assert_non_null(strstr(found.stranger.text, "notes.txt"));
    assert_int_equal(remove(scratch_path(s, "plan/uses.rec")), 0);
    found = check(dir);
    assert_int_equal(found.problems, 1);
    assert_true(says(&found, "uses.rec"));
    edited_remove(dir);
}

static void count_reached(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;
    assert_true(done >= last[0] && done <= total && (!last[1] || last[1] == total));
    last[0] = done;
    last[1] = total;
}

static void test_verify_says_how_far_it_is_and_stops(void **state)
{
    struct scratch *s = *state;
    uint64_t last[2] = {0, 0};
    atomic_int stop = 1;
    struct drps_io io = *drps_io_os();
    struct drps_findings found = {.progress = count_reached, .ctx = last};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_plan *plan;
    make(s, CASE_LIBSVM, "lor", 2);
    if (drps_plan_open(&io, scratch_path(s, "plan"), &plan, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(drps_plan_verify(plan, &found, &err), 0);
    assert_true(last[0] > 0 && last[0] == last[1]);
    io.stop = &stop;
    assert_int_equal(drps_plan_verify(plan, &found, &err), DRPS_E_INTERRUPTED);
    drps_plan_close(plan);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_verify_follows_rows_that_are_handed_on),
        SCRATCH_TEST(test_verify_follows_rows_of_samples),
        SCRATCH_TEST(test_verify_finds_rows_of_a_net),
        SCRATCH_TEST(test_verify_is_whole_for_every_kind),
        SCRATCH_TEST(test_verify_finds_consistent_damage),
        SCRATCH_TEST(test_verify_finds_other_weights),
        SCRATCH_TEST(test_verify_finds_other_numbers),
        SCRATCH_TEST(test_verify_finds_numbers_of_no_windows),
        SCRATCH_TEST(test_verify_compares_the_id),
        SCRATCH_TEST(test_verify_compares_ranks),
        SCRATCH_TEST(test_verify_follows_residual_slots),
        SCRATCH_TEST(test_verify_compares_whose_slots_are),
        SCRATCH_TEST(test_verify_follows_published_slots),
        SCRATCH_TEST(test_verify_finds_exchanged_strings),
        SCRATCH_TEST(test_verify_keeps_ten_problems_and_counts_all),
        SCRATCH_TEST(test_verify_tells_strangers_and_missing_files),
        SCRATCH_TEST(test_verify_says_how_far_it_is_and_stops),
        SCRATCH_TEST(test_verify_finds_every_flipped_byte),
        SCRATCH_TEST(test_verify_finds_flipped_bytes_of_ranks),
    };
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
