/* Logs of vectors where memory runs out at any allocation: it is said, nothing is lost of what was
 * durable, and the same call succeeds afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "support/alloc_fault.h"
#include "support/scratch.h"
#include "support/vector_rounds.h"

enum { FIRST = 5, ALLOCATIONS_MOST = 2000 };

struct fixture {
    struct scratch s;
    struct drps_checkpoints c;
    struct vector_rounds v;
    struct drps_vector_log *log;
    json_t *manifest;
    char *got;
};

static const struct drps_vector_log_options options = {.keep = 2};

/* The steps of a run; each leaves all as it was when it fails. */
static int begin_log(struct fixture *f, struct drps_err *err)
{
    return drps_vector_log_begin(&f->c, &f->v.shape, &options, FIRST, f->v.matrix, f->manifest,
                                 &f->log, err);
}

static int add(struct fixture *f, struct drps_err *err)
{
    return drps_vector_log_add(f->log, &f->v.round, f->v.matrix, 0, err);
}

static int sync_log(struct fixture *f, struct drps_err *err)
{
    return drps_vector_log_sync(f->log, err);
}

static int restore(struct fixture *f, struct drps_err *err)
{
    uint64_t got;
    return drps_vector_log_restore(&f->c, &f->v.shape, UINT64_MAX, vector_rounds_apply, &f->v,
                                   f->got, &got, err);
}

static int snapshot(struct fixture *f, struct drps_err *err)
{
    return drps_vector_log_snapshot(f->log, f->v.matrix, f->manifest, err);
}

static int covered(struct fixture *f, struct drps_err *err)
{
    uint64_t first, last;
    return drps_vector_log_covered(&f->c, &first, &last, err);
}

static int resume(struct fixture *f, struct drps_err *err)
{
    drps_vector_log_close(f->log);
    return drps_vector_log_resume(&f->c, &options, FIRST + 1, &f->log, err);
}

static int verify(struct fixture *f, struct drps_err *err)
{
    struct drps_checkpoint *cp;
    uint64_t first, last;
    int rc = drps_checkpoint_open(&f->c, 1, &cp, err);
    if (rc == 0) rc = drps_vector_log_verify(drps_io_os(), cp, &first, &last, err);
    drps_checkpoint_close(cp);
    return rc;
}

static int (*const steps[])(struct fixture *, struct drps_err *) = {
    begin_log, add, sync_log, restore, verify, snapshot, covered, resume, restore};

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    scratch_begin(&f->s);
    assert_int_equal(
        drps_checkpoints_init(&f->c, drps_io_os(), scratch_path(&f->s, "all"), 0, NULL), 0);
    vector_rounds_begin(&f->v, 60, 3, 2, 3, FIRST);
    vector_rounds_next(&f->v);
    f->manifest = json_object();
    f->got = malloc(vector_rounds_bytes(&f->v));
    assert_true(f->manifest && f->got);
    return f;
}

static void end(struct fixture *f)
{
    drps_vector_log_close(f->log);
    drps_checkpoints_destroy(&f->c);
    vector_rounds_end(&f->v);
    json_decref(f->manifest);
    free(f->got);
    scratch_end(&f->s);
    free(f);
}

/* Returns 1 when memory ran out in it; then it is done once more, with enough. */
static int do_step(struct fixture *f, size_t i)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = steps[i](f, &err);
    if (rc == 0) return 0;
    if (rc != -ENOMEM || !err.text[0]) fail_msg("step %zu: %d %s", i, rc, err.text);
    if (!alloc_fault_disarm()) fail_msg("step %zu: there was memory", i);
    drps_err_clear(&err);
    if (steps[i](f, &err) < 0) fail_msg("step %zu: %s", i, err.text);
    return 1;
}

static void test_memory_runs_out(void **state)
{
    int told = 0, fired = 1;
    (void)state;
    for (long k = 1; fired; k++) {
        struct fixture *f = begin();
        fired = 0;
        alloc_fault_arm(FAULT_MEMORY, k);
        for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
            fired |= do_step(f, i);
        told += fired;
        fired |= alloc_fault_disarm(); /* a failure that nobody needs to hear of */
        assert_memory_equal(f->got, f->v.matrix, vector_rounds_bytes(&f->v));
        end(f);
        assert_true(k < ALLOCATIONS_MOST);
    }
    assert_true(told > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("vector_log_memory", tests, NULL, NULL);
}
