/* The twin that loses power: what it calls durable, what it may drop, and that it sees every call.
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

#include "storage/io/drps_aio.h"
#include "support/fault_io.h"
#include "support/power.h"
#include "support/scratch.h"

enum { SECTOR = 512, SEEDS = 400 };

struct fixture {
    struct scratch *s;
    struct power *p;
    char disk[SCRATCH_PATH_BYTES], found[SCRATCH_PATH_BYTES], at[SCRATCH_PATH_BYTES];
};

static void begin(struct fixture *f, struct scratch *s)
{
    f->s = s;
    (void)snprintf(f->disk, sizeof(f->disk), "%s", scratch_path(s, "disk"));
    (void)snprintf(f->found, sizeof(f->found), "%s", scratch_path(s, "found"));
    assert_int_equal(mkdir(f->disk, 0777), 0);
    scratch_write(scratch_path(s, "disk/old"), "old", 3);
    f->p = power_new(drps_io_os(), f->disk);
}

static const char *at(struct fixture *f, const char *name)
{
    assert_true(snprintf(f->at, sizeof(f->at), "%s/%s", f->disk, name) < (int)sizeof(f->at));
    return f->at;
}

/* Write through `io`; sync 1: and sync the file. */
static int put(struct fixture *f, const struct drps_io *io, const char *name, const char *text,
               int sync)
{
    int fd;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = at(f, name);
    int rc = drps_io_open(io, path, O_WRONLY | O_CREAT | O_TRUNC, &fd, &err);
    if (rc == 0) rc = drps_io_write_at(io, fd, text, strlen(text), 0, path, &err);
    if (rc == 0 && sync) rc = drps_io_sync(io, fd, path, &err);
    drps_io_close(io, fd);
    return rc;
}

static int sync_folder(struct fixture *f, const char *name)
{
    int fd;
    const char *path = at(f, name);
    int rc = drps_io_open(&f->p->io, path, O_RDONLY | O_DIRECTORY, &fd, NULL);
    if (rc == 0) rc = drps_io_sync(&f->p->io, fd, path, NULL);
    drps_io_close(&f->p->io, fd);
    return rc;
}

/* What the machine finds, "name=bytes " of each file; a folder is "name/". */
static void list(const char *dir, const char *below, char *text, size_t cap)
{
    static const char *const names[] = {"a", "b", "c", "d", "old"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[SCRATCH_PATH_BYTES], name[64];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)snprintf(name, sizeof(name), "%s%s", below, names[i]);
        const size_t used = strlen(text);
        if (lstat(path, &st)) continue;
        if (S_ISDIR(st.st_mode)) {
            (void)snprintf(text + used, cap - used, "%s/ ", name);
            (void)snprintf(name, sizeof(name), "%s%s/", below, names[i]);
            list(path, name, text, cap);
            continue;
        }
        size_t n;
        char *data = scratch_read(path, &n);
        (void)snprintf(text + used, cap - used, "%s=%s ", name, data);
        free(data);
    }
}

static const char *found(struct fixture *f, uint64_t choice)
{
    static char text[1024];
    text[0] = '\0';
    power_cut(f->p);
    assert_int_equal(power_found(f->p, choice, f->found), 0);
    list(f->found, "", text, sizeof(text));
    assert_int_equal(drps_io_remove_tree(drps_io_os(), f->found, NULL), 0);
    return text;
}

static void end(struct fixture *f)
{
    power_free(f->p);
    assert_int_equal(drps_io_remove_tree(drps_io_os(), f->disk, NULL), 0);
}

/* ---- What is durable ---- */

static void write_only(struct fixture *f)
{
    assert_int_equal(put(f, &f->p->io, "a", "A", 0), 0);
}

static void write_and_sync(struct fixture *f)
{
    assert_int_equal(put(f, &f->p->io, "a", "A", 1), 0);
}

static void write_and_sync_folder(struct fixture *f)
{
    write_only(f);
    assert_int_equal(sync_folder(f, ""), 0);
}

static void write_and_sync_both(struct fixture *f)
{
    write_and_sync(f);
    assert_int_equal(sync_folder(f, ""), 0);
}

static void overwrite(struct fixture *f)
{
    assert_int_equal(put(f, &f->p->io, "old", "new", 0), 0);
}

static void overwrite_and_sync(struct fixture *f)
{
    assert_int_equal(put(f, &f->p->io, "old", "new", 1), 0);
}

static void unlink_old(struct fixture *f)
{
    assert_int_equal(f->p->io.ops->unlink(f->p, at(f, "old")), 0);
}

static void make_folder(struct fixture *f)
{
    assert_int_equal(f->p->io.ops->mkdir(f->p, at(f, "b"), 0777), 0);
    assert_int_equal(put(f, &f->p->io, "b/c", "C", 1), 0);
    assert_int_equal(sync_folder(f, "b"), 0);
}

static void make_and_remove_folder(struct fixture *f)
{
    make_folder(f);
    assert_int_equal(sync_folder(f, ""), 0);
    assert_int_equal(f->p->io.ops->unlink(f->p, at(f, "b/c")), 0);
    assert_int_equal(f->p->io.ops->rmdir(f->p, at(f, "b")), 0);
}

static void rename_over(struct fixture *f)
{
    char to[SCRATCH_PATH_BYTES];
    write_and_sync(f);
    (void)snprintf(to, sizeof(to), "%s", at(f, "old"));
    assert_int_equal(f->p->io.ops->rename(f->p, at(f, "a"), to), 0);
}

static void rename_over_and_sync(struct fixture *f)
{
    rename_over(f);
    assert_int_equal(sync_folder(f, ""), 0);
}

static void rename_from_a_folder(struct fixture *f)
{
    char to[SCRATCH_PATH_BYTES];
    make_folder(f);
    (void)snprintf(to, sizeof(to), "%s", at(f, "c"));
    assert_int_equal(f->p->io.ops->rename(f->p, at(f, "b/c"), to), 0);
    assert_int_equal(sync_folder(f, "b"), 0); /* not the folder that it went to */
}

static void exchange(struct fixture *f)
{
    char other[SCRATCH_PATH_BYTES];
    write_and_sync_both(f);
    (void)snprintf(other, sizeof(other), "%s", at(f, "old"));
    assert_int_equal(f->p->io.ops->exchange(f->p, at(f, "a"), other), 0);
}

static void second_name(struct fixture *f)
{
    char to[SCRATCH_PATH_BYTES];
    (void)snprintf(to, sizeof(to), "%s", at(f, "d"));
    assert_int_equal(f->p->io.ops->link(f->p, at(f, "old"), to), 0);
    unlink_old(f);
}

static void past_the_twin(struct fixture *f)
{
    scratch_write(at(f, "a"), "A", 1);
}

static void past_the_twin_and_sync_folder(struct fixture *f)
{
    past_the_twin(f);
    assert_int_equal(sync_folder(f, ""), 0);
}

static void past_the_twin_and_sync_both(struct fixture *f)
{
    int fd;
    past_the_twin_and_sync_folder(f);
    assert_int_equal(drps_io_open(&f->p->io, at(f, "a"), O_RDONLY, &fd, NULL), 0);
    assert_int_equal(drps_io_sync(&f->p->io, fd, "a", NULL), 0);
    drps_io_close(&f->p->io, fd);
}

static void lost_sync(struct fixture *f)
{
    power_lose_sync_at(f->p, 1);
    assert_int_equal(put(f, &f->p->io, "old", "new", 1), -EIO);
    int fd;
    assert_int_equal(drps_io_open(&f->p->io, at(f, "old"), O_RDWR, &fd, NULL), 0);
    assert_int_equal(drps_io_sync(&f->p->io, fd, "old", NULL), 0); /* as if all were well */
    drps_io_close(&f->p->io, fd);
}

static void lost_sync_of_a_folder(struct fixture *f)
{
    write_and_sync(f);
    power_lose_sync_at(f->p, 1);
    assert_int_equal(sync_folder(f, ""), -EIO);
}

static void cut_at_sync(struct fixture *f)
{
    power_cut_at(f->p, POWER_SYNCS, 1);
    assert_int_equal(put(f, &f->p->io, "old", "new", 1), -EIO);
}

static void test_power_finds_what_is_durable(void **state)
{
    static const struct {
        const char *name;
        void (*job)(struct fixture *f);
        const char *nothing, *everything;
    } cases[] = {
        {"written", write_only, "old=old ", "a=A old=old "},
        {"synced file", write_and_sync, "old=old ", "a=A old=old "},
        {"synced folder", write_and_sync_folder, "a= old=old ", "a=A old=old "},
        {"synced", write_and_sync_both, "a=A old=old ", "a=A old=old "},
        {"overwritten", overwrite, "old=old ", "old=new "},
        {"overwritten, synced", overwrite_and_sync, "old=new ", "old=new "},
        {"unlinked", unlink_old, "old=old ", ""},
        {"folder", make_folder, "old=old ", "b/ b/c=C old=old "},
        {"removed folder", make_and_remove_folder, "b/ b/c=C old=old ", "old=old "},
        {"renamed", rename_over, "old=old ", "old=A "},
        {"renamed, synced", rename_over_and_sync, "old=A ", "old=A "},
        {"moved", rename_from_a_folder, "old=old ", "b/ c=C old=old "},
        {"exchanged", exchange, "a=A old=old ", "a=old old=A "},
        {"linked", second_name, "old=old ", "d=old "},
        {"past the twin", past_the_twin, "old=old ", "a=A old=old "},
        {"past it, synced folder", past_the_twin_and_sync_folder, "a= old=old ", "a=A old=old "},
        {"past it, synced", past_the_twin_and_sync_both, "a=A old=old ", "a=A old=old "},
        {"lost sync", lost_sync, "old=old ", "old=old "},
        {"lost sync of a folder", lost_sync_of_a_folder, "old=old ", "a=A old=old "},
        {"cut at a sync", cut_at_sync, "old=old ", "old=new "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f;
        begin(&f, *state);
        cases[i].job(&f);
        const char *text = found(&f, DISK_NOTHING);
        if (strcmp(text, cases[i].nothing) != 0)
            fail_msg("%s: '%s' is durable instead of '%s'", cases[i].name, text, cases[i].nothing);
        text = found(&f, DISK_EVERYTHING);
        if (strcmp(text, cases[i].everything) != 0)
            fail_msg("%s: '%s' instead of '%s'", cases[i].name, text, cases[i].everything);
        end(&f);
    }
}

/* ---- What may be found ---- */

/* Each of `want` comes with some seed, and nothing else does. */
static void check_seeds(struct fixture *f, const char *const *want, size_t n)
{
    size_t seen[8] = {0};
    for (uint64_t seed = 2; seed < SEEDS; seed++) {
        const char *text = found(f, seed);
        size_t i = 0;
        while (i < n && strcmp(text, want[i]) != 0)
            i++;
        if (i == n) fail_msg("seed %llu: '%s'", (unsigned long long)seed, text);
        seen[i]++;
    }
    for (size_t i = 0; i < n; i++)
        if (!seen[i]) fail_msg("'%s' has not come", want[i]);
}

static void test_power_drops_operations_on_different_names(void **state)
{
    static const char *const want[] = {"old=old ", "a=A old=old ", "b=B old=old ",
                                       "a=A b=B old=old "};
    struct fixture f;
    begin(&f, *state);
    for (int i = 0; i < 2; i++) { /* files whose bytes are durable */
        assert_int_equal(put(&f, &f.p->io, i ? "b" : "a", i ? "B" : "A", 1), 0);
    }
    check_seeds(&f, want, 4);
    end(&f);
}

static void test_power_keeps_operations_on_one_name_in_order(void **state)
{
    static const char *const want[] = {"old=old ", "a=A old=old ", "old=A "};
    struct fixture f;
    begin(&f, *state);
    rename_over(&f); /* "a" is made, then it becomes "old" */
    check_seeds(&f, want, 3);
    end(&f);
}

static void test_power_drops_writes_in_any_order(void **state)
{
    static const char *const want[] = {"old=old ", "old=1ld ", "old=o2d ", "old=12d "};
    struct fixture f;
    int fd;
    begin(&f, *state);
    assert_int_equal(drps_io_open(&f.p->io, at(&f, "old"), O_RDWR, &fd, NULL), 0);
    assert_int_equal(drps_io_write_at(&f.p->io, fd, "1", 1, 0, "old", NULL), 0);
    assert_int_equal(drps_io_write_at(&f.p->io, fd, "2", 1, 1, "old", NULL), 0);
    check_seeds(&f, want, 4);
    drps_io_close(&f.p->io, fd);
    end(&f);
}

static void test_power_tears_writes_between_sectors(void **state)
{
    enum { BYTES = 4 * SECTOR };
    char old[BYTES + 1], new[BYTES + 1];
    struct fixture f;
    int torn = 0;
    begin(&f, *state);
    memset(old, 'o', BYTES);
    memset(new, 'n', BYTES);
    old[BYTES] = new[BYTES] = '\0';
    assert_int_equal(put(&f, &f.p->io, "a", old, 1), 0);
    assert_int_equal(sync_folder(&f, ""), 0);
    int fd;
    assert_int_equal(drps_io_open(&f.p->io, at(&f, "a"), O_RDWR, &fd, NULL), 0);
    assert_int_equal(drps_io_write_at(&f.p->io, fd, new, BYTES - SECTOR, SECTOR / 2, "a", NULL), 0);
    drps_io_close(&f.p->io, fd);
    power_cut(f.p);
    for (uint64_t seed = 2; seed < SEEDS; seed++) {
        size_t n, turns = 0;
        char path[SCRATCH_PATH_BYTES + 2];
        assert_int_equal(power_found(f.p, seed, f.found), 0);
        (void)snprintf(path, sizeof(path), "%s/a", f.found);
        char *data = scratch_read(path, &n);
        assert_int_equal(n, BYTES);
        for (size_t i = 1; i < n; i++) {
            const int edge = i % SECTOR == 0 || i == SECTOR / 2 || i == BYTES - SECTOR / 2;
            if (data[i] != data[i - 1] && !edge) fail_msg("torn at byte %zu", i);
            turns += data[i] != data[i - 1];
        }
        torn += turns > 2;
        free(data);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), f.found, NULL), 0);
    }
    assert_true(torn > 0);
    end(&f);
}

/* ---- Calls ---- */

static void test_power_fails_every_call_once_it_is_off(void **state)
{
    struct fixture f;
    const struct drps_io_ops *ops;
    struct iovec piece = {.iov_base = "x", .iov_len = 1};
    char c, old[SCRATCH_PATH_BYTES], to[SCRATCH_PATH_BYTES];
    begin(&f, *state);
    ops = f.p->io.ops;
    (void)snprintf(old, sizeof(old), "%s", at(&f, "old"));
    (void)snprintf(to, sizeof(to), "%s", at(&f, "to"));
    const int fd = ops->open(f.p, old, O_RDWR, 0);
    assert_true(fd >= 0);
    power_cut(f.p);
    assert_int_equal(ops->open(f.p, old, O_RDONLY, 0), -EIO);
    assert_int_equal(ops->open(f.p, "/dev/null", O_RDONLY, 0), -EIO);
    assert_int_equal(ops->read(f.p, fd, &c, 1), -EIO);
    assert_int_equal(ops->pread(f.p, fd, &c, 1, 0), -EIO);
    assert_int_equal(ops->pwrite(f.p, fd, &c, 1, 0), -EIO);
    assert_int_equal(ops->pwritev(f.p, fd, &piece, 1, 0), -EIO);
    assert_int_equal(ops->fsync(f.p, fd), -EIO);
    assert_int_equal(ops->ftruncate(f.p, fd, 0), -EIO);
    assert_int_equal(ops->fallocate(f.p, fd, 10), -EIO);
    assert_int_equal(ops->size(f.p, fd), -EIO);
    assert_int_equal(ops->rename(f.p, old, to), -EIO);
    assert_int_equal(ops->exchange(f.p, old, to), -EIO);
    assert_int_equal(ops->link(f.p, old, to), -EIO);
    assert_int_equal(ops->unlink(f.p, old), -EIO);
    assert_int_equal(ops->mkdir(f.p, to, 0777), -EIO);
    assert_int_equal(ops->rmdir(f.p, to), -EIO);
    assert_int_equal(ops->close(f.p, fd), -EIO); /* and closes */
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_string_equal(found(&f, DISK_EVERYTHING), "old=old ");
    end(&f);
}

static void test_power_cuts_at_each_call_in_turn(void **state)
{
    static const char *const everything[] = {
        "a= old=old ",          "a=A old=old ",          "a=A b/ old=old ",
        "a=A b/ b/c= old=old ", "a=A b/ b/c=C old=old ",
    };
    for (long k = 1; k <= 5; k++) {
        struct fixture f;
        begin(&f, *state);
        power_cut_at(f.p, POWER_CHANGES, k);
        int rc = put(&f, &f.p->io, "a", "A", 1);
        if (rc == 0) rc = f.p->io.ops->mkdir(f.p, at(&f, "b"), 0777);
        if (rc == 0) rc = put(&f, &f.p->io, "b/c", "C", 1);
        assert_int_equal(rc, -EIO);
        assert_string_equal(found(&f, DISK_EVERYTHING), everything[k - 1]);
        end(&f);
    }
}

/* Faults go on top: a short write is one that moved less. */
static void test_power_below_faults(void **state)
{
    struct fixture f;
    begin(&f, *state);
    struct fault_io *fault = fault_io_new(&f.p->io);
    fault_io_arm(fault, FAULT_PWRITE, 1, 0, FAULT_SHORT, 0);
    assert_int_equal(put(&f, &fault->io, "a", "ABCD", 0), 0);
    assert_int_equal(atomic_load(&fault->fired), 1);
    fault_io_arm(fault, FAULT_PWRITE, 1, 0, FAULT_ERROR, -EINTR);
    assert_int_equal(put(&f, &fault->io, "b", "B", 0), 0);
    fault_io_arm(fault, FAULT_PWRITE, 1, 0, FAULT_TORN, -ENOSPC);
    assert_int_equal(put(&f, &fault->io, "c", "CCDD", 0), -ENOSPC);
    assert_string_equal(found(&f, DISK_EVERYTHING), "a=ABCD b=B c=CC old=old ");
    fault_io_free(fault);
    end(&f);
}

/* Asynchronous writes come through the twin's calls, from threads, past the page cache too. */
static void test_power_sees_asynchronous_writes(void **state)
{
    enum { BYTES = 4 * DRPS_AIO_ALIGN };
    struct fixture f;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_aio *aio;
    struct drps_aio_about about;
    uint32_t tags[4];
    size_t n;
    begin(&f, *state);
    char *buf = aligned_alloc(DRPS_AIO_ALIGN, BYTES);
    assert_non_null(buf);
    memset(buf, 'x', BYTES);
    const struct drps_aio_config config = {.io = &f.p->io,
                                           .path = at(&f, "a"),
                                           .file_bytes = BYTES,
                                           .buffers = buf,
                                           .buffers_bytes = BYTES,
                                           .depth = 4};
    if (drps_aio_open(&config, &aio, &err) < 0) fail_msg("%s", err.text);
    drps_aio_about(aio, &about);
    assert_string_equal(about.engine, "threads");
    assert_int_equal(sync_folder(&f, ""), 0);
    power_cut_at(f.p, POWER_CHANGES, 3);
    for (uint32_t i = 0; i < 4; i++) {
        const struct drps_aio_op op = {.buf = buf + i * DRPS_AIO_ALIGN,
                                       .bytes = DRPS_AIO_ALIGN,
                                       .offset = i * DRPS_AIO_ALIGN,
                                       .write = 1,
                                       .tag = i};
        assert_int_equal(drps_aio_submit(aio, &op, 1, &err), 0);
    }
    assert_int_equal(drps_aio_wait(aio, 4, tags, 4, &n, &err), -EIO);
    drps_aio_close(aio);
    size_t bytes, written = 0;
    char path[SCRATCH_PATH_BYTES + 2];
    assert_int_equal(power_found(f.p, DISK_EVERYTHING, f.found), 0);
    (void)snprintf(path, sizeof(path), "%s/a", f.found);
    char *data = scratch_read(path, &bytes);
    assert_int_equal(bytes, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        written += data[i] == 'x';
    assert_int_equal(written, 3 * DRPS_AIO_ALIGN);
    free(data);
    free(buf);
    end(&f);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

/* A request to io_uring may be found from when it was asked for, and a sync before its end leaves
 * it as it is; with faults on top it moves less. */
static void test_power_keeps_requests_under_way(void **state)
{
    static const struct {
        const char *name;
        int told, sync; /* after the sync that is made while it is under way */
        enum fault_effect effect;
        const char *nothing, *everything;
    } cases[] = {
        {"under way", 0, 0, FAULT_AGAIN, "a=abcd old=old ", "a=WXYZ old=old "},
        {"finished", 1, 0, FAULT_AGAIN, "a=abcd old=old ", "a=WXYZ old=old "},
        {"synced", 1, 1, FAULT_AGAIN, "a=WXYZ old=old ", "a=WXYZ old=old "},
        {"short", 1, 1, FAULT_SHORT, "a=WXcd old=old ", "a=WXcd old=old "},
        {"not begun", 1, 1, FAULT_ERROR, "a=abcd old=old ", "a=abcd old=old "},
    };
    char bytes[] = "WXYZ";
    const struct iovec piece = {.iov_base = bytes, .iov_len = 4};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f;
        begin(&f, *state);
        power_see_requests(f.p);
        struct fault_io *fault = fault_io_new(&f.p->io);
        fault_io_see_requests(fault);
        const struct drps_io *io = &fault->io;
        assert_int_equal(put(&f, io, "a", "abcd", 1), 0);
        assert_int_equal(sync_folder(&f, ""), 0);
        struct drps_io_request r = {.write = 1, .n = 1, .pieces = &piece, .bytes = 4};
        assert_int_equal(drps_io_open(io, at(&f, "a"), O_WRONLY, &r.fd, NULL), 0);
        fault_io_arm(fault, FAULT_PWRITE, 1, 0, cases[i].effect, -EINTR);
        const size_t may = io->ops->asked(io->ctx, &r);
        assert_int_equal(drps_io_sync(io, r.fd, "a", NULL), 0);
        if (cases[i].told)
            assert_int_equal(io->ops->told(io->ctx, &r, (ssize_t)may),
                             cases[i].effect == FAULT_SHORT ? 2 : -EINTR);
        if (cases[i].sync) assert_int_equal(drps_io_sync(io, r.fd, "a", NULL), 0);
        drps_io_close(io, r.fd);
        const char *nothing = found(&f, DISK_NOTHING);
        if (strcmp(nothing, cases[i].nothing) != 0) fail_msg("%s: %s", cases[i].name, nothing);
        const char *everything = found(&f, DISK_EVERYTHING);
        if (strcmp(everything, cases[i].everything) != 0)
            fail_msg("%s: %s", cases[i].name, everything);
        if (cases[i].told) assert_int_equal(io->ops->asked(io->ctx, &r), 0);
        if (cases[i].told) assert_int_equal(io->ops->told(io->ctx, &r, 0), -EIO);
        fault_io_free(fault);
        end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_power_finds_what_is_durable),
        SCRATCH_TEST(test_power_drops_operations_on_different_names),
        SCRATCH_TEST(test_power_keeps_operations_on_one_name_in_order),
        SCRATCH_TEST(test_power_drops_writes_in_any_order),
        SCRATCH_TEST(test_power_tears_writes_between_sectors),
        SCRATCH_TEST(test_power_fails_every_call_once_it_is_off),
        SCRATCH_TEST(test_power_cuts_at_each_call_in_turn),
        SCRATCH_TEST(test_power_below_faults),
        SCRATCH_TEST(test_power_sees_asynchronous_writes),
        SCRATCH_TEST(test_power_keeps_requests_under_way),
    };
    return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
