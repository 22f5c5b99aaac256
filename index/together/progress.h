/* How far all ranks are with reading, told by rank 0. Private to index/together/. */
#ifndef DRPS_INDEX_TOGETHER_PROGRESS_H
#define DRPS_INDEX_TOGETHER_PROGRESS_H

#include <pthread.h>

#include "index/drps_index.h"
#include "index/swap/drps_swap.h"

struct together_progress {
    struct swap_ranks *ranks;               /* borrowed, as is: */
    const struct drps_index_options *index; /* with what is told of progress, on rank 0 */
    uint64_t input_bytes;                   /* of the files that this rank reads */
    uint64_t (*of)[2];                      /* own: [count] bytes read and to read, on rank 0 */
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    int over;
};

/* Begin to send to rank 0, and there to tell. Nothing is told where that cannot begin. */
void together_progress_start(struct together_progress *p, struct swap_ranks *ranks,
                             const struct drps_index_options *index);
void together_progress_end(struct together_progress *p);

#endif
