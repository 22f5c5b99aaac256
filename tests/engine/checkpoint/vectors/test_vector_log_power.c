/* Logs of vectors where the power goes at any call: every round that was promised comes back bit
 * for bit, no other matrix does, and writing goes on from there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "engine/checkpoint/vectors/drps_vector_log.h"
#include "support/power_cuts.h"
#include "support/vector_rounds.h"

enum { ROWS = 12, DIM = 2, FIRST = 3, ROUNDS = 6, SEEDS = 12 / DRPS_TEST_ONE_IN };

struct job {
    struct vector_rounds v;
    uint64_t durable; /* the last round that was promised; 0: none */
    uint64_t keep;
    int background;
    int later; /* found with rounds that were not promised */
    int cut_off;
};

static int open_checkpoints(const struct drps_io *io, const char *disk, struct drps_checkpoints *c)
{
    char path[SCRATCH_PATH_BYTES];
    return drps_checkpoints_init(c, io, power_path(disk, "all", path), 0, NULL);
}

/* Rounds first + 1 .. last, synced where the number is even; a checkpoint after the third. */
static int write_rounds(struct job *j, struct drps_vector_log *log, uint64_t last)
{
    int rc = 0;
    json_t *manifest = json_object();
    while (j->v.last < last && rc == 0) {
        vector_rounds_next(&j->v);
        rc = drps_vector_log_add(log, &j->v.round, j->v.matrix, 0, NULL);
        if (rc == 0 && j->v.last == FIRST + 3)
            rc = drps_vector_log_snapshot(log, j->v.matrix, manifest, NULL);
        else if (rc == 0 && j->v.last % 2 == 0)
            rc = drps_vector_log_sync(log, NULL);
        else {
            if (rc == 0 && j->background) rc = drps_vector_log_flush(log, NULL);
            continue;
        }
        if (rc == 0) j->durable = j->v.last;
    }
    json_decref(manifest);
    return rc;
}

static int write_all(void *ctx, const struct drps_io *io, const char *disk)
{
    struct job *j = ctx;
    const struct drps_vector_log_options o = {.keep = j->keep, .background = j->background};
    struct drps_checkpoints c;
    struct drps_vector_log *log;
    vector_rounds_go_back(&j->v, FIRST);
    j->v.seed = 1; /* the same rounds each time */
    j->durable = 0;
    int rc = open_checkpoints(io, disk, &c);
    if (rc < 0) return rc;
    json_t *manifest = json_object();
    rc = drps_vector_log_begin(&c, &j->v.shape, &o, FIRST, j->v.matrix, manifest, &log, NULL);
    json_decref(manifest);
    if (rc == 0) {
        j->durable = FIRST;
        rc = write_rounds(j, log, FIRST + ROUNDS);
        drps_vector_log_close(log);
    }
    drps_checkpoints_destroy(&c);
    return rc;
}

/* All rounds that there can be, to compare with. */
static void know_all(struct job *j)
{
    while (j->v.last < FIRST + ROUNDS)
        vector_rounds_next(&j->v);
}

static void check_matrix(const struct job *j, const struct power_after *a, uint64_t round,
                         const char *matrix)
{
    if (round < FIRST || round > FIRST + ROUNDS) power_fail(a, "round %d", (int)round);
    if (memcmp(matrix, vector_rounds_after(&j->v, round), vector_rounds_bytes(&j->v)) != 0)
        power_fail(a, "after round %d it is another matrix", (int)round);
}

/* Go on after what was found, and see that it can be restored. */
static void go_on(struct job *j, const struct power_after *a, const struct drps_checkpoints *c,
                  uint64_t round, char *matrix)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_vector_log_options o = {.keep = j->keep, .background = j->background};
    struct drps_vector_log *log;
    uint64_t got = 0;
    const struct drps_vector_round next = {.number = round + 1, .all_rows = 1};
    if (drps_vector_log_resume(c, &o, round, &log, &err) < 0) power_fail(a, "%s", err.text);
    matrix[5] ^= 1;
    int rc = drps_vector_log_add(log, &next, matrix, 0, &err);
    if (rc == 0) rc = drps_vector_log_sync(log, &err);
    drps_vector_log_close(log);
    char *again = malloc(vector_rounds_bytes(&j->v));
    if (rc == 0)
        rc = drps_vector_log_restore(c, &j->v.shape, UINT64_MAX, vector_rounds_apply, &j->v, again,
                                     &got, &err);
    if (rc < 0) power_fail(a, "%s", err.text);
    if (got != round + 1 || memcmp(matrix, again, vector_rounds_bytes(&j->v)) != 0)
        power_fail(a, "what was written afterwards is not there");
    free(again);
}

static void look(void *ctx, const struct power_after *a)
{
    struct job *j = ctx;
    const uint64_t durable = j->durable;
    struct drps_checkpoints c;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t got = 0, first, last;
    char *matrix = malloc(vector_rounds_bytes(&j->v));
    assert_non_null(matrix);
    know_all(j);
    assert_int_equal(open_checkpoints(drps_io_os(), a->disk, &c), 0);
    int rc = drps_vector_log_restore(&c, &j->v.shape, UINT64_MAX, vector_rounds_apply, &j->v,
                                     matrix, &got, &err);
    if (rc < 0 && (durable || rc != DRPS_E_NOT_FOUND)) power_fail(a, "%s", err.text);
    if (rc == 0) {
        check_matrix(j, a, got, matrix);
        if (got < durable) power_fail(a, "round %d, %d was promised", (int)got, (int)durable);
        j->later += got > durable;
        j->cut_off += got < FIRST + ROUNDS;
        if (drps_vector_log_covered(&c, &first, &last, &err) < 0) power_fail(a, "%s", err.text);
        if (last != got) power_fail(a, "covered are %d to %d", (int)first, (int)last);
        for (uint64_t r = first; r <= last; r++) {
            if (drps_vector_log_restore(&c, &j->v.shape, r, vector_rounds_apply, &j->v, matrix,
                                        &got, &err) < 0)
                power_fail(a, "%s", err.text);
            check_matrix(j, a, r, matrix);
        }
        go_on(j, a, &c, last, matrix);
    }
    drps_checkpoints_destroy(&c);
    free(matrix);
}

static void test_promised_rounds_come_back(void **state)
{
    for (uint64_t keep = 1; keep < 3; keep++) {
        struct job j = {.keep = keep, .background = keep == 2};
        vector_rounds_begin(&j.v, ROWS, DIM, 1, 3, FIRST);
        const struct power_case c = {.ctx = &j,
                                     .job = write_all,
                                     .after = look,
                                     .calls = POWER_CHANGES | POWER_SYNCS,
                                     .seeds = SEEDS};
        assert_true(power_each_cut(*state, &c) > 20);
        assert_true(j.later > 0 && j.cut_off > 0);
        vector_rounds_end(&j.v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_promised_rounds_come_back, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("vector_log_power", tests, NULL, NULL);
}
