/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What sch_dualpi2.c of Linux 7.2 and 7.3 asks of a kernel, for kernels that lack some of it. It is read before the source, which stays as
 * it is. Kbuild says what the kernel's headers have: HAVE_...
 */
#ifndef DUALQ_COMPAT_H
#define DUALQ_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/version.h>

#include <net/pkt_cls.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#ifdef HAVE_TCA_DUALPI2
/* There since Linux 6.17, whether or not the kernel was configured with dualpi2. */
#else
/* dualpi2's attributes and values in netlink: the numbers that tc and dualq send. */
enum {
	TCA_DUALPI2_LIMIT = 1,
	TCA_DUALPI2_MEMORY_LIMIT = 2,
	TCA_DUALPI2_TARGET = 3,
	TCA_DUALPI2_TUPDATE = 4,
	TCA_DUALPI2_ALPHA = 5,
	TCA_DUALPI2_BETA = 6,
	TCA_DUALPI2_STEP_THRESH_PKTS = 7,
	TCA_DUALPI2_STEP_THRESH_US = 8,
	TCA_DUALPI2_MIN_QLEN_STEP = 9,
	TCA_DUALPI2_COUPLING = 10,
	TCA_DUALPI2_DROP_OVERLOAD = 11,
	TCA_DUALPI2_DROP_EARLY = 12,
	TCA_DUALPI2_C_PROTECTION = 13,
	TCA_DUALPI2_ECN_MASK = 14,
	TCA_DUALPI2_SPLIT_GSO = 15,
	TCA_DUALPI2_MAX = 16,

	TC_DUALPI2_DROP_OVERLOAD_DROP = 1,
	TCA_DUALPI2_DROP_OVERLOAD_MAX = 1,

	TC_DUALPI2_DROP_EARLY_DROP_DEQUEUE = 0,
	TCA_DUALPI2_DROP_EARLY_MAX = 1,

	TC_DUALPI2_ECN_MASK_L4S_ECT = 1,
	TCA_DUALPI2_ECN_MASK_MAX = 3,

	TC_DUALPI2_SPLIT_GSO_SPLIT_GSO = 1,
	TCA_DUALPI2_SPLIT_GSO_MAX = 1,
};

/* Statistics of its own, TCA_STATS_APP, in the order in which they are sent; times in microseconds. */
struct tc_dualpi2_xstats {
	u32 prob;
	u32 delay_c, delay_l;
	u32 packets_in_c, packets_in_l;
	u32 maxq;
	u32 ecn_mark, step_marks;
	s32 credit;
	u32 memory_used, max_memory_used, memory_limit;
};
#endif

#ifndef HAVE_HRTIMER_SETUP
/* Linux 6.13 sets a timer up in one call where there were two things to do. */
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#ifndef timer_container_of
/* from_timer() until Linux 6.16, and no more than this. */
#define timer_container_of(var, timer, member) \
	container_of(timer, typeof(*(var)), member)
#endif

#ifndef MODULE_ALIAS_NET_SCH
/* How Linux 6.9 finds the module of a queue discipline; before, by its file's name. */
#define MODULE_ALIAS_NET_SCH(kind) MODULE_ALIAS("net-sch-" kind)
#endif

#ifndef HAVE_TCF_CLASSIFY_QDISC
/*
 * What a filter wants to have redirected by itself is dropped, as Linux 7.2 does: nobody would carry the redirect out. Before Linux 5.15, tcf_classify() has no argument for a block.
 */
static inline int tcf_classify_qdisc(struct sk_buff *skb, const struct tcf_proto *filters,
				     struct tcf_result *result, bool compat_mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 15, 0)
	int verdict = tcf_classify(skb, NULL, filters, result, compat_mode);
#else
	int verdict = tcf_classify(skb, filters, result, compat_mode);
#endif

	return verdict == TC_ACT_REDIRECT ? TC_ACT_SHOT : verdict;
}
#endif

#ifndef HAVE_QDISC_QLEN_INC
/* Since some version after 6.18, a queue's packets are counted such that they can be read without its lock; before, all read them with it. */
static inline void qdisc_qlen_inc(struct Qdisc *sch)
{
	sch->q.qlen += 1;
}

static inline void qdisc_qlen_dec(struct Qdisc *sch)
{
	sch->q.qlen -= 1;
}
#endif

#ifndef HAVE_PKT_SEGS
/*
 * Since some version after 6.18, a packet carries in how many segments it will leave; before, whoever counts packets finds that out by
 * itself. The source sets it to 1 for each packet that it has split off. Here that goes to the last byte of what the queue discipline
 * may write into a packet, of which dualpi2 uses the first 16 only.
 */
#define pkt_segs data[QDISC_CB_PRIV_LEN - 1]
#endif

#ifndef HAVE_QDISC_DROP_REASON
/*
 * Why a queue discipline dropped a packet is told in words of its own since some version after 6.18. Before, a packet is dropped without
 * them: counted all the same, but `perf trace -e skb:kfree_skb` says of it what it says of all queue disciplines.
 */
enum qdisc_drop_reason {
	QDISC_DROP_OVERLIMIT,
	QDISC_DROP_CONGESTED,
	QDISC_DROP_L4S_STEP_NON_ECN,
};

#define qdisc_drop_reason(skb, sch, to_free, reason) qdisc_drop(skb, sch, to_free)
#endif

#ifndef HAVE_QDISC_DEQUEUE_DROP
/*
 * Since some version after 6.18, packets that are dropped at dequeue are freed later, without the queue's lock. Before they are freed at once, as
 * sch_dualpi2.c itself did in Linux 6.17; the flag that asks for the other is then no flag.
 */
#define TCQ_F_DEQUEUE_DROPS 0

static inline void qdisc_dequeue_drop(struct Qdisc *sch, struct sk_buff *skb,
				      enum qdisc_drop_reason reason)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	kfree_skb_reason(skb, SKB_DROP_REASON_QDISC_DROP);
#else
	kfree_skb(skb);
#endif
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
/*
 * Takes a packet out of a queue whose limit has become smaller. Some older kernels have it under the same name, and some of these leave the
 * backlog to the caller; Linux 6.17 does not, and the source counts on that. So it is always this one there.
 */
static inline struct sk_buff *dualq_dequeue_internal(struct Qdisc *sch, bool direct)
{
	struct sk_buff *skb = __skb_dequeue(&sch->gso_skb);

	if (skb)
		qdisc_qlen_dec(sch);
	else if (direct)
		skb = __qdisc_dequeue_head(&sch->q);
	else
		return sch->dequeue(sch);
	if (skb)
		qdisc_qstats_backlog_dec(sch, skb);
	return skb;
}
#define qdisc_dequeue_internal dualq_dequeue_internal
#endif

#endif
