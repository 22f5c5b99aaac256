/*
 * Peers that should not be let in, and peers that fail: what ZeroMQ's transport does about them. A
 * hand-made peer ("imposter") is a bare socket that sends frames as it likes.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifndef DRPS_WITH_ZMQ

int main(void)
{
    (void)printf("skipped: this build has no ZeroMQ\n");
    return 77;
}

#else

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "base/drps_clock.h"
#include "net/drps_wire.h"
#include "support/net_job.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, JOB = 42 };

static const struct drps_net_options plain = {.count = 2, .job_id = JOB};

/* --- opening that must fail --- */

struct opening {
    struct drps_net_options o;
    const struct drps_peers *peers;
    const struct drps_net_keys *keys;
    struct drps_net *net;
    int rc;
    struct drps_err err;
};

static void *open_one(void *arg)
{
    struct opening *o = arg;
    o->rc = drps_net_open_zmq(&o->o, o->peers, o->keys, 0, &o->net, &o->err);
    return NULL;
}

static void open_both(struct opening both[2])
{
    pthread_t threads[2];
    for (uint32_t r = 0; r < 2; r++) {
        both[r].o.rank = r;
        both[r].net = NULL;
        both[r].err = (struct drps_err)DRPS_ERR_INIT;
        assert_int_equal(pthread_create(&threads[r], NULL, open_one, &both[r]), 0);
    }
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(pthread_join(threads[r], NULL), 0);
}

/* A busy machine may not come to hear of a peer in half a second: start_ms of a test that opens
 * what must not open is doubled until each rank has said what it must, or for more than a minute.
 */
enum { START_MS = 500, START_MOST_MS = 64000 };

static int has_said(const struct opening *o, const char *what)
{
    assert_int_equal(o->rc, -ETIMEDOUT);
    if (strstr(o->err.text, what)) return 1;
    if (o->o.start_ms >= START_MOST_MS) fail_msg("does not say '%s': %s", what, o->err.text);
    return 0;
}

static void test_zmq_start_refuses_ranks_that_differ(void **state)
{
    static const struct {
        const char *name;
        struct drps_net_options other;
        const char *text;
    } cases[] = {
        {"plan",
         {.count = 2, .job_id = JOB, .plan_hash = {0xab, 0xcd}},
         "has another plan: its hash"},
        {"queue", {.count = 2, .job_id = JOB, .queue_messages = 3}, "has queues of"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_peers peers;
        net_peers(&peers, 2, NULL);
        struct opening both[2] = {{.o = plain, .peers = &peers},
                                  {.o = cases[i].other, .peers = &peers}};
        open_both(both);
        for (uint32_t r = 0; r < 2; r++) {
            /* Each finds out by itself, or is told by the other. */
            if ((both[r].rc != DRPS_E_CONFIG && both[r].rc != DRPS_E_PEER_FAILED) ||
                !strstr(both[r].err.text, cases[i].text) ||
                !strstr(both[r].err.text, r ? "rank 0 (127." : "rank 1 (127."))
                fail_msg("%s, rank %u: %d: %s", cases[i].name, r, both[r].rc, both[r].err.text);
            assert_null(both[r].net);
        }
        drps_peers_destroy(&peers);
    }
}

static void test_zmq_start_ends_when_a_rank_does_not_answer(void **state)
{
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *net;
    struct drps_net_options o = {.count = 3, .rank = 1, .start_ms = 100};
    (void)state;
    net_peers(&peers, 3, NULL);
    assert_int_equal(drps_net_open_zmq(&o, &peers, NULL, 0, &net, &err), -ETIMEDOUT);
    assert_null(net);
    assert_true(strncmp(err.text, "rank 0 (127.", 12) == 0);
    assert_non_null(strstr(err.text, ", rank 2 (127."));
    assert_non_null(strstr(err.text, ") did not start within 0.1 s, or cannot be reached"));
    drps_peers_destroy(&peers);
}

/* Long before start_ms, which the test's own time limit would not see through. */
static void test_zmq_start_ends_when_it_is_told_to(void **state)
{
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *net;
    const atomic_int stop = 1;
    const struct drps_net_options o = {
        .count = 3, .rank = 1, .start_ms = 24 * 3600 * 1000, .stop = &stop};
    (void)state;
    net_peers(&peers, 3, NULL);
    assert_int_equal(drps_net_open_zmq(&o, &peers, NULL, 0, &net, &err), DRPS_E_INTERRUPTED);
    assert_null(net);
    assert_non_null(strstr(err.text, "interrupted while waiting for rank 0 (127."));
    drps_peers_destroy(&peers);
}

static void test_zmq_start_says_that_another_job_answers(void **state)
{
    struct drps_peers peers;
    (void)state;
    net_peers(&peers, 2, NULL);
    struct opening both[2] = {{.o = plain, .peers = &peers}, {.o = plain, .peers = &peers}};
    both[1].o.job_id = JOB + 1;
    uint32_t ms = START_MS;
    do {
        both[0].o.start_ms = both[1].o.start_ms = ms;
        open_both(both);
        ms *= 2;
    } while (!has_said(&both[0], "another job") || !has_said(&both[1], "another job"));
    drps_peers_destroy(&peers);
}

static void test_zmq_needs_keys_off_loopback(void **state)
{
    struct drps_peer at[2] = {{"127.0.0.1", "7000", ""}, {"10.11.12.13", "7000", ""}};
    const struct drps_peers peers = {2, at};
    struct drps_net_keys keys = {"", ""};
    struct drps_net *net;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    assert_int_equal(drps_net_open_zmq(&plain, &peers, NULL, 0, &net, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "rank 1 (10.11.12.13:7000) has no loopback address"));
    assert_non_null(strstr(err.text, "keys are needed"));
    drps_err_clear(&err);
    assert_int_equal(drps_net_open_zmq(&plain, &peers, &keys, 0, &net, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "rank 0 (127.0.0.1:7000) has no valid public key"));
    drps_err_clear(&err);
    assert_int_equal(zmq_curve_keypair(keys.public_key, keys.secret_key), 0);
    for (int r = 0; r < 2; r++)
        assert_int_equal(zmq_curve_keypair(at[r].public_key, keys.secret_key), 0);
    assert_int_equal(drps_net_open_zmq(&plain, &peers, &keys, 0, &net, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "not the one that the peers file has for rank 0"));
    drps_err_clear(&err);
    assert_int_equal(drps_net_open_zmq(&plain, &(struct drps_peers){1, at}, NULL, 0, &net, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "1 peers for 2 ranks"));
}

/* --- strangers --- */

static struct drps_net_stats stats_of(struct drps_net *net)
{
    struct drps_net_stats stats;
    drps_net_stats(net, &stats);
    return stats;
}

static void endpoint(const struct drps_peer *at, char out[300])
{
    (void)snprintf(out, 300, "tcp://%s:%s", at->host, at->port);
}

static void *stranger(void *context, const struct drps_peer *at, const struct drps_net_keys *keys,
                      const char *server_key)
{
    const int zero = 0;
    char address[300];
    void *s = zmq_socket(context, ZMQ_PUSH);
    assert_non_null(s);
    (void)zmq_setsockopt(s, ZMQ_LINGER, &zero, sizeof(zero));
    if (keys) {
        (void)zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, keys->public_key, DRPS_NET_KEY_BYTES);
        (void)zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, keys->secret_key, DRPS_NET_KEY_BYTES);
        (void)zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, server_key, DRPS_NET_KEY_BYTES);
    }
    endpoint(at, address);
    assert_int_equal(zmq_connect(s, address), 0);
    (void)zmq_send(s, "let me in", 9, ZMQ_DONTWAIT);
    return s;
}

static void wait_for_strangers(struct drps_net *net, uint64_t n)
{
    while (stats_of(net).strangers < n) /* the test's timeout ends it */
        (void)sched_yield();
}

static void exchange(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct drps_err err = DRPS_ERR_INIT;
    (void)rank, (void)ctx;
    NET_OK(drps_net_barrier(net, NET_WAIT_MS, &err));
}

static void test_zmq_counts_and_refuses_strangers_while_the_job_goes_on(void **state)
{
    struct drps_net_keys keys[2], other;
    struct drps_peers peers;
    void *context = zmq_ctx_new();
    (void)state;
    net_peers(&peers, 2, keys);
    struct opening both[2] = {{.o = plain, .peers = &peers, .keys = &keys[0]},
                              {.o = plain, .peers = &peers, .keys = &keys[1]}};
    open_both(both);
    if (both[0].rc < 0 || both[1].rc < 0) fail_msg("%s%s", both[0].err.text, both[1].err.text);
    struct net_job job = {2, {both[0].net, both[1].net}};
    assert_int_equal(zmq_curve_keypair(other.public_key, other.secret_key), 0);

    void *keyless = stranger(context, &peers.peers[0], NULL, NULL);
    wait_for_strangers(job.nets[0], 1);
    (void)zmq_close(keyless);
    uint64_t before = stats_of(job.nets[0]).strangers;
    void *unlisted = stranger(context, &peers.peers[0], &other, keys[0].public_key);
    wait_for_strangers(job.nets[0], before + 1);
    (void)zmq_close(unlisted);
    before = stats_of(job.nets[0]).strangers;
    void *wrong_server = stranger(context, &peers.peers[0], &keys[1], other.public_key);
    wait_for_strangers(job.nets[0], before + 1);
    (void)zmq_close(wrong_server);

    net_job_run(&job, exchange, NULL);
    assert_int_equal(stats_of(job.nets[0]).malformed, 0); /* nothing of theirs came through */
    assert_int_equal(stats_of(job.nets[1]).strangers, 0);
    net_job_close(&job);
    (void)zmq_ctx_term(context);
    drps_peers_destroy(&peers);
}

/* --- connections that say nothing --- */

static struct sockaddr_in socket_address(const struct drps_peer *at)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(at->port))};
    assert_int_equal(inet_pton(AF_INET, at->host, &to.sin_addr), 1);
    return to;
}

static void open_keyed(struct net_job *job, struct drps_peers *peers)
{
    struct drps_net_keys keys[2];
    net_peers(peers, 2, keys);
    struct opening both[2] = {{.o = plain, .peers = peers, .keys = &keys[0]},
                              {.o = plain, .peers = peers, .keys = &keys[1]}};
    open_both(both);
    if (both[0].rc < 0 || both[1].rc < 0) fail_msg("%s%s", both[0].err.text, both[1].err.text);
    *job = (struct net_job){2, {both[0].net, both[1].net}};
}

/* ZeroMQ's threads of this process that move data. */
static int io_threads_here(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *e; (e = readdir(tasks));) {
        char path[300], name[32] = "";
        (void)snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (f && fgets(name, sizeof(name), f)) n += strncmp(name, "ZMQbg/IO", 8) == 0;
        if (f) (void)fclose(f);
    }
    (void)closedir(tasks);
    return n;
}

/* Each rank encrypts with a thread a link, if there are processors for them; else one does. */
static void test_zmq_encrypts_with_a_thread_a_link(void **state)
{
    enum { RANKS = 3 };
    struct net_job job;
    cpu_set_t set;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    const int before = io_threads_here();
    net_job_open(&job, NET_ZMQ, RANKS, &plain);
    assert_int_equal(io_threads_here() - before, RANKS);
    net_job_close(&job);
    net_job_open(&job, NET_CURVE, RANKS, &plain);
    assert_int_equal(io_threads_here() - before, RANKS * (CPU_COUNT(&set) > 1 ? 2 : 1));
    net_job_close(&job);
}

static void test_zmq_ends_a_connection_that_says_nothing(void **state)
{
    struct net_job job;
    struct drps_peers peers;
    char greeting[64];
    (void)state;
    open_keyed(&job, &peers);
    const struct sockaddr_in to = socket_address(&peers.peers[0]);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const uint64_t begin = drps_clock_ns();
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    while (recv(fd, greeting, sizeof(greeting), 0) > 0) /* ZeroMQ's, and the end */
        ;
    assert_true(drps_seconds_since(begin) < 20); /* ZeroMQ's own limit is 30 s */
    wait_for_strangers(job.nets[0], 1);
    (void)close(fd);
    net_job_close(&job);
    drps_peers_destroy(&peers);
}

enum { CROWD = 5000, FILES = 1024, OPEN_AT_ONCE = 64 };

/* A process that connects until it is not let in any more, and stays until it is told to end. 1:
 * it was always let in. */
static int crowd(const struct sockaddr_in *to, int say, int end)
{
    struct rlimit limit = {CROWD + 100, CROWD + 100};
    char c;
    int shut = 0;
    if (setrlimit(RLIMIT_NOFILE, &limit)) return 2;
    for (int i = 0; i < CROWD && !shut; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        struct pollfd wait = {.fd = fd, .events = POLLOUT};
        if (fd < 0) return 3;
        if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) && errno != EINPROGRESS) return 4;
        shut = poll(&wait, 1, 500) == 0;
    }
    if (write(say, shut ? "1" : "0", 1) != 1 || read(end, &c, 1) < 0) return 5;
    return !shut;
}

/* This process's files can still be opened: what strangers hold is bounded. */
static void open_files(void)
{
    int fds[OPEN_AT_ONCE];
    for (int i = 0; i < OPEN_AT_ONCE; i++) {
        fds[i] = open("/dev/null", O_RDONLY);
        if (fds[i] < 0) fail_msg("file %d cannot be opened: %s", i, strerror(errno));
    }
    for (int i = 0; i < OPEN_AT_ONCE; i++)
        (void)close(fds[i]);
}

static void test_zmq_lets_in_no_crowd(void **state)
{
    struct rlimit limit, small;
    struct net_job job;
    struct drps_peers peers;
    int said[2], end[2], status;
    char c = 0;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < CROWD + 100) {
        print_message("  skipped: fewer open files than a crowd has\n");
        skip();
    }
    open_keyed(&job, &peers);
    const struct sockaddr_in to = socket_address(&peers.peers[0]);
    assert_int_equal(pipe2(said, O_NONBLOCK), 0);
    assert_int_equal(pipe(end), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(end[1]);
        _exit(crowd(&to, said[1], end[0]));
    }
    (void)close(end[0]);
    small = (struct rlimit){FILES, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    while (read(said[0], &c, 1) != 1) { /* the test's timeout ends it */
        open_files();
        net_job_run(&job, exchange, NULL);
    }
    assert_int_equal(c, '1');
    (void)close(end[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);

    /* When they have gone, others may try again. */
    const uint64_t before = stats_of(job.nets[0]).strangers;
    void *context = zmq_ctx_new();
    void *keyless = stranger(context, &peers.peers[0], NULL, NULL);
    wait_for_strangers(job.nets[0], before + 1);
    (void)zmq_close(keyless);
    (void)zmq_ctx_term(context);
    net_job_run(&job, exchange, NULL);
    net_job_close(&job);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    (void)close(said[0]);
    (void)close(said[1]);
    drps_peers_destroy(&peers);
}

static void test_zmq_names_a_limit_of_open_files_that_is_too_low(void **state)
{
    const struct drps_net_options many = {.count = DRPS_NET_RANKS_MAX, .job_id = JOB};
    struct rlimit limit, small;
    struct drps_peers peers;
    struct drps_net *net;
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    net_peers(&peers, DRPS_NET_RANKS_MAX, NULL);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    small = (struct rlimit){FILES, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
    assert_int_equal(drps_net_open_zmq(&many, &peers, NULL, 0, &net, &err), DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "1024 ranks need up to 4224 open files each"));
    assert_non_null(strstr(err.text, "the limit is 1024: raise it with ulimit -n"));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    drps_peers_destroy(&peers);
}

/* A message of many parts that never ends, of a client without keys: ZeroMQ would keep all of it.
 */
static void test_zmq_takes_no_endless_message_of_a_stranger(void **state)
{
    static const char greeting[64] = "\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL";
    static const char ready[] = "\4\x1a\5READY\xbSocket-Type\0\0\0\4PUSH";
    struct net_job job;
    struct drps_peers peers;
    (void)state;
    open_keyed(&job, &peers);
    const struct sockaddr_in to = socket_address(&peers.peers[0]);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const size_t bytes = 1 << 20;
    char *part = calloc(1, 9 + bytes); /* flags: long and more; size */
    assert_non_null(part);
    part[0] = 3;
    part[6] = 0x10;
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, greeting, sizeof(greeting), MSG_NOSIGNAL), sizeof(greeting));
    (void)send(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL);
    size_t sent = 0;
    for (ssize_t n; sent < (size_t)256 << 20; sent += (size_t)n) {
        n = send(fd, part, 9 + bytes, MSG_NOSIGNAL);
        if (n < 0) break;
    }
    assert_true(sent < (size_t)64 << 20); /* what sockets hold, until it was refused */
    wait_for_strangers(job.nets[0], 1);
    (void)close(fd);
    free(part);
    net_job_run(&job, exchange, NULL);
    net_job_close(&job);
    drps_peers_destroy(&peers);
}

static void test_zmq_start_fails_with_a_wrong_key(void **state)
{
    struct drps_net_keys keys[2], other;
    struct drps_peers peers, wrong;
    (void)state;
    net_peers(&peers, 2, keys);
    wrong.count = 2;
    wrong.peers = calloc(2, sizeof(*wrong.peers));
    assert_non_null(wrong.peers);
    memcpy(wrong.peers, peers.peers, 2 * sizeof(*wrong.peers));
    assert_int_equal(zmq_curve_keypair(other.public_key, other.secret_key), 0);
    memcpy(wrong.peers[1].public_key, other.public_key, DRPS_NET_KEY_BYTES);
    /* Rank 1 comes with a key of its own that rank 0's file does not have. */
    struct opening both[2] = {{.o = plain, .peers = &peers, .keys = &keys[0]},
                              {.o = plain, .peers = &wrong, .keys = &other}};
    uint32_t ms = START_MS;
    do {
        both[0].o.start_ms = both[1].o.start_ms = ms;
        open_both(both);
        assert_int_equal(both[1].rc, -ETIMEDOUT);
        ms *= 2;
    } while (!has_said(&both[0], "connections refused here: "));
    assert_non_null(strstr(both[0].err.text, "rank 1 (127."));
    assert_null(strstr(both[0].err.text, "connections refused here: 0"));
    assert_non_null(strstr(both[0].err.text, "same peers file"));
    drps_peers_destroy(&peers);
    drps_peers_destroy(&wrong);
}

/* --- a peer that does not keep to the protocol --- */

struct imposter {
    struct drps_peers peers;
    void *context, *push, *pull;
    uint64_t victims;      /* the victim's incarnation */
    struct opening victim; /* rank 0 */
    pthread_t opener;
};

static void raw_frame(struct imposter *im, const struct wire_head *head, const void *data,
                      size_t bytes, size_t flip)
{
    uint8_t bytes_of_head[WIRE_HEAD_BYTES];
    struct wire_head to = *head;
    if (head->type != WIRE_HELLO) to.incarnation += im->victims;
    drps_wire_encode(&to, data, bytes, bytes_of_head);
    if (flip < WIRE_HEAD_BYTES) bytes_of_head[flip] ^= 2;
    assert_true(zmq_send(im->push, bytes_of_head, WIRE_HEAD_BYTES, bytes ? ZMQ_SNDMORE : 0) >= 0);
    if (bytes) assert_true(zmq_send(im->push, data, bytes, 0) >= 0);
}

static struct wire_head head_of(uint8_t type, uint64_t sequence, uint64_t message_bytes)
{
    return (struct wire_head){.type = type,
                              .part = DRPS_NET_SERVER,
                              .from = 1,
                              .job_id = JOB,
                              .sequence = sequence,
                              .message_bytes = message_bytes};
}

enum { FIRST = 2 }; /* number of the first frame after the greetings */

static void raw_hello(struct imposter *im, uint32_t count, size_t flip, uint64_t incarnation)
{
    struct wire_hello hello = {.count = count, .queue_messages = 8, .incarnation = incarnation};
    uint8_t bytes[WIRE_HELLO_BYTES];
    const struct wire_head head = head_of(WIRE_HELLO, 0, WIRE_HELLO_BYTES);
    for (int i = 0; i < DRPS_NET_PARTS; i++)
        hello.message_bytes[i] = 64 << 10;
    drps_wire_hello_encode(&hello, bytes);
    raw_frame(im, &head, bytes, sizeof(bytes), flip);
}

/* Start as a rank does: greet, hear the victim's greeting, and answer it. */
static void raw_start(struct imposter *im)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct wire_head ping = head_of(WIRE_PING, 1, 0);
    struct wire_hello hello;
    uint8_t head[WIRE_HEAD_BYTES], bytes[WIRE_HELLO_BYTES];
    raw_hello(im, 2, SIZE_MAX, 1);
    assert_int_equal(zmq_recv(im->pull, head, sizeof(head), 0), sizeof(head));
    assert_int_equal(zmq_recv(im->pull, bytes, sizeof(bytes), 0), sizeof(bytes));
    NET_OK(drps_wire_hello_decode(bytes, sizeof(bytes), &hello, &err));
    im->victims = hello.incarnation;
    raw_frame(im, &ping, NULL, 0, SIZE_MAX);
}

static void imposter_bind(struct imposter *im)
{
    char address[300];
    endpoint(&im->peers.peers[1], address);
    assert_int_equal(zmq_bind(im->pull, address), 0);
}

/* Sockets of rank 1 that are not bound yet; rank 0 is to open. */
static void imposter_init(struct imposter *im, const struct drps_net_options *o)
{
    char address[300];
    const int zero = 0;
    im->victims = 0;
    net_peers(&im->peers, 2, NULL);
    im->context = zmq_ctx_new();
    im->push = zmq_socket(im->context, ZMQ_PUSH);
    im->pull = zmq_socket(im->context, ZMQ_PULL);
    (void)zmq_setsockopt(im->push, ZMQ_LINGER, &zero, sizeof(zero));
    endpoint(&im->peers.peers[0], address);
    assert_int_equal(zmq_connect(im->push, address), 0);
    im->victim = (struct opening){.o = *o, .peers = &im->peers};
}

/* Rank 0 opens in a thread of its own and waits for rank 1's greeting. */
static void imposter_open(struct imposter *im)
{
    assert_int_equal(pthread_create(&im->opener, NULL, open_one, &im->victim), 0);
}

static void imposter_begin(struct imposter *im, const struct drps_net_options *o)
{
    imposter_init(im, o);
    imposter_bind(im);
    imposter_open(im);
}

static void imposter_join(struct imposter *im)
{
    assert_int_equal(pthread_join(im->opener, NULL), 0);
}

static void imposter_end(struct imposter *im)
{
    drps_net_close(im->victim.net, 100, NULL);
    (void)zmq_close(im->push);
    (void)zmq_close(im->pull);
    (void)zmq_ctx_term(im->context);
    drps_peers_destroy(&im->peers);
}

static void test_zmq_start_refuses_another_version_and_count(void **state)
{
    static const struct {
        const char *name;
        uint32_t count;
        size_t flip; /* a byte of the header */
        int code;
        const char *text;
    } cases[] = {
        {"version", 2, 4, DRPS_E_VERSION,
         "): speaks version 0 of the protocol, this program version 2"},
        {"count", 5, SIZE_MAX, DRPS_E_CONFIG, "): expects 5 ranks, this rank 2"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct imposter im;
        imposter_begin(&im, &plain);
        raw_hello(&im, cases[i].count, cases[i].flip, 1);
        imposter_join(&im);
        if (im.victim.rc != cases[i].code || !strstr(im.victim.err.text, cases[i].text) ||
            strncmp(im.victim.err.text, "rank 1 (127.", 12) != 0)
            fail_msg("%s: %d: %s", cases[i].name, im.victim.rc, im.victim.err.text);
        imposter_end(&im);
    }
}

static void test_zmq_drops_and_counts_damaged_foreign_and_repeated_frames(void **state)
{
    struct imposter im;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    struct wire_head head = head_of(TYPE, FIRST, 5), foreign = head;
    (void)state;
    imposter_begin(&im, &plain);
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    raw_frame(&im, &head, "first", 5, 40);            /* malformed: flipped */
    (void)zmq_send(im.push, "GET / HTTP/1.1", 14, 0); /* malformed: no header */
    foreign.job_id++;
    raw_frame(&im, &foreign, "first", 5, SIZE_MAX); /* malformed: another job */
    foreign = head;
    foreign.from = 7;
    raw_frame(&im, &foreign, "first", 5, SIZE_MAX); /* malformed: no such rank */
    foreign = head;
    foreign.to = 1;
    raw_frame(&im, &foreign, "first", 5, SIZE_MAX); /* malformed: to another rank */
    foreign = head;
    foreign.incarnation = 1;
    raw_frame(&im, &foreign, "first", 5, SIZE_MAX); /* malformed: to another process */
    foreign = head_of(WIRE_BYE, FIRST, 0);
    foreign.incarnation = 0 - im.victims;
    raw_frame(&im, &foreign, NULL, 0, SIZE_MAX); /* malformed: to no process in particular */
    for (int i = 0; i < 3; i++)
        (void)zmq_send(im.push, "x", 1, i < 2 ? ZMQ_SNDMORE : 0); /* malformed: three frames */
    raw_hello(&im, 2, SIZE_MAX, 1);                               /* replayed */
    raw_frame(&im, &head, "first", 5, SIZE_MAX);
    raw_frame(&im, &head, "first", 5, SIZE_MAX); /* replayed */
    head.sequence++;
    raw_frame(&im, &head, "later", 5, SIZE_MAX);
    NET_OK(drps_net_receive(im.victim.net, DRPS_NET_SERVER, 1, NET_WAIT_MS, &m, &err));
    assert_memory_equal(m->data, "first", 5);
    drps_net_message_free(m);
    NET_OK(drps_net_receive(im.victim.net, DRPS_NET_SERVER, 1, NET_WAIT_MS, &m, &err));
    assert_memory_equal(m->data, "later", 5);
    drps_net_message_free(m);
    const struct drps_net_stats stats = stats_of(im.victim.net);
    assert_int_equal(stats.malformed, 8);
    assert_int_equal(stats.replayed, 2);
    imposter_end(&im);
}

static void test_zmq_ends_the_job_when_a_peer_breaks_the_protocol(void **state)
{
    static const struct {
        const char *name;
        struct wire_head head;
        const char *text;
    } cases[] = {
        {"frames lost", {.type = TYPE, .sequence = 3}, "frame 3 came where 2 was due"},
        {"too large",
         {.type = TYPE, .sequence = FIRST, .message_bytes = (64 << 10) + 1},
         "message of 65537 bytes, at most 65536 are taken"},
        {"credit for nothing",
         {.type = WIRE_CREDIT, .sequence = FIRST, .round = 1},
         "credit for 1 of 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct imposter im;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net_message *m;
        struct wire_head head = cases[i].head;
        imposter_begin(&im, &plain);
        raw_start(&im);
        imposter_join(&im);
        if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
        head.from = 1;
        head.job_id = JOB;
        raw_frame(&im, &head, "x", head.message_bytes ? 1 : 0, SIZE_MAX);
        const int rc =
            drps_net_receive(im.victim.net, DRPS_NET_SERVER, DRPS_NET_ANY, NET_WAIT_MS, &m, &err);
        if (rc != DRPS_E_PROTO || strncmp(err.text, "rank 1 (127.", 12) != 0 ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %d: %s", cases[i].name, rc, err.text);
        imposter_end(&im);
    }
}

/* A peer that greets, and is then silent though its socket lives. */
static void test_zmq_names_a_peer_that_falls_silent(void **state)
{
    struct imposter im;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    (void)state;
    imposter_begin(&im, &(struct drps_net_options){.count = 2, .job_id = JOB, .silence_ms = 2000});
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    assert_int_equal(drps_net_receive(im.victim.net, DRPS_NET_WORKER, 1, NET_WAIT_MS, &m, &err),
                     DRPS_E_PEER);
    assert_non_null(strstr(err.text, "rank 1 (127."));
    assert_non_null(strstr(err.text, "is dead or cut off"));
    imposter_end(&im);
}

/* A process that opens rank 1, says so, and waits to be killed. */
static void be_killed(const struct drps_peers *peers, const struct drps_net_options *o, int say)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *net;
    struct drps_net_options mine = *o;
    mine.rank = 1;
    NET_OK(drps_net_open_zmq(&mine, peers, NULL, 0, &net, &err));
    NET_CHECK(write(say, "!", 1) == 1);
    for (;;)
        (void)pause();
}

static void test_zmq_names_a_process_that_was_killed(void **state)
{
    const struct drps_net_options o = {.count = 2, .silence_ms = 2000};
    struct drps_peers peers;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *net;
    struct drps_net_message *m;
    int said[2];
    char c;
    (void)state;
    net_peers(&peers, 2, NULL);
    assert_int_equal(pipe(said), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) be_killed(&peers, &o, said[1]);
    NET_OK(drps_net_open_zmq(&o, &peers, NULL, 0, &net, &err));
    assert_int_equal(read(said[0], &c, 1), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(drps_net_receive(net, DRPS_NET_WORKER, DRPS_NET_ANY, NET_WAIT_MS, &m, &err),
                     DRPS_E_PEER);
    assert_non_null(strstr(err.text, "rank 1 (127."));
    assert_non_null(strstr(err.text, "nothing was heard of it for 2000 ms"));
    drps_net_close(net, 100, &err);
    (void)close(said[0]);
    (void)close(said[1]);
    drps_peers_destroy(&peers);
}

static uint64_t now_ms(void)
{
    return drps_clock_ns() / 1000000;
}

/* Somebody greets once more as rank 1, as another process: it was not restarted while it goes on
 * saying that it is there, and was when it has fallen silent. */
static void test_zmq_ends_the_job_when_a_rank_was_restarted(void **state)
{
    struct imposter im;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    (void)state;
    imposter_begin(&im, &(struct drps_net_options){.count = 2, .job_id = JOB, .silence_ms = 60000});
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    struct wire_head ping = head_of(WIRE_PING, FIRST, 0);
    raw_hello(&im, 2, SIZE_MAX, 2);
    uint64_t said = now_ms(), pause = 0; /* the longest, on a machine that has no time for this */
    for (const uint64_t begin = said; said - begin < 2500 && pause < 500; ping.sequence++) {
        raw_frame(&im, &ping, NULL, 0, SIZE_MAX);
        const int rc = drps_net_receive(im.victim.net, DRPS_NET_WORKER, 1, 50, &m, &err);
        pause = now_ms() - said > pause ? now_ms() - said : pause;
        said = now_ms();
        if (rc != -ETIMEDOUT && pause < 500) fail_msg("%d: %s", rc, err.text);
        drps_err_clear(&err);
    }
    const uint64_t begin = now_ms();
    raw_hello(&im, 2, SIZE_MAX, 2);
    assert_int_equal(drps_net_receive(im.victim.net, DRPS_NET_WORKER, 1, NET_WAIT_MS, &m, &err),
                     DRPS_E_PEER);
    assert_string_equal(err.text, "rank 1 was restarted: start all anew");
    assert_true(now_ms() - begin < 30000); /* not the silence */
    imposter_end(&im);
}

/* It ends nothing if it need not stay: it is as a rank that has left. */
static void test_zmq_goes_on_when_a_rank_was_restarted_that_need_not_stay(void **state)
{
    struct imposter im;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    (void)state;
    imposter_begin(&im, &(struct drps_net_options){.count = 2, .job_id = JOB, .silence_ms = 60000});
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    drps_net_need(im.victim.net, 0);
    raw_hello(&im, 2, SIZE_MAX, 2);
    assert_int_equal(drps_net_receive(im.victim.net, DRPS_NET_WORKER, 1, NET_WAIT_MS, &m, &err),
                     DRPS_E_PEER);
    assert_non_null(strstr(err.text, "has left the job"));
    drps_err_clear(&err);
    NET_OK(drps_net_barrier(im.victim.net, NET_WAIT_MS, &err));
    imposter_end(&im);
}

/* Rank 1 talks to a process of rank 0 that was there before: this one waits until rank 1 has
 * noticed and greets it. */
static void test_zmq_start_waits_for_a_peer_in_an_earlier_run(void **state)
{
    struct imposter im;
    const struct wire_head ping = head_of(WIRE_PING, 5, 0);
    struct drps_net_options o = plain;
    int said = 0;
    (void)state;
    for (o.start_ms = START_MS; !said; o.start_ms *= 2) {
        imposter_begin(&im, &o);
        im.victims = 1234567;
        raw_frame(&im, &ping, NULL, 0, SIZE_MAX);
        imposter_join(&im);
        said = has_said(&im.victim, "in a run with an earlier process of this rank");
        imposter_end(&im);
    }

    imposter_begin(&im, &plain);
    im.victims = 1234567;
    raw_frame(&im, &ping, NULL, 0, SIZE_MAX);
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    imposter_end(&im);
}

/* The head of the victim's next frame. */
static struct wire_head raw_next(struct imposter *im)
{
    struct wire_head h;
    uint8_t head[WIRE_HEAD_BYTES], rest[256];
    size_t more_bytes = sizeof(int);
    int more = 0, bytes = 0;
    assert_int_equal(zmq_recv(im->pull, head, sizeof(head), 0), WIRE_HEAD_BYTES);
    assert_int_equal(zmq_getsockopt(im->pull, ZMQ_RCVMORE, &more, &more_bytes), 0);
    if (more) bytes = zmq_recv(im->pull, rest, sizeof(rest), 0);
    assert_true(bytes >= 0 && bytes <= (int)sizeof(rest));
    assert_int_equal(drps_wire_decode(head, sizeof(head), rest, (size_t)bytes, &h, NULL), 0);
    return h;
}

/* Waits for a frame of the victim's of that type; returns its sequence. */
static uint64_t raw_await(struct imposter *im, uint8_t type)
{
    struct wire_head h;
    do
        h = raw_next(im);
    while (h.type != type);
    return h.sequence;
}

/* What rank 1 got of rank 0's greeting was got by a process that has ended: it is greeted again. */
static void test_zmq_start_greets_anew_who_does_not_answer(void **state)
{
    struct imposter im;
    (void)state;
    imposter_begin(&im, &plain);
    assert_int_equal(raw_await(&im, WIRE_HELLO), 0); /* and lost with that process */
    raw_hello(&im, 2, SIZE_MAX, 1);
    assert_int_equal(raw_await(&im, WIRE_PING), 1);
    raw_start(&im); /* takes the next greeting */
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    imposter_end(&im);
}

/* Listens at an address and answers no handshake. Returns the socket. */
static int listen_in_vain(const struct drps_peer *at)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(getaddrinfo(at->host, at->port, &hints, &found), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
    assert_int_equal(bind(fd, found->ai_addr, found->ai_addrlen), 0);
    assert_int_equal(listen(fd, 8), 0);
    freeaddrinfo(found);
    return fd;
}

/* Waits until of the connections that were accepted all but one have ended, and longer than one
 * that is made again may take. */
static void await_one_connection(void *monitor)
{
    int open = 0;
    for (;;) {
        char event[16], address[300];
        uint16_t what;
        const int wait_ms = open == 1 ? 3000 : NET_WAIT_MS;
        assert_int_equal(zmq_setsockopt(monitor, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms)), 0);
        if (zmq_recv(monitor, event, sizeof(event), 0) < 0) break;
        memcpy(&what, event, sizeof(what));
        assert_true(zmq_recv(monitor, address, sizeof(address), 0) >= 0);
        open += what == ZMQ_EVENT_ACCEPTED ? 1 : -1;
    }
    assert_int_equal(open, 1);
}

/* A peer that has greeted and is long in taking connections: when it does there is one, and frames
 * come in order. */
static void test_zmq_keeps_one_connection_to_a_slow_peer(void **state)
{
    struct imposter im;
    struct drps_err err = DRPS_ERR_INIT;
    int visitors[4];
    (void)state;
    imposter_init(&im, &plain);
    const int fd = listen_in_vain(&im.peers.peers[1]);
    imposter_open(&im);
    raw_hello(&im, 2, SIZE_MAX, 1);
    for (int i = 0; i < 4; i++) /* rank 0 greets more often than the queue has room for */
        assert_true((visitors[i] = accept(fd, NULL, NULL)) >= 0);
    (void)close(fd);
    for (int i = 0; i < 4; i++)
        (void)close(visitors[i]);
    void *monitor = zmq_socket(im.context, ZMQ_PAIR);
    assert_int_equal(
        zmq_socket_monitor(im.pull, "inproc://slow", ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED),
        0);
    assert_int_equal(zmq_connect(monitor, "inproc://slow"), 0);
    imposter_bind(&im);
    raw_start(&im);
    imposter_join(&im);
    if (im.victim.rc < 0) fail_msg("%s", im.victim.err.text);
    for (unsigned i = 0; i < 8; i++) {
        const struct drps_piece piece = {"late", 4};
        const struct drps_net_send send = {.to = 1, .type = TYPE, .pieces = &piece, .n = 1};
        NET_OK(drps_net_send(im.victim.net, &send, NET_WAIT_MS, &err));
    }
    uint64_t next = FIRST;
    for (unsigned messages = 0; messages < 8;) {
        const struct wire_head h = raw_next(&im);
        if (h.sequence < FIRST) continue; /* a greeting, again */
        assert_int_equal(h.sequence, next++);
        messages += h.type == TYPE;
    }
    await_one_connection(monitor);
    (void)zmq_socket_monitor(im.pull, NULL, 0);
    (void)zmq_close(monitor);
    imposter_end(&im);
}

/* A peer that has greeted and takes no connection: rank 0 connects again, gives up, and ends. */
static void test_zmq_start_ends_when_a_peer_takes_no_connection(void **state)
{
    struct imposter im;
    struct drps_net_options o = plain;
    (void)state;
    o.start_ms = 4000; /* three greetings, and a connection made again */
    imposter_init(&im, &o);
    imposter_open(&im);
    raw_hello(&im, 2, SIZE_MAX, 1);
    imposter_join(&im);
    assert_int_equal(im.victim.rc, -ETIMEDOUT);
    assert_non_null(strstr(im.victim.err.text, "rank 1 (127."));
    imposter_end(&im);
}

static uint32_t rank_1_is_lost(void *ctx)
{
    atomic_int *asked = ctx;
    return atomic_fetch_add(asked, 1) ? 1 : DRPS_NET_ANY;
}

/* Whoever has started the ranks knows of an end long before it shows as silence. */
static void test_zmq_is_told_of_a_rank_that_has_ended(void **state)
{
    struct imposter im;
    atomic_int asked = 0;
    const struct drps_net_options o = {.count = 2,
                                       .job_id = JOB,
                                       .silence_ms = 3600000,
                                       .start_ms = 3600000,
                                       .lost = rank_1_is_lost,
                                       .lost_ctx = &asked};
    (void)state;
    imposter_begin(&im, &o); /* rank 1 never greets */
    imposter_join(&im);
    assert_int_equal(im.victim.rc, DRPS_E_PEER);
    assert_non_null(strstr(im.victim.err.text, "the process of rank 1 (127."));
    imposter_end(&im);
}

/* A job without keys that is about to end answers at the address of rank 1: ZeroMQ then gives up a
 * connection with keys. */
static void test_zmq_start_gets_over_an_earlier_job_at_an_address(void **state)
{
    struct drps_net_keys keys[2];
    struct drps_peers peers;
    char address[300];
    pthread_t threads[2];
    const int zero = 0;
    void *context = zmq_ctx_new();
    (void)state;
    net_peers(&peers, 2, keys);
    void *earlier = zmq_socket(context, ZMQ_PULL);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    (void)zmq_setsockopt(earlier, ZMQ_LINGER, &zero, sizeof(zero));
    (void)zmq_setsockopt(monitor, ZMQ_LINGER, &zero, sizeof(zero));
    assert_int_equal(zmq_socket_monitor(earlier, "inproc://earlier", ZMQ_EVENT_DISCONNECTED), 0);
    assert_int_equal(zmq_connect(monitor, "inproc://earlier"), 0);
    endpoint(&peers.peers[1], address);
    assert_int_equal(zmq_bind(earlier, address), 0);

    struct opening both[2] = {{.o = plain, .peers = &peers, .keys = &keys[0]},
                              {.o = plain, .peers = &peers, .keys = &keys[1]}};
    both[1].o.rank = 1;
    assert_int_equal(pthread_create(&threads[0], NULL, open_one, &both[0]), 0);
    assert_true(zmq_recv(monitor, address, sizeof(address), 0) >= 0); /* it was given up */
    (void)zmq_socket_monitor(earlier, NULL, 0);
    (void)zmq_close(monitor);
    (void)zmq_close(earlier);
    (void)zmq_ctx_term(context);
    assert_int_equal(pthread_create(&threads[1], NULL, open_one, &both[1]), 0);
    for (uint32_t r = 0; r < 2; r++)
        assert_int_equal(pthread_join(threads[r], NULL), 0);
    if (both[0].rc < 0 || both[1].rc < 0) fail_msg("%s%s", both[0].err.text, both[1].err.text);
    struct net_job job = {2, {both[0].net, both[1].net}};
    net_job_run(&job, exchange, NULL);
    net_job_close(&job);
    drps_peers_destroy(&peers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zmq_names_a_process_that_was_killed), /* forks: before any thread */
        cmocka_unit_test(test_zmq_start_refuses_ranks_that_differ),
        cmocka_unit_test(test_zmq_start_ends_when_a_rank_does_not_answer),
        cmocka_unit_test(test_zmq_start_ends_when_it_is_told_to),
        cmocka_unit_test(test_zmq_start_says_that_another_job_answers),
        cmocka_unit_test(test_zmq_needs_keys_off_loopback),
        cmocka_unit_test(test_zmq_encrypts_with_a_thread_a_link),
        cmocka_unit_test(test_zmq_counts_and_refuses_strangers_while_the_job_goes_on),
        cmocka_unit_test(test_zmq_ends_a_connection_that_says_nothing),
        cmocka_unit_test(test_zmq_lets_in_no_crowd),
        cmocka_unit_test(test_zmq_names_a_limit_of_open_files_that_is_too_low),
        cmocka_unit_test(test_zmq_takes_no_endless_message_of_a_stranger),
        cmocka_unit_test(test_zmq_start_fails_with_a_wrong_key),
        cmocka_unit_test(test_zmq_start_refuses_another_version_and_count),
        cmocka_unit_test(test_zmq_drops_and_counts_damaged_foreign_and_repeated_frames),
        cmocka_unit_test(test_zmq_ends_the_job_when_a_peer_breaks_the_protocol),
        cmocka_unit_test(test_zmq_names_a_peer_that_falls_silent),
        cmocka_unit_test(test_zmq_ends_the_job_when_a_rank_was_restarted),
        cmocka_unit_test(test_zmq_goes_on_when_a_rank_was_restarted_that_need_not_stay),
        cmocka_unit_test(test_zmq_start_waits_for_a_peer_in_an_earlier_run),
        cmocka_unit_test(test_zmq_start_greets_anew_who_does_not_answer),
        cmocka_unit_test(test_zmq_keeps_one_connection_to_a_slow_peer),
        cmocka_unit_test(test_zmq_start_ends_when_a_peer_takes_no_connection),
        cmocka_unit_test(test_zmq_is_told_of_a_rank_that_has_ended),
        cmocka_unit_test(test_zmq_start_gets_over_an_earlier_job_at_an_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
