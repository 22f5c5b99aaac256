/* The peers file, keys, and what launchers say. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/drps_launch.h"
#include "net/drps_meet.h"
#include "net/drps_peers.h"
#include "support/scratch.h"

#define KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static int read_text(struct scratch *s, const char *text, struct drps_peers *peers,
                     struct drps_err *err)
{
    return drps_peers_read(drps_io_os(), scratch_file(s, "peers", text, SIZE_MAX), peers, err);
}

static void test_peers_are_read_in_order_of_rank(void **state)
{
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = read_text(*state,
                             "# our machines\n\nalpha.example:7000\n"
                             "  10.0.0.2:65535 \t " KEY "\r\n[fd00::7]:1\nlocalhost:80",
                             &peers, &err);
    if (rc < 0) fail_msg("%s", err.text);
    assert_int_equal(peers.count, 4);
    assert_string_equal(peers.peers[0].host, "alpha.example");
    assert_string_equal(peers.peers[0].port, "7000");
    assert_string_equal(peers.peers[0].public_key, "");
    assert_string_equal(peers.peers[1].host, "10.0.0.2");
    assert_string_equal(peers.peers[1].port, "65535");
    assert_string_equal(peers.peers[1].public_key, KEY);
    assert_string_equal(peers.peers[2].host, "fd00::7");
    assert_string_equal(peers.peers[2].port, "1");
    assert_string_equal(peers.peers[3].host, "localhost");
    drps_peers_destroy(&peers);
}

static void test_peers_names_the_line_that_is_wrong(void **state)
{
    static const struct {
        const char *name, *text, *error;
    } cases[] = {
        {"nothing", "# none\n\n", "no peers"},
        {"an escape", "a:1\n\033[2J:7000\n", ":2:1: a control character (byte 0x1b)"},
        {"no port", "a:1\nhost\n", ":2: 'host' is no address"},
        {"no host", ":7000\n", ":1: ':7000' is no address"},
        {"a path", "/tmp/socket:7000\n", ":1: '/tmp/socket' is no address"},
        {"port 0", "a:0\n", ":1: 'a:0' is no address"},
        {"port too large", "a:65536\n", "is no address"},
        {"port with a sign", "a:+80\n", "is no address"},
        {"IPv6 without brackets", "fd00::7:7000\n", "is no address"},
        {"key too short", "\na:1 abc\n", ":2: the public key has 3 characters, expected 40"},
        {"more", "a:1 " KEY " x\n", ":1: more than"},
        {"address twice", "a:1\nb:1\n\na:01\n", ":4: a:01 is the address of rank 0 already"},
        {"key twice", "a:1 " KEY "\na:2 " KEY "\n", ":2: the key is that of rank 0 already"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_peers peers;
        struct drps_err err = DRPS_ERR_INIT;
        const int rc = read_text(*state, cases[i].text, &peers, &err);
        if (rc != DRPS_E_FORMAT || !strstr(err.text, cases[i].error) || peers.count)
            fail_msg("%s: %d: %s", cases[i].name, rc, err.text);
    }
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    const char *path = scratch_file(*state, "zero", "a:1\0b", 5);
    assert_int_equal(drps_peers_read(drps_io_os(), path, &peers, &err), DRPS_E_FORMAT);
    path = scratch_path(*state, "none");
    assert_int_equal(drps_peers_read(drps_io_os(), path, &peers, NULL), -ENOENT);
}

static void test_peers_loopback_is_told_from_the_rest(void **state)
{
    static const struct {
        const char *host;
        int loopback;
    } cases[] = {
        {"127.0.0.1", 1}, {"127.9.8.7", 1},     {"::1", 1},
        {"localhost", 1}, {"128.0.0.1", 0},     {"0.0.0.0", 0},
        {"::", 0},        {"fd00::1", 0},       {"127.example.org", 0},
        {"10.0.0.1", 0},  {"localhost.org", 0}, {"/tmp/socket", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_peer peer = {"", "1", ""};
        strcpy(peer.host, cases[i].host);
        if (drps_peer_is_loopback(&peer) != cases[i].loopback) fail_msg("%s", cases[i].host);
    }
}

#ifdef DRPS_WITH_ZMQ

/* --- where ranks of one machine meet --- */

static void use_folders(const char *runtime, const char *temporary)
{
    assert_int_equal(runtime ? setenv("XDG_RUNTIME_DIR", runtime, 1) : unsetenv("XDG_RUNTIME_DIR"),
                     0);
    assert_int_equal(setenv("TMPDIR", temporary, 1), 0);
}

static void test_meeting_is_in_a_folder_of_this_user(void **state)
{
    char *runtime = strdup(scratch_path(*state, "runtime"));
    char *temporary = strdup(scratch_path(*state, "temporary"));
    char *saved = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_meet meet;
    struct stat st;
    assert_int_equal(mkdir(runtime, 0700), 0);
    assert_int_equal(mkdir(temporary, 0700), 0);
    const char *cases[][2] = {{runtime, temporary}, {NULL, temporary}, {"/nonexistent", temporary}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *base = i == 0 ? runtime : temporary;
        use_folders(cases[i][0], cases[i][1]);
        if (drps_meet_open(3, &meet, &err) < 0) fail_msg("%s", err.text);
        assert_null(meet.keys);
        assert_memory_equal(meet.folder, base, strlen(base));
        assert_non_null(strstr(meet.folder, "/drps-ranks."));
        assert_int_equal(stat(meet.folder, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(meet.peers.count, 3);
        assert_memory_equal(meet.peers.peers[2].host, meet.folder, strlen(meet.folder));
        assert_string_equal(meet.peers.peers[2].host + strlen(meet.folder), "/2");
        /* What a rank that was killed has left goes, too. */
        const int left = open(meet.peers.peers[1].host, O_CREAT | O_WRONLY, 0600);
        assert_true(left >= 0);
        (void)close(left);
        char *folder = strdup(meet.folder);
        if (i > 0) { /* each rank has met the others, or all have ended */
            for (uint32_t r = 0; r < 3; r++) {
                assert_int_equal(stat(folder, &st), 0);
                drps_meet_done(&meet, r == 2 ? 1 : r == 1 ? 2 : 0);
            }
            assert_int_equal(stat(folder, &st), -1);
        }
        drps_meet_close(&meet);
        assert_int_equal(stat(folder, &st), -1);
        free(folder);
    }
    assert_int_equal(saved ? setenv("TMPDIR", saved, 1) : unsetenv("TMPDIR"), 0);
    free(saved);
    free(runtime);
    free(temporary);
}

static void test_meeting_has_keys_where_there_is_no_folder(void **state)
{
    char *open_to_all = strdup(scratch_path(*state, "open"));
    char *deep = strdup(scratch_path(*state, "a-name-that-is-long-enough-for-the-path-of-a-socket-"
                                             "to-be-longer-than-the-system-takes-of-it-anywhere"));
    char *saved = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    const struct {
        const char *base, *why;
    } cases[] = {{"/nonexistent", "/nonexistent: No such file"},
                 {deep, "too long for the path of a socket"},
                 {open_to_all, "others can rename what is there"},
                 {"relative", "not an absolute path"}};
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_meet meet;
    assert_int_equal(mkdir(open_to_all, 0700), 0);
    assert_int_equal(chmod(open_to_all, 0777), 0);
    assert_int_equal(mkdir(deep, 0700), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        use_folders(NULL, cases[i].base);
        if (drps_meet_open(2, &meet, &err) < 0) fail_msg("%s", err.text);
        if (!meet.keys || meet.folder[0] || !strstr(meet.why.text, cases[i].why))
            fail_msg("%s: %s", cases[i].base, meet.why.text);
        for (int r = 0; r < 2; r++) {
            assert_true(drps_peer_is_loopback(&meet.peers.peers[r]));
            assert_string_equal(meet.peers.peers[r].public_key, meet.keys[r].public_key);
        }
        assert_string_not_equal(meet.keys[0].secret_key, meet.keys[1].secret_key);
        drps_meet_close(&meet);
    }
    assert_int_equal(saved ? setenv("TMPDIR", saved, 1) : unsetenv("TMPDIR"), 0);
    free(saved);
    free(open_to_all);
    free(deep);
}

/* Addresses on loopback that no other process has. */
static void two_peers(struct scratch *s, struct drps_peers *peers)
{
    char text[100];
    struct drps_err err = DRPS_ERR_INIT;
    (void)snprintf(text, sizeof(text), "127.0.0.1:%u\n[::1]:%u\n", 1 + (unsigned)getpid() % 65535,
                   1 + (unsigned)getpid() % 65535);
    if (read_text(s, text, peers, &err) < 0) fail_msg("%s", err.text);
}

static void test_meeting_of_loopback_peers_is_one_process_each(void **state)
{
    struct drps_meet_rank first, other;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_peers peers;
    char folder[64], *path;
    struct stat st;
    (void)snprintf(folder, sizeof(folder), "/tmp/drps-ranks.%u/", (unsigned)geteuid());
    two_peers(*state, &peers);
    if (drps_meet_rank_open(NULL, 0, 1, &peers, &first, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(first.secured, 0);
    assert_memory_equal(peers.peers[0].host, folder, strlen(folder));
    assert_memory_equal(peers.peers[0].host + strlen(folder), "127.0.0.1:", 10);
    assert_memory_equal(peers.peers[1].host + strlen(folder), "::1:", 4);
    assert_string_equal(peers.peers[1].port, "");
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    path = strdup(peers.peers[1].host);
    drps_peers_destroy(&peers);

    two_peers(*state, &peers);
    assert_int_equal(drps_meet_rank_open(NULL, 0, 1, &peers, &other, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, "another process is the rank at /tmp/drps-ranks."));
    drps_meet_rank_close(&other);
    drps_peers_destroy(&peers);
    drps_meet_rank_close(&first);

    two_peers(*state, &peers);
    drps_err_clear(&err);
    if (drps_meet_rank_open(NULL, 0, 1, &peers, &first, &err) < 0) fail_msg("%s", err.text);
    drps_meet_rank_close(&first);
    drps_peers_destroy(&peers);
    assert_int_equal(stat(path, &st), -1);
    free(path);

    two_peers(*state, &peers); /* with insecure, and with a peer elsewhere, addresses stay */
    assert_int_equal(drps_meet_rank_open(NULL, 1, 1, &peers, &first, &err), 0);
    assert_string_equal(peers.peers[0].host, "127.0.0.1");
    strcpy(peers.peers[0].host, "10.0.0.1");
    assert_int_equal(drps_meet_rank_open(NULL, 0, 1, &peers, &first, &err), 0);
    assert_string_equal(peers.peers[1].host, "::1");
    drps_peers_destroy(&peers);
}

/* Another user has made the folder before. Needs root, who can become somebody. */
static void test_meeting_refuses_a_folder_of_another_user(void **state)
{
    const uid_t nobody = 1000000 + (uid_t)getpid();
    char folder[64];
    int status;
    if (geteuid() != 0) {
        print_message("  skipped: not root\n");
        skip();
    }
    (void)snprintf(folder, sizeof(folder), "/tmp/drps-ranks.%u", (unsigned)nobody);
    assert_int_equal(mkdir(folder, 0700), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct drps_peer at[1] = {{"127.0.0.1", "7000", ""}};
        struct drps_peers peers = {1, at};
        struct drps_meet_rank way;
        struct drps_err err = DRPS_ERR_INIT;
        if (setuid(nobody)) _exit(2);
        const int rc = drps_meet_rank_open(NULL, 0, 0, &peers, &way, &err);
        _exit(rc == -EACCES && strstr(err.text, "only this user may enter: remove it") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(status, 0);
    (void)state;
}

static void test_keys_are_kept_for_their_owner_alone(void **state)
{
    const char *dir = scratch_path(*state, "keys");
    struct drps_net_keys made, loaded;
    struct drps_err err = DRPS_ERR_INIT;
    struct stat st;
    if (drps_net_keys_make(drps_io_os(), dir, &made, &err) < 0) fail_msg("%s", err.text);
    char *secret = drps_path_join(dir, "secret.key"), *public = drps_path_join(dir, "public.key");
    assert_int_equal(stat(secret, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    if (drps_net_keys_load(drps_io_os(), dir, &loaded, &err) < 0) fail_msg("%s", err.text);
    assert_memory_equal(&loaded, &made, sizeof(made));
    assert_int_equal(strlen(made.secret_key), 40);
    size_t n;
    char *text = scratch_read(public, &n);
    assert_int_equal(n, 41);
    assert_memory_equal(text, made.public_key, 40);
    free(text);

    /* never overwritten */
    assert_int_equal(drps_net_keys_make(drps_io_os(), dir, &loaded, &err), -EEXIST);
    assert_non_null(strstr(err.text, "never overwritten"));
    assert_int_equal(strlen(loaded.secret_key), 0);
    drps_err_clear(&err);
    assert_int_equal(drps_net_keys_load(drps_io_os(), dir, &loaded, &err), 0);
    assert_memory_equal(&loaded, &made, sizeof(made));

    assert_int_equal(chmod(secret, 0640), 0);
    assert_int_equal(drps_net_keys_load(drps_io_os(), dir, &loaded, &err), -EACCES);
    assert_non_null(strstr(err.text, "mode 0640"));
    free(secret);
    free(public);
    drps_net_keys_forget(&made);
    assert_int_equal(made.secret_key[0], 0);
}

#endif

static void test_keys_that_are_damaged_are_refused(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"empty", ""},
        {"other file", "public " KEY "\n"},
        {"short", "drps-key 1\npublic " KEY "\nsecret abc\n"},
        {"long", "drps-key 1\npublic " KEY "\nsecret " KEY "x\n"},
        {"more", "drps-key 1\npublic " KEY "\nsecret " KEY "\nmore\n"},
        {"control", "drps-key 1\npublic " KEY "\v\nsecret " KEY "\n"},
        {"version", "drps-key 2\npublic " KEY "\nsecret " KEY "\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_net_keys keys;
        struct drps_err err = DRPS_ERR_INIT;
        const char *path = scratch_file(*state, "secret.key", cases[i].text, SIZE_MAX);
        assert_int_equal(chmod(path, 0600), 0);
        const struct scratch *s = *state;
        const int rc = drps_net_keys_load(drps_io_os(), s->dir, &keys, &err);
        if (rc != DRPS_E_FORMAT || keys.secret_key[0]) fail_msg("%s: %d", cases[i].name, rc);
    }
}

static const char *const variables[] = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
    "SLURM_NTASKS",         "JOB_COMPLETION_INDEX",
};
enum { VARIABLES = sizeof(variables) / sizeof(*variables) };

static void set_all(const char *const *values)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        if (values[i])
            assert_int_equal(setenv(variables[i], values[i], 1), 0);
        else
            assert_int_equal(unsetenv(variables[i]), 0);
    }
}

static void test_launch_finds_the_rank_that_the_launcher_says(void **state)
{
    static const struct {
        const char *name;
        const char *values[VARIABLES];
        uint32_t count;
        int rc;
        uint32_t rank, ranks;
        const char *text; /* launcher, or error */
    } cases[] = {
        {.name = "none", .values = {NULL}, .count = 0, .rc = 0, .rank = 0, .ranks = 0},
        {.name = "Open MPI",
         .values = {"2", "4"},
         .count = 0,
         .rc = 1,
         .rank = 2,
         .ranks = 4,
         .text = "mpirun (Open MPI)"},
        {.name = "PMI",
         .values = {[2] = "0", "1"},
         .count = 1,
         .rc = 1,
         .rank = 0,
         .ranks = 1,
         .text = "mpiexec (PMI)"},
        {.name = "srun",
         .values = {[4] = "7", "8"},
         .count = 8,
         .rc = 1,
         .rank = 7,
         .ranks = 8,
         .text = "srun"},
        {.name = "Kubernetes",
         .values = {[6] = "3"},
         .count = 5,
         .rc = 1,
         .rank = 3,
         .ranks = 5,
         .text = "Kubernetes indexed job"},
        {.name = "mpirun within a job of srun",
         .values = {"1", "2", [4] = "0", "9"},
         .count = 0,
         .rc = 1,
         .rank = 1,
         .ranks = 2,
         .text = "mpirun (Open MPI)"},
        {.name = "Kubernetes alone",
         .values = {[6] = "3"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "give a peers file"},
        {.name = "no size",
         .values = {"1"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "OMPI_COMM_WORLD_SIZE is not"},
        {.name = "rank too large",
         .values = {"4", "4"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "says rank 4 of 4"},
        {.name = "no number",
         .values = {[4] = "x", "4"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "SLURM_PROCID=x"},
        {.name = "negative",
         .values = {[4] = "-1", "4"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "SLURM_PROCID=-1"},
        {.name = "other count",
         .values = {"1", "4"},
         .count = 3,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "started 4 ranks, and there are 3"},
        {.name = "too many",
         .values = {"1", "1025"},
         .count = 0,
         .rc = DRPS_E_CONFIG,
         .rank = 0,
         .ranks = 0,
         .text = "says rank 1 of 1025"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_launch launch;
        struct drps_err err = DRPS_ERR_INIT;
        set_all(cases[i].values);
        const int rc = drps_launch_find(cases[i].count, &launch, &err);
        if (rc != cases[i].rc || launch.rank != cases[i].rank || launch.count != cases[i].ranks)
            fail_msg("%s: %d, rank %u of %u: %s", cases[i].name, rc, launch.rank, launch.count,
                     err.text);
        if (rc == 1) assert_string_equal(launch.launcher, cases[i].text);
        if (rc < 0 && !strstr(err.text, cases[i].text)) fail_msg("%s: %s", cases[i].name, err.text);
    }
    set_all((const char *const[VARIABLES]){NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_peers_are_read_in_order_of_rank, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_peers_names_the_line_that_is_wrong, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(test_peers_loopback_is_told_from_the_rest),
#ifdef DRPS_WITH_ZMQ
        cmocka_unit_test_setup_teardown(test_meeting_is_in_a_folder_of_this_user, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test_setup_teardown(test_meeting_has_keys_where_there_is_no_folder,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_meeting_of_loopback_peers_is_one_process_each,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test(test_meeting_refuses_a_folder_of_another_user),
        cmocka_unit_test_setup_teardown(test_keys_are_kept_for_their_owner_alone, scratch_setup,
                                        scratch_teardown),
#endif
        cmocka_unit_test_setup_teardown(test_keys_that_are_damaged_are_refused, scratch_setup,
                                        scratch_teardown),
        cmocka_unit_test(test_launch_finds_the_rank_that_the_launcher_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
