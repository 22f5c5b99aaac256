/* Damaged checkpoints: whatever byte is flipped, the one before serves, and drps-stat --verify
 * finds it. */
#include "support/plan_maker.h"

#include <fcntl.h>

#include "engine/train/verify/drps_verify.h"
#include "support/train_runs.h"

enum { FLIPS = 24 }; /* of bytes in a file */

/* Checkpoints come so far apart that one lies past the first epoch, and has the best epoch's rows.
 */
static struct train_job *begin(const char *store)
{
    struct train_job *j = job_begin("fm", 4, store);
    j->o.patience = 3;
    j->o.checkpoint_every.n = 30;
    job_want(j, &j->o);
    return j;
}

static void flip(const char *path, size_t at)
{
    unsigned char byte;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    assert_int_equal(close(fd), 0);
}

/* Leaves two checkpoints or more; returns the length of this file of the newest, and its path. */
static size_t leave_with(struct train_job *j, const char *file, char path[SCRATCH_PATH_BYTES])
{
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    char name[64];
    struct stat st;
    for (long k = 60;; k += 3) {
        if (job_break_off(j, &j->o, k, numbers) < 2) continue;
        (void)snprintf(name, sizeof(name), "model.checkpoint/rank-0/%llu/%s",
                       (unsigned long long)numbers[0], file);
        (void)snprintf(path, SCRATCH_PATH_BYTES, "%s", scratch_path(&j->s, name));
        if (stat(path, &st) == 0) return (size_t)st.st_size;
    }
}

/* ---- Going on ---- */

static void count_fallbacks(void *ctx, enum drps_log_level level, const char *text)
{
    (void)level;
    *(int *)ctx += strstr(text, "the one before is looked for") != NULL;
}

/* The user hears of it. */
static void check_the_one_before_serves(struct train_job *j, const char *path)
{
    struct drps_train_result r;
    int fallbacks = 0;
    const struct drps_log log = {DRPS_LOG_WARN, count_fallbacks, &fallbacks};
    struct drps_train_options o = j->o;
    o.resume = 1;
    o.log = &log;
    train_well(j->plan, &o, &r, path);
    train_check_same(&r, &j->want, path, 0);
    drps_train_result_free(&r);
    if (!fallbacks) fail_msg("%s: a flipped byte was not noticed", path);
}

static void test_resume_passes_over_a_damaged_one(void **state)
{
    static const char *const files[] = {"checkpoint.json", "rows/00000.rec", "best.bin"};
    struct train_job *j = begin("resident");
    char path[SCRATCH_PATH_BYTES];
    (void)state;
    for (size_t f = 0; f < 3; f++)
        for (size_t i = 0; i < FLIPS / DRPS_TEST_ONE_IN + 1; i++) {
            const size_t bytes = leave_with(j, files[f], path);
            flip(path, (size_t)drps_rng_at(f, i) % bytes);
            check_the_one_before_serves(j, path);
        }
    job_end(j);
}

/* ---- Verifying ---- */

static uint64_t problems_of(const struct train_job *j)
{
    struct drps_findings found = {0};
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_checkpoints_verify(drps_io_os(), j->checkpoints, &found, &err) < 0)
        fail_msg("verify: %s", err.text);
    assert_true(found.files >= 4 && found.bytes > 0);
    return found.problems;
}

static void check_verify(const char *store, const char *const *files)
{
    struct train_job *j = begin(store);
    char path[SCRATCH_PATH_BYTES];
    for (; *files; files++) {
        const size_t bytes = leave_with(j, *files, path);
        assert_int_equal(problems_of(j), 0);
        for (uint64_t i = 0; i < FLIPS / DRPS_TEST_ONE_IN + 1; i++) {
            const size_t at = (size_t)drps_rng_at(9, i) % bytes;
            flip(path, at);
            if (!problems_of(j)) fail_msg("%s: byte %zu flipped, and not noticed", path, at);
            flip(path, at);
        }
        assert_int_equal(problems_of(j), 0);
    }
    job_end(j);
}

static void test_verify_finds_damage(void **state)
{
    static const char *const rows[] = {"checkpoint.json", "rows/00000.rec", "best.bin", "names.rec",
                                       NULL};
    static const char *const saved[] = {"checkpoint.json", "store/relay.rec", "best.bin",
                                        "names.rec", NULL};
    (void)state;
    check_verify("resident", rows);
    check_verify("relay", saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume_passes_over_a_damaged_one),
        cmocka_unit_test(test_verify_finds_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
