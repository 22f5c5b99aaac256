/* Options of a plan whose net reads sequences: samples come in sequences that stay whole and in
 * order, which few orders and ways to share them can do. */
#include <string.h>

#include "index/run/run.h"

static int refuse(const char *what, const char *todo, struct drps_err *err)
{
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the net reads sequences, whose samples stay together and in order; this does not "
        "go with %s: %s",
        what, todo);
}

/* What reads no sequences takes no samples of them. */
static int check_none(const struct drps_index_options *o, int tokens, struct drps_err *err)
{
    if (tokens)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the format tokens is for nets that read sequences, with a layer such "
                            "as lstm: use such a net, or name another format");
    if (o->reader.sequence || o->reader.sequence_lines)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "only nets that read sequences, with a layer such as lstm, have a "
                            "length of these: leave it out");
    return 0;
}

/* The samples' order, and who gets them. */
static int check_order(const struct drps_index_options *o, struct drps_err *err)
{
    const char *order = o->order ? o->order : "shuffled";
    if (strcmp(order, "shuffled") != 0 && strcmp(order, "given") != 0)
        return refuse("the order micro", "use the order shuffled or given", err);
    if (o->samples && strcmp(o->samples, "dealt") != 0)
        return refuse("samples that are placed or kept", "have samples dealt", err);
    if (o->balance > 0) return refuse("rounds that are balanced", "do not balance", err);
    if (o->machine_weights_n)
        return refuse("weights of machines", "give all machines as much: leave them out", err);
    if (o->replay > 0)
        return refuse("samples that are replayed", "name the earlier text among the input", err);
    return 0;
}

int drps_run_check_sequences(struct drps_index_options *o, const struct drps_layers *net,
                             struct drps_err *err)
{
    const char *format = o->reader.format ? o->reader.format : "auto";
    const int tokens = strcmp(format, "tokens") == 0;
    if (!net->n || !net->has_sequences) return check_none(o, tokens, err);
    if (!net->has_classes)
        return refuse("a score that is a number", "end the net in `full classes`", err);
    if (o->matrix || (!tokens && strcmp(format, "auto") != 0))
        return refuse(o->matrix ? "a matrix in memory" : "another format than tokens",
                      "give text, as format tokens", err);
    if (o->hashing.bits)
        return refuse("features that are hashed",
                      "leave hashing out, as a token is one of the classes", err);
    int rc = check_order(o, err);
    if (rc < 0) return rc;
    o->reader.format = "tokens";
    o->samples = "dealt"; /* whole batches go to workers in turn */
    if (!o->reader.sequence)
        o->reader.sequence = o->reader.sequence_lines ? DRPS_SEQUENCE_MOST : DRPS_SEQUENCE_USUAL;
    return 0;
}

void drps_run_take_sequences(const struct drps_plan_info *info, struct drps_reader_options *r)
{
    if (r->sequence || r->sequence_lines) return;
    r->sequence_lines = info->sequences.lines;
    if (!info->sequences.lines) r->sequence = info->sequences.most;
}
