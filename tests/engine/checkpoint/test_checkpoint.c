/* Folders of checkpoints: whole or not at all, the rows that were written, nothing of a stranger's
 * removed, every damage noticed. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/drps_checkpoint.h"
#include "support/fault_io.h"
#include "support/scratch.h"

enum {
    ROWS = 7000,
    ROW_BYTES = 36,
    PART_BYTES = 8192, /* 228 rows, so that the last part has fewer */
    PARTS_MOST = 40,
    CHANGES = FAULT_OPEN | FAULT_PWRITE | FAULT_FSYNC | FAULT_RENAME | FAULT_UNLINK | FAULT_MKDIR |
              FAULT_RMDIR | FAULT_LINK,
};

struct fixture {
    struct scratch s;
    struct drps_checkpoints c;
    char *rows;      /* own: [ROWS][ROW_BYTES] */
    uint64_t before; /* the checkpoint that parts are taken of which are not changed; 0: none */
    char changed[PARTS_MOST];
};

static uint64_t part_rows(const struct fixture *f)
{
    return drps_checkpoint_part_rows(&f->c, ROWS, ROW_BYTES);
}

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct drps_err err = DRPS_ERR_INIT;
    assert_non_null(f);
    scratch_begin(&f->s);
    assert_int_equal(
        drps_checkpoints_init(&f->c, drps_io_os(), scratch_path(&f->s, "all/"), 3, &err), 0);
    f->c.part_bytes = PART_BYTES;
    assert_true(part_rows(f) < 300 && ROWS % part_rows(f));
    f->rows = malloc((size_t)ROWS * ROW_BYTES);
    assert_non_null(f->rows);
    for (size_t i = 0; i < (size_t)ROWS * ROW_BYTES; i++)
        f->rows[i] = (char)drps_rng_at(1, i);
    return f;
}

static void end(struct fixture *f)
{
    drps_checkpoints_destroy(&f->c);
    free(f->rows);
    scratch_end(&f->s);
    free(f);
}

/* Add rows first .. end - 1 in pieces of random length. */
static int add_rows(const struct fixture *f, struct drps_checkpoint_writer *w, uint64_t first,
                    uint64_t end, struct drps_err *err)
{
    int rc = 0;
    for (uint64_t at = first, n; at < end && rc == 0; at += n) {
        n = 1 + drps_rng_at(end, at) % 3000;
        if (n > end - at) n = end - at;
        rc = drps_checkpoint_add(w, at, (size_t)n, f->rows + at * ROW_BYTES, err);
    }
    return rc;
}

static int add_changed(const struct fixture *f, struct drps_checkpoint_writer *w,
                       struct drps_err *err)
{
    const uint64_t n = part_rows(f);
    int rc = drps_checkpoint_take_rows(w, f->before, err);
    for (uint64_t first = 0, i = 0; first < ROWS && rc == 0; first += n, i++)
        if (f->changed[i]) rc = add_rows(f, w, first, first + n < ROWS ? first + n : ROWS, err);
    return rc;
}

/* Write checkpoint `number`, and `tag` in its manifest. */
static int write_one(const struct fixture *f, const struct drps_io *io, uint64_t number, int tag,
                     struct drps_err *err)
{
    struct drps_checkpoints c = f->c;
    struct drps_checkpoint_writer *w;
    uint64_t bytes;
    c.io = io;
    int rc = drps_checkpoint_begin(&c, number, ROWS, ROW_BYTES, &w, err);
    if (rc < 0) return rc;
    rc = f->before ? add_changed(f, w, err) : add_rows(f, w, 0, ROWS, err);
    if (rc < 0) {
        drps_checkpoint_abort(w);
        return rc;
    }
    json_t *manifest = json_pack("{s:i}", "tag", tag);
    rc = drps_checkpoint_commit(w, manifest, &bytes, err);
    json_decref(manifest);
    if (rc == 0 && !f->before) assert_true(bytes > (uint64_t)ROWS * ROW_BYTES);
    return rc;
}

static void write_ok(const struct fixture *f, uint64_t number, int tag)
{
    struct drps_err err = DRPS_ERR_INIT;
    if (write_one(f, drps_io_os(), number, tag, &err) < 0) fail_msg("%s", err.text);
}

static size_t list(const struct fixture *f, uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST])
{
    size_t n;
    assert_int_equal(drps_checkpoints_list(&f->c, numbers, &n, NULL), 0);
    return n;
}

/* The checkpoint is whole, and the one with that tag; rows are read in random runs. */
static void check_one(const struct fixture *f, uint64_t number, int tag)
{
    struct drps_checkpoint *cp;
    struct drps_err err = DRPS_ERR_INIT;
    char *got = malloc((size_t)ROWS * ROW_BYTES);
    assert_non_null(got);
    if (drps_checkpoint_open(&f->c, number, &cp, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(json_integer_value(json_object_get(drps_checkpoint_manifest(cp), "tag")), tag);
    assert_int_equal(drps_checkpoint_rows(cp), ROWS);
    assert_int_equal(drps_checkpoint_row_bytes(cp), ROW_BYTES);
    assert_int_equal(drps_checkpoint_verify(cp, &err), 0);
    for (uint64_t i = 0; i < 50; i++) {
        const size_t first = (size_t)(drps_rng_at(5, i) % ROWS);
        const size_t n = i % 5 ? (size_t)(drps_rng_at(6, i) % 10) : ROWS - first;
        const size_t now = n < ROWS - first ? n : ROWS - first;
        assert_int_equal(drps_checkpoint_read(cp, first, now, got, &err), 0);
        assert_memory_equal(got, f->rows + first * ROW_BYTES, now * ROW_BYTES);
    }
    assert_true(drps_checkpoint_read(cp, ROWS - 1, 2, got, NULL) < 0);
    assert_true(drps_checkpoint_read(cp, UINT64_MAX, 2, got, NULL) < 0);
    drps_checkpoint_close(cp);
    free(got);
}

static void test_rows_come_back(void **state)
{
    struct fixture *f = begin();
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    (void)state;
    assert_int_equal(list(f, numbers), 0);
    for (int i = 1; i <= 12; i++)
        write_ok(f, (uint64_t)i, i);
    write_ok(f, 5, 105); /* replaced */
    assert_int_equal(list(f, numbers), DRPS_CHECKPOINT_LIST_MOST);
    for (uint64_t i = 0; i < DRPS_CHECKPOINT_LIST_MOST; i++)
        assert_int_equal(numbers[i], 12 - i);
    check_one(f, 5, 105);
    check_one(f, 12, 12);

    assert_int_equal(drps_checkpoints_keep(&f->c, 11, 12, 7, NULL), 0);
    assert_int_equal(list(f, numbers), 3);
    assert_int_equal(numbers[2], 7);
    assert_int_equal(drps_checkpoints_keep(&f->c, 11, 12, 0, NULL), 0);
    assert_int_equal(list(f, numbers), 2);
    assert_int_equal(drps_checkpoints_remove(&f->c, 11, NULL), 0);
    assert_int_equal(drps_checkpoints_remove(&f->c, 11, NULL), 0); /* none is no error */
    assert_int_equal(list(f, numbers), 1);
    assert_int_equal(drps_checkpoints_keep(&f->c, 1, 0, 0, NULL), 0);
    struct stat st;
    assert_int_not_equal(stat(f->c.root, &st), 0); /* all is gone, folders too */
    end(f);
}

/* Rows must come in order, and all of them. */
static void test_rows_are_counted(void **state)
{
    struct fixture *f = begin();
    struct drps_checkpoint_writer *w;
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t bytes, numbers[DRPS_CHECKPOINT_LIST_MOST];
    json_t *manifest = json_object();
    (void)state;
    assert_int_equal(drps_checkpoint_begin(&f->c, 1, ROWS, ROW_BYTES, &w, &err), 0);
    assert_int_equal(drps_checkpoint_add(w, 0, 10, f->rows, &err), 0);
    assert_true(drps_checkpoint_add(w, 11, 10, f->rows, NULL) < 0);
    assert_true(drps_checkpoint_add(w, 10, ROWS, f->rows, NULL) < 0);
    assert_true(drps_checkpoint_commit(w, manifest, &bytes, &err) < 0);
    assert_int_equal(list(f, numbers), 0);
    json_decref(manifest);
    end(f);
}

/* The best epoch's file, copied and then named twice; the second name outlives the first. */
static void test_best_is_shared(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    (void)scratch_file(&f->s, "params", "parameters", 10);
    for (uint64_t number = 1; number <= 2; number++) {
        struct drps_checkpoint_writer *w;
        uint64_t bytes;
        json_t *manifest = json_object();
        assert_int_equal(drps_checkpoint_begin(&f->c, number, ROWS, ROW_BYTES, &w, &err), 0);
        assert_int_equal(drps_checkpoint_add(w, 0, ROWS, f->rows, &err), 0);
        assert_int_equal(number == 1
                             ? drps_checkpoint_add_best(w, scratch_path(&f->s, "params"), &err)
                             : drps_checkpoint_link_best(w, 1, &err),
                         0);
        assert_int_equal(drps_checkpoint_commit(w, manifest, &bytes, &err), 0);
        json_decref(manifest);
    }
    assert_int_equal(drps_checkpoints_remove(&f->c, 1, &err), 0);
    size_t n;
    char path[SCRATCH_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/2/best.bin", f->c.dir);
    char *got = scratch_read(path, &n);
    assert_int_equal(n, 10);
    assert_memory_equal(got, "parameters", 10);
    free(got);
    end(f);
}

/* Names that are no numbers of ours are not looked at; a folder with a strange file stays. */
static void test_strangers_stay(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    struct stat st;
    char path[SCRATCH_PATH_BYTES];
    (void)state;
    write_ok(f, 7, 7);
    (void)scratch_file(&f->s, "all/rank-3/007", "x", 1);
    (void)scratch_file(&f->s, "all/rank-3/notes", "x", 1);
    (void)scratch_file(&f->s, "all/rank-3/99999999999999999999", "x", 1);
    (void)scratch_file(&f->s, "all/rank-3/7/photo", "x", 1);
    assert_int_equal(list(f, numbers), 1);
    assert_int_equal(numbers[0], 7);
    assert_true(drps_checkpoints_keep(&f->c, 1, 0, 0, &err) < 0);
    assert_non_null(strstr(err.text, "photo"));
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"007", "notes", "99999999999999999999", "7/photo"};
        (void)snprintf(path, sizeof(path), "%s/%s", f->c.dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
    }
    check_one(f, 7, 7); /* whole, as it was */
    end(f);
}

/* ---- Parts ---- */

static char *part_path(const struct fixture *f, uint64_t number, uint64_t part)
{
    static char path[SCRATCH_PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/%llu/rows/%05llu.rec", f->c.dir,
                   (unsigned long long)number, (unsigned long long)part);
    return path;
}

/* Change rows of about one part in `one_in`, and count the parts. */
static size_t change_parts(struct fixture *f, uint64_t seed, uint64_t one_in)
{
    size_t n = 0;
    memset(f->changed, 0, sizeof(f->changed));
    for (uint64_t i = 0; i * part_rows(f) < ROWS; i++) {
        f->changed[i] = drps_rng_at(seed, i) % one_in == 0;
        f->rows[i * part_rows(f) * ROW_BYTES] ^= f->changed[i];
        n += (size_t)f->changed[i];
    }
    return n;
}

/* Each checkpoint takes what has not changed from the one before, which is removed then: it has the
 * rows of one that is written anew. */
static void test_parts_are_shared(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct stat st;
    (void)state;
    write_ok(f, 1, 1);
    for (uint64_t number = 2; number < 30; number++) {
        f->before = number - 1;
        (void)change_parts(f, number, number % 5 ? number % 7 + 1 : UINT64_MAX); /* all to none */
        write_ok(f, number, (int)number);
        for (uint64_t i = 0; i * part_rows(f) < ROWS; i++) {
            assert_int_equal(stat(part_path(f, number, i), &st), 0);
            assert_int_equal(st.st_nlink > 1, !f->changed[i]);
        }
        assert_int_equal(drps_checkpoints_remove(&f->c, number - 1, &err), 0);
        check_one(f, number, (int)number);
    }
    end(f);
}

/* A file system without second names: parts are copied. */
static void test_parts_are_copied(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct fault_io *io = fault_io_new(drps_io_os());
    struct stat st;
    (void)state;
    write_ok(f, 1, 1);
    f->before = 1;
    assert_true(change_parts(f, 3, 4) > 0);
    fault_io_arm(io, FAULT_LINK, 1, 1, FAULT_ERROR, -EPERM);
    if (write_one(f, &io->io, 2, 2, &err) < 0) fail_msg("%s", err.text);
    assert_true(atomic_load(&io->fired));
    fault_io_free(io);
    for (uint64_t i = 0; i * part_rows(f) < ROWS; i++) {
        assert_int_equal(stat(part_path(f, 2, i), &st), 0);
        assert_int_equal(st.st_nlink, 1);
    }
    assert_int_equal(drps_checkpoints_remove(&f->c, 1, &err), 0);
    check_one(f, 2, 2);
    end(f);
}

/* What is taken must be there, and whole parts come. */
static void test_missing_parts_are_told(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoint_writer *w;
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    const size_t n = (size_t)part_rows(f);
    (void)state;
    write_ok(f, 1, 1);
    assert_int_equal(drps_checkpoint_begin(&f->c, 2, ROWS, ROW_BYTES, &w, &err), 0);
    assert_int_equal(drps_checkpoint_take_rows(w, 1, &err), 0);
    assert_int_equal(drps_checkpoint_add(w, 1, n, f->rows, NULL), -EINVAL); /* not of a part */
    assert_int_equal(drps_checkpoint_add(w, n, n - 1, f->rows, &err), 0);
    assert_int_equal(drps_checkpoint_add(w, 2 * n, n, f->rows, NULL), -EINVAL); /* a row lacks */
    assert_int_equal(drps_checkpoint_add(w, 2 * n - 1, 1, f->rows, &err), 0);
    assert_int_equal(drps_checkpoint_add(w, 0, 1, f->rows, NULL), -EINVAL); /* not again */
    drps_checkpoint_abort(w);
    f->before = 1;
    (void)change_parts(f, 1, UINT64_MAX);
    assert_int_equal(unlink(part_path(f, 1, 30)), 0);
    assert_int_equal(write_one(f, drps_io_os(), 2, 2, NULL), -ENOENT);
    assert_int_equal(list(f, numbers), 1);
    end(f);
}

/* Rows are read from a later checkpoint, and the first may go. */
static void test_reading_follows(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoint *cp;
    char row[ROW_BYTES];
    (void)state;
    write_ok(f, 1, 1);
    assert_int_equal(drps_checkpoint_open(&f->c, 1, &cp, &err), 0);
    assert_int_equal(drps_checkpoint_read(cp, 7, 1, row, &err), 0);
    f->before = 1;
    (void)change_parts(f, 1, 1);
    f->c.part_bytes *= 2; /* another size of parts, so that none is taken */
    memset(f->changed, 1, sizeof(f->changed));
    write_ok(f, 2, 2);
    assert_int_equal(drps_checkpoint_follow(cp, &f->c, 3, NULL), -ENOENT);
    assert_int_equal(drps_checkpoint_read(cp, 8, 1, row, &err), 0);
    assert_int_equal(drps_checkpoint_follow(cp, &f->c, 2, &err), 0);
    assert_int_equal(drps_checkpoints_remove(&f->c, 1, &err), 0);
    for (uint64_t i = 0; i < ROWS; i += 7) {
        assert_int_equal(drps_checkpoint_read(cp, i, 1, row, &err), 0);
        assert_memory_equal(row, f->rows + i * ROW_BYTES, ROW_BYTES);
    }
    drps_checkpoint_close(cp);
    end(f);
}

/* A checkpoint of the first version, with all rows in one file: it is told of, and can go. */
static void test_version_1_is_refused(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_checkpoint *cp;
    json_t *manifest = json_pack("{s:s, s:i}", "kind", DRPS_CHECKPOINT_KIND, "version", 1);
    uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
    (void)state;
    write_ok(f, 2, 2);
    assert_int_equal(mkdir(scratch_path(&f->s, "all/rank-3/1"), 0777), 0);
    (void)scratch_file(&f->s, "all/rank-3/1/rows.rec", "rows", 4);
    assert_int_equal(drps_manifest_write(drps_io_os(),
                                         scratch_path(&f->s, "all/rank-3/1/checkpoint.json"),
                                         manifest, &err),
                     0);
    json_decref(manifest);
    assert_int_equal(drps_checkpoint_open(&f->c, 1, &cp, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "has version 1"));
    if (drps_checkpoints_keep(&f->c, 2, 2, 0, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(list(f, numbers), 1);
    end(f);
}

/* ---- Damage ---- */

static int opens_whole(const struct fixture *f, uint64_t number)
{
    struct drps_checkpoint *cp;
    int rc = drps_checkpoint_open(&f->c, number, &cp, NULL);
    if (rc == 0) rc = drps_checkpoint_verify(cp, NULL);
    if (rc == 0) drps_checkpoint_close(cp);
    if (rc < 0 && cp) drps_checkpoint_close(cp);
    return rc == 0;
}

/* Any flipped byte is noticed, but for zeros between records, which mean nothing; so is a file that
 * is cut anywhere. */
static void test_damage_is_noticed(void **state)
{
    static const char *const files[] = {"checkpoint.json", "rows/00000.rec", "rows/00030.rec"};
    struct fixture *f = begin();
    (void)state;
    write_ok(f, 1, 1);
    for (size_t i = 0; i < 3; i++) {
        char path[SCRATCH_PATH_BYTES];
        size_t n;
        (void)snprintf(path, sizeof(path), "%s/1/%s", f->c.dir, files[i]);
        char *whole = scratch_read(path, &n);
        const size_t step = i ? n / (400 / DRPS_TEST_ONE_IN) + 1 : DRPS_TEST_ONE_IN;
        for (size_t at = 0; at < n; at += step) {
            char *bad = malloc(n);
            memcpy(bad, whole, n);
            bad[at] ^= 0x10;
            scratch_write(path, bad, n);
            if (opens_whole(f, 1) && whole[at])
                fail_msg("%s: byte %zu of %zu flipped, and not noticed", files[i], at, n);
            scratch_write(path, whole, at);
            if (opens_whole(f, 1))
                fail_msg("%s: cut at %zu of %zu, and not noticed", files[i], at, n);
            free(bad);
        }
        scratch_write(path, whole, n);
        assert_true(opens_whole(f, 1));
        free(whole);
    }
    end(f);
}

/* Rows of other numbers with right checksums: the manifest must agree with them. */
static void test_numbers_are_checked(void **state)
{
    static const struct {
        uint64_t rows;
        size_t row_bytes;
    } others[] = {{ROWS - 1, ROW_BYTES}, {ROWS, ROW_BYTES + 4}, {ROWS + 1, ROW_BYTES}};
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    char from[SCRATCH_PATH_BYTES], to[SCRATCH_PATH_BYTES];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct drps_checkpoint_writer *w;
        uint64_t bytes;
        json_t *manifest = json_object();
        char *rows = calloc(others[i].rows, others[i].row_bytes);
        write_ok(f, 1, 1);
        assert_int_equal(
            drps_checkpoint_begin(&f->c, 2, others[i].rows, others[i].row_bytes, &w, &err), 0);
        assert_int_equal(drps_checkpoint_add(w, 0, others[i].rows, rows, &err), 0);
        assert_int_equal(drps_checkpoint_commit(w, manifest, &bytes, &err), 0);
        (void)snprintf(from, sizeof(from), "%s/2/rows/00030.rec", f->c.dir);
        (void)snprintf(to, sizeof(to), "%s/1/rows/00030.rec", f->c.dir);
        assert_int_equal(rename(from, to), 0);
        assert_false(opens_whole(f, 1));
        json_decref(manifest);
        free(rows);
    }
    end(f);
}

/* ---- Faults ---- */

/* Whatever call fails, from then on all of them: checkpoint 2 is whole or not there, the one before
 * is as it was, and the next run writes 2 without help. */
static void check_faults(struct fixture *f, uint64_t before)
{
    struct drps_err err = DRPS_ERR_INIT;
    long k = 1;
    for (;; k++) {
        struct fault_io *io = fault_io_new(drps_io_os());
        uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
        f->before = 0;
        write_ok(f, 1, 1);
        f->before = before;
        fault_io_arm(io, CHANGES, k, 1, k % 2 ? FAULT_ERROR : FAULT_TORN, -EIO);
        drps_err_clear(&err);
        const int rc = write_one(f, &io->io, 2, 2, &err);
        const int fired = atomic_load(&io->fired);
        fault_io_free(io);
        check_one(f, 1, 1);
        const size_t n = list(f, numbers);
        if (rc == 0 || numbers[0] == 2) check_one(f, 2, 2);
        assert_int_equal(n, numbers[0] == 2 ? 2 : 1);
        write_ok(f, 2, 3);
        check_one(f, 2, 3);
        assert_int_equal(drps_checkpoints_keep(&f->c, 1, 1, 0, &err), 0);
        if (!fired) break;
    }
    assert_true(k > 10);
}

static void test_faults_leave_the_one_before(void **state)
{
    struct fixture *f = begin();
    (void)state;
    check_faults(f, 0);
    for (int i = 3; i < PARTS_MOST; i += 5) /* some parts come, others are taken */
        f->changed[i] = 1;
    check_faults(f, 1);
    end(f);
}

/* Removing that ends in the middle leaves nothing that looks whole, and can be done again. */
static void test_faults_while_removing(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    long k = 1;
    (void)state;
    for (;; k++) {
        struct fault_io *io = fault_io_new(drps_io_os());
        struct drps_checkpoints c = f->c;
        write_ok(f, 1, 1);
        write_ok(f, 2, 2);
        c.io = &io->io;
        fault_io_arm(io, CHANGES, k, 1, FAULT_ERROR, -EIO);
        const int rc = drps_checkpoints_keep(&c, 2, 2, 0, NULL);
        const int fired = atomic_load(&io->fired);
        fault_io_free(io);
        check_one(f, 2, 2);
        if (opens_whole(f, 1)) assert_true(rc < 0);
        drps_err_clear(&err);
        if (drps_checkpoints_keep(&f->c, 2, 2, 0, &err) < 0) fail_msg("call %ld: %s", k, err.text);
        assert_false(opens_whole(f, 1));
        if (!fired) break;
    }
    assert_true(k > 3);
    end(f);
}

/* ---- The lock ---- */

/* Files that are to be opened in a folder that another process removes just before, so often. */
struct vanishing {
    struct drps_io_ops ops;
    const char *dir;
    int left;
};

static int vanishing_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct vanishing *v = ctx;
    if (v->left && strncmp(path, v->dir, strlen(v->dir)) == 0 && path[strlen(v->dir)]) {
        v->left--;
        assert_int_equal(rmdir(v->dir), 0);
    }
    return drps_io_os()->ops->open(NULL, path, flags, mode);
}

/* A rank that ends removes its folder, and whoever looks at it then must not fail for that; one
 * that cannot be made at all is an error. */
static void test_lock_takes_a_folder_that_vanishes(void **state)
{
    struct fixture *f = begin();
    struct drps_err err = DRPS_ERR_INIT;
    struct vanishing v = {.ops = *drps_io_os()->ops, .dir = f->c.dir};
    const struct drps_io io = {.ops = &v.ops, .ctx = &v};
    struct drps_checkpoints lost;
    (void)state;
    v.ops.open = vanishing_open;
    f->c.io = &io;
    for (int times = 1; times < 4; times++) {
        v.left = times;
        if (drps_checkpoints_lock(&f->c, &err) < 0) fail_msg("%d times: %s", times, err.text);
        assert_int_equal(err.code, 0);
        assert_int_equal(v.left, 0);
        assert_int_equal(close(f->c.lock_fd), 0);
        f->c.lock_fd = -1;
        assert_int_equal(unlink(f->c.lock), 0);
    }
    f->c.io = drps_io_os();

    const char *nowhere = scratch_path(&f->s, "no/folder");
    assert_int_equal(drps_checkpoints_init(&lost, drps_io_os(), nowhere, 3, &err), 0);
    assert_int_equal(drps_checkpoints_lock(&lost, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no/folder"));
    drps_checkpoints_destroy(&lost);
    end(f);
}

/* ---- Lists ---- */

/* A list that breaks off is a failure: what it hides would be trained once more, and replaced. */
static long entries_left = -1;

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir)
{
    if (entries_left-- != 0) return __real_readdir(dir);
    errno = ESTALE;
    return NULL;
}

static void test_broken_lists_are_noticed(void **state)
{
    struct fixture *f = begin();
    (void)state;
    assert_int_equal(write_one(f, drps_io_os(), 1, 1, NULL), 0);
    for (long k = 0; k < 3; k++) { /* ".", ".." and the checkpoint */
        uint64_t numbers[DRPS_CHECKPOINT_LIST_MOST];
        struct drps_err err = DRPS_ERR_INIT;
        size_t n;
        entries_left = k;
        assert_int_equal(drps_checkpoints_list(&f->c, numbers, &n, &err), -ESTALE);
        assert_non_null(strstr(err.text, f->c.dir));
        entries_left = k;
        assert_int_equal(drps_checkpoints_keep(&f->c, 1, 1, 0, &err), -ESTALE);
    }
    entries_left = -1;
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_back),
        cmocka_unit_test(test_rows_are_counted),
        cmocka_unit_test(test_best_is_shared),
        cmocka_unit_test(test_strangers_stay),
        cmocka_unit_test(test_parts_are_shared),
        cmocka_unit_test(test_parts_are_copied),
        cmocka_unit_test(test_missing_parts_are_told),
        cmocka_unit_test(test_reading_follows),
        cmocka_unit_test(test_version_1_is_refused),
        cmocka_unit_test(test_damage_is_noticed),
        cmocka_unit_test(test_numbers_are_checked),
        cmocka_unit_test(test_faults_leave_the_one_before),
        cmocka_unit_test(test_faults_while_removing),
        cmocka_unit_test(test_lock_takes_a_folder_that_vanishes),
        cmocka_unit_test(test_broken_lists_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
