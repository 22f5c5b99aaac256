/* A text in memory as a file to read: a table of file operations that knows one path. Private to
 * engine/predict/. */
#ifndef DRPS_ENGINE_PREDICT_TEXT_IO_H
#define DRPS_ENGINE_PREDICT_TEXT_IO_H

#include "base/drps_io.h"

#define DRPS_TEXT_PATH "the text"

struct drps_text_io {
    struct drps_io_ops ops;
    struct drps_io io;
    const char *text; /* [bytes] borrowed */
    size_t bytes, at;
};

/* Everything but reading is the operating system's. */
void drps_text_io_init(struct drps_text_io *t, const char *text, size_t bytes);

#endif
