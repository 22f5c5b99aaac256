/* Staged folders and files where the power goes at any call: afterwards there is the old one whole
 * or the new one whole, the next run can make another one, and nothing of somebody else's is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "base/folder/drps_manifest.h"
#include "base/folder/drps_stage.h"
#include "support/power_cuts.h"

enum { FILE_BYTES = 1500, SEEDS = 3 / DRPS_TEST_ONE_IN + 1 };

static const struct drps_owned deep[] = {{.name = "file"}, {.name = NULL}};
static const struct drps_owned things[] = {
    {.name = "thing.json"},
    {.name = "file"},
    {.name = "other"},
    {.name = "deep", .inside = deep},
    {.name = "scratch", .unfinished = 1},
    {.name = NULL},
};
static const struct drps_stage_kind thing = {
    .manifest = "thing.json", .kind = "drps-thing", .version = 1, .owned = things};
static const struct drps_owned lines[] = {{.name = "lines"}, {.name = NULL}};
static const struct drps_stage_kind text = {.file = "lines", .owned = lines};

/* ---- Making and checking ---- */

/* Files of several sectors that say which version they are of. */
static int put(const struct drps_io *io, const char *dir, const char *name, char version)
{
    char path[SCRATCH_PATH_BYTES], data[FILE_BYTES];
    int fd;
    memset(data, version, sizeof(data));
    int rc = drps_io_open(io, power_path(dir, name, path), O_WRONLY | O_CREAT | O_TRUNC, &fd, NULL);
    if (rc == 0) rc = drps_io_write_at(io, fd, data, sizeof(data), 0, path, NULL);
    drps_io_close(io, fd);
    return rc;
}

static int holds(const char *path, char version)
{
    size_t n, i = 0;
    if (!path_exists(path)) return 0;
    char *data = scratch_read(path, &n);
    while (i < n && data[i] == version)
        i++;
    free(data);
    return n == FILE_BYTES && i == n;
}

static int put_manifest(const struct drps_io *io, const char *dir, char version)
{
    char path[SCRATCH_PATH_BYTES];
    json_t *j = json_pack("{s:s, s:i, s:i}", "kind", "drps-thing", "version", 1, "made", version);
    const int rc = drps_manifest_write(io, power_path(dir, "thing.json", path), j, NULL);
    json_decref(j);
    return rc;
}

static int make_folder(const struct drps_io *io, const char *dir, char version)
{
    char path[SCRATCH_PATH_BYTES];
    int rc = put(io, dir, "scratch", version);
    if (rc == 0) rc = put(io, dir, "file", version);
    if (rc == 0) rc = io->ops->mkdir(io->ctx, power_path(dir, "deep", path), 0777);
    if (rc == 0) rc = put(io, dir, "deep/file", version);
    if (rc == 0) rc = put(io, dir, "other", version);
    if (rc == 0) rc = io->ops->unlink(io->ctx, power_path(dir, "scratch", path));
    return rc < 0 ? rc : put_manifest(io, dir, version);
}

/* The version of a whole folder, 0 where it is none. */
static char whole_folder(const char *dir)
{
    char path[SCRATCH_PATH_BYTES];
    json_t *j;
    if (drps_manifest_read(drps_io_os(), power_path(dir, "thing.json", path), "drps-thing", 1, &j,
                           NULL) < 0)
        return 0;
    const char version = (char)json_integer_value(json_object_get(j, "made"));
    json_decref(j);
    return holds(power_path(dir, "file", path), version) &&
                   holds(power_path(dir, "deep/file", path), version) &&
                   holds(power_path(dir, "other", path), version)
               ? version
               : 0;
}

/* ---- The job ---- */

struct job {
    const struct drps_stage_kind *kind;
    int old;       /* there is one before */
    int cut_again; /* what is found is begun anew, and cut off again */
    int moved;     /* what is found under the final name is moved away before the next run */
};

static int make(const struct drps_io *io, const char *disk, const struct job *job, char version)
{
    char path[SCRATCH_PATH_BYTES];
    struct drps_stage stage;
    int rc = drps_stage_begin(&stage, io, power_path(disk, "out", path), job->kind, 1, NULL);
    if (rc == 0)
        rc = job->kind->file ? put(io, stage.dir, "lines", version)
                             : make_folder(io, stage.dir, version);
    if (rc == 0) rc = drps_stage_commit(&stage, NULL);
    drps_stage_abort(&stage);
    return rc;
}

static void before(void *ctx, const char *disk)
{
    const struct job *job = ctx;
    char path[SCRATCH_PATH_BYTES];
    if (job->old) assert_int_equal(make(drps_io_os(), disk, job, 'o'), 0);
    scratch_write(power_path(disk, "notes", path), "mine", 4);
}

static int replace(void *ctx, const struct drps_io *io, const char *disk)
{
    return make(io, disk, ctx, 'n');
}

static char whole(const struct job *job, const char *disk)
{
    char path[SCRATCH_PATH_BYTES];
    (void)power_path(disk, "out", path);
    if (!job->kind->file) return whole_folder(path);
    return holds(path, 'o') ? 'o' : holds(path, 'n') ? 'n' : 0;
}

/* A fresh process: it puts back what was moved aside. */
static void begin_again(const struct job *job, const struct power_after *a)
{
    char path[SCRATCH_PATH_BYTES];
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = drps_stage_begin(&stage, drps_io_os(), power_path(a->disk, "out", path),
                                    job->kind, 0, &err);
    drps_stage_abort(&stage);
    if (rc < 0 && rc != -EEXIST) power_fail(a, "%s", err.text);
    const char found = whole(job, a->disk);
    if (rc == 0 && path_exists(path)) power_fail(a, "begun where there is one");
    if (rc < 0 && !found) power_fail(a, "not whole: %s", err.text);
    if (job->old && !found) power_fail(a, "neither the old one nor the new one");
    if (a->done && found != 'n') power_fail(a, "committed, and not there");
    if (a->done && !job->cut_again && path_exists(power_path(a->disk, "out/lock", path)))
        power_fail(a, "the lock is left in the folder");
}

static void check(const struct job *job, const struct power_after *a)
{
    char path[SCRATCH_PATH_BYTES];
    size_t n;
    begin_again(job, a);
    const int rc = make(drps_io_os(), a->disk, job, 'l');
    const char made = job->kind->file ? (holds(power_path(a->disk, "out", path), 'l') ? 'l' : 0)
                                      : whole_folder(power_path(a->disk, "out", path));
    if (rc || made != 'l') power_fail(a, "the next run: %d", rc);
    if (folder_entries(a->disk) != 2) power_fail(a, "something is left");
    char *data = scratch_read(power_path(a->disk, "notes", path), &n);
    if (strcmp(data, "mine") != 0) power_fail(a, "notes hold '%s'", data);
    free(data);
}

/* The run after the cut is cut off, too; what is found then must do. */
static void check_second(const struct job *job, const struct power_after *a)
{
    char found[SCRATCH_PATH_BYTES];
    const uint64_t seed = drps_rng_at(a->choice, (uint64_t)a->cut);
    struct power *p = power_new(drps_io_os(), a->disk);
    power_cut_at(p, POWER_CHANGES, 1 + (long)(seed % 30));
    struct power_after second = *a;
    second.done |= make(&p->io, a->disk, job, 'n') == 0;
    power_cut(p);
    (void)snprintf(found, sizeof(found), "%s-again", a->disk);
    second.disk = found;
    assert_int_equal(power_found(p, seed, found), 0);
    check(job, &second);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), found, NULL), 0);
    power_free(p);
}

/* Only a whole folder is put back, not one that was being removed. */
static void check_put_back(const struct job *job, const struct power_after *a)
{
    char from[SCRATCH_PATH_BYTES], to[SCRATCH_PATH_BYTES];
    struct drps_stage stage;
    (void)rename(power_path(a->disk, "out", from), power_path(a->disk, "away", to));
    const int rc = drps_stage_begin(&stage, drps_io_os(), from, job->kind, 0, NULL);
    drps_stage_abort(&stage);
    if ((rc == -EEXIST) != path_exists(from)) power_fail(a, "begun: %d", rc);
    if (rc && !whole(job, a->disk)) power_fail(a, "a torn one was put back");
}

static void after(void *ctx, const struct power_after *a)
{
    const struct job *job = ctx;
    if (job->moved)
        check_put_back(job, a);
    else if (job->cut_again)
        check_second(job, a);
    else
        check(job, a);
}

/* ---- Tests ---- */

static int no_exchange(void *ctx, const char *a, const char *b)
{
    (void)ctx, (void)a, (void)b;
    return -EINVAL;
}

static void cut_everywhere(struct scratch *s, struct job job, int exchanges)
{
    struct drps_io_ops ops = *drps_io_os()->ops;
    const struct drps_io inner = {.ops = &ops};
    const struct power_case c = {.ctx = &job,
                                 .before = before,
                                 .job = replace,
                                 .after = after,
                                 .inner = &inner,
                                 .calls = POWER_CHANGES | POWER_SYNCS,
                                 .seeds = job.cut_again ? SEEDS / 2 : SEEDS};
    if (!exchanges) ops.exchange = no_exchange;
    assert_true(power_each_cut(s, &c) > 8);
}

static void test_stage_new_folder(void **state)
{
    cut_everywhere(*state, (struct job){.kind = &thing}, 1);
}

static void test_stage_folder_replaced_by_exchange(void **state)
{
    cut_everywhere(*state, (struct job){.kind = &thing, .old = 1}, 1);
}

static void test_stage_folder_replaced_by_renames(void **state)
{
    cut_everywhere(*state, (struct job){.kind = &thing, .old = 1}, 0);
}

static void test_stage_puts_back_what_is_whole(void **state)
{
    cut_everywhere(*state, (struct job){.kind = &thing, .old = 1, .moved = 1}, 0);
}

static void test_stage_folder_after_a_cut_before(void **state)
{
    cut_everywhere(*state, (struct job){.kind = &thing, .cut_again = 1}, 1);
    cut_everywhere(*state, (struct job){.kind = &thing, .old = 1, .cut_again = 1}, 1);
    cut_everywhere(*state, (struct job){.kind = &thing, .old = 1, .cut_again = 1}, 0);
}

static void test_stage_file(void **state)
{
    for (int old = 0; old < 2; old++)
        for (int again = 0; again < 2; again++)
            cut_everywhere(*state, (struct job){.kind = &text, .old = old, .cut_again = again}, 1);
}

/* A sync that fails loses what it should have written. Whatever is told to be made is durable all
 * the same, and the old one stays otherwise. Returns whether there was a k-th sync. */
static int lose_sync(struct scratch *s, struct job *job, long k)
{
    char disk[SCRATCH_PATH_BYTES], found[SCRATCH_PATH_BYTES];
    assert_int_equal(mkdir(power_path(s->dir, "disk", disk), 0777), 0);
    before(job, disk);
    struct power *p = power_new(drps_io_os(), disk);
    power_lose_sync_at(p, k);
    struct power_after a = {.disk = power_path(s->dir, "found", found), .cut = k};
    a.done = make(&p->io, disk, job, 'n') == 0;
    const int lost = p->left_to_lose <= 0;
    if (!lost && !a.done) power_fail(&a, "failed without a fault");
    power_cut(p);
    for (a.choice = DISK_NOTHING; a.choice <= DISK_EVERYTHING; a.choice++) {
        assert_int_equal(power_found(p, a.choice, found), 0);
        check(job, &a);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), found, NULL), 0);
    }
    power_free(p);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), disk, NULL), 0);
    return lost;
}

static void test_stage_believes_no_failed_sync(void **state)
{
    struct job jobs[] = {{.kind = &thing}, {.kind = &thing, .old = 1}, {.kind = &text, .old = 1}};
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        long k = 1;
        while (lose_sync(*state, &jobs[i], k))
            k++;
        assert_true(k > 4);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_stage_new_folder),
        SCRATCH_TEST(test_stage_folder_replaced_by_exchange),
        SCRATCH_TEST(test_stage_folder_replaced_by_renames),
        SCRATCH_TEST(test_stage_puts_back_what_is_whole),
        SCRATCH_TEST(test_stage_folder_after_a_cut_before),
        SCRATCH_TEST(test_stage_file),
        SCRATCH_TEST(test_stage_believes_no_failed_sync),
    };
    return cmocka_run_group_tests_name("stage_power", tests, NULL, NULL);
}
