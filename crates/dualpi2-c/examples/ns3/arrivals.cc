/*
 * Packets at given times through DualPI2 in ns-3 and across a link:
 *     arrivals RATE_BPS [ATTRIBUTE=VALUE ...] < TRACE
 * ATTRIBUTE is one of dualq::DualPi2QueueDisc; lines of TRACE are the time in nanoseconds, the bytes with the header of Ethernet, anything, and the
 * ECN field, with commas. What becomes of each packet is printed, by its number from 1.
 */
#include "dualpi2-queue-disc.h"

#include "ns3/ipv4-header.h"
#include "ns3/ipv4-queue-disc-item.h"
#include "ns3/packet.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace ns3;

struct Arrival
{
    uint64_t at_ns;
    uint32_t bytes;
    uint8_t ecn;
};

static const uint32_t ETHERNET = 14;

class Link
{
  public:
    Link(Ptr<QueueDisc> queue, uint64_t rate_bps, std::vector<Arrival> arrivals)
        : m_queue(queue),
          m_rate_bps(rate_bps),
          m_arrivals(std::move(arrivals))
    {
        queue->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Link::LostEarly, this));
        queue->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&Link::LostLate, this));
        ScheduleNext();
    }

  private:
    static uint64_t Now()
    {
        return static_cast<uint64_t>(Simulator::Now().GetNanoSeconds());
    }

    static void Tell(Ptr<const QueueDiscItem> item, const char* what, const char* more = "", const char* when = "")
    {
        std::printf("%" PRIu64 ",%" PRIu64 ".0,%s%s%s\n", Now(), item->GetPacket()->GetUid() + 1, what, more, when);
    }

    void LostEarly(Ptr<const QueueDiscItem> item, const char* reason)
    {
        Tell(item, "drop_", reason, "_enqueue");
    }

    void LostLate(Ptr<const QueueDiscItem> item, const char* reason)
    {
        Tell(item, "drop_", reason, "_dequeue");
    }

    void ScheduleNext()
    {
        if (m_next < m_arrivals.size())
        {
            Time at = NanoSeconds(m_arrivals[m_next].at_ns);
            Simulator::Schedule(at - Simulator::Now(), &Link::Arrive, this);
        }
    }

    void Arrive()
    {
        /* Of what happens at one instant the link comes first. */
        Serve();
        const Arrival& arrival = m_arrivals[m_next++];
        Ipv4Header header;
        header.SetEcn(static_cast<Ipv4Header::EcnType>(arrival.ecn & 3));
        uint32_t payload = arrival.bytes - ETHERNET - header.GetSerializedSize();
        header.SetPayloadSize(payload);
        Ptr<Packet> packet = Create<Packet>(payload);
        m_queue->Enqueue(Create<Ipv4QueueDiscItem>(packet, Address(), 0x0800, header));
        Serve();
        ScheduleNext();
    }

    void Serve()
    {
        /* Whoever asks in vain begins the scheduler's round anew. */
        if (Now() < m_free_ns || m_queue->GetNPackets() == 0)
        {
            return;
        }
        Ptr<QueueDiscItem> item = m_queue->Dequeue();
        if (!item)
        {
            return;
        }
        uint8_t field = 0;
        item->GetUint8Value(QueueItem::IP_DSFIELD, field);
        Tell(item, (field & 3) == DUALPI2_ECN_CE ? "out_ce" : "out");
        uint64_t bits = (item->GetSize() + ETHERNET) * UINT64_C(8);
        m_free_ns = Now() + (bits * UINT64_C(1000000000) + m_rate_bps - 1) / m_rate_bps;
        Simulator::Schedule(NanoSeconds(m_free_ns - Now()), &Link::Serve, this);
    }

    Ptr<QueueDisc> m_queue;
    uint64_t m_rate_bps;
    std::vector<Arrival> m_arrivals;
    size_t m_next{0};
    uint64_t m_free_ns{0};
};

int main(int argc, char** argv)
{
    uint64_t rate_bps = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
    if (rate_bps == 0)
    {
        std::fprintf(stderr, "usage: arrivals RATE_BPS [ATTRIBUTE=VALUE ...] < TRACE\n");
        return 2;
    }
    auto queue = CreateObject<dualq::DualPi2QueueDisc>();
    for (int at = 2; at < argc; at++)
    {
        std::string word = argv[at];
        size_t equals = word.find('=');
        if (equals == std::string::npos ||
            !queue->SetAttributeFailSafe(word.substr(0, equals), StringValue(word.substr(equals + 1))))
        {
            std::fprintf(stderr, "%s is no attribute of DualPi2QueueDisc and its value\n", argv[at]);
            return 2;
        }
    }
    std::vector<Arrival> arrivals;
    Arrival arrival;
    while (std::scanf("%" SCNu64 ",%" SCNu32 ",%*[^,],%" SCNu8 "%*[^\n]", &arrival.at_ns, &arrival.bytes, &arrival.ecn) == 3)
    {
        arrivals.push_back(arrival);
    }
    if (!std::feof(stdin))
    {
        std::fprintf(stderr, "arrival %zu is no line of a trace\n", arrivals.size() + 1);
        return 1;
    }
    queue->Initialize();
    Link link(queue, rate_bps, std::move(arrivals));
    Simulator::Run();
    queue->Dispose();
    Simulator::Destroy();
    return 0;
}
