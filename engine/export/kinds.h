/* What the kinds of an export have in common. Private to engine/export/. */
#ifndef DRPS_ENGINE_EXPORT_KINDS_H
#define DRPS_ENGINE_EXPORT_KINDS_H

#include "base/folder/drps_textfile.h"
#include "engine/export/drps_export.h"
#include "engine/readout/drps_readout.h"

/* An export under way. */
struct exporter {
    const struct drps_export_options *o;
    const struct drps_modeldir_info *info;
    struct drps_readout r;    /* own */
    struct drps_textfile out; /* own */
    struct drps_textfile names;
    char *names_path; /* own; NULL: no file of names */
    uint64_t rows;    /* that are written in all */
};

struct export_kind {
    const char *name, *end;                                 /* `end` of a file's name means it */
    int has_names;                                          /* names are a file beside it */
    int (*begin)(struct exporter *e, struct drps_err *err); /* NULL: nothing to do */
    drps_readout_visit row;                                 /* ctx: the exporter */
};

extern const struct export_kind export_text, export_csv, export_npy, export_onnx;

#endif
