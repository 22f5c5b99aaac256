/* The module drps-mpi.so: the calls of MPI that net/mpi needs, and nothing else. It is linked with
 * an MPI, and loaded by mpi_load.c. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/mpi/mpi_calls.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(struct net_mpi_handle), "a request fits");
_Static_assert(sizeof(MPI_Message) <= sizeof(struct net_mpi_handle), "a message fits");

/* MPI is the process's: it starts once and ends once. */
static struct {
    int begun, lost;
    uint32_t nets;
    MPI_Comm ranks; /* all of the job's, apart from what else the process may do with MPI */
} job;

static int say(char text[NET_MPI_TEXT_BYTES], const char *what)
{
    (void)snprintf(text, NET_MPI_TEXT_BYTES, "%s", what);
    return -1;
}

static void text_of(int failure, char out[NET_MPI_TEXT_BYTES])
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int n = 0;
    if (MPI_Error_string(-failure, text, &n)) n = 0;
    (void)snprintf(out, NET_MPI_TEXT_BYTES, "%.*s", n, text);
}

/* Waits for all ranks, so that none ends the others' work by its own end. Not for one that is lost.
 */
static void end(int status, void *unused)
{
    int ended = 0;
    (void)unused;
    if (MPI_Finalized(&ended) || ended) return;
    if (job.lost)
        (void)MPI_Abort(MPI_COMM_WORLD, status ? status : 1);
    else
        (void)MPI_Finalize();
}

static int start(int threads, char text[NET_MPI_TEXT_BYTES])
{
    const int need = threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
    int is = 0, level = 0;
    int rc = MPI_Initialized(&is);
    if (rc == MPI_SUCCESS)
        rc = is ? MPI_Query_thread(&level) : MPI_Init_thread(NULL, NULL, need, &level);
    if (rc == MPI_SUCCESS) rc = MPI_Comm_dup(MPI_COMM_WORLD, &job.ranks);
    if (rc == MPI_SUCCESS) rc = MPI_Comm_set_errhandler(job.ranks, MPI_ERRORS_RETURN);
    if (rc != MPI_SUCCESS) {
        text_of(-rc, text);
        return -1;
    }
    if (!is && on_exit(end, NULL)) return say(text, "no memory");
    if (level < need) return say(text, "it does not let a thread of its own call it");
    job.begun = 1;
    return 0;
}

static int begin(int threads, struct net_mpi_place *place_out, char text[NET_MPI_TEXT_BYTES])
{
    int rank, count;
    if (job.lost) return say(text, "a rank was lost: start all ranks anew");
    if (!job.begun && start(threads, text) < 0) return -1;
    if (MPI_Comm_rank(job.ranks, &rank) || MPI_Comm_size(job.ranks, &count))
        return say(text, "it does not say which rank this is");
    *place_out = (struct net_mpi_place){(uint32_t)rank, (uint32_t)count, job.nets++};
    return 0;
}

static int send_pieces(uint32_t to, int tag, const struct drps_piece *pieces, size_t n,
                       MPI_Request *request)
{
    MPI_Aint at[2];
    int bytes[2];
    MPI_Datatype type;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (int)pieces[i].bytes; /* a frame's: they fit */
        const int rc = MPI_Get_address(pieces[i].data, &at[i]);
        if (rc) return rc;
    }
    int rc = MPI_Type_create_hindexed((int)n, bytes, at, MPI_BYTE, &type);
    if (rc) return rc;
    rc = MPI_Type_commit(&type);
    if (!rc) rc = MPI_Isend(MPI_BOTTOM, 1, type, (int)to, tag, job.ranks, request);
    const int freed = MPI_Type_free(&type); /* goes when the request is done */
    return rc ? rc : freed;
}

static int send(void *ctx, uint32_t to, int tag, const struct drps_piece *pieces, size_t n,
                struct net_mpi_handle *request_out)
{
    MPI_Request request;
    (void)ctx;
    const int rc = n == 1 ? MPI_Isend(pieces[0].data, (int)pieces[0].bytes, MPI_BYTE, (int)to, tag,
                                      job.ranks, &request)
                          : send_pieces(to, tag, pieces, n, &request);
    memcpy(request_out, &request, sizeof(request));
    return -rc;
}

static int probe(void *ctx, int tag, uint32_t *from_out, size_t *bytes_out,
                 struct net_mpi_handle *message_out)
{
    MPI_Message message;
    MPI_Status status;
    int there = 0, bytes = 0;
    (void)ctx;
    int rc = MPI_Improbe(MPI_ANY_SOURCE, tag, job.ranks, &there, &message, &status);
    if (rc || !there) return -rc;
    rc = MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (rc) return -rc;
    *from_out = (uint32_t)status.MPI_SOURCE;
    *bytes_out = (size_t)bytes;
    memcpy(message_out, &message, sizeof(message));
    return 1;
}

static int receive(void *ctx, struct net_mpi_handle *handle, void *to, size_t bytes,
                   struct net_mpi_handle *request_out)
{
    MPI_Message message;
    MPI_Request request;
    (void)ctx;
    memcpy(&message, handle, sizeof(message));
    const int rc = MPI_Imrecv(to, (int)bytes, MPI_BYTE, &message, &request);
    memcpy(request_out, &request, sizeof(request));
    return -rc;
}

static int is_done(void *ctx, struct net_mpi_handle *handle)
{
    MPI_Request request;
    int done = 0;
    (void)ctx;
    memcpy(&request, handle, sizeof(request));
    const int rc = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    memcpy(handle, &request, sizeof(request));
    return rc ? -rc : done;
}

static void give_up(void)
{
    job.lost = 1;
}

const struct net_mpi_calls drps_mpi_calls = {.version = NET_MPI_CALLS_VERSION,
                                             .begin = begin,
                                             .send = send,
                                             .probe = probe,
                                             .receive = receive,
                                             .is_done = is_done,
                                             .text = text_of,
                                             .give_up = give_up};
