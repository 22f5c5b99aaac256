/* Lists of frames: of free ones, and one for each window that rows wait for. */
#include "storage/device/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

static uint32_t *list_of(struct frames *f, uint64_t window)
{
    return &f->waiting[window % (f->windows + 2)];
}

int frames_init(struct frames *f, uint64_t places, uint32_t n, uint32_t windows,
                struct drps_err *err)
{
    *f = (struct frames){.free = FRAMES_NONE, .n = n, .windows = windows};
    f->frame_of = drps_array_new((size_t)places, sizeof(*f->frame_of));
    f->place_of = drps_array_new(n, sizeof(*f->place_of));
    f->next = drps_array_new(n, sizeof(*f->next));
    f->waiting = drps_array_new((size_t)windows + 2, sizeof(*f->waiting));
    if (!f->frame_of || !f->place_of || !f->next || !f->waiting) {
        frames_destroy(f);
        return drps_err_set(err, -ENOMEM, "no memory to know where %llu rows are",
                            (unsigned long long)places);
    }
    memset(f->frame_of, 0xff, (size_t)places * sizeof(*f->frame_of));
    memset(f->place_of, 0, (size_t)n * sizeof(*f->place_of));
    memset(f->waiting, 0xff, ((size_t)windows + 2) * sizeof(*f->waiting));
    for (uint32_t i = n; i-- > 0; f->n_free++) {
        f->next[i] = f->free;
        f->free = i;
    }
    return 0;
}

void frames_destroy(struct frames *f)
{
    if (!f) return;
    free(f->frame_of);
    free(f->place_of);
    free(f->next);
    free(f->waiting);
    memset(f, 0, sizeof(*f));
}

uint64_t frames_memory(uint64_t places, uint64_t n, uint64_t windows)
{
    return (places + 2 * n + windows + 2) * sizeof(uint32_t);
}

uint32_t frames_put(struct frames *f, uint32_t place)
{
    const uint32_t frame = f->free;
    f->free = f->next[frame];
    f->n_free--;
    f->place_of[frame] = place;
    f->frame_of[place] = frame;
    return frame;
}

void frames_leave(struct frames *f, uint32_t frame)
{
    f->frame_of[f->place_of[frame]] = FRAMES_NONE;
    f->next[frame] = f->free;
    f->free = frame;
    f->n_free++;
}

void frames_hold(struct frames *f, uint32_t frame, uint64_t window)
{
    f->next[frame] = (uint32_t)window;
}

int frames_held_for(const struct frames *f, uint32_t frame, uint64_t window)
{
    return f->next[frame] == (uint32_t)window;
}

void frames_wait(struct frames *f, uint32_t frame, uint64_t due)
{
    uint32_t *first = list_of(f, due);
    f->next[frame] = *first;
    *first = frame;
}

void frames_come_to(struct frames *f, uint64_t window)
{
    *list_of(f, window) = FRAMES_NONE;
}

uint32_t frames_take_farthest(struct frames *f, uint64_t window)
{
    uint32_t *first;
    for (uint64_t due = window + f->windows; due > window; due--)
        if (*(first = list_of(f, due)) != FRAMES_NONE) {
            const uint32_t frame = *first;
            *first = f->next[frame];
            frames_leave(f, frame);
            return frame;
        }
    return FRAMES_NONE;
}
