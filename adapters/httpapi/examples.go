package httpapi

import (
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// The replies that the document shows. Their types give its schemas, so an
// example has the fields that the service answers.

// examplePass is the password of examples.
const examplePass = "mfzwizlbonsgk3tumfzwizlbonsgk3tu"

var (
	exampleProxy = proxyReply{"http", "proxy.example.com", 8081, exampleID + "r0", examplePass,
		"http://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"http://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"socks5://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081"}
	exampleVerdict = sessionHealthBrief{75, 0.9, "medium", "consider_rotate"}
	exampleCost    = costReply{usd("0.03"), usd("0.22"), usd("0"), domain.Currency}
	exampleDynamic = sessionReply{
		SessionID:    exampleSession,
		Type:         "dynamic",
		Status:       "active",
		ProductNo:    "dyn_global_1",
		Quantity:     1,
		DurationDays: -1,
		TrafficGB:    1_000_000_000,
		Proxy:        &exampleProxy,
		Location:     locationReply{"US", ""},
		Rotation: rotationReply{
			Mode:            "on_demand",
			IntervalSeconds: -1,
		},
		Health: workersHealthReply{sessionHealthBrief{100, 1, "low", "ok"}, nil},
		Usage: usageReply{
			Traffic: trafficReply{1_000_000_000, 120_000_000, 880_000_000, 1_000_000_000, -1, 120_000_000, 20_000_000,
				100_000_000, 880_000_000, 1200},
			Connections: 12,
			Time:        timeReply{maybeStamp(exampleTime), maybeStamp{}, -1},
			Cost:        exampleCost,
			AsOf:        stamp(exampleTime),
		},
		Cost:        exampleCost,
		IPList:      []ipListReply{},
		AllowedIPs:  []string{},
		CreatedAt:   stamp(exampleTime),
		ActivatedAt: maybeStamp(exampleTime),
	}
	exampleStatic   = staticExample()
	exampleCreating = creatingExample()
	exampleEnded    = endedExample()
)

func staticExample() sessionReply {
	s := exampleDynamic
	s.Type, s.ProductNo, s.DurationDays, s.TrafficGB = "static", "sta_isp_1", 30, -1
	s.Rotation.Mode, s.ExpiresAt = "fixed", maybeStamp(exampleLater)
	s.Usage.Traffic = trafficReply{-1, 120_000_000, -1, -1, maybeGB(100 * billing.GB), 120_000_000, 20_000_000,
		100_000_000, -1, -1}
	s.Usage.Time = timeReply{maybeStamp(exampleTime), maybeStamp(exampleLater), 2_592_000}
	s.Cost = costReply{usd("1"), 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	s.IPList = []ipListReply{{"198.51.100.4", "US", "", exampleProxy}}
	return s
}

func creatingExample() sessionReply {
	s := exampleDynamic
	s.Status, s.Proxy, s.ActivatedAt = "creating", nil, maybeStamp{}
	s.Cost = costReply{0, usd("0.25"), 0, domain.Currency}
	s.Usage = usageReply{
		Traffic: trafficReply{1_000_000_000, 0, 1_000_000_000, 1_000_000_000, -1, 0, 0, 0, 1_000_000_000, 0},
		Time:    timeReply{RemainingSeconds: -1},
		Cost:    s.Cost,
		AsOf:    stamp(exampleTime),
	}
	return s
}

func endedExample() sessionReply {
	s := exampleDynamic
	s.Status, s.StatusReason, s.Proxy, s.EndedAt = "terminated", "agent_request", nil, maybeStamp(
		exampleTime.Add(time.Hour),
	)
	s.Cost = costReply{usd("0.03"), 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	return s
}
