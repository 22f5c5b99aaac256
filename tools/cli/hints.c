/* The words that the libraries' messages use for what can be set, and the options that set it.
 * Words are long enough that no message means something else by them; a tool that does not have an
 * option never names it. */
#include "tools/cli/hints.h"

#include <stdio.h>
#include <string.h>

struct hint {
    const char *words; /* as they stand in a message */
    const char *hint;  /* "--option", for tools that have it, or another command */
    const char *tool;  /* the only one that means this by the words; NULL: any */
};

static const struct hint hints[] = {
    {"memory limit", "--memory", NULL},
    {"give more memory", "--memory", NULL},
    {"give the reader more memory", "--memory", NULL},
    {"have it replaced", "--force", NULL},
    {"resume it", "--resume", NULL},
    {"or start anew", "--force", NULL},
    {"unknown names can be skipped", "--on-unknown", NULL},
    {"to fold a user", "--fold-l2", NULL},
    {"with all rows", "--checkpoint-rows", NULL},
    {"checkpoints of vectors", "--checkpoint-vectors", NULL},
    {"vectors are logged beside", "--checkpoint-vectors", NULL},
    {"no checkpoint was written", "--checkpoint-dir", NULL},
    {"checkpoints could not be written", "--checkpoint-dir", NULL},
    {"checkpoint could not be written", "--checkpoint-dir", NULL},
    {"begin another run with the model", "--from", NULL},
    {"keep its checkpoints", "--keep-checkpoints", NULL},
    {"kind of checkpoints", "--checkpoint-vectors", NULL},
    {"resume after another round", "--resume-round", NULL},
    {"can be put in its place", "--force", NULL},
    {"use another disk", "-o MODEL", "drps-train"},
    {"give the model a name", "-o MODEL", "drps-train"},
    {"no format fits", "--format", NULL},
    {"name the format", "--format", NULL},
    {"name another format", "--format", NULL},
    {"the right format", "--format", NULL},
    {"the label column must", "--label", NULL},
    {"check the label column", "--label", NULL},
    {"name a label column", "--label", NULL},
    {"have a length of these", "--sequence", NULL},
    {"length of sequences", "--sequence", NULL},
    {"kinds of columns", "--columns", NULL},
    {"say that there is none", "--no-header", NULL},
    {"is no header, say so", "--no-header", NULL},
    {"name the file of labels", "--labels", NULL},
    {"name the file of labels", "--test-labels", NULL},
    {"files of labels", "--labels", NULL},
    {"files of labels", "--test-labels", NULL},
    {"which column is the label", "--label", NULL},
    {"name a separator", "--separator", NULL},
    {"give the kind", "--columns", NULL},
    {"peers file", "--peers", NULL},
    {"keys of its own", "drps-train --make-keys DIR", NULL},
    {"give each rank keys", "drps-train --make-keys DIR", NULL},
    {"keys are needed", "drps-train --make-keys DIR", NULL},
    {"keys are needed", "--keys", NULL},
    {"leave to do without them", "--insecure", NULL},

    {"a delta is what has changed", "--export-delta", NULL},
    {"leave out the delta", "--export-delta", NULL},
    {"samples to replay", "--replay", NULL},
    {"without a base", "--base", NULL},
    {"a plan cannot go on from", "--base", NULL},
    {"patience needs test samples", "drps-index --test, --test-fraction", "drps-train"},
    {"make a plan for", "drps-index --workers", "drps-train"},
    {"ranks here", "--local", NULL},
    {"rank here", "--local", NULL},
    {"a rank on each machine", "--rank", "drps-train"},
    {"a rank on each machine", "--peers", NULL},
    {"the transport", "--transport", NULL},
    {"inputs are shared by all", "--shared", "drps-index"},
    {"make it for", "--workers", "drps-index"},
    {"no folder to measure", "--calibrate", "drps-index"},
    {"did not start within", "--timeout", NULL},
    {"was done within", "--timeout", NULL},
    {"nothing was heard of it", "--silence", NULL},
    {"learning rate", "--lr", NULL},
    {"decay of the learning rate", "--lr-decay", NULL},
    {"mean over a batch", "--batch-mean", NULL},
    {"sum or mean over batches", "--batch-mean", NULL},
    {"choice of rates", "--auto", NULL},
    {"the metric ", "--metric", NULL},
    {"another metric", "--metric", NULL},
    {"judge epochs by", "--metric", NULL},
    {"say that there is no header", "--no-header", NULL},
    {" l1 ", "--l1", NULL},
    {" l2 ", "--l2", NULL},
    {"with eps ", "--eps", NULL},
    {"beta1 is ", "--beta1", NULL},
    {"beta2 is ", "--beta2", NULL},
    {"with beta1 ", "--beta1", NULL},
    {"with beta2 ", "--beta2", NULL},
    {"with seed ", "--seed", NULL},
    {"init scale", "--init-scale", NULL},
    {"another optimizer", "--optimizer", NULL},
    {"patience", "--patience", NULL},
    {"synchronisation", "--sync", NULL},
    {"staleness", "--staleness", NULL},
    {"weights of waiting", "--wsp-lambda", NULL},
    {"weights of waiting", "--wsp-ema", NULL},
    {"weights of waiting", "--wsp-patience", NULL},
    {"with lambda ", "--wsp-lambda", NULL},
    {"with ema ", "--wsp-ema", NULL},
    {"patience of wsp", "--wsp-patience", NULL},
    {"rate for stale gradients", "--lr-stale", NULL},
    {"claims batches", "--no-claim", NULL},
    {"claim batches", "--no-claim", NULL},
    {"has no residual slots", "drps-index --residuals", "drps-train"},
    {"no residual slots of their own", "drps-index --residuals each", "drps-train"},
    {"filters of traffic", "--filter-target", NULL},
    {"target of filters", "--filter-target", NULL},
    {"filters of gradients", "--push-values", NULL},
    {"filters of gradients", "--push-filter", NULL},
    {"filters of gradients", "--push-top", NULL},
    {"filters of parameters", "--pull-values", NULL},
    {"filters of parameters", "--pull-filter", NULL},
    {"no published slots", "--residuals", "drps-index"},
    {"exchange of a net's own parameters", "--net-exchange", NULL},
    {"send parameters in", "--pull-values", NULL},
    {"copies of parameters", "--pull-cached", NULL},
    {"to use copies", "--pull-cached", NULL},
    {"without handing rows on", "--no-hand-on", "drps-train"},
    {"whether rows are handed on", "--no-hand-on", "drps-train"},
    {"local steps", "--local-steps", NULL},
    {"threads: at most", "--threads", NULL},
    {"train with one thread", "--threads", NULL},
    {"a plan with lanes", "drps-index --lanes", "drps-train"},
    {"eviction rule", "--evict", NULL},
    {"epochs are too many", "--epochs", NULL},
    {"with epochs ", "--epochs", NULL},
    {"can only begin with rows", "--from", NULL},
    {"do not begin with the same rows", "--from", NULL},
    {"train the plan that it is of", "--from", "drps-train"},
    {"the model's engine", "--model-store", NULL},

    {"the algorithm", "--algo", NULL},
    {"calibrate it on samples", "drps-predict --calibrate", "drps-train"},
    {"make the plan for the loss squared-hinge", "drps-index --loss squared-hinge", "drps-train"},
    {"the loss", "--loss", NULL},
    {"how many outputs", "--outputs", NULL},
    {"the outputs", "--outputs", NULL},
    {"has no factors", "--factors", "drps-index"},
    {"has no factors", "--factors", "drps-train"},
    {"the task", "--task", NULL},
    {"the order must", "--order", NULL},
    {"the order grid", "--order", NULL},
    {"groups of a grid", "--grid", NULL},
    {" lanes", "--lanes", NULL},
    {"larger batches", "--batch-size", NULL},
    {"smaller batches", "--batch-size", NULL},
    {"use batches of", "--batch-size", NULL},
    {"block builder", "--blocks", NULL},
    {"prune rows", "--prune", NULL},
    {"prune rows", "--prune-to", NULL},
    {"prune to another number", "--prune-to", NULL},
    {"that pruning keeps", "--prune-to", NULL},
    {"shards: there may", "--shards", NULL},
    {"the shards must", "--shards", NULL},
    {"leave them out where several machines", "--shards", NULL},
    {"the share of batches must", "--sample", NULL},
    {"the least gain", "--min-gain", NULL},
    {"to measure the disk", "--calibrate", NULL},
    {"what a request costs", "--seek-us", NULL},
    {"how fast its bytes go", "--transfer-mbs", NULL},
    {"the partition ", "--partition", NULL},
    {"that placing rows weighs", "--net-mbs", NULL},
    {"hot rows ", "--hot-rows", "drps-index"},
    {"shares rows among machines", "--partition", NULL},
    {"name a partition", "--partition", "drps-index"},
    {"residual slots", "--residuals", "drps-index"},
    {"rows are handed on ", "--hand-on", "drps-index"},
    {"or handing on", "--hand-on", "drps-index"},
    {"samples must be", "--samples", NULL},
    {"placed samples", "--samples", NULL},
    {"samples kept", "--samples", "drps-index"},
    {"weights of machines", "--machine-weights", "drps-index"},
    {"to balance rounds", "--balance", "drps-index"},
    {"say samples dppa", "--samples", NULL},
    {"say partition dppa", "--partition", NULL},
    {"lower alpha", "--dppa", NULL},
    {"the workers", "--workers", "drps-index"},
    {" workers", "--workers", "drps-index"},
    {" servers", "--servers", "drps-index"},
    {"machines of their own", "--separate", "drps-index"},
    {"that all have a worker", "--partition", "drps-index"},
    {"test files", "--test", NULL},
    {"for tests", "--test-fraction", NULL},
    {"hash seed", "--hash-seed", NULL},
    {"measure recommendations", "drps-recommend --test", "drps-predict"},
};

/* Returns whether the tool has the option, and does not refuse it beside those that were given. */
static int takes_option(const struct drps_cli_tool *tool, const void *input, const char *name)
{
    for (const struct argp_option *o = tool->options; o->name || o->key || o->doc; o++)
        if (o->name && strcmp(o->name, name) == 0)
            return !tool->refuses || !tool->refuses(input, o->key);
    return 0;
}

static int applies(const struct hint *h, const struct drps_cli_tool *tool, const void *input,
                   const char *text)
{
    if (h->tool && strcmp(h->tool, tool->name) != 0) return 0;
    if (strncmp(h->hint, "--", 2) == 0 && !takes_option(tool, input, h->hint + 2)) return 0;
    return strstr(text, h->words) != NULL;
}

/* 1: the name stands in the text, and no longer one that begins like it. */
static int names(const char *text, const char *hint)
{
    const size_t n = strlen(hint);
    for (const char *at = strstr(text, hint); at; at = strstr(at + n, hint))
        if (at[n] != '-' && (at[n] < 'a' || at[n] > 'z')) return 1;
    return 0;
}

const char *hints_for(const struct drps_cli_tool *tool, const void *input, const char *text,
                      char out[HINTS_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        const char *hint = hints[i].hint;
        const size_t n = strlen(hint);
        if (used + n + sizeof(" (, )") > HINTS_BYTES) break;
        if (!applies(&hints[i], tool, input, text) || names(text, hint) || names(out, hint))
            continue;
        used += (size_t)snprintf(out + used, HINTS_BYTES - used, "%s%s", used ? ", " : " (", hint);
    }
    if (used) memcpy(out + used, ")", 2);
    return out;
}
