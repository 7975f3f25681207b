#pragma once
/* preserve_ordering: the responses of a version leave in the order in which its requests were submitted, whichever instance is
 * done first.
 * source  spec/model_configuration.txt, Preserve Ordering; spec/model_config_proto.txt, preserve_ordering */

struct request;
struct serve_version;

/* ordering_enter - the request is submitted now, also if it will be refused; its responses are held back until it is its turn.
 * Caller holds v->lock, so that the order is that of the queue. */
void ordering_enter(struct serve_version *v, struct request *r);
