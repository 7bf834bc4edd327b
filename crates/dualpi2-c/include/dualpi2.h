/*
 * DualPI2, the Dual-Queue Coupled AQM of RFC 9332, exactly as Linux 7.3 runs it.
 *
 * Made from the crate dualpi2-c by cbindgen; do not edit. To refresh it:
 *     DUALPI2_BLESS=1 cargo test -p dualpi2-c --test header
 *
 * The rules for every function here:
 *
 * - The library reads no clock. Each now_ns is the caller's time in nanoseconds, on one clock that
 *   does not go backwards.
 * - It never looks into a packet. The caller describes one (struct dualpi2_packet), the library
 *   hands the description back: as a departure, or to the drop callback.
 * - A queue is used by one thread at a time. Different queues share nothing.
 * - A callback runs inside the call that causes it. It must return normally (no longjmp, no C++
 *   exception) and must not use the queue that called it.
 * - A null pointer never crashes: each function says what it does then, or does nothing and returns
 *   0, false or zeroes. Every other pointer must point to what its type says.
 * - Nothing is allocated while the queues stay within dualpi2_reserve, or within what they once
 *   held. Out of memory ends the process.
 */


#ifndef DUALPI2_H
#define DUALPI2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * In `fields` of `dualpi2_change`: `limit`. Without `DUALPI2_CHANGE_MEMORY_LIMIT`, the memory limit becomes the default for it.
 */
#define DUALPI2_CHANGE_LIMIT (1 << 0)

/**
 * In `fields` of `dualpi2_change`: `memory_limit`.
 */
#define DUALPI2_CHANGE_MEMORY_LIMIT (1 << 1)

/**
 * In `fields` of `dualpi2_change`: `target_us`.
 */
#define DUALPI2_CHANGE_TARGET (1 << 2)

/**
 * In `fields` of `dualpi2_change`: `tupdate_us`.
 */
#define DUALPI2_CHANGE_TUPDATE (1 << 3)

/**
 * In `fields` of `dualpi2_change`: `alpha_256ths`.
 */
#define DUALPI2_CHANGE_ALPHA (1 << 4)

/**
 * In `fields` of `dualpi2_change`: `beta_256ths`.
 */
#define DUALPI2_CHANGE_BETA (1 << 5)

/**
 * In `fields` of `dualpi2_change`: `step_threshold` and `step_in_packets`.
 */
#define DUALPI2_CHANGE_STEP_THRESHOLD (1 << 6)

/**
 * In `fields` of `dualpi2_change`: `min_qlen_step`.
 */
#define DUALPI2_CHANGE_MIN_QLEN_STEP (1 << 7)

/**
 * In `fields` of `dualpi2_change`: `coupling_factor`.
 */
#define DUALPI2_CHANGE_COUPLING_FACTOR (1 << 8)

/**
 * In `fields` of `dualpi2_change`: `classic_protection`.
 */
#define DUALPI2_CHANGE_CLASSIC_PROTECTION (1 << 9)

/**
 * In `fields` of `dualpi2_change`: `drop_on_overload`.
 */
#define DUALPI2_CHANGE_OVERLOAD (1 << 10)

/**
 * In `fields` of `dualpi2_change`: `drop_at_enqueue`.
 */
#define DUALPI2_CHANGE_DROP_AT (1 << 11)

/**
 * In `fields` of `dualpi2_change`: `any_ect`.
 */
#define DUALPI2_CHANGE_ECN_MASK (1 << 12)

/**
 * In `fields` of `dualpi2_change`: `split_gso`.
 */
#define DUALPI2_CHANGE_SPLIT_GSO (1 << 13)

/**
 * In `fields` of `dualpi2_change`: all of them.
 */
#define DUALPI2_CHANGE_ALL ((1 << 14) - 1)

/**
 * What is wrong with an argument; `dualpi2_error_text` says it in words.
 */
enum dualpi2_error {
    /**
     * All is well.
     */
    DUALPI2_ERROR_OK = 0,
    /**
     * A pointer is null that must not be.
     */
    DUALPI2_ERROR_NULL_POINTER,
    /**
     * `mtu` is 0.
     */
    DUALPI2_ERROR_MTU,
    /**
     * `limit` is 0.
     */
    DUALPI2_ERROR_LIMIT,
    /**
     * `tupdate_us` is 0.
     */
    DUALPI2_ERROR_TUPDATE,
    /**
     * `alpha_256ths` is 0 or above 2147483647.
     */
    DUALPI2_ERROR_ALPHA,
    /**
     * `beta_256ths` is 0 or above 2147483647.
     */
    DUALPI2_ERROR_BETA,
    /**
     * `coupling_factor` is 0.
     */
    DUALPI2_ERROR_COUPLING_FACTOR,
    /**
     * `classic_protection` is above 100.
     */
    DUALPI2_ERROR_CLASSIC_PROTECTION,
    /**
     * Another parameter is out of its bounds.
     */
    DUALPI2_ERROR_PARAMETER,
    /**
     * `fields` has a bit that stands for no field.
     */
    DUALPI2_ERROR_FIELDS,
    /**
     * `kind` of the random source is unknown.
     */
    DUALPI2_ERROR_RANDOM_KIND,
    /**
     * The seed of xorshift64 is 0.
     */
    DUALPI2_ERROR_RANDOM_SEED,
    /**
     * The random source is a callback, but none is given.
     */
    DUALPI2_ERROR_RANDOM_CALLBACK,
};

/**
 * One of the two queues (RFC 9332 section 2.2).
 */
enum dualpi2_queue {
    /**
     * C: classic traffic.
     */
    DUALPI2_QUEUE_CLASSIC = 0,
    /**
     * L: low latency traffic.
     */
    DUALPI2_QUEUE_LOW_LATENCY = 1,
};

/**
 * Why a packet was dropped.
 */
enum dualpi2_drop_reason {
    /**
     * The packet limit or the memory limit was reached.
     */
    DUALPI2_DROP_REASON_OVERLIMIT = 0,
    /**
     * The controller's probability said so.
     */
    DUALPI2_DROP_REASON_CONGESTED = 1,
    /**
     * The low latency queue's step would have marked it, but it is not ECN-capable.
     */
    DUALPI2_DROP_REASON_STEP = 2,
    /**
     * Its class was `DUALPI2_CLASS_REFUSE`.
     */
    DUALPI2_DROP_REASON_REFUSED = 3,
    /**
     * A smaller limit took effect, or the queue was reset or destroyed.
     */
    DUALPI2_DROP_REASON_FLUSHED = 4,
};

/**
 * The ECN field of an IP header (RFC 3168), for `ecn` of `struct dualpi2_packet`.
 */
enum dualpi2_ecn {
    /**
     * Not ECN-capable, or not IP: congestion can only be told by a drop.
     */
    DUALPI2_ECN_NOT_ECT = 0,
    /**
     * ECT(1): low latency (L4S) traffic (RFC 9331).
     */
    DUALPI2_ECN_ECT1 = 1,
    /**
     * ECT(0): ECN-capable classic traffic.
     */
    DUALPI2_ECN_ECT0 = 2,
    /**
     * Congestion experienced.
     */
    DUALPI2_ECN_CE = 3,
};

/**
 * The treatment that the caller asks for, for `priority_class` of `struct dualpi2_packet`. The ECN field decides before
 * it: a packet with ECT(1) or CE (or any ECT, with `any_ect`) is L4S whatever its class.
 */
enum dualpi2_class {
    /**
     * The classic queue; also what any number that is not listed here stands for.
     */
    DUALPI2_CLASS_CLASSIC = 0,
    /**
     * The low latency queue.
     */
    DUALPI2_CLASS_L4S = 1,
    /**
     * The low latency queue, but the AQM leaves the packet alone: for sparse traffic such as DNS or VoIP.
     */
    DUALPI2_CLASS_LOW_LATENCY = 2,
    /**
     * None: the packet is dropped, and counted.
     */
    DUALPI2_CLASS_REFUSE = 255,
};

/**
 * Where random numbers come from, for `kind` of `struct dualpi2_random`.
 */
enum dualpi2_random_kind {
    /**
     * SplitMix64 from `seed`: fast, any seed will do. The default.
     */
    DUALPI2_RANDOM_KIND_SPLITMIX64 = 0,
    /**
     * xorshift64 (13, 7, 17) from `seed`, which must not be 0: the stream of the reference traces.
     */
    DUALPI2_RANDOM_KIND_XORSHIFT64 = 1,
    /**
     * The function `next`.
     */
    DUALPI2_RANDOM_KIND_CALLBACK = 2,
};

/**
 * A DualPI2 queue: made by `dualpi2_create`, given up by `dualpi2_destroy`.
 */
struct dualpi2;

/**
 * All parameters. `dualpi2_config_default` fills in Linux's defaults; the words in parentheses are those of `tc`.
 */
struct dualpi2_config {
    /**
     * The largest packet in bytes, link-layer header included (1514 on Ethernet). Fixed when the queue is created.
     */
    uint32_t mtu;
    /**
     * The most packets that both queues hold together, 1 or more (`limit`); default 10000.
     */
    uint32_t limit;
    /**
     * The most bytes of memory that both queues hold together (`memlimit`); default 0, which stands for `limit` times
     * twice the MTU.
     */
    uint32_t memory_limit;
    /**
     * The classic queue's target delay in microseconds (`target`); default 15000.
     */
    uint32_t target_us;
    /**
     * How often the probability is updated, in microseconds, 1 or more (`tupdate`); default 16000.
     */
    uint32_t tupdate_us;
    /**
     * The integral gain in units of 1/256 Hz, 1 to 2147483647 (`alpha`); default 41.
     */
    uint32_t alpha_256ths;
    /**
     * The proportional gain in units of 1/256 Hz, 1 to 2147483647 (`beta`); default 819.
     */
    uint32_t beta_256ths;
    /**
     * From where on the low latency queue marks every L4S packet (`step_thresh`): a waiting time in microseconds or, with
     * `step_in_packets`, a number of packets left behind; default 1000 us.
     */
    uint32_t step_threshold;
    /**
     * The step spares a packet that found fewer packets than this in the low latency queue (`min_qlen_step`); default 0.
     */
    uint32_t min_qlen_step;
    /**
     * Whether `step_threshold` counts packets: 0 no, else yes; default 0.
     */
    uint8_t step_in_packets;
    /**
     * k, by how much low latency feels the probability more, 1 or more (`coupling_factor`); default 2.
     */
    uint8_t coupling_factor;
    /**
     * The share of the bytes that classic gets at least, in percent up to 100 (`classic_protection`); default 10.
     */
    uint8_t classic_protection;
    /**
     * What gives on overload: with 0 the queues grow (`overflow`), else ECN-capable packets are dropped too
     * (`drop_on_overload`); default 1.
     */
    uint8_t drop_on_overload;
    /**
     * When the AQM decides about a packet: with 0 when it leaves (`drop_dequeue`), else when it arrives (`drop_enqueue`);
     * default 0.
     */
    uint8_t drop_at_enqueue;
    /**
     * Which packets their ECN field sends to the low latency queue: with 0 those with ECT(1) or CE (`l4s_ect`), else all
     * ECN-capable ones (`any_ect`); default 0.
     */
    uint8_t any_ect;
    /**
     * Whether the caller is to take aggregates (GSO) apart before it enqueues them, as `dualpi2_splits_gso` tells: 0 no
     * (`no_split_gso`), else yes (`split_gso`); default 1.
     */
    uint8_t split_gso;
};

/**
 * Gives the next random number, each of the 2^32 equally likely. `context` is that of `struct dualpi2_random`.
 */
typedef uint32_t (*dualpi2_random_callback)(void *context);

/**
 * A source of random numbers. The same seed and the same packets at the same times give the same outcome; queues that
 * work side by side should have different seeds.
 */
struct dualpi2_random {
    /**
     * `enum dualpi2_random_kind`.
     */
    uint32_t kind;
    /**
     * Where the stream starts, if the source is not a callback.
     */
    uint64_t seed;
    /**
     * The function, if the source is a callback.
     */
    dualpi2_random_callback next;
    /**
     * Given to `next`.
     */
    void *context;
};

/**
 * A packet, described by its owner. Passed by value: the library keeps the description, not the packet.
 */
struct dualpi2_packet {
    /**
     * The caller's own: handed back as it was given, never followed.
     */
    void *user;
    /**
     * Bytes on the wire, link-layer header included.
     */
    uint32_t length;
    /**
     * Bytes of memory that the packet holds while it waits, overhead included; counts against `memory_limit`. With 0 for
     * all packets that limit never applies.
     */
    uint32_t memory;
    /**
     * `enum dualpi2_ecn`. Only the two low bits count: the whole TOS or traffic class byte may be given, and comes back with
     * CE set in it if the packet was marked.
     */
    uint8_t ecn;
    /**
     * `enum dualpi2_class`; 0 if there is nothing to say.
     */
    uint8_t priority_class;
};

/**
 * Takes back a packet that is lost: `context` as given to `dualpi2_create`, the packet, the queue it was in or bound for,
 * and why.
 */
typedef void (*dualpi2_drop_callback)(void *context,
                                      struct dualpi2_packet packet,
                                      enum dualpi2_queue queue,
                                      enum dualpi2_drop_reason reason);

/**
 * A packet that leaves, and how it fared.
 */
struct dualpi2_departure {
    /**
     * The packet, CE in its `ecn` if it was marked.
     */
    struct dualpi2_packet packet;
    /**
     * The queue it waited in.
     */
    enum dualpi2_queue queue;
    /**
     * How long it waited, in nanoseconds; 0 if the clock went backwards meanwhile.
     */
    uint64_t sojourn_ns;
    /**
     * The AQM marked it: before sending it, the caller must set CE in its IP header (and correct an IPv4 header's checksum).
     */
    bool ce;
    /**
     * It was marked by the squared (classic) or coupled (L4S) probability.
     */
    bool marked_by_probability;
    /**
     * It was marked by the low latency queue's step. A packet may be marked by both.
     */
    bool marked_by_step;
};

/**
 * The counters, as Linux dumps them for this qdisc.
 */
struct dualpi2_stats {
    /**
     * The base probability p', in units of 2^-32.
     */
    uint32_t probability;
    /**
     * The scheduler's credit: weight in percent times bytes; above zero when classic is next.
     */
    int32_t credit;
    /**
     * How long the head of the classic queue has waited, in whole microseconds; 0 if there is none.
     */
    uint64_t classic_delay_us;
    /**
     * How long the head of the low latency queue has waited, in whole microseconds; 0 if there is none.
     */
    uint64_t low_latency_delay_us;
    /**
     * Packets that entered the classic queue.
     */
    uint64_t packets_in_classic;
    /**
     * Packets that entered the low latency queue.
     */
    uint64_t packets_in_low_latency;
    /**
     * The most packets, of both queues, that a packet found waiting when it was enqueued.
     */
    uint64_t max_queue_length;
    /**
     * CE marks, by probability or step; a packet marked by both counts twice, one that came with CE counts too.
     */
    uint64_t ecn_marks;
    /**
     * CE marks by the low latency queue's step.
     */
    uint64_t step_marks;
    /**
     * Bytes of memory that waiting packets hold.
     */
    uint32_t memory_used;
    /**
     * The most that `memory_used` ever was.
     */
    uint32_t max_memory_used;
    /**
     * The limit of `memory_used`.
     */
    uint32_t memory_limit;
    /**
     * Packets dropped, for any reason but a reset.
     */
    uint64_t drops;
    /**
     * Packets dropped because the packet or memory limit was reached.
     */
    uint64_t overlimits;
    /**
     * Packets that left.
     */
    uint64_t sent_packets;
    /**
     * Bytes that left.
     */
    uint64_t sent_bytes;
    /**
     * Packets waiting.
     */
    uint64_t backlog_packets;
    /**
     * Bytes waiting.
     */
    uint64_t backlog_bytes;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Linux's defaults for packets of up to `mtu` bytes, link-layer header included (1514 on Ethernet).
 */
struct dualpi2_config dualpi2_config_default(uint32_t mtu);

/**
 * What an `enum dualpi2_error` means, in English; never null, and never to be freed.
 */
const char *dualpi2_error_text(int error);

/**
 * Makes an empty queue at time `now_ns` and stores it in `*queue`, which becomes null on an error. The first probability
 * update is due one `tupdate_us` later.
 *
 * `random` may be null: SplitMix64 from seed 0. `drop` may be null: lost packets are forgotten; `context` is given to it.
 * Needs `queue` and `config`. `random` and `config` are copied.
 */
enum dualpi2_error dualpi2_create(struct dualpi2 **queue,
                                  const struct dualpi2_config *config,
                                  const struct dualpi2_random *random,
                                  dualpi2_drop_callback drop,
                                  void *context,
                                  uint64_t now_ns);

/**
 * Gives every waiting packet back through the drop callback, then the queue's memory. Null is fine.
 */
void dualpi2_destroy(struct dualpi2 *queue);

/**
 * Makes room for `packets` in each queue at once, so that nothing is allocated later; the configured limit is enough.
 */
void dualpi2_reserve(struct dualpi2 *queue,
                     uint32_t packets);

/**
 * Enqueues a packet that arrived at `now_ns`. False if it was dropped; the drop callback has it back by then. With a null
 * `queue` the packet stays the caller's.
 */
bool dualpi2_enqueue(struct dualpi2 *queue,
                     uint64_t now_ns,
                     struct dualpi2_packet packet);

/**
 * Takes the next packet to send at `now_ns` and stores it in `*departure`. False, and `*departure` as it was, if none
 * waits. Packets that the AQM drops on the way go to the drop callback. If `departure` is null nothing leaves.
 */
bool dualpi2_dequeue(struct dualpi2 *queue,
                     uint64_t now_ns,
                     struct dualpi2_departure *departure);

/**
 * Shows in `*packet` what the next `dualpi2_dequeue` will return. The AQM decides about it now: what it drops on the way
 * goes to the drop callback, and the packet shown keeps its mark and its waiting time. False, and `*packet` as it was, if
 * none waits. If `packet` is null nothing happens.
 */
bool dualpi2_peek(struct dualpi2 *queue,
                  uint64_t now_ns,
                  struct dualpi2_packet *packet);

/**
 * Runs each probability update that has come due up to `now_ns`, at the time when it was due. For callers without a timer:
 * to be called before each enqueue and dequeue. Costs one comparison if nothing is due.
 */
void dualpi2_poll(struct dualpi2 *queue,
                  uint64_t now_ns);

/**
 * Updates the probability. For callers with a timer, instead of `dualpi2_poll`: to be called when `dualpi2_next_update` has
 * come. The next update is due one `tupdate_us` after `now_ns`.
 */
void dualpi2_update(struct dualpi2 *queue,
                    uint64_t now_ns);

/**
 * When the next probability update is due, in nanoseconds; `UINT64_MAX` if `queue` is null.
 */
uint64_t dualpi2_next_update(const struct dualpi2 *queue);

/**
 * Sets those parameters to the values in `*config` that `fields` names (`DUALPI2_CHANGE_*`, joined with |), while packets
 * wait. What a smaller limit leaves no room for goes to the drop callback at once. On an error nothing has changed.
 * Needs `queue` and `config`.
 */
enum dualpi2_error dualpi2_change(struct dualpi2 *queue,
                                  const struct dualpi2_config *config,
                                  uint32_t fields);

/**
 * Gives every waiting packet back through the drop callback and forgets the probability, the scheduler's credit and the AQM's
 * counters. Parameters stay, and what was sent and dropped; the packets given back do not count as drops.
 */
void dualpi2_reset(struct dualpi2 *queue);

/**
 * The parameters in force, with the kernel's rounding: a configured alpha of 41 reads back as 40.
 */
struct dualpi2_config dualpi2_get_config(const struct dualpi2 *queue);

/**
 * The counters, and the queueing delays as they are at `now_ns`.
 */
struct dualpi2_stats dualpi2_get_stats(const struct dualpi2 *queue, uint64_t now_ns);

/**
 * Packets waiting in both queues.
 */
size_t dualpi2_length(const struct dualpi2 *queue);

/**
 * Whether the caller is to take an aggregate (GSO) apart and enqueue its segments one after the other, each with the
 * aggregate's ECN field and class, rather than enqueue it whole. Small flows then need not wait behind 64 KB of another.
 */
bool dualpi2_splits_gso(const struct dualpi2 *queue);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DUALPI2_H */
