#include "support/net_mpi.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/mpi/mpi_internal.h"
#include "support/net_job.h"

enum { TEST, MIRROR, PROCESSES, TO_MIRROR = 0, JOBS = 1000 };

static const struct net_mpi_calls *mpi;

int net_mpi_there(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL;
}

/* ---- The mirror ---- */

/* Of frames to a rank from a rank of a job, which has its number as job id. */
static int tag_of(uint64_t job, uint32_t to, uint32_t from)
{
    _Static_assert(NET_RANKS <= 32, "a rank has 5 bits");
    NET_CHECK(job > 0 && job < JOBS && to < 32 && from < 32);
    return (int)((job * 32 + to) * 32 + from);
}

static void wait_for(struct net_mpi_handle *request)
{
    int done;
    while ((done = mpi->is_done(NULL, request)) == 0)
        (void)sched_yield();
    NET_CHECK(done == 1);
}

/* Send one frame back. 0: it was the last, which is empty. */
static int reflect(unsigned char *room)
{
    struct net_mpi_handle message, request;
    struct wire_head h;
    uint32_t from;
    size_t bytes;
    int there;
    while ((there = mpi->probe(NULL, TO_MIRROR, &from, &bytes, &message)) == 0)
        (void)sched_yield();
    NET_CHECK(there == 1 && from == TEST && bytes <= WIRE_HEAD_BYTES + WIRE_PIECE_BYTES);
    NET_CHECK(mpi->receive(NULL, &message, room, bytes, &request) == 0);
    wait_for(&request);
    if (!bytes) return 0;
    NET_CHECK(drps_wire_decode(room, WIRE_HEAD_BYTES, room + WIRE_HEAD_BYTES,
                               bytes - WIRE_HEAD_BYTES, &h, NULL) == 0);
    const struct drps_piece piece = {room, bytes};
    NET_CHECK(mpi->send(NULL, TEST, tag_of(h.job_id, h.to, h.from), &piece, 1, &request) == 0);
    wait_for(&request);
    return 1;
}

int net_mpi_start(void)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct net_mpi_place place;
    char text[NET_MPI_TEXT_BYTES] = "";
    if (!net_mpi_there()) return 0;
    cmocka_set_test_filter("*(mpi)");
    NET_OK(drps_mpi_load(&mpi, &err));
    const int rc = mpi->begin(1, &place, text);
    if (rc < 0 || place.count != PROCESSES) {
        (void)fprintf(stderr, "MPI: %s, %u processes\n", text, place.count);
        abort();
    }
    if (place.rank == TEST) return 0;
    unsigned char *room = malloc(WIRE_HEAD_BYTES + WIRE_PIECE_BYTES);
    NET_CHECK(room);
    while (reflect(room))
        continue;
    free(room);
    return 1;
}

void net_mpi_stop(void)
{
    const struct drps_piece nothing = {"", 0};
    struct net_mpi_handle request;
    if (!mpi) return;
    NET_CHECK(mpi->send(NULL, MIRROR, TO_MIRROR, &nothing, 1, &request) == 0);
    wait_for(&request);
}

/* ---- A rank's calls: `ctx` is its place ---- */

struct place {
    uint32_t rank, count;
};

static int send_to(void *ctx, uint32_t to, int tag, const struct drps_piece *pieces, size_t n,
                   struct net_mpi_handle *request_out)
{
    (void)ctx, (void)to, (void)tag; /* the header says where to */
    return mpi->send(NULL, MIRROR, TO_MIRROR, pieces, n, request_out);
}

static int probe(void *ctx, int job, uint32_t *from_out, size_t *bytes_out,
                 struct net_mpi_handle *message_out)
{
    const struct place *p = ctx;
    uint32_t process;
    int there = 0;
    for (uint32_t from = 0; from < p->count && there == 0; from++) {
        *from_out = from;
        if (from != p->rank)
            there = mpi->probe(NULL, tag_of((uint64_t)job, p->rank, from), &process, bytes_out,
                               message_out);
    }
    return there;
}

static int receive(void *ctx, struct net_mpi_handle *message, void *to, size_t bytes,
                   struct net_mpi_handle *request_out)
{
    (void)ctx;
    return mpi->receive(NULL, message, to, bytes, request_out);
}

static int is_done(void *ctx, struct net_mpi_handle *request)
{
    (void)ctx;
    return mpi->is_done(NULL, request);
}

static void text_of(int failure, char out[NET_MPI_TEXT_BYTES])
{
    mpi->text(failure, out);
}

static void give_up(void)
{
    /* Ranks that a test leaves alone do not end its process. */
}

int net_mpi_open(const struct drps_net_options *options, unsigned job, struct drps_net **net_out,
                 struct drps_err *err)
{
    static const struct net_mpi_calls calls = {.version = NET_MPI_CALLS_VERSION,
                                               .send = send_to,
                                               .probe = probe,
                                               .receive = receive,
                                               .is_done = is_done,
                                               .text = text_of,
                                               .give_up = give_up};
    static struct place places[NET_RANKS]; /* one job at a time */
    struct drps_net_options o = *options;
    NET_CHECK(o.rank < NET_RANKS);
    o.job_id = job;
    places[o.rank] = (struct place){o.rank, o.count};
    return drps_mpi_open(&o, &calls, &places[o.rank], (int)job, net_out, err);
}
