/*
 * DualPI2 as a queue discipline of ns-3: Linux's own, packet by packet, around the C interface of
 * dualpi2. It goes where ns-3's others go:
 *
 *     TrafficControlHelper helper;
 *     helper.SetRootQueueDisc("dualq::DualPi2QueueDisc", "Target", TimeValue(MilliSeconds(5)));
 *     helper.Install(device);
 *
 * ns-3 wants to have the packets that wait; so they wait in two queues of its own, one for each of
 * DualPI2's, and the library says which of these is next, what is marked and what is lost.
 */
#ifndef DUALPI2_QUEUE_DISC_H
#define DUALPI2_QUEUE_DISC_H

#include "dualpi2.h"

#include "ns3/boolean.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/nstime.h"
#include "ns3/object-factory.h"
#include "ns3/queue-disc.h"
#include "ns3/queue-item.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

namespace dualq
{

class DualPi2QueueDisc : public ns3::QueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid =
            ns3::TypeId("dualq::DualPi2QueueDisc")
                .SetParent<ns3::QueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<DualPi2QueueDisc>()
                .AddAttribute("Target",
                              "The classic queue's target delay",
                              ns3::TimeValue(ns3::MilliSeconds(15)),
                              ns3::MakeTimeAccessor(&DualPi2QueueDisc::m_target),
                              ns3::MakeTimeChecker())
                .AddAttribute("Limit",
                              "The most packets that both queues hold together",
                              ns3::UintegerValue(10000),
                              ns3::MakeUintegerAccessor(&DualPi2QueueDisc::m_limit),
                              ns3::MakeUintegerChecker<uint32_t>(1))
                .AddAttribute("AnyEct",
                              "Whether ECT(0) goes to the low latency queue too",
                              ns3::BooleanValue(false),
                              ns3::MakeBooleanAccessor(&DualPi2QueueDisc::m_anyEct),
                              ns3::MakeBooleanChecker())
                .AddAttribute("Mtu",
                              "The largest IP packet in bytes",
                              ns3::UintegerValue(1500),
                              ns3::MakeUintegerAccessor(&DualPi2QueueDisc::m_mtu),
                              ns3::MakeUintegerChecker<uint32_t>(1))
                .AddAttribute("Seed",
                              "What all that is random follows from, 1 or more (xorshift64)",
                              ns3::UintegerValue(1),
                              ns3::MakeUintegerAccessor(&DualPi2QueueDisc::m_seed),
                              ns3::MakeUintegerChecker<uint64_t>(1));
        return tid;
    }

    DualPi2QueueDisc()
        : QueueDisc(ns3::QueueDiscSizePolicy::NO_LIMITS)
    {
    }

    ~DualPi2QueueDisc() override
    {
        dualpi2_destroy(m_queue);
    }

    /** All that Linux counts for it. */
    dualpi2_stats Counters() const
    {
        return dualpi2_get_stats(m_queue, Now());
    }

  private:
    /* As Linux counts packets: with the header of Ethernet. */
    static constexpr uint32_t ETHERNET = 14;

    static uint64_t Now()
    {
        return static_cast<uint64_t>(ns3::Simulator::Now().GetNanoSeconds());
    }

    bool CheckConfig() override
    {
        if (GetNQueueDiscClasses() > 0 || GetNPacketFilters() > 0 || GetNInternalQueues() > 0)
        {
            return false;
        }
        /* Only the library limits what waits. */
        ns3::QueueSizeValue all(ns3::QueueSize(ns3::QueueSizeUnit::PACKETS, m_limit + 1));
        for (int queue = 0; queue < 2; queue++)
        {
            AddInternalQueue(
                ns3::CreateObjectWithAttributes<ns3::DropTailQueue<ns3::QueueDiscItem>>("MaxSize",
                                                                                       all));
        }
        return true;
    }

    void InitializeParams() override
    {
        dualpi2_config config = dualpi2_config_default(m_mtu + ETHERNET);
        config.target_us = static_cast<uint32_t>(m_target.GetMicroSeconds());
        config.limit = m_limit;
        config.any_ect = m_anyEct;
        dualpi2_random random = {DUALPI2_RANDOM_KIND_XORSHIFT64, m_seed, nullptr, nullptr};
        dualpi2_error error = dualpi2_create(&m_queue, &config, &random, Lost, this, Now());
        NS_ABORT_MSG_IF(error != DUALPI2_ERROR_OK, "DualPI2: " << dualpi2_error_text(error));
    }

    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        uint8_t field = 0; /* stays that of what is not IP */
        item->GetUint8Value(ns3::QueueItem::IP_DSFIELD, field);
        dualpi2_packet packet = {};
        packet.user = ns3::PeekPointer(item);
        packet.length = item->GetSize() + ETHERNET;
        packet.ecn = field;
        m_arriving = item;
        dualpi2_poll(m_queue, Now());
        uint64_t before = Counters().packets_in_low_latency;
        bool taken = dualpi2_enqueue(m_queue, Now(), packet);
        m_arriving = nullptr;
        if (taken)
        {
            bool low = Counters().packets_in_low_latency > before;
            taken = GetInternalQueue(low ? DUALPI2_QUEUE_LOW_LATENCY : DUALPI2_QUEUE_CLASSIC)
                        ->Enqueue(item);
            NS_ABORT_MSG_IF(!taken, "DualPI2: a queue without a limit had no room");
        }
        return taken;
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        dualpi2_departure next;
        dualpi2_poll(m_queue, Now());
        if (!dualpi2_dequeue(m_queue, Now(), &next))
        {
            return nullptr;
        }
        ns3::Ptr<ns3::QueueDiscItem> item = TakeOut(next.packet, next.queue);
        if (next.ce)
        {
            Mark(item, next.marked_by_step ? "step" : "congested");
        }
        return item;
    }

    /* What the library says is next in one of its queues is the first of ns-3's. */
    ns3::Ptr<ns3::QueueDiscItem> TakeOut(const dualpi2_packet& packet, dualpi2_queue queue)
    {
        ns3::Ptr<ns3::QueueDiscItem> item = GetInternalQueue(queue)->Dequeue();
        NS_ABORT_MSG_IF(ns3::PeekPointer(item) != packet.user, "DualPI2: another packet is first");
        return item;
    }

    static void Lost(void* context,
                     dualpi2_packet packet,
                     dualpi2_queue queue,
                     dualpi2_drop_reason reason)
    {
        static const char* const WORDS[] = {"overlimit", "congested", "step", "refused", "flushed"};
        auto self = static_cast<DualPi2QueueDisc*>(context);
        if (reason == DUALPI2_DROP_REASON_FLUSHED)
        {
            return; /* the simulation is over: ns-3 has its packets still */
        }
        if (self->m_arriving && ns3::PeekPointer(self->m_arriving) == packet.user)
        {
            self->DropBeforeEnqueue(self->m_arriving, WORDS[reason]);
        }
        else
        {
            self->DropAfterDequeue(self->TakeOut(packet, queue), WORDS[reason]);
        }
    }

    ns3::Time m_target;
    uint32_t m_limit;
    uint32_t m_mtu;
    uint64_t m_seed;
    bool m_anyEct;
    dualpi2* m_queue{nullptr};
    ns3::Ptr<ns3::QueueDiscItem> m_arriving; /* while it is enqueued */
};

NS_OBJECT_ENSURE_REGISTERED(DualPi2QueueDisc);

} // namespace dualq

#endif
