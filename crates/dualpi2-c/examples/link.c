/*
 * A 20 Mbit/s link behind a DualPI2 queue, for ten seconds of virtual time, offered 5 % more than it
 * carries: L4S traffic (ECT(1)), classic traffic with ECN (ECT(0)) and classic traffic without.
 *
 * README.md says how to compile it. What it prints shows the idea of DualPI2: low latency packets
 * wait almost nothing and are marked often; classic packets wait about the target delay, and are
 * marked or dropped seldom, each kind with the same probability.
 */
#include <stdio.h>
#include <stdlib.h>

#include "dualpi2.h"

#define RATE_BPS 20000000u
#define FRAME_BYTES 1514u
#define END_NS (10u * UINT64_C(1000000000))

/* The program's own packets. The library sees only a description, and this pointer. */
struct frame {
    size_t flow;
};

struct flow {
    const char *name;
    uint8_t ecn;
    uint64_t interval_ns; /* from one packet to the next */
    uint64_t next_ns;
    unsigned long in, out, marked, dropped, queued;
    double waited_ms;
};

/* 12112 bits each: about 5 Mbit/s and twice 8 Mbit/s. */
static struct flow flows[] = {
    {"ECT(1)", DUALPI2_ECN_ECT1, 2422400, 0, 0, 0, 0, 0, 0, 0.0},
    {"ECT(0)", DUALPI2_ECN_ECT0, 1514000, 500000, 0, 0, 0, 0, 0, 0.0},
    {"Not-ECT", DUALPI2_ECN_NOT_ECT, 1514000, 1000000, 0, 0, 0, 0, 0, 0.0},
};
#define FLOWS (sizeof flows / sizeof flows[0])

/* Every packet that does not come out of dualpi2_dequeue comes here, once. */
static void lost(void *context, struct dualpi2_packet packet, enum dualpi2_queue queue,
                 enum dualpi2_drop_reason reason)
{
    struct frame *frame = packet.user;
    struct flow *flow = (struct flow *)context + frame->flow;

    (void)queue; /* what it would be for: a counter for each queue */
    if (reason == DUALPI2_DROP_REASON_FLUSHED)
        flow->queued++; /* it waited when the queue was destroyed */
    else
        flow->dropped++;
    free(frame);
}

static void arrive(struct dualpi2 *queue, uint64_t now_ns, size_t number)
{
    struct flow *flow = &flows[number];
    struct dualpi2_packet packet = {0};
    struct frame *frame = malloc(sizeof *frame);

    if (frame == NULL)
        abort();
    frame->flow = number;
    packet.user = frame;
    packet.length = FRAME_BYTES;
    packet.memory = FRAME_BYTES + sizeof *frame;
    packet.ecn = flow->ecn;
    flow->in++;
    flow->next_ns += flow->interval_ns;
    /* A false from dualpi2_enqueue needs no care here: lost() has been called by then. */
    dualpi2_enqueue(queue, now_ns, packet);
}

/* Sends the next packet, if there is one; says when the link is free again. */
static uint64_t send_next(struct dualpi2 *queue, uint64_t now_ns)
{
    struct dualpi2_departure departure;
    struct frame *frame;
    struct flow *flow;

    if (!dualpi2_dequeue(queue, now_ns, &departure))
        return now_ns;
    frame = departure.packet.user;
    flow = &flows[frame->flow];
    flow->out++;
    flow->waited_ms += (double)departure.sojourn_ns / 1e6;
    if (departure.ce)
        flow->marked++; /* a real sender would now set CE in the frame's IP header */
    free(frame);
    return now_ns + departure.packet.length * UINT64_C(8000000000) / RATE_BPS;
}

int main(void)
{
    struct dualpi2_config config = dualpi2_config_default(FRAME_BYTES);
    struct dualpi2_random random = {0}; /* SplitMix64 ... */
    struct dualpi2 *queue;
    struct dualpi2_stats stats;
    enum dualpi2_error error;
    uint64_t now_ns = 0, free_ns = 0;
    size_t i;

    random.seed = 7; /* ... and the same outcome in each run */
    error = dualpi2_create(&queue, &config, &random, lost, flows, now_ns);
    if (error != DUALPI2_ERROR_OK) {
        fprintf(stderr, "%s\n", dualpi2_error_text(error));
        return EXIT_FAILURE;
    }
    dualpi2_reserve(queue, 1000); /* nothing is allocated later, unless more packets wait */

    while (now_ns < END_NS) {
        uint64_t next_ns = END_NS;

        dualpi2_poll(queue, now_ns); /* without a timer: before whatever else happens now */
        for (i = 0; i < FLOWS; i++)
            if (flows[i].next_ns <= now_ns)
                arrive(queue, now_ns, i);
        if (free_ns <= now_ns)
            free_ns = send_next(queue, now_ns);

        /* On to what comes next: an arrival, or the end of the packet on the link. */
        for (i = 0; i < FLOWS; i++)
            if (flows[i].next_ns < next_ns)
                next_ns = flows[i].next_ns;
        if (free_ns > now_ns && free_ns < next_ns)
            next_ns = free_ns;
        now_ns = next_ns;
    }

    stats = dualpi2_get_stats(queue, now_ns);
    dualpi2_destroy(queue); /* what still waits goes to lost() */

    printf("%-8s %7s %7s %7s %7s %7s %12s\n", "", "in", "out", "marked", "dropped", "queued",
           "mean wait");
    for (i = 0; i < FLOWS; i++)
        printf("%-8s %7lu %7lu %7lu %7lu %7lu %9.3f ms\n", flows[i].name, flows[i].in,
               flows[i].out, flows[i].marked, flows[i].dropped, flows[i].queued,
               flows[i].waited_ms / (double)flows[i].out);
    printf("probability %.1f %%, %llu of the marks by the step\n",
           100.0 * stats.probability / UINT32_MAX, (unsigned long long)stats.step_marks);
    return EXIT_SUCCESS;
}
