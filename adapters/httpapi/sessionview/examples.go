package sessionview

import (
	"time"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// The replies that the document shows. Their types give its schemas, so an
// example has the fields that the service answers.

// examplePass is the password of examples.
const examplePass = "mfzwizlb"

// What the document shows: a proxy, a verdict, and sessions in each of their states.
var (
	ExampleProxy = Proxy{"http", "proxy.example.com", 8081, openapi.ExampleID + "r0", examplePass,
		"http://" + openapi.ExampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"http://" + openapi.ExampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"socks5://" + openapi.ExampleID + "r0:" + examplePass + "@proxy.example.com:8081", ""}
	ExampleVerdict = SessionHealthBrief{75, 0.9, "medium", "consider_rotate"}
	exampleCost    = costReply{openapi.USD("0.03"), openapi.USD("0.22"), openapi.USD("0"), 0, domain.Currency}
	ExampleDynamic = Session{
		SessionID:    openapi.ExampleSession,
		Type:         "dynamic",
		Status:       "active",
		ProductNo:    "dyn_global_1",
		Quantity:     1,
		DurationDays: -1,
		TrafficGB:    1_000_000_000,
		Proxy:        &ExampleProxy,
		Location:     Location{"US", ""},
		Rotation: rotationReply{
			Mode:            "on_demand",
			IntervalSeconds: -1,
		},
		Health: workersHealthReply{SessionHealthBrief{100, 1, "low", "ok"}, nil},
		Usage: Usage{
			Traffic: trafficReply{1_000_000_000, 120_000_000, 880_000_000, 1_000_000_000, -1, 120_000_000, 20_000_000,
				100_000_000, 880_000_000, 1200},
			Connections: 12,
			Time:        timeReply{value.MaybeStamp(openapi.ExampleTime), value.MaybeStamp{}, -1},
			Cost:        exampleCost,
			AsOf:        value.Stamp(openapi.ExampleTime),
		},
		Cost:        exampleCost,
		IPList:      []ipListReply{},
		AllowedIPs:  []string{},
		BoughtBy:    &buyerReply{"key_" + openapi.ExampleID, "CI"},
		CreatedAt:   value.Stamp(openapi.ExampleTime),
		ActivatedAt: value.MaybeStamp(openapi.ExampleTime),
	}
	ExampleStatic   = staticExample()
	ExampleCreating = creatingExample()
	ExampleEnded    = endedExample()
)

func staticExample() Session {
	s := ExampleDynamic
	s.Type, s.ProductNo, s.DurationDays, s.TrafficGB = "static", "sta_isp_1", 30, -1
	s.Rotation.Mode, s.ExpiresAt = "fixed", value.MaybeStamp(openapi.ExampleLater)
	s.Usage.Traffic = trafficReply{-1, 120_000_000, -1, -1, value.MaybeGB(100 * billing.GB), 120_000_000, 20_000_000,
		100_000_000, -1, -1}
	s.Usage.Time = timeReply{value.MaybeStamp(openapi.ExampleTime), value.MaybeStamp(openapi.ExampleLater), 2_592_000}
	s.Cost = costReply{openapi.USD("1"), 0, 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	s.IPList = []ipListReply{{"198.51.100.4", "US", "", ExampleProxy, nil}}
	return s
}

func creatingExample() Session {
	s := ExampleDynamic
	s.Status, s.Proxy, s.ActivatedAt = "creating", nil, value.MaybeStamp{}
	s.Cost = costReply{0, openapi.USD("0.25"), 0, 0, domain.Currency}
	s.Usage = Usage{
		Traffic: trafficReply{1_000_000_000, 0, 1_000_000_000, 1_000_000_000, -1, 0, 0, 0, 1_000_000_000, 0},
		Time:    timeReply{RemainingSeconds: -1},
		Cost:    s.Cost,
		AsOf:    value.Stamp(openapi.ExampleTime),
	}
	return s
}

func endedExample() Session {
	s := ExampleDynamic
	s.Status, s.StatusReason, s.Proxy, s.EndedAt = "terminated", "agent_request", nil, value.MaybeStamp(
		openapi.ExampleTime.Add(time.Hour),
	)
	s.Cost = costReply{openapi.USD("0.03"), 0, 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	return s
}
