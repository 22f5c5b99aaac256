#include "support/lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_io.h"
#include "base/record/drps_recfile.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_plan.h"

void *must(void *p)
{
    assert_non_null(p);
    return p;
}

void assert_ok(int rc, const struct drps_err *err)
{
    if (rc < 0) fail_msg("%s", err->text);
}

static void lists_alloc(struct lists *l)
{
    l->list = must(calloc(l->steps + 1, sizeof(*l->list)));
    l->n = must(calloc(l->steps + 1, sizeof(*l->n)));
}

static void lists_write(struct lists *l)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_recwriter *w;
    struct scratch folder;

    scratch_begin(&folder); /* lists_free() ends it */
    memcpy(l->dir, folder.dir, sizeof(l->dir));
    const char *path = scratch_path(&folder, "rows.rec");
    assert_ok(drps_recwriter_open(drps_io_os(), path, DRPS_KIND_ROWS, &w, &err), &err);
    for (uint64_t s = 0; s < l->steps; s++) {
        void *packed = must(malloc(drps_list_encode_bound(l->n[s])));
        struct drps_piece piece = {packed, drps_list_encode(l->list[s], l->n[s], packed)};
        assert_ok(drps_recwriter_add(w, &piece, 1, &err), &err);
        free(packed);
    }
    assert_ok(drps_recwriter_finish(w, &err), &err);
    drps_recwriter_close(w);
}

void lists_from_text(struct lists *l, const char *const *text, uint64_t steps, uint64_t train,
                     uint64_t rows)
{
    *l = (struct lists){.rows = rows, .steps = steps, .train = train};
    lists_alloc(l);
    for (uint64_t s = 0; s < steps; s++) {
        l->list[s] = must(calloc(strlen(text[s]) + 1, sizeof(uint32_t)));
        char *end;
        for (const char *at = text[s]; *at; at = end)
            l->list[s][l->n[s]++] = (uint32_t)strtoul(at, &end, 10);
    }
    lists_write(l);
}

void lists_random(struct lists *l, struct random_source *rng, uint64_t rows, uint64_t steps,
                  uint64_t most)
{
    char *in = must(malloc(rows));
    *l = (struct lists){.rows = rows, .steps = steps, .train = random_below(rng, steps + 1)};
    lists_alloc(l);
    for (uint64_t s = 0; s < steps; s++) {
        memset(in, 0, rows);
        for (uint64_t i = random_below(rng, most + 1); i; i--) {
            uint64_t among = random_below(rng, 2) ? rows : rows / 50 + 1;
            in[random_below(rng, among)] = 1;
        }
        for (uint64_t r = 0; r < rows; r++)
            l->n[s] += (size_t)in[r];
        l->list[s] = must(calloc(l->n[s] + 1, sizeof(uint32_t)));
        for (uint64_t r = 0, k = 0; r < rows; r++)
            if (in[r]) l->list[s][k++] = (uint32_t)r;
    }
    free(in);
    lists_write(l);
}

void lists_free(struct lists *l)
{
    for (uint64_t s = 0; s < l->steps; s++)
        free(l->list[s]);
    free(l->list);
    free(l->n);
    /* what stays is in a temporary folder */
    (void)drps_io_remove_tree(drps_io_os(), l->dir, NULL);
}
