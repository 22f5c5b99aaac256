/*
 * A man in the middle between the ranks of a job: messages are changed on their way, with checksums
 * that hold, while ranks train (every --sync) or count for drps-index. Whatever comes, every rank
 * ends within bounded time, with success or with an error that says something.
 *
 * He sits at two places. Where a net hands a message to its transport, he changes what it says and
 * how long it is, doubles it, keeps it for later, or takes it away. Where the ZeroMQ transport
 * encodes a frame's header he changes that: so greetings, credits and numbers of frames go wrong,
 * too (the linker puts him in the place of two functions of wire.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/drps_rng.h"
#include "engine/cluster/drps_messages.h"
#include "index/ranks/drps_index_ranks.h"
#include "net/drps_transport.h"
#include "support/net_job.h"
#include "support/world.h"

enum { RANKS = 3, WAIT_MS = 200, START_MS = 700, SILENCE_MS = 300, CLOSE_MS = 200, COUNT_MS = 200 };
enum { HANG_S = 600 }; /* a job that takes longer hangs */

/* ---- What he does ---- */

static struct {
    pthread_mutex_t lock; /* guards what is below; the last lock to be taken */
    struct random_source random;
    unsigned messages_in, frames_in; /* he changes one in so many; 0: none */
    int may_lose; /* also of the group's messages, which ranks await for hours at the end */
    uint64_t messages, frames; /* changed */
} middle = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t below(uint64_t n)
{
    pthread_mutex_lock(&middle.lock);
    const uint64_t v = random_below(&middle.random, n);
    pthread_mutex_unlock(&middle.lock);
    return v;
}

/* Returns 1 one in so many times, and counts these. */
static int strikes(const unsigned *one_in, uint64_t *count)
{
    pthread_mutex_lock(&middle.lock);
    const int now = *one_in && random_below(&middle.random, *one_in) == 0;
    *count += (uint64_t)now;
    pthread_mutex_unlock(&middle.lock);
    return now;
}

/* A number at which something ends, or that is near the one before. */
static uint64_t other_number(uint64_t old)
{
    static const uint64_t ends[] = {
        0,     1,         2,        3,          7,          255,       256,        65535,
        65536, INT32_MAX, 1u << 31, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX};
    const uint64_t kind = below(4);
    if (kind == 0) return old + below(5) - 2;
    if (kind == 1) return old ^ UINT64_C(1) << below(64);
    return ends[below(sizeof(ends) / sizeof(*ends))];
}

/* ---- Messages ---- */

struct hook {
    struct drps_net *net;
    const struct net_ops *real;
    struct net_ops ops;
    struct net_out *kept[RANKS]; /* own: by receiver, for later */
};
static struct hook hooks[RANKS];

static struct hook *hook_of(const struct drps_net *net)
{
    for (size_t i = 0; i < RANKS; i++)
        if (hooks[i].net == net) return &hooks[i];
    abort();
}

/* Lock held: so many messages more, or fewer, are under way. */
static void count_sent(struct drps_net *net, const struct net_out *out, int64_t more)
{
    net->peers[out->head.to].sent[out->head.part] += (uint64_t)more;
}

static void gather_payload(const struct net_out *out, unsigned char *to)
{
    for (size_t i = 0; i < out->n; i++) {
        if (out->pieces[i].bytes) memcpy(to, out->pieces[i].data, out->pieces[i].bytes);
        to += out->pieces[i].bytes;
    }
}

/* A message like `out` of `bytes` from `data`. */
static struct net_out *like(const struct net_out *out, const void *data, size_t bytes)
{
    const struct drps_piece piece = {data, bytes};
    const struct drps_net_send send = {.pieces = &piece, .n = 1};
    struct net_out *new = drps_net_out_new(&send, bytes, NET_COPIES);
    NET_CHECK(new);
    new->head = out->head;
    new->head.message_bytes = bytes;
    return new;
}

/* What a receiver sees is what the header says. */
static void label(struct net_out *out)
{
    out->message->part = out->head.part;
    out->message->pub.from = out->head.from;
    out->message->pub.type = out->head.type;
    out->message->pub.tag = out->head.tag;
    out->message->pub.round = out->head.round;
}

static size_t other_length(size_t old, size_t most)
{
    static const size_t ends[] = {0, 1, 3, 4, 8, 16, 24, 64, 4096};
    const uint64_t kind = below(4);
    size_t n = ends[below(sizeof(ends) / sizeof(*ends))];
    if (kind == 0) n = old ? (size_t)below(old) : 0;
    if (kind == 1) n = old + (size_t)below(64);
    if (kind == 2) n = old >= 4 ? old - 4 : 0;
    return n < most ? n : most;
}

/* Change a number of the payload, or a byte, or all of it. */
static void change_payload(unsigned char *data, size_t n)
{
    static const float odd[] = {HUGE_VALF, 1e38f, -1e38f, 1e-40f};
    const size_t at = n ? (size_t)below(n) : 0;
    const size_t word = at / 8 * 8;
    uint64_t value = 0;
    memcpy(&value, data + word, n - word < 8 ? n - word : 8);
    switch (below(6)) {
    case 0:
        value = other_number(value);
        memcpy(data + word, &value, n - word < 8 ? n - word : 8);
        break;
    case 1:
        value = other_number((uint32_t)value);
        memcpy(data + word, &value, n - word < 4 ? n - word : 4);
        break;
    case 2:
        if (n >= word + 4) memcpy(data + word, &odd[below(4)], 4);
        break;
    case 3:
        if (n) data[at] ^= (unsigned char)(1u << below(8));
        break;
    case 4:
        if (n) data[at] = (unsigned char)below(256);
        break;
    default:
        for (size_t i = at; i < n; i++)
            data[i] = (unsigned char)below(256);
    }
}

static size_t most_bytes(const struct drps_net *net, const struct net_out *out)
{
    return out->head.part == WIRE_GROUP
               ? DRPS_NET_GROUP_BYTES
               : (size_t)net->peers[out->head.to].message_bytes[out->head.part];
}

/* Lock held: what goes in the place of `out`, which is gone. */
static struct net_out *changed(struct drps_net *net, struct net_out *out)
{
    const size_t bytes = (size_t)out->head.message_bytes;
    unsigned char *data = calloc(1, bytes + 8192);
    NET_CHECK(data);
    gather_payload(out, data);
    const uint64_t kind = below(8);
    size_t n = bytes;
    if (kind == 0) n = other_length(bytes, most_bytes(net, out));
    if (n > bytes + 8192) n = bytes;
    if (kind < 4) change_payload(data, n);
    struct net_out *new = like(out, data, n);
    free(data);
    if (kind == 4) new->head.tag = (uint32_t)other_number(new->head.tag);
    if (kind == 5) new->head.round = other_number(new->head.round);
    if (kind == 6 && new->head.part != WIRE_GROUP)
        new->head.type = (uint8_t)(DRPS_NET_TYPE_FIRST + below(14));
    if (kind == 7 && new->head.part != WIRE_GROUP) {
        new->head.part = (uint8_t)below(DRPS_NET_PARTS);
        if (new->head.message_bytes > most_bytes(net, new)) new->head.part = out->head.part;
    }
    label(new);
    count_sent(net, out, -1);
    count_sent(net, new, 1);
    drps_net_out_unhold(out);
    return new;
}

static struct net_out *copy(const struct net_out *out)
{
    unsigned char *data = calloc(1, (size_t)out->head.message_bytes + 1);
    NET_CHECK(data);
    gather_payload(out, data);
    struct net_out *new = like(out, data, (size_t)out->head.message_bytes);
    label(new);
    free(data);
    return new;
}

/* Lock held, as in every carry(). Messages between the parts of a rank stay in its memory. */
static void carry(struct drps_net *net, struct net_out *out)
{
    struct hook *h = hook_of(net);
    const uint32_t to = out->head.to;
    struct net_out *late = h->kept[to];
    h->kept[to] = NULL;
    if (to == net->o.rank || !strikes(&middle.messages_in, &middle.messages)) {
        h->real->carry(net, out);
    } else {
        const uint64_t kind = below(10);
        const int group = out->head.part == WIRE_GROUP;
        if (kind == 0) { /* twice */
            struct net_out *again = copy(out);
            count_sent(net, out, 1);
            h->real->carry(net, out);
            h->real->carry(net, again);
        } else if (kind == 1 && !group) { /* after the next one */
            h->kept[to] = out;
            count_sent(net, out, -1);
        } else if (kind == 2 && middle.may_lose && !group) { /* not at all */
            count_sent(net, out, -1);
            drps_net_out_unhold(out);
        } else {
            h->real->carry(net, changed(net, out));
        }
    }
    if (late) {
        count_sent(net, late, 1);
        h->real->carry(net, late);
    }
}

static void hook_all(const struct net_job *job)
{
    for (uint32_t r = 0; r < job->count; r++) {
        struct drps_net *net = job->nets[r];
        hooks[r] = (struct hook){.net = net};
        if (!net) continue;
        pthread_mutex_lock(net->lock);
        hooks[r].real = net->ops;
        hooks[r].ops = *net->ops;
        hooks[r].ops.carry = carry;
        net->ops = &hooks[r].ops;
        pthread_mutex_unlock(net->lock);
    }
}

static void drop_kept(void)
{
    for (uint32_t r = 0; r < RANKS; r++)
        for (uint32_t to = 0; to < RANKS; to++) {
            if (hooks[r].kept[to]) drps_net_out_unhold(hooks[r].kept[to]);
            hooks[r].kept[to] = NULL;
        }
}

/* ---- Frames ---- */

void __real_drps_wire_encode(const struct wire_head *head, const void *payload, size_t bytes,
                             uint8_t out[WIRE_HEAD_BYTES]);
void __wrap_drps_wire_encode(const struct wire_head *head, const void *payload, size_t bytes,
                             uint8_t out[WIRE_HEAD_BYTES]);
void __real_drps_wire_hello_encode(const struct wire_hello *hello, uint8_t out[WIRE_HELLO_BYTES]);
void __wrap_drps_wire_hello_encode(const struct wire_hello *hello, uint8_t out[WIRE_HELLO_BYTES]);

void __wrap_drps_wire_encode(const struct wire_head *head, const void *payload, size_t bytes,
                             uint8_t out[WIRE_HEAD_BYTES])
{
    struct wire_head h = *head;
    const int now = strikes(&middle.frames_in, &middle.frames);
    const uint64_t kind = now ? below(11) : 11;
    if (kind == 0) h.type = (uint8_t)below(32);
    if (kind == 1) h.part = (uint8_t)below(6);
    if (kind == 2) h.from = (uint16_t)below(RANKS + 1);
    if (kind == 3) h.to = (uint16_t)below(RANKS + 1);
    if (kind == 4) h.job_id = other_number(h.job_id);
    if (kind == 5) h.sequence = other_number(h.sequence);
    if (kind == 6) h.round = other_number(h.round);
    if (kind == 7) h.message_bytes = other_number(h.message_bytes);
    if (kind == 8) h.offset = other_number(h.offset);
    if (kind == 9) h.tag = (uint32_t)other_number(h.tag);
    __real_drps_wire_encode(&h, payload, bytes, out);
    if (kind == 10) out[WIRE_HEAD_BYTES - 1] ^= 1; /* as good as lost */
}

void __wrap_drps_wire_hello_encode(const struct wire_hello *hello, uint8_t out[WIRE_HELLO_BYTES])
{
    struct wire_hello h = *hello;
    const int now = strikes(&middle.frames_in, &middle.frames);
    const uint64_t kind = now ? below(4) : 4;
    if (kind == 0) h.count = (uint32_t)other_number(h.count);
    if (kind == 1) h.queue_messages = (uint32_t)other_number(h.queue_messages);
    if (kind == 2) {
        uint64_t *limit = &h.message_bytes[below(DRPS_NET_PARTS)];
        *limit = other_number(*limit);
    }
    if (kind == 3) h.plan_hash[below(sizeof(h.plan_hash))] ^= 1;
    __real_drps_wire_hello_encode(&h, out);
}

/* ---- Jobs ---- */

struct member {
    struct drps_plan *whole, *part;
    struct drps_train_options train;
    struct drps_train_ranks ranks;
    int rc;
    struct drps_err err;
};

static void check_end(uint32_t rank, int rc, const struct drps_err *err)
{
    if (rc > 0 || (rc == 0) != !err->text[0])
        fail_msg("rank %u ended with %d, and says \"%s\"", rank, rc, err->text);
}

static void train_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct member *m = (struct member *)ctx + rank;
    struct drps_train_result result = {0};
    if (!net) return; /* its start failed */
    m->ranks.net = net;
    m->train.ranks = &m->ranks;
    m->rc = drps_train_run(m->part, &m->train, &result, &m->err);
    drps_net_close(net, CLOSE_MS, m->rc < 0 ? &m->err : NULL);
    drps_train_result_free(&result);
}

struct opening {
    struct drps_net_options options;
    const struct drps_peers *peers;
    struct drps_net **net;
    int rc;
    struct drps_err err;
};

static void *open_one(void *arg)
{
    struct opening *o = arg;
    o->rc = drps_net_open_zmq(&o->options, o->peers, NULL, 0, o->net, &o->err);
    return NULL;
}

/* net_job_open() over ZeroMQ fails the test when a rank does not start; here it may. */
static void open_zmq(struct net_job *job, const struct drps_net_options *options)
{
    struct opening openings[RANKS];
    pthread_t threads[RANKS];
    struct drps_peers peers;
    net_peers(&peers, job->count, NULL);
    for (uint32_t r = 0; r < job->count; r++) {
        openings[r] = (struct opening){*options, &peers, &job->nets[r], 0, DRPS_ERR_INIT};
        openings[r].options.rank = r;
        openings[r].options.count = job->count;
        assert_int_equal(pthread_create(&threads[r], NULL, open_one, &openings[r]), 0);
    }
    for (uint32_t r = 0; r < job->count; r++) {
        (void)pthread_join(threads[r], NULL);
        check_end(r, openings[r].rc, &openings[r].err);
    }
    drps_peers_destroy(&peers);
}

static void open_job(struct net_job *job, enum net_kind kind, uint32_t count,
                     const struct drps_net_options *options)
{
    *job = (struct net_job){.count = count};
    if (kind == NET_INPROC)
        net_job_open(job, kind, count, options);
    else
        open_zmq(job, options);
    hook_all(job);
}

/* Returns how many ranks ended well. */
static uint32_t train_job(const struct world *w, enum net_kind kind,
                          const struct drps_train_options *o, uint32_t wait_ms)
{
    struct member *m = calloc(w->workers, sizeof(*m));
    struct drps_net_options options;
    struct net_job job;
    uint32_t good = 0;
    NET_CHECK(m);
    for (uint32_t r = 0; r < w->workers; r++) {
        assert_int_equal(drps_plan_open_rank(drps_io_os(), w->plan, r, &m[r].part, NULL), 0);
        m[r].train = *o;
        m[r].ranks.wait_ms = wait_ms;
    }
    assert_int_equal(drps_plan_open(drps_io_os(), w->plan, &m[0].whole, NULL), 0);
    m[0].ranks.whole = m[0].whole;
    drps_train_net_options(m[0].part, &options);
    for (uint32_t r = 1; r < w->workers; r++) {
        struct drps_net_options one;
        drps_train_net_options(m[r].part, &one);
        for (int i = 0; i < DRPS_NET_PARTS; i++)
            if (one.message_bytes[i] > options.message_bytes[i])
                options.message_bytes[i] = one.message_bytes[i];
    }
    options.job_id = 77;
    options.start_ms = wait_ms > WAIT_MS ? wait_ms : START_MS;
    options.silence_ms = wait_ms > WAIT_MS ? wait_ms : SILENCE_MS;
    (void)alarm(HANG_S);
    open_job(&job, kind, w->workers, &options);
    net_job_run(&job, train_rank, m);
    (void)alarm(0);
    drop_kept();
    for (uint32_t r = 0; r < w->workers; r++) {
        if (job.nets[r]) check_end(r, m[r].rc, &m[r].err);
        good += job.nets[r] && m[r].rc == 0;
        drps_plan_close(m[r].part);
    }
    drps_plan_close(m[0].whole);
    free(m);
    return good;
}

static void rest(void)
{
    middle.messages_in = middle.frames_in = 0;
    middle.may_lose = 0;
}

static const struct {
    enum drps_sched_mode sync;
    const char *store;
} modes[] = {
    {DRPS_SCHED_BSP, "resident"}, {DRPS_SCHED_BSP, "relay"}, {DRPS_SCHED_ASP, "relay"},
    {DRPS_SCHED_SSP, "resident"}, {DRPS_SCHED_WSP, "file"},  {DRPS_SCHED_WSP_LITERAL, "resident"},
};
enum { MODES = sizeof(modes) / sizeof(*modes) };

static struct drps_train_options options_of(const struct world *w, size_t mode)
{
    struct drps_train_options o = world_options(w);
    o.sync = modes[mode].sync;
    o.store = modes[mode].store;
    o.l2 = mode & 1 ? 0.01f : 0;
    o.model_store = NULL;
    return o;
}

static struct world *small_world(uint32_t workers)
{
    return world_begin_few(workers, 160, 60, 8, 20240611);
}

/* While he rests, all is well: what follows is his doing. */
static void check_rest(const struct world *w, enum net_kind kind, size_t mode)
{
    const struct drps_train_options o = options_of(w, mode);
    rest();
    assert_int_equal(train_job(w, kind, &o, NET_WAIT_MS), w->workers);
}

static void check_modes(uint32_t workers, enum net_kind kind, unsigned rounds, int frames)
{
    static const unsigned rates[] = {3, 10, 40, 150};
    struct world *w = small_world(workers);
    uint64_t good = 0, jobs = 0;
    middle.random = random_begin(kind == NET_INPROC ? "inproc" : frames ? "frames" : "zmq");
    middle.messages = middle.frames = 0;
    for (size_t mode = 0; mode < MODES; mode++) {
        const struct drps_train_options o = options_of(w, mode);
        check_rest(w, kind, mode);
        for (unsigned i = 0; i < rounds; i++, jobs++) {
            middle.messages_in = frames ? 0 : rates[i % 4];
            middle.frames_in = frames ? rates[i % 4] : 0;
            middle.may_lose = i % 8 == 7;
            good += train_job(w, kind, &o, WAIT_MS) == workers;
        }
    }
    print_message("%" PRIu64 " jobs, %" PRIu64 " ended well; %" PRIu64 " messages and %" PRIu64
                  " frames were changed\n",
                  jobs, good, middle.messages, middle.frames);
    assert_true((frames ? middle.frames : middle.messages) > jobs / 4);
    rest();
    world_end(w);
}

static void test_training_ends_whatever_messages_say(void **state)
{
    (void)state;
    check_modes(2, NET_INPROC, 32 / DRPS_TEST_ONE_IN + 1, 0);
    check_modes(3, NET_INPROC, 32 / DRPS_TEST_ONE_IN + 1, 0);
}

static void test_training_over_zmq_ends_whatever_messages_say(void **state)
{
    (void)state;
    if (!net_kind_there(NET_ZMQ)) skip();
    check_modes(3, NET_ZMQ, 4 / DRPS_TEST_ONE_IN + 1, 0);
}

static void test_training_over_zmq_ends_whatever_frames_say(void **state)
{
    (void)state;
    if (!net_kind_there(NET_ZMQ)) skip();
    check_modes(2, NET_ZMQ, 4 / DRPS_TEST_ONE_IN + 1, 1);
}

/* ---- Counting for drps-index ---- */

struct counting {
    struct case_run run[RANKS];
    atomic_int stop;
    int rc[RANKS];
    struct drps_err err[RANKS];

    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t ended;
    uint32_t running;
};

static void count_rank(struct drps_net *net, uint32_t rank, void *ctx)
{
    struct counting *c = ctx;
    struct case_run *run = &c->run[rank];
    c->rc[rank] = drps_index_ranks_run_on(net, &run->options, &run->result, &c->err[rank]);
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_cond_signal(&c->ended);
    pthread_mutex_unlock(&c->lock);
}

/* A count may take hours: who waits for a part of a message that never comes is interrupted by his
 * user, here after a while. */
static void *interrupt(void *arg)
{
    struct counting *c = arg;
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
    until.tv_nsec += COUNT_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&c->lock);
    for (int late = 0; c->running && !late;)
        late = pthread_cond_timedwait(&c->ended, &c->lock, &until) == ETIMEDOUT;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->stop, 1);
    return NULL;
}

static uint32_t count_job(struct scratch *s, const char *input, const char *builder, uint32_t ranks)
{
    struct counting *c = calloc(1, sizeof(*c));
    struct drps_net_options options;
    struct net_job job;
    pthread_t thread;
    uint32_t good = 0;
    NET_CHECK(c);
    for (uint32_t r = 0; r < ranks; r++) {
        case_begin(&c->run[r], s, input, "lor");
        c->run[r].options.blocks.by = builder;
        c->run[r].options.interrupt = &c->stop;
        c->run[r].options.force = 1;
        c->run[r].options.batch_size = 8;
    }
    drps_index_net_options(&options);
    c->running = ranks;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->ended, NULL);
    (void)alarm(HANG_S);
    open_job(&job, NET_INPROC, ranks, &options);
    assert_int_equal(pthread_create(&thread, NULL, interrupt, c), 0);
    net_job_run(&job, count_rank, c);
    (void)pthread_join(thread, NULL);
    (void)alarm(0);
    drop_kept();
    for (uint32_t r = 0; r < ranks; r++) {
        check_end(r, c->rc[r], &c->err[r]);
        good += c->rc[r] == 0;
    }
    pthread_cond_destroy(&c->ended);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return good;
}

static void test_counting_ends_whatever_messages_say(void **state)
{
    static const char *const builders[] = {"pairwise", "topk", "auto", "frequency"};
    static const unsigned rates[] = {5, 20, 100};
    struct scratch *s = *state;
    uint64_t good = 0, jobs = 0;
    char input[SCRATCH_PATH_BYTES];
    (void)snprintf(input, sizeof(input), "%s", case_input(s, "data", CASE_LIBSVM, 300, 60, 5));
    middle.random = random_begin("counting");
    middle.messages = 0;
    for (size_t b = 0; b < sizeof(builders) / sizeof(*builders); b++)
        for (unsigned i = 0; i < 40 / DRPS_TEST_ONE_IN + 1; i++, jobs++) {
            middle.messages_in = rates[i % 3];
            good += count_job(s, input, builders[b], 2 + i % 2) == 2 + i % 2;
        }
    print_message("%" PRIu64 " jobs, %" PRIu64 " ended well; %" PRIu64 " messages were changed\n",
                  jobs, good, middle.messages);
    assert_true(middle.messages > jobs / 4);
    rest();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training_ends_whatever_messages_say),
        cmocka_unit_test(test_training_over_zmq_ends_whatever_messages_say),
        cmocka_unit_test(test_training_over_zmq_ends_whatever_frames_say),
        cmocka_unit_test_setup_teardown(test_counting_ends_whatever_messages_say, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
