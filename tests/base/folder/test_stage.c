/* Staged folders: whole or not at all, one writer at a time, nothing of a killed one left. */
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
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/folder/drps_manifest.h"
#include "base/folder/drps_stage.h"
#include "support/fault_io.h"
#include "support/scratch.h"

static int put(const struct drps_io *io, const struct drps_stage *stage, const char *name,
               const char *text)
{
    char *path = drps_path_join(stage->dir, name);
    int fd = -1;
    assert_non_null(path);
    int rc = drps_io_open(io, path, O_WRONLY | O_CREAT | O_TRUNC, &fd, NULL);
    if (rc == 0) rc = drps_io_write_at(io, fd, text, strlen(text), 0, path, NULL);
    drps_io_close(io, fd);
    free(path);
    return rc;
}

static void assert_file(struct scratch *s, const char *name, const char *text)
{
    size_t n;
    char *data = scratch_read(scratch_path(s, name), &n);
    assert_string_equal(data, text);
    free(data);
}

static const struct drps_owned deep[] = {{.name = "file"}, {.name = "#.sst"}, {.name = NULL}};
static const struct drps_owned things[] = {
    {.name = "thing.json"},
    {.name = "file"},
    {.name = "deep", .inside = deep},
    {.name = "part-#", .inside = deep},
    {.name = "scratch", .unfinished = 1},
    {.name = NULL},
};
static const struct drps_stage_kind thing = {
    .manifest = "thing.json", .kind = "drps-thing", .version = 2, .owned = things};

static int put_manifest(const struct drps_io *io, const char *dir, const char *kind, int version)
{
    char *path = drps_path_join(dir, "thing.json");
    json_t *j = json_pack("{s:s, s:i}", "kind", kind, "version", version);
    assert_non_null(path);
    assert_non_null(j);
    int rc = drps_manifest_write(io, path, j, NULL);
    json_decref(j);
    free(path);
    return rc;
}

static int begin_out(struct drps_stage *stage, struct scratch *s, int replace, struct drps_err *err)
{
    return drps_stage_begin(stage, drps_io_os(), scratch_path(s, "out"), &thing, replace, err);
}

/* Make or replace the folder "out" with one file. Returns the first failure. */
static int write_out(struct scratch *s, const struct drps_io *io, int replace, const char *text,
                     struct drps_err *err)
{
    struct drps_stage stage;
    int rc = drps_stage_begin(&stage, io, scratch_path(s, "out"), &thing, replace, err);
    if (rc == 0) rc = put(io, &stage, "file", text);
    if (rc == 0) rc = put_manifest(io, stage.dir, "drps-thing", 2);
    if (rc == 0) rc = drps_stage_commit(&stage, err);
    drps_stage_abort(&stage);
    return rc;
}

/* The folder is a whole one, with one of two texts. */
static void assert_whole(struct scratch *s, const char *name, const char *text, const char * or)
{
    char path[64];
    size_t n;
    (void)snprintf(path, sizeof(path), "%s/thing.json", name);
    assert_true(path_exists(scratch_path(s, path)));
    (void)snprintf(path, sizeof(path), "%s/file", name);
    char *data = scratch_read(scratch_path(s, path), &n);
    if (strcmp(data, text) != 0 && strcmp(data, or) != 0)
        fail_msg("%s holds '%s' instead of '%s' or '%s'", path, data, text, or);
    free(data);
}

static void test_stage_nothing_at_the_name_before_commit(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    const char *out = scratch_path(s, "out");
    assert_int_equal(begin_out(&stage, s, 0, &err), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "text"), 0);
    assert_false(path_exists(out));
    assert_int_equal(drps_stage_commit(&stage, &err), 0);
    assert_true(path_exists(out));
    drps_stage_abort(&stage);
    assert_file(s, "out/file", "text");
    assert_int_equal(folder_entries(out), 1); /* no lock file in it */
    assert_int_equal(folder_entries(s->dir), 1);
}

static void test_stage_abort_removes(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_stage zero = {0};
    assert_int_equal(begin_out(&stage, s, 0, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "text"), 0);
    drps_stage_abort(&stage);
    assert_int_equal(folder_entries(s->dir), 0);
    drps_stage_abort(&stage);
    drps_stage_abort(&zero);
    drps_stage_abort(NULL);
}

static void test_stage_slashes_at_the_end_do_not_matter(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(
        drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out//"), &thing, 0, NULL), 0);
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_true(path_exists(scratch_path(s, "out")));
}

static void test_stage_existing_is_refused(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(write_out(s, drps_io_os(), 0, "new", &err), -EEXIST);
    assert_non_null(strstr(err.text, "have it replaced"));
    assert_file(s, "out/file", "old");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* ---- What is not ours ---- */

/* Everything below a folder, to compare: "path type size" of each, unsorted but stable while
 * nothing changes. */
static void list_tree(struct scratch *s, char *text, size_t cap)
{
    char command[SCRATCH_PATH_BYTES + 64];
    (void)snprintf(command, sizeof(command), "cd '%s' && find . -printf '%%p %%y %%s\\n' | sort",
                   s->dir);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, cap - 1, f);
    text[n] = '\0';
    assert_int_equal(pclose(f), 0);
}

static void make_folder(struct scratch *s, const char *name)
{
    assert_int_equal(mkdir(scratch_path(s, name), 0777), 0);
}

/* Replacing must fail, say `says`, and leave everything as it is. */
static void assert_refused(struct scratch *s, int replace, const char *says)
{
    static char before[8192], after[8192];
    struct drps_err err = DRPS_ERR_INIT;
    list_tree(s, before, sizeof(before));
    const int rc = write_out(s, drps_io_os(), replace, "new", &err);
    if (rc != -EEXIST || !strstr(err.text, says))
        fail_msg("expected a refusal that says '%s', found %d: %s", says, rc, err.text);
    list_tree(s, after, sizeof(after));
    assert_string_equal(after, before);
}

static void stranger_file(struct scratch *s)
{
    (void)scratch_file(s, "out/notes", "mine", 4);
}

static void stranger_folder(struct scratch *s)
{
    make_folder(s, "out/photos");
}

static void stranger_in_a_folder(struct scratch *s)
{
    make_folder(s, "out/deep");
    (void)scratch_file(s, "out/deep/000012.jpg", "mine", 4);
}

static void stranger_like_a_part(struct scratch *s)
{
    make_folder(s, "out/part-1a");
}

static void number_missing(struct scratch *s)
{
    make_folder(s, "out/part-");
}

static void link_with_our_name(struct scratch *s)
{
    make_folder(s, "out/deep");
    assert_int_equal(symlink("/", scratch_path(s, "out/part-1")), 0);
}

static void folder_with_a_files_name(struct scratch *s)
{
    assert_int_equal(unlink(scratch_path(s, "out/file")), 0);
    make_folder(s, "out/file");
}

static void pipe_with_our_name(struct scratch *s)
{
    assert_int_equal(unlink(scratch_path(s, "out/thing.json")), 0);
    assert_int_equal(mkfifo(scratch_path(s, "out/thing.json"), 0600), 0);
}

static void unfinished_thing(struct scratch *s)
{
    (void)scratch_file(s, "out/scratch", "mine", 4);
}

static void lock_with_content(struct scratch *s)
{
    (void)scratch_file(s, "out/lock", "mine", 4);
}

static void lock_that_is_a_folder(struct scratch *s)
{
    make_folder(s, "out/lock");
}

static void no_manifest(struct scratch *s)
{
    assert_int_equal(unlink(scratch_path(s, "out/thing.json")), 0);
}

static void empty_manifest(struct scratch *s)
{
    (void)scratch_file(s, "out/thing.json", "{}", 2);
}

static void torn_manifest(struct scratch *s)
{
    (void)scratch_file(s, "out/thing.json", "{\"kind\":", 8);
}

static void changed_manifest(struct scratch *s)
{
    static const char text[] = "{\"kind\":\"drps-thing\",\"version\":2,\"checksum\":"
                               "\"0123456789abcdef\"}";
    (void)scratch_file(s, "out/thing.json", text, sizeof(text) - 1);
}

static void other_kind(struct scratch *s)
{
    assert_int_equal(put_manifest(drps_io_os(), scratch_path(s, "out"), "drps-plan", 2), 0);
}

static void newer_version(struct scratch *s)
{
    assert_int_equal(put_manifest(drps_io_os(), scratch_path(s, "out"), "drps-thing", 3), 0);
}

static void no_version(struct scratch *s)
{
    (void)scratch_file(s, "out/thing.json", "{\"kind\":\"drps-thing\"}", SIZE_MAX);
}

/* A folder is replaced when its manifest is ours and everything in it is. */
static void test_stage_replace_refuses_what_is_not_ours(void **state)
{
    static const struct {
        void (*change)(struct scratch *s);
        const char *says;
    } cases[] = {
        {stranger_file, "out/notes is not one of its files"},
        {stranger_folder, "out/photos"},
        {stranger_in_a_folder, "000012.jpg"},
        {stranger_like_a_part, "part-1a"},
        {number_missing, "out/part-"},
        {link_with_our_name, "out/part-1"},
        {folder_with_a_files_name, "out/file"},
        {pipe_with_our_name, "out/thing.json"},
        {unfinished_thing, "out/scratch"},
        {lock_with_content, "out/lock"},
        {lock_that_is_a_folder, "out/lock"},
        {no_manifest, "holds no thing.json"},
        {empty_manifest, "describe a drps"},
        {torn_manifest, "out/thing.json:1:"},
        {changed_manifest, "fails its checksum"},
        {other_kind, "describe a drps thing"},
        {newer_version, "newer drps"},
        {no_version, "version"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
        cases[i].change(s);
        assert_refused(s, 1, cases[i].says);
        assert_int_equal(drps_io_remove_tree(drps_io_os(), scratch_path(s, "out"), NULL), 0);
    }
}

static void test_stage_replace_takes_all_that_is_ours(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    make_folder(s, "out/deep");
    make_folder(s, "out/part-0");
    make_folder(s, "out/part-12");
    (void)scratch_file(s, "out/part-12/000012.sst", "x", 1);
    (void)scratch_file(s, "out/lock", "", 0); /* killed when the folder was in place */
    assert_int_equal(put_manifest(drps_io_os(), scratch_path(s, "out"), "drps-thing", 1), 0);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_int_equal(folder_entries(s->dir), 1);
}

static void test_stage_replace_refuses_what_is_no_folder(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(rename(scratch_path(s, "out"), scratch_path(s, "real")), 0);
    assert_int_equal(symlink("real", scratch_path(s, "out")), 0);
    assert_refused(s, 1, "symbolic link");
    assert_refused(s, 0, "exists already");
    assert_int_equal(unlink(scratch_path(s, "out")), 0);
    (void)scratch_file(s, "out", "mine", 4);
    assert_refused(s, 1, "it is no folder");
    assert_refused(s, 0, "exists already");
}

static void test_stage_needs_a_name(void **state)
{
    static const char *const names[] = {"", "/", "//", ".", "..", "./", "a/.", "a/../"};
    struct drps_stage stage;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = drps_stage_begin(&stage, drps_io_os(), names[i], &thing, 1, &err);
        if (rc != DRPS_E_CONFIG) fail_msg("'%s': %d (%s)", names[i], rc, err.text);
        drps_stage_abort(&stage);
    }
}

/* A name that a stage needs beside the final one may be somebody's. */
static void test_stage_refuses_names_in_the_way(void **state)
{
    struct scratch *s = *state;
    make_folder(s, "out.partial");
    (void)scratch_file(s, "out.partial/photo", "mine", 4);
    assert_refused(s, 1, "was not left by an earlier run");
    (void)scratch_file(s, "out.partial/lock", "", 0);
    assert_refused(s, 1, "out.partial/photo");
    assert_int_equal(unlink(scratch_path(s, "out.partial/photo")), 0);
    (void)scratch_file(s, "out.partial/lock", "mine", 4);
    assert_refused(s, 0, "holds no thing.json");
    assert_int_equal(unlink(scratch_path(s, "out.partial/lock")), 0);
    (void)scratch_file(s, "out.partial/file", "mine", 4); /* neither lock nor manifest */
    assert_refused(s, 0, "holds no thing.json");
    assert_int_equal(drps_io_remove_tree(drps_io_os(), scratch_path(s, "out.partial"), NULL), 0);

    make_folder(s, "real");
    (void)scratch_file(s, "real/lock", "", 0);
    assert_int_equal(symlink("real", scratch_path(s, "out.partial")), 0);
    assert_refused(s, 0, "it is no folder");
    assert_int_equal(unlink(scratch_path(s, "out.partial")), 0);
    (void)scratch_file(s, "out.partial", "mine", 4);
    assert_refused(s, 0, "it is no folder");
    assert_int_equal(unlink(scratch_path(s, "out.partial")), 0);

    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    make_folder(s, "out.replaced");
    (void)scratch_file(s, "out.replaced/photo", "mine", 4);
    assert_refused(s, 1, "out.replaced");
}

enum { PARTS = 8 };

static void add_parts(struct scratch *s, const char *dir)
{
    char name[32];
    for (int i = 0; i < PARTS; i++) {
        (void)snprintf(name, sizeof(name), "%s/part-%d", dir, i);
        make_folder(s, name);
    }
}

/* What somebody puts into the folders of a running replacement is not removed. */
static void test_stage_keeps_what_comes_meanwhile(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(begin_out(&stage, s, 1, NULL), 0);
    (void)scratch_file(s, "out.partial/notes", "mine", 4);
    add_parts(s, "out.partial");
    drps_stage_abort(&stage);
    assert_file(s, "out.partial/notes", "mine");
    assert_int_equal(folder_entries(scratch_path(s, "out.partial")), 2); /* and the lock */
    assert_refused(s, 1, "out.partial/notes");
    assert_int_equal(unlink(scratch_path(s, "out.partial/notes")), 0);

    assert_int_equal(begin_out(&stage, s, 1, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "new"), 0);
    assert_int_equal(put_manifest(drps_io_os(), stage.dir, "drps-thing", 2), 0);
    (void)scratch_file(s, "out/notes", "mine", 4);
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    assert_non_null(strstr(stage.left.text, "what was replaced is left as"));
    assert_non_null(strstr(stage.left.text, "out.partial/notes"));
    drps_stage_abort(&stage);
    assert_file(s, "out/file", "new");
    assert_file(s, "out.partial/notes", "mine"); /* in the old folder */
    assert_file(s, "out.partial/file", "old");
    assert_refused(s, 1, "out.partial/notes");
}

static void test_stage_replace_replaces(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* A run that was killed between its two renames has left the old folder aside. */
static void test_stage_puts_back_what_a_killed_one_moved(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
    assert_int_equal(rename(scratch_path(s, "out"), scratch_path(s, "out.replaced")), 0);
    assert_int_equal(write_out(s, drps_io_os(), 0, "new", &err), -EEXIST);
    assert_non_null(strstr(err.text, "out.replaced"));
    assert_file(s, "out/file", "old");
    assert_int_equal(folder_entries(s->dir), 1);
    assert_int_equal(rename(scratch_path(s, "out"), scratch_path(s, "out.replaced")), 0);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* Neither what is not whole nor what is not ours takes the name. */
static void test_stage_puts_nothing_else_back(void **state)
{
    struct scratch *s = *state;
    make_folder(s, "out.replaced");
    (void)scratch_file(s, "out.replaced/photo", "mine", 4);
    assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
    assert_file(s, "out/file", "new");
    assert_file(s, "out.replaced/photo", "mine");
}

/* Leftovers of both ways to replace, whole and half removed, go with the next replacement. */
static void test_stage_replace_removes_what_killed_ones_left(void **state)
{
    static const char *const names[] = {"out.partial", "out.replaced"};
    struct scratch *s = *state;
    char path[64];
    for (size_t i = 0; i < 2; i++) {
        for (int half = 0; half < 2; half++) {
            assert_int_equal(write_out(s, drps_io_os(), 1, "older", NULL), 0);
            assert_int_equal(rename(scratch_path(s, "out"), scratch_path(s, "older")), 0);
            assert_int_equal(write_out(s, drps_io_os(), 0, "old", NULL), 0);
            assert_int_equal(rename(scratch_path(s, "older"), scratch_path(s, names[i])), 0);
            if (half) {
                (void)snprintf(path, sizeof(path), "%s/lock", names[i]);
                (void)scratch_file(s, path, "", 0);
                (void)snprintf(path, sizeof(path), "%s/thing.json", names[i]);
                assert_int_equal(unlink(scratch_path(s, path)), 0);
            }
            assert_int_equal(write_out(s, drps_io_os(), 1, "new", NULL), 0);
            assert_file(s, "out/file", "new");
            assert_int_equal(folder_entries(s->dir), 1);
        }
    }
}

static void test_stage_stale_partial_is_replaced(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(mkdir(scratch_path(s, "out.partial"), 0777), 0);
    (void)scratch_file(s, "out.partial/lock", "", 0);
    (void)scratch_file(s, "out.partial/scratch", "x", 1);
    (void)scratch_file(s, "out.partial/thing.json", "{", 1); /* killed while it was written */
    assert_int_equal(begin_out(&stage, s, 0, NULL), 0);
    assert_int_equal(folder_entries(stage.dir), 1); /* the lock */
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_int_equal(folder_entries(scratch_path(s, "out")), 0);
}

static void test_stage_live_partial_is_refused(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    assert_int_equal(begin_out(&stage, s, 0, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "file", "first"), 0);
    pid_t child = fork();
    if (child == 0) {
        struct drps_err err = DRPS_ERR_INIT;
        int rc = write_out(s, drps_io_os(), 1, "second", &err);
        _exit(rc == -EBUSY && strstr(err.text, "another process") ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(drps_stage_commit(&stage, NULL), 0);
    drps_stage_abort(&stage);
    assert_file(s, "out/file", "first");
}

/* Another writer that comes at any moment of a commit is refused, or finds the folder in place. */
struct intruder {
    struct drps_io io;
    struct scratch *s;
    int calls, wrong;
};

static void intrude(struct intruder *in)
{
    struct drps_stage other;
    struct drps_err err = DRPS_ERR_INIT;
    int rc = begin_out(&other, in->s, 0, &err);
    in->calls++;
    if (rc != -EBUSY && rc != -EEXIST) in->wrong++;
    drps_stage_abort(&other);
}

static int intruded_fsync(void *ctx, int fd)
{
    intrude(ctx);
    return drps_io_os()->ops->fsync(NULL, fd);
}

static int intruded_rename(void *ctx, const char *from, const char *to)
{
    intrude(ctx);
    int rc = drps_io_os()->ops->rename(NULL, from, to);
    intrude(ctx);
    return rc;
}

static int intruded_unlink(void *ctx, const char *path)
{
    intrude(ctx);
    return drps_io_os()->ops->unlink(NULL, path);
}

static void test_stage_is_locked_until_it_is_in_place(void **state)
{
    struct scratch *s = *state;
    struct drps_io_ops ops = *drps_io_os()->ops;
    struct intruder in = {.io = {.ops = &ops, .ctx = &in}, .s = s};
    ops.fsync = intruded_fsync;
    ops.rename = intruded_rename;
    ops.unlink = intruded_unlink;
    assert_int_equal(write_out(s, &in.io, 0, "text", NULL), 0);
    assert_true(in.calls > 4);
    assert_int_equal(in.wrong, 0);
    assert_file(s, "out/file", "text");
    assert_int_equal(folder_entries(s->dir), 1);
}

/* ---- Faults ---- */

static int no_exchange(void *ctx, const char *a, const char *b)
{
    (void)ctx;
    (void)a;
    (void)b;
    return -EINVAL;
}

/* The operating system's calls, on a file system that can exchange names or not. */
static struct drps_io io_of(struct drps_io_ops *ops, int exchanges)
{
    *ops = *drps_io_os()->ops;
    if (!exchanges) ops->exchange = no_exchange;
    return (struct drps_io){.ops = ops};
}

/*
 * Whichever call of a replacement fails: an error with a text, the old folder is still there,
 * nothing else is. Or it was one of those that remove the old folder, and the next run does it.
 */
static void faults_of(struct scratch *s, unsigned op, int exchanges)
{
    struct drps_io_ops ops;
    const struct drps_io inner = io_of(&ops, exchanges);
    for (long k = 1;; k++) {
        struct fault_io *f = fault_io_new(&inner);
        struct drps_err err = DRPS_ERR_INIT;
        assert_non_null(f);
        assert_int_equal(write_out(s, drps_io_os(), 1, "old", NULL), 0);
        assert_int_equal(folder_entries(s->dir), 1);
        fault_io_arm(f, op, k, 0, FAULT_ERROR, -EIO);
        int rc = write_out(s, &f->io, 1, "new", &err);
        int fired = atomic_load(&f->fired);
        fault_io_free(f);
        if (rc == 0) assert_file(s, "out/file", "new");
        if (!fired) {
            assert_int_equal(rc, 0);
            assert_true(k > 1);
            return;
        }
        if (rc != 0 && rc != -EIO)
            fail_msg("%s %ld: found %d (%s)", fault_op_name(op), k, rc, err.text);
        if (rc) assert_file(s, "out/file", "old");
        if (rc && op != FAULT_UNLINK && folder_entries(s->dir) != 1)
            fail_msg("%s %ld: something was left", fault_op_name(op), k);
    }
}

static void test_stage_replace_keeps_the_old_on_any_fault(void **state)
{
    static const unsigned ops[] = {FAULT_OPEN,   FAULT_PREAD, FAULT_PWRITE, FAULT_FSYNC,
                                   FAULT_RENAME, FAULT_MKDIR, FAULT_UNLINK, FAULT_EXCHANGE};
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (ops[i] != FAULT_RENAME) faults_of(*state, ops[i], 1); /* there is none */
        if (ops[i] != FAULT_EXCHANGE) faults_of(*state, ops[i], 0);
    }
}

static int holds_text(struct scratch *s, const char *name, const char *text)
{
    size_t n;
    if (!path_exists(scratch_path(s, name))) return 0;
    char *data = scratch_read(scratch_path(s, name), &n);
    const int same = strcmp(data, text) == 0;
    free(data);
    return same;
}

/* Where from some call on all of a kind fail, undoing fails too: after a failure the old folder is
 * there all the same, by whatever name, and the next run finds one of both, whole. Only where it is
 * being removed, the new one is in place. */
static void test_stage_replace_loses_nothing_when_undoing_fails(void **state)
{
    struct scratch *s = *state;
    for (int exchanges = 0; exchanges < 2; exchanges++) {
        struct drps_io_ops ops;
        const struct drps_io inner = io_of(&ops, exchanges);
        int fired = 1;
        for (long k = 1; fired; k++) {
            struct fault_io *f = fault_io_new(&inner);
            assert_non_null(f);
            assert_int_equal(write_out(s, drps_io_os(), 1, "old", NULL), 0);
            fault_io_arm(f, FAULT_FSYNC | FAULT_RENAME | FAULT_EXCHANGE, k, 1, FAULT_ERROR, -EIO);
            int rc = write_out(s, &f->io, 1, "new", NULL);
            fired = atomic_load(&f->fired);
            fault_io_free(f);
            assert_true(rc == 0 || (fired && rc == -EIO));
            if (rc == 0) assert_file(s, "out/file", "new");
            if (rc && !holds_text(s, "out/file", "old") &&
                !holds_text(s, "out.partial/file", "old") &&
                !holds_text(s, "out.replaced/file", "old"))
                fail_msg("call %ld: the old folder is gone", k);
            assert_int_equal(write_out(s, drps_io_os(), 0, "next", NULL), -EEXIST);
            assert_whole(s, "out", "old", "new");
        }
    }
}

/* ---- A file ---- */

static const struct drps_owned lines[] = {{.name = "lines"}, {.name = NULL}};
static const struct drps_stage_kind text_kind = {.file = "lines", .owned = lines};

static int write_text(struct scratch *s, int replace, const char *text, struct drps_err *err)
{
    struct drps_stage stage;
    int rc =
        drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), &text_kind, replace, err);
    if (rc == 0) rc = put(drps_io_os(), &stage, "lines", text);
    if (rc == 0) rc = drps_stage_commit(&stage, err);
    drps_stage_abort(&stage);
    return rc;
}

static void test_stage_file_appears_and_is_replaced(void **state)
{
    struct scratch *s = *state;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(write_text(s, 0, "old", NULL), 0);
    assert_file(s, "out", "old");
    assert_int_equal(write_text(s, 0, "new", &err), -EEXIST);
    assert_non_null(strstr(err.text, "have it replaced"));
    assert_file(s, "out", "old");
    make_folder(s, "out.partial"); /* a killed run's */
    (void)scratch_file(s, "out.partial/lock", "", 0);
    (void)scratch_file(s, "out.partial/lines", "ne", 2);
    (void)scratch_file(s, "out.replaced", "mine", 4); /* not a name that a file needs */
    assert_int_equal(write_text(s, 1, "new", NULL), 0);
    assert_file(s, "out", "new");
    assert_file(s, "out.replaced", "mine");
    assert_int_equal(folder_entries(s->dir), 2);
}

static void test_stage_file_replaces_nothing_else(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    make_folder(s, "out");
    assert_int_equal(write_text(s, 1, "new", NULL), -EEXIST);
    assert_int_equal(rmdir(scratch_path(s, "out")), 0);
    (void)scratch_file(s, "real", "mine", 4);
    assert_int_equal(symlink("real", scratch_path(s, "out")), 0);
    assert_int_equal(write_text(s, 1, "new", NULL), -EEXIST);
    assert_int_equal(unlink(scratch_path(s, "out")), 0);
    make_folder(s, "out.partial");
    (void)scratch_file(s, "out.partial/lines", "mine", 4); /* and no lock */
    assert_int_equal(write_text(s, 1, "new", NULL), -EEXIST);
    assert_file(s, "out.partial/lines", "mine");
    assert_int_equal(drps_io_remove_tree(drps_io_os(), scratch_path(s, "out.partial"), NULL), 0);

    assert_int_equal(
        drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "out"), &text_kind, 0, NULL), 0);
    assert_int_equal(put(drps_io_os(), &stage, "lines", "new"), 0);
    (void)scratch_file(s, "out", "mine", 4); /* meanwhile */
    assert_int_equal(drps_stage_commit(&stage, NULL), -EEXIST);
    drps_stage_abort(&stage);
    assert_file(s, "out", "mine");
    assert_int_equal(folder_entries(s->dir), 2);
}

static void test_stage_missing_parent_is_named(void **state)
{
    struct scratch *s = *state;
    struct drps_stage stage;
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(
        drps_stage_begin(&stage, drps_io_os(), scratch_path(s, "no/out"), &thing, 0, &err),
        -ENOENT);
    assert_non_null(strstr(err.text, "no/out.partial"));
    drps_stage_abort(&stage);
}

#define SCRATCH_TEST(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_stage_nothing_at_the_name_before_commit),
        SCRATCH_TEST(test_stage_abort_removes),
        SCRATCH_TEST(test_stage_slashes_at_the_end_do_not_matter),
        SCRATCH_TEST(test_stage_existing_is_refused),
        SCRATCH_TEST(test_stage_replace_refuses_what_is_not_ours),
        SCRATCH_TEST(test_stage_replace_takes_all_that_is_ours),
        SCRATCH_TEST(test_stage_replace_refuses_what_is_no_folder),
        SCRATCH_TEST(test_stage_needs_a_name),
        SCRATCH_TEST(test_stage_refuses_names_in_the_way),
        SCRATCH_TEST(test_stage_keeps_what_comes_meanwhile),
        SCRATCH_TEST(test_stage_replace_replaces),
        SCRATCH_TEST(test_stage_puts_back_what_a_killed_one_moved),
        SCRATCH_TEST(test_stage_puts_nothing_else_back),
        SCRATCH_TEST(test_stage_replace_removes_what_killed_ones_left),
        SCRATCH_TEST(test_stage_stale_partial_is_replaced),
        SCRATCH_TEST(test_stage_live_partial_is_refused),
        SCRATCH_TEST(test_stage_is_locked_until_it_is_in_place),
        SCRATCH_TEST(test_stage_replace_keeps_the_old_on_any_fault),
        SCRATCH_TEST(test_stage_replace_loses_nothing_when_undoing_fails),
        SCRATCH_TEST(test_stage_file_appears_and_is_replaced),
        SCRATCH_TEST(test_stage_file_replaces_nothing_else),
        SCRATCH_TEST(test_stage_missing_parent_is_named),
    };
    return cmocka_run_group_tests_name("stage", tests, NULL, NULL);
}
