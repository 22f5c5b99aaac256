/* What the transport does with what MPI and another rank may do to it: an MPI that the test plays,
 * in which rank 1 of two sends what the test says. The conformance tests run over a real one. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/mpi/mpi_internal.h"
#include "support/net_job.h"

enum { TYPE = DRPS_NET_TYPE_FIRST, PEER = 1, LONG = 100000, JOB = 5, BROKEN = 7 };

/* A frame that is on its way to rank 0. */
struct frame {
    struct frame *next;
    size_t bytes;
    unsigned char data[];
};

/* MPI, as far as rank 0 sees it. */
struct mpi {
    pthread_mutex_t lock;
    struct frame *first, **last;
    struct frame *found; /* not received yet */
    uint64_t sequence;   /* of rank 1's next frame */
    int fails_send, fails_probe;
    int stuck; /* 1: nothing that is sent is ever done */
    unsigned sent, in_flight, most_in_flight;
};
static atomic_int gave_up;

static int fake_send(void *ctx, uint32_t to, int tag, const struct drps_piece *pieces, size_t n,
                     struct net_mpi_handle *request_out)
{
    struct mpi *mpi = ctx;
    NET_CHECK(to == PEER && tag == 3 && n >= 1 && n <= 2 && pieces[0].bytes >= WIRE_HEAD_BYTES);
    pthread_mutex_lock(&mpi->lock);
    const int rc = mpi->fails_send ? -BROKEN : 0;
    request_out->bytes[0] = 's';
    mpi->sent += rc == 0;
    mpi->in_flight += rc == 0;
    if (mpi->in_flight > mpi->most_in_flight) mpi->most_in_flight = mpi->in_flight;
    pthread_mutex_unlock(&mpi->lock);
    return rc;
}

static int fake_probe(void *ctx, int tag, uint32_t *from_out, size_t *bytes_out,
                      struct net_mpi_handle *message_out)
{
    struct mpi *mpi = ctx;
    (void)message_out; /* there is one at a time */
    NET_CHECK(tag == 3);
    pthread_mutex_lock(&mpi->lock);
    struct frame *f = mpi->fails_probe ? NULL : mpi->first;
    const int rc = mpi->fails_probe ? -BROKEN : f != NULL;
    if (f) {
        mpi->first = f->next;
        if (!f->next) mpi->last = &mpi->first;
        NET_CHECK(!mpi->found);
        mpi->found = f;
        *from_out = PEER;
        *bytes_out = f->bytes;
    }
    pthread_mutex_unlock(&mpi->lock);
    return rc;
}

static int fake_receive(void *ctx, struct net_mpi_handle *message, void *to, size_t bytes,
                        struct net_mpi_handle *request_out)
{
    struct mpi *mpi = ctx;
    (void)message;
    NET_CHECK(mpi->found && mpi->found->bytes == bytes);
    memcpy(to, mpi->found->data, bytes);
    free(mpi->found);
    mpi->found = NULL;
    request_out->bytes[0] = 'r';
    return 0;
}

static int fake_is_done(void *ctx, struct net_mpi_handle *request)
{
    struct mpi *mpi = ctx;
    const int sends = request->bytes[0] == 's';
    pthread_mutex_lock(&mpi->lock);
    const int done = !sends || !mpi->stuck;
    if (sends && done) mpi->in_flight--;
    pthread_mutex_unlock(&mpi->lock);
    return done;
}

static void fake_text(int failure, char out[NET_MPI_TEXT_BYTES])
{
    (void)snprintf(out, NET_MPI_TEXT_BYTES, "failure %d", -failure);
}

static void fake_give_up(void)
{
    atomic_store(&gave_up, 1);
}

static const struct net_mpi_calls calls = {.version = NET_MPI_CALLS_VERSION,
                                           .send = fake_send,
                                           .probe = fake_probe,
                                           .receive = fake_receive,
                                           .is_done = fake_is_done,
                                           .text = fake_text,
                                           .give_up = fake_give_up};

static void mpi_init(struct mpi *mpi)
{
    *mpi = (struct mpi){.last = &mpi->first};
    pthread_mutex_init(&mpi->lock, NULL);
    atomic_store(&gave_up, 0);
}

static void mpi_destroy(struct mpi *mpi)
{
    for (struct frame *f = mpi->first, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(mpi->found);
    pthread_mutex_destroy(&mpi->lock);
}

/* Rank 1 sends these bytes. */
static void say(struct mpi *mpi, const void *data, size_t bytes)
{
    struct frame *f = calloc(1, sizeof(*f) + bytes);
    NET_CHECK(f);
    f->bytes = bytes;
    if (data) memcpy(f->data, data, bytes);
    pthread_mutex_lock(&mpi->lock);
    *mpi->last = f;
    mpi->last = &f->next;
    pthread_mutex_unlock(&mpi->lock);
}

/* A frame of rank 1 as it should be; the payload follows its header. Returns its bytes. */
static size_t make(struct mpi *mpi, uint8_t type, const void *payload, size_t bytes,
                   unsigned char *out)
{
    const struct wire_head head = {.type = type,
                                   .from = PEER,
                                   .job_id = JOB,
                                   .sequence = mpi->sequence++,
                                   .message_bytes = bytes,
                                   .incarnation = type != WIRE_HELLO};
    drps_wire_encode(&head, payload, bytes, out);
    if (bytes) memcpy(out + WIRE_HEAD_BYTES, payload, bytes);
    return WIRE_HEAD_BYTES + bytes;
}

static void say_frame(struct mpi *mpi, uint8_t type, const void *payload, size_t bytes)
{
    unsigned char frame[WIRE_HEAD_BYTES + 256];
    NET_CHECK(bytes <= 256);
    say(mpi, frame, make(mpi, type, payload, bytes, frame));
}

static void say_hello(struct mpi *mpi, uint32_t count)
{
    const struct wire_hello hello = {
        .count = count, .queue_messages = 8, .incarnation = 1, .message_bytes = {LONG, LONG, LONG}};
    uint8_t bytes[WIRE_HELLO_BYTES];
    drps_wire_hello_encode(&hello, bytes);
    say_frame(mpi, WIRE_HELLO, bytes, sizeof(bytes));
}

static int open_net(struct mpi *mpi, uint32_t silence_ms, struct drps_net **net,
                    struct drps_err *err)
{
    const struct drps_net_options o = {
        .count = 2, .job_id = JOB, .silence_ms = silence_ms, .start_ms = NET_WAIT_MS};
    return drps_mpi_open(&o, &calls, mpi, 3, net, err);
}

/* A net to a rank that has greeted. */
static struct drps_net *greeted(struct mpi *mpi, uint32_t silence_ms)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net *net;
    mpi_init(mpi);
    say_hello(mpi, 2);
    NET_OK(open_net(mpi, silence_ms, &net, &err));
    return net;
}

/* Waiting for rank 1 ends with this. */
static void expect_end(struct drps_net *net, int code, const char *name, const char *text)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    const int rc = drps_net_receive(net, DRPS_NET_WORKER, PEER, NET_WAIT_MS, &m, &err);
    if (rc != code || !strstr(err.text, text) || !strstr(err.text, "rank 1"))
        fail_msg("%s: %d '%s'; expected %d, '... rank 1 ... %s'", name, rc, err.text, code, text);
}

/* ---- Frames ---- */

static void test_mpi_takes_a_message(void **state)
{
    struct mpi mpi;
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    struct drps_net *net = greeted(&mpi, 0);
    (void)state;
    say_frame(&mpi, TYPE, "sixteen bytes...", 16);
    say_frame(&mpi, TYPE, NULL, 0);
    NET_OK(drps_net_receive(net, DRPS_NET_WORKER, PEER, NET_WAIT_MS, &m, &err));
    assert_int_equal(m->bytes, 16);
    assert_memory_equal(m->data, "sixteen bytes...", 16);
    assert_int_equal((uintptr_t)m->data % 8, 0);
    drps_net_message_free(m);
    NET_OK(drps_net_receive(net, DRPS_NET_WORKER, PEER, NET_WAIT_MS, &m, &err));
    assert_int_equal(m->bytes, 0);
    drps_net_message_free(m);
    say_frame(&mpi, WIRE_BYE, NULL, 0);
    drps_net_close(net, NET_WAIT_MS, NULL);
    assert_int_equal(atomic_load(&gave_up), 0);
    mpi_destroy(&mpi);
}

static void short_of_a_header(unsigned char *frame, size_t *bytes)
{
    (void)frame;
    *bytes = WIRE_HEAD_BYTES - 1;
}

static void longer_than_any(unsigned char *frame, size_t *bytes)
{
    (void)frame;
    *bytes = WIRE_HEAD_BYTES + WIRE_PIECE_BYTES + 1;
}

static void damaged(unsigned char *frame, size_t *bytes)
{
    frame[*bytes - 1] ^= 1;
}

static void encode_again(unsigned char *frame, const size_t *bytes, struct wire_head *h)
{
    drps_wire_encode(h, frame + WIRE_HEAD_BYTES, *bytes - WIRE_HEAD_BYTES, frame);
}

static struct wire_head decode(const unsigned char *frame, const size_t *bytes)
{
    struct wire_head h;
    NET_CHECK(drps_wire_decode(frame, WIRE_HEAD_BYTES, frame + WIRE_HEAD_BYTES,
                               *bytes - WIRE_HEAD_BYTES, &h, NULL) == 0);
    return h;
}

static void of_another_rank(unsigned char *frame, size_t *bytes)
{
    struct wire_head h = decode(frame, bytes);
    h.from = 0;
    encode_again(frame, bytes, &h);
}

static void to_another_rank(unsigned char *frame, size_t *bytes)
{
    struct wire_head h = decode(frame, bytes);
    h.to = PEER;
    encode_again(frame, bytes, &h);
}

static void of_another_job(unsigned char *frame, size_t *bytes)
{
    struct wire_head h = decode(frame, bytes);
    h.job_id++;
    encode_again(frame, bytes, &h);
}

static void of_another_process(unsigned char *frame, size_t *bytes)
{
    struct wire_head h = decode(frame, bytes);
    h.incarnation++;
    encode_again(frame, bytes, &h);
}

static void after_a_gap(unsigned char *frame, size_t *bytes)
{
    struct wire_head h = decode(frame, bytes);
    h.sequence++;
    encode_again(frame, bytes, &h);
}

static void test_mpi_refuses_frames_that_break_the_rules(void **state)
{
    static const struct {
        const char *name;
        void (*spoil)(unsigned char *frame, size_t *bytes);
        int code;
        const char *text;
    } cases[] = {
        {"short", short_of_a_header, DRPS_E_PROTO, "too few for a frame"},
        {"long", longer_than_any, DRPS_E_PROTO, "too many for a frame"},
        {"damaged", damaged, DRPS_E_FORMAT, "wrong checksum"},
        {"sender", of_another_rank, DRPS_E_PROTO, "of another job or rank"},
        {"receiver", to_another_rank, DRPS_E_PROTO, "of another job or rank"},
        {"job", of_another_job, DRPS_E_PROTO, "of another job or rank"},
        {"process", of_another_process, DRPS_E_PROTO, "of another job or rank"},
        {"gap", after_a_gap, DRPS_E_PROTO, "frames are lost"},
    };
    static unsigned char frame[WIRE_HEAD_BYTES + WIRE_PIECE_BYTES + 1];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct mpi mpi;
        struct drps_net *net = greeted(&mpi, 0);
        size_t bytes = make(&mpi, TYPE, "payload", 7, frame);
        cases[i].spoil(frame, &bytes);
        say(&mpi, frame, bytes);
        expect_end(net, cases[i].code, cases[i].name, cases[i].text);
        drps_net_close(net, 0, NULL);
        mpi_destroy(&mpi);
    }
}

static void test_mpi_start_wants_a_greeting_that_fits(void **state)
{
    static const char *const texts[] = {"of another job or rank", "expects 3 ranks"};
    (void)state;
    for (int greets = 0; greets < 2; greets++) {
        struct mpi mpi;
        struct drps_err err = DRPS_ERR_INIT;
        struct drps_net *net;
        mpi_init(&mpi);
        if (greets)
            say_hello(&mpi, 3);
        else
            say_frame(&mpi, WIRE_PING, NULL, 0);
        assert_true(open_net(&mpi, 0, &net, &err) < 0);
        assert_null(net);
        assert_non_null(strstr(err.text, texts[greets]));
        mpi_destroy(&mpi);
    }
}

/* ---- Failures ---- */

static void test_mpi_failures_end_the_job(void **state)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct drps_net_message *m;
    struct mpi mpi;
    (void)state;
    for (int sends = 0; sends < 2; sends++) {
        struct drps_net *net = greeted(&mpi, 800); /* a PING is soon due */
        pthread_mutex_lock(&mpi.lock);
        mpi.fails_send = sends;
        mpi.fails_probe = !sends;
        pthread_mutex_unlock(&mpi.lock);
        drps_err_clear(&err);
        const int rc = drps_net_receive(net, DRPS_NET_WORKER, PEER, NET_WAIT_MS, &m, &err);
        assert_int_equal(rc, DRPS_E_PEER);
        assert_non_null(strstr(err.text, sends ? "rank 1: MPI cannot reach it: failure 7"
                                               : "MPI cannot receive: failure 7"));
        drps_net_close(net, 0, NULL);
        assert_int_equal(atomic_load(&gave_up), 1);
        mpi_destroy(&mpi);
    }
}

static void test_mpi_names_a_silent_rank(void **state)
{
    struct mpi mpi;
    struct drps_net *net = greeted(&mpi, 100);
    (void)state;
    expect_end(net, DRPS_E_PEER, "silence", "nothing was heard of it for 100 ms");
    drps_net_close(net, 0, NULL);
    assert_int_equal(atomic_load(&gave_up), 1);
    mpi_destroy(&mpi);
}

/* A rank that does not say goodbye would let the end of MPI wait for ever. */
static void test_mpi_gives_up_on_a_rank_that_does_not_part(void **state)
{
    struct mpi mpi;
    struct drps_net *net = greeted(&mpi, 0);
    (void)state;
    drps_net_close(net, 1, NULL);
    assert_int_equal(atomic_load(&gave_up), 1);
    mpi_destroy(&mpi);
}

/* Nor may the process end while MPI reads what it was given. */
static void test_mpi_gives_up_on_what_never_goes(void **state)
{
    struct mpi mpi;
    struct drps_net *net = greeted(&mpi, 0);
    (void)state;
    pthread_mutex_lock(&mpi.lock);
    mpi.stuck = 1;
    pthread_mutex_unlock(&mpi.lock);
    say_frame(&mpi, WIRE_BYE, NULL, 0); /* it is answered by one, which does not go */
    drps_net_close(net, 300, NULL);
    assert_int_equal(atomic_load(&gave_up), 1);
    mpi_destroy(&mpi);
}

/* ---- What is under way ---- */

static void count_done(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

static unsigned sent(struct mpi *mpi)
{
    pthread_mutex_lock(&mpi->lock);
    const unsigned n = mpi->sent;
    pthread_mutex_unlock(&mpi->lock);
    return n;
}

/* MPI has a few frames of a peer at a time, and a payload is its owner's again when MPI is done. */
static void test_mpi_bounds_what_is_under_way(void **state)
{
    static char data[LONG];
    struct mpi mpi;
    struct drps_err err = DRPS_ERR_INIT;
    atomic_int done = 0;
    struct drps_net *net = greeted(&mpi, 0);
    const struct drps_piece piece = {data, 50000};
    const struct drps_net_send send = {.to = PEER,
                                       .part = DRPS_NET_WORKER,
                                       .type = TYPE,
                                       .pieces = &piece,
                                       .n = 1,
                                       .done = count_done,
                                       .ctx = &done};
    (void)state;
    pthread_mutex_lock(&mpi.lock);
    mpi.stuck = 1;
    const unsigned before = mpi.sent;
    pthread_mutex_unlock(&mpi.lock);
    for (int i = 0; i < 8; i++)
        NET_OK(drps_net_send(net, &send, NET_WAIT_MS, &err));
    while (sent(&mpi) < before + NET_MPI_FRAMES - 1) /* one may be a PING, or net's own of before */
        ;
    assert_int_equal(atomic_load(&done), 0);
    pthread_mutex_lock(&mpi.lock);
    mpi.stuck = 0;
    pthread_mutex_unlock(&mpi.lock);
    while (sent(&mpi) < before + 8)
        ;
    say_frame(&mpi, WIRE_BYE, NULL, 0);
    drps_net_close(net, NET_WAIT_MS, NULL);
    assert_int_equal(atomic_load(&done), 8);
    assert_in_range(mpi.most_in_flight, NET_MPI_FRAMES - 1, NET_MPI_FRAMES);
    mpi_destroy(&mpi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpi_takes_a_message),
        cmocka_unit_test(test_mpi_refuses_frames_that_break_the_rules),
        cmocka_unit_test(test_mpi_start_wants_a_greeting_that_fits),
        cmocka_unit_test(test_mpi_failures_end_the_job),
        cmocka_unit_test(test_mpi_names_a_silent_rank),
        cmocka_unit_test(test_mpi_gives_up_on_a_rank_that_does_not_part),
        cmocka_unit_test(test_mpi_gives_up_on_what_never_goes),
        cmocka_unit_test(test_mpi_bounds_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
