/* Manifests and record files where the power goes at any call: what is read afterwards is what was
 * written, or it is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/folder/drps_manifest.h"
#include "base/record/drps_recfile.h"
#include "support/power_cuts.h"

enum { RECORDS = 5, RECORD_BYTES = 300 * 1000, SEEDS = 40 / DRPS_TEST_ONE_IN };
#define KIND DRPS_REC_KIND('t', 'e', 's', 't')

static int sync_name(const struct drps_io *io, const char *path, int flags)
{
    int fd;
    int rc = drps_io_open(io, path, flags, &fd, NULL);
    if (rc == 0) rc = drps_io_sync(io, fd, path, NULL);
    drps_io_close(io, fd);
    return rc;
}

/* ---- Manifests ---- */

static int write_manifest(void *ctx, const struct drps_io *io, const char *disk)
{
    char path[SCRATCH_PATH_BYTES], many[2000];
    (void)ctx;
    memset(many, 'm', sizeof(many) - 1); /* some sectors */
    many[sizeof(many) - 1] = '\0';
    json_t *j = json_pack("{s:s, s:i, s:s}", "kind", "drps-thing", "version", 1, "many", many);
    int rc = drps_manifest_write(io, power_path(disk, "thing.json", path), j, NULL);
    json_decref(j);
    return rc < 0 ? rc : sync_name(io, disk, O_RDONLY | O_DIRECTORY);
}

/* A manifest that had its room set aside, as one that comes at the end of a job has. */
static void reserve_manifest(void *ctx, const char *disk)
{
    char path[SCRATCH_PATH_BYTES];
    (void)ctx;
    assert_int_equal(
        drps_io_reserve(drps_io_os(), power_path(disk, "thing.json", path), 8192, NULL), 0);
}

static void read_manifest(void *ctx, const struct power_after *a)
{
    char path[SCRATCH_PATH_BYTES];
    json_t *j;
    int *refused = ctx;
    const int rc = drps_manifest_read(drps_io_os(), power_path(a->disk, "thing.json", path),
                                      "drps-thing", 1, &j, NULL);
    if (rc == 0) {
        const char *many = json_string_value(json_object_get(j, "many"));
        if (!many || strspn(many, "m") != 1999) power_fail(a, "it is another one");
    } else if (rc != -ENOENT && rc != DRPS_E_CORRUPT) {
        power_fail(a, "%d", rc);
    }
    *refused += rc == DRPS_E_CORRUPT;
    if (a->done && rc) power_fail(a, "synced, and refused: %d", rc);
    json_decref(j);
}

static void test_manifest_is_whole_or_refused(void **state)
{
    for (int reserved = 0; reserved < 2; reserved++) {
        int refused = 0;
        const struct power_case c = {.ctx = &refused,
                                     .before = reserved ? reserve_manifest : NULL,
                                     .job = write_manifest,
                                     .after = read_manifest,
                                     .calls = POWER_CHANGES | POWER_SYNCS,
                                     .seeds = SEEDS};
        assert_true(power_each_cut(*state, &c) > 3);
        assert_true(refused > 0);
    }
}

/* ---- Record files ---- */

/* What came of the cuts. */
struct records {
    int no_sync; /* the file's name lasts, its bytes do not */
    int whole, unopened, unread;
};

static int write_records(void *ctx, const struct drps_io *io, const char *disk)
{
    const struct records *r = ctx;
    char path[SCRATCH_PATH_BYTES];
    struct drps_recwriter *w;
    char *data = malloc(RECORD_BYTES);
    const struct drps_piece piece = {data, RECORD_BYTES};
    int rc = drps_recwriter_open(io, power_path(disk, "a.rec", path), KIND, &w, NULL);
    if (rc == 0) rc = sync_name(io, disk, O_RDONLY | O_DIRECTORY);
    for (int i = 0; rc == 0 && i < RECORDS; i++) {
        memset(data, 'a' + i, RECORD_BYTES);
        rc = drps_recwriter_add(w, &piece, 1, NULL);
    }
    if (rc == 0) rc = drps_recwriter_finish(w, NULL);
    drps_recwriter_close(w);
    free(data);
    return rc < 0 || r->no_sync ? rc : sync_name(io, path, O_RDWR);
}

static int read_record(struct drps_recfile *f, uint64_t i, const struct power_after *a)
{
    char *data = malloc((size_t)drps_recfile_run_bytes(f, i, 1));
    assert_non_null(data);
    const int rc = drps_recfile_read(f, i, 1, data, NULL);
    for (size_t k = 0; rc == 0 && k < RECORD_BYTES; k++)
        if (data[k] != 'a' + (char)i) power_fail(a, "record %d, byte %zu", (int)i, k);
    free(data);
    return rc;
}

static void read_records(void *ctx, const struct power_after *a)
{
    struct records *r = ctx;
    char path[SCRATCH_PATH_BYTES];
    struct drps_recfile *f;
    int unread = 0;
    const int rc =
        drps_recfile_open(drps_io_os(), power_path(a->disk, "a.rec", path), KIND, &f, NULL);
    if (rc && rc != -ENOENT && rc != DRPS_E_CORRUPT) power_fail(a, "%d", rc);
    if (rc == 0 && drps_recfile_count(f) != RECORDS) power_fail(a, "records are missing");
    for (uint64_t i = 0; rc == 0 && i < RECORDS; i++) {
        const int one = read_record(f, i, a);
        if (one && one != DRPS_E_CORRUPT) power_fail(a, "record %d: %d", (int)i, one);
        unread += one != 0;
    }
    drps_recfile_close(f);
    if (a->done && !r->no_sync && (rc || unread)) power_fail(a, "synced, and not whole");
    r->unopened += rc != 0;
    r->unread += unread > 0;
    r->whole += rc == 0 && !unread;
}

/* The header and the index may last where records do not: these are refused when they are read. */
static void test_records_are_read_as_written_or_refused(void **state)
{
    for (int no_sync = 0; no_sync < 2; no_sync++) {
        struct records r = {.no_sync = no_sync};
        const struct power_case c = {.ctx = &r,
                                     .job = write_records,
                                     .after = read_records,
                                     .calls = POWER_CHANGES | POWER_SYNCS,
                                     .seeds = SEEDS};
        assert_true(power_each_cut(*state, &c) > 4);
        assert_true(r.whole > 0 && r.unopened > 0);
        if (SEEDS > 20) assert_true(r.unread > 0);
    }
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_manifest_is_whole_or_refused),
        SCRATCH_TEST(test_records_are_read_as_written_or_refused),
    };
    return cmocka_run_group_tests_name("record_power", tests, NULL, NULL);
}
